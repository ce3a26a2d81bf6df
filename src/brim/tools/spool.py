"""The original of an output on its way to the blob store: kept only if something of it will be left out.

Small outputs stay in memory until it is known whether they were cut; larger ones stream into a blob as they come, up
to a limit of their own, so that memory stays flat whatever a command prints.
"""

from __future__ import annotations

import contextlib

from brim.errors import StoreError
from brim.tools.context import Blobs, BlobWriter

_IN_MEMORY = 256 * 1024


class Spool:
    """Write bytes, then `keep()` for a handle or `discard()`.

    `stored` is how many bytes the blob holds, `complete` whether that is all. A store that fails costs the original, not
    the output: `error` then says why, and there is no handle.
    """

    def __init__(self, blobs: Blobs | None, limit: int) -> None:
        self._blobs = blobs
        self._limit = limit
        self._held: list[bytes] = []
        self._writer: BlobWriter | None = None
        self.stored = 0
        self.complete = True
        self.error: str | None = None

    def write(self, data: bytes) -> None:
        if self._blobs is None or self.error is not None or not data:
            return
        room = self._limit - self.stored
        if len(data) > room:
            self.complete = False
            data = data[:room]
            if not data:
                return
        self.stored += len(data)
        if self._writer is None:
            self._held.append(data)
            if self.stored <= _IN_MEMORY:
                return
        try:
            if self._writer is None:
                self._writer = self._blobs.open_writer()
                data = b"".join(self._held)
                self._held = []
            self._writer.write(data)
        except (StoreError, OSError) as error:
            self._fail(error)

    def keep(self) -> str | None:
        """The handle of what was written; None where nothing is kept."""
        if self._blobs is None or self.error is not None:
            return None
        try:
            if self._writer is None:
                return self._blobs.put(b"".join(self._held)) or None
            writer, self._writer = self._writer, None
            return writer.close() or None
        except (StoreError, OSError) as error:
            self._fail(error)
            return None

    def discard(self) -> None:
        self._held = []
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(StoreError, OSError):
                writer.discard()

    def _fail(self, error: Exception) -> None:
        self.error = str(error)
        self.discard()
