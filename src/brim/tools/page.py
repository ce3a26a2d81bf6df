"""A page of a text that streams by: the part that was asked for, and counts of all of it.

Pages join up to the whole: by lines, and inside a line that is longer than a page by characters.
"""

from __future__ import annotations

from typing import Any

from brim.errors import ToolError
from brim.tools.cleaning import show_controls
from brim.tools.clusters import cut_before
from brim.tools.context import ToolContext, ToolOutput
from brim.tools.encodings import Encoding
from brim.tools.fitting import longest_prefix

_MOST_CHARS = 32 * 1024 * 1024


def page_chars(ctx: ToolContext) -> int:
    """How many characters of a page are held before it is cut to its tokens."""
    return min(ctx.caps.read * 10, _MOST_CHARS)


class Page:
    """The asked-for part of a stream of text, and counts of all of it.

    `text` starts at line `offset`, character `char` of it, and holds at most `limit` lines and `most` characters.
    CR LF is read as one line end; a lone CR is kept, but for `only_returns`, where it is a line end, too.
    """

    def __init__(self, offset: int, limit: int | None, char: int, most: int, *, only_returns: bool = False) -> None:
        self.offset, self.limit, self.char = offset, limit, char
        self.replaced = self.crlf = 0
        self.total_lines = self.total_chars = 0
        self.line_chars = 0
        """Characters of line `offset`, its end not counted; known once the stream has passed it."""
        self.lone_returns = False
        self.only_returns = only_returns
        self.unfinished = False
        """Whether the stream goes on after what was fed: the counts are of its beginning."""
        self._most = most
        self._line = 1
        self._column = 0
        self._parts: list[str] = []
        self._size = 0
        self._left = limit
        self._full = False
        self._return = False
        self._ends_open = False

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def is_full(self) -> bool:
        """Whether `text` ended at `most` characters rather than at a line."""
        return self._full

    @property
    def ends_open(self) -> bool:
        """Whether the file's last line has no line end."""
        return self._ends_open

    def feed(self, text: str) -> None:
        if self._return:
            text = "\r" + text
            self._return = False
        if "\r" in text:
            if text.endswith("\r"):
                self._return = True
                text = text[:-1]
            pairs = text.count("\r\n")
            self.crlf += pairs
            if pairs:
                text = text.replace("\r\n", "\n")
            self.lone_returns = self.lone_returns or "\r" in text
            if self.only_returns:
                text = text.replace("\r", "\n")
        if text:
            self._take(text)

    def close(self) -> None:
        if self._return:
            self._return = False
            self.lone_returns = True
            self._take("\n" if self.only_returns else "\r")
        self.total_lines = self._line - 1 + (1 if self._ends_open else 0)

    def _take(self, text: str) -> None:
        self.total_chars += len(text)
        self._ends_open = text[-1] != "\n"
        newlines = text.count("\n")
        at = 0
        if self._line < self.offset:
            if self._line + newlines < self.offset:
                self._line += newlines
                return
            for _ in range(self.offset - self._line):
                at = text.index("\n", at) + 1
            self._line, newlines = self.offset, newlines - (self.offset - self._line)
            self._column = 0
        if self._line == self.offset:
            end = text.find("\n", at)
            stop = len(text) if end < 0 else end
            length = stop - at
            skip = min(max(self.char - 1 - self._column, 0), length)
            self._column += length
            self.line_chars = self._column
            if not self._full:
                self._keep(text, at + skip, newlines)
        elif not self._full:
            self._keep(text, at, newlines)
        self._line += newlines

    def _keep(self, text: str, at: int, newlines: int) -> None:
        if self._left == 0:
            return
        end = len(text)
        if self._left is not None:
            if newlines >= self._left:
                end = at
                for _ in range(self._left):
                    end = text.index("\n", end) + 1
                self._left = 0
            else:
                self._left -= newlines
        room = self._most - self._size
        if end - at > room:
            end = at + room
            self._full = True
        if end > at:
            self._parts.append(text[at:end])
            self._size += end - at


def page_output(page: Page, shown: str, size: int, encoding: Encoding | None, ctx: ToolContext) -> ToolOutput:
    """The page within the cap, with its facts: file, total lines, range shown, and the offset to go on from."""
    lines = f"{page.total_lines} line" + ("" if page.total_lines == 1 else "s")
    if page.unfinished:
        lines = f"more than {lines} (only the first {ctx.caps.read_bytes} bytes were looked at)"
    about = f"{shown}: {lines}, {size} bytes"
    if encoding is not None and encoding != Encoding("utf-8"):
        about += f", {encoding.told}"
    if page.crlf:
        about += (
            ", CRLF line ends"
            if page.crlf >= page.total_lines - page.ends_open
            else f", {page.crlf} of them end in CRLF"
        )
    if page.lone_returns:
        about += ", CR line ends" if page.only_returns else ", with lone CRs"
    if page.total_lines and page.ends_open and not page.unfinished:
        about += ", no newline at the end"
    meta: dict[str, Any] = {
        "path": shown,
        "total_lines": page.total_lines,
        "total_chars": page.total_chars,
        "bytes": size,
        "encoding": None if encoding is None else encoding.name,
        "replaced": page.replaced,
    }
    if page.total_lines == 0:
        return ToolOutput(f"[{shown} exists and is empty (0 lines, {size} bytes)]", False, {**meta, "range": None})
    if page.offset > page.total_lines:
        if page.unfinished:
            raise ToolError(f"{shown} has {lines}", hint=f"use bash: sed -n '{page.offset},+50p;{page.offset + 50}q'")
        raise ToolError(
            f"{shown} has {lines}; offset {page.offset} is past its end",
            hint=f"give an offset from 1 to {page.total_lines}",
        )
    if page.char > 1 and page.char > page.line_chars + 1:
        raise ToolError(
            f"line {page.offset} of {shown} has {page.line_chars} characters; char {page.char} is past its end",
            hint=f"give a char from 1 to {max(page.line_chars, 1)}, or offset {page.offset + 1}",
        )
    return _cut(page, about, meta, ctx)


def _cut(page: Page, about: str, meta: dict[str, Any], ctx: ToolContext) -> ToolOutput:
    text = page.text
    shown = show_controls(text)
    if lost := page.replaced + shown.count("\ufffd") - text.count("\ufffd"):
        about += f"; control characters or invalid bytes shown as U+FFFD: {lost}"
    text = shown
    cap = ctx.caps.read
    # Room for the facts: count them at their longest.
    big = max(page.total_chars, page.total_lines)
    room = cap - ctx.count(
        f"\n[{about}; line {big} from character {big} to {big} of {big} shown. Go on with offset {big}, char {big}.]"
    )
    end = longest_prefix(text, room, ctx.count)
    whole = end == len(text) and not page.is_full
    if not whole:
        line = text.rfind("\n", 0, end) + 1
        if line:
            end = line
        elif (inside := cut_before(text, end if end < len(text) else end - 1)) > 0:
            end = inside
        else:
            end = min(len(text), max(end, 1))
    while True:
        kept = text[:end]
        facts, more = _facts(page, kept, about)
        answer = kept + ("" if not kept or kept.endswith("\n") else "\n") + facts
        if ctx.count(answer) <= cap or end <= 1:
            break
        shorter = end * 9 // 10
        end = (text.rfind("\n", 0, shorter) + 1) or cut_before(text, shorter)
    if ctx.count(answer) > cap:
        answer = answer[: longest_prefix(answer, cap, ctx.count)]
    return ToolOutput(answer, False, {**meta, **more})


def _facts(page: Page, kept: str, about: str) -> tuple[str, dict[str, Any]]:
    first = page.offset
    full_lines = kept.count("\n")
    inside = bool(kept) and not kept.endswith("\n")
    last = first + full_lines - (0 if inside else 1)
    at_end = last >= page.total_lines and (not inside or page.ends_open) and not _cut_inside(page, kept, full_lines)
    if inside and not full_lines and not (page.char == 1 and at_end):
        upto = page.char - 1 + len(kept)
        said = f"line {first}, characters {page.char}-{upto} of {page.line_chars} shown"
        if upto < page.line_chars:
            more = f" Go on with offset {first}, char {upto + 1}."
            going: list[int] | None = [first, upto + 1]
        else:
            more, going = ("", None) if at_end else (f" Go on with offset {first + 1}.", [first + 1, 1])
    else:
        lines = f"line {first}" if first == last else f"lines {first}-{last}"
        start = f" (line {first} from character {page.char})" if page.char > 1 else ""
        if at_end:
            said = f"{lines}{start} shown: " + ("all" if first == 1 and page.char == 1 else "up to the end")
            more, going = "", None
        else:
            said, more, going = f"{lines}{start} shown", f" Go on with offset {last + 1}.", [last + 1, 1]
    return f"[{about}; {said}.{more}]", {"range": [first, last], "next": going}


def _cut_inside(page: Page, kept: str, full_lines: int) -> bool:
    """Whether `kept` ends inside line `offset`."""
    return not full_lines and page.char - 1 + len(kept) < page.line_chars
