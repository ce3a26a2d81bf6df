"""Puts a streamed answer together again: what all three APIs share, and the choice between them.

An assembler takes server events one at a time, gives back brim's events, and in the end the whole message in the
API's own form. It keeps what it does not know. It decides whether a stream is complete; it raises nothing of
`brim.errors` itself, since it knows neither provider nor key: the wire client turns its three failures into errors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from brim.budget.usage import parse_usage
from brim.providers.events import Done, Event, TextDelta
from brim.providers.sse import ServerEvent


class UpstreamError(Exception):
    """An error object inside a stream that began well; `body` is that object, or its text."""

    def __init__(self, body: object) -> None:
        super().__init__(str(body))
        self.body = body


class Unreadable(Exception):
    """Something that is not JSON, or not an answer, where an answer should be."""


class Incomplete(Exception):
    """The stream ended before the answer did. The message says what was missing."""


def decode(data: str | bytes) -> Any:
    """JSON; half surrogate pairs, which a strict decoder refuses, are let through. Raises ValueError."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(data)


class Assembler:
    """Base of the three. `text` is the answer's text so far; `started`: at least one event of the API has come."""

    api = ""

    def __init__(self) -> None:
        self.text = ""
        self.started = False
        self.closed = False  # the stream's own end mark was seen
        self.finish_reason = ""
        self.raw_usage: dict[str, Any] = {}
        self.response_id: str | None = None
        self.model: str | None = None
        self._half = ""  # the first half of a surrogate pair whose second is still to come

    def read(self, event: ServerEvent) -> list[Event]:
        """The events that one server event means. Raises UpstreamError, Unreadable."""
        data = event.data.strip()
        if data == "[DONE]":
            self.closed = True
            return []
        if not data and event.event != "error":
            return []
        try:
            value = decode(data)
        except ValueError:
            if event.event == "error":
                raise UpstreamError(data or "error") from None
            raise Unreadable(data) from None
        if event.event == "error" or is_error(value):
            raise UpstreamError(value)
        if not isinstance(value, dict):
            raise Unreadable(data)
        kind = value.get("type")
        if event.event == "ping" or kind == "ping":
            return []
        self.started = True
        return self.take(kind if isinstance(kind, str) else event.event, value)

    def take(self, kind: str, value: dict[str, Any]) -> list[Event]:
        """One event of the API's stream."""
        raise NotImplementedError

    def whole(self, value: dict[str, Any]) -> list[Event]:
        """A complete answer in one JSON object. Raises Unreadable."""
        raise NotImplementedError

    def end(self) -> Done:
        """The answer. Raises Incomplete."""
        raise NotImplementedError

    def say(self, text: str) -> list[Event]:
        """A piece of the answer's text; a pair of surrogates that two pieces share is joined."""
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._half, text = text[-1], text[:-1]
        text = clean(text)
        if not text:
            return []
        self.text += text
        return [TextDelta(text)]

    def note_usage(self, usage: object) -> None:
        """Take in a usage object; a later figure replaces an earlier one, unless it is smaller: figures of a stream only grow,
        and some servers end one with zeros for what they said at its start."""
        for key, value in usage.items() if isinstance(usage, Mapping) else ():
            before = self.raw_usage.get(key)
            if value is None or (type(value) is int and type(before) is int and value < before):
                continue
            self.raw_usage[key] = value

    def done(self, message: dict[str, Any] | list[dict[str, Any]]) -> Done:
        return Done(
            message=message,
            api=self.api,
            finish_reason=self.finish_reason,
            usage=parse_usage(self.raw_usage, self.api),
            raw_usage=self.raw_usage or None,
            response_id=self.response_id,
            model=self.model,
        )


def is_error(value: object) -> bool:
    """Whether a JSON value inside a 200 is an error."""
    if isinstance(value, list):
        return any(is_error(item) for item in value)
    if not isinstance(value, Mapping):
        return False
    return (
        (bool(value.get("error")) and value.get("type") != "response.failed")
        or value.get("type") == "error"
        or value.get("object") == "error"
    )


def clean(text: str) -> str:
    """Surrogate pairs joined; what remains of half ones becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def merge_delta(target: dict[str, Any], delta: Mapping[str, Any], fixed: frozenset[str] = frozenset()) -> None:
    """Add one streamed piece to what came before: text is appended, lists are extended (by `index` where their items
    have one), objects are merged; fields named in `fixed`, numbers and flags are replaced. None changes nothing."""
    for key, value in delta.items():
        if value is None:
            target.setdefault(key, None)
            continue
        old = target.get(key)
        if isinstance(value, str):
            target[key] = value if key in fixed or not isinstance(old, str) else old + value
        elif isinstance(value, dict):
            inner = dict(old) if isinstance(old, dict) else {}
            merge_delta(inner, value, fixed)
            target[key] = inner
        elif isinstance(value, list):
            items = list(old) if isinstance(old, list) else []
            for item in value:
                same = None
                if isinstance(item, dict) and isinstance(item.get("index"), int):
                    same = next(
                        (
                            i
                            for i, have in enumerate(items)
                            if isinstance(have, dict)
                            and have.get("index") == item["index"]
                            and have.get("type") == item.get("type")
                        ),
                        None,
                    )
                if same is None:
                    items.append(item)
                else:
                    inner = dict(items[same])
                    merge_delta(inner, item, fixed)
                    items[same] = inner
            target[key] = items
        else:
            target[key] = value


def assembler_for(api: str) -> Assembler:
    """A fresh assembler for one answer of `api`. Raises ValueError for an API nobody speaks."""
    from brim.providers.assemble_anthropic import AnthropicAssembler
    from brim.providers.assemble_chat import ChatAssembler
    from brim.providers.assemble_responses import ResponsesAssembler

    for kind in (ChatAssembler, ResponsesAssembler, AnthropicAssembler):
        if kind.api == api:
            return kind()
    raise ValueError(f"unknown api {api!r}")
