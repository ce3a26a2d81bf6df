"""A model's summary loses nothing that the deterministic one found, and never grows."""

from __future__ import annotations

import pytest

from brim.context.summary import SummaryText, deterministic_summary
from brim.context.summary_check import check_summary
from brim.context.wording import MARK
from brim.conversation import Message, assistant, call, result, user
from brim.tokens import counter_for

COUNT = counter_for("gpt-4").count_text
HISTORY: list[Message] = [
    user("[PIN] The codename is heron.\n\nPlease port tools/convert.py to Python 3.9."),
    assistant("", call("edit", {"path": "tools/convert.py"}, id="c1")),
    result("c1", "ok"),
    assistant("Done: ported."),
    user("You must never write to data/raw, it is shared with 14 other groups."),
    assistant("Understood."),
]


def found(budget: int = 600) -> SummaryText:
    return deterministic_summary(HISTORY, budget_tokens=budget, count=COUNT, handle="h1")


def test_what_is_missing_is_put_back() -> None:
    """Pins, constraints, paths and numbers that the model dropped are in the checked text; its own words stay."""
    checked = check_summary("SUMMARY of the work", found(), budget_tokens=600, count=COUNT)
    assert checked is not None and checked.startswith(MARK) and "SUMMARY of the work" in checked
    for fact in ("[PIN] The codename is heron.", "never write to data/raw", "tools/convert.py", "3.9", "14"):
        assert fact in checked
    assert COUNT(checked) <= 600


def test_what_is_there_is_not_repeated() -> None:
    """A summary that holds everything comes back with nothing added but brim's header."""
    full = "\n".join(found().text.splitlines()[1:]).strip()
    checked = check_summary(full, found(), budget_tokens=900, count=COUNT)
    assert checked == f"{found().text.splitlines()[0]}\n\n{full}"


def test_an_endless_answer_is_cut_with_a_mark() -> None:
    """A summarizer that ignores its length is cut to the budget, visibly, and the facts survive the cut."""
    checked = check_summary("SUMMARY " + "many words here " * 3_000, found(), budget_tokens=500, count=COUNT)
    assert checked is not None and COUNT(checked) <= 500
    assert "SUMMARY many words" in checked and "cut to its budget" in checked and "never write to data/raw" in checked


@pytest.mark.parametrize("text", ["", "  \n", "[brim background: copied header]"])
def test_nothing_is_refused(text: str) -> None:
    """An empty answer, or one that only repeats brim's header, is no summary."""
    assert check_summary(text, found(), budget_tokens=500, count=COUNT) is None


def test_a_summary_no_smaller_than_what_it_replaces_is_refused() -> None:
    """Replacing two short messages by a longer text is refused."""
    assert check_summary("SUMMARY " * 50, found(), budget_tokens=600, count=COUNT, replaced_tokens=40) is None
    assert check_summary("SUMMARY", found(), budget_tokens=600, count=COUNT, replaced_tokens=4_000) is not None


def test_checking_again_does_not_grow() -> None:
    """Feeding a checked summary back as the model's answer gives the same size each time."""
    text = "SUMMARY: " + "word " * 400
    sizes = []
    for _ in range(5):
        text = check_summary(text, found(), budget_tokens=400, count=COUNT) or ""
        sizes.append(COUNT(text))
        assert text.count(MARK) == 1
    assert max(sizes) <= 400 and sizes[-1] <= sizes[0] + 10


@pytest.mark.parametrize("budget", [60, 80, 120, 200, 350])
def test_small_budgets_hold(budget: int) -> None:
    """Whatever the budget, the result is within it, or there is none."""
    checked = check_summary("SUMMARY " + "words " * 500, found(budget), budget_tokens=budget, count=COUNT)
    assert checked is None or COUNT(checked) <= budget


def test_the_task_survives_a_model_that_forgets_it() -> None:
    """The first request is put back where the model's text does not have it."""
    checked = check_summary("Some work was done.", found(), budget_tokens=600, count=COUNT)
    assert checked is not None and "Please port tools/convert.py to Python 3.9." in checked
