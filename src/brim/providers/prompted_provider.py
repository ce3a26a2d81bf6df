"""A provider whose model has no tool calls, made to look like one that has: the prompted protocol on the wire.

Bodies with `tools` go in, the inner provider sees plain messages and a reply schema, and its text comes out as text
deltas or as a tool call. What the model writes is shown as it comes, as soon as it is known to be an answer.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from brim.conversation import Message
from brim.providers.events import Done, Event, Provider, TextDelta, ToolCallDelta
from brim.providers.prompted import AnswerReader, prompted_request, read_reply, tools_written, written

if TYPE_CHECKING:
    from brim.tokens.llama import LlamaCounter


class PromptedProvider:
    """Wraps a provider of the openai.chat format. `small` chooses the form of the protocol (see `prompted`)."""

    api = "openai.chat"

    def __init__(self, inner: Provider, *, small: bool) -> None:
        self.inner = inner
        self.small = small
        self.name = inner.name
        self.window: int | None = getattr(inner, "window", None)
        self.note: str | None = getattr(inner, "note", None)

    def prompted_request(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body as it is really sent: what a counter, a bill and a debug log should see."""
        return prompted_request(body, small=self.small)

    async def stream(self, body: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        """Send `body` and yield events as if the model had tool calls of its own."""
        tools = _tools(body)
        reader = AnswerReader()
        shown = ""
        async with aclosing(self.inner.stream(self.prompted_request(body))) as events:
            async for event in events:
                if isinstance(event, TextDelta) and tools:
                    if text := reader.feed(event.text):
                        shown += text
                        yield TextDelta(text)
                elif isinstance(event, Done) and tools:
                    done = self._done(event, tools)
                    for last in _remaining(done, shown):
                        yield last
                    yield done
                else:
                    yield event

    async def complete(self, body: Mapping[str, Any]) -> Done:
        """Send `body` without streaming."""
        done = await self.inner.complete(self.prompted_request(body))
        tools = _tools(body)
        return self._done(done, tools) if tools else done

    async def close(self) -> None:
        """Close the inner provider."""
        await self.inner.close()

    def counter(self) -> LlamaCounter:
        """The exact counter of a model behind llama.cpp: it counts messages and tools as this protocol sends them."""
        from brim.providers.llama_client import llama_counter
        from brim.providers.local import LocalProvider

        if not isinstance(self.inner, LocalProvider):
            raise TypeError(f"{self.inner.name} has no tokenizer of its own here")
        server = self.inner.server()
        return llama_counter(
            f"local/{self.inner.model}",
            server.base_url,
            server.api_key,
            as_sent=self._written,
            tools_as_sent=self._tools_written,
            request_as_sent=self.prompted_request,
        )

    def _written(self, message: Message) -> tuple[str, str]:
        return written(message, small=self.small)

    def _tools_written(self, tools: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
        return tools_written(tools, small=self.small)

    def _done(self, done: Done, tools: Sequence[Mapping[str, Any]]) -> Done:
        wire = done.message if isinstance(done.message, dict) else {}
        reply = read_reply(str(wire.get("content") or ""), tools, small=self.small)
        reason = "tool_calls" if reply.name else done.finish_reason
        message = {**wire, **reply.message(f"call_{secrets.token_hex(6)}")}
        return msgspec.structs.replace(done, message=message, finish_reason=reason)


def _tools(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tools = body.get("tools")
    return list(tools) if isinstance(tools, (list, tuple)) else []


def _remaining(done: Done, shown: str) -> list[Event]:
    """What the stream has not shown of a finished reply: the rest of its text, its call."""
    message = done.message if isinstance(done.message, dict) else {}
    events: list[Event] = []
    text = message.get("content") or ""
    if text.startswith(shown) and text != shown:
        events.append(TextDelta(text[len(shown) :]))
    for index, call in enumerate(message.get("tool_calls") or ()):
        events.append(ToolCallDelta(index, call["id"], call["function"]["name"], call["function"]["arguments"]))
    return events
