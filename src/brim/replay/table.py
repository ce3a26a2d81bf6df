"""The report as text: one table a file, a line for each policy, a column of cost for each price regime."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from brim.budget.bill import columns as columns_of
from brim.budget.bill import fit

MANY = 16
"""Files up to which each has a table."""
NAME = 36
"""Columns that the name of a conversation may take; a UUID fits."""
_LEGEND = """\
cost       1 is sending everything, at what writing/reading a cached token costs (uncached input: 1), refetches included
supported  share of requests that found all they used of the history in view; each of the others is a refetch
tokens     sent, 1 is everything; peak: tokens of the largest request; cached: share read from the cache
overflows  requests over the window; invalid: requests the model's API would refuse
worst      the dearest conversation of more than ten requests
"""


def render_table(report: dict[str, Any], width: int | None = None) -> str:
    """Costs relative to sending everything. Where a policy's views depend on the prices, ranges are shown: 0.95-0.97.
    What is wider than `width` columns continues in a table below, with the policies again. Of more than `MANY` files
    only the sum is shown."""
    groups = report["files"] if len(report["files"]) <= MANY else report["files"][-1:]
    return "\n".join(line for group in groups for line in _group(group, report, width)) + "\n"


def render_legend(report: dict[str, Any], width: int | None = None) -> str:
    """What the columns say, for who reads the table for the first time, on lines of at most `width` columns."""
    more = len(report["files"]) - 1
    left_out = [f"{more:,} files added up; --json and --html have each by itself"] if more >= MANY else []
    lines = [*left_out, *_LEGEND.splitlines()]
    if width is not None:
        lines = [wrap for line in lines for wrap in textwrap.wrap(line, max(width, 24), subsequent_indent=" " * 11)]
    return "\n".join(lines) + "\n"


def _group(group: dict[str, Any], report: dict[str, Any], width: int | None) -> Iterator[str]:
    regimes = [regime["name"] for regime in report["regimes"]]
    pause = f", a pause before {every(report['pause_every'])} request" if report["pause_every"] else ""
    yield f"{group['file']}: {count(group['conversations'], 'conversation')}, {count(group['requests'], 'request')}{pause}"
    timed = "planner_ms" in group["policies"][0]["prices"][0]
    heads = [
        "policy", *(f"cost {name}" for name in regimes), "supported", "tokens", "peak", "cached", "refetches", "overflows",
        "invalid", *(["ms/request"] if timed else []), "worst",
    ]  # fmt: skip
    yield from lay_out([heads, *(_row(policy, timed) for policy in group["policies"])], width, told_last=True)
    yield ""


def lay_out(rows: Sequence[Sequence[str]], width: int | None, *, told_last: bool = False) -> Iterator[str]:
    """Rows, heads first, as lines: the first column at the left, figures at the right; with `told_last` the last column
    is text, too. What is wider than `width` goes on below, an empty line between, with the first column again."""
    last = len(rows[0]) - 1
    widths = [max(columns_of(row[column]) for row in rows) for column in range(last + 1)]
    for number, columns in enumerate(_side_by_side(widths, width)):
        if number:
            yield ""
        for row in rows:
            cells = [row[0] + " " * (widths[0] - columns_of(row[0]))]
            cells += [
                row[at] if told_last and at == last else " " * (widths[at] - columns_of(row[at])) + row[at]
                for at in columns
            ]
            yield "  " + "  ".join(cells).rstrip()


def every(number: int) -> str:
    """`every`, `every 2nd`, `every 11th`."""
    if number == 1:
        return "every"
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"every {number:,}{ending}"


def _side_by_side(widths: Sequence[int], width: int | None) -> list[list[int]]:
    """The columns after the first, in groups that fit beside it; a column that is too wide stands alone."""
    groups: list[list[int]] = [[]]
    taken = 2 + widths[0]
    for at, needed in enumerate(widths[1:], 1):
        if width is not None and groups[-1] and taken + 2 + needed > width:
            groups.append([])
            taken = 2 + widths[0]
        groups[-1].append(at)
        taken += 2 + needed
    return groups


def _row(policy: dict[str, Any], timed: bool) -> list[str]:
    prices = policy["prices"]
    worst = max((price["worst"] for price in prices if price["worst"]), key=lambda each: each["cost"], default=None)
    return [
        policy["policy"],
        *(f"{price['cost']:.3f}" for price in prices),
        _range(prices, "supported", 3),
        _range(prices, "tokens", 3),
        f"{max(price['peak'] for price in prices):,}",
        _range(prices, "cached", 2),
        _range(prices, "refetches", 0),
        _range(prices, "overflows", 0),
        _range(prices, "invalid", 0),
        *([_range(prices, "planner_ms", 1)] if timed else []),
        f"{worst['cost']:.2f} {fit(worst['id'], NAME)}" if worst else "-",
    ]


def _range(prices: list[dict[str, Any]], key: str, digits: int) -> str:
    low, high = (f"{pick(price[key] for price in prices):,.{digits}f}" for pick in (min, max))
    return low if low == high else f"{low}-{high}"


def count(number: int, what: str) -> str:
    """`1 request`, `1,200 requests`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
