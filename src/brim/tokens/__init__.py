"""Token counts: exact where the model has its encoding here, estimated where not, anchored on real usage."""

from brim.tokens.calibration import Calibration
from brim.tokens.counter import Counter, TokenCounter, counter_for, estimate_counter
from brim.tokens.encodings import encoding_of
from brim.tokens.estimate import estimate_tokens
from brim.tokens.request import RequestCount, count_request
from brim.tokens.tracker import Anchor, Tracker

__all__ = [
    "Anchor",
    "Calibration",
    "Counter",
    "RequestCount",
    "TokenCounter",
    "Tracker",
    "count_request",
    "counter_for",
    "encoding_of",
    "estimate_counter",
    "estimate_tokens",
]
