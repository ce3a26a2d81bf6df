"""One conversation played through policies: the unit of work that replay counts, spreads and resumes.

Everything summed here is a whole number, so that figures do not depend on who added them up, or in which order. Planner
time is kept apart: it is the only value that differs from run to run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from brim.budget import window_of
from brim.errors import BrimError, ContextOverflow
from brim.formats import dialect_of, violations
from brim.replay.measure import Measure, Recording, Row
from brim.replay.policies import EVERYTHING, Policy, parse_policy
from brim.replay.regimes import Regime
from brim.replay.transcript import Transcript, printable
from brim.replay.yardstick import Wire

REQUEST_EVERY_S = 20.0
"""Where pauses are made up (`pause_every`): seconds between two requests of the clock that policies see."""
CACHE_LIFE_S = 300.0
"""How long a provider keeps a prefix after its last use."""


class Plays(msgspec.Struct, frozen=True):
    """What to play: names of policies, price regimes, a pause before every so-manieth request (0: the recorded times
    decide, where there are some), tokens of the window that other policies than brim's are held against (None: the
    model's own), and whether `Series` are wanted."""

    policies: tuple[str, ...]
    regimes: tuple[Regime, ...]
    pause_every: int = 0
    window: int | None = None
    cache_life_s: float = CACHE_LIFE_S
    series: bool = False


class Totals(msgspec.Struct):
    """Sums over requests, in tokens where nothing else is said. `resent`: views of requests that had to be made again;
    `breaks`: what changed first in a view already sent -> [times, tokens that could have been read]; `filled`: what the
    views were made of, by role or tool."""

    requests: int = 0
    supported: int = 0
    read: int = 0
    written: int = 0
    resent: int = 0
    refetched: int = 0
    refetches: int = 0
    peak: int = 0
    overflows: int = 0
    invalid: int = 0
    breaks: dict[str, list[int]] = {}
    filled: dict[str, int] = {}

    def add(self, row: Row) -> None:
        self.requests += 1
        self.read += row.read
        self.written += row.written
        self.peak = max(self.peak, row.tokens)
        if row.missing:
            self.refetches += 1
            self.resent += row.tokens
            self.refetched += row.refetched
        else:
            self.supported += 1

    def merge(self, other: Totals) -> None:
        for name in (
            "requests",
            "supported",
            "read",
            "written",
            "resent",
            "refetched",
            "refetches",
            "overflows",
            "invalid",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.peak = max(self.peak, other.peak)
        for what, (times, lost) in other.breaks.items():
            mine = self.breaks.setdefault(what, [0, 0])
            mine[0] += times
            mine[1] += lost
        for what, tokens in other.filled.items():
            self.filled[what] = self.filled.get(what, 0) + tokens

    def cost(self, regime: Regime) -> float:
        """In tokens of uncached input, refetches included."""
        return (self.read + self.resent) * regime.read + (self.written + self.refetched) * regime.write

    @property
    def tokens(self) -> int:
        return self.read + self.written


class Played(msgspec.Struct):
    """One policy on one conversation. `regime`: index of the price regime it was told, None where its views do not depend
    on one. `series`: tokens of each view, and `broke`: the numbers of the requests whose prefix had changed, with what."""

    policy: str
    regime: int | None
    totals: Totals
    series: list[int] = []
    broke: list[tuple[int, str]] = []


class Outcome(msgspec.Struct):
    """All policies on one conversation; `plays[0]` is everything. `seconds`: planner time, in the order of `plays`."""

    id: str
    requests: int
    plays: list[Played]
    seconds: list[float] = []


def play(transcript: Transcript, plays: Plays) -> Outcome:
    """Plays one conversation through every policy, those that weigh prices once for each regime."""
    recording = Recording(transcript.messages, transcript.since)
    outcome = Outcome(transcript.id, sum(1 for _ in recording.requests), [])
    for policy in (EVERYTHING, *map(_policy, plays.policies)):
        for number in range(len(plays.regimes)) if policy.priced else (None,):
            played, seconds = _one(transcript, recording, policy, number, plays)
            outcome.plays.append(played)
            outcome.seconds.append(seconds)
    return outcome


_policy = lru_cache(maxsize=256)(parse_policy)


def _one(
    transcript: Transcript, recording: Recording, policy: Policy, number: int | None, plays: Plays
) -> tuple[Played, float]:
    session = policy.start(transcript, plays.regimes[number or 0])
    measure = Measure(recording)
    check = Check(dialect_of(transcript.model, "openai.chat"))
    limit = policy.window or plays.window or window_of(transcript.model)[0]
    totals = Totals()
    played = Played(policy.name, number, totals)
    labels = Labels(transcript.messages)
    clock = Clock(transcript, plays.pause_every, plays.cache_life_s)
    shown: list[str] = []
    sizes: list[int] = []
    inside: dict[str, int] = {}
    seconds = 0.0
    for count, index in enumerate(recording.requests, 1):
        history = recording.messages[:index]
        now, cold = clock.request(index, count)
        started = time.perf_counter()
        try:
            view = session.view(history, now)
        except ContextOverflow:
            view, overflow = history, True
        except BrimError as error:
            raise _failed(transcript, policy, count, error.message) from error
        except Exception as error:
            raise _failed(transcript, policy, count, f"{type(error).__name__}: {error}") from error
        else:
            overflow = False
        seconds += time.perf_counter() - started
        row = measure.request(index, view, cold)
        totals.add(row)
        totals.overflows += overflow or row.tokens > limit
        totals.invalid += check.invalid(view)
        # What fills the view: only what differs from the view before is looked at again.
        same = row.broke if row.broke >= 0 else len(shown)
        for label, size in zip(shown[same:], sizes[same:], strict=True):
            inside[label] -= size
        was = shown[same] if row.broke >= 0 else ""
        del shown[same:], sizes[same:]
        for message, text in zip(view[same:], measure.view[same:], strict=True):
            label, size = labels.of(message), measure.sizes[text]
            shown.append(label)
            sizes.append(size)
            inside[label] = inside.get(label, 0) + size
        for label, size in inside.items():
            totals.filled[label] = totals.filled.get(label, 0) + size
        if row.lost:
            what = "pause" if cold else f"{was} changed"
            entry = totals.breaks.setdefault(what, [0, 0])
            entry[0] += 1
            entry[1] += row.lost
            if plays.series:
                played.broke.append((count, what))
        if plays.series:
            played.series.append(row.tokens)
    totals.breaks = dict(sorted(totals.breaks.items()))
    totals.filled = {label: size for label, size in sorted(totals.filled.items()) if size}
    return played, seconds


def _failed(transcript: Transcript, policy: Policy, count: int, why: str) -> BrimError:
    """A view that a policy could not make, for another reason than its size. One conversation less would be another figure."""
    return BrimError(
        f"{policy.name} made no view for request {count:,} of {transcript.id}: {why}",
        hint="leave that conversation or that policy out",
    )


class Clock:
    """When each request comes, and whether the cache has expired by then."""

    def __init__(self, transcript: Transcript, pause_every: int, life: float) -> None:
        self._transcript = transcript
        self._every = pause_every
        self._life = life
        self._now = 0.0
        self._last: float | None = None

    def request(self, index: int, count: int) -> tuple[float | None, bool]:
        """(Unix seconds or None, cold) of request number `count` (from 1), which led to message `index`."""
        if self._every:
            cold = count % self._every == 0
            self._now += REQUEST_EVERY_S + (2 * self._life if cold else 0.0)
            return self._now, cold
        now = self._transcript.time(index)
        if now is None:
            return None, False
        last, self._last = self._last, now
        return now, last is not None and now - last > self._life


class Labels:
    """What a message is, for people: its role, or the tool whose result it is."""

    def __init__(self, messages: Sequence[Wire]) -> None:
        self._tools: dict[str, str] = {}
        for message in messages:
            for call in message.get("tool_calls") or ():
                self._tools[str(call.get("id"))] = str(call["function"]["name"])

    def of(self, message: Wire) -> str:
        if message["role"] != "tool":
            return printable(str(message["role"]))
        name = message.get("name") or self._tools.get(str(message.get("tool_call_id")))
        return f"tool {printable(str(name)) if name else '?'}"


class Check:
    """Whether a view would be refused. Long texts are looked at once: what a rule asks of them is whether they are blank,
    an object, or cannot be encoded. And since every rule is about a message, its neighbours or the beginning, a view
    that shares its beginning with a valid one is looked at from the last whole step in it on."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._slim: dict[int, tuple[Wire, Wire]] = {}
        self._before: Sequence[Wire] = ()
        self._valid = False

    def invalid(self, view: Sequence[Wire]) -> bool:
        start = _whole_steps(self._before, view) if self._valid else 0
        looked_at = [*view[:OPENING], *view[start:]] if start > OPENING else view
        slim = [self._short(message) for message in looked_at]
        self._valid = not violations({"messages": slim}, "openai.chat", self._dialect)
        self._before = list(view)
        return not self._valid

    def _short(self, message: Wire) -> Wire:
        known = self._slim.get(id(message))
        if known is not None and known[0] is message:
            return known[1]
        short = _slim(message)
        if len(self._slim) > 5_000:
            self._slim.clear()  # policies that copy messages at every request
        self._slim[id(message)] = (message, short)
        return short


OPENING = 2
"""Messages that every view is looked at from: a system prompt and the first user message."""


def _whole_steps(before: Sequence[Wire], view: Sequence[Wire]) -> int:
    """Where the last whole step begins that both share, and that may as well follow the opening; 0 where none does."""
    if len(view) < OPENING or view[OPENING - 1]["role"] != "user":
        return 0
    same = 0
    for old, new in zip(before, view, strict=False):
        if old is not new and old != new:
            break
        same += 1
    for index in range(min(same, len(view)) - 1, OPENING, -1):
        if view[index]["role"] == "assistant" and view[index - 1]["role"] in ("user", "tool"):
            return index
    return 0


_LONG = 200


def _slim(message: Wire) -> Wire:
    short = dict(message)
    content = message.get("content")
    if isinstance(content, str) and len(content) > _LONG:
        short["content"] = _shortened(content)
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        short["tool_calls"] = [_slim_call(call) for call in calls]
    return short


def _shortened(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text
    return text[:_LONG] if text[:_LONG].strip() else text


def _slim_call(call: Mapping[str, object]) -> Mapping[str, object]:
    function = call.get("function")
    if not isinstance(function, Mapping):
        return call
    arguments = function.get("arguments")
    if not isinstance(arguments, str) or len(arguments) <= _LONG or not _is_object(arguments):
        return call
    return {**call, "function": {**function, "arguments": "{}"}}


@lru_cache(maxsize=20_000)
def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
