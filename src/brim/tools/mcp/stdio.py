"""One server process and the line of JSON messages between it and us.

The process has a process group of its own and a mark in its environment, so that it can be ended with all it started:
stdin is closed, then TERM, then KILL, each after a short while; and all at once where brim itself is cut off. What it
prints that is no message is counted and dropped, its stderr kept to the last lines, for the reason if it fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from brim.tools.mcp.repair import parse_line, repaired
from brim.tools.mcp.settings import Launch
from brim.tools.processes import MARK, at_end, ending_with_us, linux_members

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_CHUNK = 256 * 1024
_TAIL = 4_000
# Seconds: after stdin is closed, after TERM; and for the rest of the output of one that has ended.
_GRACE, _GRACE_TERM, _DRAIN = 1.5, 1.0, 0.3
_POLL = 0.05


class Watch(msgspec.Struct):
    """What is known of a server process: `pid` while it is there, `code` once it has ended (negative: a signal)."""

    pid: int | None = None
    code: int | None = None
    noise: int = 0
    """Lines on stdout that were no messages."""
    problem: str = ""
    by_itself: bool = False
    """Whether it was its own doing that it ended."""
    ending: bool = False
    """Whether we have begun to end it."""
    ended: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    tail: bytes = b""

    def why(self) -> str:
        """How it ended, with the last line that it wrote to stderr."""
        if self.problem:
            said = self.problem
        elif self.code is None:
            said = "it closed its output"
        elif self.code < 0:
            said = f"it was ended by {_signal_name(-self.code)}"
        else:
            said = f"it ended with exit code {self.code}"
        lines = [line.strip() for line in self.tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return f"{said}: {lines[-1][:300]}" if lines else said


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@asynccontextmanager
async def stdio_transport(launch: Launch, watch: Watch, message_bytes: int) -> AsyncIterator[TransportStreams]:
    """A started server's streams of messages, for `mcp.Client`. On leaving, the process and all it started have ended.

    Raises OSError where it cannot be started.
    """
    import anyio
    from mcp.shared.message import SessionMessage

    mark = uuid.uuid4().hex
    process = await asyncio.create_subprocess_exec(
        *_ending_with_us(launch), cwd=launch.cwd, env={**launch.env, MARK: mark}, start_new_session=True,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    watch.pid = process.pid
    to_us, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    with at_end(lambda: _kill_tree(process, mark)):
        tasks = [
            asyncio.create_task(_read_messages(process, to_us, watch, message_bytes)),
            asyncio.create_task(_read_stderr(process, watch)),
            asyncio.create_task(_write_messages(process, from_us)),
        ]
        # Waiting for the pipe's end is not enough: a child of the server's may hold it open.
        tasks.append(asyncio.create_task(_watch_exit(process, tasks[0], watch)))
        try:
            yield read, write
        finally:
            watch.ending = True
            try:
                await _end(process, mark)
            finally:
                _kill_tree(process, mark)
                for task in tasks:
                    task.cancel()
                for stream in (to_us, read, write, from_us):
                    stream.close()
                watch.ended.set()
                await asyncio.gather(*tasks, return_exceptions=True)
                _close_pipes(process)


def _ending_with_us(launch: Launch) -> list[str]:
    """The command, on Linux in such a way that the system ends it when this process is killed outright. Raises
    FileNotFoundError."""
    path = launch.env.get("PATH", os.defpath)
    command = launch.argv[0]
    there = (launch.cwd / command).exists() if os.sep in command else shutil.which(command, path=path) is not None
    if not there:
        raise FileNotFoundError(command)
    return [*ending_with_us(), *launch.argv]


async def _read_messages(process: asyncio.subprocess.Process, to_us: Any, watch: Watch, most: int) -> None:
    import anyio

    assert process.stdout is not None
    held: list[bytes] = []
    size = 0
    try:
        while chunk := await process.stdout.read(_CHUNK):
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                await _deliver(b"".join([*held, line]), to_us, watch)
                held, size = [], 0
            if rest:
                held.append(rest)
                size += len(rest)
            if size > most:
                watch.problem = f"it sent a message of more than {most:,} bytes"
                return
        if held:
            await _deliver(b"".join(held), to_us, watch)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        pass  # the session has gone
    finally:
        if not watch.ending:
            watch.by_itself = True
            await _exits(process, _DRAIN)  # how it ended is known a moment after its pipe has
            watch.code = process.returncode
        watch.ended.set()
        to_us.close()


async def _deliver(line: bytes, to_us: Any, watch: Watch) -> None:
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    if not line.strip():
        return
    try:
        message = jsonrpc_message_adapter.validate_python(repaired(parse_line(line)), by_name=False)
    except (ValueError, RecursionError):
        watch.noise += 1
        return
    await to_us.send(SessionMessage(message))


async def _read_stderr(process: asyncio.subprocess.Process, watch: Watch) -> None:
    assert process.stderr is not None
    while chunk := await process.stderr.read(_CHUNK):
        watch.tail = (watch.tail + chunk)[-_TAIL:]


async def _write_messages(process: asyncio.subprocess.Process, from_us: Any) -> None:
    assert process.stdin is not None
    with contextlib.suppress(ConnectionError, RuntimeError):  # it has gone; reading tells how
        async for each in from_us:
            process.stdin.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await process.stdin.drain()


async def _watch_exit(process: asyncio.subprocess.Process, reader: asyncio.Task[None], watch: Watch) -> None:
    while not await _exits(process, 3_600):
        pass
    await asyncio.wait([reader], timeout=_DRAIN)
    reader.cancel()


async def _end(process: asyncio.subprocess.Process, mark: str) -> None:
    if process.stdin is not None:
        process.stdin.close()
    if not await _exits(process, _GRACE):
        _signal_group(process, "SIGTERM")
        await _exits(process, _GRACE_TERM)
    _kill_tree(process, mark)
    await _exits(process, _GRACE_TERM)


async def _exits(process: asyncio.subprocess.Process, seconds: float) -> bool:
    # not process.wait(): that waits for the pipes, too, which a child may hold
    for _ in range(round(seconds / _POLL)):
        if process.returncode is not None:
            return True
        await asyncio.sleep(_POLL)
    return process.returncode is not None


def _kill_tree(process: asyncio.subprocess.Process, mark: str) -> None:
    """Ends at once whatever is left of a server: its group, and on Linux what has left the group, found by the mark."""
    _signal_group(process, "SIGKILL")
    if sys.platform == "linux":
        for pid in linux_members(process.pid, mark):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _signal_group(process: asyncio.subprocess.Process, name: str) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, getattr(signal, name))
        elif process.returncode is None:
            process.kill()


def _close_pipes(process: asyncio.subprocess.Process) -> None:
    transport = getattr(process, "_transport", None)  # nothing public closes it while a pipe is held elsewhere
    if transport is not None:
        transport.close()
