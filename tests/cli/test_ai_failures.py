"""Every failure a user can meet has a message that names what happened and the next step, an exit code, a result event."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from brim.testing import (
    ScriptedProvider,
    broken_stream,
    empty_stream,
    fault,
    html_page,
    reply,
    stream_error,
)
from shared_ai import Home, make_home

ERROR_IN_A_200 = b'{"error": {"message": "The server is overloaded", "type": "server_error", "code": "overloaded"}}'

CASES: dict[str, tuple[Any, int, str, str]] = {
    # name: what the server does, exit code, kind, words of the message
    "a wrong key": (fault(401, {"error": {"message": "Incorrect API key provided"}}), 77, "auth", "Incorrect API key"),
    "a server error": (fault(500), 69, "unavailable", "500"),
    "a rate limit": (fault(429, retry_after=3600), 75, "rate_limit", "429"),
    "a stream that breaks off": (broken_stream("Half an ans"), 69, "stream_broken", "broke off"),
    "a connection that is reset": (broken_stream("Half an ans", how="reset"), 69, "stream_broken", "broke off"),
    "an empty stream": (empty_stream(), 69, "stream_broken", "without any event"),
    "an error in a stream": (stream_error("Overloaded"), 69, "unavailable", "Overloaded"),
    "a web page": (html_page("Bad Gateway"), 69, "unavailable", "Bad Gateway"),
}


def assert_told(home: Home, code: int, kind: str, words: str, *arguments: str) -> dict[str, Any]:
    text = home.run("hello", *arguments)
    assert text.code == code, text
    assert words in text.err
    assert len(text.err.strip().splitlines()) >= 2, "a message and the next step"
    assert "Traceback" not in text.err
    told = home.run("hello", "--output-format", "stream-json", *arguments)
    assert told.code == code
    result = told.result
    assert result["ok"] is False and result["exit_code"] == code
    assert result["error"]["kind"] == kind
    assert words in result["error"]["message"]
    assert result["error"]["hint"]
    assert any(event["type"] == "error" for event in told.events[:-1])
    whole = home.run("hello", "--output-format", "json", *arguments)
    assert whole.code == code and len(whole.out.splitlines()) == 1
    assert whole.result["error"]["kind"] == kind
    assert "sk-test-1234567890" not in told.out + text.err + whole.out
    return result


@pytest.mark.parametrize("name", CASES)
def test_a_failure_of_the_server_is_told(name: str, tmp_path: Path) -> None:
    """Whatever a server answers in place of an answer, the user reads what and what next, and scripts get a code."""
    entry, code, kind, words = CASES[name]
    with ScriptedProvider([entry], repeat_last=True) as upstream:
        result = assert_told(make_home(tmp_path / "home", upstream.base_url), code, kind, words)
    if "Half an ans" in str(entry):
        assert result["text"] == "Half an ans" and result["incomplete"] is True


def test_an_error_inside_a_200_is_told(tmp_path: Path) -> None:
    """A status of 200 whose body is an error is a failure like any other."""
    from brim.testing import raw

    with ScriptedProvider([raw(ERROR_IN_A_200, content_type="application/json")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        assert_told(home, 69, "unavailable", "overloaded")


def test_a_missing_key_is_told(tmp_path: Path) -> None:
    """Without a key the message names the variable to set, and no request is made."""
    home = make_home(tmp_path / "home", None, key=None)
    assert_told(home, 77, "auth", "OPENAI_API_KEY", "--model", "openai/gpt-4o")


def test_a_dead_port_is_told(tmp_path: Path) -> None:
    """Where nothing listens the message names host and port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = make_home(tmp_path / "home", f"http://127.0.0.1:{port}/v1")
    assert_told(home, 69, "unavailable", f"127.0.0.1:{port}")


def test_a_recovered_retry_is_a_success(tmp_path: Path) -> None:
    """A rate limit that passes is waited for, told on stderr, and the exit code is 0."""
    with ScriptedProvider([fault(429, retry_after=0.01), reply("fine")]) as upstream:
        ran = make_home(tmp_path / "home", upstream.base_url).run("hello", BRIM_ATTEMPTS="2")
    assert (ran.code, ran.out) == (0, "fine\n")
    assert "429" in ran.err and "asking again" in ran.err


def test_an_unknown_option_and_an_unknown_model_are_usage_errors(tmp_path: Path) -> None:
    """What cannot be understood ends with 2, and in JSON mode with a result event, too."""
    home = make_home(tmp_path / "home", None)
    for arguments in (["--nonsense"], ["--model", "opnai/gpt-4o"], ["--max-steps", "0"], ["-C", "nowhere"]):
        ran = home.run("hi", *arguments, "--output-format", "stream-json")
        assert ran.code == 2, ran
        assert ran.result["error"]["kind"] == "usage"
    assert "openai/gpt-4o" in home.run("hi", "--model", "opnai/gpt-4o").err


def test_a_config_with_an_unknown_key_names_the_nearest(tmp_path: Path) -> None:
    """A key that is none ends with 78 and the right name."""
    home = make_home(tmp_path / "home", None)
    (home.root / "config.toml").write_text("[context]\ncompact_triger_ratio = 0.5\n")
    ran = home.run("hi")
    assert ran.code == 78
    assert "compact_trigger_ratio" in ran.err and "config.toml" in ran.err


def test_an_overflow_is_learned_and_asked_once_more(tmp_path: Path) -> None:
    """A refusal that names the window is learned from: the request is shortened, made again, and answered."""
    log = "\n".join(f"line {n} of a long log with some words in it" for n in range(4_000))
    with ScriptedProvider([reply("short enough")], window=8_000) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        home.run("first question", "--session", "s")
        (home.work / "big.log").write_text(log)
        upstream.add(reply("noted"), reply("and now"))
        upstream.window = None
        assert home.run("remember this", "--file", "big.log", "--session", "s").code == 0
        upstream.window = 8_000
        ran = home.run("what was it?", "--session", "s", "--output-format", "stream-json")
    assert ran.code == 0, ran
    notice = next(event for event in ran.events if event["type"] == "notice" and event["kind"] == "overflow")
    assert "8,000" in notice["text"]
    assert ran.result["text"] == "and now"


def test_without_the_ladder_the_providers_refusal_is_shown_with_the_bill(tmp_path: Path) -> None:
    """--no-ladder sends everything: the provider's own words, the bill, advice and exit 3; the session stays usable."""
    log = "\n".join(f"line {n} of a long log with some words in it" for n in range(4_000))
    with ScriptedProvider([reply("noted"), reply("fine again")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        (home.work / "big.log").write_text(log)
        assert home.run("keep this", "-f", "big.log", "--session", "s").code == 0
        upstream.window = 8_000
        ran = home.run("and?", "--session", "s", "--no-ladder")
        assert ran.code == 3
        assert "maximum context length is 8000" in ran.err
        assert "user messages" in ran.err and "largest: user messages" in ran.err
        assert "max_response_tokens" in ran.err and "--new-session" in ran.err
        assert "leave --no-ladder out" in ran.err
        again = home.run("and now?", "--session", "s")
    assert (again.code, again.out) == (0, "fine again\n")


def test_a_server_that_cuts_silently_is_found_out(tmp_path: Path) -> None:
    """Usage figures far below what was sent are a cut prompt: told once, with the setting to change."""
    text = " ".join(f"word{n}" for n in range(4_000))
    with ScriptedProvider([reply("ok")], cut_at=2_048) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        ran = home.run(text)
    assert ran.code == 0
    assert "cut the prompt without saying so" in ran.err and "num_ctx" in ran.err
