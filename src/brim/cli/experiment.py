"""`brim experiment`: one small project, two questions, three modes; tokens, time and correctness beside the reference."""

from __future__ import annotations

from typing import Annotated

import typer


def experiment(
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="provider/model, or scripted; default: the embedded model.", metavar="NAME"),
    ] = None,
    mode: Annotated[
        list[str] | None, typer.Option("--mode", help="Only this mode; may be repeated.", metavar="full|compact|auto")
    ] = None,
    window: Annotated[
        int | None, typer.Option("--window", min=1_024, help="A smaller window.", metavar="TOKENS")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with the answers.")] = False,
) -> None:
    """Ask two questions about a small Python project in all three modes, and compare what each was sent and got right."""
    import asyncio
    import os
    from pathlib import Path

    import msgspec

    from brim.agent.config import load_config
    from brim.cli.commands.shown import say, say_json_text
    from brim.errors import UsageError
    from brim.replay.experiment import MODES, render_experiment, run_experiment

    chosen = model or "local/smollm2"
    unknown = [each for each in mode or () if each not in MODES]
    if unknown:
        raise UsageError(f"no mode {unknown[0]!r}", hint=f"one of {', '.join(MODES)}")
    config = load_config(Path.cwd(), os.environ)
    rounds = asyncio.run(run_experiment(config, os.environ, model=chosen, modes=mode or MODES, window=window))
    if as_json:
        say_json_text(msgspec.json.format(msgspec.json.encode(rounds), indent=1).decode())
    else:
        say(render_experiment(rounds, chosen).rstrip("\n"))
    if any(each.error for each in rounds):
        raise typer.Exit(1)
