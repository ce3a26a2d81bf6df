"""`brim audit`: where the tokens and the money of your own sessions went. It reads, it never writes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def audit(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Logs, a brim.db, or folders; default: Claude Code's, codex' and brim's own.",
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

    from brim.errors import UsageError
    from brim.replay.audit import MODES
    from brim.replay.audit import audit as run
    from brim.replay.audit_text import render_audit
    from brim.replay.places import log_places
    from brim.replay.policies import parse_policy
    from brim.replay.sources import find_files, read_transcripts

    for each in mode or ():
        parse_policy(each)
    places = list(paths or log_places(os.environ, Path.home()))
    if not places:
        raise UsageError(
            "no logs of Claude Code, codex or brim on this machine", hint="name files or folders: brim audit PATH"
        )

    def warn(sentence: str) -> None:
        print(sentence, file=sys.stderr)

    transcripts = (found.transcript for found in read_transcripts(find_files(places), warn))
    report = run(transcripts, modes=mode or MODES, jobs=jobs).report(top)
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report), indent=1).decode() + "\n")
    else:
        sys.stdout.write(render_audit(report, top))
