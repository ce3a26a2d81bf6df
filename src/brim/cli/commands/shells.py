"""`brim aliases` and `brim completion`: what a shell is told once, in its start file.

The completion scripts ask `brim complete` at each Tab; its candidates come from the programs' own options, and for models,
profiles and sessions from the settings and the store as they are then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from brim.cli.commands.kept import Place

SHELLS = ("bash", "zsh", "fish", "powershell")
_SHELL = typer.Option("--shell", help="Default: that of $SHELL.", metavar="bash|zsh|fish|powershell")

_BASH = """\
_brim_complete() {
    local line IFS=$'\\n'
    COMPREPLY=()
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(
        brim complete --plain -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null
    )
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then compopt -o nospace; fi
}
complete -o default -F _brim_complete ai brim
"""
_ZSH = """\
_brim_complete() {
    local -a found
    found=("${(@f)$(brim complete -- "${(@)words[1,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then
        local -a names
        names=("${(@)found%%$'\\t'*}")
        compadd -d found -a names
    else
        _files
    fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
compdef _brim_complete ai brim
"""
_FISH = """\
function __brim_complete
    set -l words (commandline -opc) (commandline -ct)
    brim complete -- $words 2>/dev/null
end
complete -c ai -a '(__brim_complete)'
complete -c brim -a '(__brim_complete)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def aliases(shell: Annotated[str | None, _SHELL] = None) -> None:
    """Shell aliases for the profiles (ai-chat, ai-log, ai-code and your own): eval "$(brim aliases)" in a start file."""
    from brim.agent.tables import PROFILES
    from brim.cli.commands.kept import place_of
    from brim.cli.commands.shown import note, say

    kind = _shell(shell, SHELLS)
    place = place_of()
    for name in dict.fromkeys([*PROFILES, *place.config.table("profiles")]):
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
            note(f"! the profile {name!r} has no alias: its name is no word")
            continue
        place.config.profile(name)  # a profile that cannot be used is told now, not at its first use
        say(_alias(kind, name))


def _alias(kind: str, name: str) -> str:
    if kind == "powershell":
        return f"function ai-{name} {{ ai --profile {name} @args }}"
    between = " " if kind == "fish" else "="
    return f"alias ai-{name}{between}'ai --profile {name}'"


def completion(
    shell: Annotated[str | None, typer.Argument(help="Default: that of $SHELL.", metavar="[bash|zsh|fish]")] = None,
) -> None:
    """The completion script of a shell, for ai and brim: eval "$(brim completion)" in a start file (fish: pipe to source)."""
    from brim.cli.commands.shown import say

    say(_SCRIPTS[_shell(shell, tuple(_SCRIPTS))].rstrip())


def complete(
    words: Annotated[list[str] | None, typer.Argument(help="The words so far, the last one unfinished.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Without descriptions.")] = False,
) -> None:
    """What may stand next on a command line of ai or brim; completion scripts ask this."""
    from brim.cli.commands.shown import say

    given = words or []
    for value, about in candidates(given):
        say(value if plain or not about else f"{value}\t{' '.join(about.split())}")


def _shell(named: str | None, known: tuple[str, ...]) -> str:
    from brim.errors import UsageError

    if named is not None and named not in known:
        raise UsageError(f"the shell {named!r} is unknown", hint=f"one of {', '.join(known)}")
    own = os.path.basename(os.environ.get("SHELL", ""))
    return named or (own if own in known else "bash")


# ---- candidates ------------------------------------------------------------------------------------------------------


def candidates(words: list[str]) -> Iterator[tuple[str, str]]:
    """What may stand in the last place, with a word on each. Never raises: a Tab must not print an error."""
    from brim.errors import BrimError

    if len(words) < 2:
        return
    program, *before, begun = words
    command: Any = _command(os.path.basename(program))
    while (below := getattr(command, "commands", None)) is not None:
        verb = next((word for word in before if word in below), None)
        if verb is None:
            break
        before = before[before.index(verb) + 1 :]
        command = below[verb]
    if "--" in before:
        return
    options = {name: param for param in command.params for name in param.opts if name.startswith("-")}
    option = options.get(before[-1]) if before else None
    if option is not None and not getattr(option, "is_flag", False):
        begun, head = begun, ""
    elif begun.startswith("--") and "=" in begun and begun.partition("=")[0] in options:
        name, _, begun = begun.partition("=")
        option, head = options[name], f"{name}="
    else:
        option, head = None, ""
    try:
        if option is not None:
            found = _values(option)
        elif begun.startswith("-"):
            found = ((name, option.help or "") for name, option in options.items() if len(name) > 2)
        elif hasattr(command, "commands"):
            found = ((name, each.get_short_help_str(60)) for name, each in command.commands.items() if not each.hidden)
        else:
            found = _arguments(command)
        for value, about in found:
            if value.startswith(begun):
                yield head + value, about
    except BrimError:
        return


def _command(program: str) -> Any:
    from typer.main import get_command

    if program.startswith("ai"):
        from brim.cli.ai import app

        return get_command(app)
    from brim.cli.manage import app as manage

    return get_command(manage)


def _values(option: Any) -> Iterator[tuple[str, str]]:
    """Values of an option: those its metavar lists, else what its name stands for."""
    metavar = str(option.metavar or "").strip("[]")
    if "|" in metavar:
        yield from ((each, "") for each in metavar.split("|"))
        return
    make = _BY_NAME.get(option.name or "")
    if make is not None:
        yield from make(_place())


def _arguments(command: Any) -> Iterator[tuple[str, str]]:
    """Values of a command's next argument, by what its metavar calls it."""
    for param in command.params:
        if param.param_type_name != "argument":
            continue
        metavar = str(param.metavar or "").strip("[]")
        if "|" in metavar:
            yield from ((each, "") for each in metavar.split("|"))
        elif metavar.rstrip(".").strip() in ("ID", "ID..."):
            yield from _sessions(_place())
        elif metavar == "KEY":
            from brim.agent.config import known_keys

            yield from ((key, "") for key in known_keys())
        elif metavar == "NAME" and command.name in ("pull", "remove", "path"):
            yield from ((name.removeprefix("local/"), about) for name, about in _local_models())


def _place() -> Place:
    import contextlib
    import io

    from brim.cli.commands.kept import place_of

    with contextlib.redirect_stderr(io.StringIO()):  # warnings about settings are for when something runs
        return place_of()


def _profiles(place: Place) -> Iterator[tuple[str, str]]:
    from brim.agent.tables import PROFILES

    for name in dict.fromkeys([*PROFILES, *place.config.table("profiles")]):
        yield name, f"mode {place.config.profile(name).mode or place.config.get('mode')}"


def _models(place: Place) -> Iterator[tuple[str, str]]:
    """Models with a key or of the user's own, those on this machine, and those that were used."""
    from brim.providers.presets import default_of, own_providers, providers_with_key

    own = place.config.providers()
    seen: set[str] = set()
    rows: list[tuple[str, str]] = []
    for name, values in own_providers(own).items():
        rows += [(f"{name}/{model}", "from your settings") for model in values.models]
    for provider in providers_with_key(place.env, own):
        if (model := default_of(provider, place.env, own)) is not None:
            rows.append((model.full_name, "has a key"))
    rows += _local_models()
    if (path := _store_file(place)) is None or path.exists():
        from brim.store import open_store

        with open_store(place.config.get("store")) as store:
            rows += [(each.key, "used before") for each in store.usage("model") if each.key]
    for name, about in rows:
        if name not in seen:
            seen.add(name)
            yield name, about


def _local_models() -> list[tuple[str, str]]:
    from brim.providers.models import list_models

    return [(f"local/{row.name}", row.about if row.path else f"{row.about} (not here yet)") for row in list_models()]


def _sessions(place: Place) -> Iterator[tuple[str, str]]:
    """The folder's sessions, the latest first."""
    if (path := _store_file(place)) is not None and not path.exists():
        return
    from brim.store import open_store
    from brim.store.values import short_id

    with open_store(place.config.get("store")) as store:
        for session in store.list_sessions(str(place.folder), 50):
            yield short_id(session.id), session.title or ""


def _store_file(place: Place) -> Path | None:
    """The store's file; None where it is no file."""
    from brim.store import data_dir

    named = place.config.get("store")
    return None if named and "://" in named else Path(named or data_dir() / "brim.db").expanduser()


_BY_NAME: dict[str, Callable[[Place], Iterator[tuple[str, str]]]] = {
    "model": _models,
    "fallback": _models,
    "profile": _profiles,
    "resume": _sessions,
    "session": _sessions,
}
