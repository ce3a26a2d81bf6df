"""What ripgrep prints, read while it streams: blocks of `path NUL line FIELD column FIELD content`, one block a file.

A chunk is taken apart by one regular expression, file by file; only lines that may be shown are looked at one by one.
Of a huge line only a window around its match is held.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from brim.tools.caps import Caps
from brim.tools.child import Stop
from brim.tools.clusters import cut_after, cut_before
from brim.tools.listing import Listing

# A line whose end has not come within this many bytes is looked at through a window around its match.
_LONG_LINE = 64 * 1024
# Bytes kept of a line to either side of where its match starts.
_AROUND = 2_048
_BINARIES_NAMED = 20

FIELD = b"\x1d\x1c\x1d"
"""What ripgrep is told to put between line, column and content: nothing that stands in a text. The column is not there
where the match is the end of a file whose last line has no line end."""

_BLOCK = re.compile(rb"(?m)^(([^\0\n]+)\0[^\n]*\n(?:\2\0[^\n]*\n)*)")
_BINARY = re.compile(rb"(?m)^([^\0\n]+): binary file matches")
# Each is replaced by fixed bytes: that is four times as fast as a template with groups.
_COLUMN = re.compile(FIELD + rb"(?:\d+" + FIELD + rb")?")
_NUMBERS = re.compile(rb"(\d+)" + FIELD + rb"(?:(\d+)" + FIELD + rb")?")
_DOT = re.compile(rb"(?m)^\./")


def as_shown(data: bytes) -> bytes:
    """Lines as ripgrep printed them -> `path:line:content`, each ended by LF alone."""
    if b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    return _DOT.sub(b"", _COLUMN.sub(b":", data)).replace(b"\0", b":")


class Matches:
    """Feed it ripgrep's output. `files`, `binary` and `listing` are what was found; `accept` judges a file by its path.

    Raises Stop from `feed` once more than `caps.grep_lines` lines were found, if `stop_early`.
    """

    def __init__(self, listing: Listing, accept: Callable[[bytes], bool] | None, caps: Caps, stop_early: bool) -> None:
        self.listing = listing
        self.files = 0
        self.binary: list[bytes] = []
        self.binary_count = 0
        self.shortened = False
        """Whether a line that is shown is not all there."""
        self._accept = accept
        self._most = caps.grep_lines
        self._line_chars = caps.line_chars
        self._stop_early = stop_early
        self._rest = b""
        self._long: _LongLine | None = None
        self._name = b""
        self._accepted = True

    def feed(self, data: bytes) -> None:
        if self._long is not None:
            data = self._go_on(data)
            if self._long is not None:
                return
        if self._rest:
            data = self._rest + data
        end = data.rfind(b"\n") + 1
        self._rest = data[end:]
        if end:
            self._blocks(data[:end])
        if len(self._rest) > _LONG_LINE:
            self._begin_long()
        if self._stop_early and self.listing.records > self._most:
            raise Stop

    def close(self) -> None:
        if self._long is not None:
            self._go_on(b"\n")
        elif self._rest:
            self._blocks(self._rest + b"\n")
        self._rest = b""

    def _blocks(self, data: bytes) -> None:
        """Complete lines."""
        if data.count(b"\0") != data.count(b"\n"):
            data = self._with_whole_names(data)
        found = _BLOCK.findall(data)
        if found and not self._all_later(found, data):
            for block, name in found:
                self._block(block, name)
        if b": binary file matches" in data:
            for match in _BINARY.finditer(data):
                self._note_binary(match[1])

    def _with_whole_names(self, data: bytes) -> bytes:
        """A name may hold line ends: what comes before its NUL is one name all the same, shown with a ? for each."""
        lines, begun = [], b""
        for line in data.split(b"\n")[:-1]:
            line = begun + line
            begun = b""
            if b"\0" in line or _BINARY.match(line):
                lines.append(line)
            else:
                begun = line + b"?"
        if begun:
            self._rest = begun[:-1] + b"\n" + self._rest
        return b"".join(line + b"\n" for line in lines)

    def _block(self, block: bytes, name: bytes) -> None:
        if name != self._name:
            self._enter(name)
        if self._accepted:
            shown = self._shown_lines(name, block) if self.listing.wants(name) else []
            self.listing.add(name, block, block.count(b"\n"), shown)

    def _all_later(self, found: list[tuple[bytes, bytes]], data: bytes) -> bool:
        """The short way for most of a large output: files of which no line can be shown. False where that is not so."""
        first, last = found[0][1], found[-1][1]
        if self._accept is not None or first == self._name or self.listing.wants(min(name for _, name in found)):
            return False
        self.files += len(found)
        self._name, self._accepted = last, True
        lines = data.count(b"\n") - (data.count(b": binary file matches") and _lines_of_binaries(data))
        self.listing.add_later([block for block, _ in found], last, lines)
        return True

    def _enter(self, name: bytes) -> None:
        self._name = name
        self._accepted = self._accept is None or self._accept(display(name))
        self.files += self._accepted

    def _note_binary(self, name: bytes) -> None:
        if self._accept is None or self._accept(display(name)):
            self.binary_count += 1
            if len(self.binary) < _BINARIES_NAMED:
                self.binary.append(display(name))

    def _shown_lines(self, name: bytes, block: bytes) -> list[bytes]:
        shown, cut, path = [], len(name) + 1, display(name)
        for line in block.split(b"\n", self._most)[: self._most]:
            if not line:
                break
            numbers = _NUMBERS.match(line, cut)
            assert numbers is not None
            content = line[numbers.end() :]
            match = int(numbers[2] or 1) - 1
            shown.append(self._shown(path + b":" + numbers[1] + b":", content, match, len(content), 0))
        return shown

    def _shown(self, head: bytes, content: bytes, match: int, length: int, start: int) -> bytes:
        """One line for showing; `content` starts at byte `start` of a line of `length` bytes, its match at byte `match`."""
        if length <= self._line_chars:
            return head + content
        self.shortened = True
        return head + shorten(content, match, length, start, self._line_chars)

    def _begin_long(self) -> None:
        name, nul, rest = self._rest.partition(b"\0")
        numbers = _NUMBERS.match(rest)
        if not nul or numbers is None:
            return
        name = name.replace(b"\n", b"?")
        if name != self._name:
            self._enter(name)
        self._long = _LongLine(name, numbers[1], int(numbers[2] or 1) - 1)
        self._rest = b""
        if self._accepted:
            self.listing.store(name, name + b"\0" + numbers[0])
        self._go_on(rest[numbers.end() :])

    def _go_on(self, data: bytes) -> bytes:
        """Feed the long line; returns what comes after it."""
        long = self._long
        assert long is not None
        end = data.find(b"\n")
        piece = data if end < 0 else data[:end]
        long.take(piece)
        if self._accepted:
            self.listing.store(long.name, piece)
        if end < 0:
            return b""
        self._long = None
        if self._accepted:
            shown = []
            if self.listing.wants(long.name):
                head = b"%b:%b:" % (display(long.name), long.number)
                shown = [self._shown(head, bytes(long.window), long.match, long.length, long.start)]
            self.listing.add(long.name, b"\n", 1, shown)
        return data[end + 1 :]


def _lines_of_binaries(data: bytes) -> int:
    return sum(1 for _ in _BINARY.finditer(data))


class _LongLine:
    """A line too long to hold: its length, and a window of bytes around its match."""

    def __init__(self, name: bytes, number: bytes, match: int) -> None:
        self.name, self.number, self.match = name, number, match
        self.start = max(0, match - _AROUND)
        self.length = 0
        self.window = bytearray()

    def take(self, piece: bytes) -> None:
        low = max(0, self.start - self.length)
        high = self.match + _AROUND - self.length
        if high > low:
            self.window += piece[low:high]
        self.length += len(piece)


def shorten(content: bytes, match: int, length: int, start: int, chars: int) -> bytes:
    """About `chars` characters of a line around its match, with marks that give the bytes left out at either side."""
    at = match - start
    before = content[max(0, at - chars * 4) : at].decode("utf-8", "replace")
    after = content[at : at + chars * 4].decode("utf-8", "replace")
    text = before + after
    low = max(0, len(before) - chars // 3)
    high = min(len(text), low + chars)
    low = max(0, min(low, high - chars))
    # A window that starts or ends inside the line may hold half a character at its ends.
    low, high = cut_after(text, low), cut_before(text, high)
    kept = text[low:high].strip("�") if len(text) > chars else text
    left = start + max(0, at - chars * 4) + len(text[:low].encode())
    right = max(0, length - left - len(kept.encode()))
    return (
        (f"[{left} bytes] ... " if left else "").encode()
        + kept.encode()
        + (f" ... [{right} bytes]" if right else "").encode()
    )


def display(path: bytes) -> bytes:
    """A path as it is shown: without the dot of the workspace itself."""
    return path[2:] if path.startswith(b"./") else path
