"""Estimates tokens without a tokenizer, from counts of byte classes."""

from __future__ import annotations

import math
from collections.abc import Callable


def estimate_tokens(text: str) -> int:
    """Placeholder until the class weights land in this same change."""
    return math.ceil(len(text) / 4 * 1.2)


def estimate_batch(kind: str) -> Callable[[list[str]], list[int]]:
    return lambda texts: [estimate_tokens(text) for text in texts]
