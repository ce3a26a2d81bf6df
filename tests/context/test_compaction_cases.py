"""Compaction frees room, once, and loses nothing: what users of other systems reported."""

from __future__ import annotations

from typing import Any

import pytest

import brim
from brim.errors import ContextOverflow
from shared_bodies import MODES, answered, called, prepared, said, text_of

Body = dict[str, Any]
every_mode = pytest.mark.parametrize("mode", MODES)


def turns(number: int, words: int, system: str | None = "sys") -> list[Body]:
    """A chat of plain turns."""
    messages = [said("system", system)] if system else []
    for place in range(number):
        messages += [said("user", f"u{place} " + "word " * words), said("assistant", f"a{place} " + "word " * words)]
    return messages


def test_request_and_outcome_reach_the_summarizer_together() -> None:
    """What was asked and that it was done are both in what the summarizer reads; the next question is untouched."""
    seen: list[str] = []

    def summarizer(messages: Any) -> str:
        seen.append(str(messages))
        return "SUMMARY"

    messages = [
        said("user", "Set the opening hours to 9-17."),
        said("assistant", "Done: hours are 9-17 in shop.json and page.html."),
        *turns(15, 50, None),
        said("user", "Thanks. What is next?"),
    ]
    view = prepared(messages, window=1500, max_output=200, mode="compact", summarizer=summarizer)
    read = " ".join(seen)
    assert "Set the opening hours to 9-17" in read and "Done: hours are 9-17" in read
    assert "not done" in read.lower()
    assert view.request["messages"][-1]["content"] == "Thanks. What is next?"
    assert "not a new request" in text_of(view.request)


def test_summarizer_that_ignores_its_limit_is_bounded() -> None:
    """A summary of 5,000 tokens is cut to its budget after at most three calls; the first task stays."""
    calls: list[Any] = []

    def summarizer(messages: Any) -> str:
        calls.append(messages)
        return "text " * 5000

    messages = [said("system", "sys"), said("user", "Add a licence line to NOTES.md")]
    for place in range(10):
        messages += [
            said("assistant", f"thinking {place} " + "word " * 100),
            said("user", f"note {place} " + "word " * 250),
        ]
    view = prepared(messages, window=3000, max_output=300, mode="compact", summarizer=summarizer)
    assert len(calls) <= 3
    assert "Add a licence line to NOTES.md" in text_of(view.request)


@every_mode
def test_paste_larger_than_the_window_is_refused_with_its_size(mode: str) -> None:
    """What the person typed is never cut silently: the error says how large it is and how much room there is."""
    messages = [said("system", "sys"), said("user", "Summarise this: " + "many different words in a row " * 2000)]
    with pytest.raises(ContextOverflow) as refused:
        prepared(messages, window=2000, max_output=300, mode=mode)
    assert 11_000 < refused.value.irreducible < 13_000
    assert "the last user message" in refused.value.message and refused.value.hint


@every_mode
def test_fetched_original_is_not_shortened_again(mode: str) -> None:
    """The answer to a recall that fits is passed on whole."""
    stored = "\n".join(f"line {place} of stored output" for place in range(1, 101))
    messages = [said("user", "Read the stored output."), called("c1"), answered("c1", stored)]
    assert prepared(messages, window=6000, max_output=500, mode=mode).changed is False


@every_mode
def test_single_result_larger_than_the_window_keeps_both_ends(mode: str) -> None:
    """A giant log keeps its beginning and its end, with the amount left out between."""
    log = "START OF LOG\n" + "2026-01-01 INFO tick\n" * 6000 + "FATAL: disk full\n"
    messages = [said("system", "sys"), said("user", "Why did the job fail?"), called("c1"), answered("c1", log)]
    view = prepared(messages, window=8000, max_output=1000, mode=mode)
    result = view.request["messages"][-1]["content"]
    assert result.startswith("START OF LOG") and result.endswith("FATAL: disk full\n")
    assert "left out" in result


@pytest.mark.parametrize("summarizer_window", [None, 2000])
def test_summary_requests_fit_the_summarizer(summarizer_window: int | None) -> None:
    """A history over the summarizer's window is read in pieces, all of it, each within that window."""
    calls: list[list[Body]] = []

    def summarizer(messages: list[Body]) -> str:
        calls.append(messages)
        return f"SUMMARY {len(calls)}"

    messages = [said("system", "sys")]
    for place in range(60):
        messages += [
            said("user", f"turn {place} KEY{place}=V{place} " + "word " * 150),
            said("assistant", f"ok {place} " + "word " * 150),
        ]
    view = prepared(
        messages,
        window=4000,
        max_output=400,
        mode="compact",
        summarizer=summarizer,
        summarizer_window=summarizer_window,
    )
    most = max(brim.count({"model": "gpt-4o", "messages": each}) for each in calls)
    assert most <= (summarizer_window or 3600)
    read = text_of(calls) + text_of(view.request)
    assert all(f"KEY{place}=V{place}" in read for place in range(60))


def _raises(_: Any) -> str:
    raise TimeoutError("upstream 429")


@pytest.mark.parametrize("summarizer", [_raises, lambda _: "", lambda _: "  \n"], ids=["raises", "empty", "blank"])
def test_failed_summary_never_reaches_the_view(summarizer: Any) -> None:
    """A summarizer that fails leaves no error text behind: a deterministic summary stands in, and the report says why."""
    messages = [*turns(14, 50), said("user", "final")]
    view = prepared(messages, window=1500, max_output=200, mode="compact", summarizer=summarizer)
    assert "upstream 429" not in text_of(view.request)
    assert any("failed" in line for line in view.report)
    assert view.plan["summary"].get("by", "brim") == "brim"


def test_failing_summarizer_is_left_alone_after_three_times() -> None:
    """Three failures in a row, over three epochs: it is not asked again, and one notice says so."""
    calls: list[Any] = []

    def summarizer(messages: Any) -> str:
        calls.append(messages)
        raise ConnectionError("down")

    messages: list[Body] = []
    previous, notices = None, 0
    for place in range(120):
        messages += [said("user", f"u{place} " + "word " * 50), said("assistant", f"a{place} " + "word " * 50)]
        view = prepared(messages, window=1500, max_output=200, mode="compact", summarizer=summarizer, previous=previous)
        previous = view.plan
        notices += sum("notice" in line for line in view.report)
    assert len(calls) == 3
    assert notices == 1


def test_summary_that_would_enlarge_is_refused() -> None:
    """Two tiny turns are not replaced by six hundred words, and the next request does not ask again."""
    calls: list[Any] = []

    def summarizer(messages: Any) -> str:
        calls.append(messages)
        return "word " * 600

    messages = [
        said("user", "hello"),
        said("assistant", "hi"),
        said("user", "big paste " + "line of text " * 1000),
        said("assistant", "ok"),
        said("user", "now?"),
    ]
    view = prepared(messages, window=4000, max_output=400, mode="compact", summarizer=summarizer)
    asked = len(calls)
    assert view.bill.used <= brim.count({"model": "gpt-4o", "messages": messages})
    prepared(messages, window=4000, max_output=400, mode="compact", summarizer=summarizer, previous=view.plan)
    assert len(calls) == asked


def test_summaries_of_a_growing_history_stay_bounded() -> None:
    """A summarizer that echoes all it reads never makes the summary grow, and there is one at most."""
    previous = None
    messages = [said("system", "sys")]
    for place in range(40):
        messages += [
            said("user", f"fact {place}: value {place * place} " + "word " * 40),
            said("assistant", f"noted {place} " + "word " * 40),
        ]
        view = prepared(
            messages,
            window=3000,
            max_output=300,
            mode="compact",
            previous=previous,
            summarizer=lambda text: "SUMMARY: " + str(text),
        )
        previous = view.plan
        summaries = [message for message in view.request["messages"] if "SUMMARY" in message["content"]]
        assert len(summaries) <= 1
        assert all(brim.count({"model": "gpt-4o", "messages": [message]}) < 900 for message in summaries)


def test_tool_run_under_one_user_message_is_summarised() -> None:
    """Where the only user message is the task at the top, the work is folded and the task stays word for word."""
    seen: list[Any] = []

    def summarizer(messages: Any) -> str:
        seen.append(messages)
        return "SUMMARY of tool work"

    messages = [said("user", "Task: port the parser. PIN: python 3.9 only.")]
    for place in range(12):
        messages += [called(f"c{place}"), answered(f"c{place}", f"RESULT{place} " + "word " * 120)]
    view = prepared(messages, window=1500, max_output=200, mode="compact", summarizer=summarizer)
    shown = text_of(view.request)
    assert "RESULT0" in text_of(seen)
    assert shown.count("SUMMARY of tool work") == 1
    assert "PIN: python 3.9 only." in shown


def test_switch_to_a_smaller_window_starts_anew() -> None:
    """A session grown in a large window fits a small one: the plan is built anew from the whole history."""
    messages = [*turns(100, 100), said("user", "current question")]
    calls: list[list[Body]] = []

    def summarizer(asked: list[Body]) -> str:
        calls.append(asked)
        return "SUMMARY"

    large = prepared(messages, window=1_000_000, mode="compact")
    assert large.changed is False
    small = prepared(messages, window=4000, max_output=400, mode="compact", summarizer=summarizer, previous=large.plan)
    out = small.request["messages"]
    assert out[0]["role"] == "system" and out[-1]["content"] == "current question"
    assert max(brim.count({"model": "gpt-4o", "messages": each}) for each in calls) <= 3600


def test_mode_switch_brings_everything_back() -> None:
    """From compact to full with room enough: no summary beside the originals, nothing lost by having been compact."""
    messages = [*turns(20, 60), said("user", "and now?")]
    compact = prepared(messages, window=3000, max_output=300, mode="compact")
    assert compact.plan["summary"]
    full = prepared(messages, window=100_000, max_output=300, mode="full", previous=compact.plan)
    assert full.request["messages"] == messages and full.changed is False
