"""A stateless call that recognises its history gives what a call that has never seen it gives."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import brim
from shared_bodies import MODES, answered, called, returned, said, used


def chat(steps: int) -> dict[str, Any]:
    """A chat body of a few steps."""
    messages = [said("system", "sys"), said("user", "go")]
    for step in range(steps):
        messages += [called(f"c{step}", text=f"step {step}"), answered(f"c{step}", f"result {step} " * 40)]
    return {"model": "gpt-4o", "messages": messages}


def anthropic(steps: int) -> dict[str, Any]:
    """An Anthropic body of a few steps, with a system prompt."""
    messages: list[dict[str, Any]] = [said("user", "go")]
    for step in range(steps):
        messages.append(said("assistant", [used(f"t{step}")]))
        messages.append(said("user", [returned(f"t{step}", f"result {step} " * 40), {"type": "text", "text": "on"}]))
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, "system": "sys", "messages": messages}


def responses(steps: int) -> dict[str, Any]:
    """A Responses body of a few steps, with instructions."""
    items: list[dict[str, Any]] = [said("user", "go")]
    for step in range(steps):
        items.append({"type": "function_call", "call_id": f"c{step}", "name": "read", "arguments": "{}"})
        items.append({"type": "function_call_output", "call_id": f"c{step}", "output": f"result {step} " * 40})
    return {"model": "gpt-5", "instructions": "sys", "input": items}


BODIES = {"openai.chat": chat, "anthropic.messages": anthropic, "openai.responses": responses}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("api", list(BODIES))
def test_seen_before_makes_no_difference(api: str, mode: str) -> None:
    """Growing, repeated, shortened and altered in place: the same request and bill as from a manager that saw nothing."""
    settings = {"max_context_tokens": 2_500, "max_response_tokens": 200}
    manager = brim.ContextManager(settings)
    place = "input" if api == "openai.responses" else "messages"
    body = BODIES[api](12)
    whole = body[place]
    steps = [whole[:5], whole[:13], whole[:13], whole[:9], whole, whole[:5]]
    for history in steps:
        request = {**body, place: history}
        mine = manager.prepare(request, api, mode)
        fresh = brim.ContextManager(settings).prepare(copy.deepcopy(request), api, mode)
        assert (mine.request, mine.bill, mine.plan) == (fresh.request, fresh.bill, fresh.plan)
    altered = {**body, place: whole}
    target = whole[2]
    if api == "openai.chat":
        target["tool_calls"][0]["function"]["arguments"] = '{"changed": true}'
    elif api == "openai.responses":
        target["output"] = "changed in place"
    else:
        target["content"][0]["content"] = "changed in place"
    mine = manager.prepare(altered, api, mode, window=100_000)
    assert "changed" in str(mine.request[place][2])
    other = {**body, "system": "another prompt", "instructions": "another prompt", place: whole}
    if api != "openai.chat":
        assert "another prompt" in str(manager.prepare(other, api, mode).request)


def test_error_names_the_right_place_in_a_known_history() -> None:
    """A broken message behind a known history is named by its place in the whole."""
    manager = brim.ContextManager()
    body = chat(3)
    manager.prepare(body)
    broken = {**body, "messages": [*body["messages"], {"role": "user", "content": 7}]}
    with pytest.raises(brim.BrimError, match=r"messages\[8\]"):
        manager.prepare(broken)
