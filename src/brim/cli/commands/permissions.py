"""`brim permissions`: what tools may do here, which rule says so, and what was answered with "always"."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from brim.cli.commands.kept import Place
    from brim.permissions import Verdict
    from brim.permissions.rulebook import RuleBook

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What tools may do, and which rule says so.")
_FOLDER = typer.Option("--workspace", "-C", help="The folder that tools work in; default: this one.", metavar="DIR")
_JSON = typer.Option("--json", help="As JSON.")
_CODES = {"allow": 0, "ask": 1, "deny": 77}


@app.command()
def check(
    command: Annotated[
        list[str],
        typer.Argument(
            help="A command line for bash, as one word or as many; with --tool, arguments as JSON or a path.",
            metavar="COMMAND…",
        ),
    ],
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="A rule that allows; may be repeated.", metavar="RULE", show_default=False),
    ] = None,
    deny: Annotated[
        list[str] | None,
        typer.Option("--deny", help="A rule that denies; wins.", metavar="RULE", show_default=False),
    ] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option("--ask", help="A rule that asks in any case.", metavar="RULE", show_default=False),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option("--mode", help="Where no rule decides.", metavar="ask|accept-edits|read-only|allow-all"),
    ] = None,
    tool: Annotated[str, typer.Option("--tool", help="Another tool than bash.", metavar="NAME")] = "bash",
    workspace: Annotated[Path | None, _FOLDER] = None,
    only: Annotated[bool, typer.Option("--only", help="Only these rules, none of the configured ones.")] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="End with 0 for allow, 1 for ask, 77 for deny.")
    ] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """May this run? Prints the verdict and why, part by part; nothing is run.

    For example: brim permissions check --allow 'git *' --deny 'git push' -- 'git fetch && git push'
    """
    from brim.cli.commands.kept import place_of
    from brim.cli.commands.shown import say, say_json
    from brim.permissions import check as judge

    place = place_of(workspace)
    book = rules_of(place) if not only else None

    def texts(decision: Any, given: list[str] | None) -> list[str]:
        return [*(book.texts(decision) if book is not None else ()), *(given or ())]

    verdict = judge(
        tool,
        arguments_of(tool, command),
        texts("allow", allow),
        texts("deny", deny),
        texts("ask", ask),
        place.folder,
        mode or place.config.get("permissions.mode"),
    )
    if as_json:
        say_json(verdict.as_dict())
    else:
        say(in_words(verdict))
    if exit_code:
        raise typer.Exit(_CODES[verdict.decision])


@app.command("list")
def list_(workspace: Annotated[Path | None, _FOLDER] = None, as_json: Annotated[bool, _JSON] = False) -> None:
    """Every rule that holds in this folder, with who set it; deny wins over ask, ask over allow."""
    from brim.cli.commands.kept import place_of
    from brim.cli.commands.shown import note, say, say_json, table

    place = place_of(workspace)
    book = rules_of(place)
    if as_json:
        names = ("mode", "sandbox", "network")
        settings = {name: place.config.get(f"permissions.{name}") for name in names}
        say_json({**settings, "rules": book.listing(), "notices": book.notices})
        return
    say(f"mode {place.config.get('permissions.mode')} ({place.config.origin('permissions.mode')})")
    network = "" if place.config.get("permissions.network") else ", no network"
    say(f"sandbox {place.config.get('permissions.sandbox')}{network} ({place.config.origin('permissions.sandbox')})")
    rows = [(each["decision"], each["rule"], each["origin"]) for each in book.listing()]
    if rows:
        say(table(("", "rule", "set by"), rows))
    else:
        note("no rules: what only reads inside the folder runs, the rest asks")


@app.command()
def forget(
    rule: Annotated[
        str, typer.Argument(help="A rule that was answered with always, as `list` shows it.", metavar="RULE")
    ],
) -> None:
    """Drop a rule that was remembered."""
    from brim.cli.commands.kept import place_of
    from brim.cli.commands.shown import note

    gone = rules_of(place_of()).forget(rule)
    note(f"forgot {', '.join(dict.fromkeys(f'{each.decision} {each.text}' for each in gone))}")


def rules_of(place: Place) -> RuleBook:
    """All rules with their origins: remembered, the user's file, the project's, the environment's."""
    from brim.agent.config import project_config_path, user_config_path
    from brim.permissions.rulebook import RuleBook, load_rules, remembered_path

    book = RuleBook(remembered_path(place.env))
    user = user_config_path(place.env)
    book.add(load_rules(user), str(user))
    project = project_config_path(place.folder)
    if project is not None and project.resolve() != user.resolve():
        book.add(load_rules(project), str(project), narrow=True)
    for variable, decision in (("BRIM_ALLOW", "allow"), ("BRIM_DENY", "deny")):
        given = [rule.strip() for rule in place.env.get(variable, "").split(",") if rule.strip()]
        book.add({decision: given}, f"environment {variable}")
    return book


def arguments_of(tool: str, words: list[str]) -> dict[str, Any] | str:
    """What the tool would be given: a command line, a JSON object, or a path. Raises UsageError."""
    import msgspec

    from brim.errors import UsageError

    text = words[0] if len(words) == 1 else shlex.join(words)
    if tool == "bash":
        return text
    if not text.lstrip().startswith("{"):
        return {"path": text}
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise UsageError(f"the arguments of {tool} are no JSON object: {error}", hint='{"path": "…"}') from error


def in_words(verdict: Verdict) -> str:
    """The verdict, its parts where there are several, and what would allow it."""
    lines = [f"{verdict.decision}: {verdict.why}"]
    if len(verdict.parts) > 1:
        lines += [f"  {part.decision:<5}  {part.text}: {part.why}" for part in verdict.parts]
    if verdict.needs:
        lines.append(f"  would be allowed by {verdict.flags()}")
    return "\n".join(lines)
