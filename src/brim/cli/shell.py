"""`!command`: the user's own, run as a shell would. It has the terminal to read from and the whole environment, what it
prints is seen as it comes, it may take as long as it likes, and Ctrl-C ends it, not what it had printed.

What joins the conversation is bounded like a tool's output, and holds no value of a secret variable.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from brim.errors import UsageError
from brim.tools.processes import last_born, missed_interrupt

if TYPE_CHECKING:
    from brim.tools import ToolContext
    from brim.tools.child import Ended

# What the shell is, as a line with its number; where it stands at its end, from a trap where the command leaves it. A
# shell without a trap for Ctrl-C goes on to the next command if the one that runs was not ended by it.
_SCRIPT = (
    'builtin echo $$ >&{0}; trap "builtin pwd -P >&{0} 2>/dev/null" EXIT; trap "exit 130" INT; eval "$1"; set -- "$?"; '
    "builtin pwd -P >&{0} 2>/dev/null; exit $1"
)
_AGAIN = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds from one look at what a Ctrl-C has missed to the next: a program takes so long to start on a busy machine."""
_SCREEN = (b"\x1b[?1049h", b"\x1b[?47h")
"""What a program begins with that takes the whole screen: of an editor nothing is to be kept."""


class Shown(msgspec.Struct, frozen=True):
    """What a command left: `text` as the model is to read it, its end in a few `words`, and whether the text is `cut`."""

    text: str
    words: str
    cut: bool


class _Unnamed:
    """Takes the values of secret variables out of a stream of bytes, wherever it is cut: a command of the user's own may have
    them, the conversation may not."""

    def __init__(self, values: Mapping[bytes, str]) -> None:
        longest_first = sorted(values, key=len, reverse=True)
        self._values = values
        self._pattern = re.compile(b"|".join(map(re.escape, longest_first))) if values else None
        self._most = len(longest_first[0]) if values else 1
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        if self._pattern is None:
            return data
        data = self._pattern.sub(lambda found: f"[{self._values[found[0]]}]".encode(), self._held + data)
        cut = max(0, len(data) - self._most + 1)  # what may be the beginning of one waits for the rest
        self._held = data[cut:]
        return data[:cut]

    def finish(self) -> bytes:
        held, self._held = self._held, b""
        return held


class ShellCommand:
    """One command, to be run once. `stop` may be called while it runs."""

    def __init__(self, command: str, context: ToolContext, out: IO[str]) -> None:
        self._command = command
        self._context = context
        self._out = out
        self._told = b""
        self._told_fd = -1
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._open_line = False
        self._screen = False
        self._interrupted = self._ended = False
        self._running: asyncio.Task[Ended] | None = None
        self._interrupting: asyncio.Task[None] | None = None

    async def run(self) -> Shown:
        """Runs it to its end. Raises UsageError where it cannot be started."""
        from brim.tools.bounded import BoundedOutput, Limits
        from brim.tools.child import run_child
        from brim.tools.environment import secret_values

        shell = shutil.which("bash")
        if shell is None:
            raise UsageError("bash is not installed here", hint="install bash or put it on PATH")
        context = self._context
        cwd = context.cwd if context.cwd is not None and context.cwd.is_dir() else context.workspace
        bounded = BoundedOutput(
            Limits(context.caps.bash, head=0.4), context.count, blobs=context.blobs, blob_bytes=context.caps.blob_bytes
        )

        unnamed = _Unnamed(secret_values(os.environ))

        def seen(data: bytes) -> None:
            self._show(data)
            bounded.feed(unnamed.feed(data))

        self._told_fd, write = os.pipe()
        try:
            os.set_blocking(self._told_fd, False)
            with _shared() as stdin:
                argv = [shell, "--noprofile", "--norc", "-c", _SCRIPT.format(write), "bash", self._command]
                self._running = asyncio.ensure_future(
                    run_child(
                        argv, cwd=cwd, env=dict(os.environ), stdout=seen, stderr=seen, pass_fds=(write,), stdin=stdin
                    )
                )
                ended = await self._running
        except asyncio.CancelledError:
            if not self._ended:
                raise
            ended = None
        except OSError as error:
            raise UsageError(
                f"the command cannot be run: {error.strerror}", hint="put a long one into a file"
            ) from error
        finally:
            if self._interrupting is not None:
                self._interrupting.cancel()
            os.close(write)
            self._read_told()
            os.close(self._told_fd)
            self._told_fd = -1
            self._end_line()
        notes = [
            *self._follow(cwd),
            *(self._how(ended) if ended is not None else ["ended: it did not stop when it was interrupted"]),
        ]
        bounded.feed(unnamed.finish())
        done = bounded.finish()
        text = done.text if not self._screen else "(it took the whole screen; what it showed there is not kept)"
        whole = (text.rstrip("\n") or "(no output)") + "".join(f"\n[{note}]" for note in notes)
        return Shown(whole, "; ".join(notes), done.gap is not None and not self._screen)

    def stop(self) -> None:
        """Ctrl-C for the command and what it started; where it was told already, or cannot be told, its end."""
        self._read_told()
        number = self._told.split(b"\n", 1)[0]
        told, self._interrupted = self._interrupted, True
        if self._running is None or self._running.done():
            return
        if told or not number.isdigit():
            self._ended = self._running.cancel()
        else:
            self._interrupting = asyncio.ensure_future(_interrupt(int(number), cleans="trap" in self._command))

    def _show(self, data: bytes) -> None:
        self._screen = self._screen or any(mark in data for mark in _SCREEN)
        with contextlib.suppress(OSError, ValueError):
            self._out.write(self._decoder.decode(data))
            self._out.flush()
        self._open_line = not data.endswith(b"\n")

    def _end_line(self) -> None:
        if self._open_line:
            self._out.write("\n")
            self._out.flush()

    def _read_told(self) -> None:
        with contextlib.suppress(OSError):
            while self._told_fd >= 0 and (more := os.read(self._told_fd, 32_768)):
                self._told += more

    def _follow(self, before: Path) -> list[str]:
        """Where the next command runs, as long as that is inside the workspace."""
        from brim.tools.paths import is_inside

        lines = self._told.decode("utf-8", "surrogateescape").split("\n")
        now = Path(lines[1] if len(lines) > 2 else before)
        context = self._context
        if now == Path(os.path.realpath(before)):
            return []
        if not is_inside(now, context.workspace, context.granted):
            context.cwd = None
            return [f"working directory is {context.workspace} again: {now} is outside the workspace"]
        context.cwd = now
        return [f"working directory is now {now}"]

    def _how(self, ended: Ended) -> list[str]:
        notes = []
        if ended.background:
            notes.append("still running in the background, now ended: " + ", ".join(ended.background[:5]))
        if self._interrupted:
            how = "interrupted by the user"
        elif ended.signal is not None:
            how = f"killed by signal {ended.signal} ({signal.Signals(ended.signal).name})"
        else:
            how = f"exit code {ended.code}"
        return [*notes, f"{how}; {ended.seconds:.1f} s"]


async def _interrupt(group: int, *, cleans: bool) -> None:
    """SIGINT for a shell and all of its process group, until each has had it: a shell's child that has not yet become its
    program takes the signal as the shell would, and loses it. `cleans`: the shell may have something to do about it."""
    born = last_born()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGINT)
    told: set[int] = set()
    for pause in _AGAIN:
        await asyncio.sleep(pause)
        for pid in missed_interrupt(group, born, ending=not cleans) - told:
            told.add(pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGINT)


@contextlib.contextmanager
def _shared() -> Iterator[int]:
    """The terminal as commands know it, lines and echo, to be read from; without one, nothing to read. What the command
    does not read is there for the next line."""
    try:
        import termios

        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
    except (ImportError, OSError, ValueError):
        yield subprocess.DEVNULL
        return
    plain = list(before)
    plain[3] |= termios.ECHO | termios.ICANON | termios.ISIG
    termios.tcsetattr(terminal, termios.TCSADRAIN, plain)
    try:
        yield terminal
    finally:
        with contextlib.suppress(OSError, ValueError):
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
