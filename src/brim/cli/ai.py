"""`ai`: talk to a model in a project. This module only reads the command line; what it starts is loaded when it is needed.

stdout carries the answer, stderr everything else; the exit code is that of the error table.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,  # rich would double the time of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_LATEST = "\0latest"
_OPTIONAL = ("-r", "--resume")


def _version(wanted: bool) -> None:
    if wanted:
        from brim import __version__

        typer.echo(f"brim {__version__}")
        raise typer.Exit


@app.command(
    epilog="Without a PROMPT at a terminal, a conversation begins. Piped input joins the prompt; with - in front it is "
    "waited for. Exit codes: 0 ok, 1 failed, 2 usage, 3 a limit (context, steps, cost), 69 provider unavailable, 75 try later, "
    "77 key or permission, 78 configuration, 130 interrupted."
)
def ai(
    prompt: Annotated[
        list[str] | None,
        typer.Argument(help="What to ask; @path hands over a file.", metavar="[PROMPT]", show_default=False),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="provider/model, for example openai/gpt-5-mini.", metavar="NAME")
    ] = None,
    context_mode: Annotated[
        str | None,
        typer.Option(
            "--context-mode",
            help="full keeps everything, compact summarises, auto selects.",
            metavar="full|compact|auto",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", help="chat (compact), log (full), code (auto), or one of your own.", metavar="NAME"),
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option("--file", "-f", help="Hand over a file; may be repeated.", metavar="PATH", show_default=False),
    ] = None,
    system: Annotated[
        str | None, typer.Option("--system", "-s", help="System prompt, in place of brim's own.", metavar="TEXT")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="Most tokens of an answer.", metavar="N")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option("--temperature", "-t", help="Sampling temperature.", metavar="X")
    ] = None,
    effort: Annotated[
        str | None,
        typer.Option("--effort", help="How hard the model thinks, where it can.", metavar="low|medium|high"),
    ] = None,
    thinking_budget: Annotated[
        int | None,
        typer.Option("--thinking-budget", min=0, help="Most tokens of thinking; 0: none.", metavar="N"),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema", help="The answer is JSON by the JSON schema in this file, and is checked.", metavar="FILE"
        ),
    ] = None,
    fallback: Annotated[
        list[str] | None,
        typer.Option(
            "--fallback",
            help="Ask this model where the provider is down; may be repeated.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option("--max-steps", min=1, help="Most requests for one prompt (50).", metavar="N")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0, help="Most US dollars for the session.", metavar="USD")
    ] = None,
    bill: Annotated[bool, typer.Option("--bill", help="Show where the tokens went.")] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            help="Let a tool run, for example 'bash(git *)'; may be repeated.",
            metavar="RULE",
            show_default=False,
        ),
    ] = None,
    deny: Annotated[
        list[str] | None,
        typer.Option("--deny", help="Never let it run; wins over --allow.", metavar="RULE", show_default=False),
    ] = None,
    permission_mode: Annotated[
        str | None,
        typer.Option(
            "--permission-mode",
            help="What happens where no rule decides.",
            metavar="ask|accept-edits|read-only|allow-all",
        ),
    ] = None,
    sandbox: Annotated[
        str | None,
        typer.Option(
            "--sandbox",
            help="Commands write only in this folder; auto: where bubblewrap works.",
            metavar="off|auto|required",
        ),
    ] = None,
    output_format: Annotated[
        str,
        typer.Option(
            "--output-format",
            help="json is the result alone, stream-json every event; the last is always the result.",
            metavar="text|json|stream-json",
        ),
    ] = "text",
    continue_: Annotated[bool, typer.Option("--continue", "-c", help="Go on in the project's latest session.")] = False,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            "-r",
            help="Go on in a session, by the beginning of its id; without an id the latest.",
            metavar="[ID]",
        ),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", help="The session of this name; made where there is none.", metavar="ID")
    ] = None,
    new_session: Annotated[bool, typer.Option("--new-session", help="Begin a session (the default).")] = False,
    fork: Annotated[bool, typer.Option("--fork", help="Go on in a copy of the session.")] = False,
    no_session: Annotated[bool, typer.Option("--no-session", help="Keep nothing once the command ends.")] = False,
    no_ladder: Annotated[
        bool,
        typer.Option(
            "--no-ladder",
            help="For demonstration only: send the history as it is, so that the provider's own refusal is seen.",
        ),
    ] = False,
    directory: Annotated[
        Path | None, typer.Option("--directory", "-C", help="Work in this folder.", metavar="DIR")
    ] = None,
    debug: Annotated[
        Path | None,
        typer.Option("--debug", help="Write requests, calls and results to a file, as JSON lines.", metavar="FILE"),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what the tools returned.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Ask a model about the project in this folder. It reads, searches, edits and runs commands, within your rules."""
    del version
    from brim.cli.options import Options

    words = list(prompt or ())
    waits = words[:1] == ["-"]
    options = Options(
        prompt=" ".join(words[1:] if waits else words) or None,
        waits=waits,
        files=list(file or ()),
        flags={
            "model": model,
            "mode": context_mode,
            "system": system,
            "max_tokens": max_tokens,
            "temperature": temperature,
            "effort": effort,
            "thinking_budget": thinking_budget,
            "schema": None if schema is None else str(schema),
            "fallback_models": fallback or None,
            "max_steps": max_steps,
            "max_cost": max_cost,
            "permissions.mode": permission_mode,
            "permissions.sandbox": sandbox,
            "permissions.allow": allow or None,
            "permissions.deny": deny or None,
        },
        profile=profile,
        bill=bill,
        output=output_format,
        latest=continue_ or resume == _LATEST,
        resume=None if resume == _LATEST else resume,
        session=session,
        new=new_session,
        fork=fork,
        keep=not no_session,
        ladder=not no_ladder,
        directory=directory,
        debug=debug,
        verbose=verbose,
    )
    from brim.cli.run import run

    raise typer.Exit(run(options))


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script. Ends the process with the exit code of what happened."""
    from brim.cli.streams import hold_standard_streams, left_by_reader, left_unwritten

    hold_standard_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    click_error: Any = typer.BadParameter.__mro__[
        2
    ]  # the base of what the parser raises, whichever click typer carries
    try:
        code = app(_with_optional_ids(given), prog_name="ai", standalone_mode=False)
        sys.stdout.flush()
    except click_error as error:
        from brim.cli.run import usage_failed

        code = usage_failed(error.format_message(), _asked_format(given))
    except OSError as error:
        if (code := left_unwritten(error, "ai")) is None:
            raise
    except SystemExit as ended:
        code = left_by_reader(ended, "ai")
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _with_optional_ids(arguments: list[str]) -> list[str]:
    """`--resume` may stand without an id: then it means the latest session. A word with a space in it is a prompt."""
    out: list[str] = []
    for place, word in enumerate(arguments):
        if word == "--":
            return out + arguments[place:]
        following = arguments[place + 1] if place + 1 < len(arguments) else None
        if word in _OPTIONAL and (following is None or following.startswith("-") or " " in following.strip()):
            out.append(f"--resume={_LATEST}")
        else:
            out.append(word)
    return out


def _asked_format(arguments: list[str]) -> str:
    """The output format of a command line that could not be read."""
    for place, word in enumerate(arguments):
        if word == "--":
            break
        name, _, value = word.partition("=")
        if name == "--output-format":
            return value or (arguments[place + 1] if place + 1 < len(arguments) else "text")
    return "text"


if __name__ == "__main__":
    main()
