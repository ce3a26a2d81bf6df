"""Providers: who answers. One wire client for three APIs, presets, errors by kind, retries, the embedded model."""

from __future__ import annotations

from brim.providers.discover import default_model, find_loopback_server
from brim.providers.errors import classify_error, classify_response, silently_cut
from brim.providers.events import Done, Event, Notice, Provider, TextDelta, ThinkingDelta, ToolCallDelta
from brim.providers.presets import PRESETS, ModelRef, open_provider, resolve_model
from brim.providers.retry import RetryingProvider, RetryPolicy, stream_with_retries
from brim.providers.wire import WireProvider

__all__ = [
    "PRESETS",
    "Done",
    "Event",
    "ModelRef",
    "Notice",
    "Provider",
    "RetryPolicy",
    "RetryingProvider",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "WireProvider",
    "classify_error",
    "classify_response",
    "default_model",
    "find_loopback_server",
    "open_provider",
    "resolve_model",
    "silently_cut",
    "stream_with_retries",
]
