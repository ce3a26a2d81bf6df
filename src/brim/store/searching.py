"""Search over titles and message texts.

A scan with LIKE, not a full-text index: it finds any substring in any script (a trigram index finds no two Chinese
characters), costs nothing at each append, and reads 100 MB of messages in a fraction of a second. The database narrows
down by the JSON text; the message's own text decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import BigInteger, Text, bindparam, select

from brim.store import sessions as rows_of_sessions
from brim.store.bodies import Packed, encode, plain
from brim.store.schema import messages, sessions
from brim.store.values import Session

if TYPE_CHECKING:
    from brim.conversation import Message
    from brim.store.database import Work

AROUND = 60
"""Characters of context on each side of a match."""


class Hit(msgspec.Struct, frozen=True):
    """Where a text was found: in the title (`seq` None) or in message `seq`; `excerpt` is one line around the match."""

    session: Session
    seq: int | None
    role: str | None
    excerpt: str


_project = bindparam("project", type_=Text)
_pattern = bindparam("pattern", type_=Text)
_SESSIONS = (
    select(sessions.c.id, sessions.c.n, sessions.c.title)
    .where((_project.is_(None)) | (sessions.c.project == _project))
    .order_by(sessions.c.touched.desc(), sessions.c.n.desc())
)
_found = (
    select(
        messages.c.seq, messages.c.api, messages.c.piece, messages.c.body,
    )
    .where(messages.c.session == bindparam("session", type_=BigInteger))
    .order_by(messages.c.seq)
)  # fmt: skip
_IN_SQLITE = _found.where(messages.c.body.like(_pattern, escape="\\"))  # LIKE minds no case (of ASCII) here
_IN_POSTGRES = _found.where(messages.c.body.ilike(_pattern, escape="\\"))


def search(work: Work, sqlite: bool, text: str, project: str | None, limit: int) -> list[Hit]:
    """See `Store.search`."""
    wanted = (plain(text) or "").strip()
    if not wanted:
        return []
    hits: list[Hit] = []
    statement = _IN_SQLITE if sqlite else _IN_POSTGRES
    pattern = _pattern_for(wanted)
    for id, n, title in work.all(_SESSIONS, {"project": plain(project)}):
        here: list[tuple[int | None, str | None, str]] = []
        if (excerpt := _excerpt(title or "", wanted)) is not None:
            here.append((None, None, excerpt))
        for seq, api, piece, body in work.all(statement, {"session": n, "pattern": pattern}):
            packed = Packed(api, piece, body, f"message {seq} of session {id}")
            for index, message in enumerate(packed.messages):
                if (excerpt := _excerpt(_text_of(message), wanted)) is not None:
                    here.append((seq + index, message.role, excerpt))
        if here:
            session = rows_of_sessions.get(work, id)
            hits += [Hit(session, *found) for found in here]
            if len(hits) >= limit:
                return hits[:limit]
    return hits


def _text_of(message: Message) -> str:
    """What a person may remember of a message: its text and the arguments of its calls."""
    return "\n".join([message.text, *(call.arguments for call in message.calls)])


def _pattern_for(text: str) -> str:
    """A LIKE pattern for bodies, where the text stands as JSON writes it."""
    inner = encode(text)[1:-1]
    for special in ("\\", "%", "_"):
        inner = inner.replace(special, "\\" + special)
    return f"%{inner}%"


def _excerpt(text: str, wanted: str) -> str | None:
    at = text.lower().find(wanted.lower())
    if at < 0:
        return None
    start, end = max(0, at - AROUND), at + len(wanted) + AROUND
    line = " ".join(text[start:end].split())
    return ("…" if start else "") + line + ("…" if end < len(text) else "")
