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
_used = select(blob_uses.c.blob)
_ORPHANS = select(blobs.c.n).where(blobs.c.created < _BEFORE, blobs.c.n.not_in(_used))
_OF_SESSION = select(blob_uses.c.blob).where(blob_uses.c.session == bindparam("session", type_=BigInteger))
_DELETE_BLOB = [
    delete(blob_chunks).where(blob_chunks.c.blob == _B),
    delete(blob_uses).where(blob_uses.c.blob == _B),
    delete(blobs).where(blobs.c.n == _B),
]
_BLOB_BYTES = select(func.coalesce(func.sum(func.length(blob_chunks.c.data)), 0))
_BODY_BYTES = select(func.coalesce(func.sum(func.length(messages.c.body)), 0))


def collect(store: Store, max_age: float | None, max_bytes: int | None) -> Collected:
    """See `Store.gc`."""
    before = _bytes(store)
    due: list[str] = []
    gone = busy = originals = 0
    if max_age is not None:
        due = [row[0] for row in store.read(lambda work: work.all(_OLD, {"before": store.now() - max_age}))]
    for id in due:
        deleted = _delete(store, id)
        gone, busy = gone + deleted, busy + (not deleted)
    # A day's grace: an original may be written before the session that will use it is.
    originals += _delete_orphans(store, store.now() - DAY)
    if max_bytes is not None:
        oldest_first = store.read(lambda work: work.all(_BY_USE))
        for _, n in oldest_first:
            if _bytes(store) <= max_bytes:
                break
            originals += _delete_blobs(store, _blobs_of(store, n))
        for id, _ in oldest_first:
            if _bytes(store) <= max_bytes:
                break
            deleted = _delete(store, id)
            gone, busy = gone + deleted, busy + (not deleted)
    if store.database.sqlite:
        store.database.shrink()
    left = _bytes(store)
    return Collected(sessions=gone, originals=originals, freed=before - left, left=left, kept_in_use=busy)


def _blobs_of(store: Store, n: int) -> list[int]:
    return [row[0] for row in store.read(lambda work: work.all(_OF_SESSION, {"session": n}))]


def _delete(store: Store, id: str) -> bool:
    try:
        store.delete(id)
    except SessionBusy:
        return False
    except SessionNotFound:  # somebody else's gc was faster
        return True
    return True


def _delete_orphans(store: Store, before: float) -> int:
    return _delete_blobs(store, [row[0] for row in store.read(lambda work: work.all(_ORPHANS, {"before": before}))])


def _delete_blobs(store: Store, numbers: list[int]) -> int:
    for number in numbers:
        with store.writing() as work:
            for statement in _DELETE_BLOB:
                work.run(statement, {"blob": number})
    return len(numbers)


def _bytes(store: Store) -> int:
    def measured(work: Work) -> int:
        rows = work.one(_BLOB_BYTES), work.one(_BODY_BYTES)
        return sum(int(row[0]) for row in rows if row is not None)

    return store.read(measured)
