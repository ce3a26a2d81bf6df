"""Messages: appended, loaded, half answers, leases."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brim.conversation import Media, Message, Opaque, Text, Thinking, assistant, call, result, system, user
from brim.errors import SessionBusy, SessionNotFound, StoreUnusable
from brim.formats import parse_message
from brim.store import SessionHeld, Store, open_store

CONVERSATION = [
    system("be brief"),
    user("search TODO", Media("image", "image/png", "base64", "aGk=")),
    assistant("looking", call("grep", {"pattern": "TODO"}, id="c1")),
    result("c1", "a.py:1:TODO", is_error=False),
    Message("assistant", (Thinking("hm", signed=True, wire={"type": "thinking", "signature": "x"}), Text("one"))),
    Message("user", (Opaque("future", wire={"type": "future", "n": [1, 2.5, None, True]}),), name="ann"),
]


def messages_of(store: Store, session: str) -> list[Message]:
    return store.load(session).messages


def test_messages_come_back(store: Store) -> None:
    """What was appended is loaded again, equal and in order, with seqs that are indexes."""
    session = store.new_session("/work", "auto", "openai/gpt-5").id
    assert store.append(session, CONVERSATION[:2]) == range(2)
    assert store.append(session, CONVERSATION[2:]) == range(2, 6)
    found = store.load(session)
    assert [each.message for each in found] == CONVERSATION
    assert [each.seq for each in found] == list(range(6))
    assert [each.role for each in found] == [each.role for each in CONVERSATION]
    assert not any(each.incomplete for each in found)
    assert store.load(session, 4).messages == CONVERSATION[4:]
    assert (found[-1].message, [e.seq for e in found[1:3]], len(found)) == (CONVERSATION[-1], [1, 2], 6)
    with pytest.raises(IndexError):
        _ = found[6]


def test_messages_outlive_the_store(url: str) -> None:
    """A store opened again holds every message."""
    with open_store(url) as first:
        session = first.new_session("/work").id
        first.append(session, CONVERSATION)
    with open_store(url) as second:
        assert messages_of(second, session) == CONVERSATION


WIRES: list[tuple[str, dict[str, Any]]] = [
    ("openai.chat", {"role": "user", "content": "hello", "x_unknown": {"b": 1, "a": [1.0, 1, True, None, 10**25]}}),
    (
        "openai.chat",
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1.50}"}, "index": 0}
        ]},
    ),
    ("openai.chat", {"role": "tool", "tool_call_id": "c1", "content": "out \u0000 \U0001f98a 中文"}),
    (
        "anthropic.messages",
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "one", "cache_control": {"type": "ephemeral"}},
            {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "two"}], "is_error": True},
            {"type": "text", "text": "and now?"},
        ]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("api", "wire"), WIRES)
def test_wire_objects_are_kept_whole(store: Store, api: str, wire: dict[str, Any]) -> None:
    """A message from a wire comes back with its wire object as it was: unknown fields, key order, number types."""
    parsed = parse_message(wire, api)
    session = store.new_session("/work").id
    store.append(session, [user("before"), *parsed, user("after")])
    found = messages_of(store, session)
    assert found[1:-1] == parsed
    assert all(json.dumps(each.wire) == json.dumps(wire) for each in found[1:-1])
    assert all(each.wire is found[1].wire for each in found[1:-1]), "messages of one wire object share it again"
    for start in range(len(found) + 1):
        assert store.load(session, start).messages == found[start:]


def test_lone_surrogates_become_replacement_characters(store: Store) -> None:
    """A half character is replaced on the way in, in brim's own messages and in wire objects; whole ones stay."""
    bad = "status \ud83d… failed \udc00 and fine 🔥 \ud83d\ude00"
    session = store.new_session("/w \udce9", title="t \ud83d").id
    [wired] = parse_message({"role": "user", "content": bad, "k\ud83d": [bad]}, "openai.chat")
    store.append(session, [user(bad), wired])
    first, second = messages_of(store, session)
    assert first.text == second.text == "status �… failed � and fine 🔥 😀"
    json.dumps([first.text, second.wire], ensure_ascii=False).encode()
    assert store.get_session(session).title == "t �"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
MESSAGES = st.lists(
    st.one_of(
        st.builds(user, TEXTS),
        st.builds(system, TEXTS),
        st.builds(lambda t, a, i: assistant(t, call("f", {"x": a}, id=i)), TEXTS, TEXTS, TEXTS),
        st.builds(lambda i, t, e: result(i, t, is_error=e), TEXTS, TEXTS, st.sampled_from([True, False, None])),
        st.builds(lambda t: parse_message({"role": "user", "content": t}, "openai.chat")[0], TEXTS),
    ),
    max_size=6,
)


@given(batches=st.lists(MESSAGES, max_size=4))
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_messages_come_back(store: Store, batches: list[list[Message]]) -> None:
    """Any conversation is loaded exactly as it was appended, in whatever batches."""
    session = store.new_session("/work").id
    for batch in batches:
        store.append(session, batch)
    assert messages_of(store, session) == [message for batch in batches for message in batch]


def test_append_is_all_or_nothing(store: Store) -> None:
    """A batch that cannot be stored whole leaves nothing of itself."""
    session = store.new_session("/work").id
    store.append(session, [user("one")])
    odd = Message("user", (Opaque("odd", wire={"n": object()}),))
    with pytest.raises(TypeError):
        store.append(session, [user("two"), odd])
    assert messages_of(store, session) == [user("one")]


def test_unknown_session_is_named(store: Store) -> None:
    """Every call with an id that does not exist says which."""
    for call_it in (
        lambda: store.append("nope", [user("x")]),
        lambda: store.load("nope"),
        lambda: store.acquire("nope"),
        lambda: store.begin_reply("nope"),
        lambda: store.record_request("nope"),
        lambda: store.last_plan("nope"),
        lambda: store.fork("nope"),
        lambda: store.delete("nope"),
        lambda: store.rename("nope", "x"),
    ):
        with pytest.raises(SessionNotFound, match="nope"):
            call_it()


def test_finished_reply_stands_once(store: Store) -> None:
    """A streamed answer is one complete message in the end, however often it was written on the way."""
    session = store.new_session("/work").id
    store.append(session, [user("q")])
    reply = store.begin_reply(session)
    for piece in ("one ", "two\0 ", "thr"):
        reply.extend(piece)
        reply.flush()
    half = store.load(session)[-1]
    assert (half.incomplete, half.message) == (True, assistant("one two\0 thr"))
    assert reply.finish(assistant("one two three", call("f", id="c"))) == range(1, 2)
    assert messages_of(store, session) == [user("q"), assistant("one two three", call("f", id="c"))]
    assert not store.load(session)[-1].incomplete


def test_left_reply_becomes_incomplete_message(url: str) -> None:
    """A reply that nobody finished is kept, marked, in its place, and only once."""
    with open_store(url) as first:
        session = first.new_session("/work").id
        first.append(session, [user("q")])
        reply = first.begin_reply(session)
        reply.extend("half an ans")
        reply.flush()
    with open_store(url) as second:
        assert [(e.message, e.incomplete) for e in second.load(session)] == [
            (user("q"), False),
            (assistant("half an ans"), True),
        ]
        assert second.append(session, [user("go on")]) == range(2, 3)
        assert [e.incomplete for e in second.load(session)] == [False, True, False]
        assert messages_of(second, session) == [user("q"), assistant("half an ans"), user("go on")]


def test_kept_and_dropped_replies(store: Store) -> None:
    """An interrupted reply keeps what came, unwritten text included; a dropped one leaves nothing."""
    session = store.new_session("/work").id
    reply = store.begin_reply(session)
    reply.extend("a")
    reply.flush()
    reply.drop()
    assert list(store.load(session)) == []
    reply.extend("second try")
    reply.keep()
    assert [(e.message, e.incomplete) for e in store.load(session)] == [(assistant("second try"), True)]
    assert store.begin_reply(session).keep() == range(1, 1)


def test_reply_is_written_by_size(store: Store) -> None:
    """A reply writes itself once enough has come, without being told."""
    session = store.new_session("/work").id
    reply = store.begin_reply(session)
    reply.extend("x" * reply.EVERY_CHARS)
    assert store.load(session)[-1].message.text == "x" * reply.EVERY_CHARS


def test_one_writer_at_a_time(url: str) -> None:
    """A second store on a session is refused, told who writes it and offered a fork; after a release it may."""
    with open_store(url) as first, open_store(url) as second:
        session = first.new_session("/work").id
        first.append(session, [user("mine")])
        for attempt in (
            lambda: second.append(session, [user("no")]),
            lambda: second.acquire(session),
            lambda: second.begin_reply(session),
            lambda: second.record_request(session),
            lambda: second.delete(session),
        ):
            with pytest.raises(SessionHeld) as caught:
                attempt()
            assert isinstance(caught.value, SessionBusy)
            assert caught.value.pid is not None and str(caught.value.pid) in caught.value.message
            assert "--fork" in (caught.value.hint or "")
        assert messages_of(second, session) == [user("mine")], "reading needs no lease"
        fork = second.fork(session)
        second.append(fork.id, [user("in the fork")])
        first.release(session)
        assert second.acquire(session) == 1
        second.append(session, [user("mine now")])
        assert messages_of(first, session) == [user("mine"), user("mine now")]


def test_stale_view_cannot_write(url: str) -> None:
    """A store that released a session, or lost it, cannot write behind what another wrote since."""
    with open_store(url) as first, open_store(url) as second:
        session = first.new_session("/work").id
        first.append(session, [user("one")])
        first.release(session)
        with second.lease(session):
            second.append(session, [user("two")])
        with pytest.raises(SessionHeld, match="went on elsewhere: it has 2 messages, not 1"):
            first.append(session, [user("blind")])
        assert first.acquire(session) == 2
        first.append(session, [user("three")])
        assert messages_of(second, session) == [user("one"), user("two"), user("three")]


def test_lease_of_another_machine_expires(url: str) -> None:
    """From another machine only time can be judged: a lease not renewed for long enough is taken over."""
    from brim.store.leases import LEASE_S

    now = [1_000_000.0]
    with open_store(url, clock=lambda: now[0]) as far, open_store(url, clock=lambda: now[0]) as near:
        far._holder = far._holder._replace(place="elsewhere", host="far.example")
        session = far.new_session("/work").id
        far.append(session, [user("one")])
        now[0] += LEASE_S * 0.6
        far.append(session, [user("two")])  # renews
        now[0] += LEASE_S * 0.6
        with pytest.raises(SessionHeld, match=r"far\.example"):
            near.append(session, [user("no")])
        now[0] += LEASE_S * 0.6
        near.acquire(session)
        near.append(session, [user("three")])
        with pytest.raises(SessionHeld):
            far.append(session, [user("late")])
        assert messages_of(near, session) == [user("one"), user("two"), user("three")]


def test_clock_that_jumps(url: str) -> None:
    """A clock that goes back or far ahead changes neither the order of messages nor which session is the latest."""
    now = [2e9]
    with open_store(url, clock=lambda: now[0]) as store:
        one, two = store.new_session("/work").id, store.new_session("/work").id
        for step, (session, at) in enumerate([(one, 2e9), (two, 1e9), (one, 3e9), (two, 0.0)]):
            now[0] = at
            store.append(session, [user(str(step))])
        assert [m.text for m in messages_of(store, two)] == ["1", "3"]
        assert store.find_session(None, "/work").id == two
        now[0] = 5.0
        with open_store(url, clock=lambda: now[0]) as other, pytest.raises(SessionHeld):
            other.append(one, [user("no")])
        store.release(one)
        store.append(one, [user("last")])
        assert store.find_session(None, "/work").id == one


def test_threads_share_a_store(store: Store) -> None:
    """One store may be used from several threads at once; each session stays in order."""
    sessions = [store.new_session("/work").id for _ in range(4)]

    def fill(session: str) -> None:
        for n in range(25):
            store.append(session, [user(f"{session} {n}")])

    threads = [threading.Thread(target=fill, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for session in sessions:
        assert [m.text for m in messages_of(store, session)] == [f"{session} {n}" for n in range(25)]


def test_unreadable_row_is_named(url: str) -> None:
    """A message whose body is damaged says which it is when looked at; the others load."""
    with open_store(url) as store:
        session = store.new_session("/work").id
        store.append(session, [user("one"), user("two"), user("three")])
        with store.database.definition() as connection:
            connection.exec_driver_sql('UPDATE messages SET body = \'{"role": "us\' WHERE seq = 1')
        found = store.load(session)
        assert [found[0].message, found[2].message] == [user("one"), user("three")]
        with pytest.raises(StoreUnusable, match=f"message 1 of session {session}"):
            _ = found[1].message
