"""The laws of the engine, as properties over honest random traffic: one property for each format and mode."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import brim
from brim.context.plan import RANK
from brim.context.recall import recall_from
from brim.conversation import Message
from brim.errors import ContextOverflow
from brim.formats import parse_request
from brim.formats.dialects import violations
from shared_histories import BODIES, DIALECTS, Conversation, conversations, place_of

EXAMPLES = int(os.environ.get("BRIM_LAW_EXAMPLES", "300"))
MODES = ("full", "compact", "auto")
RESERVED = 200


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("api", list(BODIES))
def test_laws(api: str, mode: str) -> None:
    """Every law holds for every view of a growing conversation, under pressure and without."""

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(conversations(), st.sampled_from([700, 1_500, 4_000, 16_000, 200_000]), st.integers(1, 4))
    def laws(conversation: Conversation, window: int, cuts: int) -> None:
        check_growing(conversation, api, mode, window, cuts)

    laws()


def check_growing(conversation: Conversation, api: str, mode: str, window: int, cuts: int) -> None:
    """The laws of one request, and those that hold from one request to the next (6 to 9)."""
    body = BODIES[api](conversation)
    whole = body[place_of(api)]
    previous = None
    view: list[str] = []
    epoch, ranks = -1, dict[int, int]()
    for part in range(1, cuts + 1):
        history = whole if part == cuts else whole[: _whole_step(whole, len(whole) * part // cuts)]
        if not history:
            continue
        request = {**body, place_of(api): history}
        untouched = copy.deepcopy(request)

        def run(request: dict[str, Any] = request, previous: Any = previous, now: float = 1_000.0 * part) -> Any:
            return brim.prepare(request, api, mode, window, RESERVED, previous=previous, now=now)

        try:
            prepared = run()
        except ContextOverflow as overflow:
            if overflow.irreducible <= overflow.budget:  # law 2
                raise
            return
        finally:
            assert request == untouched  # law 8: the caller's history is never mutated
        check_request(request, prepared, api, mode, window)
        again = run()
        assert again.plan == prepared.plan and again.request == prepared.request  # law 6
        shown = _canonical(prepared.request, api)
        if prepared.plan.get("epoch", 0) == epoch:
            assert shown[: len(view)] == view  # law 9
        lowered = _ranks(prepared.plan)
        assert all(lowered.get(place, 0) >= rank for place, rank in ranks.items())  # law 7
        previous = json.loads(json.dumps(prepared.plan))
        view, epoch, ranks = shown, prepared.plan.get("epoch", 0), lowered


def check_request(request: dict[str, Any], prepared: Any, api: str, mode: str, window: int) -> None:
    """Laws 1 to 5, 8, 10 and 11 for one request."""
    out = prepared.request
    bill = prepared.bill
    assert bill.used + bill.reserved + bill.margin + bill.held_back + bill.free == window  # law 10
    assert bill.used == brim.count(out, api=api)
    assert sum(line["tokens"] for line in bill.lines) == bill.used
    assert bill.used <= window - RESERVED - bill.margin  # law 2
    assert violations(out, api, DIALECTS[api]) == []  # laws 4 and 5
    if not prepared.changed:
        assert out == request  # laws 1 and 11
    else:
        assert {k: v for k, v in out.items() if k not in (place_of(api), "system", "instructions")} == {
            k: v for k, v in request.items() if k not in (place_of(api), "system", "instructions")
        }
    trigger = {"full": 1.0, "compact": 0.6, "auto": 0.75}[mode]
    raw = brim.count(request, api=api)
    budget = window - RESERVED - bill.margin - bill.held_back
    if raw <= trigger * budget - 8 and prepared.plan["requests"] == 1 and not prepared.plan.get("repairs"):
        assert not prepared.changed  # law 1
    history = parse_request(request, api).messages
    view = parse_request(out, api).messages
    texts = [message.text for message in view]
    for message in history:
        if message.role == "system":
            assert any(message.text in text for text in texts)  # law 3
        for paragraph in message.text.split("\n\n") if message.role == "user" else ():
            if paragraph.startswith("[PIN]"):
                assert any(paragraph in text for text in texts)
    users = [message for message in history if message.role == "user"]
    if users and users[-1].text.strip():
        assert any(users[-1].text in text for text in texts)
    _check_thinking(history, view)
    _check_failures(history, view)
    for fate in prepared.plan.get("fates", ()):  # law 8
        original = recall_from(fate["handle"], _repaired(request, api, prepared))
        assert original is not None


def _check_thinking(history: list[Message], view: list[Message]) -> None:
    """Law 4: a message of the view that thinks is one of the history's, thinking and all."""
    originals = [message.parts for message in history if any(type(p).__name__ == "Thinking" for p in message.parts)]
    for message in view:
        if any(type(part).__name__ == "Thinking" for part in message.parts):
            thoughts = [part for part in message.parts if type(part).__name__ == "Thinking"]
            assert any([p for p in parts if type(p).__name__ == "Thinking"] == thoughts for parts in originals)


def _check_failures(history: list[Message], view: list[Message]) -> None:
    """Law 3: a failed result whose step is in the view still says what failed."""
    failed = {m.result.call_id for m in history if m.role == "tool" and "ValueError: bad thing" in m.text[-80:]}
    shown = [m for m in view if m.role == "tool" and m.result.call_id in failed]
    once = [id for id in failed if sum(m.role == "tool" and m.result.call_id == id for m in history) == 1]
    assert all("ValueError: bad thing" in message.text for message in shown if message.result.call_id in once)


def _repaired(request: dict[str, Any], api: str, prepared: Any) -> list[Message]:
    return list(prepared._history.messages)


def _ranks(plan: dict[str, Any]) -> dict[int, int]:
    return {place: RANK[fate["kind"]] for fate in plan.get("fates", ()) for place in range(fate["start"], fate["end"])}


def _canonical(body: dict[str, Any], api: str) -> list[str]:
    """The view, message by message, without cache markers."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: clean(v) for k, v in value.items() if k != "cache_control"}
        return [clean(item) for item in value] if isinstance(value, list) else value

    head = [clean(body.get("system")), clean(body.get("instructions"))]
    units: list[Any] = []
    for message in body[place_of(api)]:
        content = message.get("content") if isinstance(message, dict) else None
        if api == "anthropic.messages" and isinstance(content, list):
            units += [[message["role"], clean(block)] for block in content]
        else:
            units.append(clean(message))
    return [json.dumps(unit, sort_keys=True) for unit in [*head, *units]]


def _whole_step(history: list[Any], at: int) -> int:
    """The nearest place at or after `at` where a client would send a request: not between calls and their results."""
    while at < len(history):
        entry = history[at - 1] if at else {}
        following = history[at]
        open_call = bool(entry.get("tool_calls")) or entry.get("type") in ("function_call", "reasoning")
        content = entry.get("content")
        open_call = open_call or (isinstance(content, list) and any(b.get("type") == "tool_use" for b in content))
        if at and not open_call and following.get("role") != "tool" and following.get("type") != "function_call_output":
            return at
        at += 1
    return len(history)
