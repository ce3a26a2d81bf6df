"""The one mechanism that caps what a tool shows, while it streams in.

Bytes go in, in chunks of any size; out comes text within a cap of tokens, lines and characters: its head and its tail,
and between them a notice that says exactly what is missing and how to get at it. The result depends on the bytes only,
never on where the chunks were cut, and memory stays bounded whatever comes: only the ends are held, the rest is
counted. The original goes to the blob store as it streams by.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from brim.tools.cleaning import Cleaner, show_controls
from brim.tools.context import Blobs
from brim.tools.ends import Ends
from brim.tools.fitting import Count, head_end, tail_start
from brim.tools.spool import Spool

# Text denser than this many characters a token (long runs of one character) is cut by characters instead.
_CHARS_PER_TOKEN = 10
# However high a cap is set, no more characters than this are held of one output.
_MOST_CHARS = 32 * 1024 * 1024

# In complete lines: all that a carriage return wrote over, and the carriage returns before a line end.
_OVERWRITTEN = re.compile(r"(?m)^[^\n]*\r(?=[^\r\n])")
_RETURNS = re.compile(r"\r+(?=\n|\Z)")


class Limits(msgspec.Struct, frozen=True):
    """A cap. `head` is the share of the room that the beginning gets; the end gets the rest (1.0: no tail)."""

    tokens: int
    lines: int | None = None
    chars: int | None = None
    head: float = 0.6

    @property
    def held_chars(self) -> int:
        """How many characters at most may be shown, notice included."""
        most = min(self.tokens * _CHARS_PER_TOKEN, _MOST_CHARS)
        return most if self.chars is None else min(most, self.chars)


class Gap(msgspec.Struct, frozen=True):
    """What a cut left out: lines (1-based, whole ones; `first` > `last` where only part of one line is missing),
    characters, and where reading goes on: `char` is the 1-based character of line `line`."""

    first: int
    last: int
    lines: int
    chars: int
    total_lines: int
    total_chars: int
    line: int
    char: int
    handle: str | None
    stored_whole: bool


class Bounded(msgspec.Struct, frozen=True):
    """What is shown (`text`) and the exact counts of the whole. `gap` is None where nothing is left out."""

    text: str
    total_lines: int
    total_chars: int
    total_bytes: int
    replaced: int
    gap: Gap | None = None
    handle: str | None = None

    def facts(self) -> dict[str, object]:
        """The counts as JSON-serialisable metadata."""
        gap = self.gap
        return {
            "total_lines": self.total_lines,
            "total_chars": self.total_chars,
            "total_bytes": self.total_bytes,
            "replaced": self.replaced,
            "cut": gap is not None,
            "missing_lines": gap.lines if gap else 0,
            "missing_chars": gap.chars if gap else 0,
            "missing_range": [gap.first, gap.last] if gap and gap.lines else None,
        }


def collapse_returns(lines: str) -> str:
    """Complete lines with what carriage returns wrote over reduced to its last state; CR LF becomes LF."""
    return _RETURNS.sub("", _OVERWRITTEN.sub("", lines)) if "\r" in lines else lines


Advice: TypeAlias = Callable[[Gap], str]


def recall_advice(gap: Gap) -> str:
    """How to read on in the stored original, from the first missing character."""
    if gap.handle is None:
        return ""
    where = f"offset {gap.line}" + (f", char {gap.char}" if gap.char > 1 else "")
    kept = "" if gap.stored_whole else " (only its beginning was kept)"
    return f"Full output: recall handle {gap.handle}, {where}{kept}."


class BoundedOutput:
    """Feed it bytes, then `finish()` once.

    `advise` writes the end of the notice; `collapse` reduces what carriage returns and backspaces wrote over to its last
    state (off where they are data).
    """

    def __init__(
        self,
        limits: Limits,
        count: Count,
        *,
        blobs: Blobs | None = None,
        blob_bytes: int = 64 * 1024 * 1024,
        advise: Advice = recall_advice,
        collapse: bool = True,
    ) -> None:
        self._limits, self._count, self._advise, self._collapse = limits, count, advise, collapse
        self._spool = Spool(blobs, blob_bytes)
        self._cleaner = Cleaner(overtype=collapse)
        held = limits.held_chars
        tail = 0 if limits.head >= 1 else held
        self._done = Ends(held, tail)
        self._line = Ends(held, tail)
        self._newlines = 0
        self._return = False
        self.total_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the output."""
        self.total_bytes += len(data)
        self._spool.write(data)
        self._take(self._cleaner.feed(data))

    def _take(self, text: str) -> None:
        if self._collapse and (self._return or "\r" in text):
            text = text.replace("\r\n", "\n")
            if self._return or "\r" in text:
                self._take_with_returns(text)
                return
        if text:
            self._take_lines(text)

    def _take_lines(self, text: str) -> None:
        first = text.find("\n")
        if first < 0:
            self._line.append(text)
            return
        self._end_line(text[:first])
        last = text.rfind("\n")
        if last > first:
            self._newlines += text.count("\n", first + 1, last + 1)
            self._done.append(text, first + 1, last + 1)
        if last + 1 < len(text):
            self._line.append(text, last + 1)

    def _end_line(self, rest: str) -> None:
        if self._line.total:
            if rest:
                self._line.append(rest)
            self._done.extend(self._line)
            self._line.clear()
            self._done.append("\n")
        else:
            self._done.append(rest + "\n")
        self._newlines += 1

    def _take_with_returns(self, text: str) -> None:
        first = text.find("\n")
        if first < 0:
            self._overwrite(text)
            return
        self._overwrite(text[:first])
        self._return = False
        self._end_line("")
        last = text.rfind("\n")
        if last > first:
            self._take_lines(collapse_returns(text[first + 1 : last + 1]))
        self._overwrite(text[last + 1 :])

    def _overwrite(self, piece: str) -> None:
        """A piece of the current line: what stands before its last carriage return was written over."""
        kept = piece.rstrip("\r")
        if kept:
            last = kept.rfind("\r")
            if last >= 0 or self._return:
                self._line.clear()
            self._line.append(kept[last + 1 :])
            self._return = False
        self._return = self._return or len(kept) < len(piece)

    def finish(self) -> Bounded:
        """The output within its cap. The original is kept in the blob store if anything was left out."""
        self._take(self._cleaner.close())
        total_lines = self._newlines + (1 if self._line.total else 0)
        if self._line.total:
            self._done.extend(self._line)
            self._line.clear()
        whole = self._done.whole()
        replaced = self._cleaner.replaced
        if whole is not None and self._fits(whole, total_lines):
            self._spool.discard()
            return Bounded(show_controls(whole), total_lines, self._done.total, self.total_bytes, replaced)
        handle = self._spool.keep()
        text, gap = self._cut(whole, total_lines, handle)
        return Bounded(text, total_lines, self._done.total, self.total_bytes, replaced, gap, handle)

    def _fits(self, text: str, lines: int) -> bool:
        limits = self._limits
        if len(text) > limits.held_chars or (limits.lines is not None and lines > limits.lines):
            return False
        return self._count(show_controls(text)) <= limits.tokens

    def _cut(self, whole: str | None, total_lines: int, handle: str | None) -> tuple[str, Gap]:
        head, tail = (whole, whole) if whole is not None else self._done.ends()
        head, tail = show_controls(head), show_controls(tail)
        limits, count = self._limits, self._count
        # The longest notice there can be: every number as long as the totals.
        big = max(self._done.total, 10)
        widest = Gap(total_lines, total_lines, total_lines, big, total_lines, big, total_lines, big, handle, False)
        notice = self._notice(widest, partial=True)
        room_tokens = limits.tokens - count(notice)
        room_chars = limits.held_chars - len(notice)
        for _ in range(12):
            if room_tokens <= 0 or room_chars <= 0:
                break
            text, gap = self._assemble(head, tail, whole is not None, total_lines, room_tokens, room_chars, handle)
            used, size = count(text), len(text)
            if used <= limits.tokens and size <= limits.held_chars:
                return text, gap
            room_tokens -= max(used - limits.tokens, room_tokens // 50, 1)
            room_chars -= max(size - limits.held_chars, 0)
        gap = self._gap(0, 0, "", "", total_lines, handle)
        return self._smallest(gap), gap

    def _assemble(
        self, head: str, tail: str, whole: bool, total_lines: int, tokens: int, chars: int, handle: str | None
    ) -> tuple[str, Gap]:
        limits = self._limits
        share = min(limits.head, 1.0)
        lines_head = None if limits.lines is None else max(1, round(limits.lines * share))
        end = head_end(
            head,
            max(1, int(tokens * share)),
            self._count,
            lines=lines_head,
            chars=max(1, int(chars * share)),
            whole=whole,
        )
        begin = len(tail)
        if share < 1:
            left = max(1, tokens - self._count(head[:end]))
            lines_tail = None if limits.lines is None else limits.lines - head.count("\n", 0, end)
            begin = tail_start(
                tail, left, self._count, lines=lines_tail, chars=max(1, chars - end), whole=whole
            )  # fmt: skip
            if whole:
                begin = max(begin, end)
        first, last = head[:end], tail[begin:]
        gap = self._gap(end, len(last), first, last, total_lines, handle)
        partial = bool(first and not first.endswith("\n"))
        notice = self._notice(gap, partial=partial or gap.first > gap.last)
        return (first + ("\n" if partial else "") + notice + "\n" + last), gap

    def _gap(self, head: int, tail: int, first: str, last: str, total_lines: int, handle: str | None) -> Gap:
        total = self._done.total
        head_lines = first.count("\n")
        # Character of the first missing one in its line, and whether that line is shown in part.
        char = head - (first.rfind("\n") + 1) + 1
        tail_lines = last.count("\n") + (1 if last and not last.endswith("\n") else 0)
        # A tail that starts inside a line shows that line in part only.
        tail_first = total_lines - tail_lines + 1
        starts_inside = bool(last) and not self._starts_line(total - tail, head, first, last)
        if starts_inside:
            tail_first += 1
        start = head_lines + (2 if char > 1 else 1)
        end = tail_first - (2 if starts_inside else 1)
        return Gap(
            start,
            end,
            max(0, end - start + 1),
            total - head - tail,
            total_lines,
            total,
            head_lines + 1,
            char,
            handle,
            self._spool.complete,
        )

    def _starts_line(self, at: int, head: int, first: str, last: str) -> bool:
        """Whether the tail, which starts at character `at` of the whole, starts at a line's beginning."""
        if at == head:
            return not first or first.endswith("\n")
        tail = self._done.ends()[1]
        before = len(tail) - len(last) - 1
        return before >= 0 and tail[before] == "\n"

    def _notice(self, gap: Gap, *, partial: bool) -> str:
        advice = self._advise(gap)
        if self._spool.error:
            advice = f"{advice} The original could not be kept: {self._spool.error[:200]}.".strip()
        missing = f"{gap.chars} of {gap.total_chars} characters"
        total = f"{gap.total_lines} line" + ("" if gap.total_lines == 1 else "s")
        if gap.lines:
            after = gap.last + 1
            shown = [f"1-{gap.first - 1}"] if gap.first > 1 else []
            shown += [f"{after}-{gap.total_lines}"] if after <= gap.total_lines else []
            cut = " (the lines at the cut in part)" if partial else ""
            said = f"lines {' and '.join(shown)} of {gap.total_lines} shown{cut}" if shown else f"0 of {total} shown"
            said += f"; left out: {gap.first}-{gap.last} ({gap.lines} lines), {missing}"
        else:
            said = f"{total}; left out: {missing}, from line {gap.line} character {gap.char}"
        return f"[... {said}. {advice}".rstrip() + " ...]"

    def _smallest(self, gap: Gap) -> str:
        """For caps that do not even hold the notice: what still fits, from much to nothing."""
        limits = self._limits
        for text in (
            f"[... {gap.total_lines} lines, {gap.total_chars} characters not shown ...]",
            f"[{gap.total_chars} chars cut]",
            "[cut]",
        ):
            if self._count(text) <= limits.tokens and len(text) <= limits.held_chars:
                return text
        return ""
