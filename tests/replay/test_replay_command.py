"""`brim replay` as a command: its table, its JSON, and what it says when it cannot run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared_replay import runs_file, small_run, write_lines


def brim(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "brim.cli.manage", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=180, check=False, env={**os.environ, "NO_COLOR": "1"}
    )


def test_table_and_json(tmp_path: Path) -> None:
    """The table has a line for each policy; the JSON is the same with one process, with two, and at the second run."""
    path = runs_file(tmp_path)
    done = brim("replay", path, "-p", "mask-3", "-p", "auto", "--prices", "1.25/0.1", "--prices", "1/1")
    assert done.returncode == 0, done.stderr
    head, columns, *lines = done.stdout.splitlines()
    assert head == "runs.jsonl: 4 conversations, 54 requests"
    assert columns.split()[:5] == ["policy", "cost", "1.25/0.1", "cost", "1/1"]
    assert [line.split()[0] for line in lines if line] == ["everything", "mask-3", "auto"]
    journal = tmp_path / "journal"
    first = brim("replay", path, "-p", "mask-3", "-p", "auto", "--json", "--resume", journal)
    again = brim("replay", path, "-p", "mask-3", "-p", "auto", "--json", "--resume", journal)
    spread = brim("replay", path, "-p", "mask-3", "-p", "auto", "--json", "--jobs", "2")
    assert first.stdout == again.stdout == spread.stdout
    report = json.loads(first.stdout)
    assert [policy["policy"] for policy in report["files"][0]["policies"]] == ["everything", "mask-3", "auto"]
    assert "planner_ms" not in report["files"][0]["policies"][0]["prices"][0]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["missing.jsonl"], "no file missing.jsonl"),
        (["{empty}"], "no requests in these files"),
        (["{runs}", "-p", "sometimes"], "no policy 'sometimes'"),
        (["{runs}", "--prices", "nobody/knows"], "no prices known"),
        (["{runs}", "--engine", "dask"], "no engine 'dask'"),
    ],
)
def test_usage_errors(tmp_path: Path, arguments: list[str], told: str) -> None:
    """What cannot be run ends with exit code 2, a sentence and a hint, and nothing on stdout."""
    names = {
        "runs": str(runs_file(tmp_path, 1)),
        "empty": str(write_lines(tmp_path / "empty.jsonl", [{"messages": []}])),
    }
    done = brim("replay", *(argument.format(**names) for argument in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr and "Traceback" not in done.stderr


def test_stdin_and_a_legend(tmp_path: Path) -> None:
    """`-` reads stdin; what the columns mean stands on stderr, so that stdout is the table alone."""
    path = runs_file(tmp_path, 1)
    command = [sys.executable, "-m", "brim.cli.manage", "replay", "-", "-p", "mask-3", "--pause-every", "2"]
    with path.open("rb") as given:
        done = subprocess.run(command, stdin=given, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("stdin: 1 conversation, 9 requests, a pause before every 2nd request\n")
    for column in ("cost", "supported", "tokens", "overflows", "worst"):
        assert f"\n{column} " in f"\n{done.stderr}"


@pytest.mark.parametrize("html", ["{runs}", "{folder}", "{folder}/none/x.html", "{folder}/journal"])
def test_a_report_that_cannot_be_written_is_refused_first(tmp_path: Path, html: str) -> None:
    """A report over a transcript, over the journal, or where nothing can be written is refused before anything is played."""
    runs = runs_file(tmp_path, 1)
    before = runs.read_bytes()
    where = html.format(runs=runs, folder=tmp_path)
    done = brim("replay", runs, "-p", "mask-3", "--html", where, "--resume", tmp_path / "journal")
    assert (done.returncode, done.stdout) == (2, "") and "Traceback" not in done.stderr
    assert runs.read_bytes() == before and not (tmp_path / "journal").exists()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupted_run_goes_on(tmp_path: Path, jobs: str) -> None:
    """Ctrl-C ends a run, workers and all, with 130 and one sentence; the same command goes on and gives the same JSON."""
    rows = [{"id": f"run-{n}", "messages": small_run(30, seed=n)} for n in range(16)]
    path, journal = write_lines(tmp_path / "runs.jsonl", rows), tmp_path / "journal"
    asked = ["replay", str(path), "-p", "auto", "--prices", "1.25/0.1", "--json"]
    command = [sys.executable, "-m", "brim.cli.manage", *asked]
    command += ["--jobs", jobs, "--resume", str(journal)]

    def heed() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heed
    )
    try:
        while run.poll() is None and (not journal.exists() or journal.read_bytes().count(b"\n") < 3):
            time.sleep(0.01)
        os.killpg(run.pid, signal.SIGINT)
        out, err = run.communicate(timeout=120)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    assert (run.returncode, out) == (130, "")
    assert err.splitlines() == [f"interrupted; what is done is in {journal}, and the same command goes on from there"]
    assert 3 <= journal.read_bytes().count(b"\n") < 16
    again = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    fresh = brim(*asked)
    assert again.returncode == 0 and again.stdout == fresh.stdout
