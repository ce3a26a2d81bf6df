"""fit_bytes: a request under its token budget can still be over the provider's limit in bytes: pictures, mostly."""

from __future__ import annotations

from collections.abc import Callable

from brim.context.draft import FOLD, Draft
from brim.context.passes.compress import has_media, without_media
from brim.context.passes.shorten import to_stub
from brim.context.plan import Fate
from brim.conversation import Media, Message, ToolResult

HEADROOM = 0.05
"""A lowering frees this much more than needed, so that the next message does not start the next one."""

LEAST_CHARS = 200
"""A shorter result costs hardly more than the stub that would stand for it."""


def fit_bytes(draft: Draft, limit: int, size: Callable[[], int]) -> list[Fate]:
    """Lowers media, oldest first, then tool results, oldest first, until the body is at most `limit` bytes. `size` measures
    the body as it would be sent. The newest message with media stays as long as anything else can go."""
    over = size() - limit
    if over <= 0:
        return []
    over += int(limit * HEADROOM)
    messages = draft.history.messages
    live = [index for index in range(len(draft.rank)) if draft.rank[index] < FOLD and draft.rank[index] != 2]
    pictured = [index for index in live if has_media(messages[index]) and _media_live(draft, index)]
    fates: list[Fate] = []
    for index in pictured[:-1]:
        if over <= 0:
            break
        if not draft.protected(index):
            fates.append(without_media(draft, index, "fit_bytes"))
            over -= media_bytes(messages[index])
    if over > 0:
        lowered = {fate.start for fate in fates}
        for index in draft.results(0, draft.history.newest_step):
            if over <= 0:
                break
            if index not in lowered and not has_media(messages[index]) and len(messages[index].text) >= LEAST_CHARS:
                fates.append(to_stub(draft, index, "fit_bytes", {"limit": limit}))
                over -= len(messages[index].text.encode("utf-8", "surrogatepass"))
    if over > 0 and pictured and not draft.protected(pictured[-1]):
        fates.append(without_media(draft, pictured[-1], "fit_bytes"))
    return draft.weigh(fates, least=-(10**9))


def _media_live(draft: Draft, index: int) -> bool:
    fate = draft.single.get(index)
    return fate is None or fate.media


def media_bytes(message: Message) -> int:
    """Bytes of the message's images and documents as they travel."""
    parts = [part for part in message.parts if isinstance(part, Media)]
    for part in message.parts:
        if isinstance(part, ToolResult):
            parts += [inner for inner in part.content if isinstance(inner, Media)]
    return sum(len(part.data) for part in parts)
