"""The audit as text: amounts that can be read, nothing that makes no sense, on terminals of any width."""

from __future__ import annotations

from typing import Any

import pytest

from brim.replay.audit import Audit, Audited, Saving, audit
from brim.replay.audit_text import render_audit
from brim.replay.spending import Spent
from brim.replay.transcript import Transcript
from shared_replay import small_run


def report(**modes: Saving) -> dict[str, Any]:
    whole = Audit()
    spent = {"claude-sonnet-4-5": Spent(3, 3_000, 1_000, 0, 90, 0.0421), "nobody/knows": Spent(2, 500, 0, 0, 9, 0.0, 2)}
    whole.add(Audited("a" * 60, "codex", "claude-sonnet-4-5", None, spent, {"tool 工具": 10}, {}, [], modes))
    return whole.report()


def test_what_a_mode_saves_is_never_below_nothing() -> None:
    """A mode that would have been dearer is said to be, without a negative saving; money only where prices are known."""
    dearer = Saving(
        cost=1_200.0, everything=1_000.0, usd=0.0036, everything_usd=0.003, requests=3, supported=3, priced=3
    )
    cheaper = Saving(cost=500.0, everything=1_000.0, requests=3, supported=2)
    even = Saving(cost=1_000.0, everything=1_000.0, usd=3.0, everything_usd=3.0, requests=3, supported=3, priced=3)
    lines = render_audit(report(compact=dearer, auto=cheaper, full=even)).splitlines()
    told = {line.split()[0]: line for line in lines if line.startswith("  ")}
    assert told["compact"].endswith("nothing, 200 tokens, $0.0006 dearer")
    assert told["auto"].endswith("500 tokens") and "0.667" in told["auto"]
    assert told["full"].endswith("nothing")
    assert report(auto=cheaper)["modes"]["auto"]["saved_usd"] is None


def test_unknown_prices_are_not_nothing() -> None:
    """Requests to a model whose price is not known have no cost of $0.00, and a sum without them says so."""
    lines = render_audit(report()).splitlines()
    assert any(line.startswith("  nobody/knows") and line.endswith("unknown") for line in lines)
    assert any(line.endswith("$0.0421 and more") for line in lines)
    assert "cost $0.0421 (2 requests to models of unknown price not included)" in lines


def test_what_was_paid_for_is_not_known_without_usage_or_prices() -> None:
    """A log without usage cost neither nothing nor 0 tokens, and one of unknown prices alone has no sum of $0.00."""
    silent = render_audit(audit([Transcript("s", small_run(6), "gpt-4o", "chat", (), {})]).report())
    assert "the logs hold no usage" in silent and "$0.00" not in silent and "input 0" not in silent
    used: dict[int, dict[str, Any]] = {2: {"prompt_tokens": 3_000, "completion_tokens": 5}}
    unpriced = render_audit(audit([Transcript("s", small_run(6), "nobody/knows", "chat", (), used)]).report())
    assert "cost unknown (1 request to models of unknown price not included)" in unpriced


@pytest.mark.parametrize("width", [60, 80])
def test_narrow_terminals(width: int) -> None:
    """Tables go on below with their first column again; a long name is cut, and nothing else is lost."""
    run = Transcript("a" * 60, small_run(10), "claude-sonnet-4-5", "codex", (), {4: {"prompt_tokens": 3_000}})
    figures = audit([run]).report()
    narrow = render_audit(figures, width=width)
    tables = [line for line in narrow.splitlines() if line.startswith("  ")]
    assert max(map(len, tables)) <= width
    assert set(" ".join(tables).split()) == {
        word for line in render_audit(figures).splitlines() if line.startswith("  ") for word in line.split()
    }


def test_no_caches_no_breaks() -> None:
    """A log that says nothing of a cache, as one of a server without any, has no broken cache."""
    used: dict[int, dict[str, Any]] = {n: {"prompt_tokens": 3_000 + n, "completion_tokens": 5} for n in (2, 4, 6)}
    assert audit([Transcript("s", small_run(6), "gpt-4o", "chat", (), used)]).report()["breaks"] == {}
    told = {n: {**row, "cached_tokens": 0} for n, row in used.items()}
    assert audit([Transcript("s", small_run(6), "gpt-4o", "chat", (), told)]).report()["breaks"]


def test_recorded_costs_that_are_none() -> None:
    """A recorded cost of 0, below it, or no number is not believed: the price table decides, where it knows."""
    for cost in (0, 0.0, -3, float("nan"), float("inf"), "1", True):
        used = {2: {"prompt_tokens": 1_000, "completion_tokens": 100, "cached_tokens": 0, "cost_usd": cost}}
        spent = audit([Transcript("s", small_run(3), "gpt-4o", "chat", (), used)]).report()["spent"]
        assert spent["usd"] == pytest.approx((1_000 * 2.5 + 100 * 10) / 1e6), cost
