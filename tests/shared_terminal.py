"""A real terminal for tests: `ai` in a tmux of its own, keys sent, the screen read."""

from __future__ import annotations

import os
import re
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

SCREENS = Path(__file__).parent / "cli" / "screens"
"""Screens as somebody looked at them; BRIM_SCREENS=write writes them anew, to be looked at again."""


_STATUS = re.compile(r" \w+/\S+ · (auto|full|compact) · ")


def assert_screen(
    name: str, screen: str, *, since: str = "", exact: bool = False, hide: Mapping[str, str] | None = None
) -> None:
    """The screen, from where `since` last stands on it, is the one that was looked at. Ids, and unless `exact` all figures
    and bars, may be others; `hide`: patterns and what stands for them (a model's own words). The line to write on and the
    status below it come a moment later, and are left out."""
    text = plain_screen(screen[screen.rindex(since) :], exact=exact, hide=hide or {})
    path = SCREENS / f"{name}.txt"
    if os.environ.get("BRIM_SCREENS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"no screen {path}: BRIM_SCREENS=write writes it, then look at it"
    assert text == path.read_text(encoding="utf-8")


def plain_screen(screen: str, *, exact: bool, hide: Mapping[str, str]) -> str:
    """A screen without what differs from run to run."""
    for pattern, words in hide.items():
        screen = re.sub(pattern, words, screen, flags=re.S)
    screen = re.sub(
        r"(?<![0-9a-z])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f]|[0-9]{7})[0-9a-f]{7,20}(?![0-9a-z])", "<id>", screen
    )
    screen = re.sub(r"\d+\.\d s\b", "# s", screen)
    if not exact:
        screen = re.sub(r"\[[a-z+.\-]{10,}\]", "[bar]", screen)
        screen = re.sub(r"\d[\d,]*(?:\.\d+)?(?=\W|$)", "#", screen, flags=re.M)
    lines = [re.sub(r"(?<=\S) {2,}", "  ", line.rstrip()) for line in screen.splitlines()]
    while lines and (lines[-1] in ("", ">") or _STATUS.match(lines[-1])):
        lines.pop()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


class Terminal:
    """`ai ARGUMENTS` in a tmux server of its own. `wait` looks at the screen until a text stands there. `in_shell`: it was
    typed at a shell with job control, whose prompt is `$`."""

    def __init__(
        self,
        home: Home,
        *arguments: str,
        width: int = 100,
        height: int = 40,
        env: Mapping[str, str] | None = None,
        in_shell: bool = False,
    ) -> None:
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed")
        self._socket = home.root / "tmux"
        variables = [f"{name}={value}" for name, value in {**home.env, **(env or {})}.items()]
        program = shlex.join([sys.executable, "-m", "brim.cli.ai", *arguments])
        shell = shlex.join(["env", *variables, "PS1=$ ", "bash", "--norc", "--noprofile", "-i"])
        command = shell if in_shell else shlex.join(["env", *variables]) + f" {program}"
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", str(width), "-y", str(height), "-c", str(home.work),
            f"{command}; echo left with $?; exec cat",
        )  # fmt: skip
        if in_shell:
            self.wait("$")
            self.enter(program)

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

    @property
    def shown(self) -> str:
        """What stands on the screen now."""
        return self._tmux("capture-pane", "-p", "-J", "-t", "t")

    def clear(self) -> None:
        """An empty screen, its history too, so that what comes next stands alone."""
        end = time.monotonic() + 20
        while len([line for line in self.screen.splitlines() if line.strip()]) > 2 and time.monotonic() < end:
            self.key("C-l")
            time.sleep(0.3)
            self._tmux("clear-history", "-t", "t")

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-t", "t", "-x", str(width), "-y", str(height))

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

    def send(self, text: str) -> None:
        """Types a text."""
        self._tmux("send-keys", "-t", "t", "-l", text)

    def enter(self, text: str) -> None:
        """Types a line and sends it."""
        self.send(text)
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
