"""OpenAI Responses: `instructions` apart, `input` a string or a list of items, one item one message.

Reasoning, each call, each output and each message is an item of its own. An item with a `call_id` is a call, or, if
its type ends in `_output`, the answer to one: so shell, patch and computer calls pair up like functions. Everything
brim does not know (searches the provider ran, references, compaction items) is an opaque assistant item that goes back
as it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from brim.conversation import Media, Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult
from brim.conversation.clean import clean_value
from brim.formats.arguments import arguments_object_text
from brim.formats.blocks import (
    data_url,
    describe_media,
    json_text,
    read_content,
    read_media,
    read_result_content,
    result_text,
    same_blocks,
    write_text,
    wrong,
)

API = "openai.responses"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}

BLANK_PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)
"""One transparent pixel: what a cleared screenshot becomes, since only a picture can answer a computer call."""


def parse_instructions(instructions: Any) -> tuple[list[Message], int]:
    """The `instructions` field as at most one system message; its wire is the string."""
    if instructions is None:
        return [], 0
    instructions, cleaned = clean_value(instructions)
    if not isinstance(instructions, str | list | tuple):
        raise wrong("instructions", "a string", instructions)
    if isinstance(instructions, str):
        return [Message("system", (Text(instructions),), API, instructions)], cleaned
    parts = tuple(
        part for item in instructions for message in [parse_item(item, "instructions")] for part in message.parts
    )
    return [Message("system", parts, API, instructions)], cleaned


def parse(items: Any, where: str = "input") -> tuple[list[Message], int]:
    """All items of `input`, and how many strings had to be cleaned."""
    if items is None:
        return [], 0
    if isinstance(items, str):
        items, cleaned = clean_value(items)
        return [Message("user", (Text(items),), API, items)], cleaned
    if not isinstance(items, list | tuple):
        raise wrong(where, "a string or a list of items", items)
    messages: list[Message] = []
    cleaned = 0
    for index, item in enumerate(items):
        item, changed = clean_value(item)
        cleaned += changed
        messages.append(parse_item(item, f"{where}[{index}]"))
    return messages, cleaned


def parse_item(item: Any, where: str) -> Message:
    """One item as one message."""
    if not isinstance(item, Mapping):
        raise wrong(where, "an item object", item)
    kind = item.get("type")
    if kind is not None and type(kind) is not str:
        raise wrong(f"{where}.type", "a string", kind)
    role = item.get("role")
    if kind == "message" or (kind is None and role is not None):
        if type(role) is not str:
            raise wrong(f"{where}.role", "a string", role)
        parts = read_content(item.get("content"), f"{where}.content")
        return Message(_ROLES.get(role, "system"), parts, API, item)
    if kind == "reasoning":
        return Message("assistant", (_thinking(item),), API, item)
    call_id = item.get("call_id")
    if call_id is None and kind == "mcp_approval_request":
        call_id = item.get("id")
    if call_id is None and kind == "mcp_approval_response":
        call_id = item.get("approval_request_id")
    if call_id is not None and type(call_id) is not str:
        raise wrong(f"{where}.call_id", "a string", call_id)
    if kind in ("function_call", "custom_tool_call") or (call_id and not _is_output(kind)):
        return Message("assistant", (_call(item, str(kind), call_id or "", where),), API, item)
    if kind in ("function_call_output", "custom_tool_call_output") or (call_id and _is_output(kind)):
        return Message("tool", (_output(item, call_id or "", where),), API, item)
    return Message("assistant", (Opaque(kind or "item_reference", item),), API, item)


def _is_output(kind: Any) -> bool:
    return type(kind) is str and (kind.endswith("_output") or kind == "mcp_approval_response")


def _thinking(item: Mapping[str, Any]) -> Thinking:
    texts: list[str] = []
    for key in ("summary", "content"):
        for block in item.get(key) or () if isinstance(item.get(key), list) else ():
            if isinstance(block, Mapping) and type(block.get("text")) is str:
                texts.append(block["text"])
    return Thinking("\n".join(texts), bool(item.get("encrypted_content")), item)


def _call(item: Mapping[str, Any], kind: str, call_id: str, where: str) -> ToolCall:
    name = item.get("name")
    if type(name) is not str:
        name = kind.removesuffix("_call")
    if kind == "custom_tool_call":
        return ToolCall(call_id, name, json_text({"input": item.get("input") or ""}, f"{where}.input"), item)
    arguments = item.get("arguments")
    if arguments is None and kind != "function_call":
        arguments = {k: v for k, v in item.items() if k in ("action", "actions", "operation")}
    if type(arguments) is not str:
        arguments = "" if arguments is None else json_text(arguments, f"{where}.arguments")
    return ToolCall(call_id, name, arguments, item)


def answered_by_picture(result: ToolResult) -> bool:
    """The result answers a computer call, which takes a picture and nothing else."""
    return isinstance(result.wire, Mapping) and result.wire.get("type") == "computer_call_output"


def blank_picture() -> Media:
    """What stands for a screenshot that is left out."""
    wire = {"type": "computer_screenshot", "image_url": BLANK_PICTURE}
    found = read_media(wire)
    assert found is not None
    return found


def _output(item: Mapping[str, Any], call_id: str, where: str) -> ToolResult:
    output = item.get("output")
    if item.get("type") == "mcp_approval_response":  # says yes or no, and has no text
        said = {key: item[key] for key in ("approve", "reason") if key in item}
        return ToolResult(call_id, (Opaque("mcp_approval_response", said),), None, item)
    content: tuple[Text | Media | Opaque, ...]
    if isinstance(output, Mapping):
        content = (read_media(output) or Opaque(str(output.get("type") or "output"), output),)
    elif item.get("type") == "shell_call_output" and isinstance(output, list | tuple) and _is_shell(output):
        content = (Text("\n".join(text for chunk in output for key in _STREAMS if (text := chunk.get(key)))),)
        return ToolResult(call_id, content, any(_went_wrong(chunk.get("outcome")) for chunk in output), item)
    else:
        content = read_result_content(output, f"{where}.output")
    return ToolResult(call_id, content, None, item)


_STREAMS = ("stdout", "stderr")


def _is_shell(chunks: Sequence[Any]) -> bool:
    return all(
        isinstance(chunk, Mapping) and all(isinstance(chunk.get(key, ""), str) for key in _STREAMS) for chunk in chunks
    )


def _went_wrong(outcome: Any) -> bool:
    """A shell's outcome: `{"type": "exit", "exit_code": 0}`, or "timeout"."""
    return isinstance(outcome, Mapping) and (outcome.get("type") == "timeout" or bool(outcome.get("exit_code")))


# Rendering ------------------------------------------------------------------------------------------------------


def render(messages: Sequence[Message], items: Any) -> tuple[Any, Any]:
    """`instructions` (None: absent) and `input` of a view; `items` is `input` as it came."""
    out: list[Any] = []
    head: Any = None
    for message in messages:
        wire = message.wire
        if message.role == "system" and wire is not None and not isinstance(wire, Mapping):
            head = wire if not message.edited else message.text
        elif wire is not None and not message.edited:
            out.append({"role": "user", "content": wire} if isinstance(wire, str) else wire)
        else:
            out.extend(write_items(message))
    if isinstance(items, str) and len(out) == 1 and isinstance(messages[-1].wire, str) and messages[-1].role == "user":
        content = out[0]["content"]  # the one string it was, still a string
        return head, content if isinstance(content, str) else out
    return head, out


def write_items(message: Message) -> list[Any]:
    """The items of a message that is new or edited. An edited item keeps every field that was not changed."""
    wire = message.wire
    if isinstance(wire, Mapping) and _same_kind(message, wire):
        return [_rebuild(message, wire)]
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.result.call_id, "output": _result(message.result)}]
    items: list[Any] = []
    content = [part for part in message.parts if type(part) in (Text, Media)]
    if content:
        role = "developer" if message.role == "system" else message.role
        items.append({"type": "message", "role": role, "content": _content(content, message.role, None)})
    for call in message.calls:
        arguments = arguments_object_text(call.arguments)
        items.append({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
    return items


def _same_kind(message: Message, wire: Mapping[str, Any]) -> bool:
    """Whether the edited message still is the kind of item it was; text in place of a call or search is a message."""
    if message.role == "tool":
        return True
    first = message.parts[0] if message.parts else None
    if type(first) is ToolCall:
        return "call_id" in wire or wire.get("type") == "mcp_approval_request"
    if isinstance(first, Thinking | Opaque) and first.wire == wire:
        return True
    return first is not None and "role" in wire


def _rebuild(message: Message, wire: Mapping[str, Any]) -> Any:
    if message.role == "tool":
        return _rebuild_output(message.result, wire)
    first = message.parts[0] if message.parts else None
    if type(first) is ToolCall:
        return _rebuild_call(first, wire)
    old = wire.get("content")
    if type(first) is Thinking or (type(first) is Opaque and first.wire == wire) or same_blocks(message.parts, old):
        return dict(wire)
    return {**wire, "content": _content(message.parts, message.role, old)}


def _rebuild_call(call: ToolCall, wire: Mapping[str, Any]) -> dict[str, Any]:
    before = parse_item(wire, "item").parts[0]
    assert isinstance(before, ToolCall)
    out = dict(wire)
    if before.id != call.id:
        out["id" if wire.get("type") == "mcp_approval_request" else "call_id"] = call.id
    if before.name != call.name and ("name" in wire or wire.get("type") in ("function_call", "custom_tool_call")):
        out["name"] = call.name
    if before.arguments != call.arguments:
        if wire.get("type") == "custom_tool_call":
            try:
                value = msgspec.json.decode(call.arguments)
            except msgspec.DecodeError:
                value = None
            text = value.get("input") if isinstance(value, dict) else None
            out["input"] = text if type(text) is str else call.arguments
        elif "arguments" in wire or wire.get("type") == "function_call":
            out["arguments"] = arguments_object_text(call.arguments)
    return out


def _rebuild_output(result: ToolResult, wire: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(wire)
    kind, old = wire.get("type"), wire.get("output")
    if kind == "mcp_approval_response":
        out["approval_request_id"] = result.call_id
        return out
    out["call_id"] = result.call_id
    if isinstance(old, Mapping):
        if len(result.content) == 1 and result.content[0].wire is not None and result.content[0].wire == old:
            return out
        if kind == "computer_call_output":
            out["output"] = blank_picture().wire
        return out
    before = parse_item(wire, "item").parts[0]
    if isinstance(before, ToolResult) and before.content == result.content:
        return out
    if kind == "shell_call_output" and isinstance(old, list):
        last = old[-1].get("outcome") if old and isinstance(old[-1], Mapping) else None
        outcome = last or {"type": "exit", "exit_code": 0}
        out["output"] = [{"stdout": result_text(result), "stderr": "", "outcome": outcome}]
    elif isinstance(old, list):
        out["output"] = _content(result.content, "user", old)
    else:
        out["output"] = _result(result)
    return out


def _result(result: ToolResult) -> Any:
    """Output of a function: a string, or a list where it holds a picture or a file."""
    if any(type(part) is Media and part.source != "text" for part in result.content):
        return _content(result.content, "user", [])
    return result_text(result)


def _content(parts: Sequence[Part], role: str, old: Any) -> Any:
    texts = [part.text for part in parts if type(part) is Text]
    if not isinstance(old, list) and len(texts) == len(parts):
        return "\n\n".join(texts)
    blocks: list[Any] = []
    for part in parts:
        if type(part) is Text:
            blocks.append(
                write_text(part, "output_text" if role == "assistant" else "input_text", reuse=old is not None)
            )
        elif old and part.wire is not None:
            blocks.append(part.wire)
        elif type(part) is Media:
            blocks.append(write_media(part))
    return blocks


def write_media(media: Media) -> dict[str, Any]:
    """An input block; plain text where the API has no shape for it (audio, another provider's file ids)."""
    if media.kind == "image" and media.source in ("base64", "url"):
        return {"type": "input_image", "image_url": data_url(media), "detail": media.detail or "auto"}
    if media.kind == "document" and media.source == "base64":
        return {"type": "input_file", "filename": "document.pdf", "file_data": data_url(media)}
    if media.kind == "document" and media.source == "url":
        return {"type": "input_file", "file_url": media.data}
    return {"type": "input_text", "text": media.data if media.source == "text" else describe_media(media)}
