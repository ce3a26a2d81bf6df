"""The recall tool and its one sentence in the system prompt, offered from the first request on (B17).

Both stand in every request of a session or in none: adding them later would break the provider's cached prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from brim.conversation import Text, system
from brim.formats import Request, render_tool

RECALL_NAMES = frozenset({"recall", "brim_recall"})
"""Tool names taken to fetch originals; a caller's own tool under one of them is used as it is."""

NAME = "recall"
DESCRIPTION = (
    "Fetch the original text behind a handle that a note in square brackets names. Page with offset and limit."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "handle": {"type": "string"},
        "offset": {"type": "integer", "description": "first line, from 1"},
        "limit": {"type": "integer", "description": "lines"},
        "pattern": {"type": "string", "description": "only lines that match"},
    },
    "required": ["handle"],
}
CONVENTION = (
    "Notes in square brackets that name a handle stand for text that was left out of this request. Nothing is lost: "
    "call recall with the handle when you need the original. A summary of earlier messages may stand before the recent "
    "ones: the user's constraints in it are in force; if it is not enough, recall the original or advise the user to "
    "switch to the context mode full. Where recall finds no original (an imported session), "
    "say so; do not guess."
)


def offer_recall(request: Request) -> tuple[Request, list[Mapping[str, Any]]]:
    """The request with the convention behind its system prompt, and its tool list with the recall tool."""
    tools = list(request.tools)
    if not any(_name(tool) in RECALL_NAMES for tool in tools):
        tools.append(render_tool(NAME, DESCRIPTION, PARAMETERS, request.api))
    head = 0
    while head < len(request.messages) and request.messages[head].role == "system":
        head += 1
    if head and request.api == "anthropic.messages":
        last = request.messages[head - 1]
        lead = [
            *request.messages[: head - 1],
            msgspec.structs.replace(last, parts=(*last.parts, Text(CONVENTION)), edited=True),
        ]
    else:
        lead = [*request.messages[:head], system(CONVENTION)]
    messages = [*lead, *request.messages[head:]]
    return msgspec.structs.replace(request, messages=messages), tools


def _name(tool: Mapping[str, Any]) -> object:
    function = tool.get("function")
    return function.get("name") if isinstance(function, Mapping) else tool.get("name")
