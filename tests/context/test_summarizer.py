"""A model writes the summary in pieces that fit it; whatever it does wrong stays out of the view."""

from __future__ import annotations

from typing import Any

import pytest

from brim.context.summarizer import Chat, run_summarizer, summary_requests
from brim.conversation import Message, assistant, call, result, system, user
from brim.errors import ProviderOverflow
from brim.tokens import counter_for

COUNT = counter_for("gpt-4").count_text


def long_history(turns: int = 60) -> list[Message]:
    history = [system("sys")]
    for i in range(turns):
        history += [user(f"turn {i} KEY{i}=V{i} " + "word " * 150), assistant(f"ok {i} " + "word " * 150)]
    return history


class Scripted:
    """A summarizer that keeps what it was given and answers by rote."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.seen: list[Chat] = []

    def __call__(self, chat: Chat) -> Any:
        self.seen.append(chat)
        return self.answer(len(self.seen)) if callable(self.answer) else self.answer

    @property
    def text(self) -> str:
        return "\n".join(str(message["content"]) for chat in self.seen for message in chat)


@pytest.mark.parametrize(("window", "max_output"), [(4_000, 400), (2_000, 400), (2_000, 4_096), (1_000, 200)])
def test_every_request_fits_and_all_is_covered(window: int, max_output: int) -> None:
    """No request is larger than the summarizer's window allows, and every message is in one of them."""
    stub = Scripted(lambda n: f"SUMMARY {n}")
    given = run_summarizer(
        stub, long_history(), window=window, max_output=max_output, count=COUNT, budget_tokens=window // 5
    )
    assert given.text == f"SUMMARY {given.calls}" and given.calls == len(stub.seen)
    for chat in stub.seen:
        assert sum(COUNT(message["content"]) + 4 for message in chat) + 3 <= window - min(max_output, window // 2)
    for i in range(60):
        assert f"KEY{i}=V{i} " in stub.text and f"ok {i} " in stub.text


def test_requests_suit_any_template() -> None:
    """Each request is one user message with text alone: no system role, no tools, no roles out of turn."""
    for chat in summary_requests(long_history(4), window=2_000, max_output=400, count=COUNT, budget_tokens=300):
        assert [set(message) for message in chat] == [{"role", "content"}]
        assert [message["role"] for message in chat] == ["user"] and isinstance(chat[0]["content"], str)


def test_the_summary_so_far_is_carried_and_bounded() -> None:
    """Each later request holds the summary so far, cut to a fixed share of the request however long it is."""
    stub = Scripted("SUMMARY " + "many words " * 3_000)
    run_summarizer(stub, long_history(), window=4_000, max_output=400, count=COUNT, budget_tokens=700)
    assert all("SUMMARY many words" in chat[0]["content"] for chat in stub.seen[1:])
    assert all(COUNT(chat[0]["content"]) <= 3_600 for chat in stub.seen)


def test_request_and_outcome_go_together() -> None:
    """A user's message and the reply right after it are in the same request, which asks for done and not done apart."""
    history = [user("Set the opening hours to 9-17."), assistant("Done: hours are 9-17 in shop.json and page.html.")]
    for i in range(15):
        history += [user(f"chat {i} " + "word " * 50), assistant(f"reply {i} " + "word " * 50)]
    stub = Scripted("SUMMARY")
    run_summarizer(stub, history, window=1_500, max_output=200, count=COUNT, budget_tokens=260)
    first = str(stub.seen[0])
    assert "Set the opening hours to 9-17" in first and "Done: hours are 9-17" in first
    assert "Done" in first and "Not done" in first
    for i in range(15):
        assert any(f"chat {i} " in str(chat) and f"reply {i} " in str(chat) for chat in stub.seen)


def test_a_message_larger_than_a_piece_is_cut_into_several() -> None:
    """A paste larger than the summarizer's window is read to its end, in parts."""
    paste = "\n".join(f"line {i} of the paste" for i in range(2_000))
    stub = Scripted("SUMMARY")
    run_summarizer(stub, [user(paste), assistant("read")], window=3_000, max_output=300, count=COUNT, budget_tokens=500)
    assert all(f"line {i} of the paste" in stub.text for i in range(0, 2_000, 97)) and "line 1999 " in stub.text


def test_tool_work_without_a_user_message_is_covered() -> None:
    """A run of one user message and many calls is given to the model with its calls, results and task."""
    history = [user("Task: port the parser. PIN: python 3.9 only.")]
    for i in range(12):
        history += [assistant("", call("read", {"n": i}, id=f"c{i}")), result(f"c{i}", f"RESULT{i} " + "word " * 120)]
    stub = Scripted("SUMMARY of tool work")
    given = run_summarizer(stub, history, window=1_500, max_output=200, count=COUNT, budget_tokens=260)
    assert given.text == "SUMMARY of tool work"
    assert "RESULT0" in stub.text and "RESULT11" in stub.text and "python 3.9 only" in stub.text


def failing(error: Exception) -> Any:
    def raises(chat: Chat) -> str:
        raise error

    return raises


@pytest.mark.parametrize(
    ("summarizer", "why"),
    [
        (failing(TimeoutError("upstream 429")), "TimeoutError: upstream 429"),
        (Scripted(""), "empty"),
        (Scripted(" \n\t"), "empty"),
        (Scripted("<think>what to write"), "empty"),
        (Scripted(None), "NoneType"),
        (Scripted({"text": "x"}), "dict"),
    ],
)
def test_a_failure_is_a_reason_not_a_text(summarizer: Any, why: str) -> None:
    """An exception, an empty answer or something that is no text ends in a reason after one call."""
    given = run_summarizer(summarizer, long_history(30), window=1_500, max_output=200, count=COUNT, budget_tokens=200)
    assert given.text is None and given.calls == 1 and why in given.failure


def test_an_overflow_is_tried_with_half_the_window_and_ends() -> None:
    """A summarizer whose true window is smaller is asked again in smaller pieces, a bounded number of times."""

    def small(chat: Chat) -> str:
        if COUNT(chat[0]["content"]) > 1_900:
            raise ProviderOverflow("too long")
        return "SUMMARY"

    given = run_summarizer(small, long_history(20), window=4_000, max_output=400, count=COUNT, budget_tokens=300)
    assert given.text == "SUMMARY"
    never = run_summarizer(
        failing(ProviderOverflow("too long")),
        long_history(),
        window=9_000,
        max_output=400,
        count=COUNT,
        budget_tokens=300,
    )
    assert never.text is None and never.calls == 3 and "too long" in never.failure


def test_no_room_is_a_failure_without_a_call() -> None:
    """A window that cannot hold even the instructions is reported and the summarizer left alone."""
    stub = Scripted("x")
    given = run_summarizer(stub, long_history(), window=200, max_output=50, count=COUNT, budget_tokens=30)
    assert given.text is None and given.calls == 0 and not stub.seen and "no room" in given.failure


def test_chinese_conversations_are_asked_about_in_chinese() -> None:
    """The instructions are in the conversation's language."""
    history = [user("请把登录页改成两栏。"), assistant("已改好。")] * 4
    stub = Scripted("摘要")
    run_summarizer(stub, history, window=4_000, max_output=400, count=COUNT, budget_tokens=300)
    assert "已完成" in stub.text and "未完成" in stub.text and "Summarise" not in stub.text
