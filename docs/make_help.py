"""Writes docs/help.md: what `ai --help` and `brim COMMAND --help` say. `make docs` runs it, a test compares.

python docs/make_help.py [FILE]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WIDTH = 90
HEAD = "# Every command and option\n\nMade from the programs' own `--help` by `make docs`; do not edit.\n"


def help_page() -> str:
    """The whole page."""
    from typer.main import get_command

    from brim.cli.ai import app as ai
    from brim.cli.manage import app as brim

    pieces = [HEAD]
    for app, name in ((ai, "ai"), (brim, "brim")):
        for path, text in commands(get_command(app), name):
            pieces.append(f"## {path}\n\n```text\n{text.rstrip()}\n```\n")
    return "\n".join(pieces)


def commands(command: Any, path: str) -> Iterator[tuple[str, str]]:
    """The help of a command and of all below it, in the order of the program."""
    context = command.make_context(path, [], resilient_parsing=True, terminal_width=WIDTH, max_content_width=WIDTH)
    with context:
        yield path, command.get_help(context)
        for name, below in getattr(command, "commands", {}).items():
            yield from commands(below, f"{path} {name}")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("help.md")
    target.write_text(help_page(), encoding="utf-8")
