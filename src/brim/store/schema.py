"""The tables, once for SQLite and Postgres, and the list of schema revisions this brim knows.

`messages` is append-only: nothing but deleting a whole session ever removes a row. Times are Unix seconds and only
shown, never used to order: the order of messages is `seq`, of sessions `touched`, of requests `id`, so a clock that
jumps changes nothing. Flags are small integers and JSON is text, so that rows need no conversion on either database.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    bindparam,
    insert,
)
from sqlalchemy.sql.dml import Insert

REVISIONS = ("0001", "0002")
"""Every revision, oldest first; the last is the head that a fresh database is created at."""

_Key = BigInteger().with_variant(Integer, "sqlite")  # only INTEGER PRIMARY KEY is SQLite's rowid

metadata = MetaData()

sessions = Table(
    "sessions",
    metadata,
    Column("n", _Key, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("project", Text, nullable=False),
    Column("title", Text),
    Column("created", Double, nullable=False),
    Column("touched", BigInteger, nullable=False),  # a counter over all sessions: the highest was used last
    Column("mode", Text),
    Column("model", Text),
    Column("parent", Text),
    Column("parent_seq", BigInteger),
    Column("archived", SmallInteger, nullable=False),
    Column("meta", Text),
    Column("plan", Text),  # the plan a fork starts from
    Index("sessions_project", "project", "touched"),
)

messages = Table(
    "messages",
    metadata,
    Column("session", BigInteger, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("role", Text, nullable=False),
    Column("api", Text, nullable=False),
    Column("piece", Integer),  # which of the messages that `body`, a wire object, holds; NULL: `body` is a Message
    Column("body", Text),  # NULL: in the row `piece` rows before this one
    Column("hash", Text, nullable=False),  # of body (and piece), to tell damage
    Column("created", Double, nullable=False),
    Column("incomplete", SmallInteger, nullable=False),
    Column("meta", Text),
)

drafts = Table(
    "drafts",
    metadata,
    Column("session", BigInteger, primary_key=True, autoincrement=False),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("chunk", Text, nullable=False),  # a JSON string: Postgres text cannot hold NUL
)

requests = Table(
    "requests",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("session", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),  # messages the session had when the request was made
    Column("created", Double, nullable=False),
    Column("day", Text, nullable=False),  # local date, YYYY-MM-DD
    Column("mode", Text),
    Column("model", Text),
    Column("plan", Text),  # the change against the plan before, NULL: no plan came with this request
    Column("plan_whole", SmallInteger, nullable=False),  # 1: `plan` needs no plan before it
    Column("bill", Text),
    Column("input", BigInteger),
    Column("cached_read", BigInteger),
    Column("cached_write", BigInteger),
    Column("output", BigInteger),
    Column("reasoning", BigInteger),
    Column("cached_write_1h", BigInteger),  # of cached_write, what was written for an hour
    Column("cost", Double),  # US dollars, NULL: no price known
    Column("duration", Double),  # seconds
    Column("ttft", Double),  # seconds to the first text
    Column("finish", Text),
    Column("error", Text),
    Column("meta", Text),
    Index("requests_session", "session", "id"),
    Index("requests_day", "day"),
)

leases = Table(
    "leases",
    metadata,
    Column("session", BigInteger, primary_key=True, autoincrement=False),
    Column("holder", Text, nullable=False),  # one open store
    Column("place", Text, nullable=False),  # the machine (boot, process namespace) whose process ids `pid` is one of
    Column("host", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("started", Text, nullable=False),  # when that process started, as its system tells it
    Column("since", Double, nullable=False),
    Column("expires", Double, nullable=False),
)

blobs = Table(
    "blobs",
    metadata,
    Column("n", _Key, primary_key=True),
    Column("hash", Text),  # sha256 of the bytes stored; NULL while they are being written
    Column("size", BigInteger, nullable=False),  # bytes stored, before compression
    Column("packed", BigInteger, nullable=False),  # bytes after compression
    Column("total", BigInteger, nullable=False),  # bytes there were; more than `size` where the cap cut
    Column("created", Double, nullable=False),
    Index("blobs_hash", "hash"),  # not unique: two writers of one text at once keep both, which harms nobody
)

blob_chunks = Table(
    "blob_chunks",
    metadata,
    Column("blob", BigInteger, primary_key=True, autoincrement=False),
    Column("start", BigInteger, primary_key=True, autoincrement=False),  # offset of the chunk's first byte
    Column("data", LargeBinary, nullable=False),
)

blob_uses = Table(
    "blob_uses",
    metadata,
    Column("blob", BigInteger, primary_key=True, autoincrement=False),
    Column("session", BigInteger, primary_key=True, autoincrement=False),
    Index("blob_uses_session", "session"),
)


def row_into(table: Table) -> Insert:
    """A statement that inserts one row: every column by its name, but for a key that the database counts up itself."""
    counted = table.autoincrement_column
    return insert(table).values({c.name: bindparam(c.name, type_=c.type) for c in table.columns if c is not counted})
