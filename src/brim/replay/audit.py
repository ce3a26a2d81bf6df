"""`brim audit`: where the tokens and the money of recorded sessions went, and what each mode would have saved.

    used      tokens and US dollars by model and by session, as the provider reported them, each request at the prices of
              the model that answered it; requests beside the conversation (branches the user left, summaries) included
    window    what the requests were made of, by role and tool (the yardstick's tokens: no log says it)
    unused    tool results that nothing used again once the request right after them had read them, and how many tokens
              they were carried along for
    breaks    requests that read much less from the cache than the request before had left there, and why, as far as a
              log can tell: a pause, a compaction by the agent itself, another model, or a prefix that changed. A log
              that says nothing of a cache says nothing of its breaks
    modes     what brim's modes would have cost on the same sessions at the prices of their model

A log does not hold the system prompt and the tool definitions, so `window`, `unused` and `modes` are about what it does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from brim.budget import prices_of, relative_prices
from brim.replay.measure import FIRST_NEED, Recording
from brim.replay.play import Labels, Plays, play
from brim.replay.regimes import Regime
from brim.replay.spending import Break, Spent, cache_breaks, spent_by_model
from brim.replay.transcript import Transcript

MODES = ("full", "compact", "auto")


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


class Saving(msgspec.Struct):
    """One mode: cost and the cost of sending everything, in tokens of uncached input and in US dollars (of those models
    whose price is known: `priced` requests); requests, and those that found all they used in view; `overflows`: those
    that no window would have held."""

    cost: float = 0.0
    everything: float = 0.0
    usd: float = 0.0
    everything_usd: float = 0.0
    requests: int = 0
    supported: int = 0
    priced: int = 0
    overflows: int = 0

    def merge(self, other: Saving) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Audited(msgspec.Struct):
    """What one session shows."""

    id: str
    kind: str
    model: str | None
    started: float | None
    spent: dict[str, Spent]
    filled: dict[str, int]
    unused: dict[str, Unused]
    breaks: list[Break]
    modes: dict[str, Saving]


def audit_one(transcript: Transcript, plays: Plays) -> Audited:
    """One session. Of `plays` only the policies count; the prices are those of the session's model."""
    regime = _regime(transcript.model)
    outcome = play(transcript, msgspec.structs.replace(plays, regimes=(regime,)))
    base, *modes = outcome.plays
    prices = prices_of(transcript.model)
    per_token = prices.input / 1_000_000 if prices is not None else 0.0
    everything = base.totals.cost(regime)
    savings = {
        played.policy: Saving(
            cost := played.totals.cost(regime),
            everything,
            cost * per_token,
            everything * per_token,
            played.totals.requests,
            played.totals.supported,
            played.totals.requests if prices is not None else 0,
            played.totals.overflows,
        )
        for played in modes
    }
    return Audited(
        transcript.id,
        transcript.kind,
        transcript.model,
        next((time for time in transcript.times if time is not None), None),
        spent_by_model(transcript),
        base.totals.filled,
        unused_results(transcript),
        cache_breaks(transcript),
        savings,
    )


def _regime(model: str | None) -> Regime:
    write, read, _ = relative_prices(model)
    return Regime(model or "unknown", write, read)


def unused_results(transcript: Transcript) -> dict[str, Unused]:
    """By tool, how many of its results were used again after the request that read them first.

    A result is used by an assistant message that uses something which stood last, before that message, in the result.
    """
    recording = Recording(transcript.messages, transcript.since)
    labels = Labels(transcript.messages)
    requests = [n for n, message in enumerate(transcript.messages) if message["role"] == "assistant"]
    last_use: dict[int, int] = {}
    for request in requests:
        if request >= FIRST_NEED:
            for holder in recording.holders(recording.needs.get(request, ()), request):
                last_use[holder] = request
    found: dict[str, Unused] = {}
    for index, message in enumerate(transcript.messages):
        if message["role"] != "tool" or index < transcript.since:
            continue
        later = requests[bisect_right(requests, index) :]
        size = recording.sizes[index]
        entry = found.setdefault(labels.of(message).removeprefix("tool "), Unused())
        entry.results += 1
        entry.tokens += size
        if not later or last_use.get(index, 0) <= later[0]:
            entry.unused += 1
            entry.unused_tokens += size
            entry.carried += size * max(0, len(later) - 1)
    return found


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
        whole = Spent()
        for model, spent in one.spent.items():
            whole.merge(spent)
            self.models.setdefault(model, Spent()).merge(spent)
        self.sessions.append((one.id, one.kind, one.model, one.started, whole))
        self.kinds[one.kind] = self.kinds.get(one.kind, 0) + 1
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
        "saved_usd": round(saving.everything_usd - saving.usd, 6) if saving.priced else None,
        "requests": saving.requests,
        "priced": saving.priced,
        "overflows": saving.overflows,
    }


def _by_size(filled: dict[str, int]) -> dict[str, int]:
    return dict(sorted(filled.items(), key=lambda pair: (-pair[1], pair[0])))


def _paid_once(transcripts: Iterable[Transcript]) -> Iterator[Transcript]:
    """The same with each answer's usage in the first log that holds it: a resumed session begins with a copy of the one
    before, and those requests were not made again. What counts of such a log is what comes after."""
    seen: set[str] = set()
    for transcript in transcripts:
        old = {index for index, row in transcript.usage.items() if row.get("message_id") in seen}
        aside = [row for row in transcript.aside if row.get("message_id") not in seen]
        rows = (*transcript.usage.values(), *aside)
        seen.update(str(row["message_id"]) for row in rows if row.get("message_id"))
        if not old and len(aside) == len(transcript.aside):
            yield transcript
            continue
        yield msgspec.structs.replace(
            transcript,
            usage={index: row for index, row in transcript.usage.items() if index not in old},
            aside=aside,
            since=max(old, default=-1) + 1,
        )


def audit(transcripts: Iterable[Transcript], *, modes: Sequence[str] = MODES, jobs: int = 1) -> Audit:
    """The audit of these sessions. `modes`: policies as `brim replay --policy` takes them."""
    from brim.replay.engine import play_all

    whole = Audit()
    for one in play_all(
        _paid_once(transcripts), Plays(tuple(modes), (Regime("", 1.0, 1.0),)), work=audit_one, jobs=jobs
    ):
        whole.add(one)
    return whole
