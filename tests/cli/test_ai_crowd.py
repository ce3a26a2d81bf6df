"""Many `ai` at once on few sessions: each is alone in a session while it answers; the others are told, with a way on."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from brim.store import open_store
from brim.testing import ScriptedProvider, reply
from brim.testing.script import Entry, Received
from shared_ai import Home, make_home
from shared_postgres import new_schema, serve_postgres

pytestmark = pytest.mark.slow


def echo(received: Received) -> Entry:
    """The model repeats what was said last, slowly enough for others to come by."""
    last = received.messages[-1]["content"]
    return reply(f"you said {last}", piece=4, delay=0.02)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def where(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The URL of an empty store; None: the home's own file."""
    with contextlib.ExitStack() as stack:
        yield new_schema(stack.enter_context(serve_postgres())) if request.param == "postgres" else None


def crowd_home(root: Path, url: str, where: str | None) -> Home:
    home = make_home(root, url)
    home.env["BRIM_MODEL"] = "openai/scripted"
    if where is not None:
        home.env["BRIM_STORE_URL"] = where
    return home


@pytest.mark.parametrize(("count", "sessions"), [(6, 2), pytest.param(16, 4, marks=pytest.mark.slow)])
def test_processes_at_once_on_few_sessions(tmp_path: Path, where: str | None, count: int, sessions: int) -> None:
    """Who finds a session in use is told by whom, and how to go on in a copy, with exit code 75; nobody sees the database
    locked; asked again, all arrive, once, each with its answer right behind it."""
    with ScriptedProvider([echo], repeat_last=True) as upstream:
        home = crowd_home(tmp_path / "home", upstream.base_url, where)
        waiting = list(range(count))
        refused = rounds = 0
        while waiting:
            rounds += 1
            assert rounds <= count, "each round lets one in, at least"
            running: dict[int, subprocess.Popen[str]] = {
                n: home.start(f"I am {n}", "--session", f"s{n % sessions}") for n in waiting
            }
            waiting = []
            for n, process in running.items():
                out, err = process.communicate("", timeout=300)
                if process.returncode == 0:
                    assert out == f"you said I am {n}\n"
                    continue
                assert process.returncode == 75, err
                assert "is being written by process" in err and f"--resume s{n % sessions} --fork" in err
                assert "locked" not in err and out == ""
                refused += 1
                waiting.append(n)
    assert refused > 0, "they met"
    with open_store(where or home.root / "data" / "brim.db") as store:
        for session in range(sessions):
            texts = [each.message.text for each in store.load(f"s{session}")]
            asked = texts[::2]
            assert sorted(asked) == sorted(f"I am {n}" for n in range(count) if n % sessions == session)
            assert texts[1::2] == [f"you said {text}" for text in asked]


def test_the_way_on_that_is_offered_works(tmp_path: Path) -> None:
    """While one process answers, another goes on in a copy, as it was told; both stand afterwards."""
    with ScriptedProvider([reply("first"), reply("slow answer " * 20, piece=4, delay=0.05), echo]) as upstream:
        home = crowd_home(tmp_path / "home", upstream.base_url, None)
        assert home.run("one", "--session", "s").code == 0
        busy = home.start("two", "--session", "s")
        assert upstream.wait_for(lambda server: len(server.requests) == 2, 60)
        turned_away = home.run("three", "--session", "s", "--output-format", "json")
        assert turned_away.code == 75 and turned_away.result["error"]["kind"] == "session_busy"
        hint = turned_away.result["error"]["hint"]
        copied = home.run("three", *hint.partition(": ai ")[2].split(), "--output-format", "json")
        assert copied.code == 0, copied.err
        assert busy.communicate("", timeout=120)[0] == "slow answer " * 20 + "\n"
    with open_store(home.root / "data" / "brim.db") as store:
        assert [each.message.text for each in store.load("s")] == ["one", "first", "two", "slow answer " * 20]
        copy = [each.message.text for each in store.load(copied.result["session"])]
        assert copy[:2] == ["one", "first"] and copy[-2:] == ["three", "you said three"]
