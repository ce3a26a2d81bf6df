"""Streamed Markdown cut into blocks: what is finished and may be printed for good, and the tail that may still change.

A block is finished where an empty line is followed by a line that is not indented: an indented one may go on in a list.
A fence at the left border is finished with its closing line. Each line is looked at once, however long the tail grows.
"""

from __future__ import annotations

import re

_OPENS = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})")
_CLOSES = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*$")
_TABLE_RULE = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)+\s*(?::?-+:?\s*)?$")


class Blocks:
    """Takes text as it comes. `tail` is what `feed` has not given out as finished."""

    def __init__(self) -> None:
        self.tail = ""
        self._at = 0
        """How far the tail was looked at: the begin of the line that is still written."""
        self._border = 0
        """Where the tail can be cut if the next line is not indented; 0 for nowhere."""
        self._fence = ""
        self._opening = ""
        self._indented = False

    def feed(self, text: str) -> str:
        """More text; returns the blocks that are finished with it."""
        self.tail += text
        end = 0
        while (newline := self.tail.find("\n", self._at)) >= 0:
            line = self.tail[self._at : newline]
            if self._border and line.strip():
                end = end if line[0].isspace() else self._border
                self._border = 0
            self._at = newline + 1
            end = self._look(line) or end
        if self._border and self._at < len(self.tail) and not self.tail[self._at].isspace():
            end, self._border = self._border, 0
        done, self.tail = self.tail[:end], self.tail[end:]
        self._at -= end
        self._border = max(0, self._border - end)
        return done

    def _look(self, line: str) -> int:
        """Takes in a whole line; where the tail can be cut now, or 0."""
        if self._fence:
            closes = _CLOSES.match(line)
            if closes and closes[1].startswith(self._fence):
                self._fence = self._opening = ""
                self._border = self._at
                if not self._indented:
                    self._border = 0
                    return self._at
        elif opens := _OPENS.match(line):
            self._fence, self._indented, self._opening = opens[2], bool(opens[1]), line
        elif not line.strip():
            self._border = self._at
        return 0

    def last(self, rows: int, columns: int) -> str:
        """As much of the tail's end as can fill a screen, to be shown while it is written: a fence that began above is
        opened anew, and a table has its head."""
        size = rows * columns
        short = self.tail[-size:] if len(self.tail) > size else self.tail
        lines = short.split("\n")
        cut = len(short) < len(self.tail)
        if len(lines) > rows:
            lines, cut = lines[-rows:], True
        elif cut and len(lines) > 1:
            lines = lines[1:]
        if not cut:
            return self.tail
        if self._fence:
            return "\n".join([self._opening, *(line for line in lines if line != self._opening)])
        if lines[0].lstrip().startswith("|"):
            return "\n".join([*self._table_head(), *lines])
        return "\n".join(lines)

    def _table_head(self) -> list[str]:
        lines = self.tail.split("\n")
        rules = [place for place, line in enumerate(lines) if place and _TABLE_RULE.match(line)]
        return lines[rules[-1] - 1 : rules[-1] + 1] if rules else []
