"""Who may write a session: one open store at a time, told by a row that names its process.

On the same machine a holder lives as long as its process does, so that a killed one frees its sessions at once and an
idle terminal keeps its own whatever the clock says. From another machine (Postgres) only the expiry can be judged;
every write renews it. A holder that lost its lease finds out inside the transaction of its next write.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

LEASE_S = 120.0
"""How long a lease holds, in seconds, against other machines, after the last write."""


class Holder(NamedTuple):
    """One open store: `token` is its own, the rest says where it runs."""

    token: str
    place: str
    host: str
    pid: int
    started: str


def this_holder() -> Holder:
    """A new holder in this process."""
    import secrets

    return Holder(secrets.token_hex(8), _place(), socket.gethostname(), os.getpid(), _start_of(os.getpid()) or "")


def alive(place: str, pid: int, started: str) -> bool | None:
    """Whether that process still runs; None where it cannot be told from here (another machine, Windows)."""
    if place != _place() or sys.platform == "win32":
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    now = _start_of(pid)
    if now is None:  # gone between the two looks, or a zombie
        return False
    return now == started


def rebooted(place: str) -> bool:
    """Whether that place is a machine of this name before its last start: nothing of then still runs. Another machine of the
    same name looks alike."""
    then, now = place.split(" "), _place().split(" ")
    return len(then) == len(now) == 3 and then[0] == now[0] and then[1] != now[1]


@functools.cache
def _place() -> str:
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _start_of(pid: int) -> str | None:
    """When a process started, in its system's own words; None where there is none (any more)."""
    if sys.platform == "win32":
        return ""
    try:
        # field 2 is the name in brackets, which may hold anything; fields 3 and 22 are state and start
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self/stat").exists():
            return None
    except OSError:
        return ""
    out = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return out.stdout.strip() or None
