"""`brim`: what lies behind the assistant. Sessions, models, settings, costs, and the engine itself over stdin and stdout.

This module puts the commands together and turns errors into exit codes; each group of commands is a module of
`brim.cli.commands`, and what a command needs is imported when it runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from brim.cli import audit, experiment, replay
from brim.cli.commands import costs, engine, mcp, models, permissions, sessions, settings, shells, tools, upkeep

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    epilog="`ai` is the assistant itself. Exit codes: 0 ok, 1 failed, 2 usage, 3 a limit, 69 unavailable, 75 try later, "
    "77 permission, 78 configuration.",
)
app.command("tool")(tools.tool)
app.command("prepare")(engine.prepare)
app.command("count")(engine.count)
app.command("explain")(engine.explain)
app.add_typer(sessions.app, name="sessions")
app.add_typer(models.app, name="models")
app.add_typer(settings.app, name="config")
app.add_typer(permissions.app, name="permissions")
app.add_typer(mcp.app, name="mcp")
app.command("schema")(settings.schemas)
app.command("aliases")(shells.aliases)
app.command("completion")(shells.completion)
app.command("complete", hidden=True)(shells.complete)
app.command("replay")(replay.replay)
app.command("audit")(audit.audit)
app.command("experiment")(experiment.experiment)
app.command("cost")(costs.cost)
app.command("report")(costs.report)
app.command("gc")(upkeep.gc)
app.command("doctor")(upkeep.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        from brim import __version__

        typer.echo(f"brim {__version__}")
        raise typer.Exit


@app.callback()
def brim(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Manage what lies behind `ai`: sessions, models, settings, costs; run a tool or the context engine by itself."""
    del version


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script. Ends the process with the exit code of what happened."""
    from brim.cli.streams import hold_standard_streams

    hold_standard_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(run(given))


def run(given: list[str]) -> int:
    """Runs one command line; returns its exit code. Never raises for what a user can meet."""
    from brim.cli.commands.shown import note, told
    from brim.cli.streams import left_by_reader, left_unwritten
    from brim.errors import BrimError, UsageError

    as_json = "--json" in given
    click_error: Any = typer.BadParameter.__mro__[
        2
    ]  # the base of what the parser raises, whichever click typer carries
    try:
        code = app(given, prog_name="brim", standalone_mode=False)
        sys.stdout.flush()
    except click_error as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            note(error.format_message())
            return 2
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "brim"
        return told(UsageError(error.format_message(), hint=f"{where} --help shows how"), as_json)
    except BrimError as error:
        return told(error, as_json)
    except SystemExit as ended:
        return left_by_reader(ended, "brim")
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except Exception as error:
        if isinstance(error, OSError) and (left := left_unwritten(error, "brim")) is not None:
            return left
        if os.environ.get("BRIM_TRACEBACK"):
            raise
        what = f"{type(error).__name__}: {error}"
        return told(BrimError(what, hint="a defect in brim; BRIM_TRACEBACK=1 shows where"), as_json)
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()
