"""The report of a replay as text, on terminals of any width."""

from __future__ import annotations

from typing import Any

import pytest

from brim.replay.table import render_table

PRICE = {
    "cost": 0.5, "worst": {"cost": 0.9, "id": "a:1"}, "supported": 1.0, "tokens": 0.4, "peak": 12_345, "cached": 0.9,
    "refetches": 1, "overflows": 0, "invalid": 0,
}  # fmt: skip
REPORT: dict[str, Any] = {
    "regimes": [{"name": "1.25/0.1"}, {"name": "1/1"}],
    "pause_every": 0,
    "files": [
        {
            "file": "x.jsonl", "conversations": 1, "requests": 1,
            "policies": [{"policy": name, "prices": [PRICE, PRICE]} for name in ("everything", "auto")],
        }
    ],
}  # fmt: skip


@pytest.mark.parametrize("width", [40, 60, 100])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """What does not fit continues below, with the policies again; nothing is left out."""
    whole, narrow = render_table(REPORT), render_table(REPORT, width)
    assert max(map(len, narrow.splitlines())) <= width
    assert set(whole.split()) == set(narrow.split())
    assert narrow.count("everything") > 1 and whole.count("everything") == 1
    assert render_table(REPORT, 500) == whole
