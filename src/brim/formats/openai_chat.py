"""OpenAI chat completions: `messages`, one object a message, system text among them.

Also what the compatible servers add: `reasoning_content`, `reasoning` and `reasoning_details` on assistant messages
(read as thinking), pictures in other APIs' shapes, arguments that are missing, null or an object, and the old
`function` role. A role brim does not know is carried in place as a system message: never shortened, never moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from brim.conversation import Media, Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult
from brim.conversation.clean import clean_value, needs_cleaning
from brim.formats.arguments import arguments_object_text
from brim.formats.blocks import (
    data_url,
    describe_media,
    json_text,
    read_content,
    read_result_content,
    result_text,
    same_blocks,
    write_text,
    wrong,
)

API = "openai.chat"
REASONING = ("reasoning_content", "reasoning", "reasoning_details")
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def parse(wires: Any, where: str = "messages") -> tuple[list[Message], int]:
    """All messages of a body, and how many strings had to be cleaned. Plain text takes a short way."""
    if not isinstance(wires, list | tuple):
        raise wrong(where, "a list", wires)
    messages: list[Message] = []
    add = messages.append
    roles = _ROLES
    cleaned = 0
    for index, wire in enumerate(wires):
        if type(wire) is dict:
            content = wire.get("content")
            if type(content) is str and (content.isascii() or not needs_cleaning(content)):
                role = wire.get("role")
                size = len(wire)
                if size == 2 and (role == "user" or role == "assistant" or role == "system"):
                    add(Message(role, (Text(content),), API, wire))
                    continue
                if size == 3 and role == "tool" and type(call_id := wire.get("tool_call_id")) is str:
                    add(Message("tool", (ToolResult(call_id, (Text(content),)),), API, wire))
                    continue
            elif content is None and len(wire) == 3 and wire.get("role") == "assistant" and "content" in wire:
                calls = _plain_calls(wire.get("tool_calls"))
                if calls:
                    add(Message("assistant", calls, API, wire))
                    continue
        wire, changed = clean_value(wire)
        cleaned += changed
        add(_parse_slow(wire, f"{where}[{index}]", roles))
    return messages, cleaned


def _plain_calls(calls: Any) -> tuple[ToolCall, ...] | None:
    """The calls of a list of ordinary, clean function calls; None if one of them needs a closer look."""
    if type(calls) is not list:
        return None
    out: list[ToolCall] = []
    for call in calls:
        function = call.get("function") if type(call) is dict and len(call) == 3 else None
        if type(function) is not dict or len(function) != 2 or call.get("type") != "function":
            return None
        call_id, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
        if type(call_id) is not str or type(name) is not str or type(arguments) is not str:
            return None
        if not (call_id.isascii() and name.isascii() and (arguments.isascii() or not needs_cleaning(arguments))):
            return None
        out.append(ToolCall(call_id, name, arguments, call))
    return tuple(out)


def _parse_slow(wire: Any, where: str, roles: Mapping[str, Role]) -> Message:
    if not isinstance(wire, Mapping):
        raise wrong(where, "a message object", wire)
    role = wire.get("role")
    if type(role) is not str:
        raise wrong(f"{where}.role", "a string", role)
    name = wire.get("name")
    if type(name) is not str:
        name = None
    content = wire.get("content")
    kind = roles.get(role, "system")
    if kind == "tool":
        call_id = wire.get("tool_call_id")
        if call_id is None:
            call_id = f"function:{name or ''}" if role == "function" else ""
        elif type(call_id) is not str:
            raise wrong(f"{where}.tool_call_id", "a string", call_id)
        parts: tuple[Part, ...] = (ToolResult(call_id, read_result_content(content, f"{where}.content")),)
    elif kind == "assistant":
        parts = _assistant_parts(wire, content, where)
    else:
        parts = read_content(content, f"{where}.content")
    return Message(kind, parts, API, wire, name=name)


def _assistant_parts(wire: Mapping[str, Any], content: Any, where: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    found = {key: wire[key] for key in REASONING if wire.get(key)}
    if found:
        text = next((value for value in found.values() if type(value) is str), "")
        details = found.get("reasoning_details")
        if not text and isinstance(details, list):
            text = "\n".join(str(d.get("text") or d.get("summary") or "") for d in details if isinstance(d, Mapping))
        signed = isinstance(details, list) and any(
            isinstance(d, Mapping) and (d.get("signature") or d.get("data")) for d in details
        )
        parts.append(Thinking(text, signed, found))
    calls = wire.get("tool_calls")
    if calls is not None and not isinstance(calls, list | tuple):
        raise wrong(f"{where}.tool_calls", "a list", calls)
    if not (content == "" and type(content) is str and (calls or wire.get("function_call") or found)):
        parts.extend(read_content(content, f"{where}.content"))
    if type(refusal := wire.get("refusal")) is str and refusal:
        parts.append(Opaque("refusal", {"type": "refusal", "refusal": refusal}))
    if isinstance(audio := wire.get("audio"), Mapping) and audio:
        parts.append(Opaque("audio", audio))
    for i, call in enumerate(calls or ()):
        parts.append(_parse_call(call, f"{where}.tool_calls[{i}]"))
    legacy = wire.get("function_call")
    if isinstance(legacy, Mapping):
        name = str(legacy.get("name") or "")
        parts.append(ToolCall(f"function:{name}", name, _arguments(legacy, where), legacy))
    return tuple(parts)


def _parse_call(call: Any, where: str) -> ToolCall:
    if not isinstance(call, Mapping):
        raise wrong(where, "a tool call object", call)
    call_id = call.get("id")
    if call_id is not None and type(call_id) is not str:
        raise wrong(f"{where}.id", "a string", call_id)
    custom = call.get("custom")
    if isinstance(custom, Mapping):
        text = json_text({"input": custom.get("input") or ""}, f"{where}.custom.input")
        return ToolCall(call_id or "", str(custom.get("name") or ""), text, call)
    function = call.get("function", call)
    if function is None:
        function = {}
    if not isinstance(function, Mapping):
        raise wrong(f"{where}.function", "an object", function)
    return ToolCall(call_id or "", str(function.get("name") or ""), _arguments(function, f"{where}.function"), call)


def _arguments(function: Mapping[str, Any], where: str) -> str:
    arguments = function.get("arguments")
    if type(arguments) is str:
        return arguments
    return "" if arguments is None else json_text(arguments, f"{where}.arguments")


# Rendering ------------------------------------------------------------------------------------------------------


def render(messages: Sequence[Message]) -> list[Any]:
    """The `messages` list: untouched wire objects themselves, edited ones rebuilt on a copy, brim's own made new.

    A message that was edited down to nothing is left out.
    """
    return [
        m.wire if m.wire is not None and not m.edited and m.api == API else _render_one(m)
        for m in messages
        if m.parts or not m.edited
    ]


def _render_one(message: Message) -> dict[str, Any]:
    wire: Mapping[str, Any] | None = message.wire if message.api == API and message.wire is not None else None
    if message.role == "tool":
        return _tool(message.result, wire)
    reuse = wire is not None
    out: dict[str, Any] = dict(wire) if wire is not None else {"role": message.role}
    if wire is None and message.name:
        out["name"] = message.name
    if message.role == "assistant":
        _calls(message, out, reuse)
        _reasoning(message, out, reuse)
    content = [
        part
        for part in message.parts
        if type(part) is Text
        or type(part) is Media
        or (type(part) in (Opaque, Thinking) and reuse and _in_content(part, out.get("content")))
    ]
    old = out.get("content")
    if reuse and _matches(content, old):
        return out
    out["content"] = _content(content, message.role, isinstance(old, list), reuse)
    if out["content"] == "" and message.role == "assistant" and (out.get("tool_calls") or out.get("function_call")):
        out["content"] = None
    return out


def _matches(parts: Sequence[Part], content: Any) -> bool:
    return same_blocks(parts, content) or (content == "" and not parts)


def _in_content(part: Part, content: Any) -> bool:
    return isinstance(content, list) and any(part.wire is block or part.wire == block for block in content)


def _content(parts: Sequence[Part], role: str, as_list: bool, reuse: bool) -> Any:
    """A string where all is text and was no list before: the one form every compatible server takes."""
    if not as_list and all(type(part) is Text for part in parts):
        return "\n\n".join(part.text for part in parts if type(part) is Text)
    blocks: list[Any] = []
    for part in parts:
        if type(part) is Text:
            blocks.append(write_text(part, "text", reuse=reuse))
        elif reuse and part.wire is not None:
            blocks.append(part.wire)
        elif type(part) is Media:
            blocks.append(write_media(part))
    return blocks


def write_media(media: Media) -> dict[str, Any]:
    """A chat content part; plain text where chat has no shape for it (documents by URL, foreign file ids)."""
    if media.kind == "image" and media.source in ("base64", "url"):
        image = {"url": data_url(media)}
        return {"type": "image_url", "image_url": {**image, "detail": media.detail} if media.detail else image}
    if media.kind == "audio" and media.source == "base64":
        form = media.media_type.partition("/")[2] or "wav"
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}}
    if media.kind == "document" and media.source == "base64":
        return {"type": "file", "file": {"filename": "document.pdf", "file_data": data_url(media)}}
    return {"type": "text", "text": media.data if media.source == "text" else describe_media(media)}


def _tool(result: ToolResult, wire: Mapping[str, Any] | None) -> dict[str, Any]:
    if wire is None and result.call_id.startswith("function:"):  # the answer to a `function_call` of the old kind
        return {"role": "function", "name": result.call_id.removeprefix("function:"), "content": result_text(result)}
    if wire is None:
        return {"role": "tool", "tool_call_id": result.call_id, "content": result_text(result)}
    out = dict(wire)
    if "tool_call_id" in out or out.get("role") != "function":
        out["tool_call_id"] = result.call_id
    old = wire.get("content")
    if same_blocks(result.content, old):
        return out
    if isinstance(old, list):
        out["content"] = _content(result.content, "tool", True, True)
    else:
        out["content"] = result_text(result)
    return out


def _calls(message: Message, out: dict[str, Any], reuse: bool) -> None:
    calls = message.calls
    if reuse and not isinstance(out.get("tool_calls"), list) and isinstance(out.get("function_call"), Mapping):
        if not calls:
            del out["function_call"]
        elif len(calls) == 1 and calls[0].id.startswith("function:"):
            out["function_call"] = _named(out["function_call"], calls[0])
            return
    if calls:
        out["tool_calls"] = [write_call(call, reuse=reuse) for call in calls]
    elif out.get("tool_calls"):
        del out["tool_calls"]


def _named(function: Mapping[str, Any], call: ToolCall) -> Mapping[str, Any]:
    if function.get("arguments") == call.arguments and function.get("name") == call.name:
        return function
    return {**function, "name": call.name, "arguments": arguments_object_text(call.arguments)}


def write_call(call: ToolCall, *, reuse: bool) -> Any:
    """A `tool_calls` entry. Arguments brim wrote or changed are always an object; untouched ones stay as they came."""
    wire = call.wire if reuse else None
    if not isinstance(wire, Mapping):
        function = {"name": call.name, "arguments": arguments_object_text(call.arguments)}
        return {"id": call.id, "type": "function", "function": function}
    before = _parse_call(wire, "tool_calls")
    if before.id == call.id and before.name == call.name and before.arguments == call.arguments:
        return wire
    out = {**wire, "id": call.id} if before.id != call.id else dict(wire)
    if before.name == call.name and before.arguments == call.arguments:
        return out
    if isinstance(wire.get("custom"), Mapping):
        out["custom"] = {**wire["custom"], "name": call.name, "input": _custom_input(call.arguments)}
    else:
        changed = {"name": call.name}
        if before.arguments != call.arguments:
            changed["arguments"] = arguments_object_text(call.arguments)
        if isinstance(wire.get("function"), Mapping):
            out["function"] = {**wire["function"], **changed}
        else:
            out.update(changed)
    return out


def _custom_input(arguments: str) -> str:
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):  # nested beyond reading
        return arguments
    return value["input"] if isinstance(value, dict) and type(value.get("input")) is str else arguments


def _reasoning(message: Message, out: dict[str, Any], reuse: bool) -> None:
    """Thinking that stood in fields of the message leaves with them; another API's never enters."""
    kept = [part.wire for part in message.parts if type(part) is Thinking and isinstance(part.wire, Mapping)]
    for key in REASONING:
        if key in out and not (reuse and any(key in wire for wire in kept)) and out[key]:
            del out[key]
