"""What the tests of replay share: a small recorded run of our own, and shared data where it lies beside the checkout."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

DATA = Path(os.environ.get("BRIM_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
REFERENCE = DATA.parent / "reference"


def data_file(name: str) -> Path:
    """A file of recorded transcripts; the test is skipped where there is none."""
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"needs recorded transcripts: {path} (set BRIM_DATA)")
    return path


def conversations(name: str) -> list[dict[str, Any]]:
    """The conversations of such a file."""
    return [json.loads(line) for line in data_file(name).read_text(encoding="utf-8").splitlines()]


def step(number: int, tool: str, arguments: Mapping[str, Any], output: str) -> list[dict[str, Any]]:
    """A call and its result, in chat form."""
    call_id = f"call_{number}"
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return [
        {"role": "assistant", "content": "", "tool_calls": [{"id": call_id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": call_id, "name": tool, "content": output},
    ]


def small_run(steps: int = 14, *, seed: int = 0) -> list[dict[str, Any]]:
    """A coding run: each step reads a module; every third goes back to a name that the first results hold."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You fix bugs in this project."},
        {"role": "user", "content": f"Why does load_config_{seed} fail on an empty file?"},
    ]
    for n in range(steps):
        path = f"src/mod_{seed}_{n}.py"
        back = f"src/mod_{seed}_{n // 3}.py" if n % 3 == 2 else path
        body = "\n".join(
            f"def handler_{seed}_{n}_{line}(request): return request.field_{line % 7}" for line in range(30)
        )
        messages += step(n, "read" if n % 4 else "bash", {"path": back, "wanted": f"handler_{seed}_{n // 3}_5"}, body)
    messages.append({"role": "assistant", "content": f"The fault is in handler_{seed}_0_5, see src/mod_{seed}_0.py."})
    return messages


def write_lines(path: Path, values: list[Any]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values), encoding="utf-8")
    return path


def runs_file(folder: Path, count: int = 4) -> Path:
    """A file of small runs of different length."""
    rows = [{"id": f"run-{n}", "model": "gpt-4o", "messages": small_run(8 + 3 * n, seed=n)} for n in range(count)]
    return write_lines(folder / "runs.jsonl", rows)


def claude_log(conversation: Mapping[str, Any], *, session: str, sidechain: bool = False) -> Iterator[dict[str, Any]]:
    """A conversation in chat form as the lines that Claude Code would have logged: one for each block of an answer,
    one for each result, in a chain of parents, with the provider's usage repeated on each line of an answer."""
    usage = {row["message_index"]: row for row in conversation.get("recorded_usage") or ()}
    parent = None
    for index, message in enumerate(conversation["messages"]):
        blocks: list[Any]
        if message["role"] == "assistant":
            blocks = [{"type": "text", "text": message["content"]}] if message["content"] else []
            for call in message.get("tool_calls") or ():
                arguments = json.loads(call["function"]["arguments"] or "{}")
                blocks.append(
                    {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments}
                )
        elif message["role"] == "tool":
            blocks = [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}]
        else:
            blocks = [message["content"]]
        for number, block in enumerate(blocks):
            role = "assistant" if message["role"] == "assistant" else "user"
            uuid = f"{session}-{index}-{number}"
            inner: dict[str, Any] = {"role": role, "content": block if isinstance(block, str) else [block]}
            if role == "assistant":
                inner |= {"id": f"msg_{session}_{index}", "type": "message", "model": conversation["model"]}
                if index in usage:
                    row = usage[index]
                    written = (row["prompt_tokens"] - row["cached_tokens"]) // 2
                    inner["usage"] = {
                        "input_tokens": row["prompt_tokens"] - row["cached_tokens"] - written,
                        "cache_read_input_tokens": row["cached_tokens"],
                        "cache_creation_input_tokens": written,
                        "output_tokens": row["completion_tokens"],
                    }
            yield {
                "type": role,
                "uuid": uuid,
                "parentUuid": parent,
                "sessionId": session,
                "isSidechain": sidechain,
                "timestamp": f"2026-01-05T10:{index // 6:02d}:{index % 6 * 10:02d}Z",
                "message": inner,
            }
            parent = uuid
