"""Message rows and half answers: inserted, settled, loaded. Each function works in a transaction, behind the gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from sqlalchemy import BigInteger, bindparam, delete, select, update

from brim.conversation import Message, assistant
from brim.conversation.handed import typed_of
from brim.store import sessions as rows_of_sessions
from brim.store.bodies import Body, encode, pack, plain
from brim.store.history import no_collection
from brim.store.schema import drafts, messages, row_into, sessions

if TYPE_CHECKING:
    from brim.store.database import Row, Work
    from brim.store.gate import Gate

_N = bindparam("session", type_=BigInteger)
_INSERT = row_into(messages)
_SET_TITLE = update(sessions).where(sessions.c.n == _N).values(title=bindparam("name"))
_LOAD = (
    select(
        messages.c.seq, messages.c.role, messages.c.api, messages.c.piece, messages.c.body,
        messages.c.created, messages.c.incomplete, messages.c.meta,
    )
    .where(messages.c.session == _N, messages.c.seq >= bindparam("start"))
    .order_by(messages.c.seq)
)  # fmt: skip
_READ_DRAFT = select(drafts.c.chunk).where(drafts.c.session == _N).order_by(drafts.c.n)
_INSERT_DRAFT = row_into(drafts)
_DELETE_DRAFT = delete(drafts).where(drafts.c.session == _N)


_NOTED = {"ran", "rewind"}
"""Facts of user messages that no user typed."""


class Facts(NamedTuple):
    """What is known of a message beside itself; `meta` is JSON."""

    created: float
    incomplete: bool = False
    meta: str | None = None


def insert(
    work: Work, gate: Gate, start: int, rows: Sequence[Body], new: Sequence[Message], facts: Sequence[Facts]
) -> range:
    """Insert rows from seq `start` on; `facts` has one entry for each message, or one for all. Returns their seqs."""
    each = facts if len(facts) == len(rows) else [facts[0]] * len(rows)
    work.run_many(
        _INSERT,
        [
            {
                "session": gate.n, "seq": seq, "role": row.role, "api": row.api, "piece": row.piece, "body": row.body,
                "hash": row.hash, "created": fact.created, "incomplete": int(fact.incomplete), "meta": fact.meta,
            }
            for seq, (row, fact) in enumerate(zip(rows, each, strict=True), start)
        ],
    )  # fmt: skip
    if gate.title is None and (title := _title_of(new, each)):
        work.run(_SET_TITLE, {"session": gate.n, "name": title})
    return range(start, start + len(rows))


def load(work: Work, session: str, start: int) -> tuple[list[Row], str, int]:
    """Rows from `start` on, the half answer, and how many rows before `start` the first of them needs."""
    n = rows_of_sessions.number(work, session)
    with no_collection():
        rows = work.all(_LOAD, {"session": n, "start": start})
        skip = rows[0][3] if rows and rows[0][4] is None else 0
        if skip:
            rows = work.all(_LOAD, {"session": n, "start": start - skip})
    return rows, _draft_text(work, n), skip


def settle_draft(work: Work, gate: Gate, now: float) -> int:
    """Make a half answer that was left behind an incomplete message; returns the seq after it."""
    if not gate.drafts:
        return gate.next
    text = _draft_text(work, gate.n)
    drop_draft(work, gate)
    if not text:
        return gate.next
    message = assistant(text)
    return insert(work, gate, gate.next, pack([message]), [message], [Facts(now, True)]).stop


def write_draft(work: Work, gate: Gate, n: int, chunk: str) -> None:
    """Keep piece `n` of the answer that streams in."""
    work.run(_INSERT_DRAFT, {"session": gate.n, "n": n, "chunk": encode(chunk)})


def drop_draft(work: Work, gate: Gate) -> None:
    if gate.drafts:
        work.run(_DELETE_DRAFT, {"session": gate.n})


def _draft_text(work: Work, n: int) -> str:
    return "".join(msgspec.json.decode(row[0], type=str) for row in work.all(_READ_DRAFT, {"session": n}))


def _title_of(new: Sequence[Message], facts: Sequence[Facts]) -> str | None:
    """The first line of the first user message, up to 80 characters. What brim wrote in the user's name (a command that was
    run, a rewind) is no title."""
    for message, fact in zip(new, facts, strict=True):
        if message.role == "user" and not (fact.meta and _NOTED & msgspec.json.decode(fact.meta, type=dict).keys()):
            for line in typed_of(message.text).splitlines():
                if words := " ".join((plain(line) or "").split()):
                    return words if len(words) <= 80 else words[:79] + "…"
    return None
