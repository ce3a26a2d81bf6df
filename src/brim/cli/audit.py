"""`brim audit`: where the tokens and the money of your own sessions went. It reads, it never writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brim.replay.transcript import Transcript


def audit(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Logs, a brim.db, folders, or - for stdin; default: Claude Code's, codex' and brim's own.",
            metavar="[PATHS]",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            "--mode", help="A mode to compare, auto,window=64000 for example; default: all three.", metavar="MODE"
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Rows of each table.", metavar="N")] = 10,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Worker processes.", metavar="N")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Tokens and money by model and session, results never used again, cache breaks, and what brim's modes would save."""
    import os

    import msgspec

    from brim.cli.commands.shown import note, say, say_json_text
    from brim.cli.replay import progress, width_of_terminal
    from brim.errors import UsageError
    from brim.replay.audit import MODES
    from brim.replay.audit import audit as run
    from brim.replay.audit_text import render_audit
    from brim.replay.files import size_of
    from brim.replay.places import log_places
    from brim.replay.policies import expand
    from brim.replay.sources import find_files, read_transcripts

    modes = expand(mode or MODES)
    places = list(paths or log_places(os.environ, Path.home()))
    if not places:
        raise UsageError(
            "no logs of Claude Code, codex or brim on this machine", hint="name files or folders: brim audit PATH"
        )

    files = find_files(places)

    with progress("audit", sum(map(size_of, files))) as shown:

        def transcripts() -> Iterator[Transcript]:
            for found in read_transcripts(files, note):
                if shown is not None:
                    shown(found.file, found.bytes)
                yield found.transcript

        audited = run(transcripts(), modes=modes, jobs=jobs)
    if not audited.sessions:
        where = ", ".join(map(str, places))
        raise UsageError(f"no sessions in {where}", hint="name files or folders with logs: brim audit PATH")
    report = audited.report(top)
    if as_json:
        say_json_text(msgspec.json.format(msgspec.json.encode(report), indent=1).decode())
    else:
        say(render_audit(report, top, width_of_terminal()).rstrip("\n"))
        note(
            "cost and supported: as `brim replay` measures them; with --html it plots the same logs, context by request"
        )
