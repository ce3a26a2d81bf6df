"""From outcomes to the figures of a report: per file, policy and price regime, relative to sending everything.

Everything here is a pure function of sums of whole numbers, so the JSON is the same to the last byte however the work
was spread. Ratios are rounded to six digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from brim.replay.play import Outcome, Played, Plays, Totals
from brim.replay.regimes import Regime

MANY_REQUESTS = 10
"""A conversation counts as the worst of a file if it has more requests than this, or is alone."""
VERSION = 1


class _Worst(msgspec.Struct):
    cost: float = 0.0
    id: str = ""


class Line(msgspec.Struct):
    """One policy under one regime, summed over conversations."""

    totals: Totals
    worst: _Worst
    alone: _Worst
    seconds: float = 0.0
    slowest: float = 0.0


class Group(msgspec.Struct):
    """The conversations of one file. `longest`: the plays of the one with most requests, where series are wanted."""

    name: str
    conversations: int = 0
    requests: int = 0
    lines: dict[tuple[str, int], Line] = {}
    longest: Outcome | None = None


class Figures:
    """Sums as outcomes come in. `add` each once; `report` may be asked for at any time."""

    def __init__(self, plays: Plays) -> None:
        self.plays = plays
        self.groups: dict[str, Group] = {}
        self.all = Group("all files")

    def add(self, file: str, outcome: Outcome) -> None:
        """Adds one conversation of `file`."""
        group = self.groups.setdefault(file, Group(file))
        for each in (group, self.all):
            self._add(each, outcome)
        if self.plays.series and outcome.requests > (group.longest.requests if group.longest else 0):
            group.longest = outcome

    def _add(self, group: Group, outcome: Outcome) -> None:
        group.conversations += 1
        group.requests += outcome.requests
        base = outcome.plays[0].totals
        seconds = outcome.seconds or [0.0] * len(outcome.plays)
        for played, spent in zip(outcome.plays, seconds, strict=True):
            for number, regime in enumerate(self.plays.regimes):
                if played.regime is not None and played.regime != number:
                    continue
                line = group.lines.setdefault((played.policy, number), Line(Totals(), _Worst(), _Worst()))
                line.totals.merge(played.totals)
                line.seconds += spent
                line.slowest = max(line.slowest, spent / outcome.requests if outcome.requests else 0.0)
                ratio = _ratio(played.totals.cost(regime), base.cost(regime))
                if outcome.requests > MANY_REQUESTS and ratio > line.worst.cost:
                    line.worst = _Worst(ratio, outcome.id)
                if ratio > line.alone.cost:
                    line.alone = _Worst(ratio, outcome.id)

    def report(self, *, times: bool = False) -> dict[str, Any]:
        """The report as JSON-serialisable values. With `times` also planner time, which differs from run to run."""
        groups = [*self.groups.values(), *([self.all] if len(self.groups) > 1 else [])]
        return {
            "version": VERSION,
            "regimes": [msgspec.to_builtins(regime) for regime in self.plays.regimes],
            "pause_every": self.plays.pause_every,
            "files": [self._group(group, times) for group in groups if group.lines],
        }

    def _group(self, group: Group, times: bool) -> dict[str, Any]:
        policies = dict.fromkeys(policy for policy, _ in group.lines)
        return {
            "file": group.name,
            "conversations": group.conversations,
            "requests": group.requests,
            "policies": [
                {
                    "policy": policy,
                    "prices": [
                        self._line(group, policy, number, regime, times)
                        for number, regime in enumerate(self.plays.regimes)
                    ],
                }
                for policy in policies
            ],
        }

    def _line(self, group: Group, policy: str, number: int, regime: Regime, times: bool) -> dict[str, Any]:
        line = group.lines[(policy, number)]
        base = group.lines[("everything", number)].totals
        totals = line.totals
        worst = line.alone if group.conversations == 1 else line.worst
        found: dict[str, Any] = {
            "regime": regime.name,
            "cost": _ratio(totals.cost(regime), base.cost(regime)),
            "supported": _share(totals.supported, totals.requests),
            "tokens": _share(totals.tokens, base.tokens),
            "sent": totals.tokens,
            "peak": totals.peak,
            "cached": _share(totals.read, totals.tokens),
            "refetches": totals.refetches,
            "overflows": totals.overflows,
            "invalid": totals.invalid,
            "worst": {"id": worst.id, "cost": worst.cost} if worst.id else None,
            "breaks": {what: {"times": times, "lost": lost} for what, (times, lost) in sorted(totals.breaks.items())},
            "filled": dict(sorted(totals.filled.items())),
        }
        if times:
            found["planner_ms"] = round(1_000 * line.seconds / max(1, totals.requests), 3)
        return found


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 6) if whole else 1.0


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def plays_of(outcome: Outcome, regimes: Sequence[Regime], number: int) -> dict[str, Played]:
    """By policy, the play of one conversation under regime `number`."""
    return {played.policy: played for played in outcome.plays if played.regime in (None, number)}


def encode_report(report: dict[str, Any]) -> str:
    """The report as JSON text, one value a line, keys as they come."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode() + "\n"
