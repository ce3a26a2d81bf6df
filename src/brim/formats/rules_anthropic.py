"""The rules of Anthropic bodies: what its messages API answers with a 400."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from brim.formats.checks import blank, list_of, text_blocks
from brim.formats.thinking import signs_thinking

MAX_CACHE_MARKS = 4
"""Blocks with `cache_control` taken in one request."""
_ID = re.compile(r"[a-zA-Z0-9_-]+")


def anthropic_violations(body: Mapping[str, Any]) -> Iterator[str]:
    """Every rule of the messages API that `body` breaks."""
    found: list[str] = []
    messages = list_of(body, "messages", found)
    yield from found
    yield from _anthropic_system(body.get("system"))
    if (marks := sum(_cache_marks(body.get(key)) for key in ("tools", "system", "messages"))) > MAX_CACHE_MARKS:
        yield f"{marks} blocks with cache_control, at most {MAX_CACHE_MARKS} are taken"
    seen: set[str] = set()
    for i, message in enumerate(messages):
        where = f"messages[{i}]"
        if not isinstance(message, Mapping):
            yield f"{where}: must be an object"
            continue
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant", "system"):
            yield f"{where}.role: {role!r} is not user, assistant or system"
        if i == 0 and role != "user":
            yield f"{where}: the first message must be the user's, not {role}"
        if not isinstance(content, str | list):
            yield f"{where}.content: must be a string or a list of blocks"
        elif blank(content):
            yield f"{where}.content: empty"
        yield from text_blocks(content, f"{where}.content")
        if isinstance(content, list):
            yield from _anthropic_blocks(content, str(role), where, seen, signs_thinking(body.get("model")))
    yield from _anthropic_pairs(messages)


def _anthropic_system(system: Any) -> Iterator[str]:
    if system is None:
        return
    if isinstance(system, str):
        if not system.strip():
            yield "system: empty"
    elif not isinstance(system, list):
        yield "system: must be a string or a list of text blocks"
    else:
        yield from text_blocks(system, "system")


def _cache_marks(value: Any) -> int:
    if isinstance(value, Mapping):
        own = 1 if value.get("cache_control") is not None else 0
        return own + sum(_cache_marks(v) for k, v in value.items() if k not in ("input", "input_schema"))
    return sum(map(_cache_marks, value)) if isinstance(value, list) else 0


def _anthropic_blocks(content: Sequence[Any], role: str, where: str, seen: set[str], signs: bool) -> Iterator[str]:
    for j, block in enumerate(content):
        place = f"{where}.content[{j}]"
        kind = block.get("type") if isinstance(block, Mapping) else None
        if not isinstance(kind, str) or not kind:
            yield f"{place}.type: missing"
            continue
        if kind == "tool_use":
            call_id = block.get("id")
            if role != "assistant":
                yield f"{place}: tool_use in a {role} message"
            if not isinstance(call_id, str) or not _ID.fullmatch(call_id):
                yield f"{place}.id: {call_id!r} does not match [a-zA-Z0-9_-]+"
            elif call_id in seen:
                yield f"{place}.id: {call_id!r} is used twice"
            else:
                seen.add(call_id)
            if not isinstance(block.get("input"), Mapping):
                yield f"{place}.input: must be an object"
            if not block.get("name"):
                yield f"{place}.name: missing"
        elif kind == "tool_result":
            if role != "user":
                yield f"{place}: tool_result in a {role} message"
            if blank(block.get("content")):
                yield f"{place}.content: empty"
            yield from text_blocks(block.get("content"), f"{place}.content")
        elif kind in ("thinking", "redacted_thinking"):
            if role != "assistant":
                yield f"{place}: {kind} in a {role} message"
            if signs and not block.get("signature" if kind == "thinking" else "data"):
                yield f"{place}: {kind} without its signature"


def _anthropic_pairs(messages: Sequence[Any]) -> Iterator[str]:
    """Calls are answered in the next turn, once each. The API reads neighbours of one role as one turn."""
    open_calls: dict[str, str] = {}
    answered: set[str] = set()
    before: Any = None
    talk = False  # whether this user turn has said anything but results
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping):
            continue
        role = message.get("role")
        if role != "user":
            talk = False
        if role != "user" and before == "user":
            yield from _unanswered(open_calls)
            open_calls = {}
        if role == "system" and open_calls:
            yield f"messages[{i}]: a system message between tool_use and its result"
        if role == "assistant" and before != "assistant":
            answered = set()
        content = message.get("content")
        talk = talk or (role == "user" and isinstance(content, str))
        for j, block in enumerate(content if isinstance(content, list) else ()):
            if not isinstance(block, Mapping):
                continue
            place = f"messages[{i}].content[{j}]"
            if role == "user" and block.get("type") != "tool_result":
                talk = True
            elif role == "user" and talk:
                yield f"{place}: tool_result blocks must come before all others of the turn"
            if block.get("type") == "tool_use" and role == "assistant":
                open_calls[str(block.get("id"))] = place
            elif block.get("type") == "tool_result" and role == "user":
                call_id = str(block.get("tool_use_id"))
                if call_id in open_calls:
                    del open_calls[call_id]
                    answered.add(call_id)
                elif call_id in answered:
                    yield f"{place}: second result of {call_id!r}"
                else:
                    yield f"{place}: result of {call_id!r}, which the turn before does not call"
        before = role
    yield from _unanswered(open_calls)


def _unanswered(open_calls: Mapping[str, str]) -> Iterator[str]:
    for call_id, place in open_calls.items():
        yield f"{place}: tool_use {call_id!r} has no result in the next turn"
