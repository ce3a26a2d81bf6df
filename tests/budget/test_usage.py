"""One meaning of usage for every provider, and a cost that counts each token once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.budget import Prices, Tier, Usage, cost_of, make_prices, parse_usage

PRICES = make_prices(3.0, 15.0, cache_read=0.3, cache_write=3.75, cache_write_1h=6.0)


@pytest.mark.parametrize(
    ("raw", "api", "usage"),
    [
        (
            {"input_tokens": 4, "cache_creation_input_tokens": 80_000, "cache_read_input_tokens": 0, "output_tokens": 200},
            "anthropic.messages",
            Usage(80_004, 0, 80_000, 200),
        ),
        (
            {"input_tokens": 6, "cache_creation_input_tokens": 3_000, "cache_read_input_tokens": 80_004,
             "output_tokens": 150, "cache_creation": {"ephemeral_5m_input_tokens": 1_000, "ephemeral_1h_input_tokens": 2_000}},
            "",
            Usage(83_010, 80_004, 3_000, 150, cached_write_1h=2_000),
        ),
        ({"input_tokens": 12, "output_tokens": 5}, "anthropic.messages", Usage(12, 0, 0, 5)),
        (
            {"prompt_tokens": 10_000, "prompt_tokens_details": {"cached_tokens": 8_000}, "completion_tokens": 100,
             "completion_tokens_details": {"reasoning_tokens": 60}},
            "openai.chat",
            Usage(10_000, 8_000, 0, 100, 60),
        ),
        (
            {"input_tokens": 500, "input_tokens_details": {"cached_tokens": 256}, "output_tokens": 90,
             "output_tokens_details": {"reasoning_tokens": 64}, "total_tokens": 590},
            "openai.responses",
            Usage(500, 256, 0, 90, 64),
        ),
        (
            {"prompt_tokens": 900, "completion_tokens": 20, "prompt_cache_hit_tokens": 640, "prompt_cache_miss_tokens": 260},
            "openai.chat",
            Usage(900, 640, 0, 20),
        ),
        ({"prompt_tokens": 900, "completion_tokens": 20, "cached_tokens": 128}, "", Usage(900, 128, 0, 20)),
        (  # xAI: the completion leaves out the reasoning
            {"prompt_tokens": 41, "completion_tokens": 104, "total_tokens": 1_021,
             "completion_tokens_details": {"reasoning_tokens": 876}},
            "openai.chat",
            Usage(41, 0, 0, 980, 876),
        ),
        (  # Gemini's compatible endpoint: the thoughts are in the total alone
            {"prompt_tokens": 5, "completion_tokens": 10, "total_tokens": 115}, "openai.chat", Usage(5, 0, 0, 110, 100),
        ),
        (  # a gateway that hands Anthropic's figures on under OpenAI's names
            {"prompt_tokens": 6, "completion_tokens": 150, "cache_creation_input_tokens": 3_000,
             "cache_read_input_tokens": 80_004, "total_tokens": 156},
            "openai.chat",
            Usage(83_010, 80_004, 3_000, 150),
        ),
        (
            {"inputTokens": 6, "outputTokens": 150, "totalTokens": 83_160, "cacheReadInputTokens": 80_004,
             "cacheWriteInputTokens": 3_000},
            "",
            Usage(83_010, 80_004, 3_000, 150),
        ),
        (
            {"inputTokens": 500, "outputTokens": 90, "cachedInputTokens": 256, "reasoningTokens": 64},
            "",
            Usage(500, 256, 0, 90, 64),
        ),
        (
            {"usage_metadata": {"input_tokens": 500, "output_tokens": 90, "total_tokens": 590,
                                "input_token_details": {"cache_read": 200, "cache_creation": 100},
                                "output_token_details": {"reasoning": 64}}},
            "",
            Usage(500, 200, 100, 90, 64),
        ),
        (
            {"input_tokens": 226_616, "cached_input_tokens": 176_640, "output_tokens": 1_670,
             "reasoning_output_tokens": 529, "total_tokens": 228_286},
            "",
            Usage(226_616, 176_640, 0, 1_670, 529),
        ),
        (
            {"prompt_tokens": 4_000, "completion_tokens": 9, "cache_creation_input_tokens": 1_000,
             "cache_read_input_tokens": 2_000},
            "",
            Usage(4_000, 2_000, 1_000, 9),
        ),
        (
            {"promptTokenCount": 1_990, "cachedContentTokenCount": 1_024, "candidatesTokenCount": 100,
             "thoughtsTokenCount": 80, "totalTokenCount": 2_170},
            "",
            Usage(1_990, 1_024, 0, 180, 80),
        ),
        ({"model": "llama3.2", "prompt_eval_count": 26, "eval_count": 298, "done": True}, "", Usage(26, 0, 0, 298)),
        ({"timings": {"prompt_n": 40, "cache_n": 2_000, "predicted_n": 12}}, "", Usage(2_040, 2_000, 0, 12)),
        ({"content": "x", "tokens_evaluated": 300, "tokens_cached": 120, "tokens_predicted": 7}, "", Usage(300, 120, 0, 7)),
        (
            {"id": "c", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}, "timings": {"prompt_n": 1}},
            "openai.chat",
            Usage(7, 0, 0, 3),
        ),
        ({"candidates": [], "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2}}, "", Usage(5, 0, 0, 2)),
    ],
    ids=["anthropic write", "anthropic read", "anthropic plain", "openai", "responses", "deepseek", "moonshot", "xai",
         "gemini compatible", "gateway apart", "bedrock", "ai sdk", "langchain", "codex", "gateway",
         "gemini", "ollama", "llama.cpp", "llama.cpp completion", "whole response", "whole gemini response"],
)  # fmt: skip
def test_each_provider_is_read_by_its_own_rules(raw: dict[str, Any], api: str, usage: Usage) -> None:
    """Input includes cached tokens whatever the provider's own field means; output includes reasoning."""
    assert parse_usage(raw, api) == usage


def anthropic(fresh: int, written: int, read: int, output: int) -> dict[str, int]:
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": output,
    }


def test_cost_of_a_cached_session_is_exact() -> None:
    """Writes and reads have their own prices, nothing is charged twice, and a session costs the sum of its turns."""
    usages = [
        parse_usage(anthropic(4, 80_000, 0, 200)),
        parse_usage(anthropic(6, 3_000, 80_004, 150)),
        parse_usage(
            {"prompt_tokens": 10_000, "prompt_tokens_details": {"cached_tokens": 8_000}, "completion_tokens": 100}
        ),
    ]
    assert [usage.input for usage in usages] == [80_004, 83_010, 10_000]
    costs = [cost_of(usage, PRICES) for usage in usages]
    assert costs == pytest.approx([0.303012, 0.0375192, 0.0099])
    total = usages[0] + usages[1] + usages[2]
    assert (total.input, total.cached_read, total.cached_write, total.output) == (173_014, 88_004, 83_000, 450)
    assert cost_of(total, PRICES) == pytest.approx(sum(costs))


def test_an_hour_in_the_cache_has_its_price() -> None:
    """Anthropic's one-hour writes cost twice the input, the rest 1.25 times."""
    usage = Usage(3_000, 0, 3_000, 0, cached_write_1h=2_000)
    assert cost_of(usage, PRICES) == pytest.approx((1_000 * 3.75 + 2_000 * 6.0) / 1e6)
    assert cost_of(usage, make_prices(3.0, 15.0, 0.3, 3.75)) == pytest.approx(3_000 * 3.75 / 1e6)


def test_a_long_prompt_costs_its_tier() -> None:
    """Over the threshold every token of the request costs the higher price; at it, the lower."""
    prices = Prices((Tier(2, 12, 0.2, 2), Tier(4, 18, 0.4, 4, above=200_000)))
    assert cost_of(Usage(200_000, 0, 0, 10), prices) == pytest.approx((200_000 * 2 + 10 * 12) / 1e6)
    assert cost_of(Usage(200_001, 100_000, 0, 10), prices) == pytest.approx((100_001 * 4 + 100_000 * 0.4 + 180) / 1e6)


def test_no_usage_is_known_to_be_none() -> None:
    """A provider that reports nothing gives zeros that are marked as not reported; no prices, no cost."""
    nothing: tuple[dict[str, Any] | None, ...] = (
        None, {}, {"usage": None}, {"prompt_tokens": None}, {"input_tokens": "many"}, {"choices": []},
    )  # fmt: skip
    for raw in nothing:
        usage = parse_usage(raw)
        assert usage == Usage(reported=False)
    assert (Usage(1, reported=False) + Usage(2)).reported
    assert cost_of(Usage(10, 0, 0, 10), None) == 0.0


KEYS = st.sampled_from(
    ["usage", "prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "prompt_tokens_details",
     "input_tokens_details", "cached_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation",
     "promptTokenCount", "usageMetadata", "timings", "prompt_n", "cache_n", "prompt_eval_count", "tokens_evaluated"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, JSON, max_size=6))
def test_odd_usage_never_raises_nor_costs_less_than_nothing(raw: dict[str, Any]) -> None:
    """Whatever a server sends: no error, no negative figure, and never more cached than sent."""
    usage = parse_usage(raw)
    assert min(usage.input, usage.cached_read, usage.cached_write, usage.output, usage.fresh) >= 0
    assert usage.cached_read + usage.cached_write <= usage.input and usage.reasoning <= usage.output
    assert cost_of(usage, PRICES) >= 0
