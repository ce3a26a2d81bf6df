"""Planning time against a peer, in one run: `python bench/prepare.py` (needs `pip install langchain-core`).

Histories of 50 to 20,000 messages (157K to 3.5M tokens) made of this repository's own source, budget 100,000 tokens. The
peer drops what is old with an approximate count; brim counts exactly, keeps pairs, summarises and says why. Reported:
seconds of the first call, the median of warm calls, the ratio to the peer, and one more message on a `Conversation`.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brim

SIZES = ((50, 157_000), (501, 163_000), (5_001, 890_000), (20_000, 3_500_000))
BUDGET, RESERVED = 100_000, 4_096
SOURCE = "".join(path.read_text() for path in sorted(Path(__file__).parent.parent.glob("src/brim/**/*.py")))


def history(messages: int, tokens: int) -> list[dict[str, Any]]:
    """A coding session: a task every thirty messages, calls and results of exponentially distributed length."""
    random_ = random.Random(messages)
    mean = tokens * 8 // messages
    out: list[dict[str, Any]] = [{"role": "system", "content": "You are a coding agent."}]
    step = 0
    while len(out) < messages:
        step += 1
        at = random_.randrange(len(SOURCE) - 300)
        if step % 15 == 1:
            out.append({"role": "user", "content": f"Please fix issue {step}: {SOURCE[at : at + 200]}"})
            continue
        arguments = json.dumps({"command": f"cat file{step}.py"})
        call = {"id": f"c{step}", "type": "function", "function": {"name": "bash", "arguments": arguments}}
        out.append({"role": "assistant", "content": f"Looking at step {step}.", "tool_calls": [call]})
        size = int(random_.expovariate(1 / mean)) + 50
        at = random_.randrange(max(1, len(SOURCE) - size))
        out.append({"role": "tool", "tool_call_id": f"c{step}", "content": SOURCE[at : at + size]})
    return out[:messages] if out[messages - 1]["role"] != "assistant" else out[: messages - 1]


def timed(call: Callable[[], object], times: int) -> tuple[float, float]:
    """Seconds of the first call and the median of the others."""
    taken = []
    for _ in range(times + 1):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return taken[0], statistics.median(taken[1:])


def peer(messages: list[dict[str, Any]]) -> Callable[[], object] | None:
    try:
        from langchain_core.messages import convert_to_messages, trim_messages
        from langchain_core.messages.utils import count_tokens_approximately
    except ImportError:
        return None
    converted = convert_to_messages(messages)
    return lambda: trim_messages(
        converted,
        max_tokens=BUDGET,
        token_counter=count_tokens_approximately,
        strategy="last",
        start_on="human",
        include_system=True,
    )


def grown(messages: list[dict[str, Any]], mode: str, times: int) -> float:
    """Median seconds of `Conversation.prepare` after one new message, warm."""
    settings = {"max_context_tokens": BUDGET + RESERVED, "max_response_tokens": RESERVED}
    conversation = brim.Conversation(model="gpt-4o", messages=messages, settings=settings)
    conversation.prepare(mode=mode)
    taken = []
    for number in range(times):
        role, text = ("user", f"and {number}?") if number % 2 == 0 else ("assistant", "Fine. " * 10)
        conversation.append({"role": role, "content": text})
        start = time.perf_counter()
        _ = conversation.prepare(mode=mode).request
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", default="auto", choices=["full", "compact", "auto"])
    parser.add_argument("--times", type=int, default=7)
    options = parser.parse_args()
    print(f"mode {options.mode}; seconds; peer: langchain-core trim_messages, approximate counter")
    print(
        f"{'messages':>9} {'first':>8} {'warm':>8} {'peer':>8} {'peer/brim':>9} {'one more, ms':>12} {'left, tokens':>12}"
    )
    for messages, tokens in SIZES:
        made = history(messages, tokens)
        gc.collect()
        gc.freeze()  # the histories of other rows are not this one's to be looked through by the collector
        body = {"model": "gpt-4o", "messages": made}

        def prepare(body: dict[str, Any] = body) -> brim.Prepared:
            prepared = brim.prepare(body, mode=options.mode, window=BUDGET + RESERVED, max_output=RESERVED)
            _ = prepared.request
            return prepared

        first, warm = timed(prepare, options.times)
        other = peer(made)
        theirs = timed(other, options.times)[1] if other else float("nan")
        more = grown(made, options.mode, 200) * 1000
        print(
            f"{messages:>9,} {first:>8.3f} {warm:>8.4f} {theirs:>8.4f} {theirs / warm:>9.2f} {more:>12.3f} "
            f"{prepare().used:>12,}",
            flush=True,
        )


if __name__ == "__main__":
    main()
