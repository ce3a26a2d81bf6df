"""Conversation values: messages, parts, turns, steps, hashes. Pure and immutable."""

from brim.conversation.build import assistant, call, result, system, user
from brim.conversation.hashing import HANDLE_LENGTH, chain, digest_of, handle_of, handle_of_text, range_handle
from brim.conversation.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

__all__ = [
    "HANDLE_LENGTH",
    "Media",
    "Message",
    "Opaque",
    "Part",
    "Role",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
    "assistant",
    "call",
    "chain",
    "digest_of",
    "handle_of",
    "handle_of_text",
    "range_handle",
    "result",
    "system",
    "user",
]
