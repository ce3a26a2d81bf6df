"""Files as lines of bytes, whatever they are packed in: plain, gzip, zstd, bzip2 or xz, UTF-8 or UTF-16, a pipe, stdin.

What a file is packed in is told by its first bytes, never by its name. Lines are handed out one at a time, so memory
does not grow with the file. What is no file on disk (`-` for stdin, a named pipe, `<(…)` of a shell) is written to a
temporary one first, since transcripts are looked at before they are read.
"""

from __future__ import annotations

import glob
import io
import lzma
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from brim.errors import UsageError
from brim.replay.transcript import printable

STDIN = Path("-")
_NAMES = (".jsonl", ".ndjson", ".json")
_PACKED = ("", ".gz", ".zst", ".bz2", ".xz")
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What a damaged or truncated archive raises, beside what `_zstd` turns into an OSError."""


class RawLine(NamedTuple):
    """One line with its end, in UTF-8; `number` from 1; `end`: how many bytes of the file, as it lies there, are read."""

    text: bytes
    number: int
    end: int


class Broken(Exception):
    """A file that cannot be read any further. The message says why, for people."""


def find_files(paths: Iterable[Path]) -> list[Path]:
    """The files named, and those below the folders named that may hold transcripts, sorted. Raises UsageError.

    A name that is no file may be a pattern (`'logs/*.jsonl'`); `-` is stdin. A file that is named twice, or lies in a
    folder named as well, is read once.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        for each in _below(path):
            found.setdefault(each if each == STDIN else each.resolve(), each)
    return list(found.values())


def _below(path: Path) -> Iterator[Path]:
    if path == STDIN:
        yield path
    elif path.is_dir():
        yield from (each for each in sorted(path.rglob("*")) if _may_hold(each) and each.is_file())
    elif path.exists():
        yield path
    elif glob.has_magic(str(path)) and (matches := sorted(glob.glob(str(path), recursive=True))):
        for match in matches:
            yield from _below(Path(match))
    else:
        raise UsageError(f"no file {path}", hint="name transcripts, or folders that hold some")


def _may_hold(path: Path) -> bool:
    return path.name == "brim.db" or path.name.endswith(tuple(name + packed for name in _NAMES for packed in _PACKED))


def name_of(path: Path, *, whole: bool = False) -> str:
    """A file's name, or its `whole` path, as text that can be printed and encoded."""
    return "stdin" if path == STDIN else printable(str(path) if whole else path.name)


def stem_of(path: Path) -> str:
    """The name without what says how the file is packed and what is in it."""
    name = name_of(path)
    for end in (packed for packed in _PACKED if packed and name.endswith(packed)):
        name = name.removesuffix(end)
    return name.rpartition(".")[0] or name


def size_of(path: Path) -> int:
    """Bytes on disk; 0 for what is not there, or is no file."""
    try:
        return path.stat().st_size if path != STDIN else 0
    except OSError:
        return 0


@contextmanager
def on_disk(path: Path) -> Iterator[Path]:
    """The file itself, or a temporary copy of what comes through a pipe or stdin. Raises Broken."""
    try:
        if path != STDIN and stat.S_ISREG(path.stat().st_mode):
            yield path
            return
        with tempfile.TemporaryDirectory(prefix="brim-replay-") as folder:
            copy = Path(folder) / "piped"
            with copy.open("wb") as target:
                if path == STDIN:
                    shutil.copyfileobj(sys.stdin.buffer, target)
                else:
                    with path.open("rb") as source:
                        shutil.copyfileobj(source, target)
            yield copy
    except OSError as error:
        raise Broken(error.strerror or str(error)) from error


def read_lines(path: Path) -> Iterator[RawLine]:
    """The lines of a file on disk. Raises Broken where it cannot be read (any further)."""
    try:
        with path.open("rb") as raw, closing(_decoded(_unpacked(raw))) as lines:
            for number, text in enumerate(lines, 1):
                yield RawLine(text, number, raw.tell())
    except _BROKEN as error:
        raise Broken(getattr(error, "strerror", None) or str(error) or type(error).__name__) from error


def read_whole(path: Path) -> bytes:
    """All of a file on disk, unpacked, in UTF-8. Raises Broken."""
    return b"".join(line.text for line in read_lines(path))


def _unpacked(raw: IO[bytes]) -> Any:
    import bz2
    import gzip

    magic = raw.read(6)
    raw.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=raw)
    if magic.startswith(b"BZh"):
        return bz2.BZ2File(raw)
    if magic.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMAFile(raw)
    return _zstd(raw) if magic.startswith(b"\x28\xb5\x2f\xfd") else raw


def _zstd(raw: IO[bytes]) -> Any:
    source: Any
    if sys.version_info >= (3, 14):
        from compression import zstd

        source, failure = zstd.ZstdFile(raw), zstd.ZstdError
    else:
        try:
            import zstandard
        except ImportError as error:
            raise OSError(0, "packed with zstd, which needs `pip install zstandard` (or Python 3.14)") from error
        source = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        failure = zstandard.ZstdError

    class Reader(io.RawIOBase):
        """Both say in errors of their own what a damaged file is; others say it as an OSError."""

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            try:
                piece = source.read(len(buffer))
            except failure as error:
                raise OSError(0, str(error)) from error
            buffer[: len(piece)] = piece
            return len(piece)

    return io.BufferedReader(Reader(), 1 << 20)


def _decoded(file: Any) -> Generator[bytes, None, None]:
    """The lines in UTF-8. UTF-16 is told by its byte order mark; that of UTF-8 is left away."""
    buffered = file if isinstance(file, io.BufferedReader) else io.BufferedReader(file)
    mark = buffered.peek(3)[:3]
    if mark[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = io.TextIOWrapper(buffered, encoding="utf-16", errors="replace", newline="\n")
        try:
            for line in text:
                yield line.encode("utf-8", "replace")
        finally:
            text.detach()
        return
    if mark == b"\xef\xbb\xbf":
        buffered.read(3)
    yield from buffered
