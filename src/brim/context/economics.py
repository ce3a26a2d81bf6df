"""When an edit of what was already sent pays: arithmetic on token counts and prices, nothing else.

Prices are relative: `write` and `read` for one token of uncached input = 1 (1.25 and 0.10, or 1 and 1 without a cache).
To cut a result saves its tokens in every request still to come, at the read price. It costs two things. From the cut on
the view must be written anew instead of read. And what was cut may be needed again: then one more request is made, the
view is read once more, and the original is fetched.

How likely that is was measured (docs/economics.md): the chance that the next request needs something that only this
result holds falls as 1 / age, where a use makes it young again, and is proportional to what is cut, with a factor by
kind of result. So over the R requests still to come a cut at age a is missed `hazard · tokens · ln(1 + R / a)` times.

`Ledger` holds what a decision needs beside the view; it follows from the history and the fates, so it can be rebuilt.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["code", "run", "list", "grep", "data", "text"]

HAZARD: dict[Kind, tuple[float, float]] = {
    "code": (210e-6, 560e-6),
    "grep": (50e-6, 400e-6),
    "list": (10e-6, 280e-6),
    "run": (58e-6, 190e-6),
    "data": (520e-6, 1_800e-6),
    "text": (520e-6, 1_800e-6),
}
"""Needs per token and 1 / age: (lines that carry nothing new, lines that do), for a result of 400 tokens. Fitted on one
half of the coding runs and steady on the other; `data` on the service chats; for prose, where the measure of a need
sees little, the caution of `data` is taken over rather than a figure that would look better than it is."""
SIZE_EXPONENT: dict[Kind, float] = {
    "code": -0.6,
    "grep": -0.6,
    "list": -0.6,
    "run": -0.6,
    "data": -1.0,
    "text": -1.0,
}
"""Big results are needed less per token: a need is one for a result more than for each of its tokens."""
USED = (1.0, 1.15, 1.6)
"""By how many requests have used what only this result holds: never, once, more often."""
TURN_OVER = 0.45
"""A result that was last used before the user's newest message is needed so many times as often as another of its age.
Measured on code, runs, listings and searches; rows of data are asked for again across turns and keep their chance."""
TURN_BOUND: frozenset[Kind] = frozenset({"code", "grep", "list", "run"})
LEAST_REQUESTS = 10
MOST_REQUESTS = 100
MOST_REQUESTS_DEAR = 200
"""As many requests are expected as there have been, within these bounds; the upper one is higher where a cache write
costs more than plain input: there a rewrite of a long view needs long to pay, and edits are rare enough to dare it."""
REFETCHED = 1_000
"""Tokens that a refetch writes: the median result with its call."""
RESERVE = 200_000
"""What a miss counts beside its bill, in tokens read once: time, and the risk that nobody notices the gap. By it, and by
the two weights below, 0.95 to 0.97 of requests found all they needed in view."""
DIGEST_WEIGHT = 0.4
STUB_WEIGHT = 4.0
"""How a request lost to a miss counts. A digest mostly loses what could be guessed; a stub loses all of a result."""
NO_RECALL = 2.0
"""Where nothing can fetch an original, a miss counts so many times more: the tool must be called again, or cannot."""
MARGIN = 1.0
"""An edit must gain this share of what it rewrites; what is expected is not what comes, and a rewrite is certain."""
CAUTION = 2.5
"""Misses seen against misses expected, with this many of each taken as given: one surprise does not change a policy."""
MOST_HELD = 300
"""Results that may still be lowered; older ones stay as they are. Bounds the time of one decision."""
LEAST_SAVED = 10
"""Tokens: below it a mark costs as much as it saves."""


class Candidate(msgspec.Struct, frozen=True):
    """One result that could be lowered: how, what that saves, and what it is expected to lose.

    `index`: its message. `to`: "trim" (its digest) or "stub" (its barest form). `saved`: tokens fewer in the view.
    `suffix`: tokens of the previous view from this message to its end. `misses`: expected over the requests to come;
    `loss`: their cost. `rate`: misses per request at age 1.
    """

    index: int
    to: Literal["trim", "stub"]
    saved: int
    suffix: int
    misses: float
    loss: float
    rate: float = 0.0


class Choice(msgspec.Struct, frozen=True):
    """Lower every candidate from message `start` on. The rest are the values for the plan's reason."""

    start: int
    gain: float
    saved: int
    rewritten: int
    misses: float
    requests: float

    def why(self, write: float, read: float) -> dict[str, Any]:
        """The measured values of the decision, for a plan."""
        return {
            "gain": round(self.gain),
            "saved": self.saved,
            "rewritten": self.rewritten,
            "misses": round(self.misses, 2),
            "requests": round(self.requests),
            "write": write,
            "read": read,
        }

    def sentence(self, write: float, read: float) -> str:
        """`gain 1,234 tokens at 1.25/0.1 over 12 requests: saves 310 each, rewrites 520, 0.02 misses expected`."""
        return (
            f"gain {self.gain:,.0f} tokens at {write:g}/{read:g} over {self.requests:.0f} requests: "
            f"saves {self.saved:,} each, rewrites {self.rewritten:,}, {self.misses:.2f} misses expected"
        )


def expected_requests(requests: int, write: float = 1.0) -> float:
    """How many requests are still to come after `requests` of them."""
    return float(min(MOST_REQUESTS_DEAR if write > 1 else MOST_REQUESTS, max(LEAST_REQUESTS, requests)))


def hazard(kind: Kind, tokens: int, used: int) -> tuple[float, float]:
    """Needs per token and 1 / age of a result of `tokens`: for lines that carry nothing new, and for those that do."""
    factor = min(6.0, max(0.1, (max(tokens, 64) / 400) ** SIZE_EXPONENT[kind])) * USED[min(used, 2)]
    old, new = HAZARD[kind]
    return old * factor, new * factor


def miss_prices(
    view: int, *, write: float, read: float, scale: float = 1.0, can_recall: bool = True
) -> tuple[float, float]:
    """What one miss counts with `view` tokens in the view: of a digest, and of a stub.

    Another request reads the view, and the refetch is written; the reserve stands for what the bill does not show. For a
    digest the reserve vanishes where writing is much dearer than reading: at the next request only a short end of the
    view must be rewritten, later it would be more, so waiting until a result has grown old is no choice there.
    `scale` raises both where this conversation has missed more than expected.
    """
    request = view * read + REFETCHED * write
    first = DIGEST_WEIGHT * request + RESERVE * read * max(0.0, 1.0 - max(0.0, write - read))
    second = STUB_WEIGHT * request + RESERVE * read
    scale *= 1.0 if can_recall else NO_RECALL
    return scale * first, scale * second


def weigh(
    index: int,
    *,
    now: int,
    digest: int,
    barest: int,
    suffix: int,
    age: int,
    rates: tuple[float, float],
    requests: float,
    read: float,
    prices: tuple[float, float],
) -> Candidate | None:
    """The better of digest and barest form for one result, or None if it should stay for now.

    `now`, `digest`, `barest`: its tokens in the view as it stands, and as it would; a result already digested has
    `digest == now`. `age`: requests since it was first shown or last used (1: read once). `rates` from `hazard`,
    `prices` from `miss_prices`.
    """
    ahead = math.log1p(requests / max(age, 1))
    digest = min(digest, now)
    first, second = now - digest, max(0, digest - barest)
    first_rate, second_rate = first * rates[0], second * rates[1]
    first_loss, second_loss = first_rate * ahead * prices[0], second_rate * ahead * prices[1]
    first_gain = first * read * requests - first_loss if first >= LEAST_SAVED else 0.0
    second_gain = second * read * requests - second_loss
    if second >= LEAST_SAVED and second_gain > 0 and first * read * requests - first_loss + second_gain > first_gain:
        rate = first_rate + second_rate
        return Candidate(index, "stub", first + second, suffix, rate * ahead, first_loss + second_loss, rate)
    if first_gain > 0:
        return Candidate(index, "trim", first, suffix, first_rate * ahead, first_loss, first_rate)
    return None


def choose(
    candidates: Sequence[Candidate], *, write: float, read: float, requests: float, cold: bool = False
) -> Choice | None:
    """Where to begin: all candidates from there on are lowered, oldest first. None if no edit pays.

    `candidates` in the order of their messages. `cold`: the provider's cache has expired, so everything is written
    anyway and an edit rewrites nothing that could have been read.
    """
    best: Choice | None = None
    saved, misses, loss = 0, 0.0, 0.0
    for candidate in reversed(candidates):
        saved += candidate.saved
        misses += candidate.misses
        loss += candidate.loss
        rewritten = max(0, candidate.suffix - saved)
        edit = -write * saved if cold else write * rewritten - read * candidate.suffix
        gain = read * requests * saved - loss - edit
        if gain > MARGIN * max(0.0, edit) and (best is None or gain > best.gain):
            best = Choice(candidate.index, gain, saved, 0 if cold else rewritten, misses, requests)
    return best


class Held(msgspec.Struct):
    """A result that may still be lowered. `tokens`: as it arrived; `now`, `digest`, `barest`: in the view as it stands
    and as it would. `shown`: the request that showed it first; `touched`: the last one that used it, or was cut
    because of it, in the turn that begins at message `turn`."""

    index: int
    kind: Kind
    tokens: int
    now: int
    shown: int
    touched: int
    turn: int = 0
    digest: int = -1
    barest: int = -1
    used: int = 0
    rates: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        self.rates = hazard(self.kind, self.tokens, self.used)


class Ledger:
    """The results that may still be lowered, and what was expected of those that were. One for each line of plans.

    Every request: `add` what arrives, `touch` what it uses or refers to, then `candidates`, `choose`, and `lower` for
    each candidate from the choice on. Sizes are asked for once, when a result has been read.
    """

    def __init__(self) -> None:
        self.held: dict[int, Held] = {}
        self.expected = 0.0
        self._cuts: deque[tuple[float, int]] = deque(maxlen=500)

    def add(self, held: Held) -> None:
        self.held[held.index] = held
        if len(self.held) > MOST_HELD:
            del self.held[next(iter(self.held))]

    def touch(self, index: int, request: int, *, use: bool, turn: int = 0) -> None:
        """Request number `request`, in the turn that begins at message `turn`, used something that only result `index`
        holds; or (`use` false) it brings a result that was cut because `index` shows the same: then this request must
        show it."""
        if (held := self.held.get(index)) is not None:
            held.touched = request
            held.turn = turn
            held.used += use
            held.rates = hazard(held.kind, held.tokens, held.used)
            if not use:
                held.shown = request

    def scale(self, missed: int) -> float:
        """How much more careful this conversation asks to be: misses seen over misses expected, at least 1."""
        return max(1.0, (CAUTION + missed) / (CAUTION + self.expected))

    def candidates(
        self,
        request: int,
        *,
        view: int,
        missed: int,
        suffixes: Mapping[int, int],
        sizes: Callable[[int], tuple[int, int]],
        write: float,
        read: float,
        can_recall: bool = True,
        turn: int = 0,
    ) -> list[Candidate]:
        """What is worth lowering at request number `request` (from 1), in the order of messages.

        `view`: tokens of the previous view. `missed`: `Seen.missed`. `suffixes`: for each held result the tokens of the
        previous view from it to the end. `sizes(index)`: the tokens its digest and its barest form would have. `turn`:
        where the newest turn begins.
        """
        self.expected += sum(rate / max(1, request - since) for rate, since in self._cuts)
        prices = miss_prices(view, write=write, read=read, scale=self.scale(missed), can_recall=can_recall)
        requests = expected_requests(request, write)
        worth = read * requests
        found: list[Candidate] = []
        for held in self.held.values():
            if held.shown >= request:
                continue
            if held.digest < 0:
                held.digest, held.barest = sizes(held.index)
            age = max(1, request - held.touched)
            over = TURN_OVER if turn > held.turn and held.kind in TURN_BOUND else 1.0
            old, new = held.rates[0] * over, held.rates[1] * over
            # Most results stay: two products tell that neither form gains anything per token.
            ahead = math.log1p(requests / age)
            if old * ahead * prices[0] >= worth and new * ahead * prices[1] >= worth:
                continue
            candidate = weigh(
                held.index,
                now=held.now,
                digest=held.digest,
                barest=held.barest,
                suffix=suffixes[held.index],
                age=age,
                rates=(old, new),
                requests=requests,
                read=read,
                prices=prices,
            )
            if candidate is not None:
                found.append(candidate)
        return found

    def lower(self, candidate: Candidate, tokens: int) -> None:
        """Result `candidate.index` has been lowered and now takes `tokens`."""
        held = self.held[candidate.index]
        self._cuts.append((candidate.rate, held.shown))
        held.now = held.digest = tokens
        if candidate.to == "stub" or tokens - held.barest < LEAST_SAVED:
            del self.held[candidate.index]
