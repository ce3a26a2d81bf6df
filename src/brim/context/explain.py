"""`brim.explain`: a plan in words, message by message: what the view shows of it, which rule said so, on what figures.

A kept message has no reason in the plan: nothing touched it. Why nothing did is read off its place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from brim.context.pins import pinned_spans
from brim.context.plan import Fate, Plan, plan_from
from brim.conversation import Message


def explain(plan: Any, messages: Sequence[Message] | None = None, *, lead: int = 0, pins: Collection[int] = ()) -> str:
    """The plan as plain text, one line for each run of messages with the same fate. With `messages` each line also names
    role and beginning, and why a message was kept. `plan` is a `Plan` or what `Prepared.plan` gave.

    `lead`: so many messages stand before the one that is counted as 0 (a system prompt that is no part of a stored
    session); they are called `sys`. `pins`: indices in `messages` of those that were pinned whole.
    """
    value = plan_from(plan)
    if value is None:
        return "no plan: nothing was prepared yet"
    return "\n".join(_Telling(value, messages, lead, frozenset(pins)).lines())


class _Telling:
    """One plan being told."""

    def __init__(self, plan: Plan, messages: Sequence[Message] | None, lead: int, pins: frozenset[int]) -> None:
        self.plan = plan
        self.messages = messages
        self.lead = lead
        self.pins = pins

    def lines(self) -> list[str]:
        plan = self.plan
        out = [
            f"mode {plan.mode}, epoch {plan.epoch} ({plan.cause}), request {plan.requests}, {plan.sent.count} messages"
        ]
        out += [f"  {self._number(each.at)}  repaired: {each.what}" for each in plan.repairs]
        at = 0
        for fate in plan.fates:
            if fate.start > at:
                out += self._kept(at, fate.start)
            out.append(self._fate(fate))
            at = max(at, fate.end)
        if plan.sent.count > at:
            out += self._kept(at, plan.sent.count)
        if plan.summary is not None:
            summary = plan.summary
            out.append(
                f"  summary by {summary.by}: {summary.messages:,} messages, {summary.replaced:,} tokens became "
                f"{summary.tokens:,}; handle {summary.handle}"
            )
        out += [
            f"  {self._number(each.anchor)}  insert from {each.source}: {each.tokens:,} tokens ({_why(each.why)})"
            for each in plan.inserts
        ]
        return out

    def _kept(self, start: int, end: int) -> list[str]:
        """Kept messages, in runs that were kept for the same reason."""
        messages = self.messages
        if messages is None or end > len(messages):
            return [f"  {self._place(start, end)}  keep{self._what(start, end)}"]
        count = min(self.plan.sent.count, len(messages))
        asked = max((at for at in range(count) if messages[at].role == "user"), default=-1)
        answered = max((at for at in range(count) if messages[at].role == "assistant"), default=count)
        reasons = [self._why_kept(index, asked, answered, messages[index]) for index in range(start, end)]
        lines = []
        first = start
        for index in range(start + 1, end + 1):
            if index == end or reasons[index - start] != reasons[first - start]:
                lines.append(f"  {self._place(first, index)}  keep{self._what(first, index)}: {reasons[first - start]}")
                first = index
        return lines

    def _why_kept(self, index: int, asked: int, answered: int, message: Message) -> str:
        """`asked` is the last user message's place, `answered` the last assistant message's."""
        if message.role == "system":
            return "system messages always stay"
        if index in self.pins or pinned_spans(message):
            return "pinned"
        if index == asked:
            return "the last user message always stays"
        if not self.plan.fates and self.plan.summary is None:
            return "everything fits"
        if index >= answered > asked:
            return "the newest step"
        return "the newest turn" if index > asked else "no pass had to take it"

    def _fate(self, fate: Fate) -> str:
        cost = f" -> {fate.tokens:,} tokens" if fate.kind in ("trim", "stub") else ""
        where, what = self._place(fate.start, fate.end), self._what(fate.start, fate.end)
        return f"  {where}  {fate.kind}{what}{cost}: {fate.rule} ({_why(fate.why)}); handle {fate.handle}"

    def _number(self, index: int) -> str:
        return f"{index - self.lead:>5}" if index >= self.lead else "  sys"

    def _place(self, start: int, end: int) -> str:
        return self._number(start) if end - start == 1 else f"{self._number(start)}-{end - 1 - self.lead}"

    def _what(self, start: int, end: int) -> str:
        if self.messages is None or start >= len(self.messages):
            return ""
        if end - start > 1:
            return f" {end - start} messages"
        message = self.messages[start]
        text = " ".join([message.text, *(f"{call.name} {call.arguments}" for call in message.calls)])
        text = " ".join(text.split())
        return f" {message.role} “{text[:40]}{'…' if len(text) > 40 else ''}”"


def _why(why: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {value:,}" if isinstance(value, int) and not isinstance(value, bool) else f"{key} {value}"
        for key, value in why.items()
    )
