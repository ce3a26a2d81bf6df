"""Does the plan before still hold for this history? Its fates carry over by content where an earlier message changed."""

from __future__ import annotations

import msgspec

from brim.context.history import History
from brim.context.plan import Fate, Plan, Sent
from brim.conversation import handle_of, range_handle


def rebase(before: Plan | None, history: History, line: str) -> tuple[Plan | None, str]:
    """The plan to continue, or None and why an epoch begins anew.

    Another line (mode, model, window, settings) starts from the untouched history. A history that no longer begins with
    what was sent keeps those fates whose originals are still there; a rewritten message loses only its own.
    """
    if before is None:
        return None, "first request"
    if before.line != line:
        return None, "another mode, model, window or setting"
    sent = before.sent
    if sent.count <= len(history) and (not sent.hash or history.hash_at(sent.count) == sent.hash):
        return before, ""
    fates = _carried(before.fates, history)
    summary = before.summary
    if summary is not None and not any(fate.kind == "fold" for fate in fates):
        summary = None
    plan = msgspec.structs.replace(
        before,
        epoch=before.epoch + 1,
        cause="the history was changed before what had been sent",
        fates=fates,
        summary=summary,
        inserts=(),
        sent=Sent(min(sent.count, len(history)), "", min(sent.before, len(history)), sent.at),
        decided=min(before.decided, len(history)),
    )
    return plan, plan.cause


def _carried(fates: tuple[Fate, ...], history: History) -> tuple[Fate, ...]:
    """Fates whose originals still stand: single messages by handle and occurrence, runs by place and both ends."""
    places: dict[str, list[int]] = {}
    for index, message in enumerate(history.messages):
        if message.role in ("tool", "assistant", "user"):
            places.setdefault(handle_of(message), []).append(index)
    kept: list[Fate] = []
    taken = -1
    for fate in fates:
        if fate.kind in ("trim", "stub"):
            place = next((place for place in places.get(fate.handle, ()) if place > taken), None)
            if place is not None:
                kept.append(msgspec.structs.replace(fate, start=place, end=place + 1))
                taken = place
        elif fate.end <= len(history) and range_handle(history.messages, fate.start, fate.end) == fate.handle:
            kept.append(fate)
            taken = fate.end - 1
    return tuple(kept)
