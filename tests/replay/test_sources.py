"""Sources: every kind of transcript is recognised by what is in it, and what is damaged costs only itself."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from brim.conversation import assistant, call, result, user
from brim.errors import UsageError
from brim.replay.sources import Found, find_files, read_transcripts
from brim.replay.transcript import Transcript
from brim.replay.yardstick import text_of
from brim.store import open_store
from shared_replay import claude_log, small_run, write_lines


def read(*paths: Path) -> tuple[list[Transcript], list[str]]:
    warnings: list[str] = []
    return [found.transcript for found in read_transcripts(find_files(paths), warnings.append)], warnings


def only(path: Path) -> Transcript:
    (transcript,), warnings = read(path)
    assert not warnings
    return transcript


def test_chat_lines(tmp_path: Path) -> None:
    """JSON lines with `messages` are one conversation each, with recorded usage where it is there."""
    usage = [{"message_index": 2, "prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 0, "cost_usd": 0.5}]
    path = write_lines(
        tmp_path / "a.jsonl",
        [{"id": "x", "messages": small_run(3), "model": "gpt-4o", "recorded_usage": usage}, {"messages": small_run(2)}],
    )
    found, _ = read(path)
    assert [each.id for each in found] == ["x", "a:2"]
    assert found[0].messages == small_run(3) and found[0].usage[2]["cost_usd"] == 0.5
    assert (found[0].model, found[1].model) == ("gpt-4o", None)


def test_json_files_of_any_api(tmp_path: Path) -> None:
    """A request body, a list of bodies and a bare list of messages are read, Anthropic's and Responses' among them."""
    anthropic = {
        "model": "claude-sonnet-4-5",
        "system": "be brief",
        "messages": [
            {"role": "user", "content": "list"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "…", "signature": "s"},
                                              {"type": "text", "text": "ok"},
                                              {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "src_dir"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}]},
        ],
    }  # fmt: skip
    (tmp_path / "body.json").write_text(json.dumps(anthropic))
    transcript = only(tmp_path / "body.json")
    assert [m["role"] for m in transcript.messages] == ["system", "user", "assistant", "tool"]
    assert text_of(transcript.messages[2]) == "ok\nls\nsrc_dir"
    assert transcript.messages[3]["name"] == "ls" and transcript.model == "claude-sonnet-4-5"
    (tmp_path / "list.json").write_text(json.dumps(small_run(2)))
    assert only(tmp_path / "list.json").messages == small_run(2)
    write_lines(tmp_path / "lines.jsonl", small_run(2))
    assert only(tmp_path / "lines.jsonl").messages == small_run(2)
    (tmp_path / "two.json").write_text(json.dumps([{"messages": small_run(1)}, {"messages": small_run(2)}]))
    assert len(read(tmp_path / "two.json")[0]) == 2


def test_claude_code_log(tmp_path: Path) -> None:
    """A Claude Code log: blocks of one answer become one message, sub-agents conversations of their own, times and usage
    are kept."""
    usage = [{"message_index": 1, "prompt_tokens": 100, "completion_tokens": 7, "cached_tokens": 60}]
    conversation: dict[str, Any] = {"model": "claude-sonnet-4-5", "messages": small_run(3)[1:], "recorded_usage": usage}
    summary = {"type": "summary", "summary": "Fix it", "leafUuid": "z"}
    agent: dict[str, Any] = {"model": "claude-haiku-4-5", "messages": small_run(2, seed=9)[1:]}
    lines = [summary, *claude_log(conversation, session="s1"), *claude_log(agent, session="sub", sidechain=True)]
    path = write_lines(tmp_path / "log.jsonl", lines)
    (main, sub), warnings = read(path)
    assert not warnings
    assert (main.id, main.kind, main.model) == ("s1", "Claude Code", "claude-sonnet-4-5")
    assert [text_of(m) for m in main.messages] == [text_of(m) for m in conversation["messages"]]
    assert [text_of(m) for m in sub.messages] == [text_of(m) for m in agent["messages"]]
    assert sub.model == "claude-haiku-4-5" and main.time(0) == 1767607200.0
    assert dict(main.usage)[1]["cache_read_input_tokens"] == 60 and list(main.usage) == [1]


def codex_lines() -> list[dict[str, Any]]:
    def line(kind: str, second: int, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": f"2026-02-01T08:00:{second:02d}.000Z", "type": kind, "payload": payload}

    def counted(second: int, total: int, last: int, cached: int) -> dict[str, Any]:
        used = {"input_tokens": last, "cached_input_tokens": cached, "output_tokens": 5, "reasoning_output_tokens": 2}
        info = {"total_token_usage": {**used, "total_tokens": total}, "last_token_usage": used}
        return line("event_msg", second, {"type": "token_count", "info": info})

    def said(role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    shell = json.dumps({"command": ["bash", "-lc", "ls src"]})
    return [
        line("session_meta", 0, {"id": "c0ffee", "cwd": "/p", "instructions": "be careful"}),
        line("turn_context", 0, {"model": "gpt-5-codex"}),
        line("response_item", 1, said("user", "what is in src?")),
        line("event_msg", 1, {"type": "user_message", "message": "what is in src?"}),
        line("response_item", 2, {"type": "reasoning", "summary": [], "encrypted_content": "x"}),
        line("response_item", 2, said("assistant", "I look")),
        line("response_item", 2, {"type": "function_call", "name": "shell", "arguments": shell, "call_id": "c1"}),
        counted(3, 105, 100, 0),
        counted(3, 105, 100, 0),
        line("response_item", 4, {"type": "function_call_output", "call_id": "c1", "output": "main.py"}),
        line(
            "response_item",
            5,
            {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin", "call_id": "c2"},
        ),
        line("response_item", 6, {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"}),
        counted(6, 265, 150, 90),
        line("compacted", 7, {"message": "summary"}),
        line("response_item", 8, said("assistant", "patched main.py")),
        counted(9, 470, 200, 0),
    ]


def test_codex_log(tmp_path: Path) -> None:
    """A codex log: items of one answer become one message, repeated counts are one request, compaction is marked."""
    transcript = only(write_lines(tmp_path / "rollout-1.jsonl", codex_lines()))
    assert (transcript.id, transcript.kind, transcript.model) == ("c0ffee", "codex", "gpt-5-codex")
    roles = [m["role"] for m in transcript.messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert text_of(transcript.messages[2]) == "I look\nshell\nbash\n-lc\nls src"
    assert text_of(transcript.messages[4]).startswith("\napply_patch\n*** Begin")
    assert [transcript.usage[n]["prompt_tokens"] for n in (2, 4, 6)] == [100, 150, 200]
    assert transcript.compactions == [6]


def test_each_request_is_the_usage_of_its_answer(tmp_path: Path) -> None:
    """A request that brim recorded once its answer was stored counts for that answer, a tool's result behind it or not."""
    path = tmp_path / "brim.db"
    with open_store(path) as store:
        id = store.new_session(project="/p", model="openai/gpt-4o").id
        store.append(id, [user("hi"), assistant("", call("ls", {"path": "x"}, id="c1"))])
        store.record_request(id, model="openai/gpt-4o", usage={"input": 50, "output": 4})
        store.append(id, [result("c1", "a.py"), assistant("there is a.py")])
        store.record_request(id, model="openai/gpt-4o", usage={"input": 70, "output": 6})
    usage = only(path).usage
    assert {at: row["prompt_tokens"] for at, row in usage.items()} == {1: 50, 3: 70}


def test_brim_store_and_exports(tmp_path: Path) -> None:
    """brim's own sessions are read from a store's database, which stays byte for byte, and from an export."""
    path = tmp_path / "brim.db"
    with open_store(path) as store:
        session = store.new_session(project="/p", model="openai/gpt-4o")
        store.append(session.id, [user("hi"), assistant("", call("ls", {"path": "x"}, id="c1")), result("c1", "a.py")])
        store.append(session.id, [assistant("there is a.py")])
        store.record_request(session.id, mode="auto", model="openai/gpt-4o", seq=3, usage={"input": 50, "output": 4})
        lines = [json.loads(line) for line in store.export_lines(session.id)]
    before = path.read_bytes()
    files = sorted(each.name for each in tmp_path.iterdir())
    stored = only(path)
    assert path.read_bytes() == before and sorted(each.name for each in tmp_path.iterdir()) == files
    exported = only(write_lines(tmp_path / "export.jsonl", lines))
    for transcript in (stored, exported):
        assert transcript.kind == "brim" and transcript.model == "openai/gpt-4o"
        assert [m["role"] for m in transcript.messages] == ["user", "assistant", "tool", "assistant"]
        assert dict(transcript.usage)[3]["prompt_tokens"] == 50


def test_damage_costs_only_itself(tmp_path: Path) -> None:
    """Lines of NUL bytes, half lines and files without transcripts are named and skipped; the rest is read."""
    path = tmp_path / "a.jsonl"
    good = json.dumps({"id": "good", "messages": small_run(2)}).encode()
    path.write_bytes(
        good + b"\n" + b"\0" * 50 + b"\n" + good[: len(good) // 2] + b"\n\n" + good + b"\n" + b'{"messages": 3}\n'
    )
    found, warnings = read(path)
    assert [each.id for each in found] == ["good", "good"]
    assert warnings == [
        "a.jsonl, line 3: skipped, no JSON object",
        "a.jsonl, line 6: skipped, it has no list of messages",
    ]
    (tmp_path / "x.json").write_text("[1, 2]")
    assert read(tmp_path / "x.json")[1] == ["x.json: skipped, it holds no transcript"]
    with pytest.raises(UsageError, match="no file"):
        read(tmp_path / "missing.jsonl")


def test_folders_are_searched(tmp_path: Path) -> None:
    """A folder stands for the transcripts below it, in order of their paths."""
    for name in ("b/2.jsonl", "a/1.jsonl", "c/skip.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_lines(tmp_path / name, [{"id": name, "messages": small_run(1)}])
    assert [each.id for each in read(tmp_path)[0]] == ["a/1.jsonl", "b/2.jsonl"]


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    """Conversations are read one at a time: 200 of them take no more memory than a few."""
    row = json.dumps({"messages": small_run(20)})
    path = tmp_path / "many.jsonl"
    path.write_text((row + "\n") * 200)
    tracemalloc.start()
    count = sum(1 for _ in read_transcripts([path]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 200
    assert peak < 12 * len(row)


def test_progress_counts_bytes(tmp_path: Path) -> None:
    """Each conversation says how far the reading has come; the last one stands at the end of its file."""
    first, second = (write_lines(tmp_path / f"{n}.jsonl", [{"messages": small_run(n + 1)}] * 2) for n in range(2))
    found: list[Found] = list(read_transcripts([first, second]))
    size = first.stat().st_size
    assert [each.bytes for each in found] == [
        size // 2,
        size,
        size + second.stat().st_size // 2,
        size + second.stat().st_size,
    ]
