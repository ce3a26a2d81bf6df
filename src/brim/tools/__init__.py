"""Tools that can be trusted: bounded, exact, told what is missing."""

from brim.tools.arguments import parse_arguments, storable_arguments, storable_name
from brim.tools.atomic import checkpoint, restore
from brim.tools.bounded import Bounded, BoundedOutput, Limits
from brim.tools.caps import Caps, load_caps
from brim.tools.catalogue import default_tools, tool_schemas
from brim.tools.context import Blobs, BlobWriter, FileState, Tool, ToolContext, ToolOutput
from brim.tools.paths import Resolved, resolve_path
from brim.tools.run import find_tool, run_calls, run_tool

__all__ = [
    "BlobWriter",
    "Blobs",
    "Bounded",
    "BoundedOutput",
    "Caps",
    "FileState",
    "Limits",
    "Resolved",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "checkpoint",
    "default_tools",
    "find_tool",
    "load_caps",
    "parse_arguments",
    "resolve_path",
    "restore",
    "run_calls",
    "run_tool",
    "storable_arguments",
    "storable_name",
    "tool_schemas",
]
