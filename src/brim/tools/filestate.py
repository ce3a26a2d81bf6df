"""What a session knows of the files it read and wrote: enough to see that somebody else changed one meanwhile."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from brim.errors import ToolError
from brim.tools.context import FileState, ToolContext

# A larger file is judged by size, time and inode alone.
_HASHED = 16 * 1024 * 1024


def stamp_of(stat: os.stat_result) -> tuple[int, int, int]:
    """What changes, as a rule, whenever somebody writes a file."""
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def state_of(fd: int) -> FileState:
    """The present state of an open file; its position is left alone."""
    stat = os.fstat(fd)
    digest = None
    if stat.st_size <= _HASHED:
        sha, at = hashlib.sha256(), 0
        while data := os.pread(fd, 1024 * 1024, at):
            sha.update(data)
            at += len(data)
        digest = sha.hexdigest()
    return FileState(stat.st_mtime_ns, stat.st_size, stat.st_ino, digest)


def remember(ctx: ToolContext, path: Path, fd: int) -> None:
    """Note the state of a file that a tool has just read or written."""
    ctx.files[path] = state_of(fd)


def refuse_changed(ctx: ToolContext, path: Path, shown: str, fd: int) -> None:
    """Raises ToolError if the file is not what it was when it was last read or written here. A file never read passes."""
    known = ctx.files.get(path)
    if known is None:
        return
    stat = os.fstat(fd)
    if stamp_of(stat) == (known.modified_ns, known.size, known.inode):
        return
    now = state_of(fd)
    if now.digest is not None and now.digest == known.digest:
        return
    raise ToolError(
        f"{shown} has changed since it was read ({known.size} bytes then, {now.size} now); nothing was written",
        hint="read it again, then repeat the change",
    )
