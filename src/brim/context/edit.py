"""One message under its fate: the edited message that a view shows. Pure and deterministic, so a plan gives the same bytes."""

from __future__ import annotations

from typing import Any

import msgspec

from brim.context import notices
from brim.context.cut import Style, join_spans
from brim.context.plan import Fate
from brim.conversation import Media, Message, Part, Text, Thinking, ToolCall, ToolResult
from brim.formats import answered_by_picture, blank_picture


def edited(message: Message, fate: Fate, *, recall: bool) -> Message:
    """The message as the view shows it under a trim or stub."""
    if fate.kind == "stub":
        return _with_text(message, fate.text, fate, media=False, recall=recall)
    if fate.spans is not None:
        style: Style = "digest" if fate.rule == "digest" else "repeat" if fate.rule == "repeat" else "cut"
        shown = join_spans(message.text, fate.spans, fate.handle, recall=recall, style=style)
        return _with_text(message, shown, fate, media=fate.media, recall=recall)
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Thinking) and not fate.thinking:
            continue
        if isinstance(part, ToolCall) and fate.arguments is not None:
            part = _shorter_call(part, fate.arguments, fate.handle, recall)
        elif isinstance(part, Media) and not fate.media:
            part = Text(notices.media_note(part.kind, fate.why.get("media_tokens", 0), fate.handle))
        elif isinstance(part, ToolResult) and not fate.media:
            if answered_by_picture(part):
                return _with_blank(message, part)
            part = _without_media(part, fate)
        parts.append(part)
    return msgspec.structs.replace(message, parts=tuple(parts), edited=True)


def _with_text(message: Message, text: str, fate: Fate, *, media: bool, recall: bool) -> Message:
    """The message with this text; what else it held stays with `media`, or is named in a line, as a stub does itself."""
    result = message.result if message.role == "tool" else None
    if result is not None and not media and answered_by_picture(result):
        return _with_blank(message, result)
    old = result.content if result is not None else message.parts
    others = tuple(part for part in old if not isinstance(part, Text))
    if others and not media:
        note = notices.rest_note(notices.rest_of(others), fate.handle, recall=recall) if fate.kind == "trim" else ""
        text = "\n".join(each for each in (text, note) if each)
        others = ()
    base = next((part.wire for part in old if isinstance(part, Text)), None) if result is not None else None
    parts: tuple[Any, ...] = (Text(text, base), *others) if text or not others else others
    if result is not None:
        parts = (msgspec.structs.replace(result, content=parts),)
    return msgspec.structs.replace(message, parts=parts, edited=True)


def _with_blank(message: Message, result: ToolResult) -> Message:
    blank = msgspec.structs.replace(result, content=(blank_picture(),))
    return msgspec.structs.replace(message, parts=(blank,), edited=True)


def _without_media(result: ToolResult, fate: Fate) -> ToolResult:
    content = tuple(
        Text(notices.media_note(part.kind, fate.why.get("media_tokens", 0), fate.handle))
        if isinstance(part, Media)
        else part
        for part in result.content
    )
    return msgspec.structs.replace(result, content=content)


def _shorter_call(call: ToolCall, most: int, handle: str, recall: bool) -> ToolCall:
    """The call with each string of its arguments over `most` characters cut to head and tail; still valid JSON."""
    if len(call.arguments) <= most:
        return call
    try:
        value = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return call
    return msgspec.structs.replace(call, arguments=msgspec.json.encode(_shorter(value, most, handle, recall)).decode())


def _shorter(value: Any, most: int, handle: str, recall: bool) -> Any:
    if isinstance(value, str) and len(value) > most:
        from brim.context.cut import head_and_tail

        return join_spans(value, head_and_tail(value, most * 6 // 10, most * 4 // 10), handle, recall=recall)
    if isinstance(value, dict):
        return {key: _shorter(item, most, handle, recall) for key, item in value.items()}
    if isinstance(value, list):
        return [_shorter(item, most, handle, recall) for item in value]
    return value
