"""The report as text: one table a file, a line for each policy, a column of cost for each price regime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def render_table(report: dict[str, Any], width: int | None = None) -> str:
    """Costs relative to sending everything. Where a policy's views depend on the prices, ranges are shown: 0.95-0.97.
    What is wider than `width` columns continues in a table below, with the policies again."""
    return "\n".join(line for group in report["files"] for line in _group(group, report, width)) + "\n"


def _group(group: dict[str, Any], report: dict[str, Any], width: int | None) -> Iterator[str]:
    regimes = [regime["name"] for regime in report["regimes"]]
    pause = f", a pause before every {report['pause_every']}th request" if report["pause_every"] else ""
    yield f"{group['file']}: {_count(group['conversations'], 'conversation')}, {_count(group['requests'], 'request')}{pause}"
    timed = "planner_ms" in group["policies"][0]["prices"][0]
    heads = [
        "policy", *(f"cost {name}" for name in regimes), "supported", "tokens", "peak", "cached", "refetches", "overflows",
        "invalid", *(["ms/request"] if timed else []), "worst",
    ]  # fmt: skip
    rows = [heads, *(_row(policy, timed) for policy in group["policies"])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    for columns in _side_by_side(widths, width):
        for row in rows:
            cells = [row[0].ljust(widths[0])]
            cells += [row[at] if at == len(heads) - 1 else row[at].rjust(widths[at]) for at in columns]
            yield "  " + "  ".join(cells).rstrip()
        yield ""


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
        f"{worst['cost']:.2f} {worst['id']}" if worst else "-",
    ]


def _range(prices: list[dict[str, Any]], key: str, digits: int) -> str:
    low, high = (f"{pick(price[key] for price in prices):,.{digits}f}" for pick in (min, max))
    return low if low == high else f"{low}-{high}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
