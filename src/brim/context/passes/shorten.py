"""Shortening one tool result: to a stub, or to head and tail. Failed results never fall below their error text."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from brim.context import notices
from brim.context.cut import cut_to_tokens
from brim.context.draft import Draft
from brim.context.failures import is_failed
from brim.context.plan import Fate
from brim.conversation import Message, handle_of


def to_stub(draft: Draft, index: int, rule: str, why: dict[str, object], because: str = "") -> Fate:
    """A stub in place of result `index`; for a failed result, its error text instead."""
    message = draft.history.messages[index]
    if is_failed(message):
        return to_size(draft, index, draft.settings.error_keep_tokens, rule, why | {"failed": True})
    return _made(draft, index, (because,), rule, why, lambda: _stub(draft, index, message, because))


def _stub(draft: Draft, index: int, message: Message, because: str) -> Fate:
    text, handle = message.text, handle_of(message)
    rest = notices.rest_of(message.result.content)
    line = notices.stub(draft.history.tool_name(index), text, handle, recall=draft.recall, because=because, rest=rest)
    return Fate(index, index + 1, "stub", "", {"characters": len(text)}, handle, text=line)


def _made(
    draft: Draft, index: int, key: tuple[object, ...], rule: str, why: dict[str, object], make: Callable[[], Fate]
) -> Fate:
    """A fate with its tokens, made once for a message and asked for again by later requests and other passes."""
    known = draft.history.fates
    fate = known.get((index, draft.recall, *key))
    if fate is None:
        fate = draft.weigh([make()], least=NEVER)[0]
        known[(index, draft.recall, *key)] = fate
    return msgspec.structs.replace(fate, rule=rule, why=why | fate.why)


NEVER = -(10**9)
"""A least saving that leaves nothing out."""


def to_size(draft: Draft, index: int, tokens: int, rule: str, why: dict[str, object]) -> Fate:
    """Head and tail of result `index` within `tokens`; at least its error text where it failed."""
    message = draft.history.messages[index]
    if is_failed(message):
        tokens = max(tokens, min(draft.settings.error_keep_tokens, draft.history.tokens[index]))
    share = draft.settings.head_share
    return _made(draft, index, (tokens, share), rule, why, lambda: _cut(draft, index, message, tokens, share))


def _cut(draft: Draft, index: int, message: Message, tokens: int, share: float) -> Fate:
    handle = handle_of(message)
    room = tokens - 8  # what the message costs beside its text: role, overhead
    if rest := notices.rest_of(message.result.content):
        room -= draft.count(notices.rest_note(rest, handle, recall=draft.recall))
    spans = cut_to_tokens(message.text, room, draft.count, head_share=share, handle=handle, recall=draft.recall)
    return Fate(index, index + 1, "trim", "", {"characters": len(message.text)}, handle, spans=spans, media=False)
