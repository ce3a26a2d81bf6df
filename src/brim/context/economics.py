"""When an edit of what was already sent pays: arithmetic on token counts and prices, nothing else.

Prices are relative: `write` and `read` for one token of uncached input = 1 (1.25 and 0.10, or 1 and 1 without a cache).
To cut a result saves its tokens in every request still to come, at the read price. It costs two things. From the cut on
the view must be written anew instead of read. And what was cut may be needed again: then one more request is made, the
view is read once more, and the original is fetched.

How likely that is was measured (docs/economics.md): the chance that the next request needs something that only this
result holds falls as 1 / age, and is proportional to what is cut, with a factor by kind of result. So over the R
requests still to come a cut at age a is missed `hazard · tokens · ln(1 + R / a)` times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["code", "run", "list", "grep"]

HAZARD: dict[Kind, tuple[float, float]] = {
    "code": (210e-6, 560e-6),
    "grep": (50e-6, 400e-6),
    "list": (10e-6, 280e-6),
    "run": (58e-6, 190e-6),
}
"""Needs per token and 1 / age: (lines that carry nothing new, lines that do), for a result of 400 tokens."""
SIZE_EXPONENT = -0.6
"""Per token, big results are needed less: a need is for a result more than for each of its tokens."""
USED = (1.0, 1.3, 2.7)
"""By how many requests have already used what only this result holds: never, once, more often."""
LEAST_REQUESTS = 10
"""So many requests are expected at least; later, as many as there have been (a long session goes on)."""
MOST_REQUESTS = 60
REFETCHED = 1_000
"""Tokens that a refetch writes."""
WEIGHT = 1.0
RESERVE = 60_000
"""Tokens, read once, that a miss costs beside its refetch: time, and the risk that nobody notices."""


class Candidate(msgspec.Struct, frozen=True):
    """One result that could be lowered: how, what that saves, and how often it is expected to be missed.

    `index`: its message. `to`: "trim" (its digest) or "stub". `saved`: tokens fewer in the view. `suffix`: tokens of
    the previous view from this message to its end. `misses`: expected over the requests to come.
    """

    index: int
    to: Literal["trim", "stub"]
    saved: int
    suffix: int
    misses: float


class Choice(msgspec.Struct, frozen=True):
    """Lower every candidate from message `start` on. The rest are the values for the plan's reason."""

    start: int
    gain: float
    saved: int
    rewritten: int
    misses: float
    requests: float

    def why(self) -> dict[str, Any]:
        return {
            "gain": round(self.gain),
            "saved": self.saved,
            "rewritten": self.rewritten,
            "misses": round(self.misses, 3),
            "requests": round(self.requests),
        }


def expected_requests(requests: int) -> float:
    """How many requests are still to come after `requests` of them."""
    return float(min(MOST_REQUESTS, max(LEAST_REQUESTS, requests)))


def hazard(kind: Kind, tokens: int, used: int) -> tuple[float, float]:
    """Needs per token and 1 / age of a result of `tokens`: for lines that carry nothing new, and for those that do."""
    factor = min(4.0, max(0.25, (max(tokens, 64) / 400) ** SIZE_EXPONENT)) * USED[min(used, 2)]
    old, new = HAZARD[kind]
    return old * factor, new * factor


def miss_price(view: int, *, write: float, read: float) -> float:
    """What one miss costs with `view` tokens in the view: another request, the refetch, and the reserve."""
    return WEIGHT * (view * read + REFETCHED * write) + RESERVE * read


def weigh(
    index: int,
    *,
    now: int,
    digest: int,
    stub: int,
    suffix: int,
    age: int,
    rates: tuple[float, float],
    requests: float,
    read: float,
    price: float,
) -> Candidate | None:
    """The better of digest and stub for one result, or None if it should stay for now.

    `now`, `digest`, `stub`: its tokens in the view as it stands, and as it would; a result already digested has
    `digest == now`. `age`: requests since it was first shown (1: read once). `rates` from `hazard`, `price` from
    `miss_price`.
    """
    ahead = math.log1p(requests / max(age, 1))
    first, second = max(0, now - digest), max(0, min(now, digest) - stub)
    first_misses, second_misses = first * rates[0] * ahead, second * rates[1] * ahead
    first_gain = first * read * requests - first_misses * price
    second_gain = second * read * requests - second_misses * price
    if second >= 10 and second_gain > 0 and first_gain + second_gain > max(0.0, first_gain):
        return Candidate(index, "stub", now - stub, suffix, first_misses + second_misses)
    if first >= 10 and first_gain > 0:
        return Candidate(index, "trim", first, suffix, first_misses)
    return None


def choose(
    candidates: Sequence[Candidate], *, write: float, read: float, requests: float, price: float, cold: bool = False
) -> Choice | None:
    """Where to begin: all candidates from there on are lowered, oldest first. None if no edit pays.

    `candidates` in the order of their messages. `cold`: the provider's cache has expired, so everything is written
    anyway and an edit rewrites nothing that could have been read.
    """
    best: Choice | None = None
    saved, misses = 0, 0.0
    for candidate in reversed(candidates):
        saved += candidate.saved
        misses += candidate.misses
        rewritten = max(0, candidate.suffix - saved)
        edit = -write * saved if cold else write * rewritten - read * candidate.suffix
        gain = read * requests * saved - misses * price - edit
        if gain > 0 and (best is None or gain > best.gain):
            best = Choice(candidate.index, gain, saved, 0 if cold else rewritten, misses, requests)
    return best
