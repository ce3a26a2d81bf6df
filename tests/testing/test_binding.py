"""The upstream that binds thinking: what it accepts, refuses and drops."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from brim.formats import BINDING_BETA, ask_to_drop, parse_request, render_request
from brim.testing import BindingUpstream

Body = dict[str, Any]


def two_steps(upstream: BindingUpstream, **options: Any) -> Body:
    """A conversation with three thinking blocks (two in the first answer), ready for the next request."""
    body: Body = {
        "model": upstream.model,
        "max_tokens": 100,
        "system": "s",
        "tools": [{"name": "ls", "input_schema": {}}],
        "messages": [{"role": "user", "content": "q"}],
    }
    first = upstream.answer(body, thinking=["one", "two"], calls=[{"id": "t1", "name": "ls", "input": {}}], **options)
    assert first.status == 200
    answered = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]}
    body = {**body, "messages": [*body["messages"], {"role": "assistant", "content": first.body["content"]}, answered]}
    second = upstream.answer(body, thinking=["three"], **options)
    assert second.status == 200
    more = {"role": "user", "content": "more"}
    return {**body, "messages": [*body["messages"], {"role": "assistant", "content": second.body["content"]}, more]}


def without(body: Body, *numbers: int) -> Body:
    """The body without the thinking blocks of these numbers, counted from 0."""
    out = copy.deepcopy(body)
    seen = -1
    for message in out["messages"]:
        if message["role"] == "assistant":
            kept = []
            for block in message["content"]:
                seen += block["type"] in ("thinking", "redacted_thinking")
                if block["type"] not in ("thinking", "redacted_thinking") or seen not in numbers:
                    kept.append(block)
            message["content"] = kept
    return out


def changed(body: Body, change: str) -> Body:
    out = copy.deepcopy(body)
    if change == "system":
        out["system"] = "t"
    elif change == "tools":
        out["tools"] = []
    elif change == "first message":
        out["messages"][0]["content"] = "Q"
    elif change == "result":
        out["messages"][2]["content"][0]["content"] = "[stub]"
    elif change == "text beside it":
        next(b for b in out["messages"][1]["content"] if b["type"] == "text")["text"] = "x"
    return out


@pytest.mark.parametrize("redacted", [False, True])
def test_an_append_only_conversation_is_accepted(redacted: bool) -> None:
    """What was sent before comes back unchanged: every block fits, interleaved and redacted ones too."""
    upstream = BindingUpstream()
    body = two_steps(upstream, redacted=redacted)
    assert upstream.answer(body, betas=[BINDING_BETA]).body["input_transformations"] == []


def test_cache_marks_and_the_form_of_text_do_not_count() -> None:
    """Moving cache_control, and a string that becomes one text block, leave the blocks valid."""
    upstream = BindingUpstream()
    body = two_steps(upstream)
    body["system"] = [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]
    body["messages"][0]["content"] = [{"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}]
    assert upstream.answer(body).status == 200


@pytest.mark.parametrize(
    ("change", "spoilt"),
    [("system", 3), ("tools", 3), ("first message", 3), ("result", 1), ("text beside it", 2)],
)
def test_a_change_spoils_the_thinking_after_it(change: str, spoilt: int) -> None:
    """An edit before a block is refused with the API's words, or dropped where the request asks for that."""
    upstream = BindingUpstream()
    body = changed(two_steps(upstream), change)
    refused = upstream.answer(body)
    assert refused.status == 400
    message = refused.body["error"]["message"]
    assert "The block is bound to a different conversation." in message and BINDING_BETA in message
    asked = upstream.answer(ask_to_drop(body), betas=[BINDING_BETA])
    assert asked.status == 200 and len(asked.dropped) == spoilt
    assert {t["reason"] for t in asked.body["input_transformations"]} == {"prefix_binding_mismatch"}


def test_what_is_written_after_a_change_is_valid_again() -> None:
    """The answer to a request with dropped blocks fits later, while the old blocks are dropped each time."""
    upstream = BindingUpstream()
    body = ask_to_drop(changed(two_steps(upstream), "system"))
    answer = upstream.answer(body, betas=[BINDING_BETA])
    later = [
        *body["messages"],
        {"role": "assistant", "content": answer.body["content"]},
        {"role": "user", "content": "x"},
    ]
    again = upstream.answer({**body, "messages": later}, betas=[BINDING_BETA])
    assert again.dropped == answer.dropped and len(again.dropped) == 3
    gone = without({**body, "messages": later}, 0, 1, 2)
    assert upstream.answer(gone, betas=[BINDING_BETA]).dropped == ()


def test_only_a_leading_run_of_thinking_may_go() -> None:
    """Oldest first is fine; a block missing from between others spoils those behind it."""
    upstream = BindingUpstream()
    body = two_steps(upstream)
    for gone in ((0,), (0, 1), (0, 1, 2), (2,)):
        assert upstream.answer(without(body, *gone)).status == 200, gone
    refused = upstream.answer(without(body, 1))
    assert refused.status == 400 and refused.body["error"]["message"].startswith("messages.3.content.0")


def test_altered_thinking_is_refused_whatever_the_switch_says() -> None:
    """A changed word in a thinking block, or a changed signature, is a 400 even with drop_block."""
    upstream = BindingUpstream()
    for key in ("thinking", "signature"):
        body = ask_to_drop(two_steps(upstream))
        body["messages"][1]["content"][0][key] += "x"
        assert upstream.answer(body, betas=[BINDING_BETA]).body["error"]["message"] == (
            "messages.1.content.0: Invalid `signature` in `thinking` block"
        )


def test_another_models_thinking_is_dropped_without_an_error() -> None:
    """Blocks this model cannot read leave the prompt; the reason is named."""
    body = two_steps(BindingUpstream("claude-opus-5-5"))
    answer = BindingUpstream("claude-fable-5-1").answer(body, betas=[BINDING_BETA])
    assert {t["reason"] for t in answer.body["input_transformations"]} == {"model_binding_mismatch"}


def test_the_switch_needs_its_header_and_old_accounts_are_not_refused() -> None:
    """Without the beta value the field is an extra input; where the check is not enforced the request passes."""
    upstream = BindingUpstream()
    body = two_steps(upstream)
    assert "Extra inputs" in upstream.answer(ask_to_drop(body)).body["error"]["message"]
    lenient = BindingUpstream(enforced=False)
    body = changed(two_steps(lenient), "system")
    answer = lenient.answer(body, betas=[BINDING_BETA])
    assert answer.status == 200 and answer.dropped == ()
    assert {t["type"] for t in answer.body["input_transformations"]} == {"thinking_mismatch_allowed"}


def test_a_body_the_api_would_refuse_is_refused() -> None:
    """Structure is checked before signatures: an orphan result is an error here as there."""
    orphan = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}
    assert BindingUpstream().answer({"messages": [{"role": "user", "content": "q"}, orphan]}).status == 400


def test_a_rendered_view_passes_the_check() -> None:
    """Parsing and rendering leave every signed block valid."""
    upstream = BindingUpstream()
    body = two_steps(upstream)
    request = parse_request(body, "anthropic.messages")
    assert upstream.answer(render_request(request, request.messages)).status == 200
