"""A project's own servers, from its `.mcp.json`: started only after the user has said so, once for each definition.

The file comes with the project, and a server in it is a command that somebody else wrote. So it is read, told of, and left
alone until `brim mcp trust NAME`. What was trusted is that very definition at that very place: a change of either asks anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from brim.errors import ConfigError
from brim.tools.mcp.settings import ServerSettings, check_server

FILE = ".mcp.json"
_TRANSPORTS = {"stdio": "command", "http": "url", "streamable-http": "url", "streamableHttp": "url"}


class ProjectServer(msgspec.Struct, frozen=True):
    """A server of a `.mcp.json`: `settings`, or what is `wrong` with it; `digest` of its definition."""

    name: str
    path: Path
    settings: ServerSettings | None
    digest: str
    wrong: str = ""

    def told(self) -> str:
        """What would be started, in one line, without any value of a variable."""
        if self.settings is None:
            return self.wrong
        run = self.settings.url or " ".join([self.settings.command or "", *self.settings.args])
        given = sorted({*self.settings.env, *self.settings.headers})
        return run + (f" (given: {', '.join(given)})" if given else "")


def project_servers(workspace: Path) -> list[ProjectServer]:
    """The servers of the nearest `.mcp.json`, in the workspace or above it up to the repository's root. Never raises: what
    cannot be read is one entry without a name that says why."""
    path = _find(workspace)
    if path is None:
        return []
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        table = given.get("mcpServers", {}) if isinstance(given, dict) else None
        if not isinstance(table, dict):
            raise ValueError("mcpServers is no object")
    except (OSError, ValueError, RecursionError) as error:
        return [ProjectServer("", path, None, "", f"{path} cannot be read: {error}")]
    return [_read(str(name), path, entry) for name, entry in table.items()]


def _find(workspace: Path) -> Path | None:
    for folder in (workspace, *workspace.parents):
        if (folder / FILE).is_file():
            return folder / FILE
        if (folder / ".git").exists():
            break
    return None


def _read(name: str, path: Path, entry: Any) -> ProjectServer:
    digest = hashlib.sha256(json.dumps([name, entry], sort_keys=True).encode("utf-8", "replace")).hexdigest()
    try:
        if not isinstance(entry, dict):
            raise ConfigError(f"{name}: it is no object")
        kind = entry.get("type")
        if kind is not None and kind not in _TRANSPORTS:
            raise ConfigError(f"{name}: transport {kind!r} is not supported", hint="stdio or http")
        known = {
            key: value for key, value in entry.items() if key in ("command", "args", "env", "cwd", "url", "headers")
        }
        settings = msgspec.convert(known, ServerSettings)
        check_server(name, settings)
    except (ConfigError, msgspec.ValidationError) as error:
        return ProjectServer(name, path, None, digest, f"{path}: {error}")
    return ProjectServer(name, path, settings, digest)


class Trust:
    """Which definitions the user has trusted, in a file beside the user's config: path -> name -> digest."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def _load(self) -> dict[str, dict[str, str]]:
        try:
            return msgspec.json.decode(self.file.read_bytes(), type=dict[str, dict[str, str]])
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigError(f"cannot read {self.file}: {error}", hint="fix the file, or delete it") from error

    def holds(self, server: ProjectServer) -> bool:
        """Whether this definition at this place was trusted. Raises ConfigError."""
        return self._load().get(os.path.realpath(server.path), {}).get(server.name) == server.digest

    def add(self, server: ProjectServer) -> None:
        """Trusts it from now on. Raises ConfigError."""
        kept = self._load()
        kept.setdefault(os.path.realpath(server.path), {})[server.name] = server.digest
        self._save(kept)

    def drop(self, server: ProjectServer) -> bool:
        """No longer trusts a server of that name there; False where it was not. Raises ConfigError."""
        kept = self._load()
        gone = kept.get(os.path.realpath(server.path), {}).pop(server.name, None)
        self._save(kept)
        return gone is not None

    def _save(self, kept: Mapping[str, Mapping[str, str]]) -> None:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.file.parent, prefix=".mcp")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({path: dict(names) for path, names in kept.items() if names}, file, indent=1)
            os.replace(name, self.file)
        except OSError as error:
            raise ConfigError(f"cannot write {self.file}: {error}", hint="check the folder's permissions") from error
