"""Originals kept whole: what a tool printed before it was cut, by the hash of its content.

A handle is the first 12 (or, where two would be the same, more) hex characters of the sha256 of the stored bytes. A
writer takes any amount in memory that stays flat, and keeps at most `cap` bytes: past it, it only counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO, NamedTuple, Protocol

from brim.errors import StoreError

CAP = 64 * 1024 * 1024
"""Bytes that one blob keeps at most."""


class BlobMissing(StoreError):
    """No blob has that handle, or more than one begins with it."""

    kind = "blob_missing"


class Blob(NamedTuple):
    """`size`: bytes stored; `total`: bytes there were, more than `size` where the cap cut."""

    handle: str
    size: int
    total: int


class BlobWriter(Protocol):
    """Takes one original as it streams in. As a context manager it discards what was not closed."""

    @property
    def stored(self) -> int:
        """Bytes kept so far."""

    @property
    def total(self) -> int:
        """Bytes seen so far; more than `stored` once the cap is reached."""

    def write(self, data: bytes) -> int:
        """Take more bytes; returns how many of them are kept."""

    def close(self) -> str:
        """Keep what was written, durably; returns the handle, "" where this store keeps no originals."""

    def discard(self) -> None:
        """Keep nothing. Does nothing after `close`."""

    def __enter__(self) -> BlobWriter: ...

    def __exit__(self, *_: object) -> None: ...


class Blobs(Protocol):
    """A place for originals. All methods raise StoreUnusable where the store cannot be read or written."""

    def put(self, data: bytes | Iterable[bytes]) -> str:
        """Keep bytes, or a stream of them; returns the handle."""

    def put_text(self, text: str) -> str:
        """Keep a text as UTF-8."""

    def open_writer(self) -> BlobWriter: ...

    def get(self, handle: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes from `offset` on. Raises BlobMissing."""

    def get_text(self, handle: str) -> str:
        """The whole blob as text; bytes that are no UTF-8 become U+FFFD. Raises BlobMissing."""

    def open_reader(self, handle: str) -> BinaryIO:
        """A seekable stream over the blob that never holds more than a piece of it. Raises BlobMissing."""

    def size(self, handle: str) -> int:
        """Bytes stored. Raises BlobMissing."""

    def info(self, handle: str) -> Blob:
        """Full facts; `handle` may be any unambiguous prefix of 6 characters or more. Raises BlobMissing."""
