"""Sessions written out and read in: brim's own forms, other programs' files, damaged files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from brim.conversation import Message, assistant, call, result, system, user
from brim.errors import UsageError
from brim.formats import parse_message
from brim.store import Session, Store, open_store

WIRE = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "t1", "content": "one", "x": {"b": 1, "a": 2.0}},
        {"type": "tool_result", "tool_use_id": "t2", "content": "two", "is_error": True},
        {"type": "text", "text": "and now?"},
    ],
}


def _filled(store: Store) -> Session:
    made = store.new_session("/work", "auto", "m", title="a title", meta={"profile": "code"})
    store.append(made.id, [system("s"), user("q"), assistant("a", call("f", {"x": 1}, id="c1")), result("c1", "r")])
    store.append(made.id, parse_message(WIRE, "anthropic.messages"), meta={"injected": ["a.py"]})
    store.record_request(made.id, mode="auto", plan={"fates": [1]}, usage={"input": 9}, cost=0.5, bill={"used": 9})
    store.record_request(made.id, mode="auto", plan={"fates": [1, 2]}, error="boom")
    reply = store.begin_reply(made.id)
    reply.extend("half")
    reply.keep()
    store.blobs(made.id).put(b"the original \xff")
    return store.get_session(made.id)


def _same(store: Store, one: str, other: Store, two: str) -> None:
    for a, b in zip(store.load(one), other.load(two), strict=True):
        assert (a.message, a.seq, a.created, a.incomplete, a.meta) == (
            b.message,
            b.seq,
            b.created,
            b.incomplete,
            b.meta,
        )
        assert json.dumps(a.message.wire) == json.dumps(b.message.wire)
    skip = {"id", "created"}
    for left, right in zip(store.requests(one), other.requests(two), strict=True):
        assert {f: getattr(left, f) for f in left.__struct_fields__ if f not in skip} == {
            f: getattr(right, f) for f in right.__struct_fields__ if f not in skip
        }
    assert store.last_plan(one) == other.last_plan(two)


@pytest.mark.parametrize("form", ["object", "lines", "file"])
def test_exports_come_back_whole(store: Store, tmp_path: Path, form: str) -> None:
    """An export read into another store is the same session: messages, wire objects, requests, plan, originals."""
    session = _filled(store)
    source: Any
    if form == "object":
        source = json.loads(json.dumps(store.export_session(session.id, originals=True)))
    elif form == "lines":
        source = "".join(store.export_lines(session.id, originals=True)).encode()
    else:
        source = tmp_path / "export.json"
        source.write_text(json.dumps(store.export_session(session.id, originals=True), ensure_ascii=False, indent=2))
    with open_store(tmp_path / "other.db") as other:
        done = other.import_session(source, project="/elsewhere")
        assert done.warnings == [] and done.kind == "brim export"
        made = done.session
        assert (made.id, made.project, made.title) == (session.id, "/elsewhere", "a title")
        assert (made.mode, made.model, made.created) == ("auto", "m", session.created)
        assert made.meta["profile"] == "code" and made.meta["imported"]["originals"] is True
        _same(store, session.id, other, made.id)
        [handle] = [each["hash"] for each in store.export_session(session.id, originals=True)["originals"]]
        assert other.blobs().get(handle) == b"the original \xff"
        again = other.import_session(source, project="/elsewhere").session
        assert again.id != made.id, "an id that is taken is not overwritten"
        other.append(made.id, [user("goes on")])


def test_export_without_originals_says_so(store: Store, tmp_path: Path) -> None:
    """Where originals stayed behind, the imported session knows that nothing can be recalled."""
    session = _filled(store)
    made = store.import_session(store.export_session(session.id), project="/w").session
    assert made.meta["imported"]["originals"] is False


def test_forks_keep_their_seed_plan(store: Store) -> None:
    """A fork exported before its first request still starts from its parent's plan."""
    fork = store.fork(_filled(store).id)
    made = store.import_session(store.export_session(fork.id), project="/w").session
    assert store.last_plan(made.id) == {"fates": [1, 2]}


def test_markdown(store: Store) -> None:
    """The Markdown form shows every message, fences that hold and what broke off."""
    session = store.new_session("/work", title="T").id
    store.append(session, [user("q"), assistant("", call("f", {"x": 1}, id="c")), result("c", "a ``` b")])
    reply = store.begin_reply(session)
    reply.extend("half")
    reply.keep()
    text = store.export_markdown(session)
    assert text.startswith("# T\n") and "## 0. User\n\nq\n" in text and "Calls `f`:" in text
    assert "````\na ``` b\n````" in text and "## 3. Assistant (broke off)\n\nhalf" in text


def test_nul_block_in_the_middle(store: Store, tmp_path: Path) -> None:
    """A run of NUL bytes inside a session file costs nothing but a warning that names file and line."""
    lines = [
        json.dumps({"role": "user" if i % 2 == 0 else "assistant", "content": f"m{i}"}).encode() for i in range(10)
    ]
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n".join(lines[:4]) + b"\n" + b"\0" * 400 + b"\n" + b"\n".join(lines[4:]) + b"\n")
    done = store.import_session(path, project="/w")
    assert [each.message.text for each in store.load(done.session.id)] == [f"m{i}" for i in range(10)]
    [warning] = done.warnings
    assert "s.jsonl" in warning and "line 5" in warning


@pytest.mark.parametrize("damage", ["half a line", "NUL before", "NUL after", "not UTF-8", "no object", "no role"])
def test_damaged_lines(store: Store, damage: str) -> None:
    """Each kind of damaged line is skipped or mended with one warning; all others are kept."""
    lines = [json.dumps({"role": "user", "content": f"m{i}"}).encode() for i in range(6)]
    kept = {"NUL before": 6, "NUL after": 6, "not UTF-8": 6}.get(damage, 5)
    lines[2] = {
        "half a line": lines[2][:14],
        "NUL before": b"\0" * 50 + lines[2],
        "NUL after": lines[2] + b"\0" * 50,
        "not UTF-8": lines[2].replace(b"m2", b"m2 caf\xe9"),
        "no object": b"[1, 2]",
        "no role": b'{"role": 5, "content": "m2"}',
    }[damage]
    done = store.import_session(b"\xef\xbb\xbf" + b"\r\n".join(lines), project="/w", name="log.jsonl")
    texts = [each.message.text for each in store.load(done.session.id)]
    assert len(texts) == kept and texts[-1] == "m5" and texts[0] == "m0"
    [warning] = done.warnings
    assert warning.startswith("log.jsonl, line 3:")


def test_records_that_ran_into_each_other(store: Store) -> None:
    """Two records on one line, a whole one behind a torn one, raw control characters, nesting that nothing can read, another
    program's roles: what is whole is kept, what is not is named."""
    one, two, three = ({"role": "user", "content": text} for text in ("one", "two", 'three {"role": 1}'))
    deep = "[" * 200_000 + "]" * 200_000
    lines = [
        json.dumps(one) + json.dumps(two),
        '{"role": "user", "content": "torn {"a": 1} and' + json.dumps(three),
        '{"role": "user", "content": "a\ttab\x01"}',
        '{"role": "user", "content": ' + deep + "}",
        '{"role": "model", "content": "from a model"}',
        '{"role": "narrator", "content": "who is this"}',
    ]
    found = store.import_session("\n".join(lines).encode(), project="/w", name="log")
    texts = [each.message.text for each in store.load(found.session.id)]
    assert texts == ["one", "two", three["content"], "a\ttab\x01", "from a model"]
    assert [each.split(": ")[0] for each in found.warnings] == [f"log, line {n}" for n in (1, 2, 4, 6)]
    assert "torn record" in found.warnings[1] and "narrator" in found.warnings[3]
    assert store.load(found.session.id)[4].message.role == "assistant"


def test_a_file_in_utf_16(store: Store) -> None:
    """What Windows' shells write with `>` is read like any other."""
    lines = "\r\n".join(json.dumps({"role": "user", "content": f"Grüße {n}"}, ensure_ascii=False) for n in range(3))
    found = store.import_session(lines.encode("utf-16"), project="/w", name="log")
    assert [each.message.text for each in store.load(found.session.id)] == [f"Grüße {n}" for n in range(3)]
    assert found.warnings == []


def test_old_file_with_lone_surrogates(store: Store) -> None:
    """A file that already holds half characters imports clean, and so does a list from memory."""
    bad = {"role": "user", "content": "status \ud83d… failed \udc00 and fine 🔥"}
    for source in (json.dumps(bad).encode(), [bad], json.dumps({"messages": [bad]}).encode()):
        session = store.import_session(source, project="/w").session.id
        [stored] = store.load(session)
        assert stored.message.text == "status �… failed � and fine 🔥"
        json.dumps(stored.message.wire, ensure_ascii=False).encode()


def test_message_lists_and_bodies(store: Store) -> None:
    """OpenAI and Anthropic message lists and request bodies are told apart and kept as they came."""
    chat = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    anthropic: list[dict[str, Any]] = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]},
    ]
    responses = [{"type": "message", "role": "user", "content": "q"}]
    cases: list[tuple[Any, str, int]] = [
        (chat, "openai.chat", 3),
        (anthropic, "anthropic.messages", 3),
        ({"model": "gpt", "messages": chat}, "openai.chat", 3),
        ({"model": "c", "system": "s", "messages": anthropic[:1]}, "anthropic.messages", 2),
        ({"model": "gpt", "input": "hello"}, "openai.responses", 1),
        (responses, "openai.responses", 1),
    ]
    for source, api, count in cases:
        done = store.import_session(source, project="/w")
        found = [each.message for each in store.load(done.session.id)]
        assert done.warnings == [] and len(found) == count
        assert {each.api for each in found} == {api}
    assert store.list_sessions()[3].model in ("c", "gpt")


def test_one_bad_message_does_not_cost_the_body(store: Store) -> None:
    """A request body with a message that is none keeps all the others, and names the one."""
    body = {"messages": [{"role": "user", "content": "a"}, {"role": 5}, {"role": "user", "content": "b"}]}
    done = store.import_session(body, project="/w", name="body.json")
    assert [each.message.text for each in store.load(done.session.id)] == ["a", "b"]
    assert len(done.warnings) == 1 and "body.json, message 1" in done.warnings[0]


@pytest.mark.parametrize("source", [b"", b"hello\nworld", b"{}", b"[]", b"SQLite format 3\0xxxx", [], {"a": 1}])
def test_what_is_no_conversation(store: Store, source: Any) -> None:
    """A source that holds no conversation is refused, and no empty session is left behind."""
    with pytest.raises(UsageError):
        store.import_session(source, project="/w")
    assert store.list_sessions() == []


def test_missing_file(store: Store, tmp_path: Path) -> None:
    """A file that cannot be read is named."""
    with pytest.raises(UsageError, match=r"nope\.jsonl"):
        store.import_session(tmp_path / "nope.jsonl", project="/w")


def test_llm_logs(store: Store) -> None:
    """What `llm logs --json` prints becomes a session, its system prompt once."""
    logs = [
        {"id": "1", "model": "gpt-4o", "prompt": "hi", "system": "be kind", "response": "hello",
         "datetime_utc": "2026-01-02T03:04:05.123456", "conversation_name": "greeting"},
        {"id": "2", "model": "gpt-4o", "prompt": "more", "system": "be kind", "response": "sure",
         "datetime_utc": "2026-01-02T03:05:05.123456"},
    ]  # fmt: skip
    session = store.import_session(json.dumps(logs).encode(), project="/w").session
    assert [each.message for each in store.load(session.id)] == [
        system("be kind"), user("hi"), assistant("hello"), user("more"), assistant("sure"),
    ]  # fmt: skip
    assert session.title == "greeting"
    assert store.load(session.id)[0].created == pytest.approx(1767323045.123456)


class Log:
    """Writes the lines of a Claude Code log."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def add(self, kind: str, message: dict[str, Any], parent: str | None, **more: Any) -> str:
        uuid = f"u{len(self.lines)}"
        self.lines.append({
            "type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": False, "sessionId": "s", "cwd": "/w",
            "timestamp": f"2026-01-02T03:04:{len(self.lines):02d}.000Z", "message": message, **more,
        })  # fmt: skip
        return uuid

    def user(self, content: Any, parent: str | None, **more: Any) -> str:
        return self.add("user", {"role": "user", "content": content}, parent, **more)

    def assistant(self, id: str, block: dict[str, Any], parent: str | None, **more: Any) -> str:
        message = {"id": id, "type": "message", "role": "assistant", "model": "claude-x", "content": [block],
                   "stop_reason": None, "usage": {"input_tokens": 3}}  # fmt: skip
        return self.add("assistant", message, parent, **more)

    @property
    def data(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)


def _tool_use(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Read", "input": {"file": id}}


def _tool_result(id: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": id, "content": f"result {id}"}]


def _texts(store: Store, session: str) -> list[Message]:
    return [each.message for each in store.load(session)]


def test_claude_code_log(store: Store) -> None:
    """A Claude Code log imports as the API messages it was: blocks joined, parallel results together, side chains out."""
    log = Log()
    log.lines.append({"type": "summary", "summary": "Fix the parser", "leafUuid": "u9"})
    first = log.user("find it", None)
    thought = log.assistant("m1", {"type": "thinking", "thinking": "hm", "signature": "sig"}, first)
    one = log.assistant("m1", _tool_use("t1"), thought)
    two = log.assistant("m1", _tool_use("t2"), one)
    log.user("a sub-agent's prompt", None, isSidechain=True)
    log.user(_tool_result("t1"), one)  # answers hang on their own call: a branch that is none
    last = log.user(_tool_result("t2"), two)
    log.lines.append({"type": "system", "uuid": "sys", "parentUuid": last, "content": "hook ran"})
    log.assistant("m2", {"type": "text", "text": "done"}, "sys")
    done = store.import_session(log.data, project="/w")
    assert done.warnings == [] and done.kind == "Claude Code log"
    assert done.session.title == "Fix the parser" and done.session.model == "anthropic/claude-x"
    found = _texts(store, done.session.id)
    assert [m.role for m in found] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [c.id for c in found[1].calls] == ["t1", "t2"]
    assert [block["type"] for block in found[1].wire["content"]] == ["thinking", "tool_use", "tool_use"]
    assert set(found[1].wire) == {"role", "content"}, "what the API would not take again is left out"
    assert found[2].wire is found[3].wire, "results of parallel calls go in one user message"
    assert found[-1].text == "done"


def test_claude_code_rewind(store: Store) -> None:
    """A branch that the user left by rewinding is not part of the conversation."""
    log = Log()
    first = log.user("start", None)
    answer = log.assistant("m1", {"type": "text", "text": "ok"}, first)
    wrong = log.user("wrong turn", answer)
    log.assistant("m2", {"type": "text", "text": "going wrong"}, wrong)
    right = log.user("right turn", answer)
    log.assistant("m3", {"type": "text", "text": "going right"}, right)
    session = store.import_session(log.data, project="/w").session.id
    assert [m.text for m in _texts(store, session)] == ["start", "ok", "right turn", "going right"]


def test_claude_code_damaged_line(store: Store) -> None:
    """A damaged line breaks the chain of parents, but nothing before or after it is lost."""
    log = Log()
    parent: str | None = None
    for n in range(4):
        parent = log.user(f"q{n}", parent)
        parent = log.assistant(f"m{n}", {"type": "text", "text": f"a{n}"}, parent)
    lines = log.data.splitlines(keepends=True)
    lines[3] = b"\0" * 200 + b"\n"
    done = store.import_session(b"".join(lines), project="/w", name="x.jsonl")
    assert [m.text for m in _texts(store, done.session.id)] == ["q0", "a0", "q1", "q2", "a2", "q3", "a3"]
    assert len(done.warnings) == 1 and "x.jsonl, line 4" in done.warnings[0]


def test_claude_code_compaction(store: Store) -> None:
    """A summary does not stand beside what it sums up; where only the summary is left, the session says so."""
    log = Log()
    first = log.user("long ago", None)
    answer = log.assistant("m1", {"type": "text", "text": "ok"}, first)
    log.lines.append(
        {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "logicalParentUuid": answer}
    )
    summary = log.user("This session is continued: …", "b", isCompactSummary=True)
    log.assistant("m2", {"type": "text", "text": "going on"}, summary)
    done = store.import_session(log.data, project="/w")
    assert [m.text for m in _texts(store, done.session.id)] == ["long ago", "ok", "going on"]
    assert done.session.meta["imported"]["originals"] is True
    cut = b"".join(json.dumps(line).encode() + b"\n" for line in log.lines[2:])
    done = store.import_session(cut, project="/w")
    assert [m.text for m in _texts(store, done.session.id)] == ["This session is continued: …", "going on"]
    assert done.session.meta["imported"]["originals"] is False
