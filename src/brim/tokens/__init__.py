"""Token counts: exact where the model has its encoding here, estimated where not, anchored on real usage."""

from brim.tokens.counter import (
    Counter,
    TokenCounter,
    clean,
    counter_for,
    estimate_counter,
)
from brim.tokens.estimate import estimate_tokens

__all__ = [
    "Counter",
    "TokenCounter",
    "clean",
    "counter_for",
    "estimate_counter",
    "estimate_tokens",
]
