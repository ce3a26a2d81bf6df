"""A growing conversation prepares what a stateless call prepares, at the cost of what is new."""

from __future__ import annotations

from typing import Any

import pytest

import brim
from brim.errors import UsageError
from shared_bodies import MODES, answered, called, said


def work(steps: int) -> list[dict[str, Any]]:
    """One task and its steps, with results of different kinds and sizes, some of which come again."""
    messages = [said("system", "You are careful."), said("user", "Port the parser to the new tokenizer.")]
    for step in range(steps):
        path = f"src/part_{step % 7}.py"
        body = "\n".join(f"def function_{step % 7}_{line}(value): return value + {line}" for line in range(40))
        messages += [
            called(f"c{step}", name="read", arguments=f'{{"path": "{path}", "offset": {step}}}', text=f"Step {step}."),
            answered(f"c{step}", body if step % 5 else f"exit code 1\nValueError: bad value in {path}"),
        ]
    return messages


@pytest.mark.parametrize("mode", MODES)
def test_same_view_as_the_stateless_call(mode: str) -> None:
    """Request by request, `Conversation` gives the body that `brim.prepare` gives with the plan before (auto: where prices
    are not weighed, since its books then follow the path that was taken)."""
    settings = {"max_context_tokens": 8_000, "max_response_tokens": 500, "price_weighing": False}
    conversation = brim.Conversation(model="gpt-4o", settings=settings)
    previous = None
    history: list[dict[str, Any]] = []
    for message in work(40):
        conversation.append(message)
        history.append(message)
        if message["role"] == "assistant":
            continue
        mine = conversation.prepare(mode=mode, now=1_000.0 + len(history))
        body = {"model": "gpt-4o", "messages": history}
        other = brim.prepare(body, mode=mode, previous=previous, now=1_000.0 + len(history), settings=settings)
        previous = other.plan
        assert mine.request["messages"] == other.request["messages"]
        assert mine.plan == other.plan
        assert mine.bill == other.bill


def test_auto_digests_what_was_read_and_keeps_the_prefix() -> None:
    """Under the trigger auto shortens only where that pays; what failed still says so; each fate is named in the plan."""
    conversation = brim.Conversation(model="claude-sonnet-4-5", settings={"max_context_tokens": 1_000_000})
    lowered: list[dict[str, Any]] = []
    for message in work(60):
        conversation.append(message)
        if message["role"] != "assistant":
            prepared = conversation.prepare(mode="auto", now=1_000.0)
            lowered = prepared.plan.get("fates", [])
    assert lowered
    assert {fate["rule"] for fate in lowered} <= {"digest", "repeat"}
    shown = [message["content"] for message in prepared.request["messages"] if message["role"] == "tool"]
    assert sum("ValueError: bad value" in text for text in shown) == 12
    assert all(brim.recall(fate["handle"], {"messages": work(60)}) for fate in lowered)


def test_price_weighing_can_be_switched_off() -> None:
    """`price_weighing = false` restores identity under the trigger."""
    conversation = brim.Conversation(
        model="claude-sonnet-4-5", settings={"max_context_tokens": 1_000_000, "price_weighing": False}
    )
    for message in work(60):
        conversation.append(message)
        if message["role"] != "assistant":
            assert conversation.prepare(mode="auto", now=1_000.0).changed is False


@pytest.mark.parametrize("mode", MODES)
def test_whole_message_can_be_pinned(mode: str) -> None:
    """A pinned message is in every later view, verbatim; an index that does not exist is refused by name."""
    conversation = brim.Conversation(model="gpt-4o", settings={"max_context_tokens": 3_000, "max_response_tokens": 300})
    conversation.append(said("user", "The port is 8443 and nothing else."))
    conversation.pin(0)
    for place in range(30):
        conversation.append(said("assistant", f"noted {place} " + "word " * 60))
        conversation.append(said("user", f"and {place} " + "word " * 60))
        view = conversation.prepare(mode=mode)
        assert any(message["content"] == "The port is 8443 and nothing else." for message in view.request["messages"])
    with pytest.raises(UsageError, match="no message 99"):
        conversation.pin(99)


def test_plan_continues_in_another_process() -> None:
    """A plan that went through JSON continues its epoch: the next view extends the last one."""
    settings = {"max_context_tokens": 8_000, "max_response_tokens": 500}
    messages = work(30)
    first = brim.Conversation(model="gpt-4o", messages=messages[:-2], settings=settings)
    before = first.prepare(mode="compact")
    second = brim.Conversation(model="gpt-4o", messages=messages[:-2], settings=settings, plan=before.plan)
    second.extend(messages[-2:])
    after = second.prepare(mode="compact")
    assert after.plan["epoch"] == before.plan.get("epoch", 0) if "epoch" in after.plan else True
    shown = before.request["messages"]
    assert after.request["messages"][: len(shown)] == shown


def test_relevant_old_message_comes_back_beside_the_question() -> None:
    """What was folded and matters to a later question stands beside it, marked, and stays for the epoch."""
    conversation = brim.Conversation(
        model="gpt-4o", settings={"max_context_tokens": 4_000, "max_response_tokens": 300, "summary_share": 0.05}
    )
    conversation.append(said("user", "look at the billing export"))
    conversation.append(called("c0", name="read"))
    conversation.append(
        answered("c0", "invoice_exporter.py: EXPORT_BATCH = 512  # rows per file\n" + "filler row\n" * 30)
    )
    for place in range(40):
        conversation.append(said("assistant", f"reply {place} " + "some chatter here " * 12))
        conversation.append(said("user", f"other topic {place} " + "more chatter here " * 12))
        conversation.prepare(mode="auto")
    conversation.append(said("assistant", "ok"))
    conversation.append(said("user", "What is EXPORT_BATCH in invoice_exporter.py?"))
    view = conversation.prepare(mode="auto")
    last = view.request["messages"][-1]
    assert view.plan["inserts"] and "512" in str(last["content"])
    assert last["content"].endswith("\n\nWhat is EXPORT_BATCH in invoice_exporter.py?")
    assert "not the user's words" in last["content"]
    conversation.append(said("assistant", "512"))
    conversation.append(said("user", "thanks"))
    assert (
        conversation.prepare(mode="auto").request["messages"][: len(view.request["messages"])]
        == view.request["messages"]
    )


def test_budget_learns_from_real_usage() -> None:
    """Where the counter is not the model's own, a provider that counts a fifth more makes the budget a fifth smaller."""
    manager = brim.ContextManager({"max_context_tokens": 10_000, "max_response_tokens": 1_000})
    body = {"model": "llama-9-instruct", "messages": [said("user", "word " * 2_000)]}
    first = manager.prepare(body)
    for _ in range(4):
        manager.observe(first, int(first.used * 1.2))
    assert manager.prepare(body).bill.margin > 1_500 > first.bill.margin


@pytest.mark.parametrize("dialect", ["openai", "openai-strict", "mistral"])
def test_late_result_begins_an_epoch(dialect: str) -> None:
    """A result that comes after a stand-in was sent for it changes what was sent: an epoch begins, and a conversation gives
    what the stateless call gives. An equal repair, made anew each time, changes nothing."""
    call, late = called("c12345678"), answered("c12345678", "OUT")
    talk = [said("user", "a"), call, said("assistant", "waiting"), said("user", "b")]
    conversation = brim.Conversation(model="gpt-4o", messages=talk, settings={"dialect": dialect})
    previous = None
    for added, epoch in (([], 0), ([said("assistant", "x"), said("user", "c")], 0), ([late, said("user", "d")], 1)):
        talk = [*talk, *added]
        conversation.extend(added)
        prepared = conversation.prepare()
        body = {"model": "gpt-4o", "messages": talk}
        alone = brim.ContextManager().prepare(body, previous=previous, settings={"dialect": dialect})
        assert (prepared.request, prepared.plan) == (alone.request, alone.plan)
        assert prepared.plan.get("epoch", 0) == epoch
        previous = alone.plan
    assert "OUT" in str(prepared.request) and "interrupted" not in str(prepared.request)


def test_a_result_ages_from_when_it_was_first_seen() -> None:
    """Where no times are given, a message is as old as the first request that held it."""
    conversation = brim.Conversation(model="gpt-4o", messages=[said("user", "a")])
    for step, now in enumerate([0, 1_000, 2_000, 2_100, 2_200]):
        conversation.extend([called(f"c{step}"), answered(f"c{step}", f"line {step} of it\n" * 150)])
        prepared = conversation.prepare(mode="compact", window=8_000, max_output=500, now=now, passes=("expire",))
    old = [fate["start"] for fate in prepared.plan["fates"] if fate["rule"] == "expire"]
    assert old == [2, 4]  # 2,200 and 1,200 seconds old; the others 200, 100 and none


@pytest.mark.parametrize("mode", ["compact", "auto"])
def test_what_is_new_is_not_old(mode: str) -> None:
    """What came since the last request, an hour ago, has just been seen: it does not expire at its first appearance."""
    talk = [said("user", "a")]
    previous = brim.prepare({"model": "gpt-4o", "messages": talk}, mode=mode, window=8_000, now=0).plan
    for step in range(8):
        talk += [called(f"c{step}"), answered(f"c{step}", f"line {step} of it\n" * 150)]
    body = {"model": "gpt-4o", "messages": talk}
    view = brim.prepare(body, mode=mode, window=8_000, now=3_600, previous=previous)
    assert view.plan["fates"] and not [fate for fate in view.plan["fates"] if fate["rule"] == "expire"]


def test_cache_marks_begin_no_epoch() -> None:
    """A client that leaves its cache marks standing: the last four are sent, and what they move over stays what it was."""
    mark = {"cache_control": {"type": "ephemeral"}}
    conversation = brim.Conversation("anthropic.messages", model="claude-sonnet-4-5")
    talk: list[dict[str, Any]] = []
    previous = None
    for turn in range(8):
        added = [said("user", [{"type": "text", "text": f"question {turn}", **mark}])]
        talk = [*talk, *added]
        conversation.extend(added)
        mine = conversation.prepare(mode="compact")
        body = {"model": "claude-sonnet-4-5", "messages": talk}
        other = brim.prepare(body, "anthropic.messages", mode="compact", previous=previous)
        previous = other.plan
        assert mine.request["messages"] == other.request["messages"] and mine.plan == other.plan
        assert str(mine.request).count("ephemeral") == min(turn + 1, 4) and not mine.plan.get("epoch")
        conversation.append(said("assistant", f"answer {turn}"))
        talk = [*talk, said("assistant", f"answer {turn}")]
