"""Cutting a text to a number of tokens: whole lines first, whole characters always.

A cut prefers the end of a line. Only where that would waste much of the room, because a line is longer than what is
left, the line itself is cut, at a character's border.
"""

from __future__ import annotations

from collections.abc import Callable

from brim.tools.clusters import cut_after, cut_before

Count = Callable[[str], int]

# A line end is taken if it leaves at most this share of the room unused.
_WASTE = 0.25


def longest_prefix(text: str, tokens: int, count: Count) -> int:
    """A length whose prefix of `text` counts at most `tokens`; within about 2% of the longest one."""
    return _longest(len(text), tokens, lambda size: count(text[:size]))


def longest_suffix(text: str, tokens: int, count: Count) -> int:
    """A length whose suffix of `text` counts at most `tokens`; within about 2% of the longest one."""
    return _longest(len(text), tokens, lambda size: count(text[-size:]) if size else 0)


def _longest(length: int, tokens: int, cost: Callable[[int], int]) -> int:
    if tokens <= 0 or not length:
        return 0
    fits, over = 0, length + 1
    # Three characters a token is a fair first guess for most text; then the measured rate leads.
    guess = min(length, tokens * 3)
    for _ in range(24):
        used = cost(guess)
        if used <= tokens:
            fits = guess
            if fits == length or used >= tokens * 0.98:
                break
        else:
            over = guess
        if over - fits <= max(1, fits // 50):
            break
        guess = int(guess * tokens / max(used, 1))
        if not fits < guess < over:
            guess = (fits + over) // 2
        guess = min(guess, length)
        if guess in (fits, over):
            break
    return fits


def head_end(text: str, tokens: int, count: Count, *, lines: int | None, chars: int, whole: bool) -> int:
    """Index where the head of `text` ends: at most so many tokens, lines and characters.

    `whole` says that `text` is all there is; otherwise its end is no line end and may be half a character.
    """
    most = min(chars, len(text))
    if lines is not None:
        most = min(most, _nth_line_end(text, lines))
    size = longest_prefix(text[:most], tokens, count)
    if (size == len(text) and whole) or (size and text[size - 1] == "\n"):
        return size
    line = text.rfind("\n", 0, size) + 1
    if line and size - line <= size * _WASTE:
        return line
    cut = cut_before(text, size if size < len(text) else size - 1)
    if cut <= line:
        return line
    # A line that is whole but for its end is whole.
    return cut + text.startswith("\n", cut)


def tail_start(text: str, tokens: int, count: Count, *, lines: int | None, chars: int, whole: bool) -> int:
    """Index where the tail of `text` starts: the mirror image of `head_end`."""
    length = len(text)
    least = max(0, length - chars)
    if lines is not None:
        least = max(least, _nth_line_start_from_end(text, lines))
    size = longest_suffix(text[least:], tokens, count)
    start = length - size
    if (start == 0 and whole) or (start > 0 and text[start - 1] == "\n"):
        return start
    line = text.find("\n", start) + 1
    if line and line < length and line - start <= size * _WASTE:
        return line
    cut = cut_after(text, start if start > 0 else 1)
    return cut if not line or cut < line else line


def _nth_line_end(text: str, lines: int) -> int:
    at = 0
    for _ in range(lines):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def _nth_line_start_from_end(text: str, lines: int) -> int:
    if lines <= 0:
        return len(text)
    at = len(text) - 1 if text.endswith("\n") else len(text)
    for _ in range(lines):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return at + 1
