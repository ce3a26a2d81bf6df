"""What an answer that is no error says about the window: not every overflow is an exception."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from brim.budget.usage import Usage, parse_usage
from brim.errors import ProviderOverflow
from brim.providers.events import Ended, ended_of

_FAR = 8
"""An input of less than this part of a known window has not filled it: the reply was not allowed a token."""
OVERFLOW_HINT = "compact sooner (compact_trigger_ratio), lower max_response_tokens, or use a model with a larger window"


class Ending(msgspec.Struct, frozen=True):
    """How an answer ended: `kind`, and the overflow where it is one."""

    kind: Ended
    overflow: ProviderOverflow | None = None


def classify_response(
    finish_reason: str | None,
    usage: Usage | Mapping[str, Any] | None = None,
    content: str | None = None,
    window: int | None = None,
    *,
    provider: str | None = None,
    model: str | None = None,
) -> Ending:
    """How a complete answer ended.

    An overflow is a finish reason that names the context, an answer of no tokens that "reached the length", and an
    answer to more input than the window takes. `usage`: brim's or the provider's own; `window` in tokens. A finish
    reason nobody knows gives the kind "other", never an error.
    """
    kind = ended_of(finish_reason)
    counted = usage if isinstance(usage, Usage) else parse_usage(usage)
    sent = counted.input if counted.reported else None
    why = None
    if kind == "overflow":
        why = f"the provider stopped: the context window is full ({finish_reason})"
    elif (
        kind == "output_limit" and sent and not counted.output and not (content or "").strip()
        and not (window and sent * _FAR < window)
    ):  # fmt: skip
        why = "the provider stopped at once without a word: the input filled the window"
    elif window and sent and sent > window:
        why = (
            f"the provider took {sent:,} input tokens, more than the window of {window:,}: something was cut or wrapped"
        )
    if why is None:
        return Ending(kind)
    overflow = ProviderOverflow(why, window=window, requested=sent, hint=OVERFLOW_HINT, provider=provider, model=model)
    return Ending("overflow", overflow)


class SilentCut(msgspec.Struct, frozen=True):
    """A server that cut the prompt and said nothing: it saw `seen` tokens of about `sent`."""

    seen: int
    sent: int

    @property
    def window(self) -> int:
        """What the server's window seems to be, in tokens."""
        return self.seen

    @property
    def message(self) -> str:
        """One sentence for the user, with the settings to change."""
        return (
            f"the server saw {self.seen:,} of about {self.sent:,} tokens: it cut the prompt without saying so. Raise its "
            "context size (num_ctx, or OLLAMA_CONTEXT_LENGTH for the server), or lower max_context_tokens here"
        )


def silently_cut(sent_estimate: int, prompt_tokens: int | None) -> SilentCut | None:
    """Whether a server read much less than was sent: 30% or more is missing (less than that is counting error).

    `prompt_tokens`: what its usage says, cached tokens included. Prompts under 256 tokens are not judged, nor are
    servers that report nothing or 0.
    """
    if not prompt_tokens or sent_estimate < 256 or prompt_tokens > 0.7 * sent_estimate:
        return None
    return SilentCut(prompt_tokens, sent_estimate)
