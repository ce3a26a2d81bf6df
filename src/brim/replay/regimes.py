"""What a token costs, relative to an uncached input token: writing it to the cache, and reading it from there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from brim.budget import relative_prices
from brim.errors import UsageError


class Regime(msgspec.Struct, frozen=True):
    """`write` and `read` for one token of uncached input = 1."""

    name: str
    write: float
    read: float


DEFAULT = (
    Regime("1.25/0.1", 1.25, 0.1),
    Regime("1/0.25", 1.0, 0.25),
    Regime("1/0.5", 1.0, 0.5),
    Regime("1/1", 1.0, 1.0),
)
"""Anthropic; Gemini and cheap OpenAI models; older OpenAI models; no cache."""


def parse_regime(text: str) -> Regime:
    """`1.25/0.1`, or a model's name through the price table. Raises UsageError: what was given, what is taken."""
    write, slash, read = text.partition("/")
    try:
        pair = (float(write), float(read)) if slash else None
    except ValueError:
        pair = None
    if pair is not None:
        if not all(0 <= price < math.inf for price in pair):
            raise UsageError(f"no price in {text!r}", hint="give write/read as numbers from 0 on, for example 1.25/0.1")
        if pair[0] == 0:
            raise UsageError(f"writing costs nothing in {text!r}", hint="costs are relative: give 1 for uncached input")
        return Regime(f"{pair[0]:g}/{pair[1]:g}", *pair)
    write_price, read_price, known = relative_prices(text)
    if not known:
        raise UsageError(
            f"no prices known for {text!r}", hint="name a model that has some, or give write/read: 1.25/0.1"
        )
    write_price, read_price = round(write_price, 9), round(read_price, 9)  # 0.3 / 3 is 0.09999…
    return Regime(f"{text} ({write_price:g}/{read_price:g})", write_price, read_price)


def parse_regimes(texts: Sequence[str]) -> tuple[Regime, ...]:
    """The regimes named, each once; the four defaults where none is."""
    found = {regime.name: regime for regime in map(parse_regime, texts)}
    return tuple(found.values()) or DEFAULT
