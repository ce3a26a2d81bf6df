"""For tests, ours and yours: builders, validators that know nothing of the renderer, and scripted upstreams."""

from brim.conversation import assistant, call, result, system, user
from brim.formats import DIALECTS, dialect_of, violations
from brim.testing.binding import Answer, BindingUpstream
from brim.testing.provider import ScriptedProvider
from brim.testing.script import (
    Received,
    broken_stream,
    empty_stream,
    fault,
    html_page,
    raw,
    reply,
    stream_error,
    tool_call,
    tool_calls,
)

__all__ = [
    "DIALECTS",
    "Answer",
    "BindingUpstream",
    "Received",
    "ScriptedProvider",
    "assistant",
    "broken_stream",
    "call",
    "dialect_of",
    "empty_stream",
    "fault",
    "html_page",
    "raw",
    "reply",
    "result",
    "stream_error",
    "system",
    "tool_call",
    "tool_calls",
    "user",
    "violations",
]
