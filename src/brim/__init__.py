"""brim fills a language model's context window to the brim, and never over it.

`prepare` decides what one request sends; `Conversation` does it for a growing history at the cost of what is new.
Everything is imported on first use: `import brim` itself loads nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers read it as true; `typing` itself would be most of what `import brim` takes

if TYPE_CHECKING:
    from typing import Any

    from brim.budget import Bill, Settings
    from brim.context import ContextManager, Conversation, Prepared, count, explain, prepare, recall
    from brim.errors import BrimError, ContextOverflow

__version__ = "0.1.0"

_HOMES = {
    "Bill": "brim.budget",
    "Settings": "brim.budget",
    "ContextManager": "brim.context",
    "Conversation": "brim.context",
    "Prepared": "brim.context",
    "count": "brim.context",
    "explain": "brim.context",
    "prepare": "brim.context",
    "recall": "brim.context",
    "BrimError": "brim.errors",
    "ContextOverflow": "brim.errors",
}

__all__ = [
    "Bill",
    "BrimError",
    "ContextManager",
    "ContextOverflow",
    "Conversation",
    "Prepared",
    "Settings",
    "__version__",
    "count",
    "explain",
    "prepare",
    "recall",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'brim' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
