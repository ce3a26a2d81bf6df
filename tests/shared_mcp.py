"""A real MCP server for tests, over stdio or HTTP, and what it takes to put it into a config."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SERVER = '''
import argparse, base64, os, subprocess, sys, time

parser = argparse.ArgumentParser()
parser.add_argument("--tools", type=int, default=0)
parser.add_argument("--slow", type=float, default=0)
parser.add_argument("--noise", action="store_true")
parser.add_argument("--child", default="")
parser.add_argument("--stubborn", action="store_true")
parser.add_argument("--die", action="store_true")
parser.add_argument("--pid", default="")
parser.add_argument("--http", type=int, default=0)
given = parser.parse_args()
if given.pid:
    with open(given.pid, "a") as file:
        print(os.getpid(), file=file)
if given.child:
    left = subprocess.Popen([sys.executable, "-c", "import os, time; os.setsid(); time.sleep(600)"])
    with open(given.child, "w") as file:
        file.write(str(left.pid))
if given.stubborn:
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if given.die:
    print("cannot reach the database with secret " + os.environ.get("DB_PASSWORD", "-"), file=sys.stderr)
    sys.exit(3)
time.sleep(given.slow)
if given.noise:
    print("starting up!", flush=True)
    print('{"level": "info", "message": "this is no JSON-RPC"}', flush=True)

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, EmbeddedResource, ImageContent, TextContent, TextResourceContents, ToolAnnotations

server = MCPServer("test server")


@server.tool()
def big(size: int = 5_000_000) -> str:
    """Returns lines of text, size bytes in all."""
    line = "0123456789 the quick brown fox jumps over the lazy dog\\n"
    return (line * (size // len(line) + 1))[:size]


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def greet(name: str) -> str:
    """Says hello to somebody. Kindly."""
    if given.noise:
        print("greeting on stdout", flush=True)
    return f"hello {name}"


@server.tool()
def fail(why: str) -> str:
    """Fails."""
    raise ValueError(why)


@server.tool()
def crash(code: int = 7) -> str:
    """Ends the server during the call."""
    print("Segmentation fault, almost", file=sys.stderr, flush=True)
    os._exit(code)


@server.tool()
def wait(seconds: float) -> str:
    """Takes its time."""
    time.sleep(seconds)
    return "done"


@server.tool()
def environment() -> dict[str, str]:
    """The variables that the server was given."""
    return dict(os.environ)


@server.tool()
def picture() -> CallToolResult:
    """An image, an embedded text, and structured facts beside them."""
    return CallToolResult(
        content=[
            TextContent(text="a picture:"),
            ImageContent(data=base64.b64encode(b"\\x89PNG" + bytes(60)).decode(), mime_type="image/png"),
            EmbeddedResource(resource=TextResourceContents(uri="note://1", mime_type="text/plain", text="embedded words")),
        ],
        structured_content={"width": 8, "height": 8},
    )


def make(number: int):
    def numbered(first: str, second: int = 0, third: list[str] | None = None) -> str:
        return f"tool {number}: {first}"

    numbered.__name__ = f"numbered_{number:03}"
    numbered.__doc__ = f"Does the work of department {number} with the given record, and files the outcome in the archive."
    return numbered


for number in range(given.tools):
    server.add_tool(make(number))

if given.http:
    server.run("streamable-http", host="127.0.0.1", port=given.http)
else:
    server.run("stdio")
if given.stubborn:
    while True:
        time.sleep(60)
'''


def write_server(folder: Path) -> Path:
    """The server's script in a folder."""
    path = folder / "mcp_test_server.py"
    path.write_text(SERVER, encoding="utf-8")
    return path


def server_table(name: str, script: Path, *arguments: str, **more: Any) -> str:
    """A table [mcp.servers.NAME] that runs the script over stdio."""
    entries = {"command": sys.executable, "args": [str(script), *arguments], "start_timeout": 90.0, **more}
    return f"[mcp.servers.{name}]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in entries.items())


def toml(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)


class HttpServer:
    """The same server over streamable HTTP on loopback, in a process of its own. `url` ends in /mcp."""

    def __init__(self, script: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._script = script

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def __enter__(self) -> HttpServer:
        self._process = subprocess.Popen(
            [sys.executable, str(self._script), "--http", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + 90
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            assert self._process.poll() is None and time.monotonic() < until, "the server did not start"
            time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat[stat.rfind(")") + 2] not in "ZX"
