"""The index's SQLite file: opened, made where there is none, made anew where it is damaged or of another version.

Everything in it can be made again from the workspace, so nothing in it is worth an error: what cannot be read is thrown
away. Writers take turns; readers never wait (WAL).
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

VERSION = 3
"""Raised when chunks, terms or tables change: an index of another version is made anew."""
WAIT_S = 2.0
UNUSED_S = 90 * 24 * 3600

_TABLES = """
create table if not exists meta (key text primary key, value text) without rowid;
create table if not exists files (
    id integer primary key, path text not null unique, mtime integer not null, size integer not null, words blob not null
);
create table if not exists chunks (
    id integer primary key, file integer not null, start integer not null, stop integer not null, title text not null,
    names text not null
);
create index if not exists chunks_of_file on chunks (file);
create table if not exists names (name text not null, chunk integer not null, qualified text not null);
create index if not exists names_by_name on names (name);
create index if not exists names_of_chunk on names (chunk);
create virtual table if not exists terms using fts5 (names, body, content='', tokenize="ascii tokenchars '_'");
create virtual table if not exists holders using fts5vocab (terms, row);
"""


def index_path(folder: Path, workspace: Path) -> Path:
    """Where the index of a workspace lies: one file for each, named by the hash of its path."""
    return folder / f"{hashlib.sha256(str(workspace).encode('utf-8', 'surrogateescape')).hexdigest()[:24]}.db"


def open_database(path: Path | None) -> tuple[sqlite3.Connection, str | None]:
    """A connection, and what had to be done to get it (None: nothing). `path` None keeps the index in memory.

    Raises sqlite3.Error or OSError where there can be none.
    """
    if path is None:
        return _connect(":memory:"), None
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        _remove_unused(path.parent)
    try:
        connection = _connect(str(path))
        with suppress(OSError):
            os.utime(path)  # in use: see `_remove_unused`
        return connection, None
    except sqlite3.OperationalError as error:
        if is_busy(error) or not path.exists():
            raise
        said = str(error)
    except sqlite3.DatabaseError as error:
        said = str(error)
    remove_database(path)
    return _connect(str(path)), f"the index of this workspace was damaged ({said}) and is made anew"


def _remove_unused(folder: Path) -> None:
    """Throws away the indexes of workspaces where nothing was asked for `UNUSED_S`."""
    for each in folder.glob("*.db"):
        with suppress(OSError):
            if time.time() - each.stat().st_mtime > UNUSED_S:
                remove_database(each)


def remove_database(path: Path) -> None:
    """Throws an index away."""
    for end in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + end).unlink()


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process holds the index."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _connect(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(name, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = off")  # a torn index is found and made anew
        connection.execute("pragma cache_size = -32000")
        made = connection.execute("select count(*) from sqlite_master").fetchone()[0]
        version = connection.execute("pragma user_version").fetchone()[0]
        if made and version != VERSION:
            raise sqlite3.DatabaseError(f"version {version}, not {VERSION}")
        if not made:
            connection.execute("begin immediate")
            if not connection.execute("select count(*) from sqlite_master").fetchone()[0]:
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"pragma user_version = {VERSION}")
            connection.execute("commit")
        connection.execute("select count(*) from (select id from chunks limit 1)").fetchone()
        connection.execute("select count(*) from (select rowid from terms('brim') limit 1)").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection
