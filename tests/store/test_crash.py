"""Processes that are killed, and many at once: no acknowledged message lost, none twice, no session unusable."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from brim.conversation import Message, user
from brim.store import open_store
from brim.store.leases import LEASE_S

WRITER = textwrap.dedent("""
    import sys, time
    from brim.conversation import assistant, call, result, user
    from brim.store import open_store
    url, session, run = sys.argv[1:]
    store = open_store(url)
    n = store.acquire(session)
    turn = 0
    while True:
        # Each user message is acknowledged on stdout once `append` returned.
        store.append(session, [user(f"ask {run}.{turn}")])
        print(f"ask {run}.{turn}", flush=True)
        store.record_request(session, mode="auto", plan={"turn": turn, "fates": list(range(turn % 7))})
        reply = store.begin_reply(session)
        for word in range(turn % 5):
            reply.extend(f"answer {run}.{turn} word {word} ")
            reply.flush()
        done = assistant(f"answer {run}.{turn} whole", call("f", id=f"c{run}.{turn}"))
        reply.finish(done, result(f"c{run}.{turn}", f"result {run}.{turn}"))
        print(f"answer {run}.{turn}", flush=True)
        store.blobs(session).put(f"blob {run}.{turn} ".encode() * 5000)
        turn += 1
""")


def _check(messages: list[tuple[Message, bool]], acknowledged: list[str]) -> None:
    texts = [message.text for message, _ in messages]
    asked = [text for text in texts if text.startswith("ask")]
    assert len(asked) == len(set(asked)), "no message twice"
    whole = [message.text for message, incomplete in messages if message.role == "assistant" and not incomplete]
    assert len(whole) == len(set(whole)) and all(text.endswith("whole") for text in whole)
    for line in acknowledged:
        assert line in texts or f"{line} whole" in texts, f"lost: {line}"
    for message, incomplete in messages:
        if incomplete:  # a half answer is what had come of an answer that is nowhere else
            assert message.role == "assistant" and " word 0 " in message.text
            assert f"{message.text.split(' word')[0]} whole" not in texts


@pytest.mark.parametrize("kills", [20, pytest.param(500, marks=pytest.mark.slow)])
def test_killed_at_random_moments(url: str, kills: int) -> None:
    """A process killed at any moment leaves every acknowledged message, none twice, half answers marked, all usable."""
    chance = random.Random(kills)
    if "://" in url and kills == 20:
        kills = 6  # the same code, a slower start of each process
    with open_store(url) as store:
        session = store.new_session("/w").id
    acknowledged: list[str] = []
    for run in range(kills):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, url, session, str(run)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        first = child.stdout.readline()  # it is at work
        time.sleep(chance.uniform(0, 0.06))
        child.send_signal(signal.SIGKILL)
        acknowledged += [line.strip() for line in (first, *child.stdout) if line.endswith("\n")]
        child.stdout.close()
        child.wait()
        if run % 10 == 0 or run == kills - 1:
            with open_store(url) as store:
                _check([(each.message, each.incomplete) for each in store.load(session)], acknowledged)
    with open_store(url) as store:
        start = time.monotonic()
        store.append(session, [user("and on")])
        assert time.monotonic() - start < LEASE_S / 2, "a killed process holds nothing"
        found = [(each.message, each.incomplete) for each in store.load(session)]
        _check(found, acknowledged)
        assert found[-1] == (user("and on"), False)
        assert [each.seq for each in store.load(session)] == list(range(len(found)))
        assert store.last_plan(session) is not None
        assert len(acknowledged) >= kills


CROWD = textwrap.dedent("""
    import random, sys
    from brim.conversation import user
    from brim.errors import SessionBusy
    from brim.store import open_store
    url, me, count, *sessions = sys.argv[1:]
    chance = random.Random(int(me))
    written = 0
    with open_store(url) as store:
        while written < int(count):
            session = chance.choice(sessions)
            try:
                with store.lease(session, wait=60):
                    before = len(store.load(session))
                    for _ in range(min(3, int(count) - written)):
                        assert store.append(session, [user(f"{me} {written}")]).start == before
                        before += 1
                        print(session, me, written, flush=True)
                        written += 1
            except SessionBusy:
                continue
""")


def test_sixteen_processes_on_four_sessions(url: str) -> None:
    """Many processes on few sessions: each holds one alone while it writes, nothing is lost, doubled or interleaved."""
    with open_store(url) as store:
        sessions = [store.new_session("/w").id for _ in range(4)]
    children = [
        subprocess.Popen([sys.executable, "-c", CROWD, url, str(me), "6", *sessions], stdout=subprocess.PIPE, text=True)
        for me in range(16)
    ]
    said: list[tuple[str, str]] = []
    outputs = [child.communicate(timeout=180)[0] for child in children]
    assert [child.returncode for child in children] == [0] * 16
    for out in outputs:
        said += [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in out.splitlines()]
    assert len(said) == 16 * 6
    with open_store(url) as store:
        for session in sessions:
            texts = [each.message.text for each in store.load(session)]
            assert sorted(texts) == sorted(text for where, text in said if where == session)
            owners = [text.split()[0] for text in texts]
            # Three messages a lease: a writer's run is never broken into by another.
            at = 0
            while at < len(owners):
                assert len(set(owners[at : at + 3])) == 1, (at, owners)
                at += 3


def test_stopped_process_keeps_its_session(tmp_path: Path) -> None:
    """A process that merely sleeps still holds its session; once killed, it does not."""
    from brim.store import SessionHeld

    url = str(tmp_path / "brim.db")
    with open_store(url) as store:
        session = store.new_session("/w").id
    script = (
        "import sys\nfrom brim.store import open_store\nstore = open_store(sys.argv[1])\n"
        "store.acquire(sys.argv[2])\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, url, session], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdin is not None
    assert child.stdout.readline() == "held\n"
    child.send_signal(signal.SIGSTOP)
    with open_store(url) as store:
        with pytest.raises(SessionHeld) as caught:
            store.acquire(session)
        assert caught.value.pid == child.pid != os.getpid()
        child.kill()
        child.wait()
        assert store.acquire(session) == 0
    child.stdin.close()
    child.stdout.close()
