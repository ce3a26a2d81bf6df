"""`brim replay` as a command: its table, its JSON, and what it says when it cannot run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared_replay import runs_file, write_lines


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
