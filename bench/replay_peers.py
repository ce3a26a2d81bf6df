"""The context policies of other packages beside brim's, on recorded conversations: cost, support, validity, planner time.

    python bench/replay_peers.py                      # $BRIM_DATA, else ../shared/data beside this repository
    python bench/replay_peers.py FILE.jsonl … -j 2

Install what should be compared: pip install langchain-core langchain litellm headroom-ai strands-agents. Each policy runs
twice where it takes a size: at its default of 100,000 tokens, and at 16,000, where runs of this length make it act.
litellm takes 40 to 100 ms for a short conversation and over half a minute for a request of 500 messages; so it runs only
with --litellm.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from brim.replay.peers import installed, versions
from brim.replay.play import Plays
from brim.replay.policies import parse_policy
from brim.replay.regimes import DEFAULT
from brim.replay.run import replay
from brim.replay.sources import find_files, read_transcripts
from brim.replay.table import render_table

SMALL = {"langchain-trim": "max_tokens=16000", "langchain-clear": "trigger=16000", "litellm-trim": "max_tokens=16000"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--litellm", action="store_true")
    given = parser.parse_args()
    folder = Path(os.environ.get("BRIM_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    files = given.files or [folder / "coding_mini_swe_gemini3.jsonl"]
    if not all(path.exists() for path in files):
        sys.exit(f"no transcripts at {files[0]}: name some, or set BRIM_DATA")
    names = [name for name in installed() if name != "litellm-trim" or given.litellm]
    if not names:
        sys.exit("none of the packages is installed: pip install langchain-core langchain headroom-ai strands-agents")
    for package, version in versions().items():
        print(f"{package} {version}")
    specs = [spec for name in names for spec in (name, *([f"{name},{SMALL[name]}"] if name in SMALL else []))]
    specs += ["auto", "auto,window=32000"]
    for spec in specs:
        parse_policy(spec)
    figures = replay(read_transcripts(find_files(files)), Plays(tuple(specs), DEFAULT), jobs=given.jobs)
    print(render_table(figures.report(times=True)), end="")


if __name__ == "__main__":
    main()
