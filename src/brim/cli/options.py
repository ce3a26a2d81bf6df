"""What a command line of `ai` asked for, as a value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """See `ai --help`. `flags`: config keys given on the command line, None where not given; `waits`: stdin is read to
    its end, however long that takes; `latest`: -c, or -r without
    an id."""

    prompt: str | None = None
    waits: bool = False
    files: list[Path] = []
    flags: dict[str, Any] = {}
    profile: str | None = None
    bill: bool = False
    output: str = "text"
    latest: bool = False
    resume: str | None = None
    session: str | None = None
    new: bool = False
    fork: bool = False
    keep: bool = True
    ladder: bool = True
    directory: Path | None = None
    debug: Path | None = None
    verbose: bool = False
