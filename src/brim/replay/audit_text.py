"""An audit as text: a few small tables, the dearest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def render_audit(report: dict[str, Any], top: int = 10) -> str:
    """The report of `Audit.report` for people."""
    return "\n".join(_lines(report, top)) + "\n"


def _lines(report: dict[str, Any], top: int) -> Iterator[str]:
    spent = report["spent"]
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(report["kinds"].items()))
    yield f"{report['sessions']:,} sessions ({kinds}), {spent['requests']:,} requests with usage"
    yield f"input {spent['input']:,} tokens, of which {_share(spent['cached_read'], spent['input'])} read from the cache"
    yield f"output {spent['output']:,} tokens"
    yield f"cost ${spent['usd']:,.2f}{_unpriced(spent)}"
    if spent["unreported"]:
        yield f"{spent['unreported']:,} answers without usage in the log (several lines of one answer count once)"
    heads = ("requests", "input", "cached", "output", "cost")
    if len(report["models"]) > 1:
        yield from _table(
            "by model", ("model", *heads), [(model, *_spent(row)) for model, row in report["models"].items()]
        )
    dearest = [(row["session"], *_spent(row)) for row in report["dearest"][:top] if row["requests"]]
    yield from _table("dearest sessions", ("session", *heads), dearest)
    whole = sum(report["window"].values())
    yield from _table("what the requests were made of", ("what", "tokens sent", "share"), [
        (what, f"{tokens:,}", _share(tokens, whole)) for what, tokens in list(report["window"].items())[:top]
    ])  # fmt: skip
    yield from _table(
        "tool results never used again after their first reading",
        ("tool", "results", "unused", "their tokens", "carried on as"),
        [
            (tool, f"{row['results']:,}", f"{row['unused']:,}", f"{row['unused_tokens']:,}", f"{row['carried']:,}")
            for tool, row in list(report["unused"].items())[:top]
        ],
    )
    yield from _table("where the cache broke", ("why", "times", "tokens not read", "cost"), [
        (cause, f"{row['times']:,}", f"{row['lost']:,}", f"${row['usd']:,.2f}") for cause, row in report["breaks"].items()
    ])  # fmt: skip
    yield from _table(
        "what each mode would have cost on what the logs hold (1 is sending everything)",
        ("mode", "cost", "supported", "saved"),
        [
            (
                mode,
                f"{row['cost']:.3f}",
                f"{row['supported']:.3f}",
                f"${row['saved_usd']:,.2f}, {row['saved_tokens']:,} tokens",
            )
            for mode, row in report["modes"].items()
        ],
    )


def _spent(row: dict[str, Any]) -> tuple[str, ...]:
    cached = _share(row["cached_read"], row["input"])
    return (f"{row['requests']:,}", f"{row['input']:,}", cached, f"{row['output']:,}", f"${row['usd']:,.2f}")


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield title
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    for row in (heads, *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        yield "  " + "  ".join(cells).rstrip()


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def _unpriced(spent: dict[str, Any]) -> str:
    return f" ({spent['unpriced']:,} requests to models of unknown price not included)" if spent["unpriced"] else ""
