"""Blobs as rows: compressed pieces of a fixed size, so that reading anywhere and writing any amount stay cheap.

In the database and not in files: one file to copy or delete, and replicas that share a Postgres share the originals.
"""

from __future__ import annotations

import hashlib
import io
import time
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from sqlalchemy import bindparam, delete, select, update

from brim.errors import StoreUnusable
from brim.store.blobs import CAP, Blob, BlobMissing
from brim.store.schema import blob_chunks, blob_uses, blobs, row_into

if TYPE_CHECKING:
    from brim.store.database import Database, Work

PIECE = 256 * 1024
"""Bytes of original per row."""
PIECES_PER_COMMIT = 4
LEVEL = 1
"""zlib's fastest: on logs and source it is within a fifth of level 6 in size at a quarter of its time."""

_INSERT = row_into(blobs).returning(blobs.c.n)
_INSERT_CHUNK = row_into(blob_chunks)
_INSERT_USE = row_into(blob_uses)
_FINISH = (
    update(blobs)
    .where(blobs.c.n == bindparam("blob"))
    .values(hash=bindparam("digest"), size=bindparam("bytes"), packed=bindparam("small"), total=bindparam("seen"))
)
_DELETE = delete(blobs).where(blobs.c.n == bindparam("blob"))
_DELETE_CHUNKS = delete(blob_chunks).where(blob_chunks.c.blob == bindparam("blob"))
_BY_HASH = select(blobs.c.n).where(blobs.c.hash == bindparam("digest")).order_by(blobs.c.n).limit(1)
_BY_PREFIX = (
    select(blobs.c.n, blobs.c.hash, blobs.c.size, blobs.c.total)
    .where(blobs.c.hash >= bindparam("low"), blobs.c.hash < bindparam("high"))
    .order_by(blobs.c.n)
    .limit(20)
)
_USE = select(blob_uses.c.blob).where(
    blob_uses.c.blob == bindparam("blob"), blob_uses.c.session == bindparam("session")
)
_CHUNKS = (
    select(blob_chunks.c.start, blob_chunks.c.data)
    .where(
        blob_chunks.c.blob == bindparam("blob"),
        blob_chunks.c.start >= bindparam("low"),
        blob_chunks.c.start < bindparam("high"),
    )
    .order_by(blob_chunks.c.start)
)


class StoredBlobs:
    """The blobs of a database; those put here are kept as long as `session` (its number) is."""

    def __init__(self, database: Database, session: int | None = None, *, cap: int = CAP) -> None:
        self._database = database
        self._session = session
        self._cap = cap

    def put(self, data: bytes | Iterable[bytes]) -> str:
        with self.open_writer() as writer:
            for piece in (data,) if isinstance(data, bytes) else data:
                writer.write(piece)
            return writer.close()

    def put_text(self, text: str) -> str:
        # surrogatepass, as in conversation.handle_of_text: the handle of a text is the same wherever it is made
        return self.put(text.encode("utf-8", "surrogatepass"))

    def open_writer(self) -> StoredWriter:
        return StoredWriter(self._database, self._session, self._cap)

    def get(self, handle: str, offset: int = 0, length: int | None = None) -> bytes:
        with self._database.read() as work:
            number, blob = _find(work, handle)
            end = blob.size if length is None else min(blob.size, offset + length)
            return _read(work, number, blob, max(0, offset), end)

    def get_text(self, handle: str) -> str:
        return self.get(handle).decode("utf-8", "replace")

    def open_reader(self, handle: str) -> BinaryIO:
        with self._database.read() as work:
            number, blob = _find(work, handle)
        return cast(BinaryIO, io.BufferedReader(_Reader(self._database, number, blob), PIECE))

    def size(self, handle: str) -> int:
        return self.info(handle).size

    def info(self, handle: str) -> Blob:
        with self._database.read() as work:
            return _find(work, handle)[1]


class StoredWriter:
    """Writes a blob; rows go to the database every few pieces, under a number that nobody else knows until `close`."""

    def __init__(self, database: Database, session: int | None, cap: int) -> None:
        self._database = database
        self._session = session
        self._cap = cap
        self._hash = hashlib.sha256()
        self._pending = bytearray()
        self._rows: list[tuple[int, bytes]] = []
        self._next = 0
        self._number: int | None = None
        self._packed = 0
        self._open = True
        self.stored = 0
        self.total = 0

    def write(self, data: bytes) -> int:
        self.total += len(data)
        kept = memoryview(data)[: max(0, self._cap - self.stored)]
        if not kept:
            return 0
        self._must_be_open()
        self._hash.update(kept)
        self.stored += len(kept)
        self._pending += kept
        while len(self._pending) >= PIECE:
            self._pack(bytes(self._pending[:PIECE]))
            del self._pending[:PIECE]
            if len(self._rows) >= PIECES_PER_COMMIT:
                self._open = False  # a failed commit leaves nothing that more could be added to
                with self._database.write() as work:
                    self._flush(work)
                self._open = True
        return len(kept)

    def close(self) -> str:
        self._must_be_open()
        self._open = False
        if self._cap <= 0:
            return ""
        if self._pending:
            self._pack(bytes(self._pending))
            self._pending.clear()
        digest = self._hash.hexdigest()
        with self._database.write() as work:
            known = work.one(_BY_HASH, {"digest": digest})
            if known is not None:
                self._remove(work)
                number = int(known[0])
            else:
                number = self._flush(work)
                facts = {"digest": digest, "bytes": self.stored, "small": self._packed, "seen": self.total}
                work.run(_FINISH, {"blob": number, **facts})
            if self._session is not None:
                use = {"blob": number, "session": self._session}
                if work.one(_USE, use) is None:
                    work.run(_INSERT_USE, use)
            return _shortest(work, digest)

    def discard(self) -> None:
        if self._open:
            self._open = False
            self._rows.clear()
            self._pending.clear()
            if self._number is not None:
                with self._database.write() as work:
                    self._remove(work)

    def __enter__(self) -> StoredWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def _must_be_open(self) -> None:
        if not self._open:
            raise ValueError("this blob writer is closed")

    def _pack(self, piece: bytes) -> None:
        data = zlib.compress(piece, LEVEL)
        self._rows.append((self._next, data))
        self._next += PIECE
        self._packed += len(data)

    def _flush(self, work: Work) -> int:
        if self._number is None:
            row = work.one(_INSERT, {"hash": None, "size": 0, "packed": 0, "total": 0, "created": time.time()})
            assert row is not None
            self._number = int(row[0])
        if self._rows:
            work.run_many(
                _INSERT_CHUNK, [{"blob": self._number, "start": start, "data": data} for start, data in self._rows]
            )
            self._rows.clear()
        return self._number

    def _remove(self, work: Work) -> None:
        if self._number is not None:
            work.run(_DELETE_CHUNKS, {"blob": self._number})
            work.run(_DELETE, {"blob": self._number})


class _Reader(io.RawIOBase):
    """Reads one piece at a time, each in a transaction of its own."""

    def __init__(self, database: Database, number: int, blob: Blob) -> None:
        self._database = database
        self._number = number
        self._blob = blob
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = (0, self._at, self._blob.size)[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        end = min(self._blob.size, self._at + len(view), self._at - self._at % PIECE + PIECE)
        if end <= self._at:
            return 0
        with self._database.read() as work:
            data = _read(work, self._number, self._blob, self._at, end)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


def _find(work: Work, handle: str) -> tuple[int, Blob]:
    wanted = handle.strip().lower()
    if len(wanted) < 6 or wanted.strip("0123456789abcdef"):
        raise BlobMissing(
            f"{handle!r} is no handle", hint="a handle is at least 6 hex characters, as a notice shows it"
        )
    rows = work.all(_BY_PREFIX, {"low": wanted, "high": wanted + "g"})
    found = sorted({row[1] for row in rows})
    if not found:
        raise BlobMissing(f"nothing is kept under the handle {handle}", hint="it may have aged out (`brim gc`)")
    if len(found) > 1:
        raise BlobMissing(f"{handle} is short for {len(found)} originals", hint="give more of: " + ", ".join(found[:5]))
    number, digest, size, total = rows[0]
    return int(number), Blob(_shortest(work, digest), int(size), int(total))


def _shortest(work: Work, digest: str) -> str:
    for length in range(12, len(digest) + 1):
        prefix = digest[:length]
        rows = work.all(_BY_PREFIX, {"low": prefix, "high": prefix + "g"})
        if all(row[1] == digest for row in rows):
            return prefix
    return digest


def _read(work: Work, number: int, blob: Blob, start: int, end: int) -> bytes:
    if end <= start:
        return b""
    first = start - start % PIECE
    parts: list[bytes] = []
    expected = first
    for at, data in work.run(_CHUNKS, {"blob": number, "low": first, "high": end}):
        try:
            piece = zlib.decompress(data)
        except zlib.error as error:
            raise StoreUnusable(f"the original {blob.handle} is damaged at byte {at:,}: {error}") from error
        if at != expected:
            break
        expected += PIECE
        parts.append(piece[max(0, start - at) : end - at])
    whole = b"".join(parts)
    if len(whole) != end - start:
        raise StoreUnusable(
            f"the original {blob.handle} is damaged: {len(whole):,} of {end - start:,} bytes are there",
        )
    return whole
