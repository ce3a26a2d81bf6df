"""Token counts: exact where the model's encoding is here, estimated where not, anchored on real usage where there is some."""

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
