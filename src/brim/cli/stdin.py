"""What stands on stdin, without ever waiting for somebody who will not write: a prompt never hangs on an open, idle pipe."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Callable

FIRST_BYTE_S = 1.0
"""How long a pipe may take to begin where a prompt is there already; one that has begun is read to its end."""
MOST = 64 * 1024 * 1024
"""More than this is not read: it would never fit a window."""


def read_piped(
    *, required: bool, idle: Callable[[], object] = lambda: None, other: Callable[[str], object] = lambda name: None
) -> str | None:
    """The text on stdin. None where it is a terminal, closed, empty, or (unless `required`) idle, which `idle` is told.
    `other` is told the encoding where it is not UTF-8."""
    stream = sys.stdin
    if stream is None or stream.closed:
        return None
    try:
        descriptor = stream.fileno()
        if os.isatty(descriptor):
            return None if not required else _decode(_read(descriptor), other)
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISCHR(mode) and not required:
        return None  # /dev/null and its like
    if not stat.S_ISREG(mode) and not required and sys.platform != "win32":
        ready, _, _ = select.select([descriptor], [], [], FIRST_BYTE_S)
        if not ready:
            idle()
            return None
    return _decode(_read(descriptor), other)


def _read(descriptor: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while size < MOST and (piece := os.read(descriptor, 1 << 20)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def _decode(data: bytes, other: Callable[[str], object]) -> str | None:
    """Text in whatever encoding it stands, as files are read; what is no text at all is shown as far as it can be."""
    name, start = "utf-8", 0
    if not data.isascii() or 0 in data:
        from brim.tools.encodings import SAMPLE, detect, first_wide

        at = (
            first_wide(data) if data[:SAMPLE].isascii() and 0 not in data[:SAMPLE] else 0
        )  # a sample that tells something
        found = detect(data[at : at + SAMPLE], all_of_it=len(data) <= at + SAMPLE)
        if not isinstance(found, str):
            name, start = found.name, len(found.bom)
            if name != "utf-8":
                other(found.told)
    text = data[start:].decode(name, "replace")
    return text if text.strip() else None


def join_prompt(prompt: str | None, piped: str | None) -> str | None:
    """Prompt and piped text as one message: the text first, marked off, then what is asked of it."""
    if piped is None:
        return prompt
    if prompt is None:
        return piped
    return f"<stdin>\n{piped.rstrip(chr(10))}\n</stdin>\n\n{prompt}"
