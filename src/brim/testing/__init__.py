"""For tests, ours and yours: builders, validators that know nothing of the renderer, and scripted upstreams."""

from brim.conversation import assistant, call, result, system, user
from brim.formats import DIALECTS, dialect_of, violations
from brim.testing.binding import Answer, BindingUpstream

__all__ = [
    "DIALECTS",
    "Answer",
    "BindingUpstream",
    "assistant",
    "call",
    "dialect_of",
    "result",
    "system",
    "user",
    "violations",
]
