"""How each provider keeps prompt prefixes: by itself or where marked, from what size on, and for how long."""

from __future__ import annotations

import msgspec

from brim.budget.models import LOCAL
from brim.budget.names import bare_name, provider_of


class CacheRules(msgspec.Struct, frozen=True):
    """How a provider keeps prefixes: by itself or where the request marks them, from how many tokens on, how long after
    the last use in seconds, and at most how many marks."""

    automatic: bool
    minimum: int
    life_s: float
    marks: int = 0


def cache_rules(model: str | None) -> CacheRules:
    """The rules of a model's provider, from their prompt caching pages (2026); OpenAI's where it is not known."""
    name, provider = bare_name(model), provider_of(model)
    if provider in LOCAL:
        return CacheRules(True, 1, 3_600)
    if "claude" in name:
        small = any(f"claude-{old}" in name for old in ("3", "opus-4-0", "opus-4-1", "sonnet-4"))
        return CacheRules(False, 1_024 if small and "haiku" not in name else 4_096, 300, marks=4)
    if name.startswith("gemini"):
        return CacheRules(True, 4_096 if "pro" in name or name.startswith("gemini-3") else 1_024, 300)
    if name.startswith("deepseek"):
        return CacheRules(True, 64, 3_600)
    if name.startswith(("qwen", "qwq", "qvq")):
        return CacheRules(True, 256, 300, marks=4)
    return CacheRules(True, 1_024, 300)
