"""Prices by model, from config, our table and genai-prices; relative prices and cache rules for the engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from brim.budget import Prices, Tier, Usage, cache_rules, cost_of, prices_of, relative_prices
from brim.errors import ConfigError

DATA = Path(os.environ.get("BRIM_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


@pytest.mark.parametrize(
    ("model", "prices"),
    [
        ("gpt-4o", (2.5, 10.0, 1.25, 2.5)),
        ("openai/gpt-4o-mini-2024-07-18", (0.15, 0.6, 0.075, 0.15)),
        ("claude-sonnet-4-5", (3.0, 15.0, 0.3, 3.75)),
        ("bedrock/us.anthropic.claude-opus-4-1-20250805-v1:0", (15.0, 75.0, 1.5, 18.75)),
        ("google/gemini-3-pro-preview", (2.0, 12.0, 0.2, 2.0)),
        ("dashscope/qwen-plus-latest", (0.4, 1.2, 0.08, 0.4)),
        ("qwen3-coder-plus", (1.0, 5.0, 0.1, 1.0)),
        ("deepseek/deepseek-chat", (0.28, 0.42, 0.028, 0.28)),
        ("ollama/llama3.2", (0.0, 0.0, 0.0, 0.0)),
    ],
)
def test_known_models_have_their_list_prices(model: str, prices: tuple[float, float, float, float]) -> None:
    """US dollars per million tokens of input, output, cache read and cache write, with and without a provider's name."""
    found = prices_of(model)
    assert found is not None
    assert (found.input, found.output, found.cache_read, found.cache_write) == pytest.approx(prices)


@pytest.mark.parametrize("model", [None, "", "my-company/custom-model-v7", "MiniMax-M9", "qwen36-35b", "gpt-oss:20b"])
def test_unknown_models_have_no_price(model: str | None) -> None:
    """No price is invented; what the engine assumes instead is marked as assumed."""
    assert prices_of(model) is None
    assert relative_prices(model) == (1.25, 0.10, False)


@pytest.mark.parametrize(
    ("model", "write", "read"),
    [
        ("claude-sonnet-4-5", 1.25, 0.1), ("gpt-4o", 1.0, 0.5), ("gpt-4.1", 1.0, 0.25), ("gpt-5", 1.0, 0.1),
        ("gemini-2.5-flash", 1.0, 0.1), ("gpt-4", 1.0, 1.0), ("qwen-max", 1.0, 0.2), ("ollama/llama3.2", 1.0, 0.0),
    ],
)  # fmt: skip
def test_relative_prices_say_what_an_edit_costs(model: str, write: float, read: float) -> None:
    """Cache write and read against one uncached input token, known for known models."""
    assert relative_prices(model)[:2] == pytest.approx((write, read)) and relative_prices(model)[2]


def test_long_context_has_its_tier() -> None:
    """Models with a price for long prompts have it, ours and genai-prices' alike."""
    gemini, qwen = prices_of("gemini-3-pro-preview"), prices_of("qwen3-coder-plus")
    assert gemini is not None and qwen is not None
    assert gemini.at(200_000).input == 2.0 and gemini.at(200_001).input == 4.0
    assert [qwen.at(size).input for size in (1_000, 40_000, 200_000, 300_000)] == [1.0, 1.8, 3.0, 6.0]


def test_config_overrides_every_table() -> None:
    """A price given by the user wins, by full name, bare name or pattern; a mistake names the entry."""
    given = {
        "my-model": {"input": 1, "output": 2, "cache_read": 0.25, "cache_write": 1.25},
        "openrouter/*": {"input": 5, "output": 5},
    }
    assert prices_of("house/My-Model", given) == Prices((Tier(1.0, 2.0, 0.25, 1.25),), "config")
    assert relative_prices("my-model", given) == (1.25, 0.25, True)
    assert relative_prices("openrouter/openai/gpt-4o", given) == (1.0, 1.0, True)
    assert prices_of("gpt-4o", given) == prices_of("gpt-4o")
    for bad in ({"input": 1}, {"input": "dear", "output": 1}, {"input": 1, "output": 1, "ouput": 2}, 5):
        with pytest.raises(ConfigError, match="'my-model'"):
            prices_of("my-model", {"my-model": bad})
    with pytest.raises(ConfigError, match="below 0"):
        prices_of("my-model", {"my-model": {"input": -1, "output": 1}})


def test_cache_rules_are_the_providers() -> None:
    """Who caches by itself, from how many tokens, for how long, and how many marks a request may set."""
    claude = cache_rules("anthropic/claude-sonnet-4-5")
    assert not claude.automatic and claude.marks == 4 and claude.life_s == 300 and claude.minimum == 1_024
    assert cache_rules("claude-opus-4-8").minimum == 4_096
    assert cache_rules("gpt-4o").automatic and cache_rules("gpt-4o").minimum == 1_024
    assert cache_rules("deepseek-chat").minimum == 64 and cache_rules("deepseek-chat").life_s == 3_600
    assert cache_rules("ollama/llama3.2").life_s == 3_600
    assert cache_rules(None).automatic


def test_importing_the_package_reads_no_price_table() -> None:
    """The large table is imported on first use, and never goes to the network."""
    heavy = ("genai_prices", "toktok", "tiktoken")
    program = f"import sys, brim.budget, brim.tokens; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(not DATA.exists(), reason="the recorded transcripts are not here: set BRIM_DATA to their folder")
def test_recorded_costs_are_reproduced() -> None:
    """Table prices and the recorded cached tokens give each session's recorded cost within 5%."""
    prices = prices_of("google/gemini-3-pro-preview")
    sessions = 0
    with (DATA / "coding_mini_swe_gemini3.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            usages = [usage for usage in json.loads(line)["recorded_usage"] if usage["cost_usd"]]
            if not usages:
                continue
            sessions += 1
            ours = sum(
                cost_of(Usage(u["prompt_tokens"], u["cached_tokens"], 0, u["completion_tokens"]), prices)
                for u in usages
            )
            assert ours == pytest.approx(sum(u["cost_usd"] for u in usages), rel=0.05)
    assert sessions >= 20
