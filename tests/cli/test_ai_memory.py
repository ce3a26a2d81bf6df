"""Whatever a command prints and however large a file is, `ai` stays small and answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brim.testing import ScriptedProvider, reply, tool_call
from shared_ai import Home, make_home

MOST_GROWTH = 60 * 1024 * 1024
SIZE = 2 * 1024**3

# Runs `ai` in a process of its own and prints the most memory that process itself ever held (VmHWM, Linux).
MEASURED = """
import atexit, re, sys
def told():
    text = open("/proc/self/status").read()
    print(re.search(r"VmHWM:\\s+(\\d+)", text)[1], file=sys.stderr)
atexit.register(told)
from brim.cli.ai import main
main(sys.argv[1:])
"""


def peak(home: Home, *arguments: str) -> int:
    """Bytes at the highest."""
    ran = subprocess.run(
        [sys.executable, "-c", MEASURED, *arguments],
        cwd=home.work, env=home.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=570, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr
    return int(ran.stderr.splitlines()[-1]) * 1024


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize(
    ("small", "large"),
    [
        (("bash", {"command": "echo y"}), ("bash", {"command": f"yes | head -c {SIZE}", "timeout": 500})),
        (("read", {"path": "small.txt"}), ("read", {"path": "sparse.bin"})),
        (("read", {"path": "small.txt"}), ("read", {"path": "large.log"})),
        (("grep", {"pattern": "y"}), ("grep", {"pattern": "y", "path": "large.txt"})),
    ],
    ids=["bash", "sparse", "read", "grep"],
)
def test_two_gigabytes_through_a_tool(
    tmp_path: Path, small: tuple[str, dict[str, Any]], large: tuple[str, dict[str, Any]]
) -> None:
    """Two gigabytes printed, read or searched add less than 60 MB to the peak of a small call, and the call returns."""
    with ScriptedProvider([tool_call(*small), reply("done"), tool_call(*large), reply("done")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        (home.work / "small.txt").write_text("y\n")
        with (home.work / "sparse.bin").open("wb") as file:
            file.truncate(SIZE)
        (home.work / "large.txt").write_bytes(b"y\n" * 5_000_000)
        if large[1].get("path") == "large.log":
            piece = (
                b"2026-01-01 12:00:00 worker 7 finished a batch of some size in a moment, nothing else of note\n"
                * 90_000
            )
            with (home.work / "large.log").open("wb") as file:
                while file.tell() < SIZE:
                    file.write(piece)
        first = peak(home, "go", "--allow", "bash(*)")
        second = peak(home, "go", "--allow", "bash(*)")
        (home.work / "large.log").unlink(missing_ok=True)
        told = upstream.requests[3].body["messages"][-1]["content"]
    assert second - first < MOST_GROWTH, f"{first / 1e6:.0f} MB, then {second / 1e6:.0f} MB"
    assert 20 < len(told) < 60_000
