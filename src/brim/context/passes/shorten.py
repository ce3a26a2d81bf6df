"""Shortening one tool result: to a stub, or to head and tail. Failed results never fall below their error text."""

from __future__ import annotations

from brim.context import notices
from brim.context.cut import cut_to_tokens
from brim.context.draft import Draft
from brim.context.failures import is_failed
from brim.context.plan import Fate
from brim.conversation import handle_of


def to_stub(draft: Draft, index: int, rule: str, why: dict[str, object], because: str = "") -> Fate:
    """A stub in place of result `index`; for a failed result, its error text instead."""
    message = draft.history.messages[index]
    if is_failed(message):
        return to_size(draft, index, draft.settings.error_keep_tokens, rule, why | {"failed": True})
    text, handle = message.text, handle_of(message)
    line = notices.stub(draft.history.tool_name(index), text, handle, recall=draft.recall, because=because)
    return Fate(index, index + 1, "stub", rule, why | {"characters": len(text)}, handle, text=line)


def to_size(draft: Draft, index: int, tokens: int, rule: str, why: dict[str, object]) -> Fate:
    """Head and tail of result `index` within `tokens`; at least its error text where it failed."""
    message = draft.history.messages[index]
    if is_failed(message):
        tokens = max(tokens, min(draft.settings.error_keep_tokens, draft.history.tokens[index]))
    handle = handle_of(message)
    spans = cut_to_tokens(
        message.text,
        tokens - 8,  # what the message costs beside its text: role, overhead
        draft.count,
        head_share=draft.settings.head_share,
        handle=handle,
        recall=draft.recall,
    )
    return Fate(
        index, index + 1, "trim", rule, why | {"characters": len(message.text)}, handle, spans=spans, media=False
    )
