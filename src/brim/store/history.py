"""A session's messages as they were loaded: rows in memory, each decoded when it is first looked at.

Twenty thousand messages are read in some 30 ms; decoding them takes three times that, and much of a long session is
never looked at (a list, a fork, an export of its end).
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, overload

import msgspec

from brim.conversation import Message
from brim.store.bodies import Packed

Row: TypeAlias = tuple[int, str, str, "int | None", "str | None", float, int, "str | None"]
"""seq, role, api, piece, body, created, incomplete, meta."""


class Stored:
    """A message where it stands: `seq` counts from 0 without gaps, so it is the message's index in the history.

    `incomplete`: a reply that broke off (killed, interrupted) and holds what had come. `created`: Unix seconds.
    `message` is decoded when first asked for; it raises StoreUnusable where the row is damaged.
    """

    __slots__ = ("_meta", "_piece", "created", "incomplete", "packed", "role", "seq")

    def __init__(
        self, seq: int, role: str, created: float, incomplete: bool, meta: str | None, packed: Packed, piece: int | None
    ) -> None:
        self.seq = seq
        self.role = role
        self.created = created
        self.incomplete = incomplete
        self._meta = meta
        self.packed = packed
        self._piece = piece

    @property
    def message(self) -> Message:
        return self.packed.message(self._piece)

    @property
    def has_meta(self) -> bool:
        """Whether anything is known beside the message; cheaper than to look."""
        return self._meta is not None

    @property
    def meta(self) -> dict[str, Any]:
        return msgspec.json.decode(self._meta, type=dict[str, Any]) if self._meta else {}

    def __repr__(self) -> str:
        return f"Stored(seq={self.seq}, role={self.role!r}, incomplete={self.incomplete})"


class History(Sequence[Stored]):
    """The messages of one session, in order. `messages` decodes all of them at once."""

    def __init__(self, rows: Sequence[Row], session: str, skip: int = 0) -> None:
        self._rows = rows
        self._session = session
        self._skip = skip  # rows at the start that are there only for the wire object they hold
        self._made: list[Stored | None] = [None] * len(rows)

    def __len__(self) -> int:
        return len(self._rows) - self._skip

    @overload
    def __getitem__(self, index: int) -> Stored: ...

    @overload
    def __getitem__(self, index: slice) -> list[Stored]: ...

    def __getitem__(self, index: int | slice) -> Stored | list[Stored]:
        if isinstance(index, slice):
            return [self._at(n + self._skip) for n in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._at(index + self._skip)

    def __iter__(self) -> Iterator[Stored]:
        return map(self._at, range(self._skip, len(self._rows)))

    def __repr__(self) -> str:
        return f"<History of session {self._session}: {len(self)} messages>"

    @property
    def messages(self) -> list[Message]:
        """Every message. Raises StoreUnusable where one is damaged."""
        with no_collection():
            return [stored.message for stored in self]

    @property
    def incomplete(self) -> list[int]:
        """Seqs of replies that broke off; no message is decoded."""
        return [row[0] for row in self._rows[self._skip :] if row[6]]

    @property
    def times(self) -> list[float]:
        """When each message was stored, Unix seconds; no message is decoded."""
        return [row[5] for row in self._rows[self._skip :]]

    @property
    def metas(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Seq and facts of each message of which any are known; no message is decoded."""
        for row in self._rows[self._skip :]:
            if row[7] is not None:
                yield row[0], msgspec.json.decode(row[7], type=dict[str, Any])

    def _at(self, n: int) -> Stored:
        made = self._made[n]
        if made is None:
            seq, role, api, piece, body, created, incomplete, meta = self._rows[n]
            if body is None and piece and n >= piece:
                packed = self._at(n - piece).packed
            else:
                packed = Packed(api, piece, body or "", f"message {seq} of session {self._session}")
            made = self._made[n] = Stored(seq, role, created, bool(incomplete), meta, packed, piece)
        return made


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """No cyclic garbage collection for a moment in which many objects are made and none become garbage: looking at all
    of them again and again would take as long as making them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():  # nobody froze objects of their own, which this would thaw
                # Everything alive joins the oldest generation by the moving of a list. Otherwise the next allocation would
                # begin a look at all that was made, a fifth of the time that reading it took.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
