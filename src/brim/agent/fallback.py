"""Other models to ask where a provider is down: opened when first needed, in the order the user gave, one turn at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from brim.agent.session import Partner
from brim.errors import BrimError
from brim.providers import Provider
from brim.tools import Tool

Pair: TypeAlias = tuple[Partner, Provider]
Open: TypeAlias = Callable[[str, Sequence[Tool]], Awaitable[Pair]]
"""Opens another model by name, offering it the tools given. Raises BrimError."""


class Fallbacks:
    """The models in `names`, opened by `open_pair`. `close` them in the end."""

    def __init__(self, names: Sequence[str], open_pair: Open) -> None:
        self.names = list(names)
        self._open = open_pair
        self._left = list(names)
        self._opened: dict[str, Pair] = {}

    def begin_turn(self) -> None:
        """All of them may be asked again."""
        self._left = list(self.names)

    async def next(self, tools: Sequence[Tool], skipped: Callable[[str, BrimError], object]) -> Pair | None:
        """The next that can be opened, None where there is none; `skipped` is told of each that cannot."""
        while self._left:
            name = self._left.pop(0)
            try:
                if name not in self._opened:
                    self._opened[name] = await self._open(name, tools)
            except BrimError as failure:
                skipped(name, failure)
                continue
            return self._opened[name]
        return None

    async def close(self) -> None:
        """Closes the providers that were asked."""
        while self._opened:
            await self._opened.popitem()[1][1].close()
