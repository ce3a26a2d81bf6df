"""What a user is advised after a refusal is what would help with that refusal, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from brim.agent.advice import advice_for
from brim.errors import BrimError, ContextOverflow, ProviderOverflow, RequestTooLarge


def bill(used: int) -> dict[str, Any]:
    """A bill of a window of 100,000 with so many tokens of the user's messages."""
    line = {"kind": "user", "label": "user messages", "tokens": used, "count": 1}
    return {"window": 100_000, "reserved": 4_096, "margin": 0, "used": used, "free": 95_904 - used, "lines": [line]}


@pytest.mark.parametrize(
    ("error", "used", "helps", "does_not"),
    [
        (ContextOverflow("too long", irreducible=900_000, budget=90_000), 900_000, "largest", "compact"),
        (ContextOverflow("too long", irreducible=900_000, budget=90_000), 900_000, "largest", "--max-tokens"),
        (ContextOverflow("too long", irreducible=92_000, budget=90_000), 92_000, "--max-tokens", "new session"),
        (RequestTooLarge("413"), 1_000, "largest", "compact"),
        (ProviderOverflow("too long"), 99_000, "compact sooner", "--no-ladder"),
    ],
)
def test_advice_fits_the_refusal(error: BrimError, used: int, helps: str, does_not: str) -> None:
    """What is too long by itself is not helped by compacting, a limit of bytes not by a new session; a full window is."""
    lines = "\n".join(advice_for(error, bill(used), [], mode="auto"))
    assert helps in lines and does_not not in lines
