"""The standard streams of a process that scripts start: some may be closed, full, or left by whoever read them."""

from __future__ import annotations

import contextlib
import errno
import os
import sys

_UNWRITABLE = (errno.EBADF, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


def hold_standard_streams() -> None:
    """Fills the places of standard streams that whoever started the process has closed, before a database or a socket
    takes them: stdin is empty, what goes to stderr is lost, and writing to stdout fails as on a full disk."""
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != number:  # the lowest that is free: it is
                os.dup2(opened, number)
                os.close(opened)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for the whole process
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as above


def left_unwritten(error: OSError, program: str) -> int | None:
    """The exit code where an error says that stdout cannot be written, which is told; None for any other error. Nothing
    more is written there, not at the end of the process either."""
    if error.filename is not None or not (isinstance(error, BrokenPipeError) or error.errno in _UNWRITABLE):
        return None
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 141
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{program}: the output cannot be written: {error.strerror}\n")
    return 1


def left_by_reader(ended: SystemExit, program: str) -> int:
    """The exit code where the parser ended the process: it does so, with 1, where its help meets a pipe that nobody
    reads, which is no failure. Raises what it was given in any other case."""
    reason = ended.__context__
    if not isinstance(reason, BrokenPipeError) or (code := left_unwritten(reason, program)) is None:
        raise ended
    return code
