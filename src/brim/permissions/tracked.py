"""What a repository tracks, read out of its index: names and object ids, without running git.

The index is git's list of the files of the next commit. Versions 2 to 4 are read; of one that is split or holds whole
folders as one entry it is not known what it tracks.
"""

from __future__ import annotations

import os
from functools import lru_cache

import msgspec

_LARGEST = 64 * 2**20
"""Bytes of the largest index that is read: some 600,000 files."""


class Repository(msgspec.Struct, frozen=True):
    """`top`: the folder of its files; `files`: name below `top` and object id in hex, None where they are not known."""

    top: str
    files: tuple[tuple[str, str], ...] | None


def repository_of(folder: str) -> Repository | None:
    """The repository that a folder (absolute) lies in; None where it lies in none."""
    top = os.path.realpath(folder)
    while True:
        place = os.path.join(top, ".git")
        if os.path.isdir(place):
            return Repository(top, _files(place))
        if os.path.isfile(place):
            return Repository(top, _files(_linked(place)))
        if top == "/":
            return None
        top = os.path.dirname(top)


def _linked(file: str) -> str:
    """The folder that the `.git` file of a worktree or a submodule names."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as source:
            text = source.read(4096)
    except OSError:
        return file
    return os.path.join(os.path.dirname(file), text.removeprefix("gitdir:").strip())


def _files(git_folder: str) -> tuple[tuple[str, str], ...] | None:
    path = os.path.join(git_folder, "index")
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        return ()
    except OSError:
        return None
    return None if facts.st_size > _LARGEST else _read(path, facts.st_mtime_ns, facts.st_size)


@lru_cache(8)
def _read(path: str, _changed: int, _size: int) -> tuple[tuple[str, str], ...] | None:
    try:
        with open(path, "rb") as file:
            return parse_index(file.read())
    except (OSError, ValueError, IndexError):
        return None


def parse_index(data: bytes) -> tuple[tuple[str, str], ...] | None:
    """Names and object ids of an index; None where it does not hold them all. Raises ValueError, IndexError for no index."""
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index that is known")
    found: list[tuple[str, str]] = []
    position, name = 12, b""
    for _ in range(count):
        start = position
        position += 62 + (2 if version > 2 and data[start + 60] & 0x40 else 0)
        kept = 0
        if version == 4:
            strip, position = _offset(data, position)
            kept = len(name) - strip
        end = data.index(b"\0", position)
        name = name[:kept] + data[position:end]
        if name.endswith(b"/"):
            return None  # a sparse index: a folder in one entry
        found.append((os.fsdecode(name), data[start + 40 : start + 60].hex()))
        position = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
    if data[position : position + 4] == b"link":
        return None  # a split index: most of it is in another file
    return tuple(found)


def _offset(data: bytes, position: int) -> tuple[int, int]:
    """A number of git's, seven bits a byte and one added for each further byte, and where it ends."""
    byte = data[position]
    value = byte & 0x7F
    while byte & 0x80:
        position += 1
        byte = data[position]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, position + 1
