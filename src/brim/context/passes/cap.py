"""cap: a tool result is shortened to its tool's cap when it arrives, before it was ever sent (A1, A2)."""

from __future__ import annotations

from brim.context.draft import Draft
from brim.context.passes.shorten import to_size
from brim.context.plan import Fate


def cap(draft: Draft, start: int) -> list[Fate]:
    """Results from message `start` on that are over the cap of their tool keep head and tail."""
    caps = draft.settings.cap_tokens
    other = caps.get("", 6_000)
    fates = []
    for index in draft.results(start, len(draft.rank), below=1):
        limit = caps.get(draft.history.tool_name(index), other)
        if draft.tokens[index] > limit:
            fates.append(to_size(draft, index, limit, "cap", {"tokens": draft.tokens[index], "cap": limit}))
    return draft.weigh(fates)
