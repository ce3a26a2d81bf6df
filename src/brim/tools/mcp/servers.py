"""All MCP servers of a session: started side by side, and what of their tools a request carries.

What is offered is decided once, before the first request, and stays: definitions stand at the very front of what providers
cache. All definitions, while together they keep within `schema_tokens`; else those of whole servers as far as they fit,
in the order of the configuration, and for the rest the two tools of `finder`.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from brim.errors import ToolError
from brim.tools.context import Tool, ToolContext, ToolOutput
from brim.tools.mcp.finder import describe_find, make_finder
from brim.tools.mcp.results import read_result
from brim.tools.mcp.schemas import PREFIX, RemoteTool
from brim.tools.mcp.server import McpServer
from brim.tools.mcp.settings import McpSettings

CountTools: TypeAlias = Callable[[Sequence[Tool]], int]
"""Tokens of the definitions of these tools, as the bill counts them."""
_NAMES_SHARE = 0.5
"""Names in the description of find_tool take at most this share of what is left of `schema_tokens`."""


class ServerState(msgspec.Struct, frozen=True):
    """A server as people see it: `offered` of its `tools` stand in every request, the others are found (None: that is decided
    at the first request); `tokens` are those of all its definitions; `excluded` were left out by include and exclude."""

    name: str
    state: str
    why: str
    version: str
    tools: list[str]
    offered: int | None
    excluded: int
    tokens: int
    seconds: float | None


class McpServers:
    """The servers of a session. `tell` is told of what the user should know."""

    def __init__(
        self, settings: McpSettings, workspace: Path, env: Mapping[str, str], tell: Callable[[str], object]
    ) -> None:
        self.settings = settings
        self.servers = {
            name: McpServer(name, each, settings, workspace, env, tell) for name, each in settings.servers.items()
        }
        self._direct: list[Tool] | None = None
        self._hidden: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return any(server.state != "off" for server in self.servers.values())

    def start(self) -> None:
        """Begins to start all of them, in the background."""
        for server in self.servers.values():
            server.start()

    def starting(self) -> list[str]:
        """The servers that have not said yet which tools they have."""
        return [name for name, server in self.servers.items() if server.state == "starting"]

    async def settle(self, seconds: float | None = None) -> None:
        """Waits until each is ready or has failed; at most so long (None: as long as the settings say)."""
        waiting = [
            asyncio.ensure_future(server.settled()) for server in self.servers.values() if server.state == "starting"
        ]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=self.settings.wait if seconds is None else seconds)
            for each in late:
                each.cancel()

    async def close(self) -> None:
        """Ends all of them, side by side."""
        await asyncio.gather(*(server.close() for server in self.servers.values()), return_exceptions=True)

    # ---- what is offered ---------------------------------------------------------------------------------------

    async def offered(self, count: CountTools, window: int | None = None) -> list[Tool]:
        """The tools that every request carries. The first call waits for servers, and decides; later ones repeat it. A small
        `window` (tokens) lowers what they may take to an eighth of it."""
        if self._direct is None:
            await self.settle()
            limit = self.settings.schema_tokens
            self._direct = self._choose(count, limit if window is None else min(limit, window // 8))
        return self._direct

    def forget_offer(self) -> None:
        """Decides anew at the next request: for another session or model."""
        self._direct = None

    def _choose(self, count: CountTools, limit: int) -> list[Tool]:
        groups = {
            name: server.tools for name, server in self.servers.items() if server.state == "ready" and server.tools
        }
        starting = self.starting()
        everything = [self._tool(tool) for tools in groups.values() for tool in tools]
        if not starting and count(everything) <= limit:
            return everything
        direct: list[Tool] = []
        rest = dict(groups)
        for name, tools in groups.items():
            more = [*direct, *(self._tool(tool) for tool in tools)]
            left = {each: group for each, group in rest.items() if each != name}
            if count([*more, *self._finder(left, starting, 0)]) <= limit:
                direct, rest = more, left
        if not rest and not starting:
            return direct
        room = limit - count([*direct, *self._finder(rest, starting, 0)])
        names = _most(
            sum(len(group) for group in rest.values()),
            lambda at: count([*direct, *self._finder(rest, starting, at)]) <= limit - room * (1 - _NAMES_SHARE),
        )
        self._hidden = frozenset(tool.name for group in rest.values() for tool in group)
        return [*direct, *self._finder(rest, starting, names)]

    def _finder(self, groups: Mapping[str, Sequence[RemoteTool]], starting: Sequence[str], names: int) -> list[Tool]:
        return make_finder(describe_find(groups, starting, names), self._look, self.find)

    async def _look(self) -> tuple[list[RemoteTool], list[str]]:
        await self.settle()
        # servers may have got tools since, and not every one says so
        await asyncio.gather(*(server.refresh() for server in self.servers.values()))
        offered = {tool.name for tool in self._direct or ()}
        found = [tool for server in self.servers.values() for tool in server.tools if tool.name not in offered]
        notes = [
            f"(The MCP server {name} is still starting.)" if server.state == "starting"
            else f"(The MCP server {name} is not running: {server.why})"
            for name, server in self.servers.items() if server.state in ("starting", "failed", "ended")
        ]  # fmt: skip
        return found, notes

    # ---- by name -----------------------------------------------------------------------------------------------

    def find(self, name: str) -> Tool | None:
        """The tool of that name, offered or not; None where it is none of an MCP server.

        A name that its server does not have (yet) is a tool, too: calling it waits, starts again, asks again, or says what
        is wrong.
        """
        for server in self.servers.values():
            for tool in server.tools:
                if tool.name == name:
                    return self._tool(tool)
        for server in self.servers.values():
            if name.startswith(f"{PREFIX}{server.name}__") and server.state != "off":
                return self._unknown(server, name)
        by_short = [tool for server in self.servers.values() for tool in server.tools if tool.tool == name]
        return self._tool(by_short[0]) if len(by_short) == 1 else None

    def _tool(self, remote: RemoteTool) -> Tool:
        async def run(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
            server = self.servers[remote.server]
            result = await server.call(remote, arguments)
            return read_result(result, ctx, server=server.name, tool=remote.tool, media_bytes=self.settings.media_bytes)

        return Tool(remote.name, remote.description, remote.parameters, run, read_only=remote.read_only)

    def _unknown(self, server: McpServer, name: str) -> Tool:
        async def run(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
            await server.connect()
            await server.refresh()
            known = next((tool for tool in server.tools if tool.name == name), None)
            if known is None:
                near = difflib.get_close_matches(name, [tool.name for tool in server.tools], 3, 0.6)
                raise ToolError(
                    f"the MCP server {server.name} has no tool {name}",
                    hint=f"did you mean {' or '.join(near)}?" if near else None,
                )
            return await self._tool(known).run(arguments, ctx)

        return Tool(name, name, {"type": "object", "properties": {}, "additionalProperties": True}, run)

    # ---- for people --------------------------------------------------------------------------------------------

    def states(self, count: CountTools) -> list[ServerState]:
        """Each server as it is now, in the order of the configuration."""
        offered = {tool.name for tool in self._direct or ()}
        return [
            ServerState(
                name, server.state, server.why, server.version, [tool.name for tool in server.tools],
                None if self._direct is None else sum(tool.name in offered for tool in server.tools), server.hidden,
                count([self._tool(tool) for tool in server.tools]) if server.tools else 0, server.seconds,
            )
            for name, server in self.servers.items()
        ]  # fmt: skip


def _most(top: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `top` that fits, where all below one that fits do, too."""
    low = 0
    while low < top:
        middle = (low + top + 1) // 2
        if fits(middle):
            low = middle
        else:
            top = middle - 1
    return low
