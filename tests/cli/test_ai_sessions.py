"""Sessions at the command line: continued, named, forked, kept through kills, or not kept at all."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from brim.store import open_store
from brim.store.store import Store
from brim.testing import ScriptedProvider, reply, tool_call
from shared_ai import Home, make_home


def stored(home: Home) -> Store:
    return open_store(home.root / "data" / "brim.db")


def texts(body: dict[str, Any]) -> list[str]:
    return [str(message.get("content")) for message in body["messages"] if message["role"] != "system"]


def test_c_continues_the_latest_session_of_the_folder(tmp_path: Path) -> None:
    """-c sends what was said before; a plain prompt begins anew; another folder has no session to continue."""
    with ScriptedProvider([reply("one"), reply("two"), reply("three")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        assert home.run("first").code == 0
        assert home.run("-c", "second").out == "two\n"
        assert home.run("third").code == 0
        (home.work / "sub").mkdir()
        lost = home.run("-c", "fourth", "-C", "sub")
    assert texts(upstream.requests[1].body) == ["first", "one", "second"]
    assert texts(upstream.requests[2].body) == ["third"]
    assert lost.code == 2 and "no session" in lost.err


def test_a_session_is_found_by_name_and_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    """--session makes or continues a named one, -r takes the beginning of an id, and stored messages stand there once."""
    with ScriptedProvider([reply("ok")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        id = home.run("a", "--output-format", "json").result["session"]
        assert home.run("b", "-r", id[:6]).code == 0
        assert home.run("c", "--session", "mine").code == 0
        assert home.run("d", "--session", "mine").code == 0
    with stored(home) as store:
        assert [each.message.text for each in store.load(id)] == ["a", "ok", "b", "ok"]
        assert [each.message.text for each in store.load("mine")] == ["c", "ok", "d", "ok"]


def test_a_fork_leaves_its_parent_alone(tmp_path: Path) -> None:
    """--fork goes on in a copy."""
    with ScriptedProvider([reply("ok")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        first = home.run("a", "--output-format", "json").result["session"]
        second = home.run("b", "-c", "--fork", "--output-format", "json").result["session"]
    assert first != second
    with stored(home) as store:
        assert len(store.load(first)) == 2
        assert len(store.load(second)) == 4


def test_no_session_keeps_nothing(tmp_path: Path) -> None:
    """--no-session leaves no database behind."""
    with ScriptedProvider([reply("ok")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        assert home.run("a", "--no-session").code == 0
    assert not (home.root / "data" / "brim.db").exists()


def test_each_request_is_recorded_with_mode_plan_bill_and_usage(tmp_path: Path) -> None:
    """The mode a request was made in stands with it, and the session remembers the last one."""
    with ScriptedProvider([reply("ok")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        home.run("a", "--session", "s", "--context-mode", "compact")
        home.run("b", "--session", "s")
        home.run("c", "--session", "s", "--profile", "log")
    with stored(home) as store:
        records = store.requests("s")
        assert [each.mode for each in records] == ["compact", "compact", "full"]
        assert all(each.bill and each.bill["used"] > 0 and each.plan_change is not None for each in records)
        assert all(each.input and each.cost is not None and each.duration is not None for each in records)


def test_tool_calls_and_results_are_stored_once_and_debugged(tmp_path: Path) -> None:
    """A call, its result and the answer stand in the session; --debug holds requests, calls and results with sizes."""
    with ScriptedProvider([tool_call("grep", {"pattern": "needle"}), reply("found")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        (home.work / "hay.txt").write_text("hay\nneedle\nhay\n")
        ran = home.run("find the needle", "--session", "s", "--debug", "debug.jsonl", "--verbose")
    assert ran.code == 0 and ran.out == "found\n"
    assert "hay.txt:2:needle" in ran.err
    with stored(home) as store:
        assert [each.role for each in store.load("s")] == ["user", "assistant", "tool", "assistant"]
    lines = [json.loads(line) for line in (home.work / "debug.jsonl").read_text().splitlines()]
    by_event = {line["event"]: line for line in lines}
    assert by_event["request"]["last_user"] == "find the needle" and by_event["request"]["messages"] == 4
    assert json.loads(by_event["tool_call"]["arguments"]) == {"pattern": "needle"}
    assert by_event["tool_result"]["chars"] > 10 and by_event["tool_result"]["tokens"] > 0
    assert "sk-test-1234567890" not in (home.work / "debug.jsonl").read_text()


def test_what_needs_asking_is_refused_where_nobody_can_be_asked(tmp_path: Path) -> None:
    """A command is refused with the flag that would allow it; with the flag it runs."""
    script = [tool_call("bash", {"command": "touch made.txt"}), reply("done")]
    with ScriptedProvider(script * 2) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        refused = home.run("make it", "--output-format", "stream-json")
        allowed = home.run("make it", "--allow", "bash(touch *)", "--output-format", "stream-json")
    told = next(event for event in refused.events if event["type"] == "tool_result")
    assert told["is_error"] and "--allow 'bash(touch" in told["text"]
    ran = next(event for event in allowed.events if event["type"] == "tool_result")
    assert not ran["is_error"] and (home.work / "made.txt").exists()


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_a_kill_while_streaming_loses_nothing_acknowledged(tmp_path: Path, kills: int) -> None:
    """SIGKILL at random moments of an answer: the session opens, the question is there, the half answer is marked."""
    answer = " ".join(f"word{n}" for n in range(400))
    rng = random.Random(7)
    with ScriptedProvider([reply(answer, piece=8, delay=0.004)], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        halves = 0
        for turn in range(kills):
            process = home.start(f"question {turn}", "--session", "s", "--output-format", "stream-json")
            assert process.stdout is not None and process.stdin is not None
            process.stdin.close()
            seen = ""
            while '"type":"text"' not in seen:
                seen = process.stdout.readline()
                assert seen, process.stderr.read() if process.stderr else ""
            time.sleep(rng.random() * 0.6)
            process.kill()
            process.stdout.close()
            process.wait()
            if process.stderr:
                process.stderr.close()
            with stored(home) as store:
                messages = store.load("s")
                asked = [each.message.text for each in messages if each.role == "user"]
                assert asked == [f"question {n}" for n in range(turn + 1)]
                answers = [each for each in messages if each.role == "assistant"]
                halves = sum(each.incomplete for each in answers)
                for each in answers:
                    assert answer.startswith(each.message.text)
                    assert each.incomplete == (each.message.text != answer)
        assert halves >= kills // 4
        upstream.script = [reply("whole")]
        upstream._served = 0
        last = home.run("and now?", "--session", "s")
    assert (last.code, last.out) == (0, "whole\n")
