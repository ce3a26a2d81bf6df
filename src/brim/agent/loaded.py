"""A session's messages as a sequence that grows: those from the store are decoded when they are first looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload

from brim.conversation import Message

if TYPE_CHECKING:
    from brim.store.history import History


class LoadedMessages(Sequence[Message]):
    """What the store has, then what was appended since. Looking at a damaged message raises StoreUnusable."""

    def __init__(self, stored: History) -> None:
        self._stored = stored
        self._new: list[Message] = []

    def append(self, message: Message) -> None:
        self._new.append(message)

    def __len__(self) -> int:
        return len(self._stored) + len(self._new)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if index < 0:
            raise IndexError(index)
        new = index - len(self._stored)
        return self._stored[index].message if new < 0 else self._new[new]

    def __iter__(self) -> Iterator[Message]:
        yield from (each.message for each in self._stored)
        yield from self._new
