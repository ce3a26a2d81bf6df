"""One door to either database: pooled connections, short transactions, driver errors turned into brim's.

Statements are SQLAlchemy Core, written once as module constants, compiled once per dialect and run on the driver's
cursor: going through SQLAlchemy's `Connection` for each would cost an append more than SQLite's own commit does.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import NullPool, PoolProxiedConnection
from sqlalchemy.sql import ClauseElement

from brim.errors import ConfigError, StoreError, StoreUnusable

BUSY_WAIT_S = 30.0
"""How long a statement waits for another process's transaction: they are all short."""

Row: TypeAlias = tuple[Any, ...]


class Damaged(StoreUnusable):
    """The database file is damaged: SQLite says so."""


class Unwritable(StoreUnusable):
    """The place of the database cannot be written: a full or failing disk, a read-only folder or file."""


class Clash(StoreError):
    """Another process wrote a row of the same key at the same moment (Postgres; SQLite has one writer at a time)."""


class Work:
    """One transaction, from entering its `with` block to leaving it: runs statements on one cursor.

    A class and not a generator, and with a connection that is at hand: this is entered for every message.
    """

    __slots__ = ("_compiled", "_cursor", "_database", "_raw", "_writes")

    def __init__(self, database: Database, writes: bool) -> None:
        self._database = database
        self._writes = writes
        self._compiled = database.compiled
        self._raw: Any = None

    def __enter__(self) -> Work:
        try:
            self._raw = self._database.take()
            self._cursor = self._raw.cursor()
            if self._database.sqlite:
                self._cursor.execute("BEGIN IMMEDIATE" if self._writes else "BEGIN")
        except BaseException as error:
            self._give_up(error)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            try:
                if self._database.sqlite:
                    # Through the cursor: a statement with rows still to give is reset by it (SQLite would not commit), and
                    # unlike the connection's own commit it is compiled once, which is half of its time.
                    self._cursor.execute("COMMIT" if self._writes else "ROLLBACK")
                    self._cursor.close()
                elif self._writes:
                    self._raw.commit()
                else:
                    self._raw.rollback()
            except BaseException as failure:
                self._give_up(failure)
                raise
            self._database.give_back(self._raw)
        else:
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        """Roll back; raise what is known of the error in brim's words."""
        known = self._database.explain(error)
        with contextlib.suppress(Exception):  # a statement left open, held by a traceback, would keep the file open
            self._cursor.close()
        if self._raw is not None:
            usable = known is None or self._database.sqlite
            try:
                self._raw.rollback()
            except Exception:
                usable = False
            if usable:
                self._database.give_back(self._raw)
            else:
                self._raw.invalidate()
                self._raw.close()
        if known is not None:
            raise known from error

    def run(self, statement: ClauseElement, values: Mapping[str, Any] | None = None) -> Any:
        """Run a module-level statement; returns the cursor."""
        prepared = self._prepared(statement)
        self._cursor.execute(prepared.sql, prepared.bind(values or {}))
        return self._cursor

    def run_many(self, statement: ClauseElement, values: Sequence[Mapping[str, Any]]) -> None:
        prepared = self._prepared(statement)
        self._cursor.executemany(prepared.sql, [prepared.bind(each) for each in values])

    def one(self, statement: ClauseElement, values: Mapping[str, Any] | None = None) -> Row | None:
        row: Row | None = self.run(statement, values).fetchone()
        return row

    def all(self, statement: ClauseElement, values: Mapping[str, Any] | None = None) -> list[Row]:
        rows: list[Row] = self.run(statement, values).fetchall()
        return rows

    @property
    def changed(self) -> int:
        """Rows that the last statement changed."""
        return int(self._cursor.rowcount)

    def _prepared(self, statement: ClauseElement) -> Prepared:
        prepared = self._compiled.get(statement)
        if prepared is None:
            prepared = self._compiled[statement] = Prepared(statement, self._database.engine.dialect)
        return prepared


class Prepared:
    """A statement compiled for one dialect: its SQL, and its parameters in the driver's style."""

    __slots__ = ("_fixed", "_names", "sql")

    def __init__(self, statement: ClauseElement, dialect: Any) -> None:
        compiled: Any = statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
        self.sql: str = compiled.string
        self._fixed: dict[str, Any] = {k: v for k, v in compiled.params.items() if v is not None}
        self._names: list[str] | None = compiled.positiontup if compiled.positional else None

    def bind(self, values: Mapping[str, Any]) -> Any:
        if self._names is None:
            return {**self._fixed, **values}
        if self._fixed:
            values = {**self._fixed, **values}
        return [values[name] for name in self._names]


class Database:
    """A SQLite file or a Postgres database. `where` is how messages to the user name it (no password).

    `still`: a file that nobody can write, this process included, is only read, without a file beside it.
    """

    def __init__(self, url: str, *, path: Path | None = None, durable: bool = True, still: bool = False) -> None:
        self.path = path
        self._still = still
        self.url = url
        self.where = str(path) if path is not None else _without_password(url)
        self.sqlite = path is not None
        self._durable = durable
        self._closed = False
        self._idle: deque[PoolProxiedConnection] = deque()
        self.compiled: dict[ClauseElement, Prepared] = {}
        self.engine: Engine = self._sqlite_engine() if self.sqlite else self._postgres_engine()

    def _sqlite_engine(self) -> Engine:
        # Connections wait in `_idle`: a file needs no look whether it is still there, and a pool's ways take as long as
        # an insert does.
        return create_engine("sqlite://", creator=self._connect_sqlite, poolclass=NullPool, pool_reset_on_return=None)

    def _connect_sqlite(self) -> sqlite3.Connection:
        if self._still:
            return sqlite3.connect(
                f"{Path(str(self.path)).absolute().as_uri()}?immutable=1", uri=True, isolation_level=None,
                check_same_thread=False,
            )  # fmt: skip
        # isolation_level None: the module never opens a transaction of its own; `Work` does.
        connection = sqlite3.connect(str(self.path), timeout=BUSY_WAIT_S, isolation_level=None, check_same_thread=False)
        try:
            _use_wal(connection)
            connection.execute("PRAGMA synchronous=" + ("FULL" if self._durable else "OFF"))
            connection.execute("PRAGMA journal_size_limit=16777216")
        except BaseException:
            connection.close()
            raise
        return connection

    def _postgres_engine(self) -> Engine:
        try:
            return create_engine(self.url, pool_pre_ping=True, connect_args={"connect_timeout": 10})
        except ImportError as error:
            raise ConfigError(
                "the Postgres driver (psycopg) is not installed", hint="install it with: pipx install 'brim[postgres]'"
            ) from error

    def write(self) -> Work:
        """A transaction that is committed, and durable, when its block ends without an error."""
        return Work(self, True)

    def read(self) -> Work:
        """One consistent snapshot; whatever the block does, nothing is written."""
        return Work(self, False)

    def take(self) -> PoolProxiedConnection:
        """A connection for one transaction."""
        try:
            return self._idle.pop()
        except IndexError:
            return self.engine.raw_connection()

    def give_back(self, raw: PoolProxiedConnection) -> None:
        if self.sqlite and not self._closed:
            self._idle.append(raw)
        else:
            raw.close()

    @contextlib.contextmanager
    def definition(self) -> Iterator[Connection]:
        """A SQLAlchemy connection in one write transaction, for creating and migrating tables."""
        try:
            with self.engine.connect() as connection:
                if self.sqlite:
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                else:
                    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7263846198)")
                yield connection
                connection.commit()
        except BaseException as error:
            known = self.explain(error)
            if known is not None:
                raise known from error
            raise

    def shrink(self) -> None:
        """Give the file's free pages back to the disk (SQLite)."""
        connection = self._connect_sqlite()
        try:
            connection.execute("PRAGMA incremental_vacuum").fetchall()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            known = self._explain_sqlite(error)
            if known is not None and not isinstance(known, StoreUnusable):
                return  # others are busy in it: the next time will do
            raise known or error from error
        finally:
            connection.close()

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        self.engine.dispose()

    def explain(self, error: BaseException) -> StoreError | None:
        """The brim error for a driver's error; None for anything that is not the database's doing."""
        cause = getattr(error, "orig", None) or error
        if isinstance(cause, sqlite3.Error):
            return self._explain_sqlite(cause)
        if type(cause).__module__.startswith("psycopg"):
            return self._explain_postgres(cause)
        return None

    def _explain_sqlite(self, error: sqlite3.Error) -> StoreError | None:
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        undecodable = str(error).startswith("Could not decode to UTF-8")  # the module's own error: it has no code
        if undecodable or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return Damaged(
                f"the session database {self.where} is damaged: {str(error)[:200]}",
                hint="what can be read opens read-only; `brim sessions export` saves it",
            )
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            what = "the disk is full" if code == sqlite3.SQLITE_FULL else f"the disk fails ({error})"
            return Unwritable(
                f"cannot write the session database {self.where} ({_size(self.path)}): {what}; "
                "everything acknowledged before is safe",
                hint="free some space, or go on without saving: --no-session",
            )
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            return Unwritable(
                f"cannot write the session database {self.where}: {error}",
                hint="make the folder writable, set BRIM_DATA_DIR to another one, or run without saving: --no-session",
            )
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreError(
                f"the session database {self.where} was locked by another process for {BUSY_WAIT_S:.0f} s",
                hint="see which process holds it open, then try again",
            )
        return None

    def _explain_postgres(self, error: BaseException) -> StoreError | None:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if "UniqueViolation" in kinds:
            return Clash(f"another process wrote the same to {self.where} at this moment", hint="try again")
        if kinds & {"DiskFull", "ReadOnlySqlTransaction", "InsufficientPrivilege"}:
            return StoreUnusable(f"the database {self.where} refuses to write: {error}", hint="ask its administrator")
        if kinds & {"OperationalError", "InterfaceError"}:
            return StoreUnusable(
                f"cannot use the database {self.where}: {str(error).strip()}",
                hint="check that it runs and that the URL is right, or run without saving: --no-session",
            )
        return None


def _use_wal(connection: sqlite3.Connection) -> None:
    # Turning WAL on needs the file alone for a moment and does not wait by itself.
    end = time.monotonic() + BUSY_WAIT_S
    while True:
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
                return
            if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
                connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # only possible before the first table
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if (error.sqlite_errorcode & 0xFF) != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _without_password(url: str) -> str:
    from sqlalchemy import make_url

    return make_url(url).render_as_string(hide_password=True)


def _size(path: Path | None) -> str:
    if path is None:
        return "size unknown"
    total = 0
    for name in (str(path), f"{path}-wal"):
        with contextlib.suppress(OSError):
            total += os.path.getsize(name)
    return f"{total:,} bytes"
