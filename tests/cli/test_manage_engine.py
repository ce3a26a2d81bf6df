"""`brim prepare`, `count`, `explain`, `sessions`, `cost` and `report`: the engine at the shell, and what a session left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import brim
from brim.conversation import assistant, call, result, user
from brim.store import open_store
from shared_manage import Desk

API = "openai.chat"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, monkeypatch, capfd)


def long_request(turns: int = 30) -> dict[str, Any]:
    """A chat body whose history is far larger than 4,000 tokens."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You answer briefly."}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Question {turn} about part {turn}: 它是什么？ \ud83d\ude00".encode(
            "utf-16", "surrogatepass").decode("utf-16")})  # fmt: skip
        messages.append({"role": "assistant", "content": f"Answer {turn}. " + "Some words on it. " * 60})
    messages.append({"role": "user", "content": "And now?"})
    return {"model": "gpt-4o", "messages": messages, "temperature": 0.2, "metadata": {"kept": [1, 2.5, None]}}


# ---- prepare and count ---------------------------------------------------------------------------------------------


def test_prepare_is_the_library_at_the_shell(desk: Desk) -> None:
    """stdout is the body that brim.prepare gives, stderr the report and the bill; --json holds both and the plan."""
    body = long_request()
    text = json.dumps(body)
    expected = brim.prepare(body, API, "compact", 6_000)
    told = desk("prepare", "--mode", "compact", "--window", "6000", stdin=text)
    assert told.code == 0 and told.json == expected.request
    assert "compact" in told.err and "of 6,000 tokens used" in told.err and "summarise" in told.err
    whole = desk("prepare", "--mode", "compact", "--window", "6000", "--json", stdin=text)
    assert whole.err == ""
    assert whole.json["request"] == expected.request and whole.json["plan"] == expected.plan
    assert whole.json["bill"] == expected.bill and whole.json["changed"] is True
    assert whole.json["used"] == expected.used


def test_prepare_leaves_what_fits_alone(desk: Desk) -> None:
    """A body that fits comes out as it came in, unknown fields, characters and order included."""
    body = long_request(2)
    body["messages"][0]["vendor_field"] = {"z": 1, "a": "ünï \u2028 \ud7ff"}
    told = desk("prepare", "--mode", "full", stdin=json.dumps(body))
    assert told.code == 0 and json.dumps(told.json) == json.dumps(body)
    assert "unchanged" in told.err


def test_prepare_goes_on_from_the_plan_before(desk: Desk, tmp_path: Path) -> None:
    """--plan writes what --previous takes: inside an epoch the next view begins with the one before."""
    body = long_request()
    plan = tmp_path / "plan.json"
    first = desk("prepare", "--window", "6000", "--plan", str(plan), stdin=json.dumps(body)).json
    body["messages"] += [{"role": "assistant", "content": "So."}, {"role": "user", "content": "Go on."}]
    second = desk("prepare", "--window", "6000", "--previous", str(plan), "--json", stdin=json.dumps(body)).json
    assert second["request"]["messages"][: len(first["messages"])] == first["messages"]
    assert second["plan"]["requests"] == 2
    whole = tmp_path / "whole.json"
    whole.write_text(json.dumps(second))
    assert desk("prepare", "--previous", str(whole), "--window", "6000", stdin=json.dumps(body)).code == 0


def test_prepare_takes_settings_in_both_forms(desk: Desk) -> None:
    """--settings takes an object, -s one of them; an unknown one ends with 78 and the nearest name."""
    body = json.dumps(long_request())
    given = ("prepare", "--window", "6000", "--json")
    loose = desk(*given, "--mode", "compact", "-s", "compact_trigger_ratio=1", "-s", "summary_share=0.1", stdin=body)
    strict = desk(*given, "--mode", "compact", "--settings", '{"compact_trigger_ratio": 0.2}', stdin=body)
    assert loose.code == strict.code == 0
    assert desk(*given, "-s", "history_budget=off", stdin=body).code == 0
    wrong = desk(*given, "-s", "compact_trigger_ration=1", stdin=body)
    assert wrong.code == 78 and "compact_trigger_ratio" in wrong.err
    assert desk(*given, "-s", "compact_trigger_ratio", stdin=body).code == 2
    assert desk(*given, "--settings", "[1]", stdin=body).code == 2


def test_prepare_tells_of_what_cannot_fit(desk: Desk) -> None:
    """Where what cannot go exceeds the window: code 3, the figure, the bill, nothing on stdout."""
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "many words " * 4_000}]}
    told = desk("prepare", "--window", "2000", stdin=json.dumps(body))
    assert told.code == 3 and told.out == ""
    assert "8,0" in told.err and "user messages" in told.err
    error = desk("prepare", "--window", "2000", "--json", stdin=json.dumps(body)).json["error"]
    assert error["kind"] == "context_overflow" and error["irreducible"] > error["budget"]
    assert error["bill"]["window"] == 2_000


@pytest.mark.parametrize(
    ("stdin", "named"),
    [
        ("", "no JSON"), ("[]", "list"), ('{"messages": 3}', "messages"), ('{"messages": [', "line 1"),
        (b"\xff\xfe{}", "UTF-8"),
        ('"text"', "string"), ("[" * 100_000, "JSON"),
    ],
)  # fmt: skip
def test_what_is_no_request_is_named(desk: Desk, stdin: str | bytes, named: str) -> None:
    """Bad input to prepare and count ends with 2 and says what it is."""
    for command in ("prepare", "count"):
        told = desk(command, stdin=stdin)
        assert told.code == 2 and (named in told.err or "nested" in told.err), told
    assert desk("prepare", "--mode", "fast", stdin='{"messages": []}').code == 2
    assert desk("prepare", "--api", "grpc", stdin='{"messages": []}').code == 2


def test_count_counts_bodies_and_texts(desk: Desk) -> None:
    """The number that brim.count gives, by the model's own tokenizer or another's; --text counts plain text."""
    body = long_request(3)
    told = desk("count", stdin=json.dumps(body))
    assert told.code == 0 and int(told.out) == brim.count(body)
    as_json = desk("count", "--json", stdin=json.dumps(body)).json
    assert as_json == {"tokens": brim.count(body), "counter": "o200k_base", "exact": True}
    assert int(desk("count", "--text", "--model", "gpt-4o", stdin="hello world").out) == 2
    claude = {"model": "claude-sonnet-5-5", "system": "Be brief.", "messages": [{"role": "user", "content": "hi"}]}
    assert int(desk("count", "--api", "anthropic.messages", stdin=json.dumps(claude)).out) > 2


# ---- sessions ------------------------------------------------------------------------------------------------------


def lived_in(desk: Desk, *, name: str = "lived", turns: int = 12) -> str:
    """A session with tool calls whose requests were prepared, and recorded with plan, bill, usage and cost."""
    settings = {"max_context_tokens": 4_000, "max_response_tokens": 500}
    with open_store(desk.root / "data" / "brim.db") as store:
        session = store.new_session(str(desk.work), "compact", "openai/gpt-4o", id=name, title="About parts")
        conversation = brim.Conversation(API, model="gpt-4o", settings=settings)
        for turn in range(turns):
            fresh = [
                user(f"Question {turn}: where is part {turn}?"),
                assistant("", call("grep", json.dumps({"pattern": f"part {turn % 5}"}), id=f"c{turn}")),
                result(f"c{turn}", f"src/part{turn}.py:1: part {turn} " * 40),
            ]
            for message in fresh:
                conversation.append(message)
            store.append(session.id, fresh)
            prepared = conversation.prepare(mode="compact")
            usage = {"input": prepared.used, "cached_read": prepared.used // 2, "cached_write": 0, "output": 20}
            answer = assistant(f"In src/part{turn}.py.")
            conversation.append(answer)
            store.append(session.id, [answer])
            store.record_request(
                session.id, mode="compact", model="openai/gpt-4o", plan=prepared.plan, bill=prepared.bill, usage=usage,
                cost=0.001, duration=2.0, ttft=0.5, finish="stop", meta={"step": 1},
            )  # fmt: skip
        return session.id


def test_sessions_are_listed_by_folder_and_shown(desk: Desk) -> None:
    """list shows those of this folder, --all of every one; show has a line for each message, --message N one whole."""
    id = lived_in(desk)
    assert desk("sessions", "list").out.splitlines()[1].split()[0] == id
    elsewhere = desk.root / "elsewhere"
    elsewhere.mkdir()
    none = desk("sessions", "list", "--project", str(elsewhere))
    assert none.out == "" and "--all" in none.err
    facts = desk("sessions", "list", "--all", "--json").json[0]
    assert facts["id"] == id and facts["messages"] == 48 and facts["mode"] == "compact"
    shown = desk("sessions", "show", "liv")
    assert "About parts" in shown.out and "→ grep" in shown.out and "   47  assistant" in shown.out
    assert desk("sessions", "show", id, "--message", "3").out == "In src/part0.py.\n"
    assert desk("sessions", "show", id, "--message", "99").code == 2
    assert desk("sessions", "show", "nonesuch").code == 2
    whole = desk("sessions", "show", id, "--json").json
    assert whole["messages"][1]["calls"][0]["name"] == "grep" and whole["messages"][2]["call_id"] == "c0"


def test_json_and_exports_hold_whatever_the_locale(tmp_path: Path) -> None:
    """Where stdout says ASCII only, JSON is JSON with escapes, and an export is the same file as elsewhere."""
    with open_store(tmp_path / "brim.db") as store:
        id = store.new_session(project="/p", model="gpt-4o", title="中文 é").id
        store.append(id, [user("中文 é"), assistant("好")])
        store.record_request(id, model="中/文", mode="auto", seq=1, usage={"input": 10, "output": 1})

    def ran(*arguments: str, **env: str) -> bytes:
        command = [sys.executable, "-m", "brim.cli.manage", *arguments]
        whole = {**os.environ, "BRIM_DATA_DIR": str(tmp_path), **env}
        return subprocess.run(command, env=whole, capture_output=True, timeout=120, check=True).stdout

    for command in (
        ("sessions", "list", "--all", "--json"),
        ("sessions", "export", id),
        ("cost", "--by", "model", "--json"),
        ("audit", str(tmp_path / "brim.db"), "--json"),
    ):
        there, here = (ran(*command, PYTHONIOENCODING=name) for name in ("ascii", "utf-8"))
        assert json.loads(there) == json.loads(here)
    for form in ("markdown", "jsonl"):
        there, here = (
            ran("sessions", "export", id, "--format", form, PYTHONIOENCODING=name) for name in ("ascii", "utf-8")
        )
        assert there == here and "中文".encode() in here


def test_every_command_of_sessions_tells_programs_what_it_did(desk: Desk) -> None:
    """list, show, export, rename and delete take --json, and answer with one JSON value on stdout."""
    id = lived_in(desk)
    assert desk("sessions", "rename", id, "New title", "--json").json["title"] == "New title"
    assert desk("sessions", "list", "--json").json[0]["title"] == "New title"
    assert desk("sessions", "show", id, "--json").json["id"] == id
    assert desk("sessions", "export", id, "--json").out == desk("sessions", "export", id).out
    assert desk("sessions", "export", id, "--json", "--format", "jsonl").code == 2
    assert [each["id"] for each in desk("sessions", "delete", id, "--yes", "--json").json] == [id]
    assert desk("sessions", "list", "--json").json == []


def test_sessions_are_searched_renamed_and_deleted(desk: Desk) -> None:
    """search finds text in messages (1 where there is none), rename retitles, delete needs a yes."""
    id = lived_in(desk)
    hits = desk("sessions", "search", "where is PART 7", "--json").json
    assert [(hit["session"], hit["message"], hit["role"]) for hit in hits] == [(id, 28, "user")]
    assert desk("sessions", "search", "nowhere to be found").code == 1
    assert desk("sessions", "rename", id, "New title").code == 0
    assert "New title" in desk("sessions", "list").out
    refused = desk("sessions", "delete", id)
    assert refused.code == 2 and "--yes" in refused.err
    assert desk("sessions", "delete", id, "--yes").code == 0
    assert desk("sessions", "list", "--json").json == []


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_a_session_travels_as_a_file(desk: Desk, form: str) -> None:
    """What export writes, import takes in under a new id with the same messages; markdown is for reading."""
    id = lived_in(desk, turns=3)
    file = desk.root / f"session.{form}"
    assert desk("sessions", "export", id, "--format", form, "--output", str(file)).code == 0
    printed = desk("sessions", "export", id, "--format", form)
    assert printed.out == file.read_text(encoding="utf-8")
    taken = desk("sessions", "import", str(file), "--title", "Copy")
    assert taken.code == 0
    copy = taken.out.strip()
    assert copy != id
    before = desk("sessions", "show", id, "--json").json["messages"]
    after = desk("sessions", "show", copy, "--json").json
    assert [(m["role"], m["text"], m["calls"]) for m in after["messages"]] == [
        (m["role"], m["text"], m["calls"]) for m in before
    ]
    assert after["title"] == "Copy"
    piped = desk("sessions", "import", "-", "--json", stdin=file.read_bytes())
    assert piped.code == 0 and piped.json["messages"] == 12
    assert desk("sessions", "import", "nowhere.json").code == 2
    assert "Question 0" in desk("sessions", "export", id, "--format", "markdown").out


# ---- explain, cost, report -----------------------------------------------------------------------------------------


def test_explain_tells_of_any_request_why_each_message_is_where_it_is(desk: Desk) -> None:
    """Every request's own plan comes back, not only the last; each message has a fate and a reason."""
    id = lived_in(desk)
    listed = desk("explain", id, "--list", "--json").json
    assert len(listed) == 12
    seen = {}
    for number in range(1, 13):
        told = desk("explain", id, "--request", str(number), "--json").json
        seen[number] = told["plan"]
        assert told["plan"]["requests"] == number and told["plan"]["sent"]["count"] == number * 4 - 1
    assert seen[1].get("fates", []) == [] and seen[12]["fates"], "the small window forced the later ones"
    words = desk("explain", id).out
    places: set[int] = set()
    for line in words.splitlines()[1:]:
        head = line.split()[0]
        if head.replace("-", "").isdigit() and " insert " not in line:
            first, _, last = head.partition("-")
            places.update(range(int(first), int(last or first) + 1))
            assert ": " in line, "a reason"
    assert places == set(range(47))
    assert "the last user message always stays" in words and "summarise" in words
    earliest = desk("explain", id, "--request", "1", "--bill").out
    assert "everything fits" in earliest and "tokens used" in earliest
    assert desk("explain", id, "--request", "13").code == 2
    assert desk("explain").out == words, "without an id: the latest of this folder"


def test_explain_of_a_copy_begins_with_the_plan_it_was_copied_with(desk: Desk) -> None:
    """A forked session's first request is explained although its plan was stored as a change to its parent's."""
    id = lived_in(desk)
    with open_store(desk.root / "data" / "brim.db") as store:
        copy = store.fork(id).id
        plan = store.last_plan(copy)
        assert plan is not None
        store.append(copy, [user("And?")])
        plan["requests"] += 1
        store.record_request(copy, mode="compact", plan=plan)
    assert desk("explain", copy, "--json").json["plan"] == plan


def test_cost_and_report_add_up(desk: Desk) -> None:
    """cost sums tokens and dollars by axis; report compares modes by answers, refetches, tokens, cost and time."""
    lived_in(desk)
    by_mode = desk("cost", "--by", "mode", "--json").json
    assert by_mode[0]["key"] == "compact" and by_mode[0]["requests"] == 12
    assert by_mode[0]["cost"] == pytest.approx(0.012)
    text = desk("cost", "--by", "session").out
    assert "lived" in text and "in all $0.0120" in text
    assert desk("cost", "--since", "2999-01-01", "--json").json == []
    for axis in ("day", "model", "session", "mode"):
        first = desk("cost", "--by", axis, "--json").json[0]
        assert {"key", "input", "cached_read", "cached_write", "output", "cost"} <= first.keys()
        head = desk("cost", "--by", axis).out.splitlines()[0]
        assert head.split()[0] == axis and "read from cache" in head and "written to cache" in head
    report = desk("report", "--by", "mode", "--json").json[0]
    assert (report["key"], report["turns"], report["answered"], report["errors"]) == ("compact", 12, 1.0, 0)
    assert report["calls"] == 12 and report["refetched"] == pytest.approx(7 / 12), "five searches, the rest repeated"
    assert report["seconds_per_turn"] == pytest.approx(2.0) and report["cost_per_turn"] == pytest.approx(0.001)
    assert "compact" in desk("report").out
