"""Providers: who answers. One wire client for three APIs, presets, errors by kind, retries, the embedded model.

Names are loaded on first use: the tables of error wordings are needed only when something fails.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brim.providers.discover import default_model, find_loopback_server
    from brim.providers.endings import classify_response, silently_cut
    from brim.providers.errors import classify_error
    from brim.providers.events import Done, Event, Notice, Provider, TextDelta, ThinkingDelta, ToolCallDelta
    from brim.providers.presets import PRESETS, ModelRef, open_provider, resolve_model
    from brim.providers.retry import RetryingProvider, RetryPolicy, stream_with_retries
    from brim.providers.wire import WireProvider

_HOMES = {
    "discover": ("default_model", "find_loopback_server"),
    "endings": ("classify_response", "silently_cut"),
    "errors": ("classify_error",),
    "events": ("Done", "Event", "Notice", "Provider", "TextDelta", "ThinkingDelta", "ToolCallDelta"),
    "presets": ("PRESETS", "ModelRef", "open_provider", "resolve_model"),
    "retry": ("RetryPolicy", "RetryingProvider", "stream_with_retries"),
    "wire": ("WireProvider",),
}

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


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(f"brim.providers.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
