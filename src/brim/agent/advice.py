"""What a user can do about a failed request, with figures: what was largest, what stands in it twice, what to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from brim.budget import Bill, duplicates, largest
from brim.conversation import Message
from brim.errors import BrimError, ContextOverflow, ProviderOverflow, RequestOverRateLimit, RequestTooLarge

OVERFLOWS = (ContextOverflow, ProviderOverflow, RequestOverRateLimit, RequestTooLarge)
_MOST = 3


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
    if mode == "full":
        lines.append("use the mode compact or auto: --context-mode compact (in a session: /mode compact)")
    else:
        lines.append("compact sooner: set compact_trigger_ratio (0.6) or compact_target (0.4) lower")
    if bill is not None and bill["reserved"] > 1_024:
        lines.append(
            f"lower max_response_tokens ({bill['reserved']:,} tokens are reserved for the reply): --max-tokens 1024"
        )
    lines.append("or start a new session: --new-session (in a session: /new)")
    return lines
