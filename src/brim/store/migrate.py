"""Bring a database to the newest schema: created at head in one go, migrated by Alembic, or refused where it is newer.

Alembic (0.1 s to import) is loaded only for a real migration; a test holds its revisions and `schema.REVISIONS`
together.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, MetaData, Select, Table, Text, insert, literal_column, select

from brim.errors import StoreUnusable
from brim.store.database import Unwritable
from brim.store.schema import REVISIONS, metadata

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from brim.store.database import Database, Work

MIGRATIONS = Path(__file__).parent / "migrations"

_version = Table("alembic_version", MetaData(), Column("version_num", Text, primary_key=True))
_READ = select(_version.c.version_num)
_HAS_SQLITE: Select[Any] = (
    select(literal_column("1"))
    .select_from(Table("sqlite_master", MetaData()))
    .where(literal_column("name") == literal_column("'alembic_version'"))
)
_TABLES: Select[Any] = select(literal_column("name")).select_from(Table("sqlite_master", MetaData()))
# Not to_regclass: it may answer from a cache that has not heard of a table made while we waited for the lock.
_HAS_POSTGRES: Select[Any] = (
    select(literal_column("1"))
    .select_from(Table("pg_class", MetaData(), schema="pg_catalog"))
    .where(literal_column("relname = 'alembic_version' AND pg_table_is_visible(oid)"))
)


def bring_to_head(database: Database) -> str | None:
    """The revision that it was migrated from; None where it was at the newest, or is new. One transaction: a migration
    that fails leaves all as it was; of one that succeeds an SQLite file's former state is kept beside it. Raises
    StoreUnusable where the database is newer than this brim."""
    with database.read() as work:
        version = _read_version(database, work)
    if version == REVISIONS[-1]:
        return None
    if version is not None:
        _check_known(database, version)
    with database.definition() as connection:
        # Another process may have been here first: look again, now that nobody else can change the tables.
        version = _version_of(database, connection)
        if version is None:
            _must_be_empty(database, connection)
            metadata.create_all(connection, checkfirst=False)
            _version.create(connection)
            connection.execute(insert(_version), {"version_num": REVISIONS[-1]})
        elif version != REVISIONS[-1]:
            _check_known(database, version)
            if database.path is not None:
                _keep_copy(database.path, copy_before(database.path, version))
            _migrate(connection)
            return version
    return None


def copy_before(path: Path, version: str) -> Path:
    """Where an SQLite database stays as it was at schema `version`, for the older brim."""
    return path.with_name(f"{path.name}.schema-{version}")


def _keep_copy(path: Path, copy: Path) -> None:
    """Copies the database, its log with it; no half copy is left where there is no room. Raises Unwritable."""
    unfinished = copy.with_name(f"{copy.name}.tmp")
    try:
        os.close(os.open(unfinished, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(unfinished)) as target:
            source.backup(target)
        unfinished.replace(copy)
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise Unwritable(
                f"{path} is not migrated: no copy of it can be written ({error.strerror})",
                hint="free some space there, or set BRIM_DATA_DIR to another folder",
            ) from error
        raise


def _must_be_empty(database: Database, connection: Connection) -> None:
    if database.sqlite and connection.execute(_TABLES).first() is not None:
        raise StoreUnusable(
            f"{database.where} is the database of another program",
            hint="give the path of a file that does not exist yet",
        )


def _read_version(database: Database, work: Work) -> str | None:
    if work.one(_HAS_SQLITE if database.sqlite else _HAS_POSTGRES) is None:
        return None
    row = work.one(_READ)
    return None if row is None else str(row[0])


def _version_of(database: Database, connection: Connection) -> str | None:
    if connection.execute(_HAS_SQLITE if database.sqlite else _HAS_POSTGRES).first() is None:
        return None
    return connection.execute(_READ).scalar_one_or_none()


def _check_known(database: Database, version: str) -> None:
    if version not in REVISIONS:
        raise StoreUnusable(
            f"the session database {database.where} was written by a newer brim (schema {version}; "
            f"this one knows up to {REVISIONS[-1]})",
            hint="upgrade brim (pipx upgrade brim), or set BRIM_DATA_DIR to another folder",
        )


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
