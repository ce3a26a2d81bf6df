"""The bash tool: one command in a process group of its own, its output capped while it streams, its end always told."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from brim.errors import ToolError
from brim.tools.bounded import Bounded, BoundedOutput, Limits
from brim.tools.caps import Caps
from brim.tools.child import Ended, run_child
from brim.tools.cleaning import whole_text
from brim.tools.context import Tool, ToolContext, ToolOutput
from brim.tools.environment import scrub
from brim.tools.paths import is_inside
from brim.tools.processes import ending_with_us

# The command arrives through a descriptor, so neither its length nor its quoting matters; where the shell stands at its
# end goes out through another, from a trap where the command exits, and once more where it has set that trap itself. Both
# are high numbers that scripts do not use themselves.
_WHERE = "{{ set +x; builtin pwd -P >&{1} || :; }} 2>/dev/null"
_SCRIPT = (
    'set -- "$(</dev/fd/{0})"; exec {0}<&-; trap "'
    + _WHERE
    + '" EXIT; eval "shift;$1"; {{ set -- "$?"; }} 2>/dev/null; '
    + _WHERE
    + "; exit $1"
)
_LOWEST_FD = 60
_LONGEST_COMMAND = 16 * 1024 * 1024


class BashArguments(msgspec.Struct, frozen=True):
    command: str
    timeout: float | None = None


async def run_bash(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
    """Run a command; see `BASH`."""
    asked = msgspec.convert(dict(arguments), BashArguments)
    command = asked.command
    if not command.strip():
        raise ToolError("the command is empty", hint="give a bash command")
    if "\0" in command:
        raise ToolError(f"the command has a NUL character at position {command.index(chr(0))}")
    encoded = command.encode("utf-8", "surrogateescape")
    if len(encoded) > _LONGEST_COMMAND:
        raise ToolError(f"the command is {len(encoded)} bytes; at most {_LONGEST_COMMAND} are taken; nothing was run")
    import shutil

    shell = shutil.which("bash")
    if shell is None:
        raise ToolError("bash is not installed here", hint="install bash or put it on PATH")

    if asked.timeout is not None and asked.timeout <= 0:
        raise ToolError(f"timeout is {asked.timeout:g}", hint="give seconds above 0, or leave it out")

    caps = ctx.caps
    timeout = min(asked.timeout or caps.bash_timeout, caps.bash_timeout_most)
    cwd, notes = _starting_folder(ctx)
    out = _bounded(caps.bash, ctx)
    err = _bounded(caps.bash_stderr, ctx)
    with contextlib.ExitStack() as stack:
        script = _script_fd(encoded, stack)
        where_read, where_write = os.pipe()
        stack.callback(os.close, where_read)
        where = _raise_fd(where_write, stack)
        argv = [shell, "--noprofile", "--norc", "-c", _SCRIPT.format(script, where), "bash"]
        if ctx.wrap_command is not None:
            argv = list(ctx.wrap_command(argv, cwd))
        ended = await run_child(
            [*ending_with_us(), *argv],
            cwd=cwd,
            env=scrub(os.environ if ctx.env is None else ctx.env, ctx.keep_env),
            stdout=out.feed,
            stderr=err.feed,
            timeout=timeout,
            most_bytes=caps.bash_bytes,
            pass_fds=(script, where),
        )
        notes += _follow(ctx, cwd, _last_folder(where_read))
    return _answer(out.finish(), err.finish(), ended, timeout, notes, ctx)


def _bounded(tokens: int, ctx: ToolContext) -> BoundedOutput:
    return BoundedOutput(
        Limits(tokens, head=0.4), ctx.count, blobs=ctx.blobs, blob_bytes=ctx.caps.blob_bytes
    )  # the end says more than the beginning: summary, error, result


def _script_fd(data: bytes, stack: contextlib.ExitStack) -> int:
    if sys.platform == "linux":
        fd = os.memfd_create("brim-command")
        stack.callback(os.close, fd)
    else:
        import tempfile

        fd = stack.enter_context(tempfile.TemporaryFile()).fileno()  # noqa: SIM115 - the stack closes it
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    import fcntl

    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD)
    stack.callback(os.close, high)
    return high


def _raise_fd(fd: int, stack: contextlib.ExitStack) -> int:
    import fcntl

    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD)
    finally:
        os.close(fd)
    stack.callback(os.close, high)
    return high


def _starting_folder(ctx: ToolContext) -> tuple[Path, list[str]]:
    cwd = ctx.cwd or ctx.workspace
    if cwd.is_dir():
        return cwd, []
    ctx.cwd = None
    return ctx.workspace, [f"{cwd} is gone; started in {ctx.workspace}"]


def _last_folder(fd: int) -> str:
    os.set_blocking(fd, False)
    try:
        told = os.read(fd, 32_768).decode("utf-8", "surrogateescape")
    except BlockingIOError:
        return ""
    half = len(told) // 2
    return (told[:half] if told[:half] == told[half:] else told).removesuffix("\n")


def _follow(ctx: ToolContext, before: Path, folder: str) -> list[str]:
    """Keep where the command left the shell, as long as that is inside the workspace."""
    if not folder.startswith("/") or "\n" in folder:
        return []
    now = Path(folder)
    if now == before or now == Path(os.path.realpath(before)):
        return []
    if not is_inside(now, ctx.workspace, ctx.granted):
        ctx.cwd = None
        return [f"working directory is {ctx.workspace} again: {folder} is outside the workspace"]
    ctx.cwd = now
    return [f"working directory is now {folder}"]


def _answer(out: Bounded, err: Bounded, ended: Ended, timeout: float, notes: list[str], ctx: ToolContext) -> ToolOutput:
    parts = []
    for label, stream in (("stdout", out), ("stderr", err)):
        if stream.text:
            parts.append(f"{label}:\n{stream.text}" + ("" if stream.text.endswith("\n") else "\n"))
            if stream.replaced:
                notes.append(f"{stream.replaced} bytes of {label} that are no text are shown as U+FFFD")
    if not parts:
        parts.append("(no output)\n")
    if ended.background:
        notes.append("still running in the background, now ended: " + ", ".join(map(_name, ended.background[:5])))
    notes.append(_how(ended, timeout, ctx.caps))
    text = "".join(parts) + whole_text("".join(f"[{note}]\n" for note in notes))
    meta: dict[str, Any] = {
        "exit_code": ended.code,
        "signal": ended.signal,
        "timed_out": ended.timed_out,
        "seconds": round(ended.seconds, 3),
        "background": list(ended.background),
        "stdout": out.facts(),
        "stderr": err.facts(),
        "cwd": whole_text(str(ctx.cwd or ctx.workspace)),
    }
    if err.handle:
        meta["stderr_handle"] = err.handle
    return ToolOutput(text.removesuffix("\n"), ended.code != 0 or ended.timed_out, meta, out.handle or err.handle)


def _name(process: str) -> str:
    """A background process as its user knows it: a forked shell still carries the line that started it."""
    return process.partition(" (")[0] + " (a subshell)" if " --norc -c set -- " in process else process


def _how(ended: Ended, timeout: float, caps: Caps) -> str:
    took = f"{ended.seconds:.2f} s"
    if ended.timed_out:
        longer = f"; timeout: N gives it up to {caps.bash_timeout_most} s" if timeout < caps.bash_timeout_most else ""
        return f"timed out after {timeout:g} s; the command and all it started were ended{longer}"
    if ended.too_much:
        return f"ended after {caps.bash_bytes} bytes of output: it printed without end; {took}"
    if ended.signal is not None:
        return f"killed by signal {ended.signal} ({_signal_name(ended.signal)}); {took}"
    if ended.code is None:
        return f"the command could not be ended and may still be running; {took}"
    code = ended.code
    if 128 < code < 128 + 65 and (name := _signal_name(code - 128)):
        return f"exit code {code} (128 + {name}); {took}"
    return f"exit code {code}; {took}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


BASH = Tool(
    name="bash",
    description=(
        "Run a bash command. No stdin, no terminal. Working directory is kept between calls. Background processes are ended"
        " with the command. Long output keeps its head and tail."
    ),
    parameters={
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "timeout": {"type": "number", "description": "seconds, default 120"},
        },
        "required": ["command"],
    },
    run=run_bash,
    aliases={"cmd": "command", "script": "command", "timeout_s": "timeout"},
)
