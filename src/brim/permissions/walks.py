"""What a search over a folder leaves out: files below it that the user's rules forbid to read, or to read unasked.

A call is judged by the path it names; a search then meets every file below that. An ask rule holds here like a deny
rule, unless it covers the path that was named: then the user was asked about just that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from brim.permissions.paths import Place, is_below, path_matches, spellings
from brim.permissions.rules import Rule, tool_matches

_SEARCHES = {"grep": ("grep", "read"), "glob": ("glob", "read")}


class LeftOut(msgspec.Struct, frozen=True):
    """`covers` says of a path (absolute, links followed) whether it is left out; `rules` are the texts of those that may."""

    covers: Callable[[str], bool]
    rules: tuple[str, ...]

    def describe(self, did: str) -> str:
        """One sentence for the model. It is said whether or not a file was left out: what is there stays untold."""
        return f"Not {did}: files covered by the user's rules {', '.join(self.rules)}."


def left_out(tool: str, rules: Iterable[Rule], start: str, workspace: Path) -> LeftOut | None:
    """What a search of `tool` from `start` (absolute, links followed) leaves out; None where no rule can cover anything."""
    families = _SEARCHES.get(tool)
    if families is None:
        return None
    begun = Place(start, start, True)
    holding = [
        rule
        for rule in rules
        if rule.pattern is not None
        and any(tool_matches(rule, each) for each in families)
        and (rule.decision == "deny" or (rule.decision == "ask" and not path_matches(rule, begun, workspace)))
        and _may_lie_below(rule.pattern, start, workspace)
    ]
    if not holding:
        return None

    def covers(path: str) -> bool:
        place = Place(path, path, True)
        return any(path_matches(rule, place, workspace) for rule in holding)

    return LeftOut(covers, tuple(dict.fromkeys(rule.text.strip() for rule in holding)))


def _may_lie_below(pattern: str, start: str, workspace: Path) -> bool:
    """Whether a pattern can cover anything below a folder: its fixed part lies there, or the folder lies in it."""
    return any(_lies_below(text, start, workspace) for text in spellings(pattern, True))


def _lies_below(text: str, start: str, workspace: Path) -> bool:
    if "/" not in text.rstrip("/"):
        return True  # a name in any folder
    head = re.split(r"[*?\[]", text, maxsplit=1)[0]
    fixed = os.path.realpath(
        os.path.join(os.path.realpath(workspace), head if head == text else os.path.dirname(head) or ".")
    )
    return is_below(fixed, start) or is_below(start, fixed)
