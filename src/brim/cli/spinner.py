"""A sign that something is going on, with the seconds it has taken; only on a terminal."""

from __future__ import annotations

import asyncio
import time
from typing import IO

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_EVERY_S = 0.1


class Spinner:
    """Turns on the last line of `err` between `start` and `stop`. Does nothing where `on` is False or no loop runs."""

    def __init__(self, err: IO[str], on: bool) -> None:
        self._err = err
        self._on = on
        self._task: asyncio.Task[None] | None = None

    def start(self, label: str) -> None:
        """Begins to turn, with a word beside it."""
        self.stop()
        if self._on:
            try:
                self._task = asyncio.get_running_loop().create_task(self._turn(label))
            except RuntimeError:
                self._task = None

    def stop(self) -> None:
        """Takes the sign away."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self._err.write("\r\x1b[K")
            self._err.flush()

    async def _turn(self, label: str) -> None:
        began = time.monotonic()
        turn = 0
        while True:
            self._err.write(
                f"\r\x1b[2m{_FRAMES[turn % len(_FRAMES)]} {label} {time.monotonic() - began:.0f} s\x1b[0m\x1b[K"
            )
            self._err.flush()
            turn += 1
            await asyncio.sleep(_EVERY_S)
