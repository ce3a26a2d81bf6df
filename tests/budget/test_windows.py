"""Windows of models: known where a table has them, assumed and said so where not, learned from refusals."""

from __future__ import annotations

import pytest

from brim.budget import ASSUMED_WINDOW, Windows, budget_for, learn_window, reserve, window_of
from brim.budget.windows import WINDOWS


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o", 128_000),
        ("openai/gpt-4o-2024-08-06", 128_000),
        ("gpt-4", 8_192),
        ("gpt-3.5-turbo", 16_385),
        ("gpt-5", 400_000),
        ("o3", 200_000),
        ("claude-sonnet-4-5-20250929", 200_000),
        ("claude-sonnet-4-20250514", 200_000),
        ("claude-3-5-haiku-latest", 200_000),
        ("claude-opus-4-8", 1_000_000),
        ("claude-sonnet-4-6", 1_000_000),
        ("gemini-3-pro-preview", 1_048_576),
        ("gemini-2.5-pro", 1_048_576),
        ("deepseek/deepseek-chat", 131_072),
        ("mistral/mistral-large-latest", 262_144),
        ("qwen-max", 32_768),
        ("dashscope/qwen3-coder-plus", 1_000_000),
        ("groq/llama-3.3-70b-versatile", 131_072),
        ("kimi-k2-0905-preview", 262_144),
    ],
)
def test_known_models_have_their_window(model: str, window: int) -> None:
    """The providers' figures, with and without a prefix, not marked as assumed."""
    assert Windows().of(model) == (window, False)


@pytest.mark.parametrize(
    "model", ["my-company/custom-model-v7", "MiniMax-M9", "qwen36-35b", "ollama/gpt-oss:20b", "local/x", None, ""]
)
def test_unknown_models_get_an_assumption_that_is_called_one(model: str | None) -> None:
    """128,000, assumed, and a budget that lets a one-word chat be."""
    window, assumed = Windows().of(model)
    assert (window, assumed) == (ASSUMED_WINDOW, True)
    assert budget_for(window, reserve(window, None), 0, 0, 3, 150_000).messages > 100_000


def test_what_a_refusal_teaches_holds_for_the_rest() -> None:
    """A learned window replaces assumption and table for that model alone; an explicit one always wins."""
    windows = Windows()
    windows.learn("my-company/custom-model-v7", 32_768)
    assert windows.of("my-company/custom-model-v7") == (32_768, False)
    assert windows.of("My-Company/Custom-Model-v7") == (32_768, False)
    assert windows.of("custom-model-v7") == (32_768, False)
    assert windows.of("elsewhere/custom-model-v7") == (ASSUMED_WINDOW, True)
    assert windows.of("my-company/custom-model-v7", explicit=64_000) == (64_000, False)
    windows.learn("gpt-4o", 100_000)
    assert windows.of("openai/gpt-4o") == (100_000, False)
    windows.forget()
    assert windows.of("gpt-4o") == (128_000, False)


def test_nonsense_teaches_nothing() -> None:
    """No model, no figure, or a figure that is no window: nothing is learned, and windows do not leak into another."""
    windows = Windows()
    for model, tokens in ((None, 5_000), ("", 5_000), ("m", None), ("m", 0), ("m", -1)):
        windows.learn(model, tokens)
    assert windows.of("m") == (ASSUMED_WINDOW, True)
    windows.learn("m", 9_000)
    assert Windows().of("m") == (ASSUMED_WINDOW, True)


def test_the_process_has_one_set_of_windows() -> None:
    """The plain functions share what was learned; a later refusal corrects an earlier one."""
    model = "test-only/remembered-model"
    try:
        learn_window(model, 32_768)
        assert window_of(model) == (32_768, False)
        learn_window(model, 16_384)
        assert window_of(model) == (16_384, False) and window_of(model, 8_192) == (8_192, False)
    finally:
        WINDOWS.forget()
