"""A clock that jumps, between processes and under a running one: order, leases and requests stay what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from brim.formats.dialects import violations
from brim.store import open_store
from brim.testing import ScriptedProvider, reply, tool_call
from shared_ai import Home, make_home

FAKETIME = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FAKETIME is None, reason="needs libfaketime (Debian: apt-get install faketime)"),
]


def home_with_a_clock(tmp_path: Path, url: str) -> Home:
    """A home whose processes read the wall clock as `set_clock` says at that moment; what measures time goes on as ever."""
    home = make_home(tmp_path / "home", url)
    home.env |= {
        "BRIM_MODEL": "openai/scripted",
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(home.root / "clock"),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    set_clock(home, "+0")
    return home


def set_clock(home: Home, offset: str) -> None:
    fresh = home.root / "clock.new"
    fresh.write_text(offset)
    fresh.rename(home.root / "clock")


def test_a_clock_that_jumps_between_questions(tmp_path: Path) -> None:
    """Messages stay in the order in which they were said, each request holds all that came before it, the session used
    last is the one that is continued, and nobody has to wait for a lease from the future."""
    said: list[str] = []
    with ScriptedProvider([reply("well")], repeat_last=True) as upstream:
        home = home_with_a_clock(tmp_path, upstream.base_url)
        for n, offset in enumerate(["+0", "-400d", "+300d", "-1h", "+20d"]):
            set_clock(home, offset)
            other = home.run(f"other {n}")
            assert other.code == 0, other.err
            ran = home.run(f"question {n}", "--session", "s")
            assert ran.code == 0, ran.err
            said.append(f"question {n}")
            set_clock(home, ["-9d", "+9d", "-900d", "+0", "-1d"][n])
            again = home.run(f"again {n}", "-c")
            assert again.code == 0, again.err
            said.append(f"again {n}")
            sent = upstream.requests[-1].body
            assert [each["content"] for each in sent["messages"] if each["role"] == "user"] == said
            assert violations(sent, "openai.chat", "openai") == []
        listed = home.manage("sessions", "list", "--json")
        assert listed.code == 0 and home.manage("cost", "--by", "day").code == 0
        assert home.manage("doctor").code in (0, 1)
    with open_store(home.root / "data" / "brim.db") as store:
        texts = [each.message.text for each in store.load("s")]
        assert texts == [text for question in said for text in (question, "well")]
        assert store.list_sessions()[0].id == "s"


def test_a_clock_that_jumps_while_an_answer_streams(tmp_path: Path) -> None:
    """Set back and forward by years between pieces, calls and requests: the turn ends well, times are never negative, and
    the tools' results are shown to the model as they came."""
    script = [tool_call("bash", {"command": "seq 1 40"}), reply("words " * 60, piece=8, delay=0.01), reply("on")]
    with ScriptedProvider(script) as upstream:
        home = home_with_a_clock(tmp_path, upstream.base_url)
        process = home.start(
            "count", "--session", "s", "--permission-mode", "allow-all", "--output-format", "stream-json"
        )
        assert process.stdout is not None and process.stdin is not None and process.stderr is not None
        process.stdin.close()
        lines = []
        for n, line in enumerate(process.stdout):
            lines.append(line)
            set_clock(home, ["+5d", "-5d", "-2000d", "+900d", "+0"][n % 5])
        assert process.wait() == 0, process.stderr.read()
        process.stdout.close()
        process.stderr.close()
        assert '"duration":-' not in "".join(lines) and '"seconds":-' not in "".join(lines)
        result = next(each for each in upstream.requests[1].messages if each["role"] == "tool")
        assert "\n40" in result["content"]
        set_clock(home, "-3000d")
        ran = home.run("go on", "--session", "s")
        assert (ran.code, ran.out) == (0, "on\n")
        assert violations(upstream.requests[2].body, "openai.chat", "openai") == []
        result = next(each for each in upstream.requests[2].messages if each["role"] == "tool")
        assert "\n40" in result["content"], "nothing has aged before it was said"
