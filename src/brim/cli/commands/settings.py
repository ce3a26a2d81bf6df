"""`brim config`: what is set, where, and what could be."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What is set, where it was set, and what could be.")
_FOLDER = typer.Option("--directory", "-C", help="As it holds in this folder.", metavar="DIR")

_TEMPLATE = """\
# brim's settings; `brim config show` lists all of them, `brim config schema` describes them.

# model = "openai/gpt-5-mini"
# mode = "auto"

# A server of your own, for `ai --model work/my-model`; key_env names the variable that holds the key.
# [providers.work]
# base_url = "http://127.0.0.1:8000/v1"
# key_env = "WORK_API_KEY"

# [context]
# compact_trigger_ratio = 0.6

# [tools]
# grep = 4000

# [permissions]
# allow = ["bash(git status)"]
"""


@app.command()
def show(
    key: Annotated[str | None, typer.Argument(help="Only this one, or those of a table.", metavar="[KEY]")] = None,
    origin: Annotated[bool, typer.Option("--origin", help="With where each was set.")] = False,
    directory: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Every setting with its value; a project's file, the environment and defaults included."""
    from brim.agent.config import known_keys
    from brim.cli.commands.kept import place_of
    from brim.cli.commands.shown import say, say_json, table
    from brim.errors import UsageError

    place = place_of(directory)
    values = everything(place)
    if key is not None:
        wanted = {name: value for name, value in values.items() if name == key or name.startswith(f"{key}.")}
        if not wanted:
            raise UsageError(f"there is no setting {key!r}", hint=_nearest(key, known_keys()))
        values = wanted
    if as_json:
        say_json({name: {"value": value, "origin": where} for name, (value, where) in values.items()})
        return
    rows = [(name, _shown(value), where) for name, (value, where) in values.items()]
    if origin:
        say(table(("setting", "value", "set by"), rows))
    else:
        say("\n".join(f"{name} = {value}" for name, value, _ in rows))


@app.command()
def path(directory: Annotated[Path | None, _FOLDER] = None) -> None:
    """The files that settings are read from, the user's first; those that are not there are marked."""
    from brim.agent.config import project_config_path, user_config_path
    from brim.cli.commands.kept import folder_of
    from brim.cli.commands.shown import note, say

    folder = folder_of(directory)
    user = user_config_path(os.environ)
    say(str(user))
    if not user.is_file():
        note("(not there; `brim config edit` makes it)")
    project = project_config_path(folder)
    if project is not None:
        say(str(project))


@app.command()
def edit() -> None:
    """Open your own settings in $VISUAL or $EDITOR, and check them afterwards."""
    from brim.agent.config import user_config_path
    from brim.cli.commands.kept import place_of
    from brim.cli.commands.shown import note
    from brim.errors import ConfigError, UsageError

    file = user_config_path(os.environ)
    try:
        if not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.write_text(_TEMPLATE, encoding="utf-8")
            file.chmod(0o600)  # keys may come to stand in it
    except OSError as error:
        raise ConfigError(
            f"cannot make {file}: {error.strerror}",
            hint="make the folder writable, or name another file in BRIM_CONFIG",
        ) from error
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ("notepad" if os.name == "nt" else "vi")
    try:
        code = subprocess.run([*shlex.split(command), str(file)], check=False).returncode
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot start {command!r}: {why}", hint=f"set EDITOR, or edit {file} by hand") from error
    if code:
        raise typer.Exit(1)
    place_of()
    note(f"{file} is fine")


@app.command()
def schema() -> None:
    """A JSON schema of the settings file, for an editor that completes and checks it."""
    from brim.cli.commands.shown import say_json

    say_json(settings_schema())


def schemas(
    of: Annotated[
        str,
        typer.Argument(help="output: of ai --output-format; settings: of a settings file.", metavar="output|settings"),
    ] = "output",
) -> None:
    """A JSON schema: of what `ai --output-format json|stream-json` writes, a line each, or of a settings file."""
    from brim.cli.commands.shown import say_json
    from brim.cli.schema import output_schema
    from brim.errors import UsageError

    if of not in ("output", "settings"):
        raise UsageError(f"there is no schema of {of!r}", hint="output or settings")
    say_json(output_schema() if of == "output" else settings_schema())


def everything(place: Any) -> dict[str, tuple[Any, str]]:
    """All settings by dotted key: value and origin. Keys of providers are not shown."""
    import msgspec

    from brim.agent.config import known_keys
    from brim.budget import Settings
    from brim.tools import Caps
    from brim.tools.caps import ENVIRONMENT

    config, env = place.config, place.env
    caps = msgspec.to_builtins(config.caps(env))
    variables = {field: name for name, field in ENVIRONMENT.items()}
    context = msgspec.to_builtins(config.settings(), enc_hook=str)
    values: dict[str, tuple[Any, str]] = {}
    for key in known_keys():
        table, _, name = key.rpartition(".")
        if table == "tools":
            variable = variables.get(name, "")
            by = next(
                (f"environment {each}" for each in (f"BRIM_{variable}", variable) if each and env.get(each)), None
            )
            values[key] = (caps[name], by or config.origin(key))
        elif table == "context":
            values[key] = (context[name], config.origin(key))
        else:
            values[key] = (config.get(key), config.origin(key))
    del Settings, Caps
    for key in config.values:
        if key not in values:
            values[key] = (_masked(config.get(key)), config.origin(key))
    return values


def settings_schema() -> dict[str, Any]:
    """The JSON schema of a settings file, with the fields' descriptions from their docstrings."""
    import msgspec

    from brim.agent.tables import General, PermissionRules, Profile, Retrieval
    from brim.budget import Settings
    from brim.providers.presets import OwnProvider
    from brim.tools import Caps
    from brim.tools.mcp import McpSettings, ServerSettings

    def of(struct: Any, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
        told = described(struct)
        properties: dict[str, Any] = {}
        for field in msgspec.structs.fields(struct):
            if field.name in without:
                continue
            entry: dict[str, Any] = dict(msgspec.json.schema(field.type))
            if field.default is not msgspec.NODEFAULT and field.default is not None:
                entry["default"] = field.default
            if field.name in told:
                entry["description"] = told[field.name]
            properties[field.name] = entry
        return {"type": "object", "properties": properties, "additionalProperties": False}

    servers = of(McpSettings, without=("servers",))
    servers["properties"]["servers"] = {"type": "object", "additionalProperties": of(ServerSettings)}
    whole = of(General)
    whole["properties"] |= {
        "context": of(Settings, without=("summarizer", "relevance")),
        "tools": of(Caps),
        "permissions": of(PermissionRules),
        "retrieval": of(Retrieval),
        "profiles": {"type": "object", "additionalProperties": of(Profile)},
        "providers": {"type": "object", "additionalProperties": of(OwnProvider)},
        "prices": {"type": "object", "additionalProperties": _PRICE},
        "mcp": servers,
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "brim's settings", **whole}


_PRICE: dict[str, Any] = {
    "type": "object",
    "description": 'US dollars per million tokens; [prices."work/my-model"] or a pattern',
    "properties": {
        name: {"type": "number", "minimum": 0}
        for name in ("input", "output", "cache_read", "cache_write", "cache_write_1h")
    },
    "required": ["input", "output"],
    "additionalProperties": False,
}


def described(struct: Any) -> dict[str, str]:
    """The docstring that stands under each field of a struct, as one line."""
    import ast
    import inspect
    import textwrap

    body = ast.parse(textwrap.dedent(inspect.getsource(struct))).body[0]
    found: dict[str, str] = {}
    name = None
    for node in getattr(body, "body", []):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif name and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found[name] = " ".join(str(node.value.value).split())
            name = None
        else:
            name = None
    return found


def _nearest(key: str, known: list[str]) -> str:
    """The setting that was probably meant, by its whole name or by the part behind the dot."""
    import difflib

    tails = {name.rpartition(".")[2]: name for name in known}
    near = difflib.get_close_matches(key.rpartition(".")[2], tails, 1, 0.6)
    return f"did you mean {tails[near[0]]!r}?" if near else "`brim config show` lists all"


def _shown(value: Any) -> str:
    from brim.cli.commands.shown import as_json

    return "none" if value is None else value if isinstance(value, str) and value else as_json(value)


def _hidden(value: Any) -> Any:
    return {name: given if "${" in str(given) else "(set)" for name, given in value.items()}


def _masked(value: Any) -> Any:
    """A table without its keys and, of an MCP server, without the values of variables and headers."""
    if not isinstance(value, dict):
        return value
    shown: dict[str, Any] = {}
    for key, given in value.items():
        if isinstance(given, dict):
            shown[key] = _hidden(given) if key in ("env", "headers") else _masked(given)
        else:
            shown[key] = "(set)" if "key" in key and isinstance(given, str) and not given.startswith("$") else given
    return shown
