"""summarise: the turns before the recent ones become one structured summary, read from the history (B3).

The summary is an artefact of the plan, not a message: it is made from the originals each time, so it cannot be doubled
or summarised again. A model may write it; what it says is checked against what the deterministic one found. It is
taken only if the view gets smaller by it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from brim.context.draft import FOLD, Draft
from brim.context.fold import fold_before, recent_start
from brim.context.plan import Fate, Summary
from brim.context.summarizer import run_summarizer
from brim.context.summary import SummaryText, deterministic_summary
from brim.context.summary_check import check_summary
from brim.conversation import Message, range_handle

LEAST_MESSAGES = 2
"""With fewer than two messages to fold there is no summary (B3)."""
LEAST_ROOM = 48
"""Tokens below which a summary cannot say anything beside its header."""
FRAME_TOKENS = 16
"""What the summary's message and the `(noted)` behind it cost beside its text, in any encoding brim knows."""
RETRY_AFTER = 8
"""Messages the history must gain before a refused summary is tried again: a refusal at once comes out the same."""


class Outcome(msgspec.Struct):
    """Fates to apply with the summary, what to report, and the counts of failures and of the last refusal's place."""

    fates: list[Fate]
    summary: Summary | None
    report: dict[str, Any]
    failures: int = 0
    refused: int = 0


def always_there(draft: Draft) -> int:
    """Tokens of what stays wherever a boundary lies: system messages and pins."""
    history = draft.history
    return sum(draft.tokens[index] for index in {*history.systems, *history.pins, *draft.held})


def summary_room(draft: Draft, goal: int) -> int:
    """Tokens a summary may have: its share of the budget, and at most half of the goal."""
    return min(int(draft.settings.summary_share * draft.budget), max(LEAST_ROOM, goal // 2))


def summarise(
    draft: Draft,
    goal: int,
    before: Summary | None,
    *,
    failures: int,
    refused: int,
    chosen: list[Fate] | None = None,
    focus: str = "",
    anew: bool = False,
) -> Outcome:
    """Folds what stands before the recent part under one summary, together with `chosen` (what select lets go). `focus`:
    the user's words on what the summary has to keep; `anew`: a summary that is there already is written again for it."""
    history = draft.history
    if refused and len(history) < refused + RETRY_AFTER:
        return Outcome([], before, {}, failures, refused)
    room = summary_room(draft, goal)
    if chosen is None:
        last = history.last_user
        start = recent_start(
            draft, max(0, goal - room - always_there(draft) - (draft.tokens[last] if last >= 0 else 0))
        )
        fates = fold_before(draft, start, "summarise", {"recent_from": start, "goal": goal})
    else:
        fates = chosen
    fresh = sum(fate.end - fate.start for fate in fates)
    places = _folded(draft, fates)
    again = anew and not fresh and before is not None
    if (not fresh and not again) or len(places) < LEAST_MESSAGES:
        return Outcome(
            [], before, {"refused": f"{len(places)} messages to fold, at least {LEAST_MESSAGES} needed"}, failures
        )
    saved = sum(draft.tokens[index] for fate in fates for index in range(fate.start, fate.end))
    saved -= sum(fate.tokens for fate in fates if fate.kind == "trim")
    saved += before.tokens if before is not None else 0
    if again:
        saved = sum(history.tokens[index] for index in places)
    folded = [history.messages[index] for index in places]
    found = _deterministic(draft, folded, places, min(room, max(LEAST_ROOM, saved - FRAME_TOKENS - 1)), focus)
    text, by, report = found.text, "brim", {}
    if draft.settings.summarizer is not None and failures < draft.settings.summary_failures:
        written = _written(draft, folded, found, room, saved, focus)
        if isinstance(written, str):
            text, by, failures = written, "model", 0
        else:
            failures += 1
            report = dict(written)
            if failures >= draft.settings.summary_failures:
                report["notice"] = f"the summarizer failed {failures} times in a row and is not asked again"
    tokens = draft.count(text) + FRAME_TOKENS if text else 0
    if not text or tokens >= saved:
        report["refused"] = f"a summary of {tokens:,} tokens for {saved:,} would not make the view smaller"
        return Outcome([], before, report, failures, len(history))
    first, last_place = places[0], places[-1]
    summary = Summary(
        text=text,
        end=last_place + 1,
        messages=len(places),
        replaced=sum(history.tokens[index] for index in places),
        tokens=tokens,
        handle=range_handle(history.messages, first, last_place + 1),
        by=by,
    )
    return Outcome(fates, summary, {"by": by, "summary": tokens, "of": summary.replaced, **report}, failures)


def smaller(draft: Draft, summary: Summary, over: int) -> Summary | None:
    """The summary written again, deterministically, so that it takes `over` tokens less; None where there is no room for
    one: then its messages are left out like others, each with its handle."""
    room = summary.tokens - over - FRAME_TOKENS
    places = _folded(draft, [])
    if room < LEAST_ROOM or not places:
        return None
    found = _deterministic(draft, [draft.history.messages[index] for index in places], places, room, "")
    if not found.text:
        return None
    return msgspec.structs.replace(summary, text=found.text, tokens=found.tokens + FRAME_TOKENS, by="brim")


def _folded(draft: Draft, fates: list[Fate]) -> list[int]:
    """The places of all messages under the summary: those folded before and those folded now."""
    now = {index for fate in fates if fate.kind == "fold" for index in range(fate.start, fate.end)}
    old = {index for index, rank in enumerate(draft.rank) if rank == FOLD}
    return sorted(now | old)


def _deterministic(draft: Draft, folded: list[Message], places: list[int], room: int, focus: str) -> SummaryText:
    """The deterministic summary of these places; kept with the history, since the same request may be planned again."""
    history = draft.history
    handle = range_handle(history.messages, places[0], places[-1] + 1)
    key = (handle, len(places), sum(places), room, draft.recall, len(history), focus)
    found = history.summaries.get(key)
    if found is None:
        history.summaries.clear()
        found = history.summaries[key] = deterministic_summary(
            folded,
            budget_tokens=room,
            count=draft.count,
            later=history.messages[places[-1] + 1 :],
            with_pins=False,
            handle=handle,
            recall=draft.recall,
            focus=focus,
        )
    return found


def _written(
    draft: Draft, folded: list[Message], found: SummaryText, room: int, saved: int, focus: str
) -> str | dict[str, Any]:
    """A summary by the caller's model, checked against what the history holds; or why there is none."""
    settings = draft.settings
    if settings.summarizer is None:
        return {"failed": "no summarizer"}
    window = settings.summarizer_window or draft.window
    result = run_summarizer(
        settings.summarizer,
        folded,
        window=window,
        max_output=min(settings.max_response_tokens, max(64, window // 8), room),
        count=draft.count,
        budget_tokens=room,
        language=found.language,
        focus=focus,
    )
    if result.text is None:
        return {"failed": result.failure, "calls": result.calls}
    checked = check_summary(
        result.text, found, budget_tokens=room, count=draft.count, replaced_tokens=max(1, saved - FRAME_TOKENS)
    )
    return checked if checked is not None else {"failed": "the text was no smaller than what it replaces"}
