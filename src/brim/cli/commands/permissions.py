"""`brim permissions`: what tools may do here."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What tools may do, and why.")
