"""The tables of docs/economics.md: `python bench/economics.py [--tables files,pauses,halves,parts] [-j 2]`.

`auto` where only prices speak (no window, no history budget), on the transcripts of $BRIM_DATA, each with its own
model's counter: cost over sending everything in the four price regimes, the least share of requests that found all they
needed in view, and the worst conversation. `halves`: conversations by turns, since the constants were chosen with the
even ones in view. `parts`: one constant at a time made harmless.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from brim.context import economics
from brim.replay.play import Outcome, Plays, Totals, play
from brim.replay.regimes import DEFAULT
from brim.replay.sources import find_files, read_transcripts
from brim.replay.transcript import Transcript

AUTO = "auto,window=10000000,history_budget=none"
HALVES = ("coding_mini_swe_gemini3", "coding_stitched_long", "service_crosswoz_stitched_long_zh", "service_crosswoz_zh")
CODE = HALVES[:2]
PARTS: dict[str, dict[str, float]] = {
    "nothing left out": {},
    "the end of a turn (`TURN_OVER`)": {"TURN_OVER": 1.0},
    "the barest form (`STUB_WEIGHT`)": {"STUB_WEIGHT": 1e9},
    "the reserve (`RESERVE`)": {"RESERVE": 0.0},
    "the margin (`MARGIN`)": {"MARGIN": 0.0},
    "learning from this conversation's misses (`CAUTION`)": {"CAUTION": 1e9},
    "the longer horizon where writing is dear (`MOST_REQUESTS_DEAR`)": {"MOST_REQUESTS_DEAR": 100.0},
}
MANY_REQUESTS = 10


def one(transcript: Transcript, pause_every: int, constants: Mapping[str, float]) -> Outcome:
    """One conversation with some constants replaced. In a process of its own, so nothing is put back."""
    given = {name: getattr(economics, name) for name in constants}
    for name, value in constants.items():
        setattr(economics, name, value)
    try:
        return play(transcript, Plays((AUTO,), DEFAULT, pause_every))
    finally:
        for name, value in given.items():
            setattr(economics, name, value)


def row(name: str, outcomes: list[Outcome]) -> str:
    """One line of a table: costs by regime, least support, worst conversation of more than ten requests."""
    costs, supports, worst = [], [], 0.0
    for number, regime in enumerate(DEFAULT):
        mine, base = Totals(), Totals()
        for outcome in outcomes:
            played = next(each for each in outcome.plays if each.policy != "everything" and each.regime == number)
            mine.merge(played.totals)
            base.merge(outcome.plays[0].totals)
            if outcome.requests > MANY_REQUESTS:
                worst = max(worst, played.totals.cost(regime) / outcome.plays[0].totals.cost(regime))
        costs.append(f"{mine.cost(regime) / base.cost(regime):.3f}")
        supports.append(mine.supported / mine.requests)
    return f"| {name} | {' | '.join(costs)} | {min(supports):.3f} | {f'{worst:.3f}' if worst else '–'} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default="files,pauses,halves,parts")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    folder = Path(os.environ.get("BRIM_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    if not folder.is_dir():
        sys.exit(f"no transcripts in {folder}: name their folder with BRIM_DATA")
    names = [path.stem for path in sorted(folder.glob("*_*.jsonl"))]

    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:

        def outcomes(name: str, pause_every: int = 0, constants: Mapping[str, float] | None = None) -> list[Outcome]:
            found = read_transcripts(find_files([folder / f"{name}.jsonl"]))
            made = [pool.submit(one, each.transcript, pause_every, constants or {}) for each in found]
            return [each.result() for each in made]

        tables: dict[str, Callable[[], Iterator[str]]] = {
            "files": lambda: (row(name, outcomes(name)) for name in names),
            "pauses": lambda: (row(name, outcomes(name, 8)) for name in names),
            "halves": lambda: (
                row(f"{name}, {half}", all_of[start::2])
                for name in HALVES
                for all_of in [outcomes(name)]
                for start, half in enumerate(("even", "odd"))
            ),
            "parts": lambda: (
                row(f"{what}: {name}", outcomes(name, 0, constants))
                for what, constants in PARTS.items()
                for name in CODE
            ),
        }
        for table in options.tables.split(","):
            print(f"\n{table}\n| | 1.25 / 0.10 | 1 / 0.25 | 1 / 0.50 | no cache | supported, least | worst |")
            print("| --- | --: | --: | --: | --: | --: | --: |")
            for line in tables[table]():
                print(line, flush=True)


if __name__ == "__main__":
    main()
