"""Reading what can be read of a damaged SQLite file.

The file is copied first and never touched. Rows are read in the order of their keys; where a page is unreadable the
reader jumps ahead until rows come again, then narrows the gap from behind. Messages are checked against their hash.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Table

from brim.store.bodies import digest
from brim.store.schema import blob_chunks, blob_uses, blobs, drafts, messages, requests, sessions

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from brim.store.database import Database

BATCH = 200


def save_what_can_be(path: Path, into: Database) -> str:
    """Copy every readable row of the file into a fresh database; returns a sentence on what was saved and what lost."""
    with tempfile.TemporaryDirectory(prefix="brim-salvage-") as folder:
        copy = Path(folder) / "copy.db"
        for suffix in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        source = sqlite3.connect(copy, isolation_level=None)
        source.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            source.execute("PRAGMA writable_schema=ON")  # go on past a schema that does not quite parse
            with into.definition() as target:
                counts = {
                    table.name: _copy(source, target, table)
                    for table in (sessions, messages, drafts, requests, blobs, blob_chunks, blob_uses)
                }
                _adopt_orphans(target)
        finally:
            source.close()
    saved = ", ".join(f"{good:,} {name}" for name, (good, _) in counts.items() if name in ("sessions", "messages"))
    originals = counts["blobs"][0]
    lost = sum(bad for _, bad in counts.values())
    return f"Saved: {saved}, {originals:,} originals. " + (
        f"{lost:,} rows or ranges of rows could not be read." if lost else "Nothing that was found was unreadable."
    )


def _copy(source: sqlite3.Connection, target: Connection, table: Table) -> tuple[int, int]:
    """Rows copied, and rows or ranges lost."""
    there = _columns(source, table.name)
    names = [column.name for column in table.columns if not there or column.name in there]
    batch: list[dict[str, Any]] = []
    seen: set[tuple[Any, ...]] = set()
    good = bad = 0

    def write() -> None:
        if batch:
            target.execute(table.insert(), batch)
            batch.clear()

    for row in _rows(source, table.name, names):
        if row is None or not _sound(table, values := dict(zip(names, row, strict=True))):
            bad += 1
            continue
        key = tuple(values[column.name] for column in table.primary_key.columns)
        if key in seen:
            continue
        seen.add(key)
        batch.append(values)
        good += 1
        if len(batch) >= BATCH:
            write()
    write()
    return good, bad


def _rows(source: sqlite3.Connection, table: str, names: list[str]) -> Iterator[tuple[Any, ...] | None]:
    """Rows in key order, None for each gap."""
    query = f"SELECT rowid, {', '.join(names)} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"  # noqa: S608
    end = _last(source, table)
    at = 0
    while True:
        try:
            for row in source.execute(query, (at,)):
                at = row[0]
                yield row[1:]
            return
        except sqlite3.OperationalError as error:
            if "no such table" in str(error) or "no such column" in str(error):
                yield None
                return
            gap = _next_readable(source, query, at, end)
        except sqlite3.DatabaseError:
            gap = _next_readable(source, query, at, end)
        yield None
        if gap is None:
            return
        at = gap


def _columns(source: sqlite3.Connection, table: str) -> set[str]:
    """The columns that the file's table has: fewer than ours where an older brim made it. Empty where none can be told."""
    with contextlib.suppress(sqlite3.DatabaseError):
        return {row[1] for row in source.execute(f"PRAGMA table_info({table})")}
    return set()


def _last(source: sqlite3.Connection, table: str) -> int:
    """The highest key, or more than any file holds where it cannot be read."""
    with contextlib.suppress(sqlite3.DatabaseError):
        row = source.execute(f"SELECT max(rowid) FROM {table}").fetchone()  # noqa: S608
        return int(row[0] or 0)
    return 2**40


def _next_readable(source: sqlite3.Connection, query: str, bad: int, end: int) -> int | None:
    """The smallest key found, past `bad`, from which on a row can be read."""
    step = 1
    while bad + step <= end:
        if _readable(source, query, bad + step):
            low, high = bad + step // 2, bad + step  # reading fails from `low`, works from `high`
            while high - low > 1:
                middle = (low + high) // 2
                if _readable(source, query, middle):
                    high = middle
                else:
                    low = middle
            return high
        step *= 2
    return None


def _readable(source: sqlite3.Connection, query: str, at: int) -> bool:
    try:
        return source.execute(query, (at,)).fetchone() is not None
    except sqlite3.DatabaseError:
        return False


def _sound(table: Table, values: dict[str, Any]) -> bool:
    for column in table.columns:
        value = values.get(column.name)
        if value is None:
            if not column.nullable:
                return False
        elif not isinstance(value, _TYPES[type(column.type.as_generic()).__name__]):
            return False
    if table is messages and values["body"] is not None:
        return bool(values["hash"] == digest(values["body"], values["piece"]))
    return True


_TYPES: dict[str, tuple[type, ...]] = {
    "BigInteger": (int,),
    "Integer": (int,),
    "SmallInteger": (int,),
    "Text": (str,),
    "Double": (float, int),
    "LargeBinary": (bytes,),
}


def _adopt_orphans(target: Connection) -> None:
    """Messages whose session row is lost get one, so that they can be reached."""
    target.exec_driver_sql(
        "INSERT INTO sessions (n, id, project, title, created, touched, archived) "
        "SELECT DISTINCT session, 'saved-' || session, '', 'saved from a damaged database', 0, 0, 0 FROM messages "
        "WHERE session NOT IN (SELECT n FROM sessions)"
    )
