"""Conversation values: messages, parts, turns, steps, hashes. Pure and immutable."""

from brim.conversation.build import assistant, call, result, system, user
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
    "result",
    "system",
    "user",
]
