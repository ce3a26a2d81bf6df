"""Cutting a text to a size: which character ranges stay. Whole lines where lines allow it, whole characters always."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Literal

from brim.context.notices import mark

Span = tuple[int, int]


Style = Literal["cut", "digest", "repeat"]
"""How gaps are marked: with size and handle; briefly, where there are many; or as standing above already."""


def join_spans(text: str, spans: tuple[Span, ...], handle: str, *, recall: bool = False, style: Style = "cut") -> str:
    """The kept ranges of a text with a mark in place of each gap."""
    pieces: list[str] = []
    at, first = 0, True
    for start, end in (*spans, (len(text), len(text))):
        if start > at:
            gap = text[at:start]
            if style != "cut" and "\n" not in gap and len(gap) < INLINE_GAP and pieces and end > start:
                pieces.append(" … ")
            else:
                if pieces and pieces[-1] and not pieces[-1].endswith("\n"):
                    pieces.append("\n")
                pieces.append(mark(gap, handle, recall=recall, first=first, style=style))
                if start < len(text):
                    pieces.append("\n")
                first = False
        if end > start:
            pieces.append(text[start:end])
        at = end
    return "".join(pieces)


INLINE_GAP = 400
"""Characters up to which a gap inside a long line is just an ellipsis: its size says nothing worth its tokens."""


def head_and_tail(text: str, head: int, tail: int) -> tuple[Span, ...]:
    """The first `head` and the last `tail` characters, drawn in to line ends where that costs at most half of a piece."""
    if head + tail >= len(text):
        return ((0, len(text)),)
    stop = text.rfind("\n", 0, head) + 1
    if stop < head / 2:
        stop = whole(text, head)
    start = text.find("\n", len(text) - tail - 1) + 1 if tail else len(text)
    if start == 0 or len(text) - start < tail / 2:
        start = _whole_after(text, len(text) - tail)
    if stop >= start:
        return ((0, len(text)),)
    return tuple(span for span in ((0, stop), (start, len(text))) if span[1] > span[0])


def cut_to_tokens(
    text: str, target: int, count: Callable[[str], int], *, head_share: float, handle: str, recall: bool = False
) -> tuple[Span, ...]:
    """Head and tail of a text such that what stays, its mark included, counts at most `target` tokens.

    `()` where nothing but the mark fits. At most nine counts of a text no longer than the piece that stays.
    """
    whole_text = ((0, len(text)),)
    if len(text) <= target and count(text) <= target:
        return whole_text
    # Texts of one kind have a steady rate of characters to a token; a sample tells it without counting all of the text.
    sample = text if len(text) < 8_000 else text[:4_000] + text[-4_000:]
    sampled = count(sample)
    if sample is text and sampled <= target:
        return whole_text
    rate = len(sample) / max(1, sampled)
    room = int((target - 40) * rate)
    for _ in range(8):
        if room < 16:
            break
        head = int(room * head_share)
        spans = head_and_tail(text, head, room - head)
        if spans == whole_text and count(text) <= target:
            return spans
        if spans != whole_text and (counted := count(join_spans(text, spans, handle, recall=recall))) <= target:
            return spans
        room = int(room * min(0.9, (target / max(counted, 1)) * 0.97)) if spans != whole_text else int(room * 0.9)
    return ()


def whole(text: str, at: int) -> int:
    """The nearest place at or before `at` where no character is cut in two (emoji sequences, combining marks, CR LF)."""
    while 0 < at < len(text) and _joined(text, at):
        at -= 1
    return at


def _whole_after(text: str, at: int) -> int:
    while 0 < at < len(text) and _joined(text, at):
        at += 1
    return at


def _joined(text: str, at: int) -> bool:
    after, before = text[at], text[at - 1]
    if after < "\u0300":
        return after == "\n" and before == "\r"
    if after in "\u200d\ufe0f\ufe0e" or before == "\u200d" or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    if "\U0001f1e6" <= after <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff":
        return True
    return unicodedata.combining(after) != 0
