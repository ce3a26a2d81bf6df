"""An answer while it streams in."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from brim.conversation import Message, assistant

if TYPE_CHECKING:
    from brim.store.store import Store


class Reply:
    """An answer that streams in: written every so often, so that a killed process leaves its half answer behind.

    Whatever happens, the answer is stored once: `finish` puts the whole message in the half one's place in one
    transaction; without it the next write to the session makes the half one an incomplete message.
    """

    EVERY_S = 0.2
    EVERY_CHARS = 2_000

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        self._pending: list[str] = []
        self._size = 0
        self._written = 0
        self._text: list[str] = []
        self._last = time.monotonic()

    def extend(self, chunk: str) -> None:
        """More text of the answer. Writes at most every `EVERY_S` seconds or `EVERY_CHARS` characters."""
        self._pending.append(chunk)
        self._text.append(chunk)
        self._size += len(chunk)
        if self._size >= self.EVERY_CHARS or time.monotonic() - self._last >= self.EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Write what has come."""
        if self._size:
            self._store.write_draft(self._session, self._written, "".join(self._pending))
            self._written += 1
            self._pending.clear()
            self._size = 0
        self._last = time.monotonic()

    def finish(self, *messages: Message, meta: Mapping[str, Any] | None = None) -> range:
        """Store the whole answer in the half one's place; returns its seqs."""
        return self._store.replace_draft(self._session, messages, False, meta)

    def keep(self, meta: Mapping[str, Any] | None = None) -> range:
        """Store what has come as an incomplete message (interrupted); nothing where no text came."""
        text = "".join(self._text)
        return self._store.replace_draft(self._session, [assistant(text)] if text else [], True, meta)

    def drop(self) -> None:
        """Forget what has come: the request is made again."""
        self._pending.clear()
        self._text.clear()
        self._size = 0
        if self._written:
            self._store.drop_draft(self._session)
            self._written = 0
