"""Databases of other versions: migrated, refused, created once."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest

from brim.conversation import user
from brim.errors import ConfigError, StoreUnusable
from brim.store import open_store
from brim.store.database import Database
from brim.store.migrate import MIGRATIONS
from brim.store.schema import REVISIONS, metadata


def test_revisions_are_alembics() -> None:
    """The revisions that brim knows by heart are those of the migration scripts, in their order."""
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    assert [script.revision for script in scripts.walk_revisions()][::-1] == list(REVISIONS)


def _at_revision(url: str, revision: str) -> Database:
    """A database as an older brim left it."""
    from alembic import command
    from alembic.config import Config

    path = None if "://" in url else Path(url)
    if path is not None:
        path.parent.mkdir(parents=True)
    database = Database(url.replace("postgresql://", "postgresql+psycopg://"), path=path)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with database.definition() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    return database


def test_older_database_is_migrated(url: str) -> None:
    """A database of the first schema opens, keeps what it holds, and has the newest tables."""
    old = _at_revision(url, "0001")
    with old.definition() as connection:
        connection.exec_driver_sql(
            "INSERT INTO sessions (n, id, project, title, created, touched, archived) "
            "VALUES (1, 'old', '/work', 'from before', 5.0, 1, 0)"
        )
        connection.exec_driver_sql(
            "INSERT INTO messages (session, seq, role, api, body, hash, created, incomplete) VALUES (1, 0, 'user', '', "
            '\'{"role":"user","parts":[{"type":"text","text":"hello","wire":null}]}\', \'\', 5.0, 0)'
        )
    old.close()
    with open_store(url) as store:
        assert store.get_session("old").title == "from before"
        assert [each.message for each in store.load("old")] == [user("hello")]
        store.append("old", [user("more")])
        store.record_request("old", usage={"input": 5, "cached_write": 3, "cached_write_1h": 2})
        assert store.requests("old")[0].cached_write_1h == 2
        former = store.former
    if "://" in url:
        assert former is None
        return
    assert former == Path(f"{url}.schema-0001") and stat.S_IMODE(former.stat().st_mode) == 0o600
    with closing(sqlite3.connect(former)) as before:  # as the older brim left it
        assert before.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]
        assert before.execute("SELECT title FROM sessions").fetchall() == [("from before",)]
        assert before.execute("SELECT count(*) FROM messages").fetchall() == [(1,)]
    assert sorted(each.name for each in former.parent.iterdir() if each.suffix == ".tmp") == []


def test_migrated_and_fresh_are_the_same(url: str) -> None:
    """Migrating from the first schema ends in the tables that a fresh database is created with."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    _at_revision(url, "0001").close()
    with open_store(url) as store, store.database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_newer_database_is_refused(url: str) -> None:
    """A database that a newer brim wrote is left alone, with a word why and what to do."""
    with open_store(url) as store:
        store.new_session("/work", id="kept")
        with store.database.definition() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreUnusable, match="newer brim") as caught:
        open_store(url)
    assert "upgrade" in (caught.value.hint or "")
    assert "9999" in caught.value.message and caught.value.code == 78


def test_failed_migration_changes_nothing(url: str) -> None:
    """A migration that fails half-way leaves the database as it was: it still opens afterwards."""
    old = _at_revision(url, "0001")
    with old.definition() as connection:
        connection.exec_driver_sql("ALTER TABLE requests ADD COLUMN cached_write_1h BIGINT")  # 0002 will stumble on it
    with pytest.raises(Exception, match="cached_write_1h"):
        open_store(url)
    with old.definition() as connection:
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one() == "0001"
        connection.exec_driver_sql("ALTER TABLE requests DROP COLUMN cached_write_1h")
    old.close()
    with open_store(url) as store:
        assert store.list_sessions() == []


def test_many_processes_create_one_store(url: str) -> None:
    """Processes that all open a store that does not exist yet make one together, and all can use it."""
    script = textwrap.dedent("""
        import sys
        from brim.conversation import user
        from brim.store import open_store
        sys.stdin.readline()
        with open_store(sys.argv[1]) as store:
            store.append(store.new_session("/work").id, [user("here")])
    """)
    children = [
        subprocess.Popen([sys.executable, "-c", script, url], stdin=subprocess.PIPE, text=True) for _ in range(5)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.close()
    assert [child.wait(timeout=60) for child in children] == [0] * 5
    with open_store(url, create=False) as store:
        assert [session.messages for session in store.list_sessions()] == [1] * 5


def test_missing_store_is_not_made_unasked(tmp_path: Path) -> None:
    """Without `create` a store that is not there is an error, and stays not there."""
    path = tmp_path / "no" / "brim.db"
    with pytest.raises(StoreUnusable, match="no session database"):
        open_store(path, create=False)
    assert not path.parent.exists()


def test_foreign_database_is_left_alone(tmp_path: Path) -> None:
    """Another program's SQLite file is refused, not filled with tables."""
    import sqlite3

    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.commit()
    other.close()
    with pytest.raises(StoreUnusable, match="another program"):
        open_store(path)


def test_place_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a URL the store is brim.db in BRIM_DATA_DIR, readable by its owner alone."""
    monkeypatch.setenv("BRIM_DATA_DIR", str(tmp_path / "here"))
    with open_store() as store:
        assert store.where == str(tmp_path / "here" / "brim.db")
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "here" / "brim.db").stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "here").stat().st_mode) == 0o700


def test_wrong_urls(tmp_path: Path) -> None:
    """A URL of an unknown scheme, or a server that is not there, is named, without its password."""
    with pytest.raises(ConfigError, match="mysql"):
        open_store("mysql://u:secret@h/db")
    with pytest.raises(ConfigError, match="names no file"):
        open_store("sqlite://")
    pytest.importorskip("psycopg")
    with pytest.raises(StoreUnusable, match=r"127\.0\.0\.1:1/") as caught:
        open_store("postgresql://me:secret@127.0.0.1:1/db")
    assert "secret" not in str(caught.value)


def test_temporary_store_leaves_nothing() -> None:
    """The store of --no-session works like any other and is gone when closed."""
    with open_store("temporary:") as store:
        session = store.new_session("/work").id
        store.append(session, [user("x")])
        assert store.blobs(session).put(b"data")
        folder = Path(store.where).parent
        assert folder.exists()
    assert not folder.exists()


def test_opening_is_what_loads_sqlalchemy() -> None:
    """Importing brim.store does not load SQLAlchemy; opening an existing store does not load Alembic."""
    script = textwrap.dedent("""
        import sys, tempfile
        import brim.store
        assert "sqlalchemy" not in sys.modules and "sqlite3" not in sys.modules
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                brim.store.open_store(folder + "/brim.db").close()
        assert "sqlalchemy" in sys.modules and "alembic" not in sys.modules and "psycopg" not in sys.modules
    """)
    subprocess.run([sys.executable, "-c", script], check=True)
