"""The table of commands: each name has one function that gets the REPL and the rest of the line."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from brim.errors import UsageError

if TYPE_CHECKING:
    from brim.cli.repl import Repl

Do = Callable[["Repl", str], Awaitable[None]]


class Command(msgspec.Struct, frozen=True):
    """`usage`: what may follow the name; `about`: what it does, in a few words."""

    do: Do
    usage: str
    about: str


COMMANDS: dict[str, Command] = {}


def command(name: str, usage: str, about: str) -> Callable[[Do], Do]:
    """Enters a function into the table."""

    def enter(do: Do) -> Do:
        COMMANDS[name] = Command(do, usage, about)
        return do

    return enter


async def run_command(repl: Repl, name: str, rest: str) -> None:
    """Runs the command of that name; a beginning that fits one alone will do. Raises UsageError, Leave."""
    found = COMMANDS.get(name)
    if found is None:
        fitting = [each for each in COMMANDS if each.startswith(name)] if name else []
        if len(fitting) != 1:
            near = fitting or difflib.get_close_matches(name, COMMANDS, 3, 0.5)
            hint = f"did you mean {', '.join('/' + each for each in near)}?" if near else "/help lists all"
            raise UsageError(f"there is no command /{name}", hint=hint)
        name, found = fitting[0], COMMANDS[fitting[0]]
    if rest and not found.usage:
        raise UsageError(
            f"/{name} takes nothing after it: {rest!r} was not understood", hint="/help lists the commands"
        )
    await found.do(repl, rest)


def path_of(repl: Repl, text: str) -> Path:
    """A path as the user wrote it: `~` is home, relative to the workspace; quotes around it, as Tab and shells write them
    where there are blanks, are no part of it."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return repl.workspace / Path(text).expanduser()


def write_new(path: Path, text: str) -> None:
    """Writes a file that is not there yet. Raises UsageError."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} is there already", hint="name another file: /export FILE") from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="name another file: /export FILE") from error


def number_of(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{text!r} is no number of a {what}", hint="/explain shows the numbers") from None
