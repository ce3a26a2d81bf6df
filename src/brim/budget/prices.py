"""What tokens cost, by model: our own table over the one in `genai-prices`, and the caller's over both.

Prices are US dollars per million tokens. `genai-prices` carries its data in its wheel; it is imported on the first
model that our table does not settle (about 0.2 s), and asked for the newest price it knows. Nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import msgspec

from brim.budget.models import LOCAL, find_model
from brim.budget.names import bare_name, provider_of
from brim.errors import ConfigError


class Tier(msgspec.Struct, frozen=True):
    """Prices per million tokens for prompts over `above` tokens. `cache_write_1h` is 0 where there is no such thing."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    cache_write_1h: float = 0.0
    above: int = 0


class Prices(msgspec.Struct, frozen=True):
    """Prices of a model: one tier, or several by the size of the whole prompt, which then costs the higher price."""

    tiers: tuple[Tier, ...]
    source: str = ""
    """Where the prices come from: "config", "brim", or "genai-prices"."""

    def at(self, prompt_tokens: int) -> Tier:
        """The tier for a prompt of so many tokens, cached ones included."""
        return next((tier for tier in reversed(self.tiers) if prompt_tokens > tier.above), self.tiers[0])

    @property
    def input(self) -> float:
        return self.tiers[0].input

    @property
    def output(self) -> float:
        return self.tiers[0].output

    @property
    def cache_read(self) -> float:
        return self.tiers[0].cache_read

    @property
    def cache_write(self) -> float:
        return self.tiers[0].cache_write


ASSUMED_WRITE = 1.25
ASSUMED_READ = 0.10
"""Relative prices where none are known: Anthropic's. Of the common ones (1/0.5, 1/0.25, 1/0.1) these are the dearest to
edit under, so that an edit which pays at them pays at the others, too."""


def _tier(
    input: float | None,
    output: float | None,
    cache_read: float | None = None,
    cache_write: float | None = None,
    cache_write_1h: float | None = None,
    above: int = 0,
) -> Tier:
    base = input or 0.0
    return Tier(
        base,
        output or 0.0,
        base if cache_read is None else cache_read,
        base if cache_write is None else cache_write,
        cache_write_1h or 0.0,
        above,
    )


def make_prices(
    input: float,
    output: float,
    cache_read: float | None = None,
    cache_write: float | None = None,
    cache_write_1h: float | None = None,
    source: str = "",
) -> Prices:
    """Prices of one tier. Without a price for reading or writing the cache, its tokens cost what others do."""
    return Prices((_tier(input, output, cache_read, cache_write, cache_write_1h),), source)


def prices_of(model: str | None, overrides: Mapping[str, Any] | None = None) -> Prices | None:
    """Prices of a model, or None where they are not known. Models that run here cost nothing.

    `overrides` maps model names or patterns ("my-model", "openrouter/*") to mappings with input and output, and where
    they differ from input cache_read, cache_write and cache_write_1h. Raises ConfigError for one that cannot be used.
    """
    if not model:
        return None
    for pattern, given in (overrides or {}).items():
        if _matches(pattern, model):
            return _from_config(pattern, given)
    return _known(model)


def relative_prices(model: str | None, overrides: Mapping[str, Any] | None = None) -> tuple[float, float, bool]:
    """What writing to the cache and reading from it cost against an uncached input token, and whether that is known.

    (1.25, 0.1, True) for Claude, (1.0, 0.5, True) for gpt-4o. Unknown models get 1.25 and 0.1, not known. For a model
    that runs here what counts is time: reading the cache costs none.
    """
    prices = prices_of(model, overrides)
    if prices is _FREE:
        return 1.0, 0.0, True
    if prices is None or prices.input <= 0:
        return ASSUMED_WRITE, ASSUMED_READ, False
    return prices.cache_write / prices.input, prices.cache_read / prices.input, True


# DashScope (Alibaba Cloud Model Studio), international list prices as of November 2026: input, output, then by prompt
# size. Reading its implicit cache costs 20% of input, writing nothing extra, where the list names no other price.
_DASHSCOPE: dict[str, tuple[tuple[int, float, float], ...]] = {
    "qwen-max": ((0, 1.6, 6.4),),
    "qwen-plus": ((0, 0.4, 1.2), (256_000, 1.2, 3.6)),
    "qwen-flash": ((0, 0.05, 0.4), (256_000, 0.25, 2.0)),
    "qwen-turbo": ((0, 0.05, 0.2),),
    "qwen3-max": ((0, 1.2, 6.0), (32_000, 2.4, 12.0), (128_000, 3.0, 15.0)),
    "qwen3-coder-plus": ((0, 1.0, 5.0), (32_000, 1.8, 9.0), (128_000, 3.0, 15.0), (256_000, 6.0, 60.0)),
    "qwen3-coder-flash": ((0, 0.3, 1.5), (32_000, 0.5, 2.5), (128_000, 0.8, 4.0), (256_000, 1.6, 9.6)),
    "qwen3-next-80b-a3b": ((0, 0.15, 1.2),),
    "qwen3.5-plus": ((0, 0.4, 2.4), (256_000, 0.5, 3.0)),
    "qwen3.7-plus": ((0, 0.4, 1.6), (256_000, 1.2, 4.8)),
    "qwen3.7-max": ((0, 2.5, 7.5),),
    "qwen3.8-max": ((0, 2.0, 6.0),),
    "qwen3.8-flash": ((0, 0.15, 0.47),),
    "qwq-plus": ((0, 0.8, 2.4),),
}
_DASHSCOPE_READ = 0.2
_DASHSCOPE_READS = {"qwen3-coder-plus": 0.1, "qwen3.8-max": 0.125, "qwen3.8-flash": 0.107, "qwen3-coder-flash": 0.26}

# What genai-prices lacks or has from long ago.
_OURS: dict[str, Prices] = {
    "deepseek-chat": make_prices(0.28, 0.42, 0.028, source="brim"),
    "deepseek-reasoner": make_prices(0.28, 0.42, 0.028, source="brim"),
    "mistral-large-latest": make_prices(0.5, 1.5, 0.05, source="brim"),
    "mistral-medium-latest": make_prices(1.5, 7.5, 0.15, source="brim"),
}
_FREE = make_prices(0.0, 0.0, source="brim")


@lru_cache(maxsize=256)
def _known(model: str) -> Prices | None:
    provider, name = provider_of(model), bare_name(model)
    if provider in LOCAL:
        return _FREE
    if name in _OURS:
        return _OURS[name]
    if name.startswith(("qwen", "qwq")) and provider in (None, "dashscope", "qwen", "alibaba"):
        return _dashscope(name)
    return _from_genai(model)


def _dashscope(name: str) -> Prices | None:
    # "qwen-plus-latest" and dated versions cost what the name without them does.
    known = max((key for key in _DASHSCOPE if name == key or name.startswith(key + "-")), key=len, default=None)
    if known is None:
        return None
    share = _DASHSCOPE_READS.get(known, _DASHSCOPE_READ)
    rows = _DASHSCOPE[known]
    return Prices(tuple(Tier(i, o, round(i * share, 6), i, above=above) for above, i, o in rows), "brim")


def _from_genai(model: str) -> Prices | None:
    from datetime import UTC, datetime

    found = find_model(model)
    if found is None:
        return None
    try:
        # The far future: the newest price in the table, the same whenever it is asked. Noon: no night discount.
        given = found.get_prices(datetime(9998, 12, 31, 12, tzinfo=UTC))
    except (LookupError, ValueError, IndexError):
        return None
    columns = {name: getattr(given, f"{key}_mtok", None) for name, key in _COLUMNS.items()}
    starts = {0} | {tier.start for column in columns.values() for tier in getattr(column, "tiers", ())}
    if columns["input"] is None:
        return None
    return Prices(
        tuple(_tier(**{k: _price(v, start) for k, v in columns.items()}, above=start) for start in sorted(starts)),
        "genai-prices",
    )


_COLUMNS = {
    "input": "input", "output": "output", "cache_read": "cache_read", "cache_write": "cache_write",
    "cache_write_1h": "cache_write_1h",
}  # fmt: skip


def _price(column: Any, start: int) -> float | None:
    """The price of a column in the tier that begins at `start`."""
    if column is None:
        return None
    tiers = getattr(column, "tiers", None)
    if tiers is None:
        return float(column)
    return float(next((tier.price for tier in reversed(tiers) if tier.start <= start), column.base))


def _matches(pattern: str, model: str) -> bool:
    wanted, name = pattern.lower(), model.lower()
    return fnmatchcase(name, wanted) or ("/" not in wanted and fnmatchcase(bare_name(model), wanted))


class _Given(msgspec.Struct, forbid_unknown_fields=True):
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None


def _from_config(pattern: str, given: Any) -> Prices:
    if isinstance(given, Prices):
        return given
    try:
        row = msgspec.convert(given, _Given, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"bad price for {pattern!r}: {error}",
            hint="give input, output and, where they differ, cache_read and cache_write in US dollars per million",
        ) from error
    if any(value is not None and value < 0 for value in msgspec.structs.astuple(row)):
        raise ConfigError(f"a price for {pattern!r} is below 0", hint="prices are US dollars per million tokens")
    return make_prices(row.input, row.output, row.cache_read, row.cache_write, row.cache_write_1h, "config")
