"""The plan: what one view does to each message, why, and what was sent so far. Pure data, JSON in and out.

A `Fate` covers the messages `[start, end)` of the history and says what the view shows of them. Messages without a
fate are kept. Fates are only ever added or lowered within an epoch's line of plans, so a plan grows by what changed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from brim.errors import UsageError

Place: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
"""A place in the history, a count or a number of tokens: never below zero in a plan that comes from outside."""
Kind: TypeAlias = Literal["trim", "stub", "fold", "drop"]
RANK = {"keep": 0, "trim": 1, "stub": 2, "fold": 3, "drop": 4}
"""From much to little; a pass only moves a message to a higher rank, or to a smaller trim."""


class Fate(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the view shows of the messages `[start, end)`.

    `rule` is the pass that decided, `why` its measured values. `handle` fetches the original. For a trim, `spans` are
    the character ranges of the message's text that stay (whole lines where it has lines), `arguments` the most
    characters a string among the call arguments may keep, `media` whether images and documents stay. For a stub, `text`
    is the line in its place. `tokens` is what the view pays for it.
    """

    start: Place
    end: Place
    kind: Kind
    rule: str
    why: dict[str, Any]
    handle: str
    tokens: Place = 0
    text: str = ""
    spans: tuple[tuple[Place, Place], ...] | None = None
    arguments: Place | None = None
    media: bool = True
    thinking: bool = True


class Summary(msgspec.Struct, frozen=True, omit_defaults=True):
    """One summary in the view. It covers the folded messages before `end`; `by` says who wrote it."""

    text: str
    end: Place
    messages: Place
    replaced: Place
    tokens: Place
    handle: str
    by: str = "brim"


class Insert(msgspec.Struct, frozen=True, omit_defaults=True):
    """Injected text, rendered before message `anchor` in every later view of the epoch."""

    anchor: Place
    text: str
    source: str
    why: dict[str, Any]
    tokens: Place = 0
    handle: str = ""


class Offered(msgspec.Struct, frozen=True):
    """A block that may become an insert beside the newest user message: what `source` found for it, and `why`. With
    `lasting` it is wanted once in an epoch, not with every question."""

    text: str
    source: str
    why: dict[str, Any]
    lasting: bool = False


class Sent(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much of the history the last view was made from: `count` messages whose chained content hash is `hash`,
    `before` messages at the request before that, `at` when (Unix seconds, None where no clock was given)."""

    count: Place = 0
    hash: str = ""
    before: Place = 0
    at: float | None = None


class Repair(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change without which the provider would refuse the history: what was done, where, and why."""

    at: int
    what: str


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything `render(history, plan)` needs. `line` identifies mode, model, window and settings: another line starts
    anew from the untouched history. `seen` holds (first message, Unix seconds) pairs: when messages first appeared.
    `floor` is what the last epoch left, in tokens, where that is over its trigger, else 0."""

    mode: str
    line: str
    epoch: int = 0
    cause: str = "first request"
    fates: tuple[Fate, ...] = ()
    summary: Summary | None = None
    inserts: tuple[Insert, ...] = ()
    repairs: tuple[Repair, ...] = ()
    seen: tuple[tuple[int, float], ...] = ()
    sent: Sent = Sent()
    requests: int = 0
    decided: int = 0
    summary_failures: int = 0
    summary_refused: int = 0
    floor: Place = 0
    version: int = 1


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """The plan as JSON-serialisable values."""
    built: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(plan))
    return built


def plan_from(value: Any) -> Plan | None:
    """A plan from what `plan_to_dict` gave, also after a round trip through JSON. Raises UsageError if it is none."""
    if value is None or isinstance(value, Plan):
        return value
    try:
        plan = msgspec.convert(value, Plan)
    except msgspec.ValidationError as error:
        raise _no_plan(str(error)) from error
    end = 0
    for fate in plan.fates:
        if fate.start < end or fate.end <= fate.start or (fate.kind in ("trim", "stub") and fate.end != fate.start + 1):
            raise _no_plan(f"a {fate.kind} of the messages {fate.start} to {fate.end} behind one that ends at {end}")
        end = fate.end
    return plan


def _no_plan(why: str) -> UsageError:
    return UsageError(
        f"previous is not a plan of brim's: {why}",
        hint="pass the `plan` of the prepare before as it was given, or leave previous out to begin anew",
    )
