"""`brim.explain`: a plan in words, message by message: what the view shows of it, which rule said so, on what figures.

A kept message has no reason in the plan: nothing touched it. Why nothing did is read off its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brim.context.pins import pinned_spans
from brim.context.plan import Fate, Plan, plan_from
from brim.conversation import Message


def explain(plan: Any, messages: Sequence[Message] | None = None) -> str:
    """The plan as plain text, one line for each run of messages with the same fate. With `messages` each line also names
    role and beginning, and why a message was kept. `plan` is a `Plan` or what `Prepared.plan` gave."""
    value = plan_from(plan)
    if value is None:
        return "no plan: nothing was prepared yet"
    return "\n".join(_lines(value, messages))


def _lines(plan: Plan, messages: Sequence[Message] | None) -> list[str]:
    out = [f"mode {plan.mode}, epoch {plan.epoch} ({plan.cause}), request {plan.requests}, {plan.sent.count} messages"]
    out += [f"  {each.at:>5}  repaired: {each.what}" for each in plan.repairs]
    at = 0
    for fate in plan.fates:
        if fate.start > at:
            out += _kept(at, fate.start, plan, messages)
        out.append(_fate(fate, messages))
        at = max(at, fate.end)
    if plan.sent.count > at:
        out += _kept(at, plan.sent.count, plan, messages)
    if plan.summary is not None:
        summary = plan.summary
        out.append(
            f"  summary by {summary.by}: {summary.messages:,} messages, {summary.replaced:,} tokens became "
            f"{summary.tokens:,}; handle {summary.handle}"
        )
    out += [
        f"  {each.anchor:>5}  insert from {each.source}: {each.tokens:,} tokens ({_why(each.why)})"
        for each in plan.inserts
    ]
    return out


def _kept(start: int, end: int, plan: Plan, messages: Sequence[Message] | None) -> list[str]:
    """Kept messages, in runs that were kept for the same reason."""
    if messages is None or end > len(messages):
        return [f"  {_place(start, end)}  keep{_what(start, end, messages)}"]
    count = min(plan.sent.count, len(messages))
    asked = max((at for at in range(count) if messages[at].role == "user"), default=-1)
    answered = max((at for at in range(count) if messages[at].role == "assistant"), default=count)
    reasons = [_why_kept(index, asked, answered, plan, messages[index]) for index in range(start, end)]
    lines = []
    first = start
    for index in range(start + 1, end + 1):
        if index == end or reasons[index - start] != reasons[first - start]:
            lines.append(f"  {_place(first, index)}  keep{_what(first, index, messages)}: {reasons[first - start]}")
            first = index
    return lines


def _why_kept(index: int, asked: int, answered: int, plan: Plan, message: Message) -> str:
    """`asked` is the last user message's place, `answered` the last assistant message's."""
    if message.role == "system":
        return "system messages always stay"
    if index == asked:
        return "the last user message always stays"
    if pinned_spans(message):
        return "pinned"
    if not plan.fates and plan.summary is None:
        return "everything fits"
    if index >= answered > asked:
        return "the newest step"
    return "the newest turn" if index > asked else "no pass had to take it"


def _fate(fate: Fate, messages: Sequence[Message] | None) -> str:
    cost = f" -> {fate.tokens:,} tokens" if fate.kind in ("trim", "stub") else ""
    where, what = _place(fate.start, fate.end), _what(fate.start, fate.end, messages)
    return f"  {where}  {fate.kind}{what}{cost}: {fate.rule} ({_why(fate.why)}); handle {fate.handle}"


def _place(start: int, end: int) -> str:
    return f"{start:>5}" if end - start == 1 else f"{start:>5}-{end - 1}"


def _what(start: int, end: int, messages: Sequence[Message] | None) -> str:
    if messages is None or start >= len(messages):
        return ""
    if end - start > 1:
        return f" {end - start} messages"
    message = messages[start]
    text = " ".join([message.text, *(f"{call.name} {call.arguments}" for call in message.calls)])
    text = " ".join(text.split())
    return f" {message.role} “{text[:40]}{'…' if len(text) > 40 else ''}”"


def _why(why: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {value:,}" if isinstance(value, int) and not isinstance(value, bool) else f"{key} {value}"
        for key, value in why.items()
    )
