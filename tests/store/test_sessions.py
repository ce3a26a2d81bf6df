"""Sessions: found, listed, forked, deleted, their requests and costs, search, retention."""

from __future__ import annotations

import sqlite3
import time
from datetime import datetime
from pathlib import Path

import pytest

from brim.budget import Usage
from brim.conversation import assistant, call, result, user
from brim.errors import SessionNotFound, StoreUnusable, UsageError
from brim.store import BlobMissing, SessionHeld, Store, open_store
from brim.store.leases import this_holder
from brim.store.values import short_id


def test_sessions_belong_to_projects(store: Store) -> None:
    """Sessions are listed by project, the one used last first; `find_session(None)` is that one."""
    one = store.new_session("/one", "auto", "openai/gpt-5")
    two = store.new_session("/two")
    three = store.new_session("/one")
    assert (one.mode, one.model, one.project, one.messages) == ("auto", "openai/gpt-5", "/one", 0)
    store.release(one.id)
    store.append(one.id, [user("again"), assistant("ok")])
    assert [s.id for s in store.list_sessions("/one")] == [one.id, three.id]
    assert [s.id for s in store.list_sessions()] == [one.id, three.id, two.id]
    assert [s.id for s in store.list_sessions(limit=1)] == [one.id]
    found = store.find_session(None, "/one")
    assert (found.id, found.messages, found.title) == (one.id, 2, "again")
    with pytest.raises(SessionNotFound, match="/three"):
        store.find_session(None, "/three")


def test_short_ids(store: Store) -> None:
    """Seven characters name a session; more that agree do too; ambiguous and unknown ones name candidates."""
    made = store.new_session("/w", title="the parser")
    assert len(made.id) == 20 and made.short == made.id[:7] == short_id(made.id)
    for prefix in (made.short, made.id[:4], made.id):
        assert store.find_session(prefix).id == made.id
    store.new_session("/w", id="review-1", title="first review")
    store.new_session("/w", id="review-2")
    assert store.get_session("review-1").short == "review-1"
    with pytest.raises(SessionNotFound, match="short for 2 sessions") as caught:
        store.find_session("review")
    assert "first review" in str(caught.value.hint) and "review-2" in str(caught.value.hint)
    with pytest.raises(SessionNotFound, match="nowhere") as caught:
        store.find_session("nowhere")
    assert "review-1" in str(caught.value.hint)
    with pytest.raises(SessionNotFound):
        store.find_session("%")


@pytest.mark.parametrize("bad", ["", "two words", "-c", "a\nb", "x" * 201])
def test_unfit_ids_are_refused(store: Store, bad: str) -> None:
    """An id that could not be typed again is refused; so is one that is taken."""
    with pytest.raises(UsageError):
        store.new_session("/w", id=bad)
    store.new_session("/w", id="taken")
    with pytest.raises(UsageError, match="already is"):
        store.new_session("/w", id="taken")


def test_titles(store: Store) -> None:
    """The first line a user writes is the title until somebody gives another."""
    session = store.new_session("/w").id
    store.append(session, [user("\n  find the   bug\nplease")])
    store.append(session, [user("later")])
    assert store.get_session(session).title == "find the bug"
    assert store.rename(session, "Parser bug").title == "Parser bug"
    long = store.new_session("/w").id
    store.append(long, [user("词" * 200)])
    assert store.get_session(long).title == "词" * 79 + "…"


def test_changes(store: Store) -> None:
    """Mode, model, archiving and meta are set without touching the history; archived ones are listed only if asked."""
    session = store.new_session("/w", "auto").id
    changed = store.change_session(session, mode="compact", model="m", archived=True, meta={"profile": "code"})
    assert (changed.mode, changed.model, changed.archived, changed.meta) == ("compact", "m", True, {"profile": "code"})
    assert store.list_sessions() == []
    assert [s.id for s in store.list_sessions(archived=True)] == [session]


def test_forks(store: Store) -> None:
    """A fork has the messages before a point and the plan of that time, and goes its own way; the parent stays."""
    session = store.new_session("/w", "auto", "m").id
    history = [user("a"), assistant("b"), user("c"), assistant("d")]
    for n in range(0, 4, 2):
        store.append(session, history[n : n + 2])
        store.record_request(session, plan={"n": n})
    handle = store.blobs(session).put(b"original")
    fork = store.fork(session, 2)
    assert (fork.parent, fork.parent_seq, fork.messages, fork.mode, fork.project) == (session, 2, 2, "auto", "/w")
    assert [each.message for each in store.load(fork.id)] == history[:2]
    assert store.last_plan(fork.id) == {"n": 0}
    store.append(fork.id, [user("other")])
    store.record_request(fork.id, plan={"n": 7})
    assert store.last_plan(fork.id) == {"n": 7}
    assert [each.message for each in store.load(session)] == history
    whole = store.fork(session)
    assert whole.messages == 4 and store.last_plan(whole.id) == {"n": 2}
    assert store.fork(fork.id, 1).parent == fork.id
    store.delete(session)
    assert store.gc().originals == 0
    assert store.blobs().get(handle) == b"original", "a fork can still recall"
    for at in (-1, 5):
        with pytest.raises(UsageError, match="4 messages"):
            store.fork(whole.id, at)


def test_delete(store: Store) -> None:
    """A deleted session is gone with all its rows."""
    session = store.new_session("/w").id
    store.append(session, [user("a")])
    store.record_request(session, plan={}, cost=1.0)
    store.begin_reply(session).extend("x" * 5_000)
    store.delete(session)
    with pytest.raises(SessionNotFound):
        store.load(session)
    with store.database.definition() as connection:
        for table in ("messages", "drafts", "requests", "leases"):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one() == 0


def test_requests_are_recorded_whole(store: Store) -> None:
    """Mode, model, bill, usage, cost, times and outcome of each request come back as they were."""
    session = store.new_session("/w").id
    store.append(session, [user("q")])
    usage = Usage(input=100, cached_read=60, cached_write=20, output=7, reasoning=3, cached_write_1h=5)
    first = store.record_request(
        session, mode="auto", model="anthropic/c", plan={"fates": []}, bill={"window": 8192, "lines": [{"kind": "user"}]},
        usage=usage, cost=0.0125, duration=2.5, ttft=0.4, finish="stop", meta={"retry": 1},
    )  # fmt: skip
    second = store.record_request(session, mode="auto", error="overflow", usage=Usage(reported=False))
    one, two = store.requests(session)
    assert (one.id, two.id) == (first, second) and one.seq == 1
    assert (one.mode, one.model, one.bill) == ("auto", "anthropic/c", {"window": 8192, "lines": [{"kind": "user"}]})
    assert (one.input, one.cached_read, one.cached_write, one.output, one.reasoning) == (100, 60, 20, 7, 3)
    assert (one.cached_write_1h, one.cost, one.duration, one.ttft, one.finish) == (5, 0.0125, 2.5, 0.4, "stop")
    assert (one.meta, one.error, two.error, two.input, two.cost) == ({"retry": 1}, None, "overflow", None, None)


def test_usage_sums(url: str) -> None:
    """Costs and tokens sum by day, model, session and mode; cached tokens apart, unknown prices counted."""
    now = [datetime(2026, 3, 1, 12).timestamp()]
    with open_store(url, clock=lambda: now[0]) as store:
        a, b = store.new_session("/one").id, store.new_session("/two").id
        facts = {"input": 10, "cached_read": 4, "cached_write": 2, "output": 1}
        store.record_request(a, mode="auto", model="m1", usage=facts, cost=0.5, duration=1.0, ttft=0.5)
        store.record_request(a, mode="full", model="m1", usage=facts, cost=0.25, duration=3.0)
        now[0] = datetime(2026, 3, 2, 12).timestamp()
        store.record_request(b, mode="auto", model="m2", usage=facts)
        store.record_request(b, mode="auto", model="m2", error="boom")
        by_day = {each.key: each for each in store.usage("day")}
        assert {key: each.cost for key, each in by_day.items()} == {"2026-03-01": 0.75, "2026-03-02": 0.0}
        assert (by_day["2026-03-02"].unpriced, by_day["2026-03-02"].failed, by_day["2026-03-02"].requests) == (1, 1, 2)
        modes = {each.key: each for each in store.usage("mode")}
        assert (modes["auto"].input, modes["auto"].cached_read, modes["auto"].cached_write) == (20, 8, 4)
        assert (modes["full"].seconds, modes["full"].ttft, modes["auto"].ttft) == (3.0, None, 0.5)
        assert {each.key: each.requests for each in store.usage("model")} == {"m1": 2, "m2": 2}
        assert {each.key for each in store.usage("session", since="2026-03-02")} == {b}
        assert {each.key for each in store.usage("session", project="/one")} == {a}
        assert [each.cost for each in store.usage("model", session=a)] == [0.75]


def test_search(store: Store) -> None:
    """Any piece of text is found, in titles, messages and call arguments, whatever its script, case or quoting."""
    one = store.new_session("/one", title="Parser work").id
    store.append(
        one,
        [
            user('say "hello" to 100% of C:\\dir_x'),
            assistant("ok", call("grep", {"pattern": "Needle"}, id="c1")),
            result("c1", "line one\nsearch 搜索 TODO 关键词"),
        ],
    )
    two = store.new_session("/two").id
    store.append(two, [user("nothing of note"), user("dirAx")])

    def found(text: str) -> list[tuple[str, int | None]]:
        return [(hit.session.id, hit.seq) for hit in store.search(text)]

    assert found('"HELLO"') == [(one, 0)]
    assert found("搜索") == [(one, 2)]
    assert found("one\nsearch") == [(one, 2)]
    assert found("needle") == [(one, 1)]
    assert found("dir_x") == [(one, 0)], "no wildcard"
    assert found("0% of C:\\") == [(one, 0)], "one character of the text is one character"
    assert found("PARSER") == [(one, None)]
    assert found("content") == [] and found("role") == [], "the form of a message is no part of its text"
    assert found("  ") == []
    assert found("note") == [(two, None), (two, 0)]
    assert store.search("note", project="/one") == []
    assert len(store.search("o", limit=1)) == 1
    assert "TODO" in store.search("关键词")[0].excerpt


def test_search_in_shared_wire_objects(store: Store) -> None:
    """Messages that came in one wire object are told apart."""
    from brim.formats import parse_message

    wire = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "apples"},
            {"type": "tool_result", "tool_use_id": "t2", "content": "pears"},
            {"type": "text", "text": "cherries"},
        ],
    }
    session = store.new_session("/w").id
    store.append(session, [user("x"), *parse_message(wire, "anthropic.messages")])
    assert [(hit.seq, hit.role) for hit in store.search("pears")] == [(2, "tool")]
    assert [(hit.seq, hit.role) for hit in store.search("cherries")] == [(3, "user")]


def test_retention_by_age(url: str) -> None:
    """Sessions unused for longer than asked go, with their originals; sessions in use and young ones stay."""
    now = [1e9]
    with open_store(url, clock=lambda: now[0]) as store, open_store(url, clock=lambda: now[0]) as other:
        old, busy = store.new_session("/w").id, other.new_session("/w").id
        store.append(old, [user("a")])
        other.append(busy, [user("b")])
        handle = store.blobs(old).put(b"original")
        shared = store.blobs(old).put(b"shared")
        now[0] += 100 * 86_400
        young = store.new_session("/w").id
        store.append(young, [user("c")])
        assert store.blobs(young).put(b"shared") == shared
        done = store.gc(max_age=30 * 86_400)
        assert (done.sessions, done.kept_in_use) == (1, 1)
        assert {s.id for s in store.list_sessions()} == {busy, young}
        store._clock = time.time
        assert store.blobs().get(shared) == b"shared"
        now[0] = time.time() + 2 * 86_400
        store._clock = lambda: now[0]
        assert store.gc().originals == 1
        with pytest.raises(BlobMissing):
            store.blobs().get(handle)
        assert store.blobs().get(shared) == b"shared"


def test_retention_by_size(store: Store) -> None:
    """Over the size the oldest originals go first, then the oldest sessions; the newest are kept as far as they fit."""
    import os

    sessions = [store.new_session("/w").id for _ in range(3)]
    handles = []
    for session in sessions:
        store.append(session, [user("x" * 1_000)])
        handles.append(store.blobs(session).put(os.urandom(50_000)))
    done = store.gc(max_bytes=120_000)
    assert (done.originals, done.sessions) == (1, 0) and done.left <= 120_000 and done.freed >= 50_000
    assert store.blobs().size(handles[1]) == 50_000
    done = store.gc(max_bytes=2_500)
    assert (done.originals, done.sessions) == (2, 1)
    assert [s.id for s in store.list_sessions()] == [sessions[2], sessions[1]]
    assert store.gc(max_bytes=2_500).freed == 0


def test_unfinished_originals_are_collected(store: Store) -> None:
    """What a killed process had half written is removed a day later."""
    import os

    store.blobs().open_writer().write(os.urandom(3_000_000))
    assert store.gc().originals == 0
    store._clock = lambda: time.time() + 2 * 86_400
    assert store.gc().originals == 1
    with store.database.definition() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM blob_chunks").scalar_one() == 0


def test_closing_twice_and_leases_after(url: str) -> None:
    """A closed store gave its sessions back; closing again does nothing."""
    first, second = open_store(url), open_store(url)
    session = first.new_session("/w").id
    first.append(session, [user("a")])
    with pytest.raises(SessionHeld):
        second.acquire(session)
    first.close()
    first.close()
    assert second.acquire(session) == 1
    second.close()


def test_read_only_home(tmp_path: object) -> None:
    """Where the data folder cannot be made, the error names it and the way on."""
    from pathlib import Path

    blocked = Path(str(tmp_path)) / "file"
    blocked.write_text("not a folder")
    with pytest.raises(StoreUnusable, match="cannot create") as caught:
        open_store(blocked / "brim" / "brim.db")
    assert str(blocked / "brim") in caught.value.message and "--no-session" in str(caught.value.hint)


def test_a_lease_from_before_the_last_start_of_the_machine_counts_for_nothing(tmp_path: Path) -> None:
    """Where the machine went down under a writer, its session is free at once; one of another machine is waited for, unless
    it runs out later than any can: then the clock was set back."""
    path = tmp_path / "brim.db"
    with open_store(path) as store:
        session = store.new_session("/w").id
        store.append(session, [user("before")])

    def held(host: str, expires: float) -> None:
        mine = this_holder()
        place = " ".join([host, "another-boot", *mine.place.split(" ")[2:]])
        with sqlite3.connect(path) as database:
            database.execute("DELETE FROM leases")
            database.execute(
                "INSERT INTO leases (session, holder, place, host, pid, started, since, expires) "
                "SELECT n, 'gone', ?, ?, 1, '1', 0, ? FROM sessions",
                (place, host, expires),
            )
        database.close()

    here = this_holder().host
    for host, expires, free in [(here, 1_100.0, True), ("far", 1_100.0, False), ("far", 9_000_000.0, True)]:
        held(host, expires)
        with open_store(path, clock=lambda: 1_000.0) as store:
            if free:
                assert store.acquire(session) == 1
            else:
                with pytest.raises(SessionHeld):
                    store.acquire(session)
