"""The promises of the price of an edit: it is weighed by arithmetic alone, and only made where it pays."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.context import economics as eco
from brim.context.economics import (
    CAUTION,
    Candidate,
    Held,
    Kind,
    Ledger,
    choose,
    expected_requests,
    hazard,
    miss_prices,
    weigh,
)

CACHED = (1.25, 0.10)
PLAIN = (1.0, 1.0)


def cut(index: int, saved: int, suffix: int, *, loss: float = 0.0) -> Candidate:
    return Candidate(index, "trim", saved, suffix, 0.0, loss)


def brute(
    candidates: list[Candidate], write: float, read: float, requests: float, cold: bool
) -> tuple[float, int | None]:
    """The best start by trying each: future savings, minus losses, minus the rewrite less what it would have cost."""
    best: tuple[float, int | None] = (0.0, None)
    for at, first in enumerate(candidates):
        saved = sum(each.saved for each in candidates[at:])
        loss = sum(each.loss for each in candidates[at:])
        edit = -write * saved if cold else write * max(0, first.suffix - saved) - read * first.suffix
        gain = read * requests * saved - loss - edit
        if gain > eco.MARGIN * max(0.0, edit) and gain > best[0]:
            best = (gain, first.index)
    return best


@given(
    st.lists(
        st.tuples(st.integers(10, 3_000), st.integers(0, 4_000), st.floats(0, 4_000)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([CACHED, (1.0, 0.25), (1.0, 0.5), PLAIN]),
    st.integers(10, 200),
    st.booleans(),
)
def test_the_best_start_is_the_one_found_by_trying_all(
    rows: list[tuple[int, int, float]], prices: tuple[float, float], requests: int, cold: bool
) -> None:
    """`choose` finds the start with the greatest gain, or none where no edit pays."""
    write, read = prices
    suffix, candidates = 0, []
    for place, (saved, between, loss) in enumerate(reversed(rows)):
        suffix += saved + 10 + between
        candidates.append(cut(100 - place, saved, suffix, loss=loss))
    candidates.reverse()
    gain, start = brute(candidates, write, read, requests, cold)
    chosen = choose(candidates, write=write, read=read, requests=requests, cold=cold)
    assert (chosen.start if chosen else None) == start
    if chosen is not None:
        assert chosen.gain == pytest.approx(gain)


def test_a_short_end_is_rewritten_where_a_long_one_is_not() -> None:
    """The same saving pays near the end of a cached view and does not pay far from it."""
    write, read = CACHED
    near = choose([cut(5, 300, 500)], write=write, read=read, requests=20)
    far = choose([cut(5, 300, 40_000)], write=write, read=read, requests=20)
    assert near is not None and near.start == 5
    assert far is None


def test_a_cold_cache_makes_a_far_edit_pay() -> None:
    """When the cache has expired everything is written anyway, so an edit only saves."""
    write, read = CACHED
    chosen = choose([cut(5, 300, 40_000)], write=write, read=read, requests=12, cold=True)
    assert chosen is not None and chosen.rewritten == 0


def test_an_old_candidate_is_left_when_only_the_new_one_pays() -> None:
    """The start is chosen: a small saving far back does not drag the whole view into a rewrite."""
    write, read = CACHED
    chosen = choose([cut(2, 40, 60_000), cut(900, 800, 900)], write=write, read=read, requests=20)
    assert chosen is not None and chosen.start == 900 and chosen.saved == 800


def test_the_reason_holds_the_measured_values() -> None:
    """A choice explains itself: gain, saving, rewrite, misses, horizon and prices, as values and as a sentence."""
    chosen = choose([cut(5, 300, 500)], write=1.25, read=0.1, requests=20)
    assert chosen is not None
    assert chosen.why(1.25, 0.1) == {
        "gain": round(20 * 30 - (1.25 * 200 - 0.1 * 500)),
        "saved": 300,
        "rewritten": 200,
        "misses": 0.0,
        "requests": 20,
        "write": 1.25,
        "read": 0.1,
    }
    assert chosen.sentence(1.25, 0.1).startswith("gain 400 tokens at 1.25/0.1 over 20 requests: saves 300 each")


def test_hazards_fall_with_size_and_rise_with_use() -> None:
    """Per token a big result is needed less than a small one, and one that was used is needed more."""
    small, big = hazard("code", 100, 0), hazard("code", 2_000, 0)
    assert small[0] > big[0] and small[1] > big[1]
    assert hazard("code", 400, 0) == (210e-6, 560e-6)
    assert hazard("code", 400, 2)[1] > hazard("code", 400, 1)[1] > hazard("code", 400, 0)[1]


def test_more_careful_without_recall_and_after_misses() -> None:
    """A miss is dearer where nothing can fetch an original, and where this conversation has missed more than expected."""
    plain = miss_prices(20_000, write=1.0, read=0.5)
    assert all(a > b for a, b in zip(miss_prices(20_000, write=1.0, read=0.5, can_recall=False), plain, strict=True))
    assert Ledger().scale(0) == 1.0
    assert Ledger().scale(4) == pytest.approx((CAUTION + 4) / CAUTION)


def test_a_result_grows_old_before_it_is_taken_whole() -> None:
    """Young source code stays; unused for long it is digested, and when its turn is over it goes to its barest form."""
    read = 1.0
    prices = miss_prices(20_000, write=1.0, read=read)

    def at(age: int, over: float = 1.0) -> Candidate | None:
        return weigh(
            7,
            now=600,
            digest=500,
            barest=20,
            suffix=5_000,
            age=age,
            rates=(hazard("code", 600, 0)[0] * over, hazard("code", 600, 0)[1] * over),
            requests=expected_requests(40),
            read=read,
            prices=prices,
        )

    assert at(1) is None
    old, older = at(60), at(60, eco.TURN_OVER)
    assert old is not None and old.to == "trim" and old.saved == 100
    assert older is not None and older.to == "stub" and older.saved == 580


@pytest.mark.parametrize(("kind", "goes"), [("code", True), ("run", True), ("data", False)])
def test_a_turn_that_is_over_lets_its_results_go(kind: Kind, goes: bool) -> None:
    """A user's new message makes the results before it less needed, unless they are rows of data or are used again."""

    def saved(turn: int, *, used: bool = False) -> list[int]:
        """What would be saved at ages from 1 to 64 requests, the user's newest message being number `turn`."""
        totals = []
        for age in (1, 2, 4, 8, 16, 32, 64):
            ledger = Ledger()
            ledger.add(Held(4, kind, 1_200, 1_200, shown=10, touched=10, turn=1))
            if used:
                ledger.touch(4, 10, use=False, turn=turn)
            found = ledger.candidates(
                10 + age,
                view=20_000, missed=0, suffixes={4: 5_000}, sizes=lambda _: (900, 60), write=1.0, read=1.0, turn=turn,
            )  # fmt: skip
            totals.append(sum(each.saved for each in found))
        return totals

    running, over = saved(1), saved(9)
    assert (over != running) is goes
    assert all(late >= early for late, early in zip(over, running, strict=True))
    assert saved(9, used=True) == running


def test_run_output_is_digested_before_source_code() -> None:
    """What a command printed is needed less than the code it printed: it is let go at an age at which code stays."""
    prices = miss_prices(20_000, write=1.0, read=1.0)
    shape = {"now": 800, "digest": 300, "barest": 20, "suffix": 2_000, "age": 2, "requests": 30.0, "read": 1.0}
    run = weigh(1, rates=hazard("run", 800, 0), prices=prices, **shape)  # type: ignore[arg-type]
    code = weigh(1, rates=hazard("code", 800, 0), prices=prices, **shape)  # type: ignore[arg-type]
    assert run is not None and run.to == "trim"
    assert code is None or code.saved < run.saved


def test_small_savings_are_left_alone() -> None:
    """A digest that saves under ten tokens is no candidate."""
    found = weigh(
        1,
        now=100,
        digest=95,
        barest=92,
        suffix=100,
        age=50,
        rates=(0.0, 0.0),
        requests=50.0,
        read=1.0,
        prices=(1.0, 1.0),
    )
    assert found is None


def test_what_a_new_result_refers_to_is_shown_with_it() -> None:
    """A result that a repeat refers to is not lowered in the request that brings the repeat."""
    ledger = Ledger()
    ledger.add(Held(3, "run", 900, 900, shown=1, touched=1))

    def found(request: int) -> list[Candidate]:
        return ledger.candidates(
            request,
            view=5_000,
            missed=0,
            suffixes={3: 1_000},
            sizes=lambda index: (100, 20),
            write=1.0,
            read=1.0,
        )

    ledger.touch(3, 40, use=False)
    assert found(40) == []
    assert [each.index for each in found(80)] == [3]


def test_a_lowered_result_leaves_the_ledger_and_is_expected_to_be_missed() -> None:
    """After a stub nothing more can be taken; what it may cost is counted as expected misses from then on."""
    ledger = Ledger()
    ledger.add(Held(3, "code", 900, 900, shown=1, touched=1))
    ledger.lower(Candidate(3, "stub", 880, 1_000, 0.1, 10.0, 0.3), 20)
    assert not ledger.held
    ledger.candidates(11, view=100, missed=0, suffixes={}, sizes=lambda index: (0, 0), write=1.0, read=1.0)
    assert ledger.expected == pytest.approx(0.03)


def test_a_decision_over_a_long_session_is_bounded() -> None:
    """However long the history, only the newest results are weighed, so one decision does not grow with it."""
    ledger = Ledger()
    rng = random.Random(1)
    for index in range(20_000):
        ledger.add(Held(index, "code", 400, 400, shown=index, touched=index))
    assert len(ledger.held) == eco.MOST_HELD
    suffixes = {index: (20_000 - index) * 400 for index in ledger.held}

    def sizes(index: int) -> tuple[int, int]:
        return (rng.randrange(100, 400), 20)

    found = ledger.candidates(20_001, view=8_000_000, missed=0, suffixes=suffixes, sizes=sizes, write=1.0, read=0.1)
    choose(found, write=1.0, read=0.1, requests=100)
    assert len(found) <= eco.MOST_HELD
