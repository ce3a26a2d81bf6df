"""The tokens of a whole request: messages, tool definitions, and what primes the reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from brim.conversation import Message
from brim.tokens.counter import Counter


class RequestCount(msgspec.Struct, frozen=True):
    """Tokens of a request. `messages`: of each, in order; `tools`: of all definitions together; `total`: everything."""

    messages: list[int]
    tools: int
    priming: int
    total: int
    counter: str
    exact: bool


def count_request(
    counter: Counter, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()
) -> RequestCount:
    """Counts a request; tools are counted apart, as they come on top of what messages may use."""
    counts = counter.count_messages(messages)
    tool_tokens = counter.count_tools(tools)
    return RequestCount(
        counts,
        tool_tokens,
        counter.priming,
        sum(counts) + tool_tokens + counter.priming,
        counter.name,
        counter.exact,
    )
