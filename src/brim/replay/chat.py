"""A transcript in the making: what logs hold, in any API's form and spread over lines, put together as chat messages.

What an agent shows its model as one assistant message is often several lines of its log (a block each, or an item each):
they are put together again. Thinking is left out, since no other request than its own could send it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from brim.conversation import Message
from brim.errors import BrimError
from brim.replay.transcript import Transcript, printable
from brim.store import claude_code

Warn = Callable[[str], None]
_LAST_SECOND = 253_402_300_800  # the year 10000


def seconds(value: Any) -> float | None:
    """Unix seconds from an ISO time or a number of seconds or milliseconds; None from anything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        found: float | None = float(value) / 1_000 if value > 1e11 else float(value)
    else:
        found = claude_code.seconds(value)
    # What lies outside the calendar is no time, and no clock can be set to it.
    return found if found is not None and 0 <= found < _LAST_SECOND else None


class Chat:
    """A transcript in the making: wire objects of any API in, chat messages out, one for each request's answer."""

    def __init__(self, name: str, warn: Warn) -> None:
        self.name = name
        self.warn = warn
        self.messages: list[dict[str, Any]] = []
        self.times: list[float | None] = []
        self.usage: dict[int, Mapping[str, Any]] = {}
        self.compactions: list[int] = []
        self.aside: list[Mapping[str, Any]] = []
        self._tools: dict[str, str] = {}
        self._closed = False

    def add(self, wire: Mapping[str, Any], api: str, at: float | None = None, place: str = "") -> None:
        """Adds what one wire object holds. What follows an assistant message without anything in between joins it."""
        from brim.formats import parse_message

        try:
            parsed = parse_message(wire, api)
        except BrimError as error:
            self.warn(f"{self.name}{', ' if place else ''}{place}: skipped, {error.message}")
            return
        for message in parsed:
            self.add_message(message, at)

    def add_message(self, message: Message, at: float | None = None) -> None:
        """Adds one message of brim's."""
        from brim.formats import render_messages

        wires = render_messages([Message(message.role, message.parts, name=message.name)], "openai.chat")
        if not wires:  # thinking alone
            return
        wire = dict(wires[0])
        last = self.messages[-1] if self.messages else None
        for call in wire.get("tool_calls") or ():
            self._tools[str(call["id"])] = str(call["function"]["name"])
        if message.role == "tool" and not message.result.text.strip() and isinstance(wire["content"], str):
            wire["content"] = message.result.text  # a log is not mended
        if wire["role"] == "tool" and (tool := self._tools.get(str(wire.get("tool_call_id")))):
            wire["name"] = tool
        if last is not None and last["role"] == wire["role"] == "assistant" and not self._closed:
            _join(last, wire)
            return
        self._closed = False
        self.messages.append(wire)
        self.times.append(at)

    def close(self) -> None:
        """The answer of one request is complete: what an assistant says next is another one's."""
        self._closed = True

    def used(self, usage: Mapping[str, Any], index: int | None = None) -> None:
        """Notes what the provider said of a request: of the one that message `index` (the newest one of the assistant, if
        None) answers. Where that one has its usage, or there is none, it was a request beside the conversation."""
        if index is None:
            index = next(
                (n for n in reversed(range(len(self.messages))) if self.messages[n]["role"] == "assistant"), -1
            )
        if index in self.usage or index < 0 or self.messages[index]["role"] != "assistant":
            self.aside.append(usage)
        else:
            self.usage[index] = usage

    def rewind(self, index: int) -> None:
        """Takes back the messages from `index` on, as a user did; the requests that led to them were made all the same."""
        self.aside += [self.usage.pop(n) for n in sorted(self.usage) if n >= index]
        self.compactions = [n for n in self.compactions if n <= index]
        del self.messages[index:], self.times[index:]
        self.close()

    def transcript(self, model: str | None, kind: str) -> Transcript:
        times = self.times if any(time is not None for time in self.times) else []
        name, model = printable(self.name), printable(model) if model else None
        return Transcript(name, self.messages, model, kind, times, self.usage, self.compactions, self.aside)


def _join(last: dict[str, Any], wire: Mapping[str, Any]) -> None:
    texts = [each for each in (last.get("content"), wire.get("content")) if each]
    if texts:
        last["content"] = "\n".join(str(text) for text in texts)
    calls = [*(last.get("tool_calls") or ()), *(wire.get("tool_calls") or ())]
    if calls:
        last["tool_calls"] = calls
