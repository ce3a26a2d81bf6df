"""What bounded output must be, said a second time: simply, over the whole of the bytes at once.

Used by the property tests here and by `bench/fuzz_bounded.py`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from brim.tools.bounded import Bounded, BoundedOutput, Limits
from brim.tools.clusters import is_boundary


def count_quarters(text: str) -> int:
    """A counter that is quick and, like real ones, never more than the bytes: a token for every four of them."""
    return (len(text.encode()) + 3) // 4


class KeptBlobs:
    """Originals by hash, in memory: what the fuzzed bytes are compared with."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        handle = hashlib.sha256(data).hexdigest()[:12]
        self.kept[handle] = data
        return handle

    def open_writer(self) -> KeptWriter:
        return KeptWriter(self)

    def get(self, handle: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.kept[handle][offset : None if length is None else offset + length]

    def size(self, handle: str) -> int:
        return len(self.kept[handle])


class KeptWriter:
    def __init__(self, blobs: KeptBlobs) -> None:
        self._blobs, self._data = blobs, bytearray()

    def write(self, data: bytes) -> None:
        self._data += data

    def close(self) -> str:
        return self._blobs.put(bytes(self._data))

    def discard(self) -> None:
        self._data.clear()


def feed(pieces: Sequence[bytes], limits: Limits, blobs: KeptBlobs | None = None) -> Bounded:
    """Bounded output of a stream that comes in these pieces."""
    out = BoundedOutput(limits, count_quarters, blobs=blobs)
    for piece in pieces:
        out.feed(piece)
    return out.finish()


def plain_text(data: bytes) -> str:
    """The whole of the bytes as the text that is to be shown, one character after the other."""
    text = data.decode("utf-8", "replace").replace("\0", "\ufffd").replace("\x9b", "\x1b[")
    text = "".join(_typed_over(_without_escapes(text)))
    lines = []
    for line in text.split("\n"):
        kept = line.rstrip("\r")
        lines.append(kept[kept.rfind("\r") + 1 :])
    return re.sub(r"[\x01-\x08\x0e-\x1f\x7f]", "\ufffd", "\n".join(lines))


def _typed_over(chars: list[str]) -> list[str]:
    """Backspaces go back at most 256 characters of their line; what is typed then stands in the place of what was there."""
    out: list[str] = []
    line: list[str] = []
    back = 0
    for char in "".join(chars):
        if char == "\b":
            back = min(back + 1, len(line))
        elif char in "\n\r":
            out += [*line, char]
            line, back = [], 0
        elif back:
            line[-back] = char
            back -= 1
        else:
            line.append(char)
            if len(line) > 256:
                out.append(line.pop(0))
    return out + line


def _without_escapes(text: str) -> list[str]:
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\x1b":
            out.append(text[at])
            at += 1
            continue
        at += 1
        kind = text[at : at + 1]
        if kind == "[":
            at += 1
            start = at
            while at < len(text) and " " <= text[at] <= "?":
                at += 1
            if at < len(text) and "@" <= text[at] <= "~":
                if text[at] == "G" and text[start:at] in ("", "0", "1"):
                    out.append("\r")
                elif text[at] == "D" and re.fullmatch("[0-9]{0,3}", text[start:at]):
                    out += ["\b"] * min(int(text[start:at] or "1"), 256)
                at += 1
        elif kind and kind in "]PX^_":
            at += 1
            while at < len(text) and text[at] not in "\x07\n\x1b\x9c":
                at += 1
            at += at < len(text) and text[at] in "\x07\x9c"
        elif kind and " " <= kind <= "/":
            while at < len(text) and " " <= text[at] <= "/":
                at += 1
            at += at < len(text) and "0" <= text[at] <= "~"
        elif kind and "0" <= kind <= "~":
            at += 1
    return out


def check(data: bytes, pieces: Sequence[bytes], limits: Limits) -> Bounded:
    """Assert everything that must hold of bounded output for these bytes in these pieces."""
    blobs = KeptBlobs()
    done = feed(pieces, limits, blobs)
    assert done == feed([data], limits, KeptBlobs()), "the result depends on the chunks"

    whole = plain_text(data)
    lines = whole.count("\n") + (1 if whole and not whole.endswith("\n") else 0)
    assert (done.total_lines, done.total_chars, done.total_bytes) == (lines, len(whole), len(data))

    done.text.encode("utf-8")
    assert "\x1b" not in done.text and "\0" not in done.text
    assert count_quarters(done.text) <= limits.tokens and len(done.text) <= limits.held_chars

    if done.gap is None:
        assert done.text == whole and done.handle is None
        return done
    assert done.handle is not None and blobs.kept[done.handle] == data, "the original is not what came in"
    gap = done.gap
    if gap.chars == len(whole):
        return done
    head, notice, tail = _parts(done.text)
    head_end, tail_start = len(head), len(whole) - len(tail)
    if whole[:head_end] != head:
        # A newline was put between a line's part and the notice.
        head_end -= 1
        assert head.endswith("\n") and whole[:head_end] == head[:-1]
    assert whole[tail_start:] == tail
    assert gap.chars == tail_start - head_end > 0
    assert is_boundary(whole, head_end) and is_boundary(whole, tail_start)
    assert str(gap.chars) in notice and str(len(whole)) in notice and str(lines) in notice
    if gap.lines:
        assert f"{gap.first}-{gap.last} ({gap.lines} lines)" in notice
        missing = whole.split("\n")[gap.first - 1 : gap.last]
        assert len(missing) == gap.lines == gap.last - gap.first + 1
        assert "\n".join(missing) in whole[head_end:tail_start]
        if limits.lines is not None:
            assert lines - gap.lines <= limits.lines + 2
    # Where reading goes on is where showing stopped.
    before = whole[:head_end]
    assert (gap.line, gap.char) == (before.count("\n") + 1, head_end - (before.rfind("\n") + 1) + 1)
    return done


_NOTICE = re.compile(r"\[\.\.\. [^\n]* \.\.\.\]\n")


def _parts(text: str) -> tuple[str, str, str]:
    found = [match for match in _NOTICE.finditer(text) if "left out: " in match[0]]
    assert len(found) == 1, text
    return text[: found[0].start()], found[0][0], text[found[0].end() :]
