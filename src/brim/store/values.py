"""What the store says about a session, and about who holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import msgspec

from brim.errors import SessionBusy


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
