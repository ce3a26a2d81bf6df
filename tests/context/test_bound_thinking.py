"""A view never breaks thinking that a model bound to its prefix: the upstream that checks it answers every request."""

from __future__ import annotations

import json
from typing import Any

import pytest

import brim
from brim.errors import RequestTooLarge
from brim.testing import BindingUpstream
from shared_bodies import MODES, returned, said, used


@pytest.mark.parametrize("mode", MODES)
def test_bound_thinking_survives_epochs(mode: str) -> None:
    """Forty steps of a model that thinks, in a window that needs several epochs: no request is refused."""
    upstream = BindingUpstream("claude-fable-5-1")
    history: list[dict[str, Any]] = [said("user", "Port the parser.")]
    previous, epochs = None, set()
    for step in range(40):
        body = {"model": upstream.model, "max_tokens": 500, "system": "Be careful.", "messages": history}
        view = brim.prepare(body, "anthropic.messages", mode, 6_000, previous=previous, now=100.0 * step)
        previous = view.plan
        epochs.add(view.plan.get("epoch", 0))
        betas = view.headers["anthropic-beta"].split(",") if view.headers else []
        answer = upstream.answer(view.request, betas=betas)
        assert answer.status == 200, answer.body
        thinking = [block for block in answer.body["content"] if block["type"] == "thinking"]
        history = [
            *history,
            said("assistant", [*thinking, used(f"t{step}", "read", {"path": f"f{step}.py"})]),
            said("user", [returned(f"t{step}", f"def f{step}(): pass\n" * 60)]),
        ]
    assert len(epochs) > 1 or mode == "full"


@pytest.mark.parametrize("mode", MODES)
def test_what_is_asked_for_counts_as_bytes(mode: str) -> None:
    """A body cut to `max_request_bytes` stays under it with the field that asks for blocks to be dropped."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "S" * 40}
    history = [said("user", "Port the parser.")]
    for step in range(6):
        history += [said("assistant", [{**thought, "thinking": f"step {step}"}, used(f"t{step}")])]
        history += [said("user", [returned(f"t{step}", f"def f{step}(): pass\n" * 20)])]
    body = {"model": "claude-fable-5-1", "max_tokens": 500, "messages": history}
    asked = 0
    for limit in range(1_000, 3_400, 40):
        try:
            view = brim.prepare(body, "anthropic.messages", mode, 50_000, settings={"max_request_bytes": limit})
        except RequestTooLarge:
            continue
        assert len(json.dumps(view.request)) <= limit
        asked += view.unbinds_thinking
    assert asked
