"""Everything `ai --output-format json|stream-json` writes keeps to the published schema; the last line is always a result
whose exit code is the process's, however it ended."""

from __future__ import annotations

import copy
import json
import os
import signal
import socket
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from brim.testing import (
    ScriptedProvider,
    broken_stream,
    empty_stream,
    fault,
    html_page,
    reply,
    stream_error,
    tool_call,
)
from shared_ai import Home, Ran, make_home

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "output.schema.json").read_text(encoding="utf-8"))


def strict() -> Any:
    """The published schema, closed: a field that it does not name is an error here."""
    closed = copy.deepcopy(SCHEMA)
    for name, part in closed["$defs"].items():
        if name != "Error":
            part["additionalProperties"] = False
    closed["anyOf"] = [
        {"$ref": f"#/$defs/{name}"} for name, part in closed["$defs"].items() if "type" in part["properties"]
    ]
    return jsonschema.Draft202012Validator(closed)


CHECK = strict()


def checked(ran: Ran) -> dict[str, Any]:
    """The result of a run whose every line keeps to the schema, and whose exit code is the process's."""
    lines = ran.out.splitlines()
    assert lines, ran
    for line in lines:
        event = json.loads(line)
        named = jsonschema.Draft202012Validator({**CHECK.schema, "anyOf": [{"$ref": f"#/$defs/{event['type']}"}]})
        named.validate(event)  # first by its own part, whose words are readable
        CHECK.validate(event)
    kinds = [json.loads(line)["type"] for line in lines]
    assert kinds.count("result") == 1 and kinds[-1] == "result"
    result = ran.result
    assert result["exit_code"] == ran.code and result["ok"] is (ran.code == 0)
    if not result["ok"]:
        assert result["error"]["hint"], "what to do next"
        assert len(lines) == 1 or any(kind == "error" for kind in kinds)
    assert "Traceback" not in ran.err
    return result


def both(home: Home, *arguments: str, together: bool = True, **env: str) -> list[dict[str, Any]]:
    """The results of one command line in both formats; `together`: at the same time, where their order is nothing."""
    forms = ("json", "stream-json")
    rans = []
    if together:
        started = [home.start(*arguments, "--output-format", form, **env) for form in forms]
        for process in started:
            out, err = process.communicate("", timeout=120)
            rans.append(Ran(process.returncode, out, err))
    else:
        rans = [Home(home.root, {**home.env, **env}).run(*arguments, "--output-format", form) for form in forms]
    assert len(rans[0].out.splitlines()) == 1, rans[0]
    return [checked(ran) for ran in rans]


def test_the_schema_itself_is_one() -> None:
    """What is published is a valid JSON schema, and it refuses what is no event."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    open_check = jsonschema.Draft202012Validator(SCHEMA)
    assert not open_check.is_valid({"type": "result", "ok": True})
    assert not open_check.is_valid({"type": "text"})
    assert open_check.is_valid({"type": "text", "text": "a", "of_a_later_version": 1})


def test_success_keeps_to_the_schema(tmp_path: Path) -> None:
    """An answer, with thinking and with tool calls, one of them failed."""
    script = [
        tool_call("glob", {"pattern": "*"}),
        tool_call("read", {"path": "missing.txt"}),
        reply("done", thinking="let me see"),
    ]
    with ScriptedProvider(script * 2 + [reply("plain")] * 2) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        for result in both(home, "look around", together=False):
            assert result["text"] == "done" and result["steps"] == 3 and result["usage"]["reported"] is True
        for result in both(home, "say it"):
            assert result["text"] == "plain" and result["error"] is None


BODY = {
    "error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}
}
OVER = {"error": {"message": "maximum context length is 9 tokens", "code": "context_length_exceeded"}}
SERVER: dict[str, tuple[Any, int, str]] = {
    "a wrong key": (fault(401), 77, "auth"),
    "no right to the model": (fault(403), 77, "auth"),
    "a rate limit": (fault(429, retry_after=3600), 75, "rate_limit"),
    "no credit": (fault(429, BODY), 75, "quota"),
    "a bad request": (fault(400, {"error": {"message": "tools[0] is odd"}}), 1, "invalid_request"),
    "an overflow": (fault(400, OVER), 3, "provider_overflow"),
    "a body too large": (fault(413), 3, "request_too_large"),
    "a server error": (fault(500), 69, "unavailable"),
    "an overloaded server": (fault(529), 69, "unavailable"),
    "a stream that breaks off": (broken_stream("Half an ans"), 69, "stream_broken"),
    "a reset": (broken_stream("Half an ans", how="reset"), 69, "stream_broken"),
    "an empty stream": (empty_stream(), 69, "stream_broken"),
    "an error in the stream": (stream_error("Overloaded"), 69, "unavailable"),
    "a web page": (html_page("Bad Gateway"), 69, "unavailable"),
    "a refusal": (reply("I would rath", finish="content_filter"), 1, "refused"),
}


@pytest.mark.parametrize("name", SERVER)
def test_failures_of_the_server_keep_to_the_schema(name: str, tmp_path: Path) -> None:
    """Each failure that a provider can answer with, in both formats."""
    entry, code, kind = SERVER[name]
    with ScriptedProvider([entry], repeat_last=True) as upstream:
        for result in both(make_home(tmp_path / "home", upstream.base_url), "hello"):
            assert (result["exit_code"], result["error"]["kind"]) == (code, kind)


def _dead_port(home: Home) -> tuple[str, ...]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        home.env["OPENAI_BASE_URL"] = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    return ("hello",)


def _no_key(home: Home) -> tuple[str, ...]:
    del home.env["OPENAI_API_KEY"], home.env["OPENAI_BASE_URL"]
    return ("hello",)


def _no_such_provider(home: Home) -> tuple[str, ...]:
    del home.env["OPENAI_BASE_URL"]
    return ("hello", "--model", "opnai/gpt-4o")


def _config(text: str) -> Callable[[Home], tuple[str, ...]]:
    def write(home: Home) -> tuple[str, ...]:
        (home.root / "config.toml").write_text(text)
        return ("hello",)

    return write


def _no_store(home: Home) -> tuple[str, ...]:
    (home.root / "data").mkdir()
    (home.root / "data" / "brim.db").mkdir()
    return ("hello",)


def _newer_store(home: Home) -> tuple[str, ...]:
    assert home.run("first").code == 0
    with sqlite3.connect(home.root / "data" / "brim.db") as database:
        database.execute("UPDATE alembic_version SET version_num = 'ffff'")
    database.close()
    return ("hello",)


def _given(*arguments: str) -> Callable[[Home], tuple[str, ...]]:
    return lambda home: arguments


LOCAL: dict[str, tuple[Callable[[Home], tuple[str, ...]], int, str]] = {
    "no connection": (_dead_port, 69, "unavailable"),
    "no key": (_no_key, 77, "auth"),
    "an unknown option": (_given("hello", "--nonsense"), 2, "usage"),
    "a bad value": (_given("hello", "--max-steps", "0"), 2, "usage"),
    "no number": (_given("hello", "--temperature", "warm"), 2, "usage"),
    "no prompt": (_given(), 2, "usage"),
    "options that contradict": (_given("hello", "-c", "--no-session"), 2, "usage"),
    "no such folder": (_given("hello", "-C", "nowhere"), 2, "usage"),
    "no such file": (_given("hello", "--file", "nothing.txt"), 2, "usage"),
    "no such session": (_given("hello", "--resume", "abc123"), 2, "session_not_found"),
    "nothing to continue": (_given("hello", "-c"), 2, "session_not_found"),
    "no such provider": (_no_such_provider, 2, "usage"),
    "no such profile": (_given("hello", "--profile", "cod"), 78, "config"),
    "no such mode": (_given("hello", "--context-mode", "ful"), 2, "usage"),
    "no such mode in the settings": (_config("mode = 'ful'\n"), 78, "config"),
    "no such effort": (_given("hello", "--effort", "hard"), 2, "usage"),
    "no such schema": (_given("hello", "--schema", "nothing.json"), 2, "usage"),
    "no local model": (_given("hello", "--model", "local/nothing"), 69, "model_missing"),
    "a key that is none": (_config("modell = 'x'\n"), 78, "config"),
    "no TOML": (_config("model = \n"), 78, "config"),
    "a wrong type": (_config("max_steps = 'many'\n"), 78, "config"),
    "a store that is none": (_no_store, 78, "store_unusable"),
    "a store of a newer brim": (_newer_store, 78, "store_unusable"),
}


@pytest.mark.parametrize("name", LOCAL)
def test_failures_on_this_side_keep_to_the_schema(name: str, tmp_path: Path) -> None:
    """What goes wrong before anything is asked: command line, settings, keys, network, store."""
    make, code, kind = LOCAL[name]
    with ScriptedProvider([reply("ok")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        for result in both(home, *make(home)):
            assert (result["exit_code"], result["error"]["kind"]) == (code, kind), result["error"]


def test_limits_keep_to_the_schema(tmp_path: Path) -> None:
    """Steps, money and a context that cannot fit end with 3."""
    with ScriptedProvider([tool_call("glob", {"pattern": "*"})], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        for result in both(home, "go", "--max-steps", "2"):
            assert (result["exit_code"], result["error"]["kind"]) == (3, "step_limit")
        for result in both(home, "go", "--max-cost", "0.0000001"):
            assert (result["exit_code"], result["error"]["kind"]) == (3, "spend_limit")
        home.run("hello", "--session", "s", "--max-steps", "1")
        asked = len(upstream.requests)
        for result in both(home, "one more", "--session", "s", "--max-cost", "0.0000001", together=False):
            assert (result["exit_code"], result["error"]["kind"]) == (3, "spend_limit")
        assert len(upstream.requests) == asked, "nothing is asked once the limit is reached"
        for result in both(home, "word " * 5_000, BRIM_MAX_CONTEXT_TOKENS="4000"):
            assert (result["exit_code"], result["error"]["kind"]) == (3, "context_overflow")
            assert result["error"]["irreducible"] > result["error"]["budget"]
        assert len(upstream.requests) == asked


def test_a_refused_permission_without_an_answer_keeps_to_the_schema(tmp_path: Path) -> None:
    """A model that may not do what it wanted and then says nothing: 77 in the result, as in the exit code."""
    with ScriptedProvider([tool_call("bash", {"command": "rm -r x"}), reply("")] * 2) as upstream:
        for result in both(make_home(tmp_path / "home", upstream.base_url), "tidy up", together=False):
            assert (result["exit_code"], result["error"]["kind"]) == (77, "permission_denied")
            assert "rm -r x" in result["error"]["message"]


def test_an_interrupt_keeps_to_the_schema(tmp_path: Path) -> None:
    """Ctrl-C and SIGTERM in the middle of an answer: 130, and what had come."""
    for form in ("json", "stream-json"):
        for number in (signal.SIGINT, signal.SIGTERM):
            with ScriptedProvider([broken_stream("Half an ans", how="hang")]) as upstream:
                home = make_home(tmp_path / f"{form}-{number}", upstream.base_url)
                process = home.start("hello", "--output-format", form)
                assert process.stdout is not None and process.stdin is not None
                process.stdin.close()
                first = process.stdout.readline() if form == "stream-json" else ""
                while not upstream.requests:
                    assert process.poll() is None
                if form == "stream-json":
                    while '"Half' not in first:
                        first += process.stdout.readline()
                process.send_signal(number)
                process.stdin = None
                out, err = process.communicate(timeout=60)
                result = checked(Ran(process.returncode, first + out, err))
                assert (result["exit_code"], result["error"]["kind"]) == (130, "interrupted")
                if form == "stream-json":
                    assert result["text"] and result["incomplete"] is True


def test_an_interrupt_before_anything_was_asked_keeps_to_the_schema(tmp_path: Path) -> None:
    """Ctrl-C while stdin is still read has a result, too."""
    for number in (signal.SIGINT, signal.SIGTERM):
        process = make_home(tmp_path / str(number), None).start(
            "-", "what is this?", "--output-format", "json", "--debug", "d"
        )
        assert process.stdin is not None
        # stdin is a pipe: once it is full, the process has begun to read it
        process.stdin.write("x" * (1 << 20))
        process.stdin.flush()
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        result = checked(Ran(process.returncode, out, err))
        assert (result["exit_code"], result["error"]["kind"]) == (130, "interrupted")


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_answer_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """stdout on a full disk: no traceback, exit 1, and the reason on stderr, whatever the format."""
    import subprocess
    import sys

    with ScriptedProvider([reply("hello")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        for form in ("json", "stream-json", "text"):
            with open("/dev/full", "w") as full:
                ran = subprocess.run(
                    [sys.executable, "-m", "brim.cli.ai", "hi", "--output-format", form], cwd=home.work, env=home.env,
                    stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
                )  # fmt: skip
            assert ran.returncode == 1, (form, ran)
            assert "No space left" in ran.stderr and "Traceback" not in ran.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_home_keeps_to_the_schema(tmp_path: Path) -> None:
    """A data folder that cannot be written is named."""
    with ScriptedProvider([reply("ok")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        (home.root / "data").mkdir()
        (home.root / "data").chmod(stat.S_IRUSR | stat.S_IXUSR)
        for result in both(home, "hello"):
            assert result["error"]["kind"] == "store_unusable"


def test_an_encoding_that_cannot_say_it_is_no_failure(tmp_path: Path) -> None:
    """In a locale without the characters JSON has escapes, and text shows their codes."""
    with ScriptedProvider([reply("中文 é 🎉")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        ran = home.run("hi", "--output-format", "json", PYTHONIOENCODING="ascii")
        assert checked(ran)["text"] == "中文 é 🎉" and ran.out.isascii()
        text = home.run("hi", PYTHONIOENCODING="ascii")
        assert (text.code, text.out) == (0, "\\u4e2d\\u6587 \\xe9 \\U0001f389\n")


def test_notices_are_not_lost_in_json(tmp_path: Path) -> None:
    """With json, stdout is the result alone; what would be a notice stands on stderr."""
    with ScriptedProvider([fault(429, retry_after=0.01), reply("fine")]) as upstream:
        ran = make_home(tmp_path / "home", upstream.base_url).run("hello", "--output-format", "json", BRIM_ATTEMPTS="2")
    assert checked(ran)["text"] == "fine"
    assert "asking again" in ran.err
