"""Session logs as agents really write them: every request is counted once, at the model that answered it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brim.conversation import assistant, user
from brim.replay.audit import Audit, audit
from brim.replay.sources import find_files, read_transcripts
from brim.replay.transcript import Transcript
from brim.replay.yardstick import text_of
from brim.store import open_store
from shared_replay import write_lines

PER_MILLION = {"claude-sonnet-4-5": (3.0, 15.0, 0.3, 3.75), "claude-haiku-4-5": (1.0, 5.0, 0.1, 1.25)}
"""US dollars for input, output, reading and writing the cache, from Anthropic's price list."""


def read(path: Path) -> list[Transcript]:
    return [found.transcript for found in read_transcripts(find_files([path]))]


def audited(path: Path) -> Audit:
    return audit(iter(read(path)), modes=["full"])


class Log:
    """A Claude Code log in the making; `last` is the entry that the next one follows."""

    def __init__(self, session: str) -> None:
        self.session, self.last, self.lines = session, "", list[dict[str, Any]]()

    def add(self, type: str, message: Any, **more: Any) -> str:
        number = len(self.lines)
        uuid = f"{self.session}-{number}"
        base = {"type": type, "uuid": uuid, "parentUuid": self.last or None, "sessionId": self.session,
                "timestamp": f"2026-01-05T10:{number:02d}:00.000Z", "isSidechain": False}  # fmt: skip
        self.lines.append({**base, **({"message": message} if message else {}), **more})
        self.last = uuid
        return uuid

    def user(self, content: Any, **more: Any) -> str:
        return self.add("user", {"role": "user", "content": content}, **more)

    def answer(
        self, id: str, *blocks: Any, used: tuple[int, int, int, int] | None, model: str = "claude-sonnet-4-5"
    ) -> str:
        """One line a block; until the last the output is not known yet, as when an answer is streamed."""
        for number, block in enumerate(blocks):
            message: dict[str, Any] = {"id": id, "role": "assistant", "model": model, "content": [block]}
            if used is not None:
                message["usage"] = {
                    "input_tokens": used[0], "cache_read_input_tokens": used[1], "cache_creation_input_tokens": used[2],
                    "output_tokens": used[3] if number == len(blocks) - 1 else 1,
                }  # fmt: skip
            self.add("assistant", message, requestId=f"req_{id}")
        return self.last


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def odd_session() -> Log:
    log = Log("s1")
    log.lines += [
        {"type": "summary", "summary": "Fix it", "leafUuid": "x"},
        {"type": "file-history-snapshot", "snapshot": {}},
    ]
    log.user("<local-command-caveat>…", isMeta=True)
    log.user("fix src/config.py")
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    tool = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "src/config.py"}}
    log.answer("m1", thinking, text("I look"), tool, used=(10, 0, 12_000, 200))
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 9_000}}
    log.user([{"type": "tool_result", "tool_use_id": "t1", "content": [text("def load_config(): ..."), image]}])
    before = log.answer("m2", text("load_config it is"), used=(5, 12_010, 900, 80))
    log.user("go on")
    log.answer("left", text("a branch the user left"), used=(5, 12_900, 100, 33))
    log.last = before
    log.lines.append({"type": "queue-operation", "operation": "enqueue", "sessionId": "s1"})
    log.user("no, do it so")
    log.answer("thought", thinking, used=(5, 12_900, 150, 44))
    log.user("[Request interrupted by user]")
    log.answer("failed", text("API Error: 529"), used=(0, 0, 0, 0), model="<synthetic>")
    log.answer("m3", text("done by another"), used=(3, 0, 14_000, 70), model="claude-haiku-4-5")
    log.add("system", None, subtype="compact_boundary", logicalParentUuid=log.last)
    log.user("This session is being continued", isCompactSummary=True)
    log.answer("m4", text("load_config again"), used=(3, 0, 5_000, 60))
    log.user("and?")
    log.answer("untold", text("nothing"), used=None)
    return log


def independent(*paths: Path) -> dict[str, tuple[int, int, int, int, int, float]]:
    """By model, (requests, input, read, written, output, US dollars) from the lines alone, the last of each message."""
    told: dict[str, tuple[str, Any]] = {}
    for path in paths:
        for line in map(json.loads, path.read_text().splitlines()):
            message = line.get("message") or {}
            if "usage" in message and message["model"] in PER_MILLION:
                told[message["id"]] = message["model"], message["usage"]
    sums: dict[str, tuple[int, int, int, int, int, float]] = {}
    for model, usage in told.values():
        fresh, out = usage["input_tokens"], usage["output_tokens"]
        hit, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
        prices = PER_MILLION[model]
        usd = (fresh * prices[0] + out * prices[1] + hit * prices[2] + written * prices[3]) / 1e6
        old = sums.get(model, (0, 0, 0, 0, 0, 0.0))
        new = (1, fresh + hit + written, hit, written, out, usd)
        sums[model] = tuple(a + b for a, b in zip(old, new, strict=True))
    return sums


def spent(report: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    keys = ("requests", "input", "cached_read", "cached_write", "output")
    return {model: (*(row[key] for key in keys), pytest.approx(row["usd"], abs=1e-6))
            for model, row in report["models"].items()}  # fmt: skip


def test_every_request_of_a_claude_log_counts_once(tmp_path: Path) -> None:
    """Branches left, answers of thinking alone and changes of model are in the sums; repeated lines and errors shown as
    answers are not."""
    path = write_lines(tmp_path / "s1.jsonl", odd_session().lines)
    (session,) = read(path)
    assert "".join(m["role"][0] for m in session.messages) == "uuatauuaaua"
    report = audited(path).report()
    assert spent(report) == independent(path)
    assert report["spent"]["requests"] == 6 and report["spent"]["unreported"] == 1
    assert report["window"].keys() >= {"tool Read", "user", "assistant"}
    assert report["breaks"].keys() == {"another model, which has a cache of its own", "compacted by the agent"}


def sub_agent(session: str, prefix: str, **more: Any) -> Iterator[dict[str, Any]]:
    parent = None
    for number, role in enumerate(("user", "assistant", "user", "assistant")):
        message: dict[str, Any] = {"role": role, "content": [text(f"{prefix} {number}")]}
        if role == "assistant":
            usage = {
                "input_tokens": 2,
                "cache_read_input_tokens": 0,
                "cache_creation_input_tokens": 90,
                "output_tokens": 7,
            }
            message |= {"id": f"{prefix}{number}", "model": "claude-haiku-4-5", "usage": usage}
        yield {"type": role, "uuid": f"{prefix}-{number}", "parentUuid": parent, "sessionId": session, "isSidechain": True,
               "timestamp": f"2026-01-05T11:00:0{number}Z", "message": message, **more}  # fmt: skip
        parent = f"{prefix}-{number}" if number != 1 else "lost"


def test_sub_agents_in_the_log_and_beside_it(tmp_path: Path) -> None:
    """A sub-agent is a conversation of its own, in the session's file or in one of its own, and whole even where a parent
    is missing, if its lines name it."""
    log = odd_session()
    one = write_lines(tmp_path / "s1.jsonl", [*log.lines, *sub_agent("s1", "in", agentId="77")])
    (tmp_path / "s1" / "subagents").mkdir(parents=True)
    two = write_lines(tmp_path / "s1" / "subagents" / "agent-88.jsonl", list(sub_agent("s1", "out", agentId="88")))
    assert [each.id for each in read(tmp_path)] == ["s1-sub-88", "s1", "s1-sub-77"]
    assert [len(each.messages) for each in read(tmp_path) if "sub" in each.id] == [4, 4]
    assert spent(audited(tmp_path).report()) == independent(one, two)


def test_a_resumed_log_counts_from_where_it_goes_on(tmp_path: Path) -> None:
    """Of a log that begins with a copy of another, only what comes after is money, window and what modes would save."""
    log = odd_session()
    first = write_lines(tmp_path / "a.jsonl", log.lines[:-2])
    alone = audited(first).report()
    resumed = Log("s2")
    resumed.lines = [{**line, "sessionId": "s2"} if "sessionId" in line else line for line in log.lines[:-2]]
    resumed.last = log.lines[-3]["uuid"]
    resumed.user("go on")
    resumed.answer("new", text("load_config once more"), used=(3, 100, 5_400, 62))
    second = write_lines(tmp_path / "b.jsonl", resumed.lines)
    report = audited(tmp_path).report()
    assert spent(report) == independent(first, second)
    assert report["modes"]["full"]["requests"] == alone["modes"]["full"]["requests"] + 1
    assert report["unused"] == alone["unused"]


@pytest.mark.parametrize("named", [True, False], ids=["uuids", "none"])
def test_what_claude_code_streams(tmp_path: Path, named: bool) -> None:
    """The messages of `--output-format stream-json`, which name no parents, are the session they show, sub-agents apart."""
    used = {"input_tokens": 3, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 900, "output_tokens": 8}
    lines: list[dict[str, Any]] = [{"type": "system", "subtype": "init", "session_id": "s"}]

    def add(role: str, block: Any, id: str = "", agent: str | None = None) -> None:
        message: dict[str, Any] = {"role": role, "content": [block]}
        if id:
            message |= {"id": id, "model": "claude-sonnet-4-5", "usage": used}
        line = {"type": role, "message": message, "session_id": "s", "parent_tool_use_id": agent}
        lines.append({**line, **({"uuid": f"u{len(lines)}"} if named else {})})

    add("user", text("fix src/a_b.py"))
    add("assistant", text("I ask"), "m1")
    add("assistant", {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "look"}}, "m1")
    add("user", text("look"), agent="t1")
    add("assistant", text("src/a_b.py is there"), "m2", agent="t1")
    add("user", {"type": "tool_result", "tool_use_id": "t1", "content": "it is there"})
    add("assistant", text("src/a_b.py is fixed"), "m3")
    lines.append({"type": "result", "subtype": "success", "session_id": "s", "usage": used, "result": "done"})
    path = write_lines(tmp_path / "out.jsonl", lines)
    main, sub = read(path)
    assert [m["role"][0] for m in main.messages] == ["u", "a", "t", "a"] and main.id == "s"
    assert [text_of(m) for m in sub.messages] == ["look", "src/a_b.py is there"]
    assert spent(audited(path).report()) == independent(path)


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-05T10:00:00.000Z", "type": "response_item", "payload": {"type": kind, **payload}}


def said(role: str, words: str) -> dict[str, Any]:
    return item(
        "message", role=role, content=[{"type": "output_text" if role == "assistant" else "input_text", "text": words}]
    )


class Counts:
    """codex' token_count events, which carry the sum so far."""

    def __init__(self) -> None:
        self.total = 0

    def __call__(self, prompt: int, cached: int, output: int, *, again: bool = False) -> dict[str, Any]:
        self.total += 0 if again else prompt + output
        last = {"input_tokens": prompt, "cached_input_tokens": cached, "output_tokens": output}
        info = {"total_token_usage": {"total_tokens": self.total}, "last_token_usage": last}
        return {
            "timestamp": "2026-01-05T10:00:00.000Z",
            "type": "event_msg",
            "payload": {"type": "token_count", "info": info},
        }


def codex_session(count: Counts) -> list[dict[str, Any]]:
    def line(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-01-05T10:00:00.000Z", "type": kind, "payload": payload}

    return [
        line("session_meta", id="c1", instructions="Be terse"),
        line("turn_context", model="gpt-5-codex"),
        said("user", "fix src/a_b.py"),
        line("event_msg", type="token_count", info=None),
        item("reasoning", summary=[], encrypted_content="gAAA"),
        item("function_call", name="shell", arguments='{"command": ["cat", "src/a_b.py"]}', call_id="k1"),
        count(5_000, 0, 100),
        item("function_call_output", call_id="k1", output='{"output": "def run_it()"}'),
        count(5_000, 0, 100, again=True),
        said("assistant", "run_it is fixed"),
        count(5_600, 4_992, 120),
        count(6_000, 5_504, 900),  # the request that wrote the summary
        line("compacted", message="summary", replacement_history=[]),
        line("turn_context", model="gpt-5.1-codex"),
        said("user", "again"),
        said("assistant", "run_it again"),
        count(2_000, 0, 20),
    ]


def test_codex_requests_beside_the_conversation_and_forks(tmp_path: Path) -> None:
    """The request that wrote a summary is counted, the model may change, and a fork pays only for what it adds."""
    count = Counts()
    lines = codex_session(count)
    write_lines(tmp_path / "rollout-1.jsonl", lines)
    (one,) = read(tmp_path)
    assert [one.usage[n]["prompt_tokens"] for n in sorted(one.usage)] == [5_000, 5_600, 2_000]
    assert [row["prompt_tokens"] for row in one.aside] == [6_000]
    meta = {**lines[0], "payload": {"id": "fork", "forked_from_id": "c1"}}
    later = [{**line, "timestamp": "2026-01-06T10:00:00.000Z"} for line in lines]
    more = [said("user", "more"), said("assistant", "run_it more"), count(2_100, 1_900, 21)]
    write_lines(tmp_path / "rollout-2.jsonl", [meta, *later, *more])
    assert [each.id for each in read(tmp_path)] == ["c1", "fork"]
    report = audited(tmp_path).report()
    assert {model: (row["requests"], row["input"], row["cached_read"]) for model, row in report["models"].items()} == {
        "gpt-5-codex": (3, 16_600, 10_496),
        "gpt-5.1-codex": (2, 4_100, 1_900),
    }


def test_turns_that_codex_took_back(tmp_path: Path) -> None:
    """A turn the user rolled back is no part of the conversation, and its request was paid for all the same."""
    count = Counts()
    lines = codex_session(count)
    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}
    told = said("user", "<environment_context>…</environment_context>")
    lines += [told, back, said("user", "otherwise")]
    lines += [said("assistant", "run_it otherwise"), count(2_050, 0, 20)]
    (session,) = read(write_lines(tmp_path / "rollout-1.jsonl", lines))
    assert [text_of(m) for m in session.messages][-3:] == ["run_it is fixed", "otherwise", "run_it otherwise"]
    assert sorted(row["prompt_tokens"] for row in session.aside) == [2_000, 6_000]
    assert audited(tmp_path).report()["spent"]["input"] == 5_000 + 5_600 + 6_000 + 2_000 + 2_050


def test_what_was_typed_meanwhile_is_said(tmp_path: Path) -> None:
    """What a user typed while Claude Code was at work, which its log keeps as an attachment, is a message of the user."""
    log = Log("s1")
    log.user("fix it")
    log.answer("m1", text("I look"), used=(10, 0, 90, 5))
    log.add(
        "attachment", None, attachment={"type": "queued_command", "prompt": "and src/a_b.py", "commandMode": "prompt"}
    )
    log.add("attachment", None, attachment={"type": "queued_command", "prompt": [text("that, too")]})
    log.add("attachment", None, attachment={"type": "diagnostics", "files": []})
    log.answer("m2", text("src/a_b.py it is"), used=(10, 0, 90, 5))
    (session,) = read(write_lines(tmp_path / "s1.jsonl", log.lines))
    assert [m["role"][0] for m in session.messages] == ["u", "a", "u", "u", "a"]
    assert [text_of(m) for m in session.messages[2:4]] == ["and src/a_b.py", "that, too"]


def test_the_first_forms_of_codex_logs(tmp_path: Path) -> None:
    """The items themselves, as lines behind one about the session or as one JSON value, are the same conversation."""
    items: list[dict[str, Any]] = [
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list src"}]},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "local_shell_call", "call_id": "k1", "action": {"type": "exec", "command": ["ls", "src"]}},
        {"type": "local_shell_call_output", "call_id": "k1", "output": "x_y.py"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x_y.py"}]},
    ]
    session = {"id": "o1", "timestamp": "2025-05-07T17:24:21.123Z", "instructions": "Be terse"}
    write_lines(tmp_path / "a.jsonl", [session, *items])
    (tmp_path / "b.json").write_text(json.dumps({"session": session, "items": items}, indent=2))
    for found in read(tmp_path):
        assert (found.id, found.kind) == ("o1", "codex")
        assert [m["role"] for m in found.messages] == ["system", "user", "assistant", "tool", "assistant"]
        assert found.messages[3]["name"] == "local_shell"


def test_a_store_that_is_being_written(tmp_path: Path) -> None:
    """A session is read while brim writes it, with the requests whose answers never came; its store stays as it is."""
    path = tmp_path / "brim.db"
    with open_store(path) as store:
        id = store.new_session(project="/p", model="openai/gpt-4o").id
        store.append(id, [user("hi"), assistant("hello"), user("and?")])
        store.record_request(id, model="openai/gpt-4o", usage={"input": 50, "output": 4}, seq=2)
        store.record_request(id, model="openai/gpt-4o", usage={"input": 70, "output": 0}, error="interrupted", seq=3)
        before = {each.name: each.read_bytes() for each in tmp_path.iterdir() if not each.name.endswith("-shm")}
        row = audited(tmp_path).report()["spent"]
        assert {each.name: each.read_bytes() for each in tmp_path.iterdir() if not each.name.endswith("-shm")} == before
        assert row["input"] == 120 and row["requests"] == 2
        assert sum(each.input for each in store.usage("model")) == row["input"]
        store.append(id, [assistant("going on")])
