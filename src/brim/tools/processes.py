"""What the operating system tells of processes and pipes, and the limits it is asked to hold."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator

import msgspec

MARK = "BRIM_CALL"
"""The variable that marks a command's environment, and so the processes that it left behind."""
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, Linux
_STARTING = 100
"""Clock ticks (a hundredth of a second each) from fork to exec, at most: on a busy machine it waits for its turn."""
_MASKS = (b"SigBlk:", b"SigIgn:", b"SigCgt:")


def linux_members(session: int, mark: str, pipes: Collection[str] = (), since: int = 0) -> dict[int, str]:
    """Live processes that a command started: pid -> command line, cut.

    They are of its session or process group, or have its mark in their environment, or, where they have left both behind,
    hold one of its pipes (as `pipe_names` has them) and have started no earlier than the clock tick `since`.
    """
    found: dict[int, str] = {}
    needle = f"{MARK}={mark}".encode()
    me = str(os.getpid()).encode()
    with os.scandir("/proc") as entries:
        pids = [entry.name for entry in entries if entry.name.isdigit()]
    for pid in pids:
        try:
            stat = _slurp(f"/proc/{pid}/stat")
            # pid (name) state ppid pgrp session ...; the name may hold anything, so count from its end.
            fields = stat[stat.rfind(b")") + 2 :].split(maxsplit=20)
            if fields[0] in (b"Z", b"X"):
                continue
            of_ours = int(fields[3]) == session or int(fields[2]) == session or needle in _slurp(f"/proc/{pid}/environ")
            # A child of this very process is another call's, caught between its fork and its exec.
            if not of_ours and (not pipes or int(fields[19]) < since or fields[1] == me or not _holds(pid, pipes)):
                continue
            line = _slurp(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except (OSError, IndexError, ValueError):
            continue
        found[int(pid)] = line[:77] + "..." if len(line) > 80 else line
    return found


def _holds(pid: str, pipes: Collection[str]) -> bool:
    with os.scandir(f"/proc/{pid}/fd") as entries:
        return any(os.readlink(entry.path) in pipes for entry in entries)


def pipe_names(*fds: int) -> frozenset[str]:
    """What the system calls the pipes behind descriptors, whichever end they are."""
    return frozenset(f"pipe:[{os.fstat(fd).st_ino}]" for fd in fds)


def start_tick(pid: int) -> int:
    """The clock tick (Linux) at which a process started; 0 where the system does not say."""
    try:
        stat = _slurp(f"/proc/{pid}/stat")
        return int(stat[stat.rfind(b")") + 2 :].split(maxsplit=20)[19])
    except (OSError, IndexError, ValueError):
        return 0


class Born(msgspec.Struct, frozen=True):
    """A moment among processes: the newest one's number and the clock tick (Linux)."""

    pid: int
    tick: int


def last_born() -> Born:
    """Now; zeros where the system does not say."""
    if sys.platform != "linux":
        return Born(0, 0)
    try:
        tick = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
        return Born(int(_slurp("/proc/loadavg").split()[-1]), tick)
    except (OSError, IndexError, ValueError):
        return Born(0, 0)


def missed_interrupt(group: int, when: Born, *, ending: bool) -> set[int]:
    """Processes of a group that a SIGINT sent at `when` would have ended, had it not come while they were being started.

    They are there although SIGINT ends them, and were there then, but had only just been forked: an older one that lives on
    chose to (it took the signal, and lets a second one end it), and what was started later is somebody's cleaning up.
    `ending` says that the group's leader, a shell, does none: where the signal came in the middle of its fork, the system has
    let it begin again, and its child is younger than the signal.
    """
    found: set[int] = set()
    if not when.tick:
        return found
    bit = 1 << (signal.SIGINT - 1)
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            stat = _slurp(f"/proc/{pid}/stat")
            fields = stat[stat.rfind(b")") + 2 :].split(maxsplit=20)
            if int(fields[2]) != group or fields[0] in (b"Z", b"X"):
                continue
            started = int(fields[19])
            later = started > when.tick or (started == when.tick and pid > when.pid)
            if started < when.tick - _STARTING or (later and not (ending and int(fields[1]) == group)):
                continue
            masks = [line.split()[1] for line in _slurp(f"/proc/{pid}/status").splitlines() if line.startswith(_MASKS)]
        except (OSError, IndexError, ValueError):
            continue
        if not any(int(mask, 16) & bit for mask in masks):
            found.add(pid)
    return found


def _slurp(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = []
        while piece := os.read(fd, 65536):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)


def unread(fd: int) -> int:
    """Bytes that lie in a pipe."""
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"), sys.byteorder)


def limit_memory(pid: int, most: int) -> None:
    """Let a process hold at most so many bytes of data, where the system can say so (Linux)."""
    if sys.platform == "linux":
        import resource

        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))


def widen(fd: int) -> None:
    """A pipe of 1 MB instead of 64 KB lets a fast writer run on while we look at what came."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, _SET_PIPE_SIZE, 1024 * 1024)


@functools.cache
def ending_with_us() -> tuple[str, ...]:
    """What to put before a command so that the system ends it where this process is killed outright (Linux, by `setpriv`, of
    which small systems have one that cannot); nothing where there is no such way."""
    if sys.platform != "linux":
        return ()
    import shutil  # brings four compression libraries along

    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return ()
    asked = (setpriv, "--pdeathsig", "KILL", "--")
    try:
        can = subprocess.run([*asked, "true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ()
    return asked if can.returncode == 0 else ()


_ends: list[Callable[[], object]] = []


@contextlib.contextmanager
def at_end(end: Callable[[], object]) -> Iterator[None]:
    """While this holds, `end` runs if this process ends: children that must not outlive it are ended by it."""
    _ends.append(end)
    try:
        yield
    finally:
        _ends.remove(end)


@atexit.register
def end_all() -> None:
    """Ends all that must not outlive this process; for whoever leaves without the interpreter's own clean-up, too."""
    for end in list(_ends):
        end()
