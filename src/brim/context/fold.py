"""Where the older part ends and the recent part begins, and which older steps go under a summary."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from brim.context.draft import FOLD, Draft
from brim.context.plan import Fate

SMALL_USER = 400
"""Tokens up to which the user message of a turn that is cut inside stays in front of its later steps."""


def recent_start(draft: Draft, room: int) -> int:
    """The start of the recent part: the newest step, and before it as much as fits `room` tokens, at most
    `recent_rounds_kept` turns. It lies at the start of a turn; inside one only where that turn alone is over the room
    or is the newest (A8), and then never between the user message and its first reply."""
    history, kept = draft.history, max(draft.settings.recent_rounds_kept, 1)
    turns, steps = history.turns, history.steps
    earliest = turns[-kept] if kept <= len(turns) else 0
    end = len(draft.rank)
    at = min(history.newest_step, steps[-1])
    used = sum(draft.tokens[at:])
    for place in range(bisect_left(steps, at) - 1, -1, -1):
        first = steps[place]
        used += sum(draft.tokens[first:at])
        if used > room or first < earliest:
            break
        at = first
    if history.messages[at].role != "assistant" or not turns:
        return at
    turn = history.turn_of(at)
    following = bisect_right(turns, turn)
    next_turn = turns[following] if following < len(turns) else end
    if next_turn < end and sum(draft.tokens[turn:next_turn]) <= room:
        return next_turn
    if at == turn + 1 and draft.tokens[turn] > SMALL_USER:
        later = history.step_end(at)
        return later if later < end else at
    return at


def fold_before(
    draft: Draft, end: int, rule: str, why: dict[str, object], keep: frozenset[int] = frozenset()
) -> list[Fate]:
    """Folds everything live before `end` but the steps in `keep` and the user message of the turn that `end` cuts."""
    history = draft.history
    spare = -1
    if end < len(draft.rank) and history.messages[end].role == "assistant":
        turn = history.turn_of(end)
        if history.messages[turn].role == "user" and draft.tokens[turn] <= SMALL_USER:
            spare = turn
    fates: list[Fate] = []
    run: tuple[int, int] | None = None
    for first, stop in draft.live_steps(0, end):
        if first == spare or first in keep:
            if run is not None:
                fates += draft.remove(*run, "fold", rule, why)
            run = None
        elif run is not None and all(rank >= FOLD for rank in draft.rank[run[1] : first]):
            run = (run[0], min(stop, end))
        else:
            if run is not None:
                fates += draft.remove(*run, "fold", rule, why)
            run = (first, min(stop, end))
    if run is not None:
        fates += draft.remove(*run, "fold", rule, why)
    return fates
