"""What a provider's stream is made of, whichever API it speaks, and the seam every provider fits.

A stream is deltas in the order they arrived, then exactly one `Done`. A failure is an exception out of
`brim.errors`, never an event: a stream that ends without `Done` raised. Durations are the caller's to measure.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from brim.budget.usage import NONE, Usage

Ended: TypeAlias = Literal["complete", "tool_calls", "output_limit", "overflow", "refused", "other"]


class TextDelta(msgspec.Struct, frozen=True, tag="text"):
    """A piece of the answer's text."""

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, tag="thinking"):
    """A piece of the model's reasoning, for display; the block itself is in `Done.message`."""

    text: str


class ToolCallDelta(msgspec.Struct, frozen=True, tag="tool_call"):
    """A piece of a tool call. `index` counts the calls of this answer from 0; `id` and `name` are what is known of
    them so far ("" if nothing); `arguments` is the new piece of JSON text, "" where a piece only names the call."""

    index: int
    id: str
    name: str
    arguments: str


class Notice(msgspec.Struct, frozen=True, tag="notice"):
    """Something the user should see that is neither answer nor failure (a wait before a retry, an adapted request)."""

    text: str
    kind: str = "notice"
    data: Mapping[str, Any] = {}


class Done(msgspec.Struct, frozen=True, tag="done", kw_only=True):
    """The end of an answer.

    `message`: what `brim.formats.parse_message(message, api)` reads: the assistant message of openai.chat and
    anthropic.messages, the list of output items of openai.responses. `finish_reason` is the provider's own word ("" if it
    gave none), `ended` what it means. `usage.reported` is false where the server reported none; `raw_usage` is its own
    object.
    """

    message: dict[str, Any] | list[dict[str, Any]]
    api: str
    finish_reason: str = ""
    usage: Usage = NONE
    raw_usage: dict[str, Any] | None = None
    response_id: str | None = None
    model: str | None = None

    @property
    def ended(self) -> Ended:
        """What `finish_reason` means; a word nobody knows is "other", never an error."""
        return ended_of(self.finish_reason)


Event: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta | Notice | Done


@runtime_checkable
class Provider(Protocol):
    """Anything that answers a request body in its `api`. Raises ProviderError (or ModelMissing) out of both calls."""

    name: str
    api: str

    def stream(self, body: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        """Send `body` and yield events as they come. Closing the generator closes the connection."""
        ...

    async def complete(self, body: Mapping[str, Any]) -> Done:
        """Send `body` without streaming."""
        ...

    async def close(self) -> None:
        """Let go of connections or of the loaded model."""
        ...


_ENDED: dict[str, Ended] = {
    # OpenAI chat and its many speakers, Responses, Anthropic
    "stop": "complete", "end_turn": "complete", "stop_sequence": "complete", "completed": "complete", "eos": "complete",
    "eos_token": "complete", "pause_turn": "complete", "complete": "complete",
    "tool_calls": "tool_calls", "tool_use": "tool_calls", "function_call": "tool_calls",
    "length": "output_limit", "max_tokens": "output_limit", "max_output_tokens": "output_limit",
    "model_length": "output_limit", "max_new_tokens": "output_limit", "max_total_tokens": "output_limit",
    "model_context_window_exceeded": "overflow", "context_window_exceeded": "overflow",
    "context_length_exceeded": "overflow", "context_length": "overflow",
    "content_filter": "refused", "refusal": "refused", "safety": "refused", "sensitive": "refused",
    "recitation": "refused", "prohibited_content": "refused", "blocklist": "refused", "spii": "refused",
    "image_safety": "refused", "guardrail_intervened": "refused", "content_filtered": "refused", "error_toxic": "refused",
}  # fmt: skip


def ended_of(finish_reason: str | None) -> Ended:
    """What a provider's finish reason means. Words that name the context window are an overflow, whatever their form."""
    if not finish_reason:
        return "complete"
    word = finish_reason.strip().lower().replace("-", "_").replace(" ", "_")
    known = _ENDED.get(word)
    if known is not None:
        return known
    if "context" in word and ("exceed" in word or "length" in word or "window" in word or "overflow" in word):
        return "overflow"
    return "other"
