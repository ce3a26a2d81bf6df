"""Builders: one line for one message, for brim's own messages, examples and tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from brim.conversation.messages import Media, Message, Part, Text, ToolCall, ToolResult


def system(text: str) -> Message:
    """A system message."""
    return Message("system", (Text(text),))


def user(text: str, *more: Part) -> Message:
    """A user message: its text, then further parts (media)."""
    return Message("user", (Text(text), *more))


def call(name: str, arguments: dict[str, Any] | str | None = None, *, id: str) -> ToolCall:
    """A tool call; a mapping of arguments is written as JSON."""
    raw = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    return ToolCall(id, name, raw)


def assistant(text: str = "", *calls: ToolCall) -> Message:
    """An assistant message: text, tool calls, or both."""
    return Message("assistant", ((Text(text),) if text else ()) + calls)


def result(call_id: str, text: str, *, is_error: bool | None = None, media: Sequence[Media] = ()) -> Message:
    """A tool message that answers `call_id`, with images beside the text where there are any."""
    return Message("tool", (ToolResult(call_id, (Text(text), *media), is_error),))
