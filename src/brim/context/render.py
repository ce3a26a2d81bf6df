"""`view = render(history, plan)`: what one request sends. Deterministic, so the same plan gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from brim.context import notices
from brim.context.history import History
from brim.context.plan import Fate, Insert, Plan
from brim.context.repair_order import ALTERNATE, USER_FIRST, stands_apart
from brim.conversation import Message, Text, assistant, range_handle, system, user

APART = frozenset({"anthropic", "openai-strict", "mistral", "gemini"})
"""Dialects in which two neighbours of one role, made so by what was left out, get a line between them."""
SYSTEM_SUMMARY = frozenset({"anthropic"})
"""Dialects whose API keeps the system prompt apart: the summary is its last block."""
NOTED = "(noted)"


def render(history: History, plan: Plan, *, recall: bool) -> list[Message]:
    """The messages of the view, in order. Kept messages are the history's own objects."""
    out: list[Message] = []
    messages, dialect = history.messages, history.dialect
    inserts = _by_anchor(plan.inserts)
    pending = plan.summary.text if plan.summary is not None else None
    head = _leading_systems(messages)
    at = 0
    gap: tuple[int, int] | None = None
    for fate in (*plan.fates, Fate(len(messages), len(messages), "drop", "", {}, "")):
        if pending is not None and fate.start > head:
            out.extend(messages[at:head])
            at = max(at, head)
            if fate.start > at or fate.kind in ("trim", "stub"):
                _add_summary(out, pending, messages[min(at, len(messages) - 1)], dialect)
                pending = None
        if fate.start > at:
            # system messages stand outside the order of roles: behind them the gap is still open
            turn = next((index for index in range(at, fate.start) if not stands_apart(messages[index])), fate.start)
            _extend(out, messages, at, turn, inserts)
            if turn < fate.start:
                _join(out, messages[turn], gap, dialect, messages)
                gap = None
            _extend(out, messages, turn, fate.start, inserts)
        if fate.kind in ("fold", "drop"):
            gap = (gap[0] if gap is not None else fate.start, fate.end)
        else:
            shown = history.shown(fate, recall=recall)
            if pending is not None and fate.start >= head:
                _add_summary(out, pending, shown, dialect)
                pending = None
            _join(out, shown, gap, dialect, messages)
            gap = None
            if fate.start in inserts:
                _add_insert(out, inserts[fate.start], shown)
            else:
                out.append(shown)
        at = max(at, fate.end)
    return out


def _by_anchor(inserts: Sequence[Insert]) -> dict[int, Insert]:
    """What stands before each message: several inserts there as one, in the plan's order."""
    found: dict[int, Insert] = {}
    for insert in inserts:
        before = found.get(insert.anchor)
        text = insert.text if before is None else f"{before.text}\n\n{insert.text}"
        found[insert.anchor] = insert if before is None else msgspec.structs.replace(before, text=text)
    return found


def _leading_systems(messages: Sequence[Message]) -> int:
    at = 0
    while at < len(messages) and messages[at].role == "system":
        at += 1
    return at


def _extend(out: list[Message], messages: Sequence[Message], start: int, stop: int, inserts: dict[int, Insert]) -> None:
    """The messages `[start, stop)`, each insert in front of the message it belongs to."""
    for anchor in sorted(place for place in inserts if start <= place < stop):
        out.extend(messages[start:anchor])
        _add_insert(out, inserts[anchor], messages[anchor])
        start = anchor + 1
    out.extend(messages[start:stop])


def _add_insert(out: list[Message], insert: Insert, message: Message) -> None:
    """An insert stands in front of the user's text, which stays as it was: in a content of blocks as a block of its own, in
    a plain string above it, since not every server takes blocks there. Anthropic does, and its clients send the same
    text now as a string and now as a block."""
    first = message.parts[0] if message.parts else None
    if isinstance(first, Text) and first.wire is None and message.api != "anthropic.messages":
        parts = (Text(f"{insert.text}\n\n{first.text}"), *message.parts[1:])
    else:
        parts = (Text(insert.text), *message.parts)
    out.append(msgspec.structs.replace(message, parts=parts, edited=True))


def _add_summary(out: list[Message], text: str, following: Message | None, dialect: str) -> None:
    if dialect in SYSTEM_SUMMARY:
        if out and out[-1].role == "system":
            out[-1] = msgspec.structs.replace(out[-1], parts=(*out[-1].parts, Text(text)), edited=True)
        else:
            out.append(system(text))
        return
    out.append(user(text))
    if following is None or following.role == "user":
        out.append(assistant(NOTED))


def _join(
    out: list[Message], following: Message, gap: tuple[int, int] | None, dialect: str, messages: Sequence[Message]
) -> None:
    """Where a gap made neighbours whose roles the API wants apart, a line between them."""
    if gap is None or dialect not in APART:
        return
    before = next((message.role for message in reversed(out) if message.role != "system"), None)
    line = seam_between(before, following.role, dialect)
    if before is None and dialect in USER_FIRST and following.role == "system" and not stands_apart(following):
        line = "user"
    if line is not None:
        text = notices.seam(gap[1] - gap[0], range_handle(messages, *gap))
        out.append(user(text) if line == "user" else assistant(text))


def seam_between(before: str | None, after: str, dialect: str) -> Literal["user", "assistant"] | None:
    """The role of the line that has to stand between two roles, None where they may be neighbours."""
    if after == "user" and (before == "user" or (before == "tool" and dialect in ALTERNATE)):
        return "assistant"
    if after == "assistant" and before in (None, "assistant"):
        return "user"
    return None


def seam_cost(history: History, fates: Sequence[Fate]) -> int:
    """At most how many tokens the lines between neighbours cost: each gap needs one at the most."""
    if history.dialect not in APART:
        return 0
    gaps = 0
    end = -1
    for fate in fates:
        if fate.kind in ("fold", "drop"):
            gaps += fate.start != end
            end = fate.end
    return gaps * SEAM_TOKENS


SEAM_TOKENS = 32
"""An upper bound of one seam line with its message overhead, in any encoding brim knows (measured: 22 to 28)."""
