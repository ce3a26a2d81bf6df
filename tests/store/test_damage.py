"""Damaged files, full disks, read-only places: nothing acknowledged is lost, and the user is told."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from brim.conversation import user
from brim.errors import StoreUnusable
from brim.store import Store, open_store

PAGE = 4096


def _filled(path: Path, sessions: int = 3, each: int = 200) -> dict[str, list[str]]:
    """A database file with some sessions, all in the main file (no log beside it)."""
    texts: dict[str, list[str]] = {}
    with open_store(path) as store:
        for s in range(sessions):
            session = store.new_session("/w", id=f"s{s}").id
            texts[session] = [f"{session} message {n} " + "x" * 300 for n in range(each)]
            store.append(session, [user(text) for text in texts[session]])
            store.blobs(session).put(random.Random(s).randbytes(200_000))
        store.database.shrink()
    assert not Path(f"{path}-wal").exists()
    return texts


def _overwrite(path: Path, start: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(data)


def _check_saved(store: Store, texts: dict[str, list[str]]) -> int:
    """Whatever is there is as it was; returns how many messages are."""
    count = 0
    for session in store.list_sessions():
        for stored in store.load(session.id):
            assert stored.message.text == texts[session.id][stored.seq]
            count += 1
    return count


def test_damaged_messages_are_read_around(tmp_path: Path) -> None:
    """A file with damaged pages turns read-only when one is met, and gives all that other pages hold."""
    path = tmp_path / "brim.db"
    texts = _filled(path)
    before = path.read_bytes()
    connection = sqlite3.connect(path)
    pages = [
        row[0] for row in connection.execute("SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf'")
    ] if _has_dbstat() else list(range(30, 34))  # fmt: skip
    connection.close()
    for page in pages[5:8]:
        _overwrite(path, (page - 1) * PAGE, b"\xee" * PAGE)
    damaged = path.read_bytes()
    with open_store(path) as store:
        assert store.damage is None, "nobody looked at the damage yet"
        count = sum(len(store.load(session.id)) for session in store.list_sessions())
        assert store.read_only and store.damage is not None
        assert str(path) in store.damage and "damaged" in store.damage and "Saved: 3 sessions" in store.damage
        assert store.where == str(path)
        assert 500 < count < 600
        assert _check_saved(store, texts) == count
        with pytest.raises(StoreUnusable, match="read-only"):
            store.append("s0", [user("no")])
        exported = store.export_session("s2")
        made = len(exported["messages"])
    assert path.read_bytes() == damaged and damaged != before, "the file itself is left for experts"
    with open_store(tmp_path / "new.db") as fresh:
        assert fresh.import_session(exported, project="/w").session.messages == made


def _has_dbstat() -> bool:
    try:
        sqlite3.connect(":memory:").execute("SELECT * FROM dbstat").fetchall()
    except sqlite3.OperationalError:
        return False
    return True


@pytest.mark.parametrize("where", ["header", "first page", "cut short", "not a database", "empty tail"])
def test_damaged_from_the_start(tmp_path: Path, where: str) -> None:
    """A file that cannot even be opened gives a read-only store that names the damage, or a plain error without salvage."""
    path = tmp_path / "brim.db"
    texts = _filled(path)
    size = path.stat().st_size
    if where == "header":
        _overwrite(path, 0, b"\0" * 100)
    elif where == "first page":
        _overwrite(path, 100, b"\xff" * (PAGE - 100))
    elif where == "cut short":
        os.truncate(path, size // 2 + 100)
    elif where == "not a database":
        path.write_bytes(b"this is not a database\n" * 1000)
    else:
        _overwrite(path, size - 20 * PAGE, b"\0" * 20 * PAGE)
    with open_store(path) as store:
        found = _check_saved(store, texts)
        if store.read_only:
            assert store.damage is not None and str(path) in store.damage
            with pytest.raises(StoreUnusable, match="read-only"):
                store.new_session("/w")
        else:
            assert found == 600
    if where == "not a database":
        assert found == 0
        with pytest.raises(StoreUnusable, match="damaged"):
            open_store(path, salvage=False)


@pytest.mark.parametrize("seed", range(12))
def test_random_damage(tmp_path: Path, seed: int) -> None:
    """Whatever bytes are overwritten: the store opens, and no message it gives is another than was written."""
    path = tmp_path / "brim.db"
    texts = _filled(path, each=80)
    chance = random.Random(seed)
    size = path.stat().st_size
    for _ in range(chance.randint(1, 6)):
        length = chance.choice([1, 16, 500, PAGE, 3 * PAGE])
        _overwrite(path, chance.randrange(PAGE, size - length), chance.randbytes(length))
    with open_store(path) as store:
        for session in store.list_sessions():
            for stored in store.load(session.id):
                try:
                    text = stored.message.text
                except StoreUnusable:
                    continue
                if store.read_only:  # what was saved is checked; a session whose own row is lost has a name made up
                    assert text in texts.get(session.id, [text for some in texts.values() for text in some])


def test_full_disk(tmp_path: Path) -> None:
    """A full disk is an error with path and size; all that was acknowledged is there, and writing goes on with space."""
    path = tmp_path / "brim.db"
    limited = f"""
from brim.conversation import user
from brim.errors import StoreUnusable
from brim.store import open_store
with open_store({str(path)!r}) as store:
    session = store.new_session("/w", id="s").id
    connection = store.database.take()  # the one that all of this process's writes use
    connection.cursor().execute("PRAGMA max_page_count=200")
    store.database.give_back(connection)
    n = 0
    try:
        while n < 5_000:
            store.append(session, [user(f"message {{n}} " + "x" * 1000)])
            n += 1
    except StoreUnusable as error:
        assert "disk is full" in error.message and {str(path)!r} in error.message and " bytes" in error.message
        assert error.code == 78 and "--no-session" in error.hint
    assert len(store.load(session)) == n
    print(n)
"""
    done = subprocess.run([sys.executable, "-c", limited], check=True, capture_output=True, text=True)
    count = int(done.stdout)
    assert count > 50
    with open_store(path) as store:
        assert [e.message.text.split()[1] for e in store.load("s")] == [str(n) for n in range(count)]
        store.append("s", [user("space again")])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB, where one may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_really_full_disk(small_disk: Path) -> None:
    """On a file system that is really full, messages and originals fail with the same words, and nothing is lost."""
    path = small_disk / "brim.db"
    with open_store(path) as store:
        session = store.new_session("/w").id
        store.append(session, [user("first")])
        with pytest.raises(StoreUnusable, match=r"full|fails"):
            store.blobs(session).put(os.urandom(64 * 1024) for _ in range(200))
        kept = 1

        def fill() -> None:
            nonlocal kept
            while True:
                store.append(session, [user("x" * 5_000)])
                kept += 1

        with pytest.raises(StoreUnusable, match=r"full|fails"):
            fill()
        assert len(store.load(session)) == kept
    with open_store(path) as store:
        assert len(store.load(session)) == kept
        assert store.load(session)[0].message == user("first")


@pytest.mark.skipif(os.name != "posix", reason="needs file permissions")
def test_read_only_folder() -> None:
    """A database in a place that may not be written is refused with its path and the way on."""
    folder = Path(tempfile.mkdtemp(prefix="brim-read-only-"))
    folder.chmod(0o755)
    path = folder / "data" / "brim.db"
    with open_store(path) as store:
        store.new_session("/w")
    script = textwrap.dedent("""
        import os, sys
        from brim.errors import StoreUnusable
        from brim.store import open_store
        open_store("temporary:").close()  # load all code while it can be read
        if os.geteuid() == 0:  # root may write anywhere: become nobody
            os.setgid(65534); os.setuid(65534)
        try:
            with open_store(sys.argv[1]) as store:
                store.new_session("/w")
        except StoreUnusable as error:
            print(error.message, "|", error.hint)
        else:
            print("written")
    """)
    path.parent.chmod(0o555)
    path.chmod(0o444)
    try:
        done = subprocess.run([sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True)
    finally:
        path.parent.chmod(0o755)
        shutil.rmtree(folder)
    assert str(path) in done.stdout and "--no-session" in done.stdout, done.stdout
