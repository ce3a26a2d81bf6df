"""The words of a workspace, by chunk: brought up to date by what changed since, and asked for what holds a term.

A file is what its path, time of change and size say. Chunks are contentless rows of FTS5: the index knows which words a
chunk has, how often, and where the chunk stands; the text itself is read from the file when it is shown. What FTS5 must
be told to forget a chunk, its words, is kept beside it, compressed.
"""

from __future__ import annotations

import re
import sqlite3
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from brim.retrieval.chunks import cut_into_chunks
from brim.retrieval.listing import Entry, Listing, suffix_of
from brim.retrieval.words import join_terms

BATCH_FILES = 200
"""Files of one transaction: what is kept where the work is stopped."""
NAMES_WEIGHT = 2.5
"""How much more a word counts in the name of what a chunk defines than in its text."""
_MINIFIED = 400
"""Mean characters of a line above which nobody wrote the file."""
_SECRET_TEXT = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What an update did, in files. `unfinished`: still to be read; `seconds` it took."""

    read: int = 0
    removed: int = 0
    unfinished: int = 0
    seconds: float = 0.0


class Place(msgspec.Struct, frozen=True):
    """A chunk: lines `[start, stop)` of file `file`; `title` is what it is part of."""

    chunk: int
    file: int
    start: int
    stop: int
    title: str


class Index:
    """An open index. Not for several threads at once."""

    def __init__(self, connection: sqlite3.Connection, workspace: Path) -> None:
        self._db = connection
        self.workspace = workspace
        self.files: dict[int, Entry] = {}
        self._count = 0

    def close(self) -> None:
        self._db.close()

    # ---- keeping up --------------------------------------------------------------------------------------------

    def update(
        self, listing: Listing, *, seconds: float | None = None, stop: Callable[[], bool] = lambda: False
    ) -> Change:
        """Takes in what changed since the last update. Ends after `seconds`, or when `stop` says so, with what it has by
        then; the next one goes on from there. Raises sqlite3.Error where another process writes, or the file is damaged."""
        began = time.monotonic()
        rows = self._db.execute(_FILES).fetchall()
        known = {path: (mtime, size) for _, path, mtime, size in rows}
        wanted = {entry.path: entry for entry in listing.entries}
        gone = [path for path in known if path not in wanted]
        fresh = [entry for entry in listing.entries if known.get(entry.path) != (entry.mtime, entry.size)]
        # what people ask about first: code, then what lies near the top
        fresh.sort(key=lambda each: (suffix_of(each.path) not in _FIRST, each.path.count("/"), each.path))
        done = 0
        if gone or fresh:
            done = self._write(gone, fresh, began, seconds, stop)
        self.load(None if gone or fresh else rows)
        return Change(read=done, removed=len(gone), unfinished=len(fresh) - done, seconds=time.monotonic() - began)

    def _write(
        self,
        gone: Sequence[str],
        fresh: Sequence[Entry],
        began: float,
        seconds: float | None,
        stop: Callable[[], bool],
    ) -> int:
        done = 0
        self._db.execute("begin immediate")
        try:
            for path in gone:
                self._forget(path)
            for entry in fresh:
                if done and (stop() or (seconds is not None and time.monotonic() - began > seconds)):
                    break
                self._read(entry)
                done += 1
                if done % BATCH_FILES == 0:
                    self._db.execute("commit")
                    self._db.execute("begin immediate")
            self._db.execute("commit")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("rollback")
            raise
        return done

    def _forget(self, path: str) -> None:
        row = self._db.execute("select id, words from files where path = ?", (path,)).fetchone()
        if row is None:
            return  # another process was here first
        file, packed = row
        bodies = zlib.decompress(packed).decode("utf-8", "surrogatepass").split("\n")
        rows = self._db.execute("select id, names from chunks where file = ? order by id", (file,)).fetchall()
        for (id, names), body in zip(rows, bodies, strict=bool(rows)):
            self._db.execute(
                "insert into terms (terms, rowid, names, body) values ('delete', ?, ?, ?)", (id, names, body)
            )
            self._db.execute("delete from names where chunk = ?", (id,))
        self._db.execute("delete from chunks where file = ?", (file,))
        self._db.execute("delete from files where id = ?", (file,))

    def _read(self, entry: Entry) -> None:
        stands = self._db.execute("select mtime, size from files where path = ?", (entry.path,)).fetchone()
        if stands == (entry.mtime, entry.size):
            return  # another process was here first
        if stands is not None:
            self._forget(entry.path)
        text = read_text(self.workspace / entry.path)
        lines = text.split("\n") if text else []
        found = [
            (chunk, body)
            for chunk in (cut_into_chunks(text, suffix_of(entry.path)) if text else ())
            if (body := join_terms("\n".join(lines[chunk.start : chunk.end])))
        ]
        packed = zlib.compress("\n".join(body for _, body in found).encode("utf-8", "surrogatepass"), 1)
        file = self._db.execute(
            "insert into files (path, mtime, size, words) values (?, ?, ?, ?)",
            (entry.path, entry.mtime, entry.size, packed),
        ).lastrowid
        first = self._db.execute("select coalesce(max(id), 0) + 1 from chunks").fetchone()[0]
        chunks, terms, defined = [], [], []
        for id, (chunk, body) in enumerate(found, first):
            held = chunk.names or ((chunk.inside,) if chunk.inside else ())
            names = join_terms(" ".join(held))
            chunks.append((id, file, chunk.start, chunk.end, ", ".join(held)[:200], names))
            terms.append((id, names, body))
            defined += [(name.rpartition(".")[2].lower(), id, name) for name in chunk.names if " " not in name]
        self._db.executemany(
            "insert into chunks (id, file, start, stop, title, names) values (?, ?, ?, ?, ?, ?)", chunks
        )
        self._db.executemany("insert into terms (rowid, names, body) values (?, ?, ?)", terms)
        self._db.executemany("insert into names (name, chunk, qualified) values (?, ?, ?)", defined)

    # ---- asking ------------------------------------------------------------------------------------------------

    def load(self, rows: Sequence[tuple[int, str, int, int]] | None = None) -> None:
        """Reads which files there are; `rows` where they were read already."""
        if rows is None:
            rows = self._db.execute(_FILES).fetchall()
        self.files = {id: Entry(path, mtime, size) for id, path, mtime, size in rows}
        self._count = self._db.execute("select count(*) from chunks").fetchone()[0]

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return self._count

    def holders(self, term: str) -> int:
        """How many chunks hold a term."""
        row = self._db.execute("select doc from holders where term = ?", (term,)).fetchone()
        return int(row[0]) if row is not None else 0

    def score(self, term: str) -> list[tuple[int, float]]:
        """(chunk, BM25 score) of the chunks that hold a term, above 0."""
        quoted = term.replace('"', '""')
        found = self._db.execute(
            "select rowid, -bm25(terms, ?, 1.0) from terms where terms match ?", (NAMES_WEIGHT, f'"{quoted}"')
        )
        return found.fetchall()

    def definitions(self, name: str) -> list[tuple[int, str]]:
        """(chunk, qualified name) of what is defined under a name, whatever its case."""
        return self._db.execute("select chunk, qualified from names where name = ?", (name.lower(),)).fetchall()

    def files_of_chunks(self) -> dict[int, int]:
        """The file of every chunk."""
        return dict(self._db.execute("select id, file from chunks"))

    def place(self, chunk: int) -> Place | None:
        """Where a chunk stands; None where it is gone by now."""
        row = self._db.execute("select id, file, start, stop, title from chunks where id = ?", (chunk,)).fetchone()
        return Place(*row) if row is not None else None

    def chunk_at(self, file: int, line: int) -> int | None:
        """The chunk of a file that holds a line, counted from 0."""
        row = self._db.execute(
            "select id from chunks where file = ? and start <= ? and stop > ? limit 1", (file, line, line)
        ).fetchone()
        return int(row[0]) if row is not None else None


_FILES = "select id, path, mtime, size from files"
_first = "py js ts tsx jsx go rs java kt c h cc cpp hpp cs rb php swift scala"
_FIRST = frozenset(_first.split())


def read_text(path: Path) -> str | None:
    """The text of a file; None where it is binary, minified, holds a private key or is gone."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if b"\0" in data[:8192] or _SECRET_TEXT.search(data):
        return None
    text = decode(data)
    if len(text) > 10_000 and len(text) / (text.count("\n") + 1) > _MINIFIED:
        return None
    return text.replace("\r\n", "\n")


def decode(data: bytes) -> str:
    """UTF-8, else GB18030, which old Chinese projects are written in, else what Latin-1 makes of it."""
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")
