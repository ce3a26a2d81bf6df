"""`brim.recall`: the original behind a handle, found in the history given or in a store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from brim.context.repair import FILLED, STAND_INS, repair
from brim.conversation import Message, digest_of, handle_of, range_handle
from brim.errors import UsageError
from brim.formats import DIALECTS, dialect_of, parse_request

_RANGE = re.compile(r"(\d+)-(\d+)\.([0-9a-f]{10})")


class Originals(Protocol):
    """What a store gives: the bytes behind a handle. Raises KeyError or a StoreError where there is none."""

    def get(self, handle: str) -> bytes: ...


def recall(
    handle: str,
    request: Mapping[str, Any] | None = None,
    *,
    api: str = "openai.chat",
    store: Originals | None = None,
) -> str:
    """The original behind `handle`: the text of a message or result as it came, or, for a run of messages, their wire
    objects as JSON, one a line. `request` is the full, untouched body; with a `store` it is not needed.

    Raises UsageError where neither has it.
    """
    if request is not None:
        parsed = parse_request(request, api)
        found = recall_from(handle, parsed.messages, dialect_of(parsed.model, api))
        if found is not None:
            return found
    if store is not None:
        return store.get(handle).decode("utf-8", "surrogatepass")
    raise UsageError(
        f"no original under the handle {handle!r}",
        hint="handles stand in the notices and in the plan; give the full history they came from, or the store",
    )


def recall_from(handle: str, messages: list[Message], dialect: str | None = None) -> str | None:
    """The original among these messages, None where it is not. The ends of a run are those of the repaired history, so
    where it is not found in this one it is looked for as `dialect`, and then as any other provider, takes it."""
    if run := _RANGE.fullmatch(handle):
        start, end = int(run[1]), int(run[2]) + 1
        if (found := _run(messages, start, end, run[3])) is not None:
            return found
        for each in dict.fromkeys((dialect, *DIALECTS)):
            if each is not None and (found := _run(repair(messages, each)[0], start, end, run[3])) is not None:
                return found
        return None
    if not handle:
        return None
    for message in messages:
        if _names(handle, message):
            return message.text or _as_text(message)
    for each in dict.fromkeys((dialect, *DIALECTS)):  # named as it was repaired: without an empty block, say
        for message in repair(messages, each)[0] if each is not None else ():
            if message.edited and _names(handle, message):
                return message.text if message.text not in FILLED else _as_text(message)
    return None


def _names(handle: str, message: Message) -> bool:
    return handle_of(message).startswith(handle) or digest_of(message).hex().startswith(handle)


def _run(messages: list[Message], start: int, end: int, digest: str) -> str | None:
    """The run of `end - start` messages with this digest, as their wire objects; lines of brim's own are left out."""
    for first in _near(start, len(messages) - (end - start)):
        if range_handle(messages, first, first + end - start).split(".")[1] == digest:
            theirs = [each for each in messages[first : first + end - start] if each.text not in STAND_INS]
            return "\n".join(_as_text(message) for message in theirs)
    return None


_NOTED = re.compile(
    r"\[(?:brim background: summary|result of|…)[^\]\n]*?(?:Originals: |handle |recall\(\")(\d+-\d+\.[0-9a-f]{10}|[0-9a-f]{12})"
)


def lost_originals(messages: list[Message]) -> list[str]:
    """The handles that notices in these messages name and whose originals are not among them: a history that was
    imported as another request showed it. Their text cannot be recalled from here; a store may still have it."""
    named: dict[str, None] = {}
    for message in messages:
        named.update(dict.fromkeys(_NOTED.findall(message.text)))
    return [handle for handle in named if recall_from(handle, messages) is None]


def _near(start: int, last: int) -> list[int]:
    """Places to look for a run, the one it was taken from first and the nearest next: runs can have the same ends."""
    return sorted(range(last + 1), key=lambda place: abs(place - start))


def _as_text(message: Message) -> str:
    wire = message.wire if message.wire is not None else msgspec.to_builtins(message)
    return msgspec.json.encode(wire).decode()
