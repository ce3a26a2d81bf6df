"""Cache markers for the API that keeps a prefix only where it is told to (Anthropic Messages).

Three of the four that it takes: behind the system prompt (tools stand before it, so they are covered), and behind the
last two user messages, so that the next request finds this one's prefix and a repeated one its own. Markers are no part
of a view: they move from request to request, and the bytes between them stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MARK = {"type": "ephemeral"}
_MARKABLE = ("text", "image", "document", "tool_use", "tool_result")


def mark_cache(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body with markers; what is marked is copied, nothing of `body` is altered. A body that has markers of its own
    stays as it is."""
    marked = dict(body)
    if _has_marks(body):
        return marked
    system = marked.get("system")
    if isinstance(system, str) and system:
        marked["system"] = [{"type": "text", "text": system, "cache_control": _MARK}]
    elif isinstance(system, list) and system:
        marked["system"] = [*system[:-1], {**system[-1], "cache_control": _MARK}]
    messages = list(marked.get("messages", []))
    users = [place for place, message in enumerate(messages) if message.get("role") == "user"]
    for place in users[-2:]:
        messages[place] = _marked(messages[place])
    marked["messages"] = messages
    return marked


def _marked(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, str):
        if not content:
            return dict(message)
        return {**message, "content": [{"type": "text", "text": content, "cache_control": _MARK}]}
    if isinstance(content, list) and content and content[-1].get("type") in _MARKABLE and content[-1].get("text") != "":
        return {**message, "content": [*content[:-1], {**content[-1], "cache_control": _MARK}]}
    return dict(message)


def _has_marks(body: Mapping[str, Any]) -> bool:
    blocks = [block for key in ("tools", "system") for block in body.get(key) or () if isinstance(body.get(key), list)]
    for message in body.get("messages", ()):
        if isinstance(message.get("content"), list):
            blocks += message["content"]
    return any("cache_control" in block for block in blocks if isinstance(block, Mapping))
