"""Recognises the history of a request from the requests before, so that a stateless call, too, pays only for what is new.

Clients resend everything each time, usually as the same objects. A request whose messages begin with those of a history
at hand continues that history; anything else is read anew. What was seen is kept as copies of its containers (texts are
shared), so a client that alters its messages in place is noticed, never trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import Any

import msgspec

from brim.context.history import History
from brim.errors import UsageError
from brim.formats import Request, parse_request

KEPT = 8
"""Histories kept at a time: conversations that one process usually has in flight. Another costs what a first call costs."""

_PLACE = {"openai.chat": "messages", "openai.responses": "input", "anthropic.messages": "messages"}
_HEAD = {"openai.chat": "", "openai.responses": "instructions", "anthropic.messages": "system"}


class Entry(msgspec.Struct):
    """One history with the wire objects it was read from."""

    api: str
    head: Any
    wires: list[Any]
    leading: int
    history: History


class Known:
    """The last few histories of a process. Guard `lock` while one is planned on."""

    def __init__(self) -> None:
        self.lock = RLock()
        self._entries: list[Entry] = []

    def find(self, body: Mapping[str, Any], api: str) -> tuple[Entry, Request] | None:
        """The history that this body continues and a request of which only what is new was parsed; None where there is
        none. The request's `messages` are the new ones alone."""
        place = _PLACE.get(api)
        wires = body.get(place) if place is not None else None
        if type(wires) is not list:
            return None
        for entry in reversed(self._entries):
            known = len(entry.wires)
            if entry.api != api or len(wires) < known or entry.head != body.get(_HEAD[api]):
                continue
            if wires[:known] != entry.wires:
                continue
            try:
                request = parse_request({**body, str(place): wires[known:]}, api)
            except UsageError:
                return None  # read whole, so that the error names the right place
            if request.cleaned:
                return None
            request.body = body
            request.messages = request.messages[entry.leading :]
            return entry, request
        return None

    def keep(self, entry: Entry, body: Mapping[str, Any]) -> None:
        """Remembers what the entry's history was read from, and that it was used last."""
        wires = body[_PLACE[entry.api]]
        entry.wires.extend(copied(wire) for wire in wires[len(entry.wires) :])
        others = [each for each in self._entries if each is not entry]
        self._entries = [*others[1 - KEPT :], entry]


def new_entry(body: Mapping[str, Any], request: Request, history: History) -> Entry | None:
    """An entry for a history just read; None where the body's form does not allow it."""
    wires = body.get(_PLACE[request.api])
    if type(wires) is not list or request.cleaned:
        return None
    head = copied(body.get(_HEAD[request.api])) if _HEAD[request.api] else None
    leading = 0
    if head is not None:
        for message in request.messages:
            if message.role != "system" or any(message.wire is wire for wire in wires[:1]):
                break
            leading += 1
    return Entry(request.api, head, [], leading, history)


def copied(value: Any) -> Any:
    """A copy of dicts and lists, all the way down; everything else is shared."""
    if type(value) is dict:
        return {key: copied(item) if type(item) in (dict, list) else item for key, item in value.items()}
    if type(value) is list:
        return [copied(item) if type(item) in (dict, list) else item for item in value]
    return value
