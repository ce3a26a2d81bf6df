"""What a call of edit or write would change, for the user who is asked about it: a diff, before anything is done."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

MOST_LINES = 30
_MOST_BYTES = 1_000_000
"""Of a larger file no diff is made to ask about it."""


def proposed_diff(tool: str, arguments: Mapping[str, Any], workspace: Path) -> list[str]:
    """Lines of a diff, at most `MOST_LINES`, the last of them saying how many more there are; [] where nothing can be shown."""
    if tool == "edit":
        old, new = str(arguments.get("old", "")), str(arguments.get("new", ""))
    elif tool == "write":
        old, new = _content(workspace / str(arguments.get("path", ""))), str(arguments.get("content", ""))
    else:
        return []
    if len(old) + len(new) > _MOST_BYTES:
        return []
    lines = list(_diff(old, new))
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"… {len(lines) - MOST_LINES + 1:,} more lines"]
    return lines


def _diff(old: str, new: str) -> Iterable[str]:
    if not old:
        return (f"+{line}" for line in new.splitlines())
    changed = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
    return itertools.islice(changed, 2, None)  # without the two lines that name files


def _content(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            return file.read(_MOST_BYTES + 1)
    except (OSError, ValueError):
        return ""
