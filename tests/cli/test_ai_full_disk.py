"""A full disk and a read-only home: a sentence with the way on, nothing acknowledged lost, and all goes on afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brim.store import open_store
from brim.testing import ScriptedProvider, reply
from shared_ai import Home, make_home

pytestmark = pytest.mark.slow

ANSWER = "answer " * 40


@contextlib.contextmanager
def small_disk(at: Path, size: str) -> Iterator[None]:
    """A file system of its own; skips where this user may not mount one."""
    at.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(at)], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"no mount for this user: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(at)], check=True)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder that cannot be written: mounted read-only for root, which no mode stops, by its modes for others."""
    if os.geteuid() == 0:
        done = subprocess.run(["mount", "--bind", str(folder), str(folder)], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"root without the right to mount: {done.stderr.strip()}")
        try:
            subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
            yield
        finally:
            subprocess.run(["umount", str(folder)], check=True)
        return
    everything = [folder, *(each for each in folder.rglob("*") if not each.is_symlink())]
    modes = {each: each.stat().st_mode for each in everything}
    try:
        for each in reversed(everything):
            each.chmod(modes[each] & ~0o222)
        yield
    finally:
        for each in everything:
            each.chmod(modes[each])


def fill(folder: Path) -> Path:
    """Takes every byte that is left."""
    filler = folder / "filler"
    with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return filler


def home_on(tmp_path: Path, url: str, data: Path) -> Home:
    home = make_home(tmp_path / "home", url)
    home.env |= {"BRIM_DATA_DIR": str(data), "BRIM_MODEL": "openai/scripted"}
    return home


def stored(home: Home, session: str = "s") -> list[tuple[str, str, bool]]:
    with open_store(Path(home.env["BRIM_DATA_DIR"]) / "brim.db") as store:
        return [(each.role, each.message.text, each.incomplete) for each in store.load(session)]


def test_a_disk_that_is_full_before_anything_is_asked(tmp_path: Path) -> None:
    """Exit 78 and what to do; nothing is sent; what is stored can be read; without saving it answers; with room it goes
    on. The same where the very first session finds no room."""
    disk = tmp_path / "disk"
    with small_disk(disk, "1m"), ScriptedProvider([reply(ANSWER)], repeat_last=True) as upstream:
        home = home_on(tmp_path, upstream.base_url, disk)
        nowhere = fill(disk)
        none_yet = home.run("first", "--session", "s")
        assert none_yet.code == 78 and "full" in none_yet.err and "--no-session" in none_yet.err, none_yet
        nowhere.unlink()
        assert home.run("first", "--session", "s").code == 0
        filler = fill(disk)
        sent = len(upstream.requests)
        ran = home.run("second", "--session", "s")
        assert ran.code == 78 and ran.out == "" and "free some space" in ran.err, ran
        assert len(ran.err.strip().splitlines()) == 2, "said once"
        assert len(upstream.requests) == sent, "nothing is asked that cannot be kept"
        shown = home.manage("sessions", "show", "s")
        assert shown.code == 0 and "first" in shown.out, shown
        looked = home.manage("doctor", "--json")
        assert looked.code == 1
        assert any(each["check"] == "sessions" and each["status"] == "bad" for each in json.loads(looked.out))
        assert home.run("besides", "--no-session").code == 0
        filler.unlink()
        assert home.run("third", "--session", "s").code == 0
        assert stored(home) == [
            ("user", "first", False), ("assistant", ANSWER, False), ("user", "third", False), ("assistant", ANSWER, False),
        ]  # fmt: skip


def test_a_disk_that_fills_up_while_an_answer_streams(tmp_path: Path) -> None:
    """The answer is shown whole and said not to be kept, with exit 78; the question stays; what the next process finds of the
    answer is marked as half; the session goes on."""
    disk = tmp_path / "disk"
    answer = " ".join(f"word{n}" for n in range(400))
    script = [reply("well"), reply(answer, piece=16, delay=0.01), reply("on")]
    with small_disk(disk, "1m"), ScriptedProvider(script) as upstream:
        home = home_on(tmp_path, upstream.base_url, disk)
        assert home.run("first", "--session", "s").code == 0
        process = home.start("second", "--session", "s", "--output-format", "stream-json")
        assert process.stdout is not None
        lines: list[str] = []
        while not any('"type":"text"' in line for line in lines):
            lines.append(process.stdout.readline())
            assert lines[-1]
        filler = fill(disk)
        # the log has room left inside its own file: until that is used up, pieces may still be kept
        rest, err = process.communicate("", timeout=60)
        result = json.loads(rest.splitlines()[-1])
        assert result["type"] == "result"
        if result["ok"]:
            pytest.skip("all of it fitted in what the log had left")
        assert (process.returncode, result["exit_code"]) == (78, 78), err
        assert result["error"]["kind"] == "store_unusable" and "acknowledged" in result["error"]["message"]
        assert answer.startswith(result["text"]) and result["text"]
        filler.unlink()
        assert home.run("third", "--session", "s").out == "on\n"
    messages = stored(home) if (disk / "brim.db").exists() else []
    assert messages == [] or messages[-2:] == [("user", "third", False), ("assistant", "on", False)]


def test_a_disk_that_fills_up_over_a_session(tmp_path: Path) -> None:
    """Whatever write it is that finds no room: all that was told before stands there once, and the session goes on."""
    disk = tmp_path / "disk"
    with small_disk(disk, "1m"), ScriptedProvider([reply(ANSWER)], repeat_last=True) as upstream:
        home = home_on(tmp_path, upstream.base_url, disk)
        kept: list[str] = []
        for n in range(40):
            ran = home.run(f"{n} " + "x" * 90_000, "--session", "s", "--output-format", "stream-json")
            kept += [f"{n} "] if any(event["type"] == "request" for event in ran.events) else []
            if ran.code != 0:
                break
        assert ran.code == 78 and ran.result["error"]["kind"] == "store_unusable", ran
        assert "the disk" in ran.result["error"]["message"] and "--no-session" in ran.result["error"]["hint"]
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        assert home.run("on", "--session", "s").code == 0
        messages = stored(home)
    asked = [text[: text.index(" ") + 1] for role, text, _ in messages if role == "user" and text != "on"]
    assert asked[: len(kept)] == kept and len(asked) == len(set(asked))
    assert all(half or text == ANSWER for role, text, half in messages if role == "assistant")


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """`ulimit -f` is met like a full disk: a sentence, exit 78, and with the limit gone the session goes on."""
    with ScriptedProvider([reply(ANSWER)], repeat_last=True) as upstream:
        home = home_on(tmp_path, upstream.base_url, tmp_path / "data")
        assert home.run("first", "--session", "s").code == 0
        limited = subprocess.run(
            [
                "bash",
                "-c",
                'ulimit -f 120; exec "$0" -m brim.cli.ai "$@"',
                sys.executable,
                "x" * 120_000,
                "--session",
                "s",
            ],
            cwd=home.work,
            env=home.env,
            input="",
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert limited.returncode == 78, limited
        assert "cannot write the session database" in limited.stderr and "--no-session" in limited.stderr
        assert home.run("second", "--session", "s").code == 0
    assert [text for role, text, _ in stored(home) if role == "user"] == ["first", "second"]


@pytest.mark.parametrize("sessions", [False, True], ids=["none yet", "some"])
def test_a_read_only_home(tmp_path: Path, sessions: bool) -> None:
    """`ai` says where it cannot write and the three ways on, each of which works; doctor names it; what is stored can be
    read; and the home is as it was."""
    with ScriptedProvider([reply("well")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        home.env["BRIM_MODEL"] = "openai/scripted"
        del home.env["BRIM_DATA_DIR"]
        home.env.pop("XDG_DATA_HOME", None)
        if sessions:
            assert home.run("first", "--session", "s").code == 0
        before = sorted(str(each) for each in home.root.rglob("*"))
        with read_only(home.root):
            ran = home.run("hello")
            assert ran.code == 78 and ran.out == "", ran
            assert str(home.root) in ran.err and "brim.db" in ran.err
            assert "BRIM_DATA_DIR" in ran.err and "--no-session" in ran.err
            assert home.run("hello", "--no-session").out == "well\n"
            elsewhere = str(tmp_path / "elsewhere")
            assert home.run("hello", "--session", "t", BRIM_DATA_DIR=elsewhere).out == "well\n"
            looked = home.manage("doctor", "--json")
            bad = [each["found"] for each in json.loads(looked.out) if each["status"] == "bad"]
            assert looked.code == 1 and len(bad) == 1 and str(home.root) in bad[0], bad
            if sessions:
                assert "first" in home.manage("sessions", "show", "s").out
                export = home.manage("sessions", "export", "s")
                assert len(json.loads(export.out)["messages"]) == 2
        assert sorted(str(each) for each in home.root.rglob("*")) == before
        assert home.run("again", "--session", "s").code == 0
