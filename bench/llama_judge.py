"""llama.cpp as the judge of epochs: `python bench/llama_judge.py` (needs the embedded model; about ten minutes).

One session of sixty steps with tool results of 100 to 600 tokens, window 8,192, in each mode. llama.cpp itself says how
many prompt tokens each request had and how many of them it found in its cache. Beside it, twenty steps of the same
session under a policy that trims to the budget anew at every request, as most frameworks do. Exit 1 where a request is
refused or silently cut, where brim's count is not llama.cpp's, or where auto or compact has under 75% cached.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brim
from brim.formats import parse_request
from brim.providers.local import LocalProvider
from brim.tokens.llama import LlamaCounter, plain_message

WINDOW, REPLY = 8_192, 64
SOURCE = [
    line
    for path in sorted(Path(__file__).parent.parent.glob("src/brim/**/*.py"))
    for line in path.read_text().splitlines()
    if line.strip()
]
Body = dict[str, Any]


def session(steps: int, counter: LlamaCounter) -> list[Body]:
    """A session: a task every fifteen steps, then a call and its result."""
    random_ = random.Random(7)
    messages: list[Body] = [{"role": "system", "content": "You are a coding agent. Answer briefly."}]
    for step in range(steps):
        if step % 15 == 0:
            messages.append({"role": "user", "content": f"Task {step // 15}: look at the next part of the program."})
        call = {"id": f"c{step}", "type": "function", "function": {"name": "read", "arguments": f'{{"part": {step}}}'}}
        messages.append({"role": "assistant", "content": f"Step {step}.", "tool_calls": [call]})
        size, lines, at = random_.randrange(100, 600), [], random_.randrange(len(SOURCE) - 200)
        while counter.count_text("\n".join(lines)) < size:
            lines.append(SOURCE[at + len(lines)])
        messages.append({"role": "tool", "tool_call_id": f"c{step}", "content": "\n".join(lines)})
    return messages


class Totals:
    """What llama.cpp reported over the requests of one run."""

    def __init__(self) -> None:
        self.requests = self.prompt = self.cached = self.refused = self.miscounted = self.largest = 0


async def run(
    provider: LocalProvider, messages: list[Body], view: Callable[[list[Body]], tuple[Body, int]], first: int = 1
) -> Totals:
    """Sends a request after each step from message `first` on; `view` gives the body and what brim counts for it."""
    totals = Totals()
    for end in range(first, len(messages) + 1):
        if messages[end - 1]["role"] != "tool":
            continue
        body, counted = view(messages[:end])
        plain = [plain_message(message) for message in parse_request(body, "openai.chat").messages]
        sent = {"messages": [{"role": role, "content": text} for role, text in plain], "max_tokens": 1}
        totals.requests += 1
        try:
            done = await provider.complete({**sent, "cache_prompt": True})
        except brim.BrimError as error:
            totals.refused += 1
            print(f"  refused: {error}", file=sys.stderr)
            continue
        totals.prompt += done.usage.input
        totals.cached += done.usage.cached_read
        totals.largest = max(totals.largest, done.usage.input)
        totals.miscounted += done.usage.input != counted
    return totals


def brim_view(mode: str, counter: LlamaCounter) -> Callable[[list[Body]], tuple[Body, int]]:
    settings = {"max_context_tokens": WINDOW, "max_response_tokens": REPLY, "dialect": "openai"}
    conversation = brim.Conversation(model="local/smollm2", settings=settings, counter=counter)

    def view(history: list[Body]) -> tuple[Body, int]:
        conversation.extend(history[len(conversation) :])
        prepared = conversation.prepare(mode=mode)
        return prepared.request, prepared.used

    return view


def retrimmed(counter: LlamaCounter) -> Callable[[list[Body]], tuple[Body, int]]:
    """The policy of most frameworks: at every request the newest messages that fit, calls with their results."""

    def view(history: list[Body]) -> tuple[Body, int]:
        start = 1
        while True:
            body = {"messages": [history[0], *history[start:]]}
            counted = brim.count(body, counter=counter)
            if counted <= WINDOW - REPLY:
                return body, counted
            start += 1
            while history[start]["role"] == "tool":
                start += 1

    return view


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--modes", default="auto,compact,full,trimmed")
    options = parser.parse_args()
    failed = False
    provider = LocalProvider("smollm2", window=WINDOW)
    try:
        counter = await asyncio.to_thread(provider.counter)
        messages = session(options.steps, counter)
        print(
            f"{'policy':>22} {'requests':>9} {'prompt':>9} {'cached':>7} {'largest':>8} {'refused':>8} {'miscounted':>11}"
        )
        some = messages[: len(messages) * 2 // 3]  # twenty steps in the middle of the session, where the window is full
        runs = [
            ("trimmed each time", retrimmed(counter), some, max(1, len(some) - 42))
            if mode == "trimmed"
            else (mode, brim_view(mode, counter), messages, 1)
            for mode in options.modes.split(",")
        ]
        for name, view, history, first in runs:
            totals = await run(provider, history, view, first)
            share = totals.cached / max(1, totals.prompt)
            print(
                f"{name:>22} {totals.requests:>9} {totals.prompt:>9,} {share:>7.1%} {totals.largest:>8,} "
                f"{totals.refused:>8} {totals.miscounted:>11}",
                flush=True,
            )
            if not name.startswith("trimmed"):
                failed |= bool(totals.refused or totals.miscounted) or (name != "full" and share < 0.75)
    finally:
        await provider.close()
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
