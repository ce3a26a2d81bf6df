"""codex' session logs: `response_item` lines are the conversation, `token_count` events say what each request used.

Its first logs were the items themselves behind one line about the session; they are read as today's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from brim.replay.chat import Chat, Warn, seconds
from brim.replay.transcript import Transcript, printable
from brim.replay.yardstick import text_of


def is_line(value: Mapping[str, Any]) -> bool:
    """Whether an object is a line that only such a log has."""
    return value.get("type") in ("session_meta", "response_item") and isinstance(value.get("payload"), dict)


def in_todays_form(values: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The lines of codex' first logs, which were the items themselves behind one line about the session."""
    at = values[0].get("timestamp")
    return [
        {"type": "session_meta", "timestamp": at, "payload": values[0]},
        *({"type": "response_item", "timestamp": each.get("timestamp", at), "payload": each} for each in values[1:]),
    ]


def of_codex(name: str, values: Sequence[Mapping[str, Any]], warn: Warn) -> Transcript:
    """One session: `response_item` lines are the conversation, `token_count` events end a request and say what it used."""
    chat = Chat(name, warn)
    model: str | None = None
    total: Any = None
    named = False
    for value in values:
        payload = value.get("payload")
        if not isinstance(payload, dict):
            continue
        kind, at = value.get("type"), seconds(value.get("timestamp"))
        if kind == "session_meta":
            # A fork begins with a copy of the log it came from, that log's own first line included.
            chat.name, named = chat.name if named else str(payload.get("id") or name), True
            told = payload.get("base_instructions") or payload.get("instructions")
            text = told.get("text") if isinstance(told, dict) else told
            if text and not chat.messages:
                chat.add({"role": "system", "content": str(text)}, "openai.chat", at)
        elif kind == "turn_context" and payload.get("model"):
            model = printable(str(payload["model"]))
        elif kind == "compacted":
            chat.compactions.append(len(chat.messages))
        elif kind == "response_item" and (item := item_of(payload)) is not None:
            chat.add(item, "openai.responses", at)
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            turns = payload.get("num_turns")
            asked = [n for n, message in enumerate(chat.messages) if _is_asked(message)]
            if type(turns) is int and turns > 0 and asked:
                chat.rewind(asked[max(0, len(asked) - turns)])
        elif kind == "event_msg" and payload.get("type") == "token_count":
            info = payload.get("info")
            if isinstance(info, dict) and info.get("total_token_usage") != total:  # repeated when limits change
                total = info.get("total_token_usage")
                if isinstance(last := info.get("last_token_usage"), dict):
                    chat.used(_codex_usage(last, model, _answer_id(chat, total)))
                chat.close()
    return chat.transcript(model, "codex")


_TOLD = ("<environment_context", "<user_instructions", "<turn_aborted", "# AGENTS.md")
"""How messages begin that codex writes in the user's name: they open no turn."""


def _is_asked(message: Mapping[str, Any]) -> bool:
    return message["role"] == "user" and not text_of(message).lstrip().startswith(_TOLD)


def item_of(item: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """An item in the form of the Responses API's functions; None for what is no part of a conversation."""
    kind = item.get("type")
    call_id = item.get("call_id") or item.get("id")
    if kind == "custom_tool_call":
        arguments = json.dumps({"input": item.get("input", "")}, ensure_ascii=False)
        return {"type": "function_call", "call_id": call_id, "name": item.get("name"), "arguments": arguments}
    if kind == "local_shell_call":
        arguments = json.dumps(item.get("action") or {}, ensure_ascii=False)
        return {"type": "function_call", "call_id": call_id, "name": "local_shell", "arguments": arguments}
    if kind in ("custom_tool_call_output", "local_shell_call_output", "function_call_output"):
        output = item.get("output")
        if not isinstance(output, (str, list)):
            output = json.dumps(output, ensure_ascii=False)
        return {"type": "function_call_output", "call_id": call_id, "output": output}
    return item if kind in ("message", "function_call") else None


def _answer_id(chat: Chat, total: Any) -> str:
    """What tells an answer from all others, since codex names none: what was said, and all tokens used by then."""
    said = next((message for message in reversed(chat.messages) if message["role"] == "assistant"), None)
    return blake2b(json.dumps([said, total], sort_keys=True).encode(), digest_size=12).hexdigest()


def _codex_usage(last: Mapping[str, Any], model: str | None, id: str) -> dict[str, Any]:
    return {
        "prompt_tokens": last.get("input_tokens", 0),
        "completion_tokens": last.get("output_tokens", 0),
        "cached_tokens": last.get("cached_input_tokens", 0),
        "completion_tokens_details": {"reasoning_tokens": last.get("reasoning_output_tokens", 0)},
        "message_id": id,
        **({"model": model} if model else {}),
    }
