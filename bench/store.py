"""How fast the session store is, beside what one could use instead, on the same disk in the same minutes.

    python bench/store.py [--rounds N] [--appends N] [--json]

Three tables:

- appends per second, from a message in memory to durable on the disk: `Store.append`, plain `sqlite3` (the same row in a
  transaction of its own, WAL, synchronous=FULL), and a JSON Lines file with fsync. They take turns message by message, a
  different one first each time, since a disk's fsync varies from second to second by more than the candidates do; the
  ratios are medians over the rounds.
- opening a session of 20,000 messages beside an empty one: store opened, session found, messages loaded; and the same in
  the assistant, its lease taken, ready for a question. Besides, what the first question adds: every message decoded, and
  handed to the engine. On a machine that is busy with other things the processor time is the figure to trust.
- an original of 64 MB (log lines) streamed in and out, beside a plain file with fsync.

Ends with 1 where a limit does not hold: appends at 0.7 of plain SQLite's, and 50 ms of processor time more for the long
session than for the empty one.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from brim.agent.session import AgentSession, Offer
from brim.conversation import Message
from brim.formats import parse_message
from brim.providers import resolve_model
from brim.store import open_store

LEAST_SHARE = 0.7
MOST_MS = 50


def messages(count: int) -> list[Message]:
    """A conversation of an agent's sizes: short questions, calls, results of about 700 bytes."""
    out: list[Message] = []
    wire: dict[str, object]
    for n in range(count):
        match n % 4:
            case 0:
                wire = {
                    "role": "user",
                    "content": f"Question {n}: where is the parser's entry point, and who calls it?",
                }
            case 1:
                function = {"name": "grep", "arguments": json.dumps({"pattern": f"def parse_{n}"})}
                calls = [{"id": f"call_{n}", "type": "function", "function": function}]
                wire = {"role": "assistant", "content": None, "tool_calls": calls}
            case 2:
                lines = "\n".join(f"src/module_{n}_{k}.py:{k * 7}:    def parse_{n}(self, text):" for k in range(12))
                wire = {"role": "tool", "tool_call_id": f"call_{n - 1}", "content": lines}
            case _:
                wire = {"role": "assistant", "content": f"Answer {n}: it stands in src/module_{n}_3.py. " * 8}
        out += parse_message(wire, "openai.chat")
    return out


def appends(folder: Path, rounds: int, count: int) -> dict[str, float]:
    batch = messages(count)
    store = open_store(folder / "brim.db")
    session = store.new_session("/bench").id
    plain = sqlite3.connect(folder / "plain.db", isolation_level=None)
    plain.execute("PRAGMA journal_mode=WAL")
    plain.execute("PRAGMA synchronous=FULL")
    plain.execute(
        "CREATE TABLE messages (session INTEGER, seq INTEGER, role TEXT, api TEXT, body TEXT, created REAL, "
        "PRIMARY KEY (session, seq))"
    )
    lines = (folder / "lines.jsonl").open("ab")

    base = 0

    def with_plain(n: int) -> None:
        plain.execute("BEGIN IMMEDIATE")
        row = (base, n, batch[n].role, "openai.chat", json.dumps(batch[n].wire), time.time())
        plain.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?)", row)
        plain.execute("COMMIT")

    def with_lines(n: int) -> None:
        lines.write(json.dumps(batch[n].wire).encode() + b"\n")
        lines.flush()
        os.fsync(lines.fileno())

    candidates: dict[str, Callable[[int], object]] = {
        "brim": lambda n: store.append(session, [batch[n]]),
        "sqlite": with_plain,
        "jsonl": with_lines,
    }
    order = list(candidates.items())
    store.append(session, batch[:1])
    rows = []
    for base in range(rounds):  # noqa: B007  `with_plain` reads it
        spent = dict.fromkeys(candidates, 0.0)
        for n in range(count):
            for turn in range(len(candidates)):
                name, append = order[(n + turn) % len(order)]
                start = time.perf_counter()
                append(n)
                spent[name] += time.perf_counter() - start
        rows.append({name: count / seconds for name, seconds in spent.items()})
    store.close()
    plain.close()
    lines.close()
    found = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    found["of sqlite"] = statistics.median(row["brim"] / row["sqlite"] for row in rows)
    found["of jsonl"] = statistics.median(row["brim"] / row["jsonl"] for row in rows)
    return found


def opening(folder: Path, rounds: int, count: int = 20_000) -> dict[str, float]:
    path = folder / "long.db"
    with open_store(path) as store:
        store.new_session("/bench", id="empty")
        store.new_session("/bench", id="long")
        batch = messages(count)
        for start in range(0, count, 1_000):
            store.append("long", batch[start : start + 1_000])

    def once(session: str, look: bool) -> tuple[float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        with open_store(path) as store:
            found = store.load(store.find_session(session).id)
            if look:
                assert len(found.messages) == len(found)
            return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000

    def assistant(session: str, asked: bool) -> tuple[float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        with open_store(path) as store:
            opened = AgentSession(store, store.find_session(session), model=model, offer=Offer(system="Answer."))
            assert len(opened.messages) == (count if session == "long" else 0)
            if asked:
                assert len(opened.conversation) == count + 1
            return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000

    model = resolve_model("openai/gpt-4o", {"OPENAI_API_KEY": "none"}, {})
    once("empty", True)  # loads what is imported on first use
    found: dict[str, float] = {}
    ways: dict[str, Callable[[], tuple[float, float]]] = {
        "empty": lambda: once("empty", True),
        "20,000": lambda: once("long", False),
        "20,000 decoded": lambda: once("long", True),
        "empty in the assistant": lambda: assistant("empty", False),
        "20,000 in the assistant": lambda: assistant("long", False),
        "20,000 in the assistant, asked": lambda: assistant("long", True),
    }
    rows = [{name: way() for name, way in ways.items()} for _ in range(rounds)]
    for index, clock in enumerate(("", ", processor")):
        for name in ways:
            found[f"{name}{clock}"] = statistics.median(row[name][index] for row in rows)
        for more, of in (("more than empty", ""), ("more in the assistant", " in the assistant")):
            found[f"{more}{clock}"] = statistics.median(
                row[f"20,000{of}"][index] - row[f"empty{of}"][index] for row in rows
            )
    return found


def original(folder: Path, rounds: int) -> dict[str, float]:
    piece = b"".join(b"2026-11-30 12:00:%02d worker %d: handled request in %d ms\n" % (n % 60, n, n * 7 % 911)
                     for n in range(1200))  # fmt: skip
    pieces = [b"%d " % n + piece for n in range(64 * 1024 * 1024 // len(piece))]
    size = sum(map(len, pieces)) / 1e6
    rows = []
    for n in range(rounds):
        with open_store(folder / "blobs.db") as store:
            start = time.perf_counter()
            handle = store.blobs().put([b"%d" % n, *pieces])
            wrote = time.perf_counter() - start
            start = time.perf_counter()
            with store.blobs().open_reader(handle) as reader:
                while reader.read(1 << 16):
                    pass
            read = time.perf_counter() - start
        start = time.perf_counter()
        with (folder / "file").open("wb") as file:
            for each in pieces:
                file.write(each)
            file.flush()
            os.fsync(file.fileno())
        plain = time.perf_counter() - start
        rows.append({"write MB/s": size / wrote, "read MB/s": size / read, "plain file write MB/s": size / plain})
    found = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    found["bytes on disk, share"] = (folder / "blobs.db").stat().st_size / rounds / 1e6 / size
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--appends", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="brim-bench-", dir=Path(__file__).parent) as name:
        folder = Path(name)
        found = {
            "appends per second": appends(folder, wanted.rounds, wanted.appends),
            "opening, ms": opening(folder, wanted.rounds),
            "an original of 64 MB": original(folder, min(3, wanted.rounds)),
        }
    share = found["appends per second"]["of sqlite"]
    more = max(found["opening, ms"][f"{name}, processor"] for name in ("more than empty", "more in the assistant"))
    missed = [
        *([f"appends are {share:.2f} of plain SQLite's, not {LEAST_SHARE}"] if share < LEAST_SHARE else []),
        *([f"a long session opens {more:.0f} ms later, not {MOST_MS}"] if more > MOST_MS else []),
    ]
    if wanted.json:
        print(json.dumps(found))
    else:
        for title, rows in found.items():
            print(title)
            for label, value in rows.items():
                print(f"  {label:<34} {value:12,.2f}")
        print("\n".join(missed) or "both limits hold")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
