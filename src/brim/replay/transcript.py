"""A transcript: one recorded conversation in OpenAI's chat form, whatever it was read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class Transcript(msgspec.Struct):
    """`messages` in chat form, never altered. `times`: Unix seconds of each message, None where not recorded; empty where
    none is. `usage`: by index of an assistant message what the provider said of the call that made it (prompt_tokens,
    completion_tokens, cached_tokens, cost_usd …; `model` where it was another one's); `aside`: the same of calls whose
    answer is no message here: a branch the user left, a summary, a failure. `kind` names the form it came in.
    `compactions`: indices of messages before which the agent itself put a summary in place of what came before. `since`:
    index from which on requests count; those before were made in another transcript, of which this one is the sequel."""

    id: str
    messages: Sequence[Mapping[str, Any]]
    model: str | None = None
    kind: str = ""
    times: Sequence[float | None] = ()
    usage: Mapping[int, Mapping[str, Any]] = {}
    compactions: Sequence[int] = ()
    aside: Sequence[Mapping[str, Any]] = ()
    since: int = 0

    def time(self, index: int) -> float | None:
        """When message `index` was made, where that is known."""
        return self.times[index] if index < len(self.times) else None


def printable(text: str) -> str:
    """A name out of a recording as it may stand in a table: on one line, without what steers a terminal or that no
    UTF-8 can say."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}" for char in text
    )
