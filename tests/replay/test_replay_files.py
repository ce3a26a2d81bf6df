"""Files: transcripts are found and read however they are packed, piped or named, and damage costs what it must."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from brim.errors import UsageError
from brim.replay.sources import find_files, read_transcripts
from shared_replay import small_run, write_lines

ROW = {"id": "x", "messages": small_run(3)}
LINES = (json.dumps(ROW) + "\n").encode() * 2


def read(*paths: Path) -> tuple[list[tuple[str, str]], list[str]]:
    warnings: list[str] = []
    found = read_transcripts(find_files(paths), warnings.append)
    return [(each.file, each.transcript.id) for each in found], warnings


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(LINES), bz2.compress(LINES), lzma.compress(LINES), b"\xef\xbb\xbf" + LINES,
        LINES.decode().encode("utf-16"), b"\xfe\xff" + LINES.decode().encode("utf-16-be"), LINES.replace(b"\n", b"\r\n"),
        gzip.compress(LINES.decode().encode("utf-16")), LINES.rstrip(),
    ],
    ids=["gzip", "bzip2", "xz", "bom", "utf-16", "utf-16-be", "crlf", "gzip-utf-16", "no-last-newline"],
)  # fmt: skip
def test_packed_and_encoded(tmp_path: Path, data: bytes) -> None:
    """The first bytes say how a file is packed and encoded; its name does not matter."""
    (tmp_path / "a.jsonl").write_bytes(data)
    assert read(tmp_path / "a.jsonl") == ([("a.jsonl", "x")] * 2, [])


def test_zstd(tmp_path: Path) -> None:
    """Of a zstd file all frames are read, where Python or `zstandard` can."""
    zstandard = pytest.importorskip("zstandard")
    frame = zstandard.compress(LINES)
    (tmp_path / "a.jsonl.zst").write_bytes(frame + frame)
    assert read(tmp_path) == ([("a.jsonl.zst", "x")] * 4, [])
    (tmp_path / "a.jsonl.zst").write_bytes(frame[: len(frame) // 2])
    assert read(tmp_path)[1]


def test_damaged_archives(tmp_path: Path) -> None:
    """A gzip that ends too early, or is none behind its first bytes, is named; what came before is read."""
    rows = b"".join((json.dumps({"id": f"r{n}", "messages": small_run(3, seed=n)}) + "\n").encode() for n in range(200))
    whole = gzip.compress(rows)
    (tmp_path / "a.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.jsonl.gz").write_bytes(whole[:10] + b"\xff" * 50)
    write_lines(tmp_path / "c.jsonl", [ROW])
    found, warnings = read(tmp_path)
    assert 50 < sum(file == "a.jsonl.gz" for file, _ in found) < 200 and found[-1] == ("c.jsonl", "x")
    assert [each.partition(",")[0].partition(":")[0] for each in warnings] == ["a.jsonl.gz", "b.jsonl.gz"]


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    """A file that may not be read, or is gone by the time its turn comes, stops nothing."""
    paths = [write_lines(tmp_path / name, [ROW]) for name in ("a.jsonl", "b.jsonl")]
    found = find_files(paths)
    paths[0].unlink()
    warnings: list[str] = []
    assert [each.file for each in read_transcripts(found, warnings.append)] == ["b.jsonl"]
    assert warnings == ["a.jsonl: cannot be read, No such file or directory"]


def test_pipes_and_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` is stdin, and a named pipe (a shell's `<(…)`) is read to its end."""

    class Piped:
        buffer = io.BytesIO(gzip.compress(LINES))

    monkeypatch.setattr(sys, "stdin", Piped())
    assert read(Path("-")) == ([("stdin", "x")] * 2, [])
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(LINES))
    writer.start()
    assert read(pipe) == ([("pipe", "x")] * 2, [])
    writer.join()


def test_patterns_folders_and_doubles(tmp_path: Path) -> None:
    """A pattern the shell left alone is matched here; a file named twice is read once; a name without a file is an error."""
    for name in ("b/2.jsonl", "a/1.ndjson", "a/3.json.gz", "a/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(LINES)
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "b" / "2.jsonl")
    assert [path.name for path in find_files([tmp_path / "?" / "*.jsonl"])] == ["2.jsonl"]
    assert [path.name for path in find_files([tmp_path])] == ["1.ndjson", "3.json.gz", "2.jsonl"]
    monkey = tmp_path / "a" / ".." / "b" / "2.jsonl"
    assert len(find_files([tmp_path / "b", monkey, tmp_path / "b" / "2.jsonl"])) == 1
    with pytest.raises(UsageError, match="no file"):
        find_files([tmp_path / "*.none"])


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Two files of one name are two files in a report, named with as much of their folders as it takes."""
    for name in ("p/a/runs.jsonl", "p/b/runs.jsonl", "q/b/runs.jsonl", "q/b/other.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write_lines(tmp_path / name, [ROW])
    assert [file for file, _ in read(tmp_path)[0]] == [
        "p/a/runs.jsonl",
        "p/b/runs.jsonl",
        "other.jsonl",
        "q/b/runs.jsonl",
    ]


def test_many_warnings_are_counted(tmp_path: Path) -> None:
    """Of a file with thousands of bad lines the first few are told, then how many more."""
    (tmp_path / "a.jsonl").write_bytes(LINES + b"{half\n" * 3_000 + LINES)
    found, warnings = read(tmp_path / "a.jsonl")
    assert len(found) == 4 and len(warnings) == 6
    assert warnings[-1] == "a.jsonl: 2,995 more like these"


def test_files_of_something_else_are_not_read_whole(tmp_path: Path) -> None:
    """A large file of JSON lines that are no transcripts is put aside after a look at its beginning."""
    row: Any = {"text": "lorem " * 1_000}
    path = write_lines(tmp_path / "a.jsonl", [row] * 5_000)
    tracemalloc.start()
    found, warnings = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found, warnings) == ([], ["a.jsonl: skipped, it holds no transcript"])
    assert peak < 2_000_000 < path.stat().st_size
