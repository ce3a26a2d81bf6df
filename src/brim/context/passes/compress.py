"""compress: outside the newest step, large results become stubs; large call arguments and old media shrink (A7)."""

from __future__ import annotations

from brim.context.draft import Draft
from brim.context.passes.shorten import to_stub
from brim.context.plan import Fate
from brim.conversation import Media, Message, ToolResult, handle_of

ARGUMENT_KEEP = 400
"""Characters that a long string among call arguments keeps: enough to know which file or text it was."""


def compress(draft: Draft, goal: int) -> list[Fate]:
    """Results over `compress_over_chars` characters become stubs that give the size; arguments over
    `arguments_over_chars` keep head and tail of their long strings; images and documents become one line."""
    settings, messages = draft.settings, draft.history.messages
    newest = draft.history.newest_step
    fates = []
    for index in range(draft.reach, newest):
        if draft.rank[index] >= 2 or draft.protected(index):
            continue
        message = messages[index]
        if message.role == "tool":
            if len(message.text) > settings.compress_over_chars:
                fates.append(to_stub(draft, index, "compress", {"over": settings.compress_over_chars}))
            elif has_media(message) and draft.rank[index] == 0:
                fates.append(without_media(draft, index, "compress"))
        elif message.role == "assistant" and draft.rank[index] == 0:
            longest = max((len(call.arguments) for call in message.calls), default=0)
            if longest > settings.arguments_over_chars:
                fates.append(shorter_arguments(draft, index, "compress", longest))
        elif draft.rank[index] == 0 and has_media(message) and index < draft.history.last_user:
            fates.append(without_media(draft, index, "compress"))
    return draft.weigh(fates)


def shorter_arguments(draft: Draft, index: int, rule: str, longest: int) -> Fate:
    """The call arguments of message `index`, each long string cut to head and tail."""
    handle = handle_of(draft.history.messages[index])
    return Fate(index, index + 1, "trim", rule, {"characters": longest}, handle, arguments=ARGUMENT_KEEP)


def without_media(draft: Draft, index: int, rule: str) -> Fate:
    """Message `index` with a line in place of each image or document; its text stays."""
    message = draft.history.messages[index]
    why = {"media_tokens": max(0, draft.tokens[index] - draft.count(message.text))}
    return Fate(index, index + 1, "trim", rule, why, handle_of(message), media=False)


def has_media(message: Message) -> bool:
    """The message, or the result it carries, holds an image, a document or audio."""
    return any(
        type(part) is Media or (type(part) is ToolResult and any(type(inner) is Media for inner in part.content))
        for part in message.parts
    )
