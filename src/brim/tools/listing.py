"""Records of many files, in the order of their paths, from a search that finds them in any order.

Only the first records are kept for showing; the whole goes to the blob store, sorted as well as long as it is small
enough to be held until the end (8 MB), else in the order of arrival.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable

from brim.tools.spool import Spool

_SORTED_BYTES = 8 * 1024 * 1024
_AT_ONCE = 1_000
# Every byte of UTF-8 but these begins a character.
_CONTINUING = bytes(range(0x80, 0xC0))


class Listing:
    """`add` records by path, `close()`; then `first()` are the first `most` ones in order, `chars` and `records` count
    all of them, and `keep()` stores them. What is added of a path begins with that path and a NUL or a line end, so that
    it sorts by it; `render` makes of it what is stored."""

    def __init__(self, most: int, spool: Spool, render: Callable[[bytes], bytes] = bytes) -> None:
        self._most = most
        self._spool = spool
        self._render = render
        self._groups: dict[bytes, list[bytes]] = {}
        self._order: list[bytes] = []
        self._kept = 0
        # One object a file, since there may be 200,000 of them.
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._last = b""
        self.is_sorted = True
        self.records = 0
        self.chars = 0

    def wants(self, path: bytes) -> bool:
        """Whether a record of `path` could be among the first ones."""
        return self._kept < self._most or path <= self._order[-1]

    def add(self, path: bytes, data: bytes, count: int, shown: list[bytes]) -> None:
        """`count` records of one path: whole lines for the store, and the forms of those that may be shown."""
        self.records += count
        self.store(path, data)
        if not shown:
            return
        group = self._groups.get(path)
        if group is None:
            group = self._groups[path] = []
            insort(self._order, path)
        taken = shown[: self._most - len(group)]
        group += taken
        self._kept += len(taken)
        while self._kept - len(self._groups[self._order[-1]]) >= self._most:
            self._kept -= len(self._groups.pop(self._order.pop()))

    def add_later(self, blocks: list[bytes], last: bytes, count: int) -> None:
        """`count` records of several paths that are all new, and none of which can be shown; `last` is the last path."""
        self.records += count
        if not self.is_sorted:
            self._write(b"".join(blocks))
            return
        self._held += blocks
        self._last = last
        self._grow(sum(map(len, blocks)))

    def store(self, path: bytes, data: bytes) -> None:
        """Bytes of the original that are no record of their own."""
        if not self.is_sorted:
            self._write(data)
            return
        if path == self._last and self._held:
            self._held[-1] += data
        else:
            self._held.append(data)
            self._last = path
        self._grow(len(data))

    def _grow(self, by: int) -> None:
        self._held_bytes += by
        if self._held_bytes > _SORTED_BYTES:
            self._flush()
            self.is_sorted = False

    def first(self) -> list[bytes]:
        """The first `most` records in the order of paths."""
        return [record for path in self._order for record in self._groups[path]][: self._most]

    def _flush(self) -> None:
        self._held.sort()
        held, self._held = self._held, []
        for start in range(0, len(held), _AT_ONCE):
            self._write(b"".join(held[start : start + _AT_ONCE]))

    def _write(self, data: bytes) -> None:
        data = self._render(data)
        self.chars += len(data) if data.isascii() else len(data.translate(None, _CONTINUING))
        self._spool.write(data)

    def close(self) -> None:
        """All has been added."""
        self._flush()

    @property
    def error(self) -> str | None:
        """Why the store has not taken it, None if it has."""
        return self._spool.error

    def keep(self) -> str | None:
        """Store all records; their handle."""
        return self._spool.keep()

    def discard(self) -> None:
        self._spool.discard()
