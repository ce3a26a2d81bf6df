"""select: in auto, older steps that matter to the current question stay verbatim; the rest goes under the summary (B4)."""

from __future__ import annotations

from brim.context.draft import Draft
from brim.context.fold import fold_before, recent_start
from brim.context.plan import Fate
from brim.context.relevance import Terms, score
from brim.context.summarise import always_there, summary_room

QUESTION_TURNS = 2
"""The last two turns always stay (B4), and the question is what the user says in them."""
READ_BUDGETS = 4
"""Older steps are scored back to this many budgets of text: what lies further back is reached by summary and recall.
Scoring all of a session of 3.5M tokens would cost more than the rest of the plan together."""
CHOSEN_SHARE = 0.1
"""Of the budget, what steps chosen for their relevance may take together."""


def select(draft: Draft, goal: int, terms: Terms) -> list[Fate]:
    """Folds the steps before the recent part except the `retrieval_top_k` most relevant to the question."""
    history, settings = draft.history, draft.settings
    chosen_room = int(CHOSEN_SHARE * draft.budget)
    start = recent_start(draft, max(0, goal - summary_room(draft, goal) - chosen_room - always_there(draft)))
    question = "\n".join(history.messages[turn].text for turn in history.turns[-QUESTION_TURNS:])
    steps: list[tuple[int, int]] = []
    read = READ_BUDGETS * draft.budget
    for first, stop in reversed(_exchanges(draft, start)):
        read -= sum(draft.tokens[first:stop])
        if read < 0:
            break
        steps.append((first, stop))
    if not steps:
        return []
    scored = _scores(draft, question, steps, terms)
    keep: set[int] = set()
    room = chosen_room
    for value, first, stop in sorted(scored, key=lambda each: (-each[0], each[1]))[: settings.retrieval_top_k]:
        size = sum(draft.tokens[first:stop])
        if value > 0 and size <= room:
            keep.update(step for step, _ in draft.live_steps(first, stop))
            room -= size
    why: dict[str, object] = {"chosen": len(keep), "best": round(max(value for value, _, _ in scored), 2)}
    return fold_before(draft, start, "select", why, frozenset(keep))


def _exchanges(draft: Draft, end: int) -> list[tuple[int, int]]:
    """Runs that are judged together: a user message with its first reply, or one further step of its turn."""
    out: list[tuple[int, int]] = []
    open_user = False
    for first, stop in draft.live_steps(draft.reach, end):
        if draft.stays(first):
            open_user = False
            continue
        role = draft.history.messages[first].role
        if open_user and role == "assistant" and out[-1][1] == first:
            out[-1] = (out[-1][0], stop)
        else:
            out.append((first, stop))
        open_user = role == "user"
    return out


def _scores(draft: Draft, question: str, steps: list[tuple[int, int]], terms: Terms) -> list[tuple[float, int, int]]:
    """(best score of its messages, start, end) of each step; user messages are worth half as much again: they bind."""
    history = draft.history
    places = [index for first, stop in steps for index in range(first, stop)]
    messages = [draft.history.messages[index] for index in places]
    counts = [history.terms(index, terms) for index in places]
    given = draft.relevance(question, messages)
    scored = given if given is not None else score(question, counts)
    values = dict(zip(places, scored, strict=True))
    out = []
    for first, stop in steps:
        best = max(values[index] for index in range(first, stop))
        out.append((best * 1.5 if draft.history.messages[first].role == "user" else best, first, stop))
    return out
