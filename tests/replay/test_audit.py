"""Audit: the figures of recorded Claude Code sessions, converted back to their log form, against figures made here."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brim.replay.audit import audit
from brim.replay.places import log_places
from brim.replay.sources import find_files, read_transcripts
from brim.replay.spending import cache_breaks
from brim.replay.transcript import Transcript
from brim.replay.yardstick import places, text_of, weight
from shared_replay import claude_log, conversations, small_run, write_lines

SONNET = {"input": 3.0, "output": 15.0, "read": 0.3, "write": 3.75}
"""US dollars per million tokens of claude-sonnet-4, from Anthropic's price list."""


def logs_of(folder: Path, rows: list[dict[str, Any]]) -> Path:
    for row in rows:
        session = row["id"].replace("/", "-")
        write_lines(folder / f"{session}.jsonl", list(claude_log(row, session=session)))
    return folder


def audited(folder: Path) -> dict[str, Any]:
    return audit((found.transcript for found in read_transcripts(find_files([folder]))), modes=["full", "auto"]).report(
        100
    )


def test_seven_sessions(tmp_path: Path) -> None:
    """Tokens, money, window and unused results of the seven sessions are what a count by other means gives."""
    rows = conversations("coding_claude_code")
    report = audited(logs_of(tmp_path, rows))
    assert report["sessions"] == 7 and report["kinds"] == {"Claude Code": 7}

    calls = [call for row in rows for call in row["recorded_usage"]]
    read = sum(call["cached_tokens"] for call in calls)
    prompt = sum(call["prompt_tokens"] for call in calls)
    written = sum((call["prompt_tokens"] - call["cached_tokens"]) // 2 for call in calls)
    output = sum(call["completion_tokens"] for call in calls)
    usd = ((prompt - read - written) * SONNET["input"] + read * SONNET["read"] + written * SONNET["write"]
           + output * SONNET["output"]) / 1e6  # fmt: skip
    spent = report["spent"]
    assert (spent["requests"], spent["input"], spent["cached_read"]) == (len(calls), prompt, read)
    assert (spent["cached_write"], spent["output"], spent["unpriced"]) == (written, output, 0)
    assert spent["usd"] == pytest.approx(usd, rel=1e-6)
    assert spent["unreported"] == sum(m["role"] == "assistant" for row in rows for m in row["messages"]) - len(calls)
    assert sum(each["usd"] for each in report["dearest"]) == pytest.approx(usd, rel=1e-5)

    window: dict[str, int] = {}
    unused: dict[str, list[int]] = {}
    for row in rows:
        for tool, size, again, later in results_of(row["messages"]):
            entry = unused.setdefault(tool, [0, 0, 0, 0, 0])
            for place, value in enumerate(
                (1, size, not again, 0 if again else size, 0 if again else size * max(0, later - 1))
            ):
                entry[place] += value
        for at, message in enumerate(row["messages"]):
            sent = sum(1 for n, m in enumerate(row["messages"]) if m["role"] == "assistant" and n >= 2 and n > at)
            label = f"tool {message['name']}" if message["role"] == "tool" else message["role"]
            window[label] = window.get(label, 0) + sent * weight(text_of(message))
    assert report["window"] == {label: tokens for label, tokens in window.items() if tokens}
    assert {tool: list(entry.values()) for tool, entry in report["unused"].items()} == unused

    assert report["modes"]["full"] == {
        "cost": 1.0, "supported": 1.0, "saved_tokens": 0, "saved_usd": 0.0, "requests": 172, "priced": 172, "overflows": 0,
    }  # fmt: skip
    auto = report["modes"]["auto"]
    assert 0.5 < auto["cost"] <= 1.0 and auto["supported"] >= 0.95
    everything = 0.0
    for row in rows:
        sizes = [weight(text_of(message)) for message in row["messages"]]
        before = 0
        for n, message in enumerate(row["messages"]):
            if message["role"] == "assistant" and n >= 2:
                everything += 0.1 * sum(sizes[:before]) + 1.25 * sum(sizes[before:n])
                before = n
    assert auto["saved_tokens"] == pytest.approx(everything * (1 - auto["cost"]), abs=2)
    assert auto["saved_usd"] == pytest.approx(auto["saved_tokens"] * 3 / 1e6, abs=1e-4)


def results_of(messages: list[dict[str, Any]]) -> list[tuple[str, int, bool, int]]:
    """(tool, tokens, used again after its first reading, later answers) of each result, by looking at every pair."""
    standing = [set(places(text_of(message))) for message in messages]
    answers = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
    found = []
    for at, message in enumerate(messages):
        if message["role"] != "tool":
            continue
        later = [n for n in answers if n > at]
        again = any(
            n >= 4
            and any(not any(word in standing[k] for k in range(at + 1, n)) for word in standing[n] & standing[at])
            for n in later[1:]
        )
        found.append((message["name"], weight(text_of(message)), again, len(later)))
    return found


def usage(prompt: int, read: int, written: int = 0) -> dict[str, int]:
    return {"input_tokens": prompt - read - written, "cache_read_input_tokens": read, "output_tokens": 1,
            "cache_creation_input_tokens": written}  # fmt: skip


def test_cache_breaks_have_a_cause() -> None:
    """A request that reads less than half of what the one before left is a break: by a pause, a compaction, or neither."""
    messages = small_run(6)
    used = {2: usage(10_000, 0, 9_000), 4: usage(11_000, 10_000), 6: usage(12_000, 0, 12_000), 8: usage(13_000, 12_000)}
    used |= {10: usage(9_000, 2_000, 7_000), 12: usage(9_500, 9_000), 14: usage(9_900, 100)}
    times = [60.0 * n + (3_600 if n >= 6 else 0) for n in range(len(messages))]
    transcript = Transcript("s", messages, "claude-sonnet-4-5", "Claude Code", times, used, [9])
    found = cache_breaks(transcript)
    assert [(each.message, each.lost) for each in found] == [(6, 11_000), (10, 7_000), (14, 9_400)]
    assert [each.cause for each in found] == [
        "pause longer than the cache's life",
        "compacted by the agent",
        "the prefix changed, or the provider had dropped it",
    ]
    assert [round(each.usd, 6) for each in found] == [round(lost * price / 1e6, 6) for lost, price in
                                                      ((11_000, 3.45), (7_000, 3.45), (9_400, 2.7))]  # fmt: skip
    assert cache_breaks(Transcript("s", messages, "claude-sonnet-4-5", "Claude Code", times)) == []


def test_short_prefixes_and_unknown_models() -> None:
    """Prompts too short for any cache break nothing; without a price there are tokens and no money."""
    messages = small_run(3)
    short = {2: usage(900, 0), 4: usage(1_000, 0)}
    assert cache_breaks(Transcript("s", messages, "claude-sonnet-4-5", "Claude Code", (), short)) == []
    used = {2: usage(5_000, 0), 4: usage(6_000, 0)}
    (one,) = cache_breaks(Transcript("s", messages, "nobody/knows", "Claude Code", (), used))
    assert (one.lost, one.usd) == (5_000, 0.0)
    report = audit([Transcript("s", messages, "nobody/knows", "Claude Code", (), used)], modes=["full"]).report()
    assert (report["spent"]["unpriced"], report["spent"]["usd"]) == (2, 0.0)


def test_resumed_sessions_are_paid_once(tmp_path: Path) -> None:
    """A session that was resumed begins with a copy of the log before: its requests count once, what came after counts."""
    first = {"id": "a", "model": "claude-sonnet-4-5", "messages": small_run(8)[1:]}
    calls = [
        {"message_index": n, "prompt_tokens": 2_000 + n, "completion_tokens": 5, "cached_tokens": 0} for n in (1, 3, 5)
    ]
    before = list(claude_log({**first, "recorded_usage": calls[:2]}, session="a"))
    after = [{**line, "sessionId": "b"} for line in claude_log({**first, "recorded_usage": calls}, session="a")]
    write_lines(tmp_path / "a.jsonl", before)
    write_lines(tmp_path / "b.jsonl", after)
    spent = audited(tmp_path)["spent"]
    assert (spent["requests"], spent["input"]) == (3, 6_009)
    assert spent["unreported"] == 9 - 2 + 9 - 3


def test_places_of_logs(tmp_path: Path) -> None:
    """The logs of Claude Code, codex and brim are looked for where each keeps them, and where the environment says."""
    logs = (".claude/projects", ".config/claude/projects", ".codex/sessions", ".codex/archived_sessions")
    for folder in (*logs, "data", "elsewhere/sessions"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "data" / "brim.db").touch()
    env = {"BRIM_DATA_DIR": str(tmp_path / "data")}
    found = [str(path.relative_to(tmp_path)) for path in log_places(env, tmp_path)]
    assert found == [*logs, "data/brim.db"]
    env |= {"CODEX_HOME": str(tmp_path / "elsewhere"), "CLAUDE_CONFIG_DIR": str(tmp_path / ".claude")}
    assert log_places(env, tmp_path)[:2] == [tmp_path / ".claude" / "projects", tmp_path / "elsewhere" / "sessions"]


def test_the_command_reads_and_never_writes(tmp_path: Path) -> None:
    """`brim audit` over a home folder with logs prints its tables and leaves every file as it was."""
    rows = [{"id": "a", "model": "claude-sonnet-4-5", "messages": small_run(8)[1:],
             "recorded_usage": [{"message_index": n, "prompt_tokens": 2_000 + n, "completion_tokens": 5, "cached_tokens": 0}
                                for n in (1, 3, 5)]}]  # fmt: skip
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    logs_of(folder, rows)

    def state() -> dict[str, str]:
        files = (path for path in tmp_path.rglob("*") if path.is_file())
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    before = state()
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "brim.cli.manage", "audit", "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["spent"]["requests"] == 3 and report["spent"]["input"] == 6_009
    assert report["breaks"]["the prefix changed, or the provider had dropped it"]["times"] == 2
    assert state() == before
