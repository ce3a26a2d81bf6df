"""`brim tool`: one tool, run as a model would run it, printing exactly what the model would see."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def tool(
    name: Annotated[
        str | None, typer.Argument(help="A tool; without one, all are listed.", metavar="[NAME]", show_default=False)
    ] = None,
    arguments: Annotated[
        str,
        typer.Argument(help="Its arguments as a JSON object; - reads them from stdin.", metavar="[JSON]"),
    ] = "{}",
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", "-C", help="The folder it works in; default: this one.", metavar="DIR"),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option("--window", min=1, help="Caps as for a model with this window.", metavar="TOKENS"),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", help="Whose messages recall may fetch, too.", metavar="ID"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Text, metadata and handle as JSON.")] = False,
) -> None:
    """Run one tool and print exactly what a model would see, for example: brim tool grep '{"pattern": "TODO"}'.

    Caps are those of the configuration and the environment. Exit code 1 where the tool answers with an error.
    """
    import asyncio

    from brim.cli.commands.kept import open_kept, place_of
    from brim.cli.commands.shown import say, say_json
    from brim.context.recall import recall_from
    from brim.tokens import counter_for
    from brim.tools import ToolContext, default_tools, run_tool

    if name is None:
        _list_tools(as_json)
        return
    if arguments == "-":
        arguments = sys.stdin.read()
    place = place_of(workspace)
    counter = counter_for(place.config.get("model"))
    with open_kept(place) as store:
        history = store.load(store.find_session(session).id) if session is not None else ()
        messages = [each.message for each in history]
        context = ToolContext(
            workspace=place.folder,
            blobs=store.blobs(),
            count=counter.count_text,
            caps=place.config.caps(place.env, window),
            env=place.env,
            originals=lambda handle: recall_from(handle, messages),
        )
        output = asyncio.run(run_tool(name, arguments, context, tools=default_tools()))
    if as_json:
        say_json(
            {
                "text": output.text,
                "is_error": output.is_error,
                "tokens": counter.count_text(output.text),
                "handle": output.handle,
                "meta": output.meta,
            }
        )
    else:
        say(output.text)
    if output.is_error:
        raise typer.Exit(1)


def _list_tools(as_json: bool) -> None:
    from brim.cli.commands.shown import say, say_json, table
    from brim.tools import default_tools, tool_schemas

    tools = default_tools()
    if as_json:
        say_json(tool_schemas(tools))
        return
    say(table(("tool", "what it does"), [(each.name, each.description.partition(". ")[0]) for each in tools]))
