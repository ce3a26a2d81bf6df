"""How hard a model should think is said in the words of its API, and what it does not take is left out and told."""

from __future__ import annotations

from typing import Any

import pytest

from brim.agent.effort import claude_version, thinking_fields
from brim.errors import ConfigError
from brim.providers import ModelRef, resolve_model


def ref(name: str, **more: Any) -> ModelRef:
    made = resolve_model(name, {})
    import msgspec

    return msgspec.structs.replace(made, **more)


FIELDS: list[tuple[str, str, str | None, int | None, dict[str, Any]]] = [
    ("openai/gpt-6.1-terra", "openai.chat", "low", None, {"reasoning_effort": "low"}),
    ("openai/o3", "openai.responses", "high", None, {"reasoning": {"effort": "high"}}),
    ("openai/gpt-4o", "openai.chat", "high", None, {}),
    ("openai/gpt-4.1-mini", "openai.responses", "high", None, {}),
    ("openai/gpt-5", "openai.chat", None, 3_000, {"reasoning_effort": "low"}),
    ("dashscope/qwen-plus", "openai.chat", "medium", None, {"enable_thinking": True, "thinking_budget": 8_192}),
    ("dashscope/qwen-plus", "openai.chat", None, 500, {"enable_thinking": True, "thinking_budget": 500}),
    ("dashscope/qwen-plus", "openai.chat", None, 0, {"enable_thinking": False}),
    ("deepseek/deepseek-flash", "openai.chat", "low", None, {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
    ("deepseek/deepseek-flash", "openai.chat", None, 0, {"thinking": {"type": "disabled"}}),
    ("gemini/gemini-3.8-flash", "openai.chat", "medium", None, {"reasoning_effort": "medium"}),
    ("gemini/gemini-3.8-flash", "openai.chat", None, 20_000, {"reasoning_effort": "high"}),
    (
        "gemini/gemini-2.5-pro", "openai.chat", None, 900,
        {"extra_body": {"google": {"thinking_config": {"thinking_budget": 900}}}},
    ),
    ("openrouter/x/y", "openai.chat", "high", None, {"reasoning": {"effort": "high"}}),
    ("openrouter/x/y", "openai.chat", "high", 700, {"reasoning": {"max_tokens": 700}}),
    ("mistral/mistral-medium-latest", "openai.chat", "high", None, {}),
    ("groq/openai/gpt-oss-120b", "openai.chat", "high", None, {"reasoning_effort": "high"}),
    ("ollama/qwen3:8b", "openai.chat", "high", None, {"reasoning_effort": "high"}),
    (
        "anthropic/claude-sonnet-5-5", "anthropic.messages", "low", None,
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
    ),
    (
        "anthropic/claude-opus-4-6", "anthropic.messages", None, 30_000,
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
    ),
    ("anthropic/claude-sonnet-4-5-20250929", "anthropic.messages", "low", None,
     {"thinking": {"type": "enabled", "budget_tokens": 2_048}}),
    ("anthropic/claude-3-7-sonnet-20250219", "anthropic.messages", None, 5_000,
     {"thinking": {"type": "enabled", "budget_tokens": 5_000}}),
    ("anthropic/claude-3-5-haiku-20241022", "anthropic.messages", "low", None, {}),
    ("anthropic/claude-sonnet-5-5", "anthropic.messages", None, 0, {"thinking": {"type": "disabled"}}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "api", "effort", "budget", "fields"), FIELDS)
def test_each_api_gets_its_own_spelling(
    name: str, api: str, effort: str | None, budget: int | None, fields: dict[str, Any]
) -> None:
    """One setting becomes the fields that a model takes; where that is none, or another one, a note says so."""
    made = thinking_fields(ref(name, api=api), effort, budget)
    assert made.fields == fields
    said = " ".join(made.notes)
    if not fields:
        assert name in said and "left out" in said
    if budget and "effort" in str(fields):
        assert f"{budget:,} tokens are sent as effort" in said


def test_nothing_asked_sends_nothing() -> None:
    """Without an effort or a budget a body has no field about thinking, and nothing is said."""
    made = thinking_fields(ref("anthropic/claude-sonnet-5-5"), None, None)
    assert (made.fields, made.notes, made.dropped) == ({}, (), ())


def test_an_unknown_server_behind_openais_name_is_asked_in_openais_words() -> None:
    """A base URL of the user's own may serve any model: the field is sent; only chat models of known names are spared."""
    own = resolve_model("openai/Qwen3-8B", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert thinking_fields(own, "low", None).fields == {"reasoning_effort": "low"}
    deepseek = resolve_model("openai/deepseek-flash", {"OPENAI_BASE_URL": "https://api.deepseek.com/v1"})
    assert thinking_fields(deepseek, "low", None).fields["thinking"] == {"type": "enabled"}


def test_claude_takes_no_temperature_while_it_thinks() -> None:
    """The temperature goes, and that is said; a budget stays below the maximum of the answer, or thinking is left out."""
    made = thinking_fields(ref("anthropic/claude-sonnet-4-5"), "high", None, max_tokens=5_000, temperature=True)
    assert made.fields == {"thinking": {"type": "enabled", "budget_tokens": 4_999}}
    assert "temperature" in made.dropped and "temperature" in made.notes[0]
    small = thinking_fields(ref("anthropic/claude-sonnet-4-5"), "high", None, max_tokens=800)
    assert small.fields == {} and "1,024" in small.notes[0]


def test_generations_of_claude() -> None:
    """Both orders of a Claude name, and other vendors' spellings of it, are understood."""
    for name, version in {
        "claude-sonnet-4-5-20250929": (4, 5), "claude-3-7-sonnet-20250219": (3, 7), "claude-opus-4-20250514": (4, 0),
        "anthropic.claude-opus-4-6-v1:0": (4, 6), "claude-sonnet-5-5": (5, 5), "anthropic/claude-opus-4.1": (4, 1),
        "claude-haiku-5": (5, 0),
    }.items():  # fmt: skip
        assert claude_version(name) == version, name
    assert claude_version("gpt-5") is None


def test_an_effort_that_is_none_is_refused(tmp_path: Any) -> None:
    """Only the three words are efforts; the error says where the wrong one was set."""
    from brim.agent.config import load_config

    (tmp_path / "config.toml").write_text('effort = "hard"\n')
    with pytest.raises(ConfigError) as told:
        load_config(tmp_path, {"BRIM_CONFIG": str(tmp_path / "config.toml")})
    assert "config.toml" in told.value.message and "low, medium, high" in (told.value.hint or "")
