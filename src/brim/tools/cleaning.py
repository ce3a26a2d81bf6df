"""Bytes as a program printed them -> text that a model may read, chunk by chunk.

Invalid UTF-8 and NUL become U+FFFD and are counted, terminal escape sequences go, and what was typed over after a
backspace is gone as it is on a terminal. What comes out does not depend on where the chunks were cut: an unfinished
character or escape sequence, and the end of a line, to which a backspace may still go, are held back until what follows
is there. Line ends and carriage returns are left to the reader of the text.
"""

from __future__ import annotations

import codecs
import re

# CSI; OSC, DCS and the other strings, which end at BEL, at ST (ESC \, its own sequence here) or, so that a stray
# introducer cannot swallow the rest of an output, at a line end; character sets; two-character sequences.
_ESCAPE = re.compile(r"\x1b(?:\[[ -?]*[@-~]?|[\]PX^_][^\x07\n\x1b\x9c]*[\x07\x9c]?|[ -/]+[0-~]?|[0-~])?")
# "Go to column 1" is a carriage return in other clothes, "go left" some backspaces.
_MOVES = re.compile(r"\x1b\[(?:[01]?G|(\d{0,3})D)")
# How far back (characters) a line can be typed over.
_REACH = 256
# What is typed over in the next moment, as spinners and counters do without end: gone at once, whatever stood before.
_SPIN = re.compile(
    "|".join(r"[^\x08\n\r]{%d}\x08{%d}(?=[^\x08\n\r]{%d})" % (size, size, size) for size in (1, 2, 3, 4))  # noqa: UP031
)
_TYPED = re.compile(r"[^\x08\n\r]+|\x08+|[\n\r]")
# Control characters that have no business in a text; replaced one for one, so that no count changes.
_CONTROLS = {code: "\ufffd" for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n\r\f\v"}


def show_controls(text: str) -> str:
    """`text` with every control character but tab, line ends and form feed shown as U+FFFD, one for one."""
    return text.translate(_CONTROLS)


def whole_text(text: str) -> str:
    """`text` with every half of a character, and what stands for a byte that is no text, as U+FFFD."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Cleaner:
    """Feed bytes, get clean text. `replaced` counts NULs and invalid bytes (sequences) shown as U+FFFD.

    `overtype=False` is for text in which a backspace is data.
    """

    def __init__(self, *, overtype: bool = True) -> None:
        self.replaced = 0
        self._bytes = b""
        self._escape = ""
        self._line = _Line() if overtype else None

    def feed(self, data: bytes) -> str:
        """The text that is certain after `data`."""
        plain = not self._bytes and data.isascii()
        text = data.decode("ascii") if plain else self._decode(self._bytes + data, final=False)
        return self._clean(text, 0 in data)

    def close(self) -> str:
        """The text that was held back, now that nothing more comes."""
        text = self._clean(self._decode(self._bytes, final=True), False)
        self._bytes, self._escape = b"", ""
        return text if self._line is None else text + self._line.close()

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
        return text if self._line is None else self._line.type(text)

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
        return _ESCAPE.sub(_stands_for if _MOVES.search(text) else "", text)


class _Line:
    """The end of the line that is being typed: where backspaces go back to, and what is typed over."""

    def __init__(self) -> None:
        self._held = ""
        self._back = 0

    def type(self, text: str) -> str:
        """What no backspace can reach any more."""
        if not self._back and "\b" not in text:
            text = self._held + text
            near = max(0, len(text) - _REACH)
            cut = max(text.rfind("\n", near) + 1, text.rfind("\r", near) + 1, near)
            self._held = text[cut:]
            return text[:cut]
        out = []
        for match in _TYPED.finditer(_SPIN.sub("", text)):
            typed, held = match[0], self._held
            if typed[0] == "\b":
                self._back = min(self._back + len(typed), len(held))
            elif typed in ("\n", "\r"):
                out += [held, typed]
                self._held, self._back = "", 0
            else:
                at = len(held) - self._back
                held = held[:at] + typed + held[at + len(typed) :]
                self._back = max(0, self._back - len(typed))
                cut = max(0, len(held) - _REACH)
                out.append(held[:cut])
                self._held = held[cut:]
        return "".join(out)

    def close(self) -> str:
        held, self._held, self._back = self._held, "", 0
        return held


def _stands_for(sequence: re.Match[str]) -> str:
    move = _MOVES.fullmatch(sequence[0])
    if move is None:
        return ""
    return "\r" if sequence[0].endswith("G") else "\b" * min(int(move[1] or 1), _REACH)


def _unfinished(sequence: str) -> str:
    """What to hold back of an escape sequence that the chunk ended in; "" where it is complete.

    Only what still matters is kept: a sequence may be endless, this is not.
    """
    kind, last = sequence[1:2], sequence[-1]
    if kind == "[":
        complete = len(sequence) > 2 and "@" <= last <= "~"
        return "" if complete else sequence[:6]
    if kind and kind in "]PX^_":
        return "" if len(sequence) > 2 and last in "\x07\x9c" else sequence[:2]
    if kind and " " <= kind <= "/":
        return "" if "0" <= last <= "~" else sequence[:2]
    return "" if kind else sequence
