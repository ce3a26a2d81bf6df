"""Finds a model in the table of `genai-prices`, and says which providers are programs on this machine."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from brim.budget.names import bare_name, provider_of

LOCAL = frozenset({"ollama", "ollama_chat", "local", "llamacpp", "llama.cpp", "lmstudio", "lm_studio", "embedded"})
"""Provider prefixes of models that run here: they cost nothing, and no table knows the window they started with."""


@lru_cache(maxsize=256)
def find_model(model: str) -> Any:
    """The `ModelInfo` of genai-prices for a model, or None. Asks the named provider first, then by the bare name.

    The whole name behind the provider is tried before its last part: "openrouter/deepseek/deepseek-chat".
    """
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    snapshot, provider = get_snapshot(), provider_of(model)
    if provider in LOCAL:
        return None
    asks: list[tuple[str, str | None]] = []
    if provider is not None:
        asks += [(model.strip().partition("/")[2], provider), (bare_name(model), provider)]
    asks.append((bare_name(model), None))
    for name, provider_id in asks:
        try:
            return snapshot.find_provider_model(name, None, provider_id, None)[1]
        except (LookupError, ValueError):
            continue
    return None
