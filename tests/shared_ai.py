"""Runs `ai` as users do: a process of its own, in a home of its own, against a scripted provider on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec


class Home(msgspec.Struct):
    """Folders and environment of one user. `url` of an OpenAI-compatible server, with /v1; None sets no key."""

    root: Path
    env: dict[str, str]

    @property
    def work(self) -> Path:
        return self.root / "work"

    def run(self, *arguments: str, input: str | None = "", timeout: float = 60, **env: str) -> Ran:
        """`ai ARGUMENTS` to its end; `input` None inherits an idle pipe that nobody writes to."""
        process = self.start(*arguments, **env)
        out, err = process.communicate(input, timeout=timeout)
        return Ran(process.returncode, out, err)

    def manage(self, *arguments: str, timeout: float = 60, **env: str) -> Ran:
        """`brim ARGUMENTS` to its end."""
        ran = subprocess.run(
            [sys.executable, "-m", "brim.cli.manage", *arguments],
            cwd=self.work,
            env={**self.env, **env},
            input="",
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        """The same without waiting."""
        return subprocess.Popen(
            [sys.executable, "-m", "brim.cli.ai", *arguments],
            cwd=self.work,
            env={**self.env, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


class Ran(msgspec.Struct, frozen=True):
    """What a process left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def result(self) -> dict[str, Any]:
        last = self.events[-1]
        assert last["type"] == "result"
        return last


def make_home(root: Path, url: str | None, *, key: str | None = "sk-test-1234567890") -> Home:
    """A user with an empty home in `root` whose default model is gpt-4o behind `url`."""
    (root / "work").mkdir(parents=True)
    keep = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "SYSTEMROOT")
    env = {name: os.environ[name] for name in keep if name in os.environ}
    env |= {
        "HOME": str(root),
        "BRIM_DATA_DIR": str(root / "data"),
        "BRIM_CONFIG": str(root / "config.toml"),
        "BRIM_LOOPBACK": "off",
        "BRIM_ATTEMPTS": "1",
        "PYTHONWARNINGS": "error::ResourceWarning",
    }
    if url is not None:
        env |= {"OPENAI_BASE_URL": url, "BRIM_MODEL": "openai/gpt-4o"}
    if key is not None:
        env["OPENAI_API_KEY"] = key
    return Home(root, env)
