"""The two ends of a text that streams by: all that has to be held of an output of any size."""

from __future__ import annotations

from collections import deque


class Ends:
    """The first `head` and the last `tail` characters of what was appended, and how many there were."""

    __slots__ = ("_head", "_head_size", "_most_head", "_most_tail", "_tail", "_tail_size", "total")

    def __init__(self, head: int, tail: int) -> None:
        self._most_head, self._most_tail = head, tail
        self.clear()

    def clear(self) -> None:
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._head_size = self._tail_size = self.total = 0

    def append(self, text: str, start: int = 0, end: int | None = None) -> None:
        """Append `text[start:end]`; of a long piece only what may be shown is copied."""
        if end is None:
            end = len(text)
        self.total += end - start
        room = self._most_head - self._head_size
        if room > 0:
            self._head.append(text[start : min(end, start + room)])
            self._head_size += min(end - start, room)
        self._append_tail(text, start, end)

    def _append_tail(self, text: str, start: int, end: int) -> None:
        most = self._most_tail
        if end - start >= most:
            self._tail.clear()
            self._tail_size = 0
            start = end - most
        if start == end:
            return
        self._tail.append(text[start:end])
        self._tail_size += end - start
        while self._tail_size - len(self._tail[0]) >= most:
            self._tail_size -= len(self._tail.popleft())

    def extend(self, other: Ends) -> None:
        """Append all that `other` (of the same sizes) was given."""
        if other.total <= other._head_size:
            self.append("".join(other._head))
            return
        if (room := self._most_head - self._head_size) > 0:
            piece = "".join(other._head)[:room]
            self._head.append(piece)
            self._head_size += len(piece)
        self.total += other.total
        if other.total > other._tail_size:
            # What `other` no longer holds lies between: nothing older can be part of the last `tail` characters.
            self._tail.clear()
            self._tail_size = 0
        tail = "".join(other._tail)
        self._append_tail(tail, 0, len(tail))

    def whole(self) -> str | None:
        """All that was appended, where the two ends still cover it."""
        if self.total <= self._head_size:
            return "".join(self._head)
        missing = self.total - self._head_size
        if missing > self._tail_size:
            return None
        return "".join(self._head) + "".join(self._tail)[-missing:]

    def ends(self) -> tuple[str, str]:
        tail = "".join(self._tail)
        return "".join(self._head), tail[max(0, len(tail) - self._most_tail) :]
