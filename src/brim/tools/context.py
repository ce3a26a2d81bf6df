"""What a tool is, what it answers, and what it is given: the seams between tools, their runner and the rest of brim."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec

from brim.conversation import Media
from brim.tools.caps import Caps

if TYPE_CHECKING:
    from brim.permissions import LeftOut


class BlobWriter(Protocol):
    """An original that streams into the store: the part of `brim.store.BlobWriter` that tools use."""

    def write(self, data: bytes, /) -> object: ...
    def close(self) -> str: ...
    def discard(self) -> object: ...


class Blobs(Protocol):
    """The store of originals, by content hash: the part of `brim.store.Blobs` that tools use.

    `get` and `size` take any unique prefix of a handle and raise brim.errors.StoreError for any other.
    """

    def put(self, data: bytes, /) -> str: ...
    def open_writer(self) -> BlobWriter: ...
    def get(self, handle: str, offset: int = 0, length: int | None = None) -> bytes: ...
    def size(self, handle: str) -> int: ...


class ToolOutput(msgspec.Struct, frozen=True):
    """What a model sees of a call (`text`, capped), and what brim keeps beside it.

    `meta` is JSON-serialisable (counts, ranges, exit code, checkpoint); `handle` names the original where the text is
    not all of it.
    """

    text: str
    is_error: bool = False
    meta: dict[str, Any] = {}
    handle: str | None = None
    media: tuple[Media, ...] = ()
    """Images beside the text, for a model that is shown them."""


class FileState(msgspec.Struct, frozen=True):
    """A file as it was when a tool last read or wrote it; `digest` is None for files too large to hash each time."""

    modified_ns: int
    size: int
    inode: int
    digest: str | None


@dataclass
class ToolContext:
    """Where and with what tools work. One per session; `cwd` and `files` are its memory between calls."""

    workspace: Path
    blobs: Blobs
    count: Callable[[str], int]
    caps: Caps = field(default_factory=Caps)
    env: Mapping[str, str] | None = None
    """Environment for commands, before it is scrubbed of secrets; None is this process's."""
    keep_env: Sequence[str] = ()
    """Variables that are passed to commands although their names look like secrets."""
    granted: set[Path] = field(default_factory=set)
    """Real paths outside the workspace (files, or folders with all below) that the user allowed."""
    wrap_command: Callable[[Sequence[str], Path], Sequence[str]] | None = None
    """Puts a command's argument list into a sandbox; gets the working directory, too."""
    more_tools: Callable[[str], Tool | None] | None = None
    """Asked for a tool that is not in the list: those of MCP servers whose definitions are not sent with every request."""
    sees_images: bool = False
    """Whether the model is shown images that a tool returns."""
    originals: Callable[[str], str | None] | None = None
    """Asked by recall before the blob store: the text behind a handle of the history (a message that a view left out)."""
    left_out: Callable[[str, str], LeftOut | None] | None = None
    """Asked by grep and glob, with the tool's name and the real path a search starts at: what it must not show."""
    cwd: Path | None = None
    """Where the next command runs; None is the workspace."""
    files: dict[Path, FileState] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)
    """Checkpoints of the call that runs; its result carries them, unless it is interrupted and there is none."""

    def __post_init__(self) -> None:
        self.workspace = Path(os.path.realpath(self.workspace))


Run: TypeAlias = Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolOutput]]


class Tool(msgspec.Struct, frozen=True):
    """A tool: `parameters` is a JSON schema of an object; `aliases` maps other spellings of parameters to theirs.

    `read_only` tools change nothing and may run beside each other. A tool that only calls another one has `forward`: its
    arguments -> the other's name and arguments; that one is then judged and run in its place.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Run
    read_only: bool = False
    aliases: Mapping[str, str] = {}
    forward: Callable[[Mapping[str, Any]], tuple[str, Any]] | None = None
