"""What the provider said of each request of a recording: tokens and money by model, and where its cache broke.

Each request counts at the prices of the model that answered it; those beside the conversation (branches the user left,
summaries) count, too. A log that says nothing of a cache says nothing of its breaks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from brim.budget import Usage, cache_rules, cost_of, parse_usage, prices_of
from brim.replay.transcript import Transcript

BROKEN = 0.5
"""A request that read less than this share of what the one before sent broke the cache."""
LEAST_PREFIX = 1_024
"""Tokens under which providers keep nothing: a short request before cannot have left a prefix."""


class Break(msgspec.Struct, frozen=True):
    """A request that had to write what could have been read. `lost`: in tokens; `usd`: what that cost more."""

    session: str
    message: int
    cause: str
    lost: int
    usd: float


class Spent(msgspec.Struct):
    """Tokens as in `brim.budget.Usage`. `usd` where prices are known or the log names the cost; `unpriced`: requests
    without either; `unreported`: requests of which the log says nothing."""

    requests: int = 0
    input: int = 0
    cached_read: int = 0
    cached_write: int = 0
    output: int = 0
    usd: float = 0.0
    unpriced: int = 0
    unreported: int = 0

    def merge(self, other: Spent) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class _Used(NamedTuple):
    """One request that the log tells about. `answer`: the message that answered it, -1 where there is none; `usd` is None
    where neither the log nor the price table knows; `cache_told`: whether it says anything of a cache."""

    answer: int
    model: str | None
    usage: Usage
    usd: float | None
    cache_told: bool


def _used(transcript: Transcript) -> Iterator[_Used]:
    api = "anthropic.messages" if transcript.kind == "Claude Code" else ""
    rows = [(-1, row) for row in transcript.aside] + [
        (index, transcript.usage[index]) for index in sorted(transcript.usage)
    ]
    for index, raw in rows:
        usage = parse_usage(raw, api)
        if not usage.reported:
            continue
        model = raw["model"] if isinstance(raw.get("model"), str) else transcript.model
        prices = prices_of(model)
        named = raw.get("cost_usd")  # where it is 0, whoever wrote it down did not know
        if isinstance(named, (int, float)) and not isinstance(named, bool) and math.isfinite(named) and named > 0:
            usd: float | None = float(named)
        else:
            usd = cost_of(usage, prices) if prices is not None else None
        yield _Used(index, model, usage, usd, any("cache" in key for key in _keys(raw)))


def _keys(raw: Mapping[str, Any]) -> Iterator[str]:
    for key, value in raw.items():
        if value is not None:
            yield key
        if isinstance(value, Mapping):
            yield from _keys(value)


def spent_by_model(transcript: Transcript) -> dict[str, Spent]:
    """By model; the answers that the log says nothing of are the session's."""
    found: dict[str, Spent] = {}
    for _, model, usage, usd, _ in _used(transcript):
        one = Spent(1, usage.input, usage.cached_read, usage.cached_write, usage.output, usd or 0.0, int(usd is None))
        found.setdefault(model or "unknown", Spent()).merge(one)
    answers = sum(
        1
        for n, message in enumerate(transcript.messages)
        if message["role"] == "assistant" and n >= transcript.since and n not in transcript.usage
    )
    found.setdefault(transcript.model or "unknown", Spent()).merge(Spent(unreported=answers))
    return found


def cache_breaks(transcript: Transcript) -> list[Break]:
    """The requests whose provider read less than half of what the request before had sent."""
    found: list[Break] = []
    before: _Used | None = None
    for now in _used(transcript):
        if now.answer < 0:
            continue
        if before is not None and before.usage.input >= LEAST_PREFIX and now.cache_told:
            reusable = min(before.usage.input, now.usage.input)
            if now.usage.cached_read < BROKEN * reusable:
                lost = reusable - now.usage.cached_read
                usd, prices = 0.0, prices_of(now.model)
                if prices is not None:
                    tier = prices.at(now.usage.input)
                    each = (tier.cache_write if now.usage.cached_write else tier.input) - tier.cache_read
                    usd = lost * max(0.0, each) / 1_000_000
                found.append(Break(transcript.id, now.answer, _cause(transcript, before, now), lost, usd))
        before = now
    return found


def _cause(transcript: Transcript, before: _Used, now: _Used) -> str:
    if any(before.answer < compaction <= now.answer for compaction in transcript.compactions):
        return "compacted by the agent"
    if before.model != now.model:
        return "another model, which has a cache of its own"
    then, at = transcript.time(before.answer), transcript.time(now.answer)
    if then is not None and at is not None and at - then > cache_rules(now.model).life_s:
        return "pause longer than the cache's life"
    return "the prefix changed, or the provider had dropped it"
