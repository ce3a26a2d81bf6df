"""Where a path really leads, and whether that is inside the workspace.

Names are resolved through links and `..` before they are judged; of a path that does not exist yet, its deepest
existing part is. A file is opened by its real path, refusing a link in its place, and where it then really lies is
asked again: what was judged is what is opened.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from brim.errors import ToolError


class Resolved(msgspec.Struct, frozen=True):
    """`path` is the real path; `inside`: in the workspace."""

    path: Path
    inside: bool


def is_inside(path: Path, workspace: Path, granted: Iterable[Path] = ()) -> bool:
    """Whether a real path is the workspace, lies below it, or below something that was granted."""
    return any(path == root or root in path.parents for root in (workspace, *granted))


def resolve_path(workspace: Path, path: str | Path) -> Resolved:
    """Resolve `path` (relative to the workspace, `~` for home). Raises ToolError for a name that no file can have, and
    for links that loop."""
    name = os.fspath(path)
    if "\0" in name:
        raise ToolError(f"path {name!r} has a NUL character")
    if name == "~" or name.startswith("~/"):
        name = os.path.expanduser(name)
    root = os.path.realpath(workspace)
    joined = os.path.join(root, name)
    try:
        real = Path(os.path.realpath(joined))
        # realpath stops in silence at a loop; stat does not.
        os.stat(real)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ToolError(f"{path} is a link that leads back to itself") from None
        if error.errno == errno.ENAMETOOLONG:
            raise ToolError(f"path is too long: {len(name)} characters") from None
    return Resolved(real, is_inside(real, Path(root)))


def require_inside(workspace: Path, path: str | Path, granted: Iterable[Path] = (), *, what: str = "use") -> Path:
    """The real path, where tools may go there. Raises ToolError that names the real target otherwise."""
    if not os.fspath(path).strip():
        raise ToolError("path is empty", hint="give the path of a file, relative to the workspace")
    resolved = resolve_path(workspace, path)
    if resolved.inside or is_inside(resolved.path, workspace, granted):
        return resolved.path
    try:
        kind = kind_of(os.stat(os.path.join(workspace, path)).st_mode)
    except OSError:
        kind = None
    told = f", {kind}," if kind not in (None, "a directory") else ""
    target = f" (it leads to {resolved.path})" if str(resolved.path) != str(path) else ""
    raise ToolError(
        f"cannot {what} {path}: it is{told} outside the workspace{target}",
        hint=f"the workspace is {workspace}; the user can allow other places",
    )


_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO (named pipe)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def kind_of(mode: int) -> str | None:
    """What a file is that is no regular one; None for a regular file."""
    if stat.S_ISREG(mode):
        return None
    return next((name for test, name in _KINDS if test(mode)), "no regular file")


def open_regular(path: Path, shown: str, workspace: Path, granted: Iterable[Path] = ()) -> int:
    """A descriptor for reading a regular file, decided by its type before it is opened. Raises ToolError with the reason."""
    try:
        refuse_special(os.stat(path).st_mode, shown)
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise ToolError(f"cannot open {shown}: {reason(error)}") from None
    try:
        refuse_special(os.fstat(fd).st_mode, shown)
        place = _place(fd)
        if place is not None and not is_inside(place, workspace, granted):
            raise ToolError(f"cannot open {shown}: it is outside the workspace (it leads to {place})")
    except BaseException:
        os.close(fd)
        raise
    return fd


def is_there(path: Path, shown: str) -> bool:
    """Whether a path exists, if only as a link. Raises ToolError where that cannot be told: a folder on the way is closed."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise ToolError(f"cannot open {shown}: {reason(error)}") from None
    return True


def missing_hint(path: str, otherwise: str, workspace: Path, cwd: Path | None) -> str:
    """What to do about a path that is not there. `cwd` is where commands run by now."""
    if "\ufffd" in path:
        name = path.replace("\ufffd", "?")
        return f"U+FFFD in a name stands for bytes that are no text: only bash reaches it, as {name}"
    if cwd is not None and is_inside(cwd, workspace) and os.path.lexists(os.path.join(cwd, path)):
        return f"paths are relative to the workspace, not to where commands run: {cwd.relative_to(workspace) / path}"
    return otherwise


def refuse_special(mode: int, shown: str) -> None:
    """Raises ToolError for anything but a regular file."""
    kind = kind_of(mode)
    if kind == "a directory":
        raise ToolError(f"{shown} is a directory", hint="list it with glob, or name a file in it")
    if kind is not None:
        raise ToolError(f"{shown} is {kind}, not a regular file; it was not opened")


def _place(fd: int) -> Path | None:
    """Where an open file lies now, as the system sees it; None where it does not tell."""
    if sys.platform == "linux":
        try:
            return Path(os.readlink(f"/proc/self/fd/{fd}").removesuffix(" (deleted)"))
        except OSError:
            return None
    if sys.platform == "darwin":
        import fcntl

        return Path(os.fsdecode(fcntl.fcntl(fd, 50, b"\0" * 1024).rstrip(b"\0")))  # F_GETPATH
    return None


def reason(error: OSError) -> str:
    """What the system said, in a few words."""
    if isinstance(error, FileNotFoundError):
        return "no such file or directory"
    return (error.strerror or str(error)).lower()
