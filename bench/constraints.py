"""Do the user's constraints survive compaction, and does nothing else become one?

Synthetic messages with labelled constraints (and decoys: orders in tool output, in the assistant's words, quoted,
imagined, withdrawn or foreign ones) are placed in the first turns of long real transcripts of the same language. The
history is replayed with a window of the system prompt, the pins and a quarter of the rest, and compacted as often as
that makes it. After each compaction every labelled constraint and each of its facts is looked for in the view,
verbatim, and every decoy among the lines that the view presents as the user's rules.

    python bench/constraints.py [--modes compact,auto] [--transcripts N] [--limit N] [--direct] [--json]

The data are read from $BRIM_DATA, else ../shared/data beside this repository; without them the script says so and ends
well. `--direct` asks the summary alone, without the engine around it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from brim.context.summary import deterministic_summary
from brim.context.wording import MARK, WORDING
from brim.formats import parse_request
from brim.tokens import counter_for

TRANSCRIPTS = {"en": "coding_stitched_long.jsonl", "zh": "service_crosswoz_stitched_long_zh.jsonl"}
MODEL = "gpt-4o"
HANDFUL, DECOYS = 6, 3
PIN = "[PIN] The pinned phrase of this session is heron-{n}."
RULE = "\n\nEvery answer must end with the house mark <ok-{n}>."
ACKNOWLEDGED = {"en": "Understood.", "zh": "好的，记下了。"}
MARGIN = 1.02  # the window is named in tokens of the view; what the request needs beside them comes on top
RESERVED = 1_024

Chat = dict[str, Any]
Row = dict[str, Any]


def data_folder() -> Path | None:
    folder = Path(os.environ.get("BRIM_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    return folder if (folder / "constraints.jsonl").is_file() else None


def read_rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def planted(rows: list[Row], language: str, number: int) -> list[Chat]:
    """The first turns: each true message answered with an acknowledgement, each decoy in the role it names."""
    found: list[Chat] = []
    for place, row in enumerate(rows):
        where = "user" if row["is_constraint"] else row["where"]
        if where == "user":
            found.append({"role": "user", "content": row["message"]})
            found.append({"role": "assistant", "content": ACKNOWLEDGED[language]})
        elif where == "assistant":
            found.append({"role": "user", "content": "?" if language == "en" else "？"})
            found.append({"role": "assistant", "content": row["message"]})
        else:
            call = {"id": f"planted_{place}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
            found.append({"role": "user", "content": "Have a look." if language == "en" else "看一下。"})
            found.append({"role": "assistant", "content": None, "tool_calls": [call]})
            found.append({"role": "tool", "tool_call_id": f"planted_{place}", "content": row["message"]})
            found.append({"role": "assistant", "content": ACKNOWLEDGED[language]})
    found.append({"role": "user", "content": PIN.format(n=number)})
    found.append({"role": "assistant", "content": ACKNOWLEDGED[language]})
    return found


def build(transcript: Row, rows: list[Row], language: str, number: int) -> list[Chat]:
    messages = [dict(message) for message in transcript["messages"]]
    system = messages.pop(0) if messages[0]["role"] == "system" else {"role": "system", "content": "You help."}
    system["content"] += RULE.format(n=number)
    return [system, *planted(rows, language, number), *messages]


def groups(rows: list[Row], language: str) -> Iterator[list[Row]]:
    """Handfuls that together hold every true message once; decoys go round."""
    true = [row for row in rows if row["is_constraint"] and row["language"] == language]
    decoys = [row for row in rows if not row["is_constraint"] and row["language"] == language]
    for start in range(0, len(true), HANDFUL):
        take = [decoys[(start // HANDFUL * DECOYS + i) % len(decoys)] for i in range(DECOYS)]
        mixed = true[start : start + HANDFUL]
        for place, decoy in enumerate(take):
            mixed.insert(1 + 2 * place, decoy)
        yield mixed


def rule_lines(view: str) -> str:
    """What the view presents as the user's rules or facts: those sections of every summary in it."""
    headings = {f"## {getattr(words, name)}" for words in WORDING.values() for name in ("rules", "facts", "pins")}
    kept: list[str] = []
    inside = False
    for line in view.splitlines():
        if line.startswith("## "):
            inside = line.strip() in headings
        elif inside:
            kept.append(line)
    return "\n".join(kept)


def view_text(messages: list[Chat]) -> str:
    pieces = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            content = "\n".join(part.get("text", "") for part in content)
        pieces.append(content or "")
    return "\n".join(pieces)


class Tally:
    """Counts of hits out of all, by any key."""

    def __init__(self) -> None:
        self.hits: dict[str, int] = defaultdict(int)
        self.all: dict[str, int] = defaultdict(int)
        self.missed: dict[str, set[str]] = defaultdict(set)

    def note(self, key: str, hit: bool, name: str = "") -> None:
        self.all[key] += 1
        self.hits[key] += hit
        if not hit and name:
            self.missed[key].add(name)

    def share(self, key: str) -> float:
        return self.hits[key] / self.all[key] if self.all[key] else float("nan")


def note_view(tally: Tally, mode: str, nth: int, view: str, rows: list[Row], number: int) -> None:
    rules = rule_lines(view)
    tally.note(f"{mode} | pin", PIN.format(n=number) in view, str(number))
    tally.note(f"{mode} | system rule", RULE.format(n=number).strip() in view, str(number))
    for row in rows:
        if row["is_constraint"]:
            whole = row["constraint"] in view and all(fact in view for fact in row["facts"])
            for key in (
                f"strength {row['strength']}",
                f"language {row['language']}",
                f"domain {row['domain']}",
                f"compactions {bucket(nth)}",
                f"strength {row['strength']} after {bucket(nth)}",
            ):
                tally.note(f"{mode} | {key}", whole, row["id"])
            listed = row["constraint"] in rules
            tally.note(f"{mode} | listed among the rules, {row['strength']}", listed, row["id"])
            if "superseded" in row:
                tally.note(f"{mode} | superseded wording not a rule", row["superseded"] not in rules, row["id"])
        else:
            tally.note(f"{mode} | decoy promoted, {row['where']}", row["constraint"] in rules)


def bucket(nth: int) -> str:
    return "1" if nth <= 1 else "2-3" if nth <= 3 else "4-10" if nth <= 10 else "over 10"


def replay(messages: list[Chat], window: int, mode: str) -> Iterator[tuple[int, str]]:
    """(number of the compaction, text of the view) for every view that holds another summary than the one before."""
    import brim

    previous = None
    nth, last = 0, ""
    # A request is made wherever the model would be asked: after a user message or the last of a run of results.
    asks = [
        i + 1
        for i, message in enumerate(messages)
        if message["role"] in ("user", "tool") and (i + 1 == len(messages) or messages[i + 1]["role"] == "assistant")
    ]
    for end in asks:
        prepared = brim.prepare(
            {"model": MODEL, "messages": messages[:end]}, api="openai.chat", mode=mode, window=window,
            max_output=RESERVED, previous=previous,
        )  # fmt: skip
        previous = prepared.plan
        view = view_text(prepared.request["messages"])
        start = view.find(MARK + " ")
        summary = view[start : start + 20_000] if start >= 0 else ""
        if summary and summary[:400] != last[:400]:
            nth += 1
            last = summary
            yield nth, view


def direct(messages: list[Chat], window: int) -> Iterator[tuple[int, str]]:
    """The summary alone: everything but the last 5% is folded, at five lengths of the history."""
    counter = counter_for(MODEL)
    history = parse_request({"model": MODEL, "messages": messages}, "openai.chat").messages
    budget = int((window - RESERVED) * 0.2)
    for nth, share in enumerate((0.35, 0.5, 0.65, 0.8, 1.0), start=1):
        end = int(len(history) * share)
        fold = int(end * 0.95)
        made = deterministic_summary(
            history[1:fold], later=history[fold:end], budget_tokens=budget, count=counter.count_text
        )
        yield nth, f"{messages[0]['content']}\n{made.text}"


def run(folder: Path, modes: list[str], transcripts: int, limit: int) -> Tally:
    rows = read_rows(folder / "constraints.jsonl")
    counter = counter_for(MODEL)
    tally = Tally()
    for language, name in TRANSCRIPTS.items():
        available = read_rows(folder / name)[:transcripts]
        for number, group in enumerate(list(groups(rows, language))[:limit]):
            messages = build(available[number % len(available)], group, language, number)
            parsed = parse_request({"model": MODEL, "messages": messages}, "openai.chat").messages
            counts = counter.count_messages(parsed)
            pins = counter.count_text(PIN.format(n=number))
            window = int((counts[0] + pins + sum(counts[1:]) // 4) * MARGIN) + RESERVED
            for mode in modes:
                views = direct(messages, window) if mode == "direct" else replay(messages, window, mode)
                compactions = 0
                for nth, view in views:
                    compactions = nth
                    note_view(tally, mode, nth, view, group, number)
                print(
                    f"{mode:8} {language} group {number}: {len(messages):,} messages, {sum(counts):,} tokens, "
                    f"window {window:,}, {compactions} compactions",
                    file=sys.stderr,
                )
    return tally


GOALS = {"pin": 1.0, "system rule": 1.0, "strength explicit": 0.98, "strength plain": 0.9, "strength implicit": 0.75}


def report(tally: Tally) -> bool:
    """Print the shares; True if every goal is met."""
    met = True
    for key in sorted(tally.all):
        mode, _, what = key.partition(" | ")
        promoted = what.startswith("decoy promoted")
        goal = 0.05 if promoted else GOALS.get(what)
        good = goal is None or (tally.share(key) < goal if promoted else tally.share(key) >= goal)
        met &= good
        sign = "" if goal is None else ("  ok" if good else "  MISSED")
        wanted = "" if goal is None else f"  goal {'<' if promoted else '>='} {goal:.0%}"
        print(f"{mode:8} {what:46} {tally.hits[key]:6,} of {tally.all[key]:6,}  {tally.share(key):7.1%}{wanted}{sign}")
        if not promoted and tally.missed[key] and (goal is not None or "superseded" in what):
            print(f"{'':10}missed: {', '.join(sorted(tally.missed[key])[:20])}")
    return met


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    options.add_argument("--modes", default="compact,auto")
    options.add_argument("--transcripts", type=int, default=4, help="how many transcripts of each language")
    options.add_argument("--limit", type=int, default=100, help="how many handfuls of each language")
    options.add_argument("--direct", action="store_true", help="the summary alone, without the engine")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    folder = data_folder()
    if folder is None:
        print("skipped: no transcripts here (set BRIM_DATA to the folder that holds constraints.jsonl)")
        return 0
    modes = ["direct"] if given.direct else given.modes.split(",")
    tally = run(folder, modes, given.transcripts, given.limit)
    if given.json:
        print(json.dumps({key: [tally.hits[key], tally.all[key]] for key in sorted(tally.all)}, indent=1))
        return 0
    return 0 if report(tally) else 1


if __name__ == "__main__":
    raise SystemExit(main())
