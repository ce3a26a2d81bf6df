"""Which MCP servers there are and how they are reached: the table [mcp] of a config file.

    [mcp.servers.github]
    command = "github-mcp-server"
    args = ["stdio"]
    env = { GITHUB_TOKEN = "${GITHUB_TOKEN}" }

    [mcp.servers.docs]
    url = "https://example.org/mcp"
    headers = { Authorization = "Bearer ${DOCS_TOKEN}" }

`${NAME}` and `${NAME:-default}` stand for variables of the environment, so that no secret has to stand in a file. They are
filled in when a server starts, and what was filled in is taken out of every text that is shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from brim.errors import ConfigError
from brim.tools.environment import looks_secret, scrub

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# a name with __ in it or _ at its end could not be told from a part of a tool's name
_NAME = re.compile(r"(?!.*__|.*_$)[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
# Shorter values are ordinary words: taking them out of every text would garble it.
_LEAST_SECRET = 6


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table [mcp.servers.NAME]: a `command` that speaks over its stdin and stdout, or a `url`."""

    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    """Variables for the command, beside the environment without its secrets."""
    cwd: str | None = None
    """Where the command runs; None: the workspace."""
    url: str | None = None
    """A streamable HTTP endpoint."""
    headers: dict[str, str] = {}
    include: list[str] = []
    """Globs over tool names; where there are any, only these tools."""
    exclude: list[str] = []
    """Globs over tool names: not these. Wins over `include`."""
    timeout: float = 120.0
    """Seconds that a call may take."""
    start_timeout: float = 30.0
    """Seconds until it must have said which tools it has."""
    enabled: bool = True


class McpSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table [mcp]."""

    servers: dict[str, ServerSettings] = {}
    schema_tokens: int = 2_000
    """What the definitions of all MCP tools together may take of each request. 2,000 hold some fifteen ordinary tools and
    are about what brim's own seven take; what does not fit is reached through find_tool and call_tool."""
    wait: float = 10.0
    """Seconds that the first request waits for servers that are still starting."""
    message_bytes: int = 64 * 1024 * 1024
    """A server that sends a larger message is ended."""
    media_bytes: int = 3_750_000
    """A larger image of a tool is kept, and not shown to the model (5 MB as base64, what the large providers take)."""


class Launch(msgspec.Struct, frozen=True):
    """A server's settings with every reference filled in. `secrets`: values that no text may show, and their names."""

    argv: list[str]
    cwd: Path
    env: dict[str, str]
    url: str | None
    headers: dict[str, str]
    secrets: dict[str, str]

    def hide(self, text: str) -> str:
        """The text with every filled-in value replaced by its name."""
        for value in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(value, self.secrets[value])
        return text


def check_servers(settings: McpSettings) -> McpSettings:
    """The settings, if they make sense. Raises ConfigError that names the server."""
    for name, server in settings.servers.items():
        check_server(name, server)
    if settings.schema_tokens < 0 or settings.wait < 0:
        raise ConfigError("mcp: schema_tokens and wait are 0 or more", hint="correct them in [mcp]")
    return settings


def check_server(name: str, server: ServerSettings) -> None:
    """Raises ConfigError where a server could never be started."""
    where = f"mcp.servers.{name}"
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{where}: the name is not usable",
            hint="up to 32 letters, digits, - and single _ inside; it becomes part of the tools' names",
        )
    if (server.command is None) == (server.url is None):
        raise ConfigError(
            f"{where} needs either command or url", hint='command = "…" and args = […], or url = "https://…"'
        )
    if server.url is not None and not server.url.startswith(("http://", "https://", "${")):
        raise ConfigError(f"{where}.url is {server.url!r}", hint="it starts with http:// or https://")
    if server.timeout <= 0 or server.start_timeout <= 0:
        raise ConfigError(f"{where}: timeouts are above 0", hint="they are seconds")


def build_launch(server: ServerSettings, workspace: Path, env: Mapping[str, str]) -> Launch:
    """Settings filled in from `env`, and the environment of a command: without secrets, but for what is named.

    Raises ConfigError that names a variable which is not set.
    """
    used: dict[str, str] = {}

    def fill(text: str) -> str:
        def value(found: re.Match[str]) -> str:
            given = env.get(found[1]) or found[2]
            if given is None:
                raise ConfigError(
                    f"the variable {found[1]} is not set",
                    hint=f"export {found[1]}=…, or write ${{{found[1]}:-default}}",
                )
            used[given] = f"${{{found[1]}}}"
            return given

        return _REFERENCE.sub(value, text)

    argv = [fill(each) for each in (server.command, *server.args) if each is not None]
    own = {name: fill(value) for name, value in server.env.items()}
    headers = {name: fill(value) for name, value in server.headers.items()}
    for name, value in (*own.items(), *headers.items()):
        if looks_secret(name, value):
            used.setdefault(value, f"[{name}]")
    url = fill(server.url) if server.url is not None else None
    cwd = workspace / Path(fill(server.cwd)).expanduser() if server.cwd else workspace
    secrets = {value: shown for value, shown in used.items() if len(value) >= _LEAST_SECRET}
    return Launch(argv, cwd, {**scrub(env), **own}, url, headers, secrets)
