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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from brim.errors import UsageError

if TYPE_CHECKING:
    from brim.tools import ToolContext
    from brim.tools.child import Ended

# What the shell is, as a line with its number; where it stands at its end, from a trap where the command leaves it.
_SCRIPT = (
    'builtin echo $$ >&{0}; trap "builtin pwd -P >&{0} 2>/dev/null" EXIT; eval "$1"; set -- "$?"; '
    "builtin pwd -P >&{0} 2>/dev/null; exit $1"
)
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
    """One command, to be run once. `interrupt` may be called while it runs."""

    def __init__(self, command: str, context: ToolContext, out: IO[str]) -> None:
        self._command = command
        self._context = context
        self._out = out
        self._told = b""
        self._told_fd = -1
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._open_line = False
        self._screen = False
        self._interrupted = False

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
                ended = await run_child(
                    argv, cwd=cwd, env=dict(os.environ), stdout=seen, stderr=seen, pass_fds=(write,), stdin=stdin
                )
        except OSError as error:
            raise UsageError(
                f"the command cannot be run: {error.strerror}", hint="put a long one into a file"
            ) from error
        finally:
            os.close(write)
            self._read_told()
            os.close(self._told_fd)
            self._told_fd = -1
            self._end_line()
        notes = [*self._follow(cwd), *self._how(ended)]
        bounded.feed(unnamed.finish())
        done = bounded.finish()
        text = done.text if not self._screen else "(it took the whole screen; what it showed there is not kept)"
        whole = (text.rstrip("\n") or "(no output)") + "".join(f"\n[{note}]" for note in notes)
        return Shown(whole, "; ".join(notes), done.gap is not None and not self._screen)

    def interrupt(self) -> bool:
        """Ctrl-C for the command and what it started; false where there is none, or it was told already."""
        self._read_told()
        number = self._told.split(b"\n", 1)[0]
        if self._interrupted or self._told_fd < 0 or not number.isdigit():
            return False
        self._interrupted = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(int(number), signal.SIGINT)
        return True

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


async def run_shell(
    command: str, context: ToolContext, out: IO[str], stopping: Callable[..., contextlib.AbstractContextManager[None]]
) -> Shown | None:
    """The command to its end; None where it did not end when it was told to. `stopping` calls what it is given at Ctrl-C."""
    shell = ShellCommand(command, context, out)
    task = asyncio.ensure_future(shell.run())
    with stopping(lambda: shell.interrupt() or task.cancel()):
        try:
            return await task
        except asyncio.CancelledError:
            return None
