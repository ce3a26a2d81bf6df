"""The context window of a model: given, learned from a provider's refusal, known, or assumed.

A wrong guess hurts either way (too small: needless shortening; too large: refused requests), so a guess is marked as
one, and the first refusal that names the true figure replaces it for the rest of the process.
"""

from __future__ import annotations

import re
from functools import lru_cache

from brim.budget.models import LOCAL, find_model
from brim.budget.names import bare_name, provider_of

ASSUMED_WINDOW = 128_000
"""For models in no table: what most of today's models have at least."""

# What genai-prices lacks or has from before a model grew; from the providers' model pages, November 2026.
_OURS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern), window)
    for pattern, window in (
        (r"^gemini-(2\.5-pro|3[.\d]*-pro)(?!-image)", 1_048_576),
        (r"^gemini-(pro|flash|flash-lite)-latest$", 1_048_576),
        (r"^deepseek-(chat|reasoner|v3|r1)", 131_072),
        (r"^deepseek-v4", 1_000_000),
        (r"^mistral-(large|medium|small)(-latest)?$", 262_144),
        (r"^(devstral|magistral|codestral)", 256_000),
        (r"^kimi-k2-(0711|turbo-preview|preview)", 131_072),
        (r"^kimi-k2", 262_144),
        (r"^glm-4\.5", 131_072),
        (r"^glm-(4\.[67]|5$|5\.1|5-)", 200_000),
        (r"^qwen-max(-latest)?$", 32_768),
        (r"^qwen-(plus|flash|turbo)", 1_000_000),
        (r"^qwen3-coder-(plus|flash)|^qwen3\.[5-8]-(plus|max|flash)", 1_000_000),
        (r"^qwen3-(max|next|coder|vl)", 262_144),
        (r"^qwq-plus", 131_072),
        (r"^gpt-4-32k", 32_768),
        (r"^(gpt-4o|chatgpt-4o|gpt-4-turbo|gpt-4-1106|gpt-4-0125|o1-mini|o1-preview|gpt-5-chat)", 128_000),
        (r"^codex-mini", 200_000),
        (r"^(meta-)?llama-?3[.-][123]", 131_072),
        (r"^claude-(3|(opus|sonnet|haiku)-4(-[015])?(-2|-v|@|-latest|:|$))", 200_000),
    )
)


@lru_cache(maxsize=256)
def known_window(model: str) -> int | None:
    """The window of a model from the tables, in tokens; None if none has it."""
    if provider_of(model) in LOCAL:
        return None
    name = bare_name(model)
    for pattern, window in _OURS:
        if pattern.search(name):
            return window
    found = getattr(find_model(model), "context_window", None)
    return int(found) if found else None


class Windows:
    """Windows of models, with what was learned in one process (or one test)."""

    def __init__(self) -> None:
        self._learned: dict[str, int] = {}
        self._bare: dict[str, tuple[int, bool]] = {}

    def of(self, model: str | None, explicit: int | None = None) -> tuple[int, bool]:
        """Tokens, and whether they are only assumed. `explicit` always wins; then what was learned; then the tables."""
        if explicit is not None:
            return explicit, False
        learned = self.learned(model)
        if learned is not None:
            return learned, False
        known = known_window(model) if model else None
        return (known, False) if known else (ASSUMED_WINDOW, True)

    def learn(self, model: str | None, tokens: int | None) -> None:
        """Takes over the window that a provider named. Without a model or a positive figure nothing is learned."""
        if not model or not tokens or tokens <= 0:
            return
        name = model.strip().lower()
        self._learned[name] = tokens
        self._bare[bare_name(model)] = (tokens, "/" in name)

    def learned(self, model: str | None) -> int | None:
        """What was learned for a model. What was learned without a provider holds for the name at any provider; what
        was learned at one provider holds there, and where the model is named without one."""
        name = (model or "").strip().lower()
        if name in self._learned:
            return self._learned[name]
        tokens, at_provider = self._bare.get(bare_name(model), (None, False))
        return tokens if not at_provider or "/" not in name else None

    def forget(self) -> None:
        """Back to the tables."""
        self._learned.clear()
        self._bare.clear()


WINDOWS = Windows()
"""The windows of this process."""


def window_of(model: str | None, explicit: int | None = None) -> tuple[int, bool]:
    """Window of a model in tokens, and whether it is only assumed (128,000)."""
    return WINDOWS.of(model, explicit)


def learn_window(model: str | None, tokens: int | None) -> None:
    """Remembers, for the rest of the process, the window that a provider named in a refusal."""
    WINDOWS.learn(model, tokens)
