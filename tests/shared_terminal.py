"""A real terminal for tests: `ai` in a tmux of its own, keys sent, the screen read."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import pytest

from shared_ai import Home


class Terminal:
    """`ai ARGUMENTS` in a tmux server of its own. `wait` looks at the screen until a text stands there."""

    def __init__(
        self, home: Home, *arguments: str, width: int = 100, height: int = 40, env: Mapping[str, str] | None = None
    ) -> None:
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed")
        self._socket = home.root / "tmux"
        variables = [f"{name}={value}" for name, value in {**home.env, **(env or {})}.items()]
        command = shlex.join(["env", *variables, sys.executable, "-m", "brim.cli.ai", *arguments])
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", str(width), "-y", str(height), "-c", str(home.work),
            f"{command}; echo left with $?; exec cat",
        )  # fmt: skip

    def _tmux(self, *arguments: str) -> str:
        ran = subprocess.run(
            ["tmux", "-S", str(self._socket), *arguments], capture_output=True, text=True, check=True, timeout=20
        )
        return ran.stdout

    @property
    def screen(self) -> str:
        """What stands on the screen and what has scrolled off it."""
        return "\n".join(
            line.rstrip() for line in self._tmux("capture-pane", "-p", "-J", "-S", "-", "-t", "t").splitlines()
        )

    def wait(self, *texts: str, seconds: float = 40) -> str:
        """The screen once all texts stand on it. Fails with the screen."""
        end = time.monotonic() + seconds
        while True:
            screen = self.screen
            if all(text in screen for text in texts):
                return screen
            if time.monotonic() > end:
                pytest.fail(f"not on the screen: {texts}\n{screen}")
            time.sleep(0.05)

    def enter(self, text: str) -> None:
        """Types a line and sends it."""
        self._tmux("send-keys", "-t", "t", "-l", text)
        self.key("Enter")

    def key(self, *names: str) -> None:
        self._tmux("send-keys", "-t", "t", *names)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], capture_output=True, check=False)
        Path(self._socket).unlink(missing_ok=True)
