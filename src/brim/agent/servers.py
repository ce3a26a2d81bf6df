"""MCP servers of a session: which are started, and how their tools join brim's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from brim.agent.agent import Agent
from brim.agent.config import Config
from brim.agent.events import Emit, Notice
from brim.errors import ConfigError
from brim.formats import render_tool
from brim.permissions.rulebook import remembered_path
from brim.providers import ModelRef
from brim.providers.presets import LOCAL
from brim.tools import Tool, tool_schemas
from brim.tools.mcp import McpServers
from brim.tools.mcp.project import Trust, project_servers

_SILENT_S = 2.0
"""A shorter wait for servers is not told of."""


def find_servers(config: Config, workspace: Path, env: Mapping[str, str], emit: Emit) -> McpServers:
    """The configured MCP servers and those of the project that the user has trusted, not yet started. Those that were not
    are told of. Raises ConfigError."""
    settings = config.mcp()
    servers = dict(settings.servers)
    trust = trust_of(env)
    untrusted: list[str] = []
    for each in project_servers(workspace):
        if each.settings is None:
            emit(Notice(each.wrong, "mcp"))
        elif each.name not in servers:
            try:
                trusted = trust.holds(each)
            except ConfigError as error:
                trusted = False
                emit(Notice(error.message, "mcp"))
            if trusted:
                servers[each.name] = each.settings
            else:
                untrusted.append(each.name)
    if untrusted:
        names = ", ".join(untrusted)
        emit(
            Notice(
                f"MCP servers of this project are not started: {names}. `brim mcp trust` shows and starts them", "mcp"
            )
        )
    return McpServers(
        msgspec.structs.replace(settings, servers=servers), workspace, env, lambda text: emit(Notice(text, "mcp"))
    )


def trust_of(env: Mapping[str, str]) -> Trust:
    """Which servers of projects the user has trusted; beside the user's config."""
    return Trust(remembered_path(env).with_name("mcp-trusted.json"))


def make_join(agent: Agent, kit: Sequence[Tool], servers: McpServers) -> Callable[[], Awaitable[None]]:
    """Puts the tools of servers beside brim's own, once, before the first request."""
    done = not servers

    async def join() -> None:
        nonlocal done
        if done:
            return
        await servers.settle(min(_SILENT_S, servers.settings.wait))
        if waiting := servers.starting():
            agent.emit(Notice(f"waiting for MCP servers: {', '.join(waiting)}", "mcp"))
        more = await servers.offered(tool_counter(agent), agent.session.window[0])
        done = True
        if late := servers.starting():
            agent.emit(Notice(f"still starting, to be found with find_tool later: {', '.join(late)}", "mcp"))
        agent.tools = [*kit, *more]
        alone = agent.session.offer.form is not None and agent.session.model.provider == LOCAL
        if more and not alone:
            agent.session.offer_tools(render_tools(agent.tools, agent.session.model))

    servers.forget_offer()
    return join


def tool_counter(agent: Agent) -> Callable[[Sequence[Tool]], int]:
    """Counts tool definitions as the bill does, in the session's wire form."""
    session = agent.session
    return lambda tools: session.counter.count_tools(render_tools(tools, session.model)) if tools else 0


def render_tools(tools: Sequence[Tool], model: ModelRef) -> list[dict[str, Any]]:
    """Tool definitions in a model's wire form."""
    return [
        render_tool(each["name"], each["description"], each["parameters"], model.api) for each in tool_schemas(tools)
    ]
