"""What comes in goes out: bodies, wire objects, unknown fields and blocks."""

from __future__ import annotations

import copy
import importlib.util
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.conversation import Message, Text, ToolResult
from brim.formats import APIS, parse_message, parse_request, render_message, render_request

_spec = importlib.util.spec_from_file_location("formats_wires", Path(__file__).with_name("wires.py"))
assert _spec and _spec.loader
wires: Any = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = wires
_spec.loader.exec_module(wires)


@pytest.mark.parametrize("api", APIS)
def test_an_untouched_view_is_the_body_that_came_in(api: str) -> None:
    """Parsing and rendering any body gives an equal body made of the same wire objects, and never alters the input."""

    @given(wires.BODIES[api])
    def check(body: dict[str, Any]) -> None:
        before = copy.deepcopy(body)
        request = parse_request(body, api)
        out = render_request(request, request.messages)
        assert out == body == before
        assert request.cleaned == 0
        assert list(out) == list(body)
        field = "input" if api == "openai.responses" else "messages"
        if isinstance(body.get(field), list):
            assert all(new is old for new, old in zip(out[field], body[field], strict=True))

    check()


@pytest.mark.parametrize("api", APIS)
def test_a_stored_view_still_renders_to_the_same_body(api: str) -> None:
    """Messages that went through JSON (wire objects equal, no longer identical) render to an equal body."""

    @given(wires.BODIES[api])
    def check(body: dict[str, Any]) -> None:
        request = parse_request(body, api)
        stored = msgspec.json.decode(msgspec.json.encode(request.messages), type=list[Message])
        assert render_request(request, stored) == body

    check()


@pytest.mark.parametrize("api", APIS)
def test_marking_a_message_edited_without_a_change_changes_nothing(api: str) -> None:
    """A message rebuilt from unchanged parts says what its wire object says, unknown fields included."""

    @given(wires.BODIES[api])
    def check(body: dict[str, Any]) -> None:
        request = parse_request(body, api)
        edited = [msgspec.structs.replace(message, edited=bool(message.parts)) for message in request.messages]
        out = render_request(request, edited)
        assert _sorted_results(out) == _sorted_results(body)

    check()


def _sorted_results(body: dict[str, Any]) -> dict[str, Any]:
    """The body with tool results first in each user message, where a rebuilt one has them."""
    out = copy.deepcopy(body)
    for message in out.get("messages", ()):
        if isinstance(message.get("content"), list) and message["role"] == "user":
            message["content"].sort(key=lambda block: block.get("type") != "tool_result")
    return out


@pytest.mark.parametrize("api", APIS)
def test_every_wire_object_alone_renders_to_itself(api: str) -> None:
    """`render_message` of an untouched message is its wire object; `parse_message` finds nothing that it loses."""
    strategy = {"openai.chat": wires.chat_message, "openai.responses": wires.item}.get(api, wires.anthropic_message)

    @given(strategy)
    def check(wire: dict[str, Any]) -> None:
        messages = parse_message(wire, api)
        if len(messages) == 1:
            assert render_message(messages[0], api) is wire
        assert all(message.wire is wire for message in messages)
        assert all(len(m.parts) == 1 and isinstance(m.parts[0], ToolResult) for m in messages if m.role == "tool")

    check()


@given(st.lists(wires.user_block, min_size=1, max_size=5), st.data())
def test_a_split_user_message_loses_only_what_was_removed(blocks: list[dict[str, Any]], data: st.DataObject) -> None:
    """Removing some messages of one Anthropic wire object leaves the blocks of the others, results first, and its fields."""
    wire = {"role": "user", "content": blocks, "x_new": 1}
    request = parse_request({"messages": [wire]}, "anthropic.messages")
    kept = [message for message in request.messages if data.draw(st.booleans())]
    out = render_request(request, kept)["messages"]
    expected = [part.wire for message in kept if message.role == "tool" for part in message.parts]
    expected += [part.wire for message in kept if message.role == "user" for part in message.parts]
    if len(kept) == len(request.messages):
        assert out == [wire] and out[0] is wire
    elif kept:
        assert out == [{"role": "user", "content": expected, "x_new": 1}]
        assert all(new is old for new, old in zip(out[0]["content"], expected, strict=True))
    else:
        assert out == []
    assert wire["content"] is blocks


def test_the_same_object_twice_stays_twice() -> None:
    """A client that puts one wire object into the list twice gets it back twice, not merged."""
    wire = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}, {"type": "text", "text": "x"}]}
    body = {"messages": [wire, wire]}
    request = parse_request(body, "anthropic.messages")
    assert render_request(request, request.messages) == body


@given(wires.chat_body, st.data())
def test_an_edited_text_changes_that_text_only(body: dict[str, Any], data: st.DataObject) -> None:
    """A message whose one Text was replaced differs from its wire object in that text and nowhere else."""
    request = parse_request(body, "openai.chat")
    places = [
        (i, j) for i, m in enumerate(request.messages) for j, part in enumerate(m.parts) if isinstance(part, Text)
    ]
    if not places:
        return
    i, j = data.draw(st.sampled_from(places))
    old = request.messages[i]
    part = old.parts[j]
    assert isinstance(part, Text)
    parts = (*old.parts[:j], msgspec.structs.replace(part, text="NEW"), *old.parts[j + 1 :])
    view = [*request.messages]
    view[i] = msgspec.structs.replace(old, parts=parts, edited=True)
    out = render_request(request, view)["messages"]
    wire = copy.deepcopy(body["messages"][i])
    if isinstance(wire["content"], str):
        wire["content"] = "NEW"
    else:
        at = next(k for k, block in enumerate(body["messages"][i]["content"]) if block is part.wire)
        wire["content"][at]["text"] = "NEW"
    assert out[i] == wire
    assert all(out[k] is body["messages"][k] for k in range(len(out)) if k != i)
