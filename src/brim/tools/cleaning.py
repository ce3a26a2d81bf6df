"""Bytes as a program printed them -> text that a model may read, chunk by chunk.

Invalid UTF-8 and NUL become U+FFFD and are counted, terminal escape sequences go. What comes out does not depend on
where the chunks were cut: an unfinished character or escape sequence is held back, in at most a few bytes, until its
rest is there. Line ends and carriage returns are left to the reader of the text.
"""

from __future__ import annotations

import codecs
import re

# CSI; OSC, DCS and the other strings, which end at BEL, at ST (ESC \, its own sequence here) or, so that a stray
# introducer cannot swallow the rest of an output, at a line end; character sets; two-character sequences.
_ESCAPE = re.compile(r"\x1b(?:\[[ -?]*[@-~]?|[\]PX^_][^\x07\n\x1b\x9c]*[\x07\x9c]?|[ -/]+[0-~]?|[0-~])?")
# "Go to column 1" is a carriage return in other clothes.
_COLUMN_ONE = re.compile(r"\x1b\[[01]?G")
# Control characters that have no business in a text; replaced one for one, so that no count changes.
_CONTROLS = {code: "\ufffd" for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n\r\f\v"}


def show_controls(text: str) -> str:
    """`text` with every control character but tab, line ends and form feed shown as U+FFFD, one for one."""
    return text.translate(_CONTROLS)


class Cleaner:
    """Feed bytes, get clean text. `replaced` counts NULs and invalid bytes (sequences) shown as U+FFFD."""

    def __init__(self) -> None:
        self.replaced = 0
        self._bytes = b""
        self._escape = ""

    def feed(self, data: bytes) -> str:
        """The text that is certain after `data`."""
        plain = not self._bytes and data.isascii()
        text = data.decode("ascii") if plain else self._decode(self._bytes + data, final=False)
        return self._clean(text, 0 in data)

    def close(self) -> str:
        """The text that was held back, now that nothing more comes."""
        text = self._clean(self._decode(self._bytes, final=True), False)
        self._bytes, self._escape = b"", ""
        return text

    def _decode(self, data: bytes, *, final: bool) -> str:
        text, used = codecs.utf_8_decode(data, "replace", final)
        self._bytes = data[used:]
        marks = text.count("\ufffd")
        if marks:
            # EF BF BD is U+FFFD itself: it was in the data and is no replacement.
            self.replaced += marks - data[:used].count(b"\xef\xbf\xbd")
        return text

    def _clean(self, text: str, nul: bool) -> str:
        if nul:
            self.replaced += text.count("\0")
            text = text.replace("\0", "\ufffd")
        if self._escape or "\x1b" in text or "\x9b" in text:
            text = self._without_escapes(self._escape + text)
        return text

    def _without_escapes(self, text: str) -> str:
        text = text.replace("\x9b", "\x1b[")
        last = text.rfind("\x1b")
        if last < 0:
            self._escape = ""
            return text
        before, rest = text[:last], text[last:]
        match = _ESCAPE.match(rest)
        self._escape = _unfinished(rest) if match and match.end() == len(rest) else ""
        text = before if self._escape else before + rest
        return _ESCAPE.sub(_stands_for if _COLUMN_ONE.search(text) else "", text)


def _stands_for(sequence: re.Match[str]) -> str:
    return "\r" if _COLUMN_ONE.fullmatch(sequence[0]) else ""


def _unfinished(sequence: str) -> str:
    """What to hold back of an escape sequence that the chunk ended in; "" where it is complete.

    Only what still matters is kept: a sequence may be endless, this is not.
    """
    kind, last = sequence[1:2], sequence[-1]
    if kind == "[":
        complete = len(sequence) > 2 and "@" <= last <= "~"
        return "" if complete else sequence[:5]
    if kind and kind in "]PX^_":
        return "" if len(sequence) > 2 and last in "\x07\x9c" else sequence[:2]
    if kind and " " <= kind <= "/":
        return "" if "0" <= last <= "~" else sequence[:2]
    return "" if kind else sequence
