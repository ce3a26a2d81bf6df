"""`brim audit`: where the tokens and the money of recorded sessions went, and what each mode would have saved.

    used      tokens and US dollars by model and by session, as the provider reported them
    window    what the requests were made of, by role and tool (the yardstick's tokens: no log says it)
    unused    tool results that nothing used again once the request right after them had read them, and how many tokens
              they were carried along for
    breaks    requests that read much less from the cache than the request before had left there, and why, as far as a
              log can tell: a pause, a compaction by the agent itself, or a prefix that changed
    modes     what brim's modes would have cost on the same sessions at the prices of their model

A log does not hold the system prompt and the tool definitions, so `window`, `unused` and `modes` are about what it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from brim.budget import Usage, cache_rules, cost_of, parse_usage, prices_of, relative_prices
from brim.replay.measure import FIRST_NEED, Recording
from brim.replay.play import Labels, Plays, play
from brim.replay.regimes import Regime
from brim.replay.transcript import Transcript

MODES = ("full", "compact", "auto")
BROKEN = 0.5
"""A request that read less than this share of what the one before sent broke the cache."""
LEAST_PREFIX = 1_024
"""Tokens under which providers keep nothing: a short request before cannot have left a prefix."""


class Unused(msgspec.Struct):
    """Results of one tool. `unused`: those nothing used after their first reading; `carried`: their tokens, once for
    each request after it that sent them."""

    results: int = 0
    tokens: int = 0
    unused: int = 0
    unused_tokens: int = 0
    carried: int = 0

    def merge(self, other: Unused) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


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


class Saving(msgspec.Struct):
    """One mode: cost and the cost of sending everything, in tokens of uncached input and in US dollars (of those models
    whose price is known); requests, and those that found all they used in view."""

    cost: float = 0.0
    everything: float = 0.0
    usd: float = 0.0
    everything_usd: float = 0.0
    requests: int = 0
    supported: int = 0

    def merge(self, other: Saving) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Audited(msgspec.Struct):
    """What one session shows."""

    id: str
    kind: str
    model: str | None
    started: float | None
    spent: Spent
    filled: dict[str, int]
    unused: dict[str, Unused]
    breaks: list[Break]
    modes: dict[str, Saving]


def audit_one(transcript: Transcript, plays: Plays) -> Audited:
    """One session. Of `plays` only the policies count; the prices are those of the session's model."""
    regime = _regime(transcript.model)
    outcome = play(transcript, msgspec.structs.replace(plays, regimes=(regime,)))
    base, *modes = outcome.plays
    per_token = _input_price(transcript.model) / 1_000_000
    everything = base.totals.cost(regime)
    savings = {
        played.policy: Saving(
            cost := played.totals.cost(regime),
            everything,
            cost * per_token,
            everything * per_token,
            played.totals.requests,
            played.totals.supported,
        )
        for played in modes
    }
    return Audited(
        transcript.id,
        transcript.kind,
        transcript.model,
        next((time for time in transcript.times if time is not None), None),
        _spent(transcript),
        base.totals.filled,
        unused_results(transcript),
        cache_breaks(transcript),
        savings,
    )


def _regime(model: str | None) -> Regime:
    write, read, _ = relative_prices(model)
    return Regime(model or "unknown", write, read)


def _input_price(model: str | None) -> float:
    prices = prices_of(model)
    return prices.input if prices is not None else 0.0


def _usages(transcript: Transcript) -> Iterator[tuple[int, Usage, float | None]]:
    """(message, usage, US dollars or None) of each request that the log tells about."""
    api = "anthropic.messages" if transcript.kind == "Claude Code" else ""
    prices = prices_of(transcript.model)
    for index in sorted(transcript.usage):
        raw = transcript.usage[index]
        usage = parse_usage(raw, api)
        if usage.reported:
            named = raw.get("cost_usd")
            usd = float(named) if isinstance(named, (int, float)) else cost_of(usage, prices) if prices else None
            yield index, usage, usd


def _spent(transcript: Transcript) -> Spent:
    spent = Spent()
    for _, usage, usd in _usages(transcript):
        one = Spent(1, usage.input, usage.cached_read, usage.cached_write, usage.output, usd or 0.0, int(usd is None))
        spent.merge(one)
    answers = sum(1 for message in transcript.messages if message["role"] == "assistant")
    spent.unreported = answers - len(transcript.usage)
    return spent


def unused_results(transcript: Transcript) -> dict[str, Unused]:
    """By tool, how many of its results were used again after the request that read them first.

    A result is used by an assistant message that uses something which stood last, before that message, in the result.
    """
    recording = Recording(transcript.messages)
    labels = Labels(transcript.messages)
    requests = [n for n, message in enumerate(transcript.messages) if message["role"] == "assistant"]
    last_use: dict[int, int] = {}
    for request in requests:
        if request >= FIRST_NEED:
            for holder in recording.holders(recording.needs.get(request, ()), request):
                last_use[holder] = request
    found: dict[str, Unused] = {}
    for index, message in enumerate(transcript.messages):
        if message["role"] != "tool":
            continue
        later = [request for request in requests if request > index]
        size = recording.sizes[index]
        entry = found.setdefault(labels.of(message).removeprefix("tool "), Unused())
        entry.results += 1
        entry.tokens += size
        if not later or last_use.get(index, 0) <= later[0]:
            entry.unused += 1
            entry.unused_tokens += size
            entry.carried += size * max(0, len(later) - 1)
    return found


def cache_breaks(transcript: Transcript) -> list[Break]:
    """The requests whose provider read less than half of what the request before had sent."""
    life = cache_rules(transcript.model).life_s
    prices = prices_of(transcript.model)
    found: list[Break] = []
    before: tuple[int, Usage] | None = None
    for index, usage, _ in _usages(transcript):
        if before is not None and before[1].input >= LEAST_PREFIX:
            reusable = min(before[1].input, usage.input)
            if usage.cached_read < BROKEN * reusable:
                lost = reusable - usage.cached_read
                usd = 0.0
                if prices is not None:
                    tier = prices.at(usage.input)
                    usd = (
                        lost * ((tier.cache_write if usage.cached_write else tier.input) - tier.cache_read) / 1_000_000
                    )
                cause = _cause(transcript, before[0], index, life)
                found.append(Break(transcript.id, index, cause, lost, usd))
        before = (index, usage)
    return found


def _cause(transcript: Transcript, before: int, index: int, life: float) -> str:
    if any(before < compaction <= index for compaction in transcript.compactions):
        return "compacted by the agent"
    then, now = transcript.time(before), transcript.time(index)
    if then is not None and now is not None and now - then > life:
        return "pause longer than the cache's life"
    return "the prefix changed, or the provider had dropped it"


class Audit:
    """Sums over sessions, in the order they came."""

    def __init__(self) -> None:
        self.sessions: list[tuple[str, str, str | None, float | None, Spent]] = []
        self.models: dict[str, Spent] = {}
        self.kinds: dict[str, int] = {}
        self.filled: dict[str, int] = {}
        self.unused: dict[str, Unused] = {}
        self.breaks: list[Break] = []
        self.modes: dict[str, Saving] = {}

    def add(self, one: Audited) -> None:
        """Adds one session."""
        self.sessions.append((one.id, one.kind, one.model, one.started, one.spent))
        self.kinds[one.kind] = self.kinds.get(one.kind, 0) + 1
        self.models.setdefault(one.model or "unknown", Spent()).merge(one.spent)
        for what, tokens in one.filled.items():
            self.filled[what] = self.filled.get(what, 0) + tokens
        for tool, entry in one.unused.items():
            self.unused.setdefault(tool, Unused()).merge(entry)
        self.breaks += one.breaks
        for mode, saving in one.modes.items():
            self.modes.setdefault(mode, Saving()).merge(saving)

    def report(self, top: int = 10) -> dict[str, Any]:
        """As JSON-serialisable values; lists of sessions and breaks hold the `top` dearest."""
        whole = Spent()
        for spent in self.models.values():
            whole.merge(spent)
        dearest = sorted(self.sessions, key=lambda each: (-each[4].usd, -each[4].input, each[0]))[:top]
        causes: dict[str, list[Break]] = {}
        for each in self.breaks:
            causes.setdefault(each.cause, []).append(each)
        return {
            "sessions": len(self.sessions),
            "kinds": self.kinds,
            "spent": _spent_row(whole),
            "models": {model: _spent_row(spent) for model, spent in sorted(self.models.items())},
            "dearest": [
                {"session": id, "kind": kind, "model": model, "started": started, **_spent_row(spent)}
                for id, kind, model, started, spent in dearest
            ],
            "window": _by_size(self.filled),
            "unused": {
                tool: msgspec.to_builtins(entry)
                for tool, entry in sorted(self.unused.items(), key=lambda pair: (-pair[1].carried, pair[0]))
            },
            "breaks": {
                cause: _breaks_row(listed)
                for cause, listed in sorted(causes.items(), key=lambda pair: -sum(b.lost for b in pair[1]))
            },
            "worst_breaks": [
                {**msgspec.to_builtins(each), "usd": round(each.usd, 6)}
                for each in sorted(self.breaks, key=lambda each: (-each.lost, each.session, each.message))[:top]
            ],
            "modes": {mode: _saving_row(saving) for mode, saving in self.modes.items()},
        }


def _spent_row(spent: Spent) -> dict[str, Any]:
    return {**msgspec.to_builtins(spent), "usd": round(spent.usd, 6)}


def _breaks_row(listed: Sequence[Break]) -> dict[str, Any]:
    return {
        "times": len(listed),
        "lost": sum(each.lost for each in listed),
        "usd": round(sum(each.usd for each in listed), 6),
    }


def _saving_row(saving: Saving) -> dict[str, Any]:
    return {
        "cost": round(saving.cost / saving.everything, 6) if saving.everything else 1.0,
        "supported": round(saving.supported / saving.requests, 6) if saving.requests else 1.0,
        "saved_tokens": round(saving.everything - saving.cost),
        "saved_usd": round(saving.everything_usd - saving.usd, 6),
    }


def _by_size(filled: dict[str, int]) -> dict[str, int]:
    return dict(sorted(filled.items(), key=lambda pair: (-pair[1], pair[0])))


def _paid_once(transcripts: Iterable[Transcript]) -> Iterator[Transcript]:
    """The same with each answer's usage in the first log that holds it: a resumed session begins with a copy of the one
    before, and those requests were not made again."""
    seen: set[str] = set()
    for transcript in transcripts:
        ids = {index: str(row["message_id"]) for index, row in transcript.usage.items() if row.get("message_id")}
        usage = {index: {} if ids.get(index) in seen else row for index, row in transcript.usage.items()}
        seen.update(ids.values())
        yield msgspec.structs.replace(transcript, usage=usage)


def audit(transcripts: Iterable[Transcript], *, modes: Sequence[str] = MODES, jobs: int = 1) -> Audit:
    """The audit of these sessions. `modes`: policies as `brim replay --policy` takes them."""
    from brim.replay.engine import play_all

    whole = Audit()
    for one in play_all(
        _paid_once(transcripts), Plays(tuple(modes), (Regime("", 1.0, 1.0),)), work=audit_one, jobs=jobs
    ):
        whole.add(one)
    return whole
