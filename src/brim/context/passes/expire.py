"""expire: tool results age. After five minutes their ends stay, after ten a stub; failed ones never age (C4)."""

from __future__ import annotations

from bisect import bisect_right

from brim.context.cut import head_and_tail
from brim.context.draft import Draft
from brim.context.failures import is_failed
from brim.context.passes.shorten import to_stub
from brim.context.plan import Fate
from brim.conversation import handle_of


def expire(draft: Draft, goal: int) -> list[Fate]:
    """Lowers results by age. Without a clock (`now`), or where no time is known for a message, nothing ages."""
    if draft.now is None:
        return []
    settings = draft.settings
    fates = []
    for index in draft.results(0, draft.history.newest_step):
        age = _age(draft, index)
        if age is None or age < settings.expire_soft_s or is_failed(draft.history.messages[index]):
            continue
        why: dict[str, object] = {"age_s": round(age)}
        if age >= settings.expire_hard_s:
            fates.append(to_stub(draft, index, "expire", why | {"hard": True}, because=f"{int(age // 60)} minutes old"))
        elif draft.rank[index] == 0:
            message = draft.history.messages[index]
            keep = settings.expire_keep_chars
            spans = head_and_tail(message.text, keep, keep)
            if len(spans) > 1:
                handle = handle_of(message)
                fates.append(Fate(index, index + 1, "trim", "expire", why | {"hard": False}, handle, spans=spans))
    return draft.weigh(fates)


def _age(draft: Draft, index: int) -> float | None:
    """Seconds since the message was made, or first seen by brim."""
    known = draft.history.times.get(index)
    if known is None and draft.seen:
        at = bisect_right(draft.seen, (index, float("inf"))) - 1
        known = draft.seen[at][1] if at >= 0 else None
    return None if known is None or draft.now is None else draft.now - known
