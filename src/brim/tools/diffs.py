"""A unified diff that stays cheap on any input: only what differs is compared, and what is shown is capped."""

from __future__ import annotations

import difflib

from brim.tools.bounded import BoundedOutput, Gap, Limits
from brim.tools.clusters import cut_after, cut_before
from brim.tools.context import ToolContext
from brim.tools.textfile import common_prefix, with_newlines

# More differing lines than this on either side are told by their number: comparing them would be quadratic.
_COMPARED = 1_500
_CONTEXT = 3
# A longer line of a diff is shown around what changed in it, with so many characters to either side.
_LONG_LINE = 500
_AROUND = 120
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
    text = "".join(line + "\n" for line in _shortened(_renumbered(lines, start)))
    text = text.replace(_OPEN, "\n\\ No newline at end of file")
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


def _shortened(lines: list[str]) -> list[str]:
    """Long lines reduced to the surroundings of what changed in them; their beginning where that cannot be told."""
    out: list[str] = []
    at = 0
    while at < len(lines):
        gone = _run(lines, at, "-")
        came = _run(lines, at + len(gone), "+")
        if gone and len(gone) == len(came):
            pairs = [_around_change(one, other) for one, other in zip(gone, came, strict=True)]
            out += [one for one, _ in pairs] + [other for _, other in pairs]
            at += 2 * len(gone)
        else:
            out.append(_window(lines[at], 1, 1))
            at += 1
    return out


def _run(lines: list[str], at: int, sign: str) -> list[str]:
    end = at
    while end < len(lines) and lines[end].startswith(sign) and not lines[end].startswith(sign * 3 + " "):
        end += 1
    return lines[at:end]


def _around_change(one: str, other: str) -> tuple[str, str]:
    same = common_prefix(one[1:], other[1:]) + 1
    tail = common_prefix(one[: same - 1 : -1], other[: same - 1 : -1])
    return _window(one, same, len(one) - tail), _window(other, same, len(other) - tail)


def _window(line: str, start: int, end: int) -> str:
    """A line of a diff around its characters `start` to `end`, with how many are left out at either side."""
    if len(line) <= _LONG_LINE:
        return line
    ends = _OPEN * line.endswith(_OPEN)
    body = line.removesuffix(_OPEN)
    low = cut_before(body, max(1, start - _AROUND))
    high = cut_after(body, min(len(body), max(end, start) + _AROUND, low + _LONG_LINE))
    left = f"[{low - 1} characters] ... " if low > 1 else ""
    right = f" ... [{len(body) - high} characters]" if high < len(body) else ""
    return body[0] + left + body[max(low, 1) : high] + right + ends


def _renumbered(lines: object, by: int) -> list[str]:
    """Hunk headers count from the start of the compared part; make them count from the file's first line."""
    import re

    def moved(match: re.Match[str]) -> str:
        return f"{match[1]}{int(match[2]) + by}"

    assert hasattr(lines, "__iter__")
    return [re.sub(r"([-+])(\d+)(?=(?:,\d+)? )", moved, line) if line.startswith("@@ ") else line for line in lines]
