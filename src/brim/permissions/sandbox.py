"""Bash in a sandbox of bubblewrap's: the workspace can be written, the rest only read, the network as configured.

A second wall behind the rules: what a command does in spite of its words stays inside. Linux only, where `bwrap` is
installed and the kernel lets it make namespaces; whether it does is tried once, with the very arguments that are used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brim.errors import ConfigError

SandboxMode: TypeAlias = Literal["off", "auto", "required"]
SANDBOX_MODES: tuple[SandboxMode, ...] = ("off", "auto", "required")
_SECRETS = (
    "~/.ssh",
    "~/.gnupg",
    "~/.aws",
    "~/.config/gcloud",
    "~/.azure",
    "~/.kube",
    "~/.docker",
    "~/.netrc",
    "~/.config/gh",
)


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """`network`: whether commands reach it; `writable`: folders besides the workspace; `hidden`: places that are not even
    read (folders of keys by default)."""

    mode: SandboxMode = "auto"
    network: bool = True
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = _SECRETS


class Probe(msgspec.Struct, frozen=True):
    """`bwrap`: its path, None where the sandbox cannot be used; `why` then says why not."""

    bwrap: str | None
    why: str = ""


@lru_cache(4)
def probe(name: str = "bwrap") -> Probe:
    """Whether the sandbox works here, found out by starting one. A few milliseconds, once in a process."""
    if sys.platform != "linux":
        return Probe(None, f"bubblewrap is for Linux, and this is {sys.platform}")
    found = shutil.which(name)
    if found is None:
        return Probe(None, "bubblewrap is not installed (package bubblewrap)")
    argv = [found, *_arguments(Path("/"), Sandbox(network=False), writable=False), "--", "/bin/sh", "-c", ":"]
    try:
        tried = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Probe(None, f"bubblewrap does not start: {error}")
    if tried.returncode != 0:
        said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
        return Probe(None, f"bubblewrap cannot make a sandbox here: {said[-1] if said else tried.returncode}")
    return Probe(found)


def wrap(argv: Sequence[str], workspace: Path, settings: Sandbox, *, cwd: Path | None = None) -> list[str]:
    """A command's argument list inside the sandbox, or as it is where there is none. Raises ConfigError where one is
    required and cannot be had."""
    if settings.mode == "off":
        return list(argv)
    tried = probe()
    if tried.bwrap is None:
        if settings.mode == "required":
            raise ConfigError(f"the sandbox is required: {tried.why}", hint="install bubblewrap, or use --sandbox auto")
        return list(argv)
    return [tried.bwrap, *_arguments(workspace, settings), "--chdir", str(cwd or workspace), "--", *argv]


def open_sandbox(
    workspace: Path, settings: Sandbox
) -> tuple[Callable[[Sequence[str], Path], list[str]] | None, str | None]:
    """What a tool context takes as `wrap_command` (None: commands run as they are), and a notice for the user to see once.

    Raises ConfigError where a sandbox is required and cannot be had, before any command is run.
    """
    if settings.mode not in SANDBOX_MODES:
        raise ConfigError(f"sandbox is {settings.mode!r}", hint=f"one of {', '.join(SANDBOX_MODES)}")
    if settings.mode == "off":
        return None, None
    tried = probe()
    if tried.bwrap is None:
        if settings.mode == "required":
            raise ConfigError(f"the sandbox is required: {tried.why}", hint="install bubblewrap, or use --sandbox auto")
        return None, f"commands run without a sandbox: {tried.why}"
    root = Path(os.path.realpath(workspace))

    def wrap_command(argv: Sequence[str], cwd: Path) -> list[str]:
        return wrap(argv, root, settings, cwd=cwd)

    return wrap_command, None


def _arguments(workspace: Path, settings: Sandbox, *, writable: bool = True) -> list[str]:
    made = ["--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    if not settings.network:
        made.append("--unshare-net")
    made += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108 - the sandbox's own
    if os.path.isdir("/var/tmp"):  # noqa: S108
        made += ["--tmpfs", "/var/tmp"]  # noqa: S108
    for place in settings.hidden:
        path = os.path.realpath(os.path.expanduser(place))
        if os.path.isdir(path):
            made += ["--tmpfs", path]
        elif os.path.isfile(path):
            made += ["--ro-bind", "/dev/null", path]
    if writable:
        for place in settings.writable:
            path = os.path.realpath(os.path.expanduser(place))
            if os.path.isdir(path):
                made += ["--bind", path, path]
        root = os.path.realpath(workspace)
        made += ["--bind", root, root]
        for name in (".git/hooks", ".git/config", ".brim"):
            # what runs outside the sandbox later, or loosens it, stays as it is
            path = os.path.join(root, name)
            if os.path.exists(path):
                made += ["--ro-bind", path, path]
    return made
