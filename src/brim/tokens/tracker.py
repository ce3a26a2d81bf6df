"""The size of a growing conversation: the provider's exact count of the last request, and an estimate of the rest.

What the provider counted need not be estimated again. Only what was added (or taken away) since is counted by us, and
scaled by how the two counts compared for the request before. On recorded sessions this is within 0.2% at the median,
where a calibrated count of the whole is within 3%.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Anchor(msgspec.Struct, frozen=True):
    """One request as we counted it and as the provider did, in tokens; `exact` covers cached tokens, too."""

    counted: int
    exact: int


class Tracker:
    """Tracks one conversation with one model. Give it each request's two counts, ask it about the next."""

    def __init__(self, anchor: Anchor | None = None, factor: float = 1.0) -> None:
        self.anchor = anchor
        self._factor = factor

    def record(self, counted: int, exact: int) -> None:
        """The provider answered a request that we counted as `counted` with a usage of `exact` prompt tokens.

        A usage of 0 (not reported) keeps the anchor there is.
        """
        if counted > 0 and exact > 0:
            self.anchor = Anchor(counted, exact)

    @property
    def factor(self) -> float:
        """Tokens of the provider for one of ours, by the last request; before any, what the tracker was made with."""
        if self.anchor is None:
            return self._factor
        return min(4.0, max(0.25, self.anchor.exact / self.anchor.counted))

    def estimate(self, counted: int) -> int:
        """Tokens the provider will count for a request that we count as `counted`.

        Holds for a request that was shortened, too; the further it is from the last one, the more it is an estimate.
        """
        if self.anchor is None:
            return round(counted * self._factor)
        estimate = self.anchor.exact + (counted - self.anchor.counted) * self.factor
        return max(0, round(estimate))

    def reset(self) -> None:
        """Forgets the anchor, as another model or another view of the history begins; the factor stays as a guess."""
        self._factor, self.anchor = self.factor, None

    def as_dict(self) -> dict[str, Any]:
        """JSON-serialisable state."""
        anchor = None if self.anchor is None else [self.anchor.counted, self.anchor.exact]
        return {"anchor": anchor, "factor": round(self._factor, 6)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Tracker:
        """The reverse of `as_dict`."""
        anchor = data.get("anchor")
        return cls(Anchor(*anchor) if anchor else None, data.get("factor", 1.0))
