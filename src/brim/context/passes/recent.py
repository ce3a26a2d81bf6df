"""The last rungs of the ladder: the first turn and the most recent ones, then step by step, then the newest step itself."""

from __future__ import annotations

from brim.context.draft import FOLD, Draft
from brim.context.failures import is_failed
from brim.context.passes.compress import shorter_arguments
from brim.context.passes.shorten import to_size
from brim.context.plan import Fate
from brim.conversation import Text


def keep_recent(draft: Draft, goal: int, turns: int) -> list[Fate]:
    """Drops what lies between the first turn and the last `turns`; turns over `recent_share` of the budget give way by
    step from their second step on, so that a turn of hundreds of steps is no refuge."""
    history = draft.history
    rule = f"keep_recent({turns})"
    starts = history.turns
    turns = max(turns, 1)  # the newest turn holds the last user message and the newest step, which stay in any case
    fates: list[Fate] = []
    if len(starts) > turns + 1:
        fates += draft.remove(starts[1], starts[-turns], "drop", rule, {"turns": len(starts) - turns - 1})
    most = int(draft.settings.recent_share * draft.budget)
    recent_from = starts[-turns] if len(starts) >= turns else (starts[0] if starts else 0)
    first_end = starts[1] if len(starts) > 1 else len(draft.rank)
    ranges = (
        [(recent_from, len(draft.rank))]
        if recent_from < first_end
        else [(0, first_end), (recent_from, len(draft.rank))]
    )
    for start, end in ranges:
        fates += _older_steps(draft, start, end, most, rule)
    return fates


def _older_steps(draft: Draft, start: int, end: int, most: int, rule: str) -> list[Fate]:
    """Drops the oldest steps of `[start, end)` that go beyond `most` tokens, counted from its end; users stay."""
    total = sum(draft.tokens[start:end])
    if total <= most:
        return []
    fates: list[Fate] = []
    newest = draft.history.newest_step
    for first, stop in draft.live_steps(start, end):
        if total <= most or first >= newest:
            break
        if draft.history.messages[first].role != "assistant" or draft.stays(first):
            continue
        total -= sum(draft.tokens[first:stop])
        fates += draft.remove(first, stop, "drop", rule, {"share": draft.settings.recent_share})
    return fates


def drop_oldest(draft: Draft, goal: int) -> list[Fate]:
    """Drops the oldest step, then the next, until the goal is met; calls go with their results. System messages, pins,
    the last user message and the newest step stay. What would then stand first without a user message goes as well."""
    history = draft.history
    newest, over = history.newest_step, draft.used - goal
    gone: list[tuple[int, int]] = []
    for first, stop in draft.live_steps(0, newest):
        if over <= 0:
            break
        if draft.stays(first):
            continue
        over -= sum(draft.tokens[first:stop]) - _pin_tokens(draft, first)
        gone.append((first, stop))
    dropped = {first for first, _ in gone}
    for first, stop in draft.live_steps(0, newest):
        role = history.messages[first].role
        if role == "system" or first in dropped:
            continue
        if role == "user" or draft.stays(first):
            break
        gone.append((first, stop))
        dropped.add(first)
    return [
        fate
        for start, end in _joined(sorted(gone))
        for fate in draft.remove(start, end, "drop", "drop_oldest", {"over": goal})
    ]


def _pin_tokens(draft: Draft, index: int) -> int:
    """About what stays of a message of which pinned paragraphs stay."""
    spans = draft.history.pins.get(index)
    return sum(draft.count(draft.history.messages[index].text[a:b]) for a, b in spans) + 8 if spans else 0


def _joined(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for start, end in runs:
        if out and out[-1][1] == start:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out


def trim_newest(draft: Draft, goal: int) -> list[Fate]:
    """Cuts the newest step's results so that the goal is met, the cut shared out: all get the same room, and what a small
    one does not need goes to the larger ones. Long call arguments go first where no thinking stands beside them."""
    history = draft.history
    start = history.newest_step
    end = len(draft.rank)
    over = draft.used - goal
    if over <= 0 or start >= end:
        return []
    results = list(draft.results(start, end))
    sizes = {index: draft.tokens[index] for index in results}
    room = sum(sizes.values()) - over
    least = {index: _least(draft, index) for index in results}
    share = _share(sizes, least, max(0, room))
    fates = draft.weigh(
        [
            to_size(draft, index, max(share, least[index]), "trim_newest", {"tokens": sizes[index], "share": share})
            for index in results
            if sizes[index] > max(share, least[index])
        ],
        least=1,
    )
    over -= sum(draft.tokens[fate.start] - fate.tokens for fate in fates)
    if over > 0:
        fates += _shorten_calls(draft, start, end)
    return fates


LEAST = 48
"""Tokens to which a result of the newest step can be cut at most: its mark, with sizes and handle."""

NOTE = 24
"""Tokens of the line for what a result held beside its text."""


def _least(draft: Draft, index: int) -> int:
    message = draft.history.messages[index]
    plain = LEAST if all(type(part) is Text for part in message.result.content) else LEAST + NOTE
    floor = draft.settings.error_keep_tokens if is_failed(message) else plain
    return min(draft.tokens[index], floor)


def _share(sizes: dict[int, int], least: dict[int, int], room: int) -> int:
    """The largest share s with sum(min(size, max(s, least))) <= room; at least `LEAST`."""
    low, high = LEAST, max(sizes.values(), default=LEAST)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, max(middle, least[index])) for index, size in sizes.items()) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _shorten_calls(draft: Draft, start: int, end: int) -> list[Fate]:
    fates = []
    for index in range(start, end):
        message = draft.history.messages[index]
        if message.role != "assistant" or draft.rank[index] >= FOLD or draft.protected(index):
            continue
        if has_signed_thinking(draft, start, end):
            continue
        longest = max((len(call.arguments) for call in message.calls), default=0)
        if longest > 1_000:
            fates.append(shorter_arguments(draft, index, "trim_newest", longest))
    return draft.weigh(fates)


def has_signed_thinking(draft: Draft, start: int, end: int) -> bool:
    """A step with thinking is left alone: its neighbours are bound to it."""
    from brim.conversation import Thinking

    return any(
        isinstance(part, Thinking) for index in range(start, end) for part in draft.history.messages[index].parts
    )
