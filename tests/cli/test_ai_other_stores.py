"""A session database of another version, or a damaged one, through `ai` and `brim` as a user meets it."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

from brim.store import open_store
from brim.testing import ScriptedProvider, reply
from shared_ai import Home, Ran, make_home


def brim(home: Home, *arguments: str) -> Ran:
    """A `brim` command in the same home."""
    ran = subprocess.run(
        [sys.executable, "-m", "brim.cli.manage", *arguments], cwd=home.work, env=home.env, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def database_of(home: Home) -> Path:
    return home.root / "data" / "brim.db"


def back_to_the_first_schema(path: Path) -> None:
    """The database as the first version left it: without what the later schema added."""
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE requests DROP COLUMN cached_write_1h")
        database.execute("UPDATE alembic_version SET version_num = '0001'")
    database.close()


def test_an_older_database_is_migrated_and_the_session_goes_on(tmp_path: Path) -> None:
    """The next `ai` brings it to its own schema, says so once, and continues the conversation that was in it."""
    with ScriptedProvider([reply("first"), reply("second"), reply("third")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        assert home.run("remember seven", "--session", "s").code == 0
        back_to_the_first_schema(database_of(home))
        ran = home.run("which number?", "--session", "s")
        assert (ran.code, ran.out) == (0, "second\n")
        assert "migrated" in ran.err and "older brim" in ran.err
        sent = [message["content"] for message in upstream.requests[1].messages]
        assert sent[1:] == ["remember seven", "first", "which number?"]
        again = home.run("once more", "--session", "s")
    assert again.code == 0 and "migrated" not in again.err
    assert brim(home, "doctor").code in (0, 1)


def test_a_newer_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A word why and what to do, exit 78, nothing asked, not a byte changed; without a session `ai` still answers."""
    with ScriptedProvider([reply("first"), reply("without")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        home.run("hello")
        with sqlite3.connect(database_of(home)) as database:
            database.execute("UPDATE alembic_version SET version_num = '9999'")
        database.close()
        before = database_of(home).read_bytes()
        for ran in (home.run("hello"), brim(home, "sessions", "list")):
            assert ran.code == 78
            assert "newer brim" in ran.err and "9999" in ran.err and "pipx upgrade brim" in ran.err
        assert len(upstream.requests) == 1
        assert database_of(home).read_bytes() == before
        assert home.run("hello", "--no-session").out == "without\n"
    looked = brim(home, "doctor")
    assert looked.code == 1 and "newer brim" in looked.out


def test_a_damaged_database_is_named_and_read(tmp_path: Path) -> None:
    """What can be saved is listed and exported, the damage is named, nothing is written; --no-session still answers."""
    with ScriptedProvider([reply("x " * 2_000)], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        for name in ("one", "two", "three"):
            assert home.run(f"question {name} " + "words " * 3_000, "--session", name).code == 0
        path = database_of(home)
        with open_store(path) as store:
            store.database.shrink()
        data = bytearray(path.read_bytes())
        page = int.from_bytes(data[16:18], "big")
        rest = random.Random(7)
        for start in range(3 * page, len(data), 3 * page):  # every third page, the first ones of the schema apart
            data[start : start + page] = rest.randbytes(page)
        path.write_bytes(data)
        listed = brim(home, "sessions", "list")
        ran = home.run("go on", "--session", "one", "--output-format", "json")
        assert ran.code == 78 and ran.result["error"]["kind"] == "store_unusable", ran
        assert str(path) in ran.result["error"]["message"] and ran.result["error"]["hint"]
        assert "damaged" in listed.err and str(path) in listed.err
        looked = brim(home, "doctor", "--json")
        found = next(each for each in json.loads(looked.out) if each["check"] == "sessions")
        assert looked.code == 1 and found["status"] == "bad" and "damaged" in found["found"]
        assert path.read_bytes() == bytes(data), "the file itself is left for experts"
        assert home.run("hello", "--no-session").code == 0


def test_damage_that_shows_only_in_a_table_is_named(tmp_path: Path) -> None:
    """A database that opens and is damaged where the sessions are: whoever lists them or goes on is told, and none are
    said not to be there without that."""
    with ScriptedProvider([reply("yes")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        assert home.run("first").code == 0
        path = database_of(home)
        data = bytearray(path.read_bytes())
        page = int.from_bytes(data[16:18], "big")
        database = sqlite3.connect(path)
        root = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sessions'").fetchone()[0]
        database.close()
        data[(root - 1) * page : root * page] = bytes(page)
        path.write_bytes(data)
        listed, ran = brim(home, "sessions", "list"), home.run("-c", "go on")
        assert ran.code and len(upstream.requests) == 1
        for said in (listed.err, ran.err):
            assert said.count("is damaged") == 1 and "Saved: 0 sessions, 2 messages" in said
        assert "saved from a damaged database" in brim(home, "sessions", "list", "--all").out


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    """A file of something else in the store's place: exit 78 and its path, not a traceback."""
    home = make_home(tmp_path / "home", None)
    database_of(home).parent.mkdir()
    database_of(home).write_text("this is no database\n" * 500)
    ran = home.run("hello")
    assert ran.code == 78 and str(database_of(home)) in ran.err and "Traceback" not in ran.err
    assert database_of(home).read_text().startswith("this is no database")
