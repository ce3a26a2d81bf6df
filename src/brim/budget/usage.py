"""What a provider says a request used, in one neutral form, and what that costs.

`input` is the whole prompt, cached tokens included; `cached_read` and `cached_write` say how much of it was read from
and written to the cache. Providers differ: Anthropic's input_tokens leaves out both, OpenAI's prompt_tokens includes
what was cached, and so on; `parse_usage` knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from brim.budget.prices import Prices


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one response, or of several added up. `input` includes `cached_read` and `cached_write`, of which
    `cached_write_1h` was written for an hour; `output` includes `reasoning`. `reported` is false where the provider
    said nothing."""

    input: int = 0
    cached_read: int = 0
    cached_write: int = 0
    output: int = 0
    reasoning: int = 0
    cached_write_1h: int = 0
    reported: bool = True

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cached_read + other.cached_read,
            self.cached_write + other.cached_write,
            self.output + other.output,
            self.reasoning + other.reasoning,
            self.cached_write_1h + other.cached_write_1h,
            self.reported or other.reported,
        )

    @property
    def fresh(self) -> int:
        """Input tokens at the full price: neither read from nor written to the cache."""
        return max(0, self.input - self.cached_read - self.cached_write)

    @property
    def total(self) -> int:
        return self.input + self.output


NONE = Usage(reported=False)


def parse_usage(raw: Mapping[str, Any] | None, api: str = "") -> Usage:
    """Usage from a provider's usage object, or from a whole response that holds one.

    Knows OpenAI chat and Responses, Anthropic (also the partial objects of its stream, merged), DeepSeek, Gemini, xAI,
    Bedrock, Ollama's own API and llama.cpp, and the forms in which LangChain, the AI SDK and Codex hand usage on. The
    keys decide; `api` only where they could mean either. Nothing usable gives a Usage of zeros whose `reported` is
    false. Never raises.
    """
    if not isinstance(raw, Mapping):
        return NONE
    for key in ("usage", "usageMetadata", "usage_metadata"):
        inner = raw.get(key)
        if isinstance(inner, Mapping):
            usage = parse_usage(inner, api)
            if usage.reported:
                return usage
    if "promptTokenCount" in raw or "candidatesTokenCount" in raw or "prompt_token_count" in raw:
        return _gemini(raw)
    if "prompt_eval_count" in raw or "eval_count" in raw:
        return _make(raw, input=_int(raw, "prompt_eval_count"), output=_int(raw, "eval_count"))
    if "prompt_tokens" in raw or "completion_tokens" in raw:
        return _openai_chat(raw)
    if "inputTokens" in raw or "outputTokens" in raw:
        return _camel(raw)
    if "input_tokens" in raw or "output_tokens" in raw:
        if isinstance(raw.get("input_token_details"), Mapping) or "cached_input_tokens" in raw:
            return _handed_on(raw)
        details = raw.get("input_tokens_details")
        anthropic = "cache_read_input_tokens" in raw or "cache_creation_input_tokens" in raw or "cache_creation" in raw
        if isinstance(details, Mapping) or (api == "openai.responses" and not anthropic):
            return _responses(raw)
        return _anthropic(raw)
    if isinstance(raw.get("timings"), Mapping):
        return _llama_cpp(raw["timings"])
    if "prompt_n" in raw:
        return _llama_cpp(raw)
    if "tokens_evaluated" in raw:
        return _make(raw, input=_int(raw, "tokens_evaluated"), cached_read=_int(raw, "tokens_cached"),
                     output=_int(raw, "tokens_predicted"))  # fmt: skip
    return NONE


def cost_of(usage: Usage, prices: Prices | None) -> float:
    """US dollars for a usage; 0.0 where the prices are not known (say so beside it).

    Where a model has tiers, the tier is the one the whole prompt falls in: do not add up usages before asking.
    """
    if prices is None:
        return 0.0
    tier = prices.at(usage.input)
    hour = min(usage.cached_write_1h, usage.cached_write)
    return (
        usage.fresh * tier.input
        + usage.cached_read * tier.cache_read
        + (usage.cached_write - hour) * tier.cache_write
        + hour * (tier.cache_write_1h or tier.cache_write)
        + usage.output * tier.output
    ) / 1_000_000


def _openai_chat(raw: Mapping[str, Any]) -> Usage:
    """prompt_tokens includes what was cached. DeepSeek says prompt_cache_hit_tokens, Moonshot cached_tokens, llama.cpp
    and most others prompt_tokens_details.cached_tokens; gateways add Anthropic's cache_creation_input_tokens."""
    details = _map(raw, "prompt_tokens_details")
    hits = (details.get("cached_tokens"), raw.get("prompt_cache_hit_tokens"), raw.get("cached_tokens"),
            raw.get("cache_read_input_tokens"))  # fmt: skip
    writes = (details.get("cache_write_tokens"), details.get("cache_creation_tokens"),
              details.get("cache_creation_input_tokens"), raw.get("cache_creation_input_tokens"))  # fmt: skip
    prompt, said = _int(raw, "prompt_tokens"), _int(raw, "completion_tokens")
    reasoning = _int(_map(raw, "completion_tokens_details"), "reasoning_tokens")
    # What Anthropic counts apart cannot be within a smaller prompt: the gateway took over its figures as they were.
    apart = _int(raw, "cache_read_input_tokens") + _int(raw, "cache_creation_input_tokens")
    if apart > prompt:
        prompt += apart
    # A total over both is thoughts that the completion leaves out (xAI, and Gemini's compatible endpoint).
    unsaid = max(0, _int(raw, "total_tokens") - prompt - said)
    if unsaid and unsaid == (reasoning or unsaid):
        said, reasoning = said + unsaid, unsaid
    return _make(
        raw,
        input=prompt,
        cached_read=max(_number(hit) for hit in hits),
        cached_write=max(_number(write) for write in writes),
        output=said,
        reasoning=reasoning,
    )


def _camel(raw: Mapping[str, Any]) -> Usage:
    """Bedrock's Converse counts reads and writes apart, like Anthropic; the AI SDK's inputTokens includes cached ones."""
    read, write = _int(raw, "cacheReadInputTokens"), _int(raw, "cacheWriteInputTokens")
    return _make(
        raw,
        input=_int(raw, "inputTokens") + read + write,
        cached_read=read + _int(raw, "cachedInputTokens"),
        cached_write=write,
        output=_int(raw, "outputTokens"),
        reasoning=_int(raw, "reasoningTokens"),
    )


def _handed_on(raw: Mapping[str, Any]) -> Usage:
    """LangChain's usage_metadata and Codex's token counts: input_tokens is the whole prompt."""
    details = _map(raw, "input_token_details")
    return _make(
        raw,
        input=_int(raw, "input_tokens"),
        cached_read=_int(details, "cache_read") + _int(raw, "cached_input_tokens"),
        cached_write=_int(details, "cache_creation"),
        output=_int(raw, "output_tokens"),
        reasoning=_int(_map(raw, "output_token_details"), "reasoning") + _int(raw, "reasoning_output_tokens"),
    )


def _responses(raw: Mapping[str, Any]) -> Usage:
    details = _map(raw, "input_tokens_details")
    return _make(
        raw,
        input=_int(raw, "input_tokens"),
        cached_read=_int(details, "cached_tokens"),
        cached_write=_int(details, "cache_write_tokens"),
        output=_int(raw, "output_tokens"),
        reasoning=_int(_map(raw, "output_tokens_details"), "reasoning_tokens"),
    )


def _anthropic(raw: Mapping[str, Any]) -> Usage:
    """input_tokens is what stands after the last cache point: reads and writes come on top."""
    read = _int(raw, "cache_read_input_tokens")
    by_life = _map(raw, "cache_creation")
    hour = _int(by_life, "ephemeral_1h_input_tokens")
    write = max(_int(raw, "cache_creation_input_tokens"), hour + _int(by_life, "ephemeral_5m_input_tokens"))
    return _make(
        raw,
        input=_int(raw, "input_tokens") + read + write,
        cached_read=read,
        cached_write=write,
        output=_int(raw, "output_tokens"),
        reasoning=_int(_map(raw, "output_tokens_details"), "thinking_tokens"),
        cached_write_1h=hour,
    )


def _gemini(raw: Mapping[str, Any]) -> Usage:
    """promptTokenCount includes cached content. Candidates leave out the thoughts, which are paid as output, unless prompt
    and candidates already make up the total: some endpoints count them in."""

    def get(camel: str, snake: str) -> int:
        return _int(raw, camel) or _int(raw, snake)

    thoughts = get("thoughtsTokenCount", "thoughts_token_count")
    prompt, said = get("promptTokenCount", "prompt_token_count"), get("candidatesTokenCount", "candidates_token_count")
    within = said >= thoughts and prompt + said == get("totalTokenCount", "total_token_count")
    return _make(
        raw,
        input=prompt + get("toolUsePromptTokenCount", "tool_use_prompt_token_count"),
        cached_read=get("cachedContentTokenCount", "cached_content_token_count"),
        output=said if within else said + thoughts,
        reasoning=thoughts,
    )


def _llama_cpp(timings: Mapping[str, Any]) -> Usage:
    """prompt_n is what was evaluated anew, cache_n what was taken over from the request before."""
    cached = _int(timings, "cache_n")
    return _make(
        timings, input=_int(timings, "prompt_n") + cached, cached_read=cached, output=_int(timings, "predicted_n")
    )


def _make(
    raw: Mapping[str, Any],
    *,
    input: int,
    output: int,
    cached_read: int = 0,
    cached_write: int = 0,
    reasoning: int = 0,
    cached_write_1h: int = 0,
) -> Usage:
    """Clamped, so that a provider's slip (more cached than sent) cannot make a cost negative."""
    cached_read = min(cached_read, input)
    cached_write = min(cached_write, input - cached_read)
    if not (input or output):
        return NONE
    return Usage(input, cached_read, cached_write, output, min(reasoning, output), min(cached_write_1h, cached_write))


def _map(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = raw.get(key)
    return value if isinstance(value, Mapping) else {}


def _int(raw: Mapping[str, Any], key: str) -> int:
    return _number(raw.get(key))


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return 0
    return max(0, int(min(value, 1e15)))
