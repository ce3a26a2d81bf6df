"""SIGKILL at random moments of sessions under load, and what is left.

    python bench/crash.py [--kills N] [--lines N] [--repl SHARE] [--seed N] [--json]

So many processes of `ai` at once (one for each line of sessions, all in one database) answer questions with write, bash,
read, grep and edit while the answers stream in from a scripted upstream on loopback; each is killed at a moment drawn by
the clock or a little after one of its events, a share of them as a conversation at a terminal. After every kill the
session is loaded and compared with what the process had told. Ends with 1 where anything was lost, doubled, torn or
unusable, and says what.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from shared_ai import make_home
from shared_crash import as_dict, kill_sessions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--lines", type=int, default=5, help="processes at once")
    parser.add_argument("--repl", type=float, default=0.2, help="share of the kills that hit the REPL")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="brim-crash-", ignore_cleanup_errors=True) as name:
        report = kill_sessions(
            lambda url: make_home(Path(name) / "home", url),
            wanted.kills,
            lines=wanted.lines,
            repl=wanted.repl,
            seed=wanted.seed,
        )
    found = {**as_dict(report), "seconds": round(time.monotonic() - began)}
    if wanted.json:
        print(json.dumps(found))
    else:
        for label, value in found.items():
            if label != "faults":
                print(f"{label:<14}{value:8,}")
        for sentence in report.faults:
            print(sentence)
    sys.exit(1 if report.faults else 0)


if __name__ == "__main__":
    main()
