"""One child process with all it starts, from its beginning to the certain end of every one of them.

The child gets a session of its own (no terminal, no stdin) and a mark in its environment. Waiting is for the process,
not for the end of its pipes: what it leaves behind in the background is found (its process group, its session, on
Linux also by the mark and by the pipes it holds), ended with TERM and then KILL, and named. Everything blocking happens
in a thread of its own, so an event loop stays free and a cancelled task ends the child before it goes on.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from brim.tools.processes import MARK, limit_memory, linux_members, pipe_names, start_tick, unread, widen

_CHUNK = 256 * 1024
_SMALL = 8 * 1024
_EAGER = 32
# After the command itself has ended, what it piped into something else may still be on its way (seconds).
_DRAIN = 0.25
# From TERM to KILL (seconds).
_GRACE = 1.0
_GRACE_BACKGROUND = 0.3

Sink = Callable[[bytes], object]


class Ended(msgspec.Struct, frozen=True):
    """How a child ended. `code` is None where a signal ended it; `stopped` says that a sink wanted no more;
    `background` names what was still running and has been ended."""

    code: int | None
    signal: int | None
    seconds: float
    timed_out: bool = False
    too_much: bool = False
    stopped: bool = False
    background: tuple[str, ...] = ()


class Stop(Exception):
    """Raised by a sink that has seen enough: the child is ended."""


async def run_child(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdout: Sink,
    stderr: Sink,
    timeout: float | None = None,  # noqa: ASYNC109 - the child's end, not the waiting for it
    most_bytes: int | None = None,
    pass_fds: Sequence[int] = (),
    stdin: int = subprocess.DEVNULL,
    sweep: bool = True,
    most_memory: int | None = None,
) -> Ended:
    """Run `argv` and feed its output to the sinks, in a thread. `most_bytes` of both streams together end it, as
    `timeout` (seconds) does.

    `sweep=False` is for programs known to leave nothing behind; `most_memory` (bytes of data, Linux) is for those that
    hold what they should print. Raises OSError where the program cannot be started.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Ended] = loop.create_future()
    child = _Child(argv, cwd, env, stdout, stderr, timeout, most_bytes, pass_fds, stdin, sweep, most_memory)

    def settle(result: Ended | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        elif result is not None:
            future.set_result(result)

    def work() -> None:
        result, error = None, None
        try:
            result = child.run()
        except BaseException as caught:
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name="brim-child", daemon=True).start()
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        child.cancel()
        while not future.done():
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await asyncio.shield(future)
        if not future.cancelled():
            future.exception()
        raise


_running: set[_Child] = set()


@atexit.register
def _end_all() -> None:
    for child in list(_running):
        child.kill_group(signal.SIGKILL)


class _Child:
    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        stdout: Sink,
        stderr: Sink,
        timeout: float | None,
        most_bytes: int | None,
        pass_fds: Sequence[int],
        stdin: int,
        sweep: bool,
        most_memory: int | None,
    ) -> None:
        self._argv, self._cwd = list(argv), cwd
        self._mark = uuid.uuid4().hex
        self._env = {**env, MARK: self._mark} if sweep else dict(env)
        self._sinks = (stdout, stderr)
        self._timeout, self._most, self._pass_fds, self._stdin = timeout, most_bytes, pass_fds, stdin
        self._sweep = sweep
        self._most_memory = most_memory
        self._wake_read, self._wake_write = os.pipe()
        self._lock = threading.Lock()
        self._cancelled = False
        self._bytes = self._reads = 0
        self._pipes: frozenset[str] = frozenset()
        self._since = 0
        self._process: subprocess.Popen[bytes] | None = None

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            if self._wake_write >= 0:
                os.write(self._wake_write, b"x")

    def kill_group(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def run(self) -> Ended:
        started = time.monotonic()
        exit_watch = -1
        selector = selectors.DefaultSelector()
        try:
            process = self._process = subprocess.Popen(
                self._argv,
                cwd=self._cwd,
                env=self._env,
                stdin=self._stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=self._pass_fds,
                start_new_session=True,
                bufsize=0,
            )
            _running.add(self)
            if self._sweep and sys.platform == "linux":
                assert process.stdout is not None and process.stderr is not None
                self._since = start_tick(process.pid)
                self._pipes = pipe_names(process.stdout.fileno(), process.stderr.fileno(), *self._pass_fds)
            if self._most_memory is not None:
                limit_memory(process.pid, self._most_memory)
            assert process.stdout is not None and process.stderr is not None
            for pipe, sink in zip((process.stdout, process.stderr), self._sinks, strict=True):
                os.set_blocking(pipe.fileno(), False)
                widen(pipe.fileno())
                selector.register(pipe, selectors.EVENT_READ, sink)
            selector.register(self._wake_read, selectors.EVENT_READ, None)
            if hasattr(os, "pidfd_open"):
                with contextlib.suppress(OSError):
                    exit_watch = os.pidfd_open(process.pid)
                    selector.register(exit_watch, selectors.EVENT_READ, None)
            return self._watch(process, selector, started, exit_watch >= 0)
        except BaseException:
            # A sink failed: nothing may go on printing into pipes that nobody reads.
            self.kill_group(signal.SIGKILL)
            if self._process is not None:
                self._process.wait()
            raise
        finally:
            _running.discard(self)
            selector.close()
            if exit_watch >= 0:
                os.close(exit_watch)
            if self._process is not None:
                for stream in (self._process.stdout, self._process.stderr):
                    if stream is not None:
                        stream.close()
            with self._lock:
                os.close(self._wake_read)
                os.close(self._wake_write)
                self._wake_write = -1

    def _watch(
        self, process: subprocess.Popen[bytes], selector: selectors.BaseSelector, started: float, watched: bool
    ) -> Ended:
        deadline = None if self._timeout is None else started + self._timeout
        timed_out = too_much = stopped = False
        try:
            while process.poll() is None:
                now = time.monotonic()
                if deadline is not None and now >= deadline:
                    timed_out = True
                    break
                wait = None if watched else 0.02
                if deadline is not None:
                    wait = deadline - now if wait is None else min(wait, deadline - now)
                self._read(selector, wait)
                if self._cancelled:
                    break
                if self._most is not None and self._bytes > self._most:
                    too_much = True
                    break
            if not (timed_out or too_much or self._cancelled):
                # Wait for the process, not for end-of-file. What it had printed is in the pipes now, however long it
                # takes to read; beyond that, let arrive what others still pass on.
                until_bytes = self._bytes + sum(unread(key.fd) for key in self._streams(selector))
                while self._bytes < until_bytes and self._read(selector, 0):
                    pass
                until = time.monotonic() + _DRAIN
                while self._streams(selector) and not self._cancelled and (left := until - time.monotonic()) > 0:
                    self._read(selector, left)
        except Stop:
            stopped = True
        background = self._end(process, selector, feed=timed_out)
        if not (too_much or stopped or self._cancelled):
            with contextlib.suppress(Stop):
                self._drain(selector)
        status = process.returncode
        return Ended(
            status if status is None or status >= 0 else None,
            -status if status is not None and status < 0 else None,
            time.monotonic() - started,
            timed_out,
            too_much,
            stopped,
            background,
        )

    def _streams(self, selector: selectors.BaseSelector) -> list[selectors.SelectorKey]:
        """stdout and stderr, as far as they are open."""
        return [key for key in selector.get_map().values() if key.data is not None]

    def _read(self, selector: selectors.BaseSelector, wait: float | None, feed: bool = True) -> bool:
        """One round of reading; False where there was nothing to read."""
        some = False
        for key, _ in selector.select(wait):
            if key.data is None:
                if key.fd != self._wake_read:
                    selector.unregister(key.fileobj)  # the process has ended: poll() says the rest
                continue
            try:
                data = os.read(key.fd, _CHUNK)
            except BlockingIOError:
                continue
            some = True
            if data:
                self._bytes += len(data)
                self._reads += 1
                if len(data) < _SMALL and self._reads > _EAGER:
                    # A program that prints in drops: let the pipe collect some, or most time goes into waking up.
                    time.sleep(0.001)
                if feed:
                    key.data(data)
            else:
                selector.unregister(key.fileobj)
        return some

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """What still lies in the pipes now that nobody of ours writes into them."""
        until = time.monotonic() + 2
        while self._streams(selector) and time.monotonic() < until and self._read(selector, 0):
            pass

    def _end(
        self, process: subprocess.Popen[bytes], selector: selectors.BaseSelector, *, feed: bool
    ) -> tuple[str, ...]:
        """End whatever still lives: TERM, a while, KILL. Names what was not the command itself."""
        alive = process.poll() is None
        members = self._members(process.pid)
        if not alive and not members:
            return ()
        names = tuple(f"{pid} ({name})" if name else str(pid) for pid, name in members.items() if pid != process.pid)
        ended_by_us = alive
        self._signal(members, signal.SIGTERM)
        until = time.monotonic() + (_GRACE if ended_by_us else _GRACE_BACKGROUND)
        pause = 0.005
        while time.monotonic() < until:
            with contextlib.suppress(Stop):
                if not self._read(selector, pause, feed):
                    time.sleep(min(pause, 0.01))
            pause = min(pause * 2, 0.05)
            if process.poll() is not None and not self._members(process.pid):
                break
        else:
            for _ in range(50):
                members = self._members(process.pid)
                if process.poll() is not None and not members:
                    break
                self._signal(members, signal.SIGKILL)
                time.sleep(0.01)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
        return () if ended_by_us else names

    def _signal(self, members: Mapping[int, str], number: signal.Signals) -> None:
        self.kill_group(number)
        for pid in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _members(self, group: int) -> dict[int, str]:
        """Live processes of the group, its session, or with the mark: pid -> command line (a name for people)."""
        if not self._sweep:
            return {group: ""} if self._process is not None and self._process.poll() is None else {}
        if sys.platform == "linux":
            return linux_members(group, self._mark, self._pipes, self._since)
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return {}
        return {group: ""}
