"""The itemised token account of one request, as data and as a table.

Always: `used + reserved + margin + held_back + free == window`, and `used` is the sum of the lines. `free` is below
zero in the bill of a request that does not fit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

KINDS = {
    "system": "s", "tools": "t", "overhead": "+", "pins": "p", "summary": "f", "inserts": "i", "user": "u", "assistant": "a",
    "tool": "o", "thinking": "h", "media": "m",
}  # fmt: skip
"""What a line can be, and its mark in the picture of the window."""


class Line(TypedDict):
    """One item: its kind (of `KINDS`), a label for people, tokens, and how many messages, parts or tools it is."""

    kind: str
    label: str
    tokens: int
    count: int


class Bill(dict[str, Any]):
    """A JSON-serialisable dict whose keys are attributes, too.

    window, window_assumed, reserved (for the reply), margin (against counting errors), held_back (by the history
    budget), free, used: tokens, but for `window_assumed`; counter: name; exact: whether it is the model's own; lines.
    """

    window: int
    window_assumed: bool
    reserved: int
    margin: int
    held_back: int
    free: int
    used: int
    counter: str
    exact: bool
    lines: list[Line]

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def make_bill(
    *,
    window: int,
    window_assumed: bool,
    reserved: int,
    margin: int,
    held_back: int,
    lines: Iterable[Mapping[str, Any]],
    counter: str,
    exact: bool,
) -> Bill:
    """A bill whose parts sum to the window. Lines of one kind and label become one; empty ones go."""
    merged: dict[tuple[str, str], Line] = {}
    for line in lines:
        if line["kind"] not in KINDS:
            raise ValueError(f"no bill line of kind {line['kind']!r}; there are {', '.join(KINDS)}")
        label = line.get("label") or line["kind"]
        mine = merged.setdefault((line["kind"], label), Line(kind=line["kind"], label=label, tokens=0, count=0))
        mine["tokens"] += line["tokens"]
        mine["count"] += line.get("count", 1)
    ordered = sorted((line for line in merged.values() if line["tokens"] or line["count"]), key=_order)
    used = sum(line["tokens"] for line in ordered)
    return Bill(
        window=window,
        window_assumed=window_assumed,
        reserved=reserved,
        margin=margin,
        held_back=held_back,
        free=window - reserved - margin - held_back - used,
        used=used,
        counter=counter,
        exact=exact,
        lines=ordered,
    )


def largest(bill: Bill) -> Line | None:
    """The line with the most tokens that something can be done about; None for an empty bill."""
    lines: list[Line] = [line for line in bill["lines"] if line["kind"] != "overhead"] or bill["lines"]
    return max(lines, key=lambda line: line["tokens"], default=None)


def render_bill(bill: Mapping[str, Any], width: int = 80) -> str:
    """The bill as plain text: a bar of the whole window, then one row an item behind its mark in the bar.

    `width` in terminal columns, CJK counting two; below 40 it is 40.
    """
    width = max(40, width)
    window = max(1, bill["window"])
    rows = [(KINDS[line["kind"]], line["label"], line["count"], line["tokens"]) for line in bill["lines"]]
    rest = [
        ("r", "reserved for the reply", None, bill["reserved"]),
        ("-", "margin for counting errors", None, bill["margin"]),
        ("-", "held back (history budget)", None, bill["held_back"]),
        (".", "free", None, bill["free"]),
    ]
    rows += [row for row in rest if row[3] or row[0] == "."]
    figures = max(len(f"{tokens:,}") for tokens in [bill["window"], *(row[3] for row in rows)])
    labels = max(10, width - figures - 18)
    about = "" if bill["exact"] else "~"
    share_used = f"{bill['used'] / window:.0%}"
    note = ", window assumed" if bill["window_assumed"] else ""
    out = [
        fit(f"{about}{bill['used']:,} of {bill['window']:,} tokens used ({share_used}){note}", width),
        bar(bill, width),
    ]
    for mark, label, count, tokens in rows:
        times = f"x{count:,}" if count and count > 1 else ""
        out.append(f"{mark} {pad(label, labels)} {times:>6} {tokens:>{figures},} {tokens / window:>6.1%}")
    own = "" if bill["exact"] else ", not the model's own"
    out.append(fit(f"counted with {bill['counter']}{own}", width))
    return "\n".join(out)


def bar(bill: Mapping[str, Any], width: int) -> str:
    """One line of `width` columns for the window: each item by its mark, then what is reserved, held back and free."""
    inner, window = width - 2, max(1, bill["window"])
    marks, done, total = "", 0, 0
    used = [(KINDS[line["kind"]], line["tokens"]) for line in bill["lines"]]
    kept = [("r", bill["reserved"]), ("-", bill["margin"] + bill["held_back"]), (".", max(0, bill["free"]))]
    for mark, tokens in [*used, *kept]:
        total += tokens
        upto = min(inner, round(total / window * inner))
        marks += mark * (upto - done)
        done = max(done, upto)
    return f"[{marks.ljust(inner, '.')}]"


def columns(text: str) -> int:
    """How many terminal columns a text takes: wide East Asian characters two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def fit(text: str, width: int) -> str:
    """The text cut to `width` columns, with … where something is missing; control characters become spaces."""
    text = "".join(char if char.isprintable() else " " for char in text)
    if columns(text) <= width:
        return text
    kept, used = "", 0
    for char in text:
        used += columns(char)
        if used > width - 1:
            break
        kept += char
    return kept + "…"


def pad(text: str, width: int) -> str:
    """The text in exactly `width` columns."""
    text = fit(text, width)
    return text + " " * (width - columns(text))


def _order(line: Line) -> tuple[int, int, str]:
    return list(KINDS).index(line["kind"]), -line["tokens"], line["label"]
