"""What a user can do about a failed request, with figures: what was largest, what stands in it twice, what to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from brim.budget import Bill, duplicates, largest
from brim.conversation import Message
from brim.errors import BrimError, ContextOverflow, ProviderOverflow, RequestOverRateLimit, RequestTooLarge

OVERFLOWS = (ContextOverflow, ProviderOverflow, RequestOverRateLimit, RequestTooLarge)
_MOST = 3
_LEAST_REPLY = 1_024
_CROWDED = 0.5
"""A window that is filled less than this has room: shortening the history is not what helps."""


def advice_for(
    error: BrimError, bill: Mapping[str, Any] | None, messages: Sequence[Message], *, mode: str, ladder: bool = True
) -> list[str]:
    """What to do, a line each; empty where the error's own hint says all there is. `ladder`: whether it was on."""
    if not isinstance(error, OVERFLOWS):
        return []
    lines: list[str] = []
    if bill is not None and (line := largest(Bill(bill))) is not None:
        share = line["tokens"] / max(1, bill["used"])
        lines.append(f"largest: {line['label']}, {line['tokens']:,} tokens ({share:.0%} of what was sent)")
    for twice in duplicates(messages)[:_MOST]:
        lines.append(
            f"stands in it twice: {twice.chars:,} characters; {twice.where}, from “{twice.sample}” on; one of them can go"
        )
    if not ladder:
        lines.append("leave --no-ladder out: then what is too long is shortened before it is sent, in any mode")
    if isinstance(error, ContextOverflow):
        # what cannot go is too long by itself: no mode and no threshold changes that, and the error's hint says what does
        if bill is not None and error.irreducible - error.budget < bill["reserved"] - _LEAST_REPLY:
            lines.append(_reserve(bill))
        return lines
    if isinstance(error, RequestTooLarge) and bill is not None and bill["used"] < _CROWDED * bill["window"]:
        return lines  # a limit of bytes, not of tokens
    if mode == "full":
        lines.append("use the mode compact or auto: --context-mode compact (in a session: /mode compact)")
    else:
        lines.append("compact sooner: set compact_trigger_ratio (0.6) or compact_target (0.4) lower")
    if bill is not None and bill["reserved"] > _LEAST_REPLY:
        lines.append(_reserve(bill))
    lines.append("or start a new session: --new-session (in a session: /new)")
    return lines


def _reserve(bill: Mapping[str, Any]) -> str:
    return f"lower max_response_tokens ({bill['reserved']:,} tokens are reserved for the reply): --max-tokens {_LEAST_REPLY}"
