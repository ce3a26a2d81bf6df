"""A cache by text, bounded by characters: what is worked out once for a text is not worked out again next request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_CHARS = 32_000_000
"""About 8M tokens of text: more than twice the longest session measured. The texts are the history's own objects."""


class ByText(Generic[T]):
    """Calls `make` once for each text; when more than `most` characters were seen, everything is forgotten."""

    def __init__(self, make: Callable[[str], T], most: int = MOST_CHARS) -> None:
        self._make = make
        self._known: dict[str, T] = {}
        self._size, self._most = 0, most

    def __call__(self, text: str) -> T:
        try:
            return self._known[text]
        except KeyError:
            pass
        self._size += len(text) + 64  # an entry costs something even for an empty text
        if self._size > self._most:
            self._known, self._size = {}, len(text)
        value = self._known[text] = self._make(text)
        return value
