"""`brim mcp`: the MCP servers that are configured here, what they offer, and which of a project's the user trusts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from brim.cli.commands.kept import Place
    from brim.tools import Tool
    from brim.tools.mcp import ServerState
    from brim.tools.mcp.project import ProjectServer, Trust

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Tools of MCP servers: which there are, and whom to trust."
)
_FOLDER = typer.Option("--directory", "-C", help="As it holds in this folder.", metavar="DIR")
_JSON = typer.Option("--json", help="As JSON.")


@app.command("list")
def list_servers(
    tools: Annotated[bool, typer.Option("--tools", help="With every tool by name.")] = False,
    directory: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Start every server that `ai` would start here, say what came of it, and end them again. Exit code 1 where one failed."""
    from brim.cli.commands.kept import place_of
    from brim.cli.commands.shown import say, say_json

    place = place_of(directory)
    found, untrusted = asyncio.run(look_at(place))
    if as_json:
        say_json({"servers": found, "untrusted": [_plain(each) for each in untrusted]})
    else:
        lines = [line for each in found for line in told_state(each, tools=tools)]
        lines += [f"{each.name}  {'not trusted' if each.settings else 'wrong'}: {each.told()}" for each in untrusted]
        say("\n".join(lines) or "no MCP server is configured: [mcp.servers.NAME] in `brim config edit`")
    if any(each.state == "failed" for each in found):
        raise typer.Exit(1)


@app.command()
def trust(
    names: Annotated[
        list[str] | None, typer.Argument(help="Servers of the project's .mcp.json; none: show them.", metavar="[NAME…]")
    ] = None,
    forget: Annotated[bool, typer.Option("--forget", help="No longer start them.")] = False,
    directory: Annotated[Path | None, _FOLDER] = None,
) -> None:
    """Start servers of this project's .mcp.json from now on. What is trusted is this definition: a change asks anew."""
    from brim.cli.commands.kept import place_of
    from brim.cli.commands.shown import say
    from brim.errors import UsageError
    from brim.tools.mcp.project import project_servers

    place = place_of(directory)
    kept = _trust_of(place)
    here = {each.name: each for each in project_servers(place.folder)}
    for name in names or ():
        server = here.get(name)
        if server is None or server.settings is None:
            raise UsageError(
                server.wrong if server is not None else f"this project has no MCP server {name!r}",
                hint=f"those of .mcp.json: {', '.join(here) or 'none'}",
            )
        if forget:
            kept.drop(server)
        else:
            kept.add(server)
    for server in here.values():
        mark = "wrong" if server.settings is None else "trusted" if kept.holds(server) else "not trusted"
        say(f"{server.name or '?'}  {mark}: {server.told()}")
    if not here:
        say("this project has no .mcp.json")


async def look_at(place: Place) -> tuple[list[ServerState], list[ProjectServer]]:
    """The servers of a place, started, asked and ended; and those of the project that are not trusted."""
    from brim.agent.servers import find_servers
    from brim.tools.mcp.project import project_servers

    servers = find_servers(place.config, place.folder, place.env, lambda event: None)
    servers.start()
    try:
        await servers.settle(max((each.start_timeout for each in servers.settings.servers.values()), default=0) + 1)
        count = count_definitions(place)
        await servers.offered(count)
        found = servers.states(count)
    finally:
        await servers.close()
    kept = _trust_of(place)
    named = servers.settings.servers
    return found, [each for each in project_servers(place.folder) if each.name not in named and not kept.holds(each)]


def count_definitions(place: Place) -> Callable[[Sequence[Tool]], int]:
    """Counts definitions for the configured model."""
    from brim.formats import render_tool
    from brim.tokens import counter_for

    counter = counter_for(place.config.get("model"))
    return lambda tools: (
        counter.count_tools(
            [render_tool(each.name, each.description, dict(each.parameters), "openai.chat") for each in tools]
        )
        if tools
        else 0
    )


def told_state(state: ServerState, *, tools: bool = False) -> list[str]:
    """A server in words, a line, and one for each tool if asked."""
    if state.state == "ready":
        offered = (
            "not offered yet" if state.offered is None
            else "all in every request" if state.offered == len(state.tools)
            else f"{state.offered} in every request, the others through find_tool" if state.offered
            else "through find_tool"
        )  # fmt: skip
        out = f", {state.excluded} excluded" if state.excluded else ""
        took = f", started in {state.seconds:.1f} s" if state.seconds is not None else ""
        said = f"{len(state.tools)} tool{'' if len(state.tools) == 1 else 's'}, {state.tokens:,} tokens, {offered}{out}{took}"
    else:
        said = state.why
    lines = [f"{state.name}  {state.state}{': ' if said else ''}{said}"]
    return lines + ([f"  {name}" for name in state.tools] if tools else [])


def _trust_of(place: Place) -> Trust:
    from brim.agent.servers import trust_of

    return trust_of(place.env)


def _plain(server: ProjectServer) -> dict[str, Any]:
    return {"name": server.name, "file": str(server.path), "runs": server.told()}
