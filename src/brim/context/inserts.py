"""What was let go and matters to a later question comes back as an insert beside it (auto).

An insert stands in front of the user's message, as a text part of its own, in this view and every later one of the epoch:
so the prefix that was already sent stays where it was.
"""

from __future__ import annotations

import msgspec

from brim.context import notices
from brim.context.cut import cut_to_tokens, join_spans
from brim.context.draft import FOLD, Draft
from brim.context.passes.select import CHOSEN_SHARE, READ_BUDGETS
from brim.context.plan import Insert
from brim.context.relevance import Index, Terms
from brim.conversation import handle_of

HEADER = "[recalled by brim for this question, from earlier in the conversation; not the user's words]"
LEAST_SHARE = 0.5
"""A message is recalled if it scores at least this share of the best one: the first few hits, not a long tail."""
LEAST_SCORE = 4.0
"""BM25 of a message that shares one rare name or two rarer words with the question; below, the hit is chance."""
PIECE_TOKENS = 400
"""Of one recalled message, at most this much; the rest is one recall away."""


class Gone(msgspec.Struct):
    """What is out of the view, indexed once for an epoch: message places, newest first, and their terms."""

    places: list[int]
    index: Index


def index_of(draft: Draft, end: int, terms: Terms) -> Gone:
    """The messages before `end` that the view does not show, back to `READ_BUDGETS` budgets of text."""
    history = draft.history
    places = []
    read = READ_BUDGETS * draft.budget
    for index in range(end - 1, -1, -1):
        if draft.rank[index] >= FOLD and history.messages[index].role != "system":
            read -= history.tokens[index]
            if read < 0:
                break
            places.append(index)
    return Gone(places, Index([history.terms(index, terms) for index in places]))


def recall_for(draft: Draft, question_at: int, gone: Gone) -> Insert | None:
    """An insert for the user message at `question_at`, None where nothing that was let go matters to it."""
    history, settings = draft.history, draft.settings
    question, places = history.messages[question_at].text, gone.places
    if not places or not question:
        return None
    given = draft.relevance(question, [history.messages[index] for index in places])
    values = given if given is not None else gone.index.score(question)
    ranked = sorted(zip(values, places, strict=True), key=lambda each: (-each[0], each[1]))
    best = ranked[0][0]
    if best < (0 if given is not None else LEAST_SCORE):
        return None
    room = int(CHOSEN_SHARE / 2 * draft.budget)
    chosen: list[tuple[int, str]] = []
    for value, index in ranked[: settings.retrieval_top_k]:
        if value < best * LEAST_SHARE or value <= 0:
            break
        piece = _piece(draft, index, min(PIECE_TOKENS, room))
        cost = draft.count(piece)
        if cost > room:
            break
        room -= cost
        chosen.append((index, piece))
    if not chosen:
        return None
    text = "\n\n".join([HEADER, *(piece for _, piece in sorted(chosen))])
    why = {"messages": [index for index, _ in sorted(chosen)], "best": round(best, 2)}
    return Insert(question_at, text, "history", why, draft.count(text), handle_of(history.messages[chosen[0][0]]))


def _piece(draft: Draft, index: int, tokens: int) -> str:
    message = draft.history.messages[index]
    handle = handle_of(message)
    text = message.text or " ".join(f"{call.name} {call.arguments}" for call in message.calls)
    spans = cut_to_tokens(
        text,
        max(tokens - 24, 16),
        draft.count,
        head_share=draft.settings.head_share,
        handle=handle,
        recall=draft.recall,
    )
    who = f"result of {draft.history.tool_name(index)}" if message.role == "tool" else message.role
    return (
        f"--- {who}, {notices.fetch(handle, draft.recall)} ---\n{join_spans(text, spans, handle, recall=draft.recall)}"
    )
