"""What brim's tools cost beside the programs they stand on: paired runs, medians, peak memory of fresh processes.

    python bench/tools.py [FILES] [MATCHES] [GIGABYTES]

Generates a tree (default 200,000 files, 50,000 matches) in a temporary folder, then compares

- grep (200 lines and the total) with plain `rg` writing to a pipe that is read to its end;
- grep that stops early with `rg` killed after 200 lines;
- glob '**' with `rg --files` to a pipe;
- bash over a stream (default 2 GB of `yes`) with the same pipe read and thrown away.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from brim.tools.ripgrep import find_ripgrep

ROUNDS = 5

# Runs in a fresh interpreter: memory is the process's own peak, the bare interpreter's beside it.
CHILD = """
import resource, sys

def peak():
    # Not ru_maxrss where /proc is: a child takes that over from the process that started it.
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

bare = peak()
import asyncio, hashlib, json, pathlib, tempfile, time
from brim.tools import ToolContext, run_tool

class Writer:
    def __init__(self):
        self.file, self.hash = tempfile.TemporaryFile(), hashlib.sha256()
    def write(self, data):
        self.file.write(data)
        self.hash.update(data)
    def close(self):
        return self.hash.hexdigest()[:12]
    def discard(self):
        self.file.close()

class Blobs:
    open_writer = Writer
    def put(self, data):
        writer = Writer()
        writer.write(data)
        return writer.close()

ctx = ToolContext(pathlib.Path(sys.argv[1]), Blobs(), lambda text: len(text) // 4 + 1)
arguments = json.loads(sys.argv[3])
times = []
for _ in range(int(sys.argv[4])):
    began = time.perf_counter()
    output = asyncio.run(run_tool(sys.argv[2], arguments, ctx))
    times.append(time.perf_counter() - began)
assert not output.is_error, output.text
print(json.dumps({"times": times, "grown": (peak() - bare) / 1e6, "end": output.text[-160:]}))
"""


def make_tree(root: Path, files: int, matches: int) -> None:
    body = "def f(x):\n    return x + 1\n" * 15
    every = max(1, files // max(1, matches))
    for number in range(files):
        folder = root / f"pkg{number // 4000:03d}" / f"mod{number // 200 % 20:02d}"
        if number % 200 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        mark = f"# TODO fix this thing {number}\n" if number % every == 0 else ""
        (folder / f"f{number % 200:03d}.py").write_text(body + mark + body)


def plain(command: list[str], root: Path, enough: int | None = None) -> float:
    """Seconds to read a command's output from a pipe, to its end or until `enough` lines."""
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = 0
        while data := os.read(process.stdout.fileno(), 65536):
            if enough is not None and (lines := lines + data.count(b"\n")) >= enough:
                process.kill()
                break
    return time.perf_counter() - began


def tool(root: Path, name: str, arguments: dict[str, object], rounds: int = 1) -> dict[str, object]:
    command = [sys.executable, "-c", CHILD, str(root), name, json.dumps(arguments), str(rounds)]
    answer: dict[str, object] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return answer


def compare(
    label: str, limit: float, beside: Callable[[], float], root: Path, name: str, arguments: dict[str, object]
) -> None:
    """One line: medians of paired runs (the tool in one warm interpreter, as in an agent), their ratio, memory."""
    ratios, ours, theirs, grown = [], [], [], []
    for _ in range(ROUNDS):
        other = beside()
        mine = tool(root, name, arguments, rounds=2)
        seconds = min(mine["times"])  # type: ignore[call-overload]
        ratios.append(seconds / other)
        ours.append(seconds)
        theirs.append(other)
        grown.append(float(str(mine["grown"])))
    ratio = statistics.median(ratios)
    verdict = "ok" if ratio <= limit else "OVER"
    print(
        f"{label:34} {statistics.median(ours):8.3f} s  beside {statistics.median(theirs):8.3f} s"
        f"  ratio {ratio:5.2f} (limit {limit:g}) {verdict:4}  +{max(grown):.1f} MB over a bare interpreter",
        flush=True,
    )


async def none() -> None:
    """Keeps asyncio's first import out of the measured runs."""


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    matches = int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
    gigabytes = float(sys.argv[3]) if len(sys.argv) > 3 else 2.0
    asyncio.run(none())
    rg = find_ripgrep()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        root.mkdir()
        make_tree(root, files, matches)
        search = [rg, "--no-config", "--line-number", "TODO", "."]
        plain(search, root)
        print(f"{files} files, {matches} matches, {gigabytes:g} GB")
        compare("grep, 200 lines and the total", 1.15, lambda: plain(search, root), root, "grep", {"pattern": "TODO"})
        early = {"pattern": "TODO", "stop_early": True}
        compare("grep that stops early", 5.0, lambda: plain(search, root, 200), root, "grep", early)
        listing = [rg, "--no-config", "--files", "."]
        compare("glob '**'", 2.0, lambda: plain(listing, root), root, "glob", {"pattern": "**"})
        stream = f"yes | head -c {int(gigabytes * 2**30)}"
        shell = ["bash", "-c", stream]
        compare("bash, a long stream", 2.0, lambda: plain(shell, root), root, "bash", {"command": stream})


if __name__ == "__main__":
    main()
