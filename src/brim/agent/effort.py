"""How hard a model should think, in the words of its API.

One setting, many spellings: `effort` (low, medium, high) or `thinking_budget` (tokens; 0 switches thinking off) become
the fields that a model takes. What it does not take is said once, in a note, rather than sent and refused. A server of
which nothing is known gets OpenAI's spelling; if it refuses the field, the wire client asks again without it.

Sources, read in November 2026: the vendors' pages on reasoning (OpenAI), effort and adaptive thinking (Anthropic), the
OpenAI-compatible endpoint (Google), thinking mode (DeepSeek), deep thinking (Alibaba Cloud), reasoning (OpenRouter, Groq).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from brim.providers import ModelRef

EFFORTS = ("low", "medium", "high")
BUDGETS: Mapping[str, int] = {"low": 2_048, "medium": 8_192, "high": 24_576}
"""Tokens of thinking that an effort means where a model takes only a budget."""
LEAST_BUDGET = 1_024
"""Anthropic's least `budget_tokens`."""

_REASONS = re.compile(r"(?:^|/)(?:o[134](?:$|-)|gpt-(?:[5-9]|oss)|codex)", re.I)
"""OpenAI's models that reason."""
_CHAT_ONLY = re.compile(r"(?:^|/)(?:gpt-(?:3|4)|chatgpt-|gpt-5[\w.]*-chat)", re.I)


class Thought(msgspec.Struct, frozen=True):
    """`fields` for the body; `dropped`: names of fields that may not stand beside them; `room`: tokens of thinking that
    count against the maximum of the answer; `notes` for the user."""

    fields: Mapping[str, Any] = {}
    dropped: tuple[str, ...] = ()
    room: int = 0
    notes: tuple[str, ...] = ()


def thinking_fields(
    model: ModelRef, effort: str | None, budget: int | None, *, max_tokens: int | None = None, temperature: bool = False
) -> Thought:
    """What a body needs for this model. `budget` wins over `effort`; `max_tokens` is the user's own maximum of an answer,
    `temperature` whether one was set."""
    if effort is None and budget is None:
        return Thought()
    if model.provider == "local":
        return Thought(notes=(f"{model.full_name} does not think: effort and thinking_budget are left out",))
    if model.api == "anthropic.messages":
        return _anthropic(model, effort, budget, max_tokens, temperature)
    make = _DIALECTS.get(_dialect(model), _openai)
    return make(model, effort, budget)


def _dialect(model: ModelRef) -> str:
    """Whose spelling a server takes: that of its preset, or of where its address leads."""
    for name, mark in (
        ("dashscope", "dashscope"), ("deepseek", "deepseek.com"), ("gemini", "googleapis.com"),
        ("openrouter", "openrouter.ai"), ("mistral", "mistral.ai"), ("groq", "groq.com"),
    ):  # fmt: skip
        if model.provider == name or mark in model.base_url:
            return name
    return ""


def effort_of(budget: int) -> str:
    """The effort nearest to a budget, for models that take only that."""
    return "low" if budget <= 4_096 else "medium" if budget <= 16_384 else "high"


def _as_effort(model: ModelRef, effort: str | None, budget: int | None) -> tuple[str, tuple[str, ...]]:
    if budget is None:
        return str(effort), ()
    level = "none" if budget == 0 else effort_of(budget)
    return level, (f"{model.full_name} takes no thinking budget: {budget:,} tokens are sent as effort {level}",)


def _openai(model: ModelRef, effort: str | None, budget: int | None) -> Thought:
    known = "api.openai.com" in model.base_url  # elsewhere any model may stand behind the name
    if _CHAT_ONLY.search(model.model) or (known and not _REASONS.search(model.model)):
        return Thought(notes=(f"{model.full_name} does not think: effort and thinking_budget are left out",))
    level, notes = _as_effort(model, effort, budget)
    if model.api == "openai.responses":
        return Thought({"reasoning": {"effort": level}}, notes=notes)
    return Thought({"reasoning_effort": level}, notes=notes)


def _dashscope(model: ModelRef, effort: str | None, budget: int | None) -> Thought:
    if model.api == "openai.responses":
        return _openai(model, effort, budget)
    tokens = BUDGETS[str(effort)] if budget is None else budget
    if tokens == 0:
        return Thought({"enable_thinking": False})
    return Thought({"enable_thinking": True, "thinking_budget": tokens})


def _deepseek(model: ModelRef, effort: str | None, budget: int | None) -> Thought:
    level, notes = _as_effort(model, effort, budget)
    if model.api == "openai.responses":
        return Thought({"reasoning": {"effort": level}}, notes=notes)
    if level == "none":
        return Thought({"thinking": {"type": "disabled"}})
    return Thought({"thinking": {"type": "enabled"}, "reasoning_effort": level}, ("temperature",), notes=notes)


def _gemini(model: ModelRef, effort: str | None, budget: int | None) -> Thought:
    if budget is None:
        return Thought({"reasoning_effort": effort})
    if re.search(r"gemini-(?:1|2)", model.model):
        # the endpoint's own extension: a field of this name in the body itself
        return Thought({"extra_body": {"google": {"thinking_config": {"thinking_budget": budget}}}})
    level, notes = _as_effort(model, effort, budget)  # from Gemini 3 on there are levels in place of budgets
    return Thought({"reasoning_effort": level}, notes=notes)


def _openrouter(model: ModelRef, effort: str | None, budget: int | None) -> Thought:
    if budget is None:
        return Thought({"reasoning": {"effort": effort}})
    return Thought({"reasoning": {"enabled": False} if budget == 0 else {"max_tokens": budget}})


def _mistral(model: ModelRef, effort: str | None, budget: int | None) -> Thought:
    return Thought(notes=(f"{model.full_name} has no setting for how hard it thinks: effort is left out",))


def _groq(model: ModelRef, effort: str | None, budget: int | None) -> Thought:
    if "gpt-oss" in model.model:
        return _openai(model, effort, budget)
    return Thought(notes=(f"{model.full_name} takes no effort on Groq: it is left out",))


_DIALECTS = {
    "dashscope": _dashscope, "deepseek": _deepseek, "gemini": _gemini, "openrouter": _openrouter, "mistral": _mistral,
    "groq": _groq,
}  # fmt: skip


def claude_version(model: str) -> tuple[int, int] | None:
    """The generation of a Claude model in any vendor's spelling: `claude-sonnet-4-6` and `claude-3-7-sonnet-20250219`."""
    found = re.search(r"claude-(?:[a-z]+-)*(\d{1,2})(?:[-.](\d{1,2})(?!\d))?", model.lower())
    return (int(found[1]), int(found[2] or 0)) if found else None


def _anthropic(
    model: ModelRef, effort: str | None, budget: int | None, max_tokens: int | None, temperature: bool
) -> Thought:
    version = claude_version(model.model)
    if version is not None and version < (3, 7):
        return Thought(notes=(f"{model.full_name} does not think: effort and thinking_budget are left out",))
    if budget == 0:
        return Thought({"thinking": {"type": "disabled"}})
    said: tuple[str, ...] = ()
    if temperature:
        said = (f"{model.full_name} takes no temperature while it thinks: it is left out",)
    if version is None or version >= (4, 6):
        level, notes = _as_effort(model, effort, budget)
        fields = {"thinking": {"type": "adaptive"}, "output_config": {"effort": level}}
        return Thought(fields, ("temperature",), BUDGETS[level] // 4, (*said, *notes))
    tokens = BUDGETS[str(effort)] if budget is None else budget
    if max_tokens is not None and max_tokens - 1 < tokens:
        tokens = max_tokens - 1
    if tokens < LEAST_BUDGET:
        why = f"{tokens:,} tokens are less than the {LEAST_BUDGET:,} it needs (max_tokens must be larger than its thinking)"
        return Thought(notes=(f"{model.full_name} answers without thinking: {why}",))
    return Thought({"thinking": {"type": "enabled", "budget_tokens": tokens}}, ("temperature",), tokens, said)
