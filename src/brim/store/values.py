"""What the store hands out: facts about a session, and stored messages that decode when first looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import msgspec

from brim.conversation import Message
from brim.errors import SessionBusy
from brim.store.bodies import Packed


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One session. `n` is its number in the database, `id` what users name it by (`short` as well).

    `messages` counts its messages; `updated` is when the last of them was written (Unix seconds, for show only).
    `parent` and `parent_seq` say where a fork left its parent: messages before `parent_seq` are the parent's.
    """

    n: int
    id: str
    project: str
    title: str | None
    created: float
    updated: float
    messages: int
    mode: str | None
    model: str | None
    parent: str | None = None
    parent_seq: int | None = None
    archived: bool = False
    meta: Mapping[str, Any] = {}

    @property
    def short(self) -> str:
        return short_id(self.id)


class SessionChanges(TypedDict, total=False):
    """What of a session can be set after it was made."""

    title: str | None
    mode: str | None
    model: str | None
    archived: bool
    meta: Mapping[str, Any] | None


def short_id(id: str) -> str:
    """The first 7 characters of an id that brim made (20 hex characters), a chosen id whole."""
    return id[:7] if len(id) == 20 and not id.strip("0123456789abcdef") else id


class Stored:
    """A message where it stands: `seq` counts from 0 without gaps, so it is the message's index in the history.

    `incomplete`: a reply that broke off (killed, interrupted) and holds what had come. `created`: Unix seconds.
    `message` is decoded when first asked for; it raises StoreUnusable where the row is damaged.
    """

    __slots__ = ("_meta", "_packed", "_piece", "created", "incomplete", "role", "seq")

    def __init__(
        self, seq: int, role: str, created: float, incomplete: bool, meta: str | None, packed: Packed, piece: int | None
    ) -> None:
        self.seq = seq
        self.role = role
        self.created = created
        self.incomplete = incomplete
        self._meta = meta
        self._packed = packed
        self._piece = piece

    @property
    def message(self) -> Message:
        return self._packed.message(self._piece)

    @property
    def meta(self) -> dict[str, Any]:
        return msgspec.json.decode(self._meta, type=dict[str, Any]) if self._meta else {}

    def __repr__(self) -> str:
        return f"Stored(seq={self.seq}, role={self.role!r}, incomplete={self.incomplete})"


class SessionHeld(SessionBusy):
    """Another store writes the session, or has written it since: `host`, `pid` and `since` (Unix seconds) say who holds it."""

    def __init__(
        self,
        message: str,
        *,
        session: str,
        host: str | None = None,
        pid: int | None = None,
        since: float | None = None,
    ) -> None:
        super().__init__(message, hint=f"go on in a copy: ai --resume {short_id(session)} --fork")
        self.session = session
        self.host = host
        self.pid = pid
        self.since = since
