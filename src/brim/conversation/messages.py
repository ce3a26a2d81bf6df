"""What a conversation is made of: messages and their parts, as pure immutable values.

A `Message` is one entry: system, user, assistant or tool. Its `parts` are what brim understands of it; `wire` is
the object it was parsed from, kept so that an untouched message goes out exactly as it came in. One wire object
can yield several messages (an Anthropic user message that carries two tool results and a text yields two tool
messages and a user message): each then holds the same `wire` and its own `span` of content blocks.

Nothing here knows a clock, an id of a session or a provider's rules.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Plain text. `wire` is the content block it came in, None where the content was a bare string."""

    text: str
    wire: Any = None


class Media(msgspec.Struct, frozen=True, tag="media"):
    """An image, document or audio, never counted as text. `data` is base64, a URL, a file id or plain text by `source`."""

    kind: Literal["image", "document", "audio"]
    media_type: str
    source: Literal["base64", "url", "file", "text"]
    data: str
    detail: str | None = None
    wire: Any = None


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call"):
    """A model's call. `arguments` is JSON text, exactly as it came where the format sends text."""

    id: str
    name: str
    arguments: str
    wire: Any = None


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result"):
    """The answer to one call; `is_error` is None where the format has no such flag."""

    call_id: str
    content: tuple[Text | Media | Opaque, ...]
    is_error: bool | None = None
    wire: Any = None

    @property
    def text(self) -> str:
        """The text parts, joined with a newline."""
        if len(self.content) == 1 and type(self.content[0]) is Text:
            return self.content[0].text
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


class Thinking(msgspec.Struct, frozen=True, tag="thinking"):
    """Reasoning as the provider sent it: resent as it came or removed whole, never altered, never shown to another API."""

    text: str
    signed: bool
    wire: Any = None


class Opaque(msgspec.Struct, frozen=True, tag="opaque"):
    """A block brim does not know. It is passed on unchanged and counted by its JSON text."""

    kind: str
    wire: Any = None


Part: TypeAlias = Text | Media | ToolCall | ToolResult | Thinking | Opaque


class Message(msgspec.Struct, frozen=True):
    """One entry of a conversation.

    A message with role `tool` has exactly one part, a `ToolResult`. `api` names the format of `wire`
    ("openai.chat", "openai.responses", "anthropic.messages"; "" for a message made by brim, whose `wire` is None).
    `edited` says that `parts` no longer are what `wire` holds: a renderer then builds the object anew from a copy of
    `wire`, taking over each block whose part is unchanged.
    """

    role: Role
    parts: tuple[Part, ...]
    api: str = ""
    wire: Any = None
    span: tuple[int, int] | None = None
    name: str | None = None
    edited: bool = False

    @property
    def text(self) -> str:
        """All text of the message, tool results included, joined with a newline; no thinking, no call arguments."""
        if len(self.parts) == 1:
            only = self.parts[0]
            return only.text if isinstance(only, (Text, ToolResult)) else ""
        return "\n".join(part.text for part in self.parts if isinstance(part, (Text, ToolResult)))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of an assistant message, in order."""
        return tuple(part for part in self.parts if type(part) is ToolCall)

    @property
    def result(self) -> ToolResult:
        """The result of a tool message. Raises TypeError on any other role."""
        if self.role == "tool" and isinstance(part := self.parts[0], ToolResult):
            return part
        raise TypeError(f"a {self.role} message has no tool result")
