"""Replacing a file so that whoever looks, whenever, sees the old one or the new one whole.

The new content is written beside the file, forced to disk and renamed over it; mode and owner are kept. The former
content goes to the blob store first, as a checkpoint that can be put back.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from brim.errors import ToolError
from brim.tools.context import ToolContext, ToolOutput
from brim.tools.filestate import remember, stamp_of
from brim.tools.paths import is_inside, reason


def replace_file(
    ctx: ToolContext, path: Path, data: bytes, shown: str, seen: tuple[int, int, int] | None = None
) -> str:
    """Write `data` to `path` (a real path), creating folders as needed; a file that is no longer as it was `seen` (see
    `stamp_of`) is left alone. Returns what a reader of the answer should know
    ("; " and a clause, or ""). Raises ToolError with the system's reason."""
    temporary: Path | None = None
    try:
        _make_folder(path.parent, shown)
        if not is_inside(
            Path(os.path.realpath(path.parent)),
            ctx.workspace,
            {root.parent if root == path else root for root in ctx.granted},
        ):
            raise ToolError(
                f"cannot write {shown}: its folder is outside the workspace ({os.path.realpath(path.parent)})"
            )
        before = os.stat(path, follow_symlinks=False) if os.path.lexists(path) else None
        # Root could write it all the same; whoever took away every right to write did not mean that.
        if before is not None and not (os.access(path, os.W_OK) and before.st_mode & 0o222):
            raise ToolError(f"cannot write {shown}: the file is read-only", hint="chmod u+w makes it writable")
        named = path.parent / f".{path.name[:80]}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
        fd = _open_unnamed(path.parent)
        if fd is None:
            temporary = named
            fd = os.open(named, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fchmod(fd, _new_mode() if before is None else stat.S_IMODE(before.st_mode))
            if before is not None and (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                with contextlib.suppress(OSError):
                    os.fchown(fd, before.st_uid, before.st_gid)
                    os.fchmod(fd, stat.S_IMODE(before.st_mode))
            if before is not None:
                _copy_attributes(path, fd)
            os.fsync(fd)
            if seen is not None and (not os.path.lexists(path) or stamp_of(os.stat(path)) != seen):
                raise ToolError(
                    f"{shown} was changed by somebody else just now; nothing was written",
                    hint="read it again, then repeat the change",
                )
            if temporary is None:
                temporary = named
                _give_name(fd, named)
            os.rename(named, path)
            temporary = None
            remember(ctx, path, fd)
        finally:
            os.close(fd)
        _sync_folder(path.parent)
        names = 1 if before is None else before.st_nlink
        return f"; its {names} hard links were parted: the other names keep the former content" if names > 1 else ""
    except OSError as error:
        hint = None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EBUSY) and os.access(path, os.W_OK):
            hint = "its folder does not let it be replaced as a whole; bash can write into it, for example with cat >"
        raise ToolError(f"cannot write {shown}: {reason(error)}; it is unchanged", hint=hint) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _open_unnamed(folder: Path) -> int | None:
    """A new file without a name, which a killed process leaves nothing of; None where the system has none."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:  # a file system that cannot, or that cannot be written: opening a named one tells which
        return None


def _give_name(fd: int, path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # with a folder's descriptor Python asks for the file that the link in /proc leads to, not for the link
        os.link(f"/proc/self/fd/{fd}", path.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _make_folder(folder: Path, shown: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        file = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
        raise ToolError(f"cannot write {shown}: {file.name} is a file, not a folder; nothing was written") from None


def _copy_attributes(path: Path, fd: int) -> None:
    """Access lists and other extended attributes, as far as they can be had and set."""
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        for name in os.listxattr(path):
            with contextlib.suppress(OSError):
                os.setxattr(fd, name, os.getxattr(path, name))


def checkpoint(ctx: ToolContext, path: Path, before: bytes | None, after: bytes | None) -> dict[str, Any]:
    """Keep a file's content from before a change. `handle` is None for a file that did not exist: to restore is to
    remove it. `after` becomes the sha256 of what the change leaves (None: no file), which tells later whether somebody
    else has changed it since."""
    left = None if after is None else hashlib.sha256(after).hexdigest()
    if before is None:
        saved: dict[str, Any] = {"path": str(path), "handle": None, "mode": None, "after": left}
    else:
        mode = stat.S_IMODE(os.stat(path).st_mode)
        saved = {"path": str(path), "handle": ctx.blobs.put(before), "mode": mode, "after": left}
    ctx.changes.append(saved)
    return saved


async def in_whole(change: Callable[..., ToolOutput], *arguments: Any) -> ToolOutput:
    """Runs a change of a file in a thread, to its end: interrupted, it is waited for, so that nothing happens to files after
    an answer was stopped, and what happened is known (`ToolContext.changes`)."""
    task = asyncio.ensure_future(asyncio.to_thread(change, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def restore(ctx: ToolContext, saved: dict[str, Any]) -> None:
    """Put a file back to what a checkpoint holds. Raises ToolError or StoreError where that cannot be done."""
    path = Path(saved["path"])
    if saved["handle"] is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        ctx.files.pop(path, None)
        return
    replace_file(ctx, path, ctx.blobs.get(saved["handle"]), str(path))
    if saved.get("mode") is not None:
        os.chmod(path, saved["mode"])


_umask: int | None = None


def _new_mode() -> int:
    """What open() would give a new file: 0666 less the umask, which can only be read by setting it."""
    global _umask
    if _umask is None:
        _umask = os.umask(0o022)
        os.umask(_umask)
    return 0o666 & ~_umask


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system can."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
