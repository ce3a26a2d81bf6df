"""One MCP server from its start to its end.

It lives in a task of its own: connect, list the tools, then wait until it is told to stop or has ended by itself. Whatever
goes wrong is kept as a sentence and told once; no failure of a server is one of the session. A server that has ended is
started again at the next call, but not a second time in a row.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from brim.errors import BrimError, ConfigError, ToolError
from brim.tools.mcp.http import http_transport
from brim.tools.mcp.schemas import RemoteTool, build_tool, name_tool
from brim.tools.mcp.settings import Launch, McpSettings, ServerSettings, build_launch
from brim.tools.mcp.stdio import Watch, stdio_transport

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

State: TypeAlias = Literal["off", "starting", "ready", "failed", "ended"]
MISSING = "pip install 'brim[mcp]'"
_PAGES = 100
_CLOSE_S = 8.0
_REFRESH_S = 5.0


class McpServer:
    """`tell` is told of what the user should know. `tools` are known once it was ready, and stay known when it has ended."""

    def __init__(
        self, name: str, settings: ServerSettings, common: McpSettings, workspace: Path, env: Mapping[str, str],
        tell: Callable[[str], object],
    ) -> None:  # fmt: skip
        self.name = name
        self.settings = settings
        self.state: State = "starting" if settings.enabled else "off"
        self.why = ""
        self.tools: list[RemoteTool] = []
        self.hidden = 0
        """Tools left out by include and exclude."""
        self.seconds: float | None = None
        self.version = ""
        self._common, self._workspace, self._env, self._tell = common, workspace, env, tell
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._stop = asyncio.Event()
        self._client: Client | None = None
        self._watch = Watch()
        self._may_restart = True
        self._launch: Launch | None = None
        self._status: int | None = None

    # ---- its life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begins to start it, in the background."""
        if self.settings.enabled and (self._task is None or self._task.done()):
            self.state, self.why = "starting", ""
            self._settled, self._stop, self._watch, self._status = asyncio.Event(), asyncio.Event(), Watch(), None
            self._task = asyncio.create_task(self._live(), name=f"mcp {self.name}")

    async def settled(self) -> None:
        """Returns when it is ready or has failed."""
        if self.state == "starting":
            await self._settled.wait()

    async def close(self) -> None:
        """Ends it, with all that it started."""
        self._stop.set()
        if self._task is None or self._task.done():
            return
        if self.state == "starting":
            self._task.cancel()
        await asyncio.wait([self._task], timeout=_CLOSE_S)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_CLOSE_S)

    async def _live(self) -> None:
        began = time.monotonic()
        limit = self.settings.start_timeout
        try:
            await asyncio.to_thread(load_sdk)
            self._launch = build_launch(self.settings, self._workspace, self._env)
            async with asyncio.timeout(limit) as until, self._connected(self._launch) as client:
                tools = await self._list(client)
                until.reschedule(None)
                self._client, self.tools = client, tools
                info = client.server_info
                self.version = f"{info.name} {info.version}".strip() if info is not None else ""
                self.seconds, self.state = time.monotonic() - began, "ready"
                self._settled.set()
                await self._until_over()
        except asyncio.CancelledError:
            self.state, self.why = "ended", self.why or "it was stopped"
            raise
        except TimeoutError:
            slow = f"it did not say within {limit:g} s which tools it has"
            self._fail(self._watch.why() if self._watch.by_itself else slow)
        except Exception as error:  # whatever a server or the SDK does: a failed server is a notice, never more
            self._fail(self._reason(error))
        else:
            self._ended_by_itself()
        finally:
            self._client = None
            self._settled.set()

    async def _until_over(self) -> None:
        waits = [asyncio.create_task(self._stop.wait()), asyncio.create_task(self._watch.ended.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    def _fail(self, why: str) -> None:
        if self._stop.is_set():
            self.state = "ended"
            return
        began = self.state == "starting"
        self.state, self.why = ("failed" if began else "ended"), self.hide(why)
        self._tell(f"MCP server {self.name} {'did not start' if began else 'has ended'}: {self.why}")

    def _ended_by_itself(self) -> None:
        if self._stop.is_set():
            self.state = "ended"
            return
        self.state, self.why = "ended", self.hide(self._watch.why())
        self._tell(f"MCP server {self.name} has ended: {self.why}")

    def _reason(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, BrimError):
            return error.message + (f" ({error.hint})" if error.hint else "")
        if isinstance(error, FileNotFoundError) and self._launch is not None and self._launch.argv:
            missing = self._launch.argv[0] if self._launch.cwd.is_dir() else str(self._launch.cwd)
            return f"there is no {missing}"
        if self._watch.problem or self._watch.by_itself:
            return self._watch.why()
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return f"it answered with HTTP status {self._status} ({said})" if self._status else said

    def hide(self, text: str) -> str:
        """The text without the secrets that the server was given."""
        return self._launch.hide(text) if self._launch is not None else text

    @contextlib.asynccontextmanager
    async def _connected(self, launch: Launch) -> AsyncIterator[Client]:
        from mcp import Client

        info = _client_info()
        if launch.url is None:
            transport = stdio_transport(launch, self._watch, self._common.message_bytes)
            async with Client(transport, client_info=info, cache=None) as client:
                yield client
            return
        transport = http_transport(launch.url, launch.headers, self._common.message_bytes, self._on_status)
        async with Client(transport, client_info=info, cache=None) as client:
            yield client

    def _on_status(self, status: int) -> None:
        # the SDK says "Server returned an error response" whatever the status was
        self._status = status if status >= 400 else None

    # ---- its tools ---------------------------------------------------------------------------------------------

    async def _list(self, client: Client) -> list[RemoteTool]:
        found: dict[str, RemoteTool] = {}
        seen: set[str] = set()
        cursor: str | None = None
        self.hidden = 0
        for _ in range(_PAGES):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                if tool.name in seen:
                    continue
                seen.add(tool.name)
                if not self._wanted(tool.name):
                    self.hidden += 1
                    continue
                name = name_tool(self.name, tool.name, found)
                read_only = bool(tool.annotations and tool.annotations.read_only_hint)
                about = tool.description or tool.title or ""
                found[name] = build_tool(self.name, tool.name, about, tool.input_schema, name, read_only=read_only)
            cursor = page.next_cursor
            if not cursor:
                break
        # by name: a server that lists in another order next time must not cost the cache
        return [found[name] for name in sorted(found)]

    async def refresh(self) -> None:
        """Asks it again which tools it has; keeps what it knew where there is no answer."""
        if self._client is not None:
            with contextlib.suppress(Exception):  # looking once more is a courtesy; a call says what is wrong
                async with asyncio.timeout(_REFRESH_S):
                    self.tools = await self._list(self._client)

    def _wanted(self, tool: str) -> bool:
        if any(fnmatchcase(tool, each) for each in self.settings.exclude):
            return False
        return not self.settings.include or any(fnmatchcase(tool, each) for each in self.settings.include)

    async def call(self, tool: RemoteTool, arguments: Mapping[str, Any]) -> CallToolResult:
        """A tool's answer. Raises ToolError that says what happened to the server or the call."""
        from mcp.shared.exceptions import MCPError
        from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        client = await self.connect()
        try:
            result = await client.call_tool(tool.tool, tool.arguments(arguments), self.settings.timeout)
        except MCPError as error:
            if error.code == REQUEST_TIMEOUT:
                raise ToolError(
                    f"{tool.name} did not answer within {self.settings.timeout:g} s; it may still be at work",
                    hint=f"mcp.servers.{self.name}.timeout is how long it may take",
                ) from None
            if self.settings.url is not None and self._status == 404:  # as the protocol says that its session has ended
                await self.close()
                self.why = "its session has expired"
                raise ToolError(
                    f"{tool.name} was not called: the session with the MCP server {self.name} has expired",
                    hint="call it again",
                ) from None
            if error.code != CONNECTION_CLOSED:
                raise ToolError(f"{tool.name}: {self.hide(error.message)[:2_000]}") from None
            await self._over()
            raise ToolError(
                f"the MCP server {self.name} ended during the call: {self.why}; whether the call had an effect is not known",
                hint="the next call starts it again",
            ) from None
        except Exception as error:
            raise ToolError(f"{tool.name} failed: {self.hide(self._reason(error))[:2_000]}") from error
        self._may_restart = True
        return result

    async def connect(self) -> Client:
        """The connection, after one new start where there is none. Raises ToolError."""
        if self.state == "off":
            raise ToolError(f"the MCP server {self.name} is switched off", hint=f"mcp.servers.{self.name}.enabled")
        if self.state in ("failed", "ended") and (self._may_restart or self.settings.url is not None):
            await self._over()
            self._may_restart = False
            self.start()
        await self.settled()
        if self._client is None:
            raise ToolError(
                f"the MCP server {self.name} is not running: {self.why or 'it has ended'}",
                hint=f"tell the user; /mcp restart {self.name} tries again",
            )
        return self._client

    async def restart(self) -> None:
        """Ends it if it runs, and starts it anew."""
        await self.close()
        self._may_restart = True
        self.start()
        await self.settled()

    async def _over(self) -> None:
        """Waits until its task has seen that it ended, so that the reason is known."""
        if self._task is not None and not self._task.done() and self.state != "starting":
            await asyncio.wait([self._task], timeout=_CLOSE_S)


def load_sdk() -> None:
    """Imports the SDK, which takes about a second. Raises ConfigError where it is not installed, or an older one is."""
    for name in ("mcp", "httpx2", "httpcore2"):
        # what it has to say is told as notices; by itself it would write over the answer
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    try:
        module = importlib.import_module("mcp")
        module.Client  # noqa: B018 - the 1.x versions have none
    except (ImportError, AttributeError):
        raise ConfigError("the MCP client is not installed, or it is older than 2.0", hint=MISSING) from None


def _client_info() -> Any:
    from importlib.metadata import PackageNotFoundError, version

    from mcp.types import Implementation

    try:
        return Implementation(name="brim", version=version("brim"))
    except PackageNotFoundError:  # run from a source tree
        return Implementation(name="brim", version="0")
