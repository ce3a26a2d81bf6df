"""The rules of Responses bodies: pairs by `call_id`, and reasoning with the item that follows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from brim.formats.checks import is_object, list_of, no_arguments, text_blocks

_MODEL_BLOCKS = ("output_text", "refusal")
_INPUT_BLOCKS = ("input_text", "input_image", "input_file", "input_audio")


def responses_violations(body: Mapping[str, Any]) -> Iterator[str]:
    """Every rule of the Responses API that `body` breaks."""
    items = body.get("input")
    if isinstance(items, str):
        return
    found: list[str] = []
    items = list_of(body, "input", found)
    yield from found
    open_calls: dict[str, str] = {}
    answered: set[str] = set()
    ids: set[str] = set()
    for i, item in enumerate(items):
        where = f"input[{i}]"
        if not isinstance(item, Mapping):
            yield f"{where}: must be an object"
            continue
        kind = item.get("type") or ("message" if item.get("role") else "item_reference")
        if isinstance(item_id := item.get("id"), str) and kind != "item_reference":
            if item_id in ids:
                yield f"{where}.id: duplicate item id {item_id!r}"
            ids.add(item_id)
        if kind == "message":
            yield from _responses_message(item, where)
        elif kind == "reasoning":
            follower = items[i + 1] if i + 1 < len(items) else None
            if not _is_models(follower):
                yield f"{where}: a reasoning item without the item that has to follow it"
        call_id = item.get("call_id")
        if kind.endswith("_output"):
            if not isinstance(call_id, str) or not call_id:
                if kind in ("function_call_output", "custom_tool_call_output"):
                    yield f"{where}.call_id: missing"
            elif call_id in open_calls:
                del open_calls[call_id]
                answered.add(call_id)
            elif call_id in answered:
                yield f"{where}: second output of call {call_id!r}"
            else:
                yield f"{where}: output of call {call_id!r}, which is not before it"
            if kind == "function_call_output" and not isinstance(item.get("output"), str | list):
                yield f"{where}.output: must be a string or a list"
        elif kind.endswith("_call") and (isinstance(call_id, str) or kind in ("function_call", "custom_tool_call")):
            if not call_id:
                yield f"{where}.call_id: missing"
            elif call_id in open_calls:
                yield f"{where}.call_id: {call_id!r} is used twice"
            else:
                open_calls[call_id] = where
            if kind == "function_call":
                if not item.get("name"):
                    yield f"{where}.name: missing"
                if not (is_object(given := item.get("arguments")) or no_arguments(given)):
                    yield f"{where}.arguments: not the JSON text of an object"
    yield from (f"{place}: no output found for call {call_id!r}" for call_id, place in open_calls.items())


def _responses_message(item: Mapping[str, Any], where: str) -> Iterator[str]:
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant", "system", "developer"):
        yield f"{where}.role: {role!r} is not user, assistant, system or developer"
    if not isinstance(content, str | list):
        yield f"{where}.content: must be a string or a list"
    elif content == []:
        yield f"{where}.content: empty"
    for j, block in enumerate(content if isinstance(content, list) else ()):
        kind = block.get("type") if isinstance(block, Mapping) else None
        wanted = (
            ("output_text", "refusal")
            if role == "assistant"
            else ("input_text", "input_image", "input_file", "input_audio")
        )
        if kind not in wanted:
            yield f"{where}.content[{j}].type: {kind!r} in a {role} message"
    yield from text_blocks(content, f"{where}.content", empty=True)


def _is_models(item: Any) -> bool:
    """Whether an item is something the model wrote, so that a reasoning item may stand before it."""
    if not isinstance(item, Mapping):
        return False
    kind = item.get("type") or ("message" if item.get("role") else "item_reference")
    return item.get("role") == "assistant" if kind == "message" else not str(kind).endswith("_output")
