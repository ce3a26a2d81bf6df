"""The context engine: what one request sends, why, and how to get the rest back."""

from brim.context.conversation import Conversation
from brim.context.explain import explain
from brim.context.prepare import ContextManager, Prepared, count, prepare
from brim.context.recall import lost_originals, recall

__all__ = ["ContextManager", "Conversation", "Prepared", "count", "explain", "lost_originals", "prepare", "recall"]
