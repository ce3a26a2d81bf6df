"""What the measure leaves out, in figures: the same replays with one assumption changed at a time.

python bench/replay_fairness.py [FILE.jsonl …]    # default: the coding runs of $BRIM_DATA

as it is        the measure
+ 4,000         a system prompt and tool definitions of 4,000 tokens stand before every view, cached
kept            what was fetched again stays in the view for the rest of the conversation, read at every request
twice           a refetch costs two more requests: the one that finds out, and the one that fetches
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from brim.replay.measure import Measure, Recording, Row
from brim.replay.policies import parse_policy
from brim.replay.regimes import DEFAULT, Regime
from brim.replay.sources import find_files, read_transcripts
from brim.replay.transcript import Transcript

POLICIES = ("mask-10", "mask-3", "last-20", "cut-750", "mask-10k-keep-5", "compact,window=32000", "auto")
OPENING = 4_000


def rows_of(transcript: Transcript, recording: Recording, spec: str, regime: Regime) -> list[Row]:
    session = parse_policy(spec).start(transcript, regime)
    measure = Measure(recording)
    return [measure.request(at, session.view(recording.messages[:at], None)) for at in recording.requests]


def costs(rows: Sequence[Row], regime: Regime) -> list[float]:
    """As it is, with an opening, with what was fetched kept, with two requests for a refetch."""
    plain = opened = kept = twice = 0.0
    carried = 0
    for number, row in enumerate(rows):
        own = row.read * regime.read + row.written * regime.write
        again = row.tokens * regime.read + row.refetched * regime.write if row.missing else 0.0
        opening = OPENING * (regime.write if number == 0 else regime.read)
        plain += own + again
        opened += own + again + opening + (OPENING * regime.read if row.missing else 0.0)
        kept += own + again + carried * regime.read * (2 if row.missing else 1)
        twice += own + again + (row.tokens * regime.read if row.missing else 0.0)
        carried += row.refetched
    return [plain, opened, kept, twice]


def main() -> None:
    folder = Path(os.environ.get("BRIM_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    files = [Path(name) for name in sys.argv[1:]] or [folder / "coding_mini_swe_gemini3.jsonl"]
    if not all(path.exists() for path in files):
        sys.exit(f"no transcripts at {files[0]}: name some, or set BRIM_DATA")
    regimes = (DEFAULT[0], DEFAULT[-1])
    sums: dict[tuple[str, str], list[float]] = {}
    for found in read_transcripts(find_files(files)):
        recording = Recording(found.transcript.messages)
        for regime in regimes:
            for spec in ("everything", *POLICIES):
                rows = rows_of(found.transcript, recording, spec, regime)
                entry = sums.setdefault((spec, regime.name), [0.0] * 4)
                for place, cost in enumerate(costs(rows, regime)):
                    entry[place] += cost
    for regime in regimes:
        print(f"write/read {regime.name}        as it is   + {OPENING:,}      kept     twice")
        for spec in POLICIES:
            ratios = (
                mine / base for mine, base in zip(sums[spec, regime.name], sums["everything", regime.name], strict=True)
            )
            print(f"  {spec:22}", "  ".join(f"{ratio:8.3f}" for ratio in ratios))


if __name__ == "__main__":
    main()
