"""An audit as text: a few small tables, the dearest first."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import Any

from brim.budget.bill import fit
from brim.replay.table import NAME, lay_out


def render_audit(report: dict[str, Any], top: int = 10, width: int | None = None) -> str:
    """The report of `Audit.report` for people. Tables wider than `width` columns go on below, with their first column
    again."""
    return "\n".join(_lines(report, top, width)) + "\n"


def _lines(report: dict[str, Any], top: int, width: int | None) -> Iterator[str]:
    spent = report["spent"]
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(report["kinds"].items()))
    sessions = f"{report['sessions']:,} session{_s(report['sessions'])} ({kinds})"
    if spent["requests"]:
        yield f"{sessions}, {spent['requests']:,} request{_s(spent['requests'])} with usage"
        cached = f", of which {_share(spent['cached_read'], spent['input'])} read from the cache"
        yield f"input {spent['input']:,} tokens{cached if spent['input'] else ''}"
        yield f"output {spent['output']:,} tokens"
        known = spent["unpriced"] < spent["requests"]
        yield f"cost {_usd(spent['usd']) if known else 'unknown'}{_unpriced(spent)}"
    else:
        yield f"{sessions}; the logs hold no usage, so what was paid for is not known"
    if spent["unreported"]:
        yield f"{spent['unreported']:,} answer{_s(spent['unreported'])} without usage in the log"
    heads = ("requests", "input", "cached", "output", "cost")
    models = [(fit(model, NAME), *_spent(row)) for model, row in report["models"].items() if row["requests"]]
    if len(models) > 1:
        yield from _table("by model", ("model", *heads), models, width)
    dearest = [
        (fit(row["session"], NAME), _day(row["started"]), *_spent(row))
        for row in report["dearest"][:top]
        if row["requests"]
    ]
    yield from _table("dearest sessions", ("session", "began", *heads), dearest, width)
    whole = sum(report["window"].values())
    window = [(fit(what, NAME), f"{n:,}", _share(n, whole)) for what, n in list(report["window"].items())[:top]]
    yield from _table(
        "what the requests were made of, each message once for each request that sent it",
        ("what", "tokens sent", "share"),
        window,
        width,
    )
    yield from _table(
        "tool results that nothing used again after the request that read them first",
        ("tool", "results", "unused", "tokens of unused", "tokens carried on"),
        [
            (fit(tool, NAME), *(f"{row[key]:,}" for key in ("results", "unused", "unused_tokens", "carried")))
            for tool, row in list(report["unused"].items())[:top]
        ],
        width,
    )
    breaks = [
        (cause, f"{row['times']:,}", f"{row['lost']:,}", _usd(row["usd"])) for cause, row in report["breaks"].items()
    ]
    yield from _table("where the cache broke", ("why", "times", "tokens not read", "cost more"), breaks, width)
    modes = [
        (mode, f"{row['cost']:.3f}", f"{row['supported']:.3f}", f"{row['overflows']:,}", _saved(row))
        for mode, row in report["modes"].items()
    ]
    yield from _table(
        "what each mode would have cost on what the logs hold: 1 is sending everything",
        ("mode", "cost", "supported", "overflows", "saved"),
        modes,
        width,
        told_last=True,
    )


def _saved(row: dict[str, Any]) -> str:
    """`1,317 tokens, $0.0040`; a mode that would have been dearer saves nothing, and that is said."""
    tokens, usd = row["saved_tokens"], row["saved_usd"]
    money = f", {_usd(abs(usd))}" if usd is not None and _usd(abs(usd)) != "$0.00" else ""
    if tokens < 0:
        return f"nothing, {-tokens:,} tokens{money} dearer"
    return f"{tokens:,} tokens{money}" if tokens else "nothing"


def _spent(row: dict[str, Any]) -> tuple[str, ...]:
    cached = _share(row["cached_read"], row["input"])
    unknown = row["unpriced"] == row["requests"]
    cost = "unknown" if unknown else _usd(row["usd"]) + (" and more" if row["unpriced"] else "")
    return (f"{row['requests']:,}", f"{row['input']:,}", cached, f"{row['output']:,}", cost)


def _table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, *, told_last: bool = False
) -> Iterator[str]:
    if rows:
        yield ""
        yield title
        yield from lay_out([heads, *rows], width, told_last=told_last)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def _usd(dollars: float) -> str:
    """Cents, and what is less to four digits."""
    return f"${dollars:,.2f}" if dollars >= 0.1 or round(dollars, 4) == 0 else f"${dollars:.4f}"


def _day(started: float | None) -> str:
    return datetime.datetime.fromtimestamp(started).date().isoformat() if started is not None else "-"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _unpriced(spent: dict[str, Any]) -> str:
    count = spent["unpriced"]
    return f" ({count:,} request{_s(count)} to models of unknown price not included)" if count else ""
