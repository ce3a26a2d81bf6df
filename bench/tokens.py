"""How fast brim counts: 20,000 messages fresh and known, toktok against tiktoken, and the estimate against both.

    python bench/tokens.py [--data DIR] [--vocabularies DIR]

`--data` is a folder with transcripts (JSONL, OpenAI chat messages); without it a conversation is made up.
`--vocabularies` is a folder with tiktoken's files; without it (and without TIKTOKEN_CACHE_DIR) tiktoken is left out.
Ratios carry over to other machines, absolute figures do not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from brim.conversation import Message, Text, assistant, call, result, user
from brim.tokens import TokenCounter, estimate_tokens
from brim.tokens.encodings import BatchCount, _with_tiktoken, batch_count
from brim.tokens.media import media_rates

MESSAGES = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--vocabularies", type=Path)
    parser.add_argument("--encoding", default="o200k_base")
    given = parser.parse_args()
    if given.vocabularies:
        os.environ["TIKTOKEN_CACHE_DIR"] = str(given.vocabularies)
    count = batch_count(given.encoding)
    if count is None:
        raise SystemExit(f"nothing here can count {given.encoding}")

    history = make_history(given.data)
    chars = sum(len(message.text) for message in history)
    started = time.perf_counter()
    count(["load"])
    print(f"load {given.encoding:<28} {time.perf_counter() - started:8.3f} s")

    counter = TokenCounter(given.encoding, True, count, media_rates("gpt-4o"))
    fresh, counts = timed(lambda: counter.count_messages(history))
    known, again = timed(lambda: counter.count_messages(history), times=5)
    copies = [Message(m.role, m.parts, name=m.name) for m in json_copy(history)]
    parsed, _ = timed(lambda: counter.count_messages(copies))
    assert counts == again
    print(f"{len(history):,} messages, {chars / 1e6:.1f} MB, {sum(counts):,} tokens")
    print(f"  all new                          {fresh:8.3f} s  {sum(counts) / fresh / 1e6:6.1f} M tokens/s")
    print(f"  all known                        {known:8.4f} s  {known / len(history) * 1e6:6.2f} us a message")
    print(f"  all known, texts parsed anew     {parsed:8.4f} s  {parsed / len(history) * 1e6:6.2f} us a message")

    texts = [message.text for message in history[:4_000]]
    ours, theirs = timed(lambda: count(texts), times=3)[0], _with_tiktoken(given.encoding)
    one, _ = timed(lambda: [count([text]) for text in texts])
    guess, _ = timed(lambda: [estimate_tokens(text) for text in texts])
    print(f"{len(texts):,} texts of {sum(map(len, texts)) / 1e6:.1f} MB")
    rows: list[tuple[str, float]] = [("toktok, one batch", ours), ("toktok, one by one", one), ("estimate", guess)]
    if theirs is not None:
        slow, same = timed(lambda: theirs(texts))
        rows.append(("tiktoken, one by one", slow))
        differ = sum(a != b for a, b in zip(same, count(texts), strict=True))
        print(f"  {differ} of {len(texts):,} counts differ (texts over 4,000 characters are cut for tiktoken)")
    for name, seconds in rows:
        print(f"  {name:<32} {seconds:8.3f} s  {seconds / ours:6.1f} x")
    long_runs(count, theirs)


def long_runs(count: BatchCount, theirs: BatchCount | None) -> None:
    """Texts without spaces, on which a careless tokenizer takes quadratic time."""
    print("long runs                              toktok  tiktoken  estimate")
    for text in (
        "a" * 1_000_000,
        "_" * 300_000,
        "你" * 200_000,
        " " * 500_000,
        "\n" * 300_000,
        "ab" * 300_000,
        "=" * 200_000,
    ):
        figures = [timed(lambda text=text: count([text]))[0]]  # type: ignore[misc]
        figures.append(timed(lambda text=text: theirs([text]))[0] if theirs else float("nan"))  # type: ignore[misc]
        figures.append(timed(lambda text=text: estimate_tokens(text))[0])  # type: ignore[misc]
        print(
            f"  {text[:2]!r:<8} x {len(text):<9,}              " + "".join(f"{seconds:8.3f}s " for seconds in figures)
        )


def timed(job: Callable[[], Any], times: int = 1) -> tuple[float, Any]:
    """Best wall time of several runs, and the last result."""
    best, value = float("inf"), None
    for _ in range(times):
        started = time.perf_counter()
        value = job()
        best = min(best, time.perf_counter() - started)
    return best, value


def make_history(folder: Path | None) -> list[Message]:
    """20,000 messages, each with a text of its own."""
    pool = list(read(folder)) if folder else list(invent())
    history = []
    for number in range(MESSAGES):
        message = pool[number % len(pool)]
        part = message.parts[0] if message.parts else Text("")
        if number >= len(pool) and isinstance(part, Text):
            message = Message(message.role, (Text(f"{part.text} #{number}"), *message.parts[1:]))
        elif number >= len(pool) and message.role == "tool":
            message = result(message.result.call_id, f"{message.text} #{number}")
        history.append(message)
    return history


def json_copy(history: list[Message]) -> Iterator[Message]:
    """The messages with texts that are new objects, as after parsing a request."""
    for message in history:
        yield Message(
            message.role,
            tuple(Text(part.text.encode().decode()) if isinstance(part, Text) else part for part in message.parts),
        )


def read(folder: Path) -> Iterator[Message]:
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                for wire in json.loads(line).get("messages", ()):
                    text = wire.get("content") or ""
                    if wire["role"] == "tool":
                        yield result(wire["tool_call_id"], text)
                    elif wire["role"] == "assistant":
                        calls = [c["function"] | {"id": c["id"]} for c in wire.get("tool_calls") or ()]
                        yield assistant(text, *(call(c["name"], c["arguments"], id=c["id"]) for c in calls))
                    elif wire["role"] in ("system", "user"):
                        yield Message(wire["role"], (Text(text),))


def invent() -> Iterator[Message]:
    r = random.Random(1)
    words = ["the", "search", "result", "line", "error", "file", "test", "value", "搜索", "关键词", "return", "config"]
    for number in range(2_000):
        text = " ".join(r.choice(words) for _ in range(r.randrange(5, 400)))
        yield (user(text), assistant(text, call("grep", {"n": number}, id=str(number))), result(str(number), text))[
            number % 3
        ]


if __name__ == "__main__":
    main()
