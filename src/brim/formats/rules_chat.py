"""The rules of chat bodies: pairing and content for all, the order of roles for strict templates and Gemini."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from brim.formats.checks import blank, is_object, no_arguments, text_blocks

MAX_TOOL_CALLS = 128
"""Entries of `tool_calls` OpenAI takes back in one message ("array too long" above)."""
_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")

_CHAT_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def chat_violations(messages: Sequence[Any], dialect: str) -> Iterator[str]:
    """Roles, content and pairing of chat messages. Hosted OpenAI takes empty text (not null, not an empty list)."""
    lenient = dialect == "openai"
    open_calls: dict[str, str] = {}  # id -> place of the call still to be answered
    answered: set[str] = set()
    for i, message in enumerate(messages):
        where = f"messages[{i}]"
        if not isinstance(message, Mapping):
            yield f"{where}: must be an object"
            continue
        role, content = message.get("role"), message.get("content")
        if role not in _CHAT_ROLES:
            yield f"{where}.role: {role!r} is not one of {', '.join(sorted(_CHAT_ROLES))}"
        if content is not None and not isinstance(content, str | list):
            yield f"{where}.content: must be a string or a list"
        yield from text_blocks(content, f"{where}.content", empty=lenient)
        if role in ("tool", "function"):
            call_id = message.get("tool_call_id") if role == "tool" else f"function:{message.get('name')}"
            if content is None or content == []:
                yield f"{where}.content: a tool message must have content"
            elif not lenient and blank(content):
                yield f"{where}.content: empty"
            if not isinstance(call_id, str) or not call_id:
                yield f"{where}.tool_call_id: missing"
            elif call_id in open_calls:
                del open_calls[call_id]
                answered.add(call_id)
            elif call_id in answered:
                yield f"{where}: second result of call {call_id!r}"
            else:
                yield f"{where}: result of call {call_id!r}, which is not in the nearest earlier assistant message"
            continue
        yield from (f"{place}: call {call_id!r} has no result right after it" for call_id, place in open_calls.items())
        open_calls, answered = {}, set()
        if role != "assistant":
            if content is None or content == [] or (not lenient and blank(content)):
                yield f"{where}.content: empty"
            continue
        calls = message.get("tool_calls")
        legacy = message.get("function_call")
        bare = not calls and not legacy and not message.get("refusal") and not message.get("audio")
        if bare and (content is None or content == [] or (not lenient and blank(content))):
            yield f"{where}.content: empty, and no tool call"
        if calls == []:
            yield f"{where}.tool_calls: an empty list"
        if isinstance(calls, list):
            yield from _chat_calls(calls, where, dialect, open_calls)
        if isinstance(legacy, Mapping):
            open_calls[f"function:{legacy.get('name')}"] = f"{where}.function_call"
    yield from (f"{place}: call {call_id!r} has no result right after it" for call_id, place in open_calls.items())


def _chat_calls(calls: Sequence[Any], where: str, dialect: str, open_calls: dict[str, str]) -> Iterator[str]:
    if len(calls) > MAX_TOOL_CALLS:
        yield f"{where}.tool_calls: {len(calls)} calls in one message, at most {MAX_TOOL_CALLS} are taken"
    for j, call in enumerate(calls):
        place = f"{where}.tool_calls[{j}]"
        call_id = call.get("id") if isinstance(call, Mapping) else None
        if not isinstance(call_id, str) or not call_id:
            yield f"{place}.id: missing"
            continue
        if call_id in open_calls:
            yield f"{place}.id: {call_id!r} is used twice in one message"
        open_calls[call_id] = place
        if dialect == "mistral" and not _MISTRAL_ID.fullmatch(call_id):
            yield f"{place}.id: {call_id!r} is not nine letters or digits"
        function = call.get("function")
        if call.get("type") == "custom":
            continue
        if not isinstance(function, Mapping) or not function.get("name"):
            yield f"{place}.function.name: missing"
        elif not (is_object(given := function.get("arguments")) or (dialect == "openai" and no_arguments(given))):
            yield f"{place}.function.arguments: not the JSON text of an object"


def order_violations(messages: Sequence[Any]) -> Iterator[str]:
    """The order chat templates check: calls and their results are passed over, the rest takes turns, user first."""
    expected = "user"
    before: Any = None
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping):
            continue
        role = message.get("role")
        if role in ("system", "developer"):
            if i:
                yield f"messages[{i}]: a system message that is not the first message"
        elif role == "user" and before == "tool":
            yield f"messages[{i}]: a user message right after a tool message"
            expected = "assistant"
        elif role in ("user", "assistant") and role == before:
            yield f"messages[{i}]: two {role} messages in a row"
        elif role == "assistant" and message.get("tool_calls"):
            if expected == "user" and before in (None, "system", "developer"):
                yield f"messages[{i}]: the first message after the system message must be the user's"
        elif role in ("user", "assistant"):
            if role != expected:
                yield f"messages[{i}]: {role} where {expected} must come (roles alternate, user first)"
            expected = "assistant" if role == "user" else "user"
        before = role


def gemini_violations(messages: Sequence[Any]) -> Iterator[str]:
    """Gemini's order of turns; neighbours of one role are one turn there."""
    turns: list[tuple[int, str, bool]] = []  # start, role, calls
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") in ("system", "developer"):
            continue
        role = "tool" if message.get("role") == "function" else str(message.get("role"))
        calls = bool(message.get("tool_calls"))
        if turns and turns[-1][1] == role:
            turns[-1] = (turns[-1][0], role, turns[-1][2] or calls)
        else:
            turns.append((i, role, calls))
    for at, (i, role, calls) in enumerate(turns):
        before = turns[at - 1][1] if at else None
        if at == 0 and role != "user":
            yield f"messages[{i}]: the first turn must be the user's, not {role}"
        if calls and before not in ("user", "tool"):
            yield f"messages[{i}]: a function call turn must follow a user turn or a function response"
