"""Learns from real usage how far a model's own count lies from ours, and how far it may.

A tokenizer that stands in for another is off by a factor that is much the same from request to request: Gemini sees
1.07 to 1.2 times what cl100k_base counts in coding sessions. The median of the last ratios is robust against the odd
one (a server that cut the prompt, a picture); the largest of them with some slack is what a budget should reckon with.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import median
from typing import Any

KEPT = 32
"""Ratios remembered for a model."""
_LEAST = 64
"""Tokens below which a request says nothing: fixed overheads weigh too much."""
_LOWEST, _HIGHEST = 0.25, 4.0
_CUT = 0.7
"""A server that reports less than this share of the expected prompt has cut it."""


class Calibration:
    """Ratios of real usage to our count, by model. Plain data; `as_dict` and `from_dict` carry it through JSON."""

    def __init__(self) -> None:
        self._ratios: dict[str, deque[float]] = {}

    def add(self, model: str | None, counted: int, actual: int) -> bool:
        """Takes in one request: what we counted for all of it, and the prompt tokens the provider reported, cached ones
        included. Requests too small to tell, and ratios that no tokenizer has, are left out; returns whether it was taken.
        """
        if not model or counted < _LEAST or actual < _LEAST:
            return False
        ratio = actual / counted
        if not _LOWEST <= ratio <= _HIGHEST or self.looks_cut(model, counted, actual):
            return False
        self._ratios.setdefault(model, deque(maxlen=KEPT)).append(ratio)
        return True

    def samples(self, model: str | None) -> int:
        """How many requests the factor of a model rests on."""
        return len(self._ratios.get(model or "", ()))

    def factor(self, model: str | None) -> float:
        """What to multiply our count with for the most likely figure; 1.0 without experience."""
        ratios = self._ratios.get(model or "")
        return median(ratios) if ratios else 1.0

    def upper(self, model: str | None) -> float:
        """What to multiply our count with for a figure that the real one will hardly exceed; 1.0 without experience.

        The largest ratio seen and 2%, or 8% while there are fewer than five. Never below 1: a budget is not stretched.
        """
        ratios = self._ratios.get(model or "")
        if not ratios:
            return 1.0
        return max(1.0, max(ratios) * (1.02 if len(ratios) >= 5 else 1.08))

    def looks_cut(self, model: str | None, counted: int, actual: int) -> bool:
        """Whether the server saw over 30% less than was sent: a server that cuts silently shows it only here."""
        return counted >= 1_024 and 0 < actual < counted * self.factor(model) * _CUT

    def as_dict(self) -> dict[str, list[float]]:
        """Ratios by model, JSON-serialisable."""
        return {model: [round(ratio, 6) for ratio in ratios] for model, ratios in self._ratios.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> Calibration:
        """The reverse of `as_dict`; whatever is not a ratio is left out."""
        made = cls()
        for model, ratios in (data or {}).items():
            good = [
                float(ratio)
                for ratio in (ratios if isinstance(ratios, (list, tuple)) else ())
                if isinstance(ratio, (int, float)) and not isinstance(ratio, bool) and _LOWEST <= ratio <= _HIGHEST
            ]
            if good:
                made._ratios[str(model)] = deque(good, maxlen=KEPT)
        return made
