"""Scripts start ai with streams closed, full or left: it says so, never with a traceback, and no file takes their place."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brim.testing import ScriptedProvider, reply
from shared_ai import Home, make_home


def shell(home: Home, module: str, line: str) -> subprocess.CompletedProcess[str]:
    """`ai …` or `brim …` with redirections, as a shell runs it."""
    command = f"{shlex.quote(sys.executable)} -m brim.cli.{module} {line}"
    return subprocess.run(
        ["bash", "-c", command], cwd=home.work, env=home.env, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("target", [">&-", "> /dev/full"])
@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("ai", "hello"),
        ("ai", "--help"),
        ("ai", "--output-format json hello"),
        ("manage", "config show"),
        ("manage", "--help"),
    ],
)
def test_output_that_cannot_be_written_is_told(tmp_path: Path, module: str, line: str, target: str) -> None:
    """A closed stdout and a full disk end with 1 and one sentence, whatever was to be written."""
    with ScriptedProvider([reply("hello")], repeat_last=True) as upstream:
        ran = shell(make_home(tmp_path, upstream.base_url), module, f"{line} {target}")
    assert ran.returncode == 1, ran.stderr
    assert "cannot be written" in ran.stderr
    assert "Traceback" not in ran.stderr and "Exception ignored" not in ran.stderr


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("ai", "--help"),
        ("ai", "--version"),
        ("manage", "--help"),
        ("manage", "sessions list --help"),
        ("manage", "--version"),
    ],
)
def test_help_that_nobody_reads_ends_quietly(tmp_path: Path, module: str, line: str) -> None:
    """`ai --help | true` ends like other tools whose reader has gone: 141, and not a word."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", f"brim.cli.{module}", *line.split()],
            env=make_home(tmp_path, None).env, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, "")


@pytest.mark.parametrize("closed", ["2>&-", "<&-", "<&- 2>&-"])
def test_a_closed_stdin_or_stderr_takes_nothing_away(tmp_path: Path, closed: str) -> None:
    """The answer comes all the same, alone on stdout: no database or socket has taken the closed stream's number."""
    with ScriptedProvider([reply("hello")]) as upstream:
        ran = shell(make_home(tmp_path, upstream.base_url), "ai", f"question {closed}")
    assert (ran.returncode, ran.stdout) == (0, "hello\n")


@pytest.mark.parametrize("prompt", ["''", "'  '", "'' ' '"])
def test_a_blank_prompt_is_none(tmp_path: Path, prompt: str) -> None:
    """Blanks are no question: an empty variable in a script costs nothing and ends with 2."""
    with ScriptedProvider() as upstream:
        ran = shell(make_home(tmp_path, upstream.base_url), "ai", f"{prompt} < /dev/null")
        assert not upstream.requests
    assert ran.returncode == 2 and "no prompt" in ran.stderr


def test_an_interrupted_beginning_leaves_no_session(tmp_path: Path) -> None:
    """Ended while a file is waited for, ai leaves no empty session behind."""
    with ScriptedProvider() as upstream:
        home = make_home(tmp_path, upstream.base_url)
        subprocess.run(["mkfifo", str(home.work / "pipe")], check=True)
        process = home.start("-f", "pipe", "question")
        writer = (home.work / "pipe").open("wb")  # opens once ai reads
        process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        writer.close()
        process.communicate()
        assert process.returncode == 130
        assert home.manage("sessions", "list", "--json").out.strip() == "[]"
