"""Runs `brim` commands in this process, with a home and a folder of their own."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brim.cli.manage import run


class Told(msgspec.Struct, frozen=True):
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Desk:
    """A user's folder: `desk("sessions", "list")` runs a command there."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.work = root / "work"
        self.work.mkdir(exist_ok=True)
        self._patch = monkeypatch
        self._capfd = capfd
        for name in list(__import__("os").environ):
            if name.startswith(("BRIM_", "TOOL_")) or name.endswith("_API_KEY"):
                monkeypatch.delenv(name)
        self.set(
            HOME=str(root), BRIM_DATA_DIR=str(root / "data"), BRIM_CONFIG=str(root / "config.toml"), BRIM_LOOPBACK="off"
        )
        monkeypatch.chdir(self.work)

    def set(self, **env: str) -> None:
        """Environment variables for the commands to come."""
        for name, value in env.items():
            self._patch.setenv(name, value)

    def __call__(self, *arguments: str, stdin: str | bytes | None = None) -> Told:
        """Runs one command to its end."""
        data = stdin.encode() if isinstance(stdin, str) else stdin or b""
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        self._capfd.readouterr()
        try:
            code = run(list(arguments))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        seen = self._capfd.readouterr()
        return Told(code, seen.out, seen.err)
