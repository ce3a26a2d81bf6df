"""The way into a session for a writer: inside its transaction, so that what it learns there still holds at the commit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import BigInteger, Text, bindparam, delete, func, select, update

from brim.errors import SessionNotFound
from brim.store.bodies import plain
from brim.store.leases import LEASE_S, Holder, alive, rebooted
from brim.store.schema import drafts, leases, row_into, sessions
from brim.store.sessions import next_seq
from brim.store.values import SessionHeld, short_id

if TYPE_CHECKING:
    from brim.store.database import Work

_ID = bindparam("id", type_=Text)
_N = bindparam("session", type_=BigInteger)
_HOLDER = bindparam("holder", type_=Text)

_draft_count = select(func.count()).select_from(drafts).where(drafts.c.session == sessions.c.n).scalar_subquery()
_LOOK = (
    select(
        sessions.c.n, sessions.c.title, next_seq.scalar_subquery(), _draft_count,
        leases.c.holder, leases.c.place, leases.c.host, leases.c.pid, leases.c.started, leases.c.since,
        leases.c.expires,
    )
    .select_from(sessions.outerjoin(leases, leases.c.session == sessions.c.n))
    .where(sessions.c.id == _ID)
)  # fmt: skip
# Postgres: writers of a session queue up here, before the gate looks. (Locking in the same statement would let it see
# the lease and the messages as they were before it had to wait.) SQLite has one writer at a time anyway.
_LOCK = select(sessions.c.n).where(sessions.c.id == _ID).with_for_update()
_TAKE = row_into(leases)
_RENEW = update(leases).where(leases.c.session == _N).values(expires=bindparam("until"))
_DELETE = delete(leases).where(leases.c.session == _N)
RELEASE = delete(leases).where(
    leases.c.holder == _HOLDER,
    leases.c.session == select(sessions.c.n).where(sessions.c.id == _ID).scalar_subquery(),
)
RELEASE_ALL = delete(leases).where(leases.c.holder == _HOLDER)
_TOUCH = (
    update(sessions)
    .where(sessions.c.n == _N)
    .values(touched=select(func.coalesce(func.max(sessions.c.touched), 0) + 1).scalar_subquery())
)


class Gate(NamedTuple):
    """What a writer knows of its session once it is in: its number and title, the seq of the next message, and how many
    pieces of a half answer lie there."""

    n: int
    title: str | None
    next: int
    drafts: int


def enter(work: Work, session: str, holder: Holder, known: int | None, now: float, *, lock: bool) -> Gate:
    """Become, or stay, the session's writer. `known` is how many messages the caller thinks it has, None where it has
    not looked: somebody who was out must not write behind messages that he has not seen.

    Raises SessionHeld, SessionNotFound.
    """
    if lock:
        work.run(_LOCK, {"id": plain(session)})
    row = work.one(_LOOK, {"id": plain(session)})
    if row is None:
        raise SessionNotFound(f"no session {session!r}", hint="`brim sessions list` shows all")
    n, title, following, count, token, place, host, pid, started, since, expires = row
    gate = Gate(n, title, following, count)
    if token == holder.token:
        if not LEASE_S / 2 <= expires - now <= LEASE_S:  # more than that: the clock was set back
            work.run(_RENEW, {"session": n, "until": now + LEASE_S})
        return gate
    if token is not None:
        lives = alive(place, pid, started)
        if lives is None and not lock and rebooted(place):
            lives = False  # a file is used by one machine
        # one that runs out later than any lease can was made before the clock was set back
        if lives or (lives is None and now < expires <= now + 2 * LEASE_S):
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since))
            raise SessionHeld(
                f"session {short_id(session)} is being written by process {pid} on {host}, since {when}",
                session=session, host=host, pid=pid, since=since,
            )  # fmt: skip
        work.run(_DELETE, {"session": n})
    if known is not None and known != following:
        raise SessionHeld(
            f"session {short_id(session)} went on elsewhere: it has {following} messages, not {known}", session=session
        )
    work.run(
        _TAKE,
        {
            "session": n, "holder": holder.token, "place": holder.place, "host": holder.host, "pid": holder.pid,
            "started": holder.started, "since": now, "expires": now + LEASE_S,
        },
    )  # fmt: skip
    work.run(_TOUCH, {"session": n})
    return gate
