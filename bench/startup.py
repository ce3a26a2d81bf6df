"""How long `ai --help` takes beside `llm --help`, and what `import brim` adds to a bare interpreter.

Whole processes, run in pairs that change places each time, medians of the paired runs. `llm` is simonw/llm, the newest
release, installed into an environment of this bench's own (kept between runs, outside the repository).

    python bench/startup.py [--runs 15] [--json FILE]

Exit code 1 where `ai --help` is slower than `llm --help`, or `import brim` adds 50 ms or more.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

IMPORT_LIMIT_MS = 50


def environment_with_llm() -> Path:
    """The folder of programs of an environment that has `llm`; made on the first run."""
    import platformdirs

    root = Path(platformdirs.user_cache_dir("brim")) / "bench" / f"llm-{sys.version_info[0]}.{sys.version_info[1]}"
    programs = root / ("Scripts" if os.name == "nt" else "bin")
    if not (programs / "llm").exists():
        shutil.rmtree(root, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(root)], check=True)
        subprocess.run(
            [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "llm"], check=True
        )
    return programs


def seconds(command: list[str]) -> float:
    """How long one process takes, from start to end."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment())
    return time.perf_counter() - began


def clean_environment() -> dict[str, str]:
    """This process's environment without what would change a start (bytecode is written, warnings are off)."""
    left_out = ("PYTHONDONTWRITEBYTECODE", "PYTHONPROFILEIMPORTTIME", "PYTHONWARNINGS", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if name not in left_out}


def paired(first: list[str], second: list[str], runs: int) -> tuple[float, float, float]:
    """Medians of both commands, and the median of the differences of the pairs, in seconds."""
    for command in (first, second):  # both have their bytecode and their files in the cache
        seconds(command)
        seconds(command)
    pairs = []
    for run in range(runs):
        if run % 2:
            b, a = seconds(second), seconds(first)
        else:
            a, b = seconds(first), seconds(second)
        pairs.append((a, b))
    return (
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        statistics.median(a - b for a, b in pairs),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=15, help="pairs of each comparison")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    given = parser.parse_args()
    programs = Path(sys.executable).parent
    llm = environment_with_llm()
    ai, other, _ = paired([str(programs / "ai"), "--help"], [str(llm / "llm"), "--help"], given.runs)
    brim, bare, added = paired(
        [sys.executable, "-c", "import brim"], [sys.executable, "-c", "pass"], max(given.runs, 15)
    )
    manage, _, _ = paired([str(programs / "brim"), "--help"], [sys.executable, "-c", "pass"], 5)
    figures = {
        "ai_help_ms": ai * 1e3,
        "llm_help_ms": other * 1e3,
        "ratio": ai / other,
        "brim_help_ms": manage * 1e3,
        "import_brim_ms": brim * 1e3,
        "bare_interpreter_ms": bare * 1e3,
        "import_adds_ms": added * 1e3,
    }
    version = subprocess.run([llm / "llm", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"ai --help     {ai * 1e3:7.0f} ms")
    print(f"llm --help    {other * 1e3:7.0f} ms   ({version}); ratio {ai / other:.2f}")
    print(f"brim --help   {manage * 1e3:7.0f} ms")
    print(f"import brim   {brim * 1e3:7.0f} ms   over a bare interpreter's {bare * 1e3:.0f}: {added * 1e3:+.1f} ms")
    if given.json:
        given.json.write_text(json.dumps({**figures, "llm": version}, indent=2) + "\n")
    return 0 if ai <= other and added * 1e3 < IMPORT_LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
