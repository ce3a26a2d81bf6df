"""A unified diff that stays cheap on any input: only what differs is compared, and what is shown is capped."""

from __future__ import annotations

import difflib

from brim.tools.bounded import BoundedOutput, Gap, Limits
from brim.tools.context import ToolContext
from brim.tools.textfile import with_newlines

# More differing lines than this on either side are told by their number: comparing them would be quadratic.
_COMPARED = 1_500
_CONTEXT = 3
# Stands at the end of a line without a line end while lines are compared; it is in no text of ours.
_OPEN = "\ufdd0"


def bounded_diff(before: str, after: str, shown: str, ctx: ToolContext) -> str:
    """Differences line by line, line ends apart, within the cap for diffs. "" where there are none."""
    old, new = _lines(before), _lines(after)
    if old == new:
        return ""
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    start = max(0, first - _CONTEXT)
    end_old, end_new = min(len(old), len(old) - last + _CONTEXT), min(len(new), len(new) - last + _CONTEXT)
    if max(end_old, end_new) - start > _COMPARED:
        gone, came = len(old) - last - first, len(new) - last - first
        if not gone:
            return f"({came} lines inserted as lines {first + 1}-{first + came})\n"
        return f"(lines {first + 1}-{first + gone} " + (f"replaced by {came} lines)\n" if came else "removed)\n")
    lines = difflib.unified_diff(old[start:end_old], new[start:end_new], shown, shown, lineterm="", n=_CONTEXT)
    text = "".join(line + "\n" for line in _renumbered(lines, start)).replace(_OPEN, "\n\\ No newline at end of file")
    out = BoundedOutput(Limits(ctx.caps.diff), ctx.count, advise=_advise, collapse=False)
    out.feed(text.encode("utf-8", "surrogateescape"))
    return out.finish().text


def _lines(text: str) -> list[str]:
    """Without their ends; a last line that has none is marked, and so another one than the same with one."""
    lines = with_newlines(text, "\n").split("\n")
    if lines[-1]:
        lines[-1] += _OPEN
    else:
        lines.pop()
    return lines


def _advise(gap: Gap) -> str:
    return "Read the file to see all."


def _renumbered(lines: object, by: int) -> list[str]:
    """Hunk headers count from the start of the compared part; make them count from the file's first line."""
    import re

    def moved(match: re.Match[str]) -> str:
        return f"{match[1]}{int(match[2]) + by}"

    assert hasattr(lines, "__iter__")
    return [re.sub(r"([-+])(\d+)(?=(?:,\d+)? )", moved, line) if line.startswith("@@ ") else line for line in lines]
