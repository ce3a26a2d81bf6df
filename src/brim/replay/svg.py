"""Plots as inline SVG: scatter, lines and stacked bars, drawn from numbers, styled by the page's CSS alone.

Colours are CSS classes (`c0` to `c7`, `muted`), so that one drawing serves dark and light. Every mark carries its exact
values in a title, which a browser shows on hover and a screen reader says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

CHAR = 6.6
"""Width of a label's character in pixels at the page's 12px; only used to keep labels apart."""


class Dot(NamedTuple):
    """A point of a scatter plot. `mark`: CSS class of its colour."""

    label: str
    x: float
    y: float
    mark: str
    title: str


class Series(NamedTuple):
    """A line: y values at x = 1, 2, …; `ticks`: positions (from 1) that are marked below the line, with a reason each."""

    label: str
    values: Sequence[float]
    mark: str
    ticks: Sequence[tuple[int, str]] = ()


class Bar(NamedTuple):
    """A stacked bar: (label, value, CSS class) of each piece."""

    label: str
    pieces: Sequence[tuple[str, float, str]]


def scatter(
    dots: Sequence[Dot],
    *,
    x: str,
    y: str,
    even: float | None = None,
    most_x: float = math.inf,
    width: int = 460,
    height: int = 300,
) -> str:
    """A scatter plot with a label at each dot. `even`: a y value to draw a line at; `most_x`: where the x axis ends at the
    latest, since a share is never more than 1."""
    left, right, top, bottom = 52, 16, 26, 42
    xs, ys = [dot.x for dot in dots] or [0.0, 1.0], [dot.y for dot in dots] or [0.0, 1.0]
    x_ticks = [t for t in ticks(min(xs), max(xs), 4) if t <= most_x]
    y_ticks = ticks(
        min([*ys, *([even] if even is not None else [])]), max([*ys, *([even] if even is not None else [])]), 5
    )
    place_x = _scale(x_ticks, left, width - right)
    place_y = _scale(y_ticks, height - bottom, top)
    out = [_open(width, height, f"{y} against {x}")]
    out += [_across(place_y(t), left, width - right, number(t)) for t in y_ticks]
    out += [_text(place_x(t), height - bottom + 16, number(t), "tick middle") for t in x_ticks]
    out.append(_text((left + width - right) / 2, height - 6, x, "axis middle"))
    out.append(_text(4, top - 14, y, "axis"))
    if even is not None:
        out.append(
            f'<line class="even" x1="{left}" x2="{width - right}" y1="{place_y(even):.1f}" y2="{place_y(even):.1f}"/>'
        )
    taken: list[tuple[float, float, float, float]] = [
        (place_x(d.x) - 5, place_y(d.y) - 5, place_x(d.x) + 5, place_y(d.y) + 5) for d in dots
    ]
    for dot in sorted(dots, key=lambda each: (each.mark == "muted", each.label)):
        at_x, at_y = place_x(dot.x), place_y(dot.y)
        out.append(
            f'<circle class="{dot.mark}" cx="{at_x:.1f}" cy="{at_y:.1f}" r="4.5"><title>{escape(dot.title)}</title></circle>'
        )
        spot = _free(at_x, at_y, len(dot.label) * CHAR, taken, (left, top, width - 2.0, height - bottom - 2.0))
        if spot is not None:
            taken.append(spot)
            kind = "label strong" if dot.mark != "muted" else "label"
            out.append(_text(spot[0], spot[3] - 3, dot.label, kind))
    return "".join([*out, "</svg>"])


def _free(
    x: float,
    y: float,
    wide: float,
    taken: Sequence[tuple[float, float, float, float]],
    frame: tuple[float, float, float, float],
) -> tuple[float, float, float, float] | None:
    """A box beside a dot where its label overlaps nothing; None where there is none."""
    for dy in (0, -12, 12, -24, 24, -36, 36):
        for start in (x + 8, x - 8 - wide):
            box = (start, y + dy - 7, start + wide, y + dy + 7)
            inside = box[0] >= frame[0] and box[1] >= frame[1] and box[2] <= frame[2] and box[3] <= frame[3]
            if inside and all(box[2] < t[0] or box[0] > t[2] or box[3] < t[1] or box[1] > t[3] for t in taken):
                return box
    return None


def lines(series: Sequence[Series], *, x: str, y: str, width: int = 940, height: int = 280) -> str:
    """Lines over a common x, each with its name at its end, and rows of ticks below for what happened where."""
    rows = [each for each in series if each.ticks]
    left, right, top, bottom = 64, 190, 26, 42 + 14 * len(rows)
    longest = max((len(each.values) for each in series), default=1)
    y_ticks = ticks(0, max((max(each.values, default=0) for each in series), default=1), 5)
    x_ticks = [t for t in ticks(1, max(longest, 2), 6) if 1 <= t <= longest and t == int(t)]
    span = max(1, longest - 1)
    place_y = _scale(y_ticks, height - bottom, top)

    def place_x(position: float) -> float:
        return left + (position - 1) / span * (width - right - left)

    out = [_open(width, height, f"{y} over {x}")]
    out += [_across(place_y(t), left, width - right, number(t)) for t in y_ticks]
    out += [_text(place_x(t), height - bottom + 16, number(t), "tick middle") for t in x_ticks]
    out.append(_text((left + width - right) / 2, height - 6 - 14 * len(rows), x, "axis middle"))
    out.append(_text(4, top - 14, y, "axis"))
    ends: list[float] = []
    for each in sorted(series, key=lambda one: -(one.values[-1] if one.values else 0)):
        if not each.values:
            continue
        points = " ".join(f"{place_x(n):.1f},{place_y(value):.1f}" for n, value in enumerate(each.values, 1))
        title = f"{each.label}: at most {max(each.values):,.0f}, at the end {each.values[-1]:,.0f}"
        out.append(f'<polyline class="{each.mark}" points="{points}"><title>{escape(title)}</title></polyline>')
        spot = place_y(each.values[-1]) + 4
        while any(abs(spot - other) < 14 for other in ends):
            spot += 2
        ends.append(spot)
        out.append(
            f'<text class="label {each.mark}" x="{width - right + 8}" y="{spot:.1f}">{escape(each.label)}</text>'
        )
    for n, each in enumerate(rows):
        row = height - 14 * (len(rows) - n) + 4
        for position, why in each.ticks:
            at = place_x(position)
            title = f"{each.label}, request {position}: {why}"
            place = f'x1="{at:.1f}" x2="{at:.1f}" y1="{row - 9}" y2="{row}"'
            out.append(f'<line class="{each.mark}" {place}><title>{escape(title)}</title></line>')
        out.append(
            f'<text class="tick {each.mark}" x="{width - right + 8}" y="{row}">{escape(each.label)}: cache broke</text>'
        )
    return "".join([*out, "</svg>"])


def bars(rows: Sequence[Bar], *, unit: str, width: int = 940) -> str:
    """Stacked horizontal bars with their sums at the end."""
    left, right, high = 190, 110, 24
    height = high * len(rows) + 34
    most = max((sum(value for _, value, _ in row.pieces) for row in rows), default=0) or 1
    out = [_open(width, height, unit)]
    for n, row in enumerate(rows):
        y = 4 + n * high
        out.append(_text(left - 8, y + 13, row.label, "label end"))
        at = float(left)
        for label, value, mark in row.pieces:
            long = value / most * (width - left - right)
            if long > 0:
                title = f"{row.label}, {label}: {value:,.0f} {unit}"
                place = f'x="{at:.1f}" y="{y}" width="{max(long - 1, 0.4):.1f}" height="{high - 7}"'
                out.append(f'<rect class="{mark}" {place}><title>{escape(title)}</title></rect>')
            at += long
        out.append(_text(at + 6, y + 13, f"{sum(value for _, value, _ in row.pieces):,.0f}", "tick"))
    out.append(_text(left, height - 8, unit, "axis"))
    return "".join([*out, "</svg>"])


def legend(entries: Sequence[tuple[str, str]]) -> str:
    """(label, CSS class) as a line of swatches."""
    return (
        '<p class="legend">'
        + "".join(f'<span><i class="{mark}"></i>{escape(label)}</span>' for label, mark in entries)
        + "</p>"
    )


def ticks(low: float, high: float, about: int) -> list[float]:
    """Round values that enclose low to high, around `about` steps apart."""
    if not math.isfinite(low) or not math.isfinite(high) or high - low < 1e-9:
        low, high = low - 0.05, high + 0.05
    raw = (high - low) / about
    scale = 10 ** math.floor(math.log10(raw))
    step = next(factor * scale for factor in (1, 2, 2.5, 5, 10) if factor * scale >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(n * step, 10) for n in range(first, last + 1)]


def number(value: float) -> str:
    """A tick's value: 1,000 · 0.85 · 1."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3f}".rstrip("0").rstrip(".")


def _scale(marks: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    low, high = marks[0], marks[-1]
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _open(width: int, height: int, title: str) -> str:
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{escape(title)}">'


def _across(y: float, left: float, right: float, label: str) -> str:
    return f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>' + _text(
        left - 6, y + 4, label, "tick end"
    )


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
