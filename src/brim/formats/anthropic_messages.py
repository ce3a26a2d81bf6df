"""Anthropic messages: `system` apart, content as blocks, tool results inside user messages.

A user object that carries tool results is read as one tool message for each result and one user message for the rest;
all hold the same wire object and their own span of its blocks, and go out as that very object while nothing in it was
touched. If something was removed or edited it is rebuilt on a copy, results first, since the API wants them there.

The `system` field is one system message whose `wire` is the string or list itself; a `messages` entry with the role
system (newer models allow it in mid-conversation) has the entry as its wire and stays where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from brim.conversation import Media, Message, Part, Text, ToolCall, ToolResult
from brim.conversation.clean import clean_value, needs_cleaning
from brim.formats.arguments import arguments_object
from brim.formats.blocks import (
    describe_media,
    json_text,
    read_block,
    read_content,
    read_result_content,
    result_text,
    same_blocks,
    write_text,
    wrong,
)

API = "anthropic.messages"


def parse_system(system: Any) -> tuple[list[Message], int]:
    """The `system` field as at most one message."""
    if system is None:
        return [], 0
    system, cleaned = clean_value(system)
    if not isinstance(system, str | list | tuple):
        raise wrong("system", "a string or a list of blocks", system)
    return [Message("system", read_content(system, "system"), API, system)], cleaned


def parse(wires: Any, where: str = "messages") -> tuple[list[Message], int]:
    """All messages of a body, and how many strings had to be cleaned."""
    if not isinstance(wires, list | tuple):
        raise wrong(where, "a list", wires)
    messages: list[Message] = []
    add = messages.append
    cleaned = 0
    for index, wire in enumerate(wires):
        if type(wire) is dict and len(wire) == 2:
            content = wire.get("content")
            if type(content) is str and (content.isascii() or not needs_cleaning(content)):
                role = wire.get("role")
                if role == "user" or role == "assistant":
                    add(Message(role, (Text(content),), API, wire))
                    continue
        wire, changed = clean_value(wire)
        cleaned += changed
        messages.extend(parse_wire(wire, f"{where}[{index}]"))
    return messages, cleaned


def parse_wire(wire: Any, where: str) -> list[Message]:
    """One `messages` entry as one or, with tool results, several messages."""
    if not isinstance(wire, Mapping):
        raise wrong(where, "a message object", wire)
    role = wire.get("role")
    if type(role) is not str:
        raise wrong(f"{where}.role", "a string", role)
    content = wire.get("content")
    if role == "assistant":
        if isinstance(content, list | tuple):
            parts = tuple([_assistant_part(b, f"{where}.content[{i}]") for i, b in enumerate(content)])
        else:
            parts = read_content(content, f"{where}.content")
        return [Message("assistant", parts, API, wire)]
    if role != "user":
        return [Message("system", read_content(content, f"{where}.content"), API, wire)]
    if not isinstance(content, list | tuple) or not any(_is_result(block) for block in content):
        return [Message("user", read_content(content, f"{where}.content"), API, wire)]
    return _split(wire, content, f"{where}.content")


def _is_result(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_result"


def _split(wire: Mapping[str, Any], content: Sequence[Any], where: str) -> list[Message]:
    if len(content) == 1:
        return [Message("tool", (_result(content[0], f"{where}[0]"),), API, wire)]
    messages: list[Message] = []
    rest: list[Part] = []
    first = last = 0
    for i, block in enumerate(content):
        if _is_result(block):
            messages.append(Message("tool", (_result(block, f"{where}[{i}]"),), API, wire, (i, i + 1)))
            continue
        if not rest:
            first = i
        last = i + 1
        rest.append(read_block(block, f"{where}[{i}]"))
    if rest:
        messages.append(Message("user", tuple(rest), API, wire, (first, last)))
    return messages


def _result(block: Mapping[str, Any], where: str) -> ToolResult:
    call_id = block.get("tool_use_id")
    if call_id is not None and type(call_id) is not str:
        raise wrong(f"{where}.tool_use_id", "a string", call_id)
    flag = block.get("is_error")
    content = read_result_content(block.get("content"), f"{where}.content")
    return ToolResult(call_id or "", content, flag if type(flag) is bool else None, block)


def _assistant_part(block: Any, where: str) -> Part:
    if isinstance(block, Mapping) and block.get("type") == "tool_use":
        call_id, name = block.get("id"), block.get("name")
        if call_id is not None and type(call_id) is not str:
            raise wrong(f"{where}.id", "a string", call_id)
        return ToolCall(call_id or "", str(name or ""), _input_text(block, where), block)
    return read_block(block, where)


def _input_text(block: Mapping[str, Any], where: str) -> str:
    value = block.get("input")
    if type(value) is str:  # not what the API sends, but stored sessions have it
        return value
    return "" if value is None else json_text(value, f"{where}.input")


# Rendering ------------------------------------------------------------------------------------------------------


def render(messages: Sequence[Message], system: Any) -> tuple[Any, list[Any]]:
    """The `system` field (None: absent) and the `messages` list of a view. `system` is the field as it came.

    A message that was edited down to nothing is left out.
    """
    head: list[Message] = []
    wires: list[Any] = []
    group: list[Message] = []  # neighbours that share one wire object, or brim's own results that go into one message
    leading = True
    for message in messages:
        if message.edited and not message.parts:
            continue
        if message.role == "system" and (leading or _is_field(message)) and not isinstance(message.wire, Mapping):
            head.append(message)
            continue
        leading = False
        if group and _belongs(group, message):
            group.append(message)
            continue
        if group:
            wires.append(_close(group))
            group = []
        if message.role == "tool" or message.span is not None:
            group.append(message)
        elif message.wire is not None and not message.edited:
            wires.append(message.wire)
        else:
            wires.append(_write(message))
    if group:
        wires.append(_close(group))
    return _system(head, system), wires


def _is_field(message: Message) -> bool:
    return isinstance(message.wire, str | list | tuple)


def _system(head: Sequence[Message], before: Any) -> Any:
    if not head:
        return None
    if len(head) == 1 and head[0].wire is not None and not head[0].edited:
        return head[0].wire
    if isinstance(before, str) and len(head) == 1 and (text := _plain(head[0])) is not None:
        return text
    blocks: list[Any] = []
    for message in head:
        if isinstance(message.wire, list | tuple) and not message.edited:
            blocks.extend(message.wire)
        else:
            blocks.extend(_blocks(message, reuse=message.wire is not None))
    return blocks


def _belongs(group: Sequence[Message], message: Message) -> bool:
    """Whether `message` goes into the wire message that `group` is becoming.

    Brim's own results join the results beside them (parallel results belong in one message); nothing else moves.
    """
    wire = next((m.wire for m in group if m.wire is not None), None)
    if message.wire is None:
        return message.role == "tool" and group[-1].role == "tool"
    if wire is None:
        return message.role == "tool"
    if message.span is None or (message.wire is not wire and message.wire != wire):
        return False
    spans = [m.span for m in group if m.span is not None]
    if not spans or any(m.role == "user" for m in group):  # the rest of a wire message comes once, at its end
        return False
    return message.role == "user" or message.span[0] >= spans[-1][1]


def _close(group: Sequence[Message]) -> Any:
    wire: Mapping[str, Any] | None = next((m.wire for m in group if m.wire is not None), None)
    parts = sum(len(m.parts) for m in group)
    if wire is not None and not any(m.edited or m.wire is None for m in group):
        content = wire.get("content")
        if isinstance(content, list | tuple) and parts == len(content):
            return wire
    results = [m for m in group if m.role == "tool"]
    rest = [m for m in group if m.role != "tool"]
    blocks = [block for m in (*results, *rest) for block in _blocks(m, reuse=m.wire is not None)]
    return {"role": "user", "content": blocks} if wire is None else {**wire, "content": blocks}


def _write(message: Message) -> dict[str, Any]:
    """A message that is new or edited and stands alone."""
    wire = message.wire
    role = "assistant" if message.role == "assistant" else "user"
    if wire is None:
        return {"role": role, "content": _plain(message) or _blocks(message, reuse=False)}
    old = wire.get("content")
    if same_blocks(message.parts, old) and not any(type(part) is ToolCall for part in message.parts):
        return dict(wire)
    text = _plain(message) if isinstance(old, str) or old is None else None
    return {**wire, "content": text if text is not None else _blocks(message, reuse=True)}


def _plain(message: Message) -> str | None:
    only = message.parts[0] if len(message.parts) == 1 else None
    return only.text if type(only) is Text and only.wire is None else None


def _blocks(message: Message, *, reuse: bool) -> list[Any]:
    blocks: list[Any] = []
    for part in message.parts:
        if type(part) is Text:
            if part.text or (reuse and part.wire is not None):
                blocks.append(write_text(part, "text", reuse=reuse))
        elif type(part) is ToolCall:
            blocks.append(_tool_use(part, reuse=reuse))
        elif type(part) is ToolResult:
            blocks.append(_tool_result(part, reuse=reuse))
        elif reuse and part.wire is not None:
            blocks.append(part.wire)
        elif type(part) is Media:
            blocks.append(write_media(part))
    return blocks


def _tool_use(call: ToolCall, *, reuse: bool) -> Any:
    wire = call.wire if reuse else None
    if not isinstance(wire, Mapping):
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_object(call.arguments)}
    changed: dict[str, Any] = {}
    if (wire.get("id") or "") != call.id:
        changed["id"] = call.id
    if (wire.get("name") or "") != call.name:
        changed["name"] = call.name
    if _input_text(wire, "tool_use") != call.arguments or not isinstance(wire.get("input"), Mapping):
        changed["input"] = arguments_object(call.arguments)
    return {**wire, **changed} if changed else wire


def _tool_result(result: ToolResult, *, reuse: bool) -> Any:
    wire = result.wire if reuse else None
    if not isinstance(wire, Mapping):
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": _content(result, None),
        }
        return {**block, "is_error": True} if result.is_error else block
    changed: dict[str, Any] = {}
    if (wire.get("tool_use_id") or "") != result.call_id:
        changed["tool_use_id"] = result.call_id
    if not same_blocks(result.content, wire.get("content")):
        changed["content"] = _content(result, wire.get("content"))
    if result.is_error is not None and wire.get("is_error") is not result.is_error:
        changed["is_error"] = result.is_error
    return {**wire, **changed} if changed else wire


def _content(result: ToolResult, old: Any) -> Any:
    """Result content: blocks where they were blocks or hold media, else a string."""
    reuse = old is not None
    if not isinstance(old, list) and all(type(part) is Text for part in result.content):
        return result_text(result)
    blocks: list[Any] = []
    for part in result.content:
        if type(part) is Text:
            if part.text:
                blocks.append(write_text(part, "text", reuse=reuse))
        elif reuse and part.wire is not None:
            blocks.append(part.wire)
        elif type(part) is Media:
            blocks.append(write_media(part))
    return blocks


def write_media(media: Media) -> dict[str, Any]:
    """An image or document block; plain text where the API has no shape for it (audio, another provider's file ids)."""
    if media.kind in ("image", "document"):
        if media.source == "base64" and (media.kind == "document" or media.media_type.startswith("image/")):
            media_type = media.media_type or "application/pdf"
            return {"type": media.kind, "source": {"type": "base64", "media_type": media_type, "data": media.data}}
        if media.source == "url":
            return {"type": media.kind, "source": {"type": "url", "url": media.data}}
        if media.source == "text":
            source = {"type": "text", "media_type": "text/plain", "data": media.data}
            return {"type": "document", "source": source}
    return {"type": "text", "text": media.data if media.source == "text" else describe_media(media)}
