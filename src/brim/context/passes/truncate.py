"""truncate: no result over half of the window; a context over three quarters loses its oldest results (C3)."""

from __future__ import annotations

from brim.context.draft import Draft
from brim.context.passes.shorten import to_size, to_stub
from brim.context.plan import Fate


def truncate(draft: Draft, goal: int) -> list[Fate]:
    """Head and tail, 60/40, of each result over `result_share` of the window; then, while the context is over
    `context_share` of the budget, the oldest results become stubs, older steps first."""
    settings = draft.settings
    most = int(settings.result_share * draft.window)
    fates = draft.weigh(
        [
            to_size(draft, index, most, "truncate", {"tokens": draft.tokens[index], "most": most})
            for index in draft.results(0, len(draft.rank), below=2)
            if draft.tokens[index] > most
        ]
    )
    saved = sum(draft.tokens[fate.start] - fate.tokens for fate in fates)
    limit = int(settings.context_share * draft.budget)
    over = draft.used - saved - limit
    if over <= 0:
        return fates
    cut = {fate.start for fate in fates}
    stubs: list[Fate] = []
    for index in draft.results(0, draft.history.newest_step):
        if over <= 0:
            break
        if index in cut:
            continue
        why: dict[str, object] = {"context": draft.used - saved, "limit": limit}
        weighed = draft.weigh([to_stub(draft, index, "truncate", why)])
        stubs.extend(weighed)
        over -= sum(draft.tokens[fate.start] - fate.tokens for fate in weighed)
    return fates + stubs
