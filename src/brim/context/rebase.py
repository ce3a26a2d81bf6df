"""Does the plan before still hold for this history? Its fates carry over by content where an earlier message changed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from brim.context.history import History
from brim.context.plan import Fate, Plan, Sent
from brim.context.repair_order import SystemAsUser
from brim.conversation import Message, handle_of, range_handle


def rebase(
    before: Plan | None, history: History, line: str, *, trusted: bool = True, changed: bool = False
) -> tuple[Plan | None, str]:
    """The plan to continue, or None and why an epoch begins anew.

    Another line (mode, model, window, settings) starts from the untouched history. A history that no longer begins with
    what was sent keeps those fates whose originals are still there; a rewritten message loses only its own. So does a plan
    that is not `trusted`, since it comes from outside, and does not fit the history. `changed`: the caller knows that
    something which was sent is another now.
    """
    if before is None:
        return None, "first request"
    if before.line != line:
        return None, "another mode, model, window or setting"
    sent = before.sent
    same = (
        not changed
        and sent.count <= len(history)
        and (history.hash_at(sent.count) == sent.hash if sent.hash else trusted or not sent.count)
    )
    if same and (trusted or _fits(before, history)) and not _on_pinned(before, history):
        return before, ""
    fates = _carried(before.fates, history)
    summary = before.summary
    if summary is not None and not any(fate.kind == "fold" for fate in fates):
        summary = None
    plan = msgspec.structs.replace(
        before,
        epoch=before.epoch + 1,
        cause="the history was changed before what had been sent, or a message in it was pinned",
        fates=fates,
        summary=summary,
        inserts=(),
        sent=Sent(min(sent.count, len(history)), "", min(sent.before, len(history)), sent.at),
        decided=min(before.decided, len(history)),
    )
    return plan, plan.cause


def _on_pinned(plan: Plan, history: History) -> bool:
    """A message that was pinned whole since has a fate, or stands in one step with a message that is to go."""
    return any(
        fate.start < history.step_end(history.step_of(index)) and fate.end > history.step_of(index)
        for index in history.marked
        if index < len(history)
        for fate in plan.fates
        if fate.kind in ("fold", "drop") or fate.start == index
    )


def _fits(plan: Plan, history: History) -> bool:
    """Each fate lies in what was sent and on whole steps, and none on what no pass may touch."""
    messages, count = history.messages, plan.sent.count
    if any(insert.anchor >= count for insert in plan.inserts) or (plan.fates and plan.fates[-1].end > count):
        return False
    for fate in plan.fates:
        start = fate.start
        if fate.kind in ("trim", "stub"):
            if messages[start].role == "system" or start == history.last_user:
                return False
        elif (
            not (_starts_step(messages, start) and _starts_step(messages, fate.end))
            or start <= history.last_user < fate.end
        ):
            return False
    return True


def _starts_step(messages: Sequence[Message], at: int) -> bool:
    if at >= len(messages):
        return True
    role = messages[at].role
    return role in ("user", "system") or (role == "assistant" and (not at or messages[at - 1].role != "assistant"))


def _carried(fates: tuple[Fate, ...], history: History) -> tuple[Fate, ...]:
    """Fates whose originals still stand: single messages by handle and occurrence, runs by place and both ends. What no pass
    may touch in this history (its last user message may be another) is kept, and a run goes around it."""
    places: dict[str, list[int]] = {}
    for index, message in enumerate(history.messages):
        if message.role in ("tool", "assistant", "user"):
            places.setdefault(handle_of(message), []).append(index)
    starts = {*history.steps, len(history)}
    held = {
        index
        for marked in history.marked
        if marked < len(history)
        for index in range(history.step_of(marked), history.step_end(history.step_of(marked)))
    }
    kept: list[Fate] = []
    taken = -1
    for fate in fates:
        if fate.kind in ("trim", "stub"):
            place = next((place for place in places.get(fate.handle, ()) if place > taken), None)
            if place is not None and not _protected(history, place):
                kept.append(msgspec.structs.replace(fate, start=place, end=place + 1))
                taken = place
        elif (
            taken < fate.start
            and fate.end <= len(history)
            and fate.start in starts
            and fate.end in starts
            and range_handle(history.messages, fate.start, fate.end) == fate.handle
        ):
            kept += _around(fate, history, held)
            taken = fate.end - 1
    return tuple(kept)


def _protected(history: History, index: int) -> bool:
    message = history.messages[index]
    return (
        message.role == "system"
        or type(message) is SystemAsUser
        or index in history.marked
        or index == history.last_user
    )


def _around(fate: Fate, history: History, held: set[int]) -> list[Fate]:
    """The run without the messages in it that have to stay."""
    out: list[Fate] = []
    start = fate.start
    for index in range(fate.start, fate.end + 1):
        if index == fate.end or index in held or _protected(history, index) or index in history.pins:
            if start < index:
                handle = range_handle(history.messages, start, index)
                out.append(msgspec.structs.replace(fate, start=start, end=index, handle=handle))
            start = index + 1
    return out if len(out) != 1 or out[0].end - out[0].start != fate.end - fate.start else [fate]
