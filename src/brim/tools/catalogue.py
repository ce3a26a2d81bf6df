"""The tools that come with brim, and their schemas in the neutral form that every wire format is made from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from brim.tools.context import Tool


def default_tools() -> list[Tool]:
    """grep, glob, read, edit, write, bash, recall: in this order, which is that of their use."""
    from brim.tools.bash import BASH
    from brim.tools.edit import EDIT
    from brim.tools.glob import GLOB
    from brim.tools.grep import GREP
    from brim.tools.read import READ
    from brim.tools.recall import RECALL
    from brim.tools.write import WRITE

    return [GREP, GLOB, READ, EDIT, WRITE, BASH, RECALL]


def tool_schemas(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """`{name, description, parameters}` of each tool."""
    return [{"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)} for tool in tools]
