"""`brim replay`: what context policies would have cost on recorded conversations."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_POLICY = (
    "everything, mask-10, mask-20k-keep-10, cut-1500, last-20 (any numbers), full, compact, auto with settings "
    "(auto,window=64000), a peer's package (langchain-trim), or fixed, modes, peers for several. May be repeated; "
    "default: fixed and modes."
)
_PRICES = (
    "Relative price of writing and reading a cached token, 1.25/0.1, or a model's name. May be repeated; default: "
    "1.25/0.1, 1/0.25, 1/0.5, 1/1."
)


def replay(
    files: Annotated[
        list[Path], typer.Argument(help="Transcripts, logs, a brim.db, folders, or - for stdin.", metavar="FILES…")
    ],
    policy: Annotated[
        list[str] | None, typer.Option("--policy", "-p", help=_POLICY, metavar="NAME", show_default=False)
    ] = None,
    prices: Annotated[
        list[str] | None, typer.Option("--prices", help=_PRICES, metavar="WRITE/READ|MODEL", show_default=False)
    ] = None,
    pause_every: Annotated[
        int, typer.Option("--pause-every", min=0, help="The cache has expired at every Nth request.", metavar="N")
    ] = 0,
    window: Annotated[
        int | None,
        typer.Option("--window", min=1, help="Tokens over which a request counts as overflow.", metavar="TOKENS"),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Worker processes.", metavar="N")] = 1,
    engine: Annotated[str, typer.Option("--engine", help="Where workers run.", metavar="local|ray")] = "local",
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Keep what is done here, and go on from it.", metavar="FILE")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a report to this file.", metavar="FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The figures as JSON, the same at every run.")] = False,
    times: Annotated[bool, typer.Option("--times", help="With --json: planner time, too.")] = False,
) -> None:
    """Replay recorded conversations through context policies: cost, cache, and what a later step would have missed.

    Costs are relative to sending everything. A request is supported where all it used of the history stood in view.
    """
    from brim.cli.commands.shown import say_json_text
    from brim.replay.figures import encode_report
    from brim.replay.files import size_of
    from brim.replay.play import Plays
    from brim.replay.policies import expand
    from brim.replay.regimes import parse_regimes
    from brim.replay.run import replay as run
    from brim.replay.sources import find_files, read_transcripts
    from brim.replay.table import render_legend, render_table

    specs = expand(policy or ())
    paths = find_files(files)
    _writable(html, [*paths, *([resume] if resume else [])])
    plays = Plays(tuple(specs), parse_regimes(prices or ()), pause_every, window, series=html is not None)
    try:
        with progress("replay", sum(map(size_of, paths))) as shown:
            step = (lambda done: shown(done.file, done.bytes)) if shown is not None else None
            figures = run(read_transcripts(paths, _warn), plays, jobs=jobs, engine=engine, journal=resume, step=step)
    except KeyboardInterrupt:
        if resume is not None:
            _warn(f"interrupted; what is done is in {resume}, and the same command goes on from there")
        raise
    report = figures.report(times=times or not as_json)
    if not figures.all.requests:
        from brim.errors import UsageError

        raise UsageError(
            "no requests in these files", hint="a request is an assistant message after the second message"
        )
    if html is not None:
        from brim.replay.html import render_html

        html.write_text(render_html(figures), encoding="utf-8")
        _warn(f"wrote {html}")
    columns = width_of_terminal()
    if as_json:
        say_json_text(encode_report(report).rstrip("\n"))
    else:
        _say(render_table(report, columns))
        _warn("\n" + render_legend(report, columns).rstrip())


def width_of_terminal() -> int | None:
    """Columns of the terminal on stdout; None where it is none, or does not say."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None if sys.stdout.isatty() else None
    except (OSError, ValueError):
        return None


def _writable(html: Path | None, others: list[Path]) -> None:
    """Refuses, before hours of work, a report that could not be written or would take the place of what is read."""
    from brim.errors import UsageError

    if html is None:
        return
    if any(html.resolve() == other.resolve() for other in others):
        raise UsageError(f"--html {html} is a file of this replay", hint="name a file of its own: report.html")
    if html.is_dir() or not html.parent.is_dir() or not os.access(html if html.exists() else html.parent, os.W_OK):
        raise UsageError(f"cannot write {html}", hint="name a file in a folder that exists")


def _say(text: str) -> None:
    from brim.cli.commands.shown import say

    say(text.rstrip("\n"))


def _warn(sentence: str) -> None:
    from brim.cli.commands.shown import note

    note(sentence)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[str, int], None] | None]:
    """A bar on stderr where that is a terminal, moved by (file, bytes of `total` read); None where it is none."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total or None)
        yield lambda file, done: bar.update(task, completed=done, description=escape(file))
