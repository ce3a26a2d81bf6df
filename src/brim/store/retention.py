"""What is deleted, when, and in which order: by age, then by size, originals before sessions, nothing in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import BigInteger, Double, bindparam, delete, func, select

from brim.errors import SessionBusy, SessionNotFound
from brim.store.schema import blob_chunks, blob_uses, blobs, messages, sessions

if TYPE_CHECKING:
    from brim.store.database import Work
    from brim.store.store import Store

DAY = 86_400.0


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """What `gc` deleted, and the bytes (compressed originals, message bodies) left and freed; `kept_in_use` counts
    sessions that were due but are being written by somebody."""

    sessions: int
    originals: int
    freed: int
    left: int
    kept_in_use: int


_B = bindparam("blob", type_=BigInteger)
_BEFORE = bindparam("before", type_=Double)
_updated = (
    select(func.max(messages.c.created)).where(messages.c.session == sessions.c.n).correlate(sessions).scalar_subquery()
)
_OLD = select(sessions.c.id).where(func.coalesce(_updated, sessions.c.created) < _BEFORE)
_BY_USE = select(sessions.c.id, sessions.c.n).order_by(sessions.c.touched, sessions.c.n)
_ORPHANS = select(blobs.c.n).where(blobs.c.created < _BEFORE, blobs.c.n.not_in(select(blob_uses.c.blob)))
_USES = select(blob_uses.c.session, blob_uses.c.blob)
_BLOB_SIZES = select(blobs.c.n, blobs.c.packed)
_BODY_SIZES = select(messages.c.session, func.sum(func.length(messages.c.body))).group_by(messages.c.session)
_DELETE_BLOB = [
    delete(blob_chunks).where(blob_chunks.c.blob == _B),
    delete(blob_uses).where(blob_uses.c.blob == _B),
    delete(blobs).where(blobs.c.n == _B),
]


class _Sizes:
    """Bytes of each session's bodies and of each original, read once: every step of a collection only subtracts."""

    def __init__(self, store: Store) -> None:
        self.bodies: dict[int, int] = {}
        self.blobs: dict[int, int] = {}
        self.uses: dict[int, list[int]] = {}

        def read(work: Work) -> None:
            self.bodies = {row[0]: int(row[1] or 0) for row in work.all(_BODY_SIZES)}
            self.blobs = {row[0]: int(row[1]) for row in work.all(_BLOB_SIZES)}
            for session, blob in work.all(_USES):
                self.uses.setdefault(session, []).append(blob)

        store.read(read)

    @property
    def total(self) -> int:
        return sum(self.bodies.values()) + sum(self.blobs.values())


def collect(store: Store, max_age: float | None, max_bytes: int | None) -> Collected:
    """See `Store.gc`."""
    before = _Sizes(store).total
    gone = busy = 0
    if max_age is not None:
        for row in store.read(lambda work: work.all(_OLD, {"before": store.now() - max_age})):
            deleted = _delete(store, row[0])
            gone, busy = gone + deleted, busy + (not deleted)
    # A day's grace: an original may be written before the session that will use it is.
    orphans = store.read(lambda work: work.all(_ORPHANS, {"before": store.now() - DAY}))
    originals = sum(_delete_blob(store, row[0]) for row in orphans)
    if max_bytes is not None:
        sizes = _Sizes(store)
        over = sizes.total - max_bytes
        oldest_first = store.read(lambda work: work.all(_BY_USE))
        for _, n in oldest_first:
            for blob in sizes.uses.get(n, ()) if over > 0 else ():
                if blob in sizes.blobs:  # not yet deleted with an older session
                    originals += _delete_blob(store, blob)
                    over -= sizes.blobs.pop(blob)
        for id, n in oldest_first:
            if over <= 0:
                break
            deleted = _delete(store, id)
            gone, busy = gone + deleted, busy + (not deleted)
            over -= sizes.bodies.get(n, 0) if deleted else 0
    if store.database.sqlite:
        store.database.shrink()
    left = _Sizes(store).total
    return Collected(sessions=gone, originals=originals, freed=before - left, left=left, kept_in_use=busy)


def _delete(store: Store, id: str) -> bool:
    """False where somebody writes the session."""
    try:
        store.delete(id)
    except SessionBusy:
        return False
    except SessionNotFound:  # somebody else's gc was faster
        return True
    return True


def _delete_blob(store: Store, number: int) -> int:
    with store.writing() as work:
        for statement in _DELETE_BLOB:
            work.run(statement, {"blob": number})
    return 1
