"""Sessions, messages, requests and originals: kept in SQLite or Postgres, durable once acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brim.store.blobs import CAP, Blob, BlobMissing, Blobs, BlobWriter
from brim.store.opening import TEMPORARY, data_dir, open_store
from brim.store.plans import apply_change, plan_change

if TYPE_CHECKING:
    from brim.store.history import History, Stored
    from brim.store.reply import Reply
    from brim.store.requests import Record, Sum
    from brim.store.store import Store
    from brim.store.values import Session, SessionHeld

_LATER = {
    "History": "brim.store.history",
    "Reply": "brim.store.reply",
    "Record": "brim.store.requests",
    "Session": "brim.store.values",
    "SessionHeld": "brim.store.values",
    "Store": "brim.store.store",
    "Stored": "brim.store.history",
    "Sum": "brim.store.requests",
}


def __getattr__(name: str) -> Any:
    # SQLAlchemy takes 0.17 s to import: it waits until a store is opened.
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "CAP",
    "TEMPORARY",
    "Blob",
    "BlobMissing",
    "BlobWriter",
    "Blobs",
    "History",
    "Record",
    "Reply",
    "Session",
    "SessionHeld",
    "Store",
    "Stored",
    "Sum",
    "apply_change",
    "data_dir",
    "open_store",
    "plan_change",
]
