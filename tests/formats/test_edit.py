"""Edited and brim-made messages on the wire of each API."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from brim.conversation import Message, Part, Text, ToolCall, ToolResult, assistant, call, result, system, user
from brim.formats import Request, parse_message, parse_request, render_message, render_request


def edit(message: Message, *parts: Part) -> Message:
    return msgspec.structs.replace(message, parts=parts, edited=True)


def with_text(message: Message, text: str) -> Message:
    """The tool message with its result's content replaced by one text."""
    return edit(message, msgspec.structs.replace(message.result, content=(Text(text),)))


def steps(*blocks: Any, calls: int = 2) -> dict[str, Any]:
    uses = [{"type": "tool_use", "id": f"t{i}", "name": "ls", "input": {}} for i in range(calls)]
    return {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": uses},
            {"role": "user", "content": list(blocks), "x_new": 1},
        ],
    }


def test_a_trimmed_result_keeps_the_rest_of_its_block() -> None:
    """Only the content of the one result changes: its flags, its neighbours and unknown fields stay the same objects."""
    first = {
        "type": "tool_result",
        "tool_use_id": "t0",
        "content": "long",
        "is_error": True,
        "cache_control": {"type": "ephemeral"},
    }
    second = {"type": "tool_result", "tool_use_id": "t1", "content": "b"}
    text = {"type": "text", "text": "IMPORTANT"}
    body = steps(first, second, text)
    request = parse_request(body, "anthropic.messages")
    view = [with_text(m, "short") if m.role == "tool" and m.result.call_id == "t0" else m for m in request.messages]
    out = render_request(request, view)["messages"]
    assert out[:2] == body["messages"][:2] and out[1] is body["messages"][1]
    assert out[2] == {"role": "user", "content": [{**first, "content": "short"}, second, text], "x_new": 1}
    assert out[2]["content"][1] is second and out[2]["content"][2] is text
    assert first["content"] == "long"


def test_a_list_content_stays_a_list_and_keeps_its_pictures() -> None:
    """Of a result with text and a picture, trimming the text keeps the picture and the text's own block fields."""
    image = {"type": "image", "source": {"type": "url", "url": "https://a.test"}}
    block = {"type": "tool_result", "tool_use_id": "t0", "content": [{"type": "text", "text": "long", "x": 1}, image]}
    request = parse_request(steps(block, calls=1), "anthropic.messages")
    message = request.messages[-1]
    text, picture = message.result.content
    assert isinstance(text, Text)
    new = edit(
        message, msgspec.structs.replace(message.result, content=(msgspec.structs.replace(text, text="s"), picture))
    )
    out = render_request(request, [*request.messages[:-1], new])["messages"][-1]
    assert out["content"][0]["content"] == [{"type": "text", "text": "s", "x": 1}, image]
    stub = with_text(message, "[stub]")
    out = render_request(request, [*request.messages[:-1], stub])["messages"][-1]
    assert out["content"][0]["content"] == [{"type": "text", "text": "[stub]"}]


def test_an_added_result_joins_the_others_in_one_user_message() -> None:
    """The result brim adds for an interrupted call stands in the message that holds the other results, before the text."""
    body = steps({"type": "tool_result", "tool_use_id": "t1", "content": "b"}, {"type": "text", "text": "go on"})
    request = parse_request(body, "anthropic.messages")
    go, uses, second, rest = request.messages
    added = result("t0", "interrupted", is_error=True)
    made = {"type": "tool_result", "tool_use_id": "t0", "content": "interrupted", "is_error": True}
    for view in ([go, uses, added, second, rest], [go, uses, second, added, rest]):
        out = render_request(request, view)["messages"]
        assert len(out) == 3 and out[2]["x_new"] == 1
        assert [b["type"] for b in out[2]["content"]] == ["tool_result", "tool_result", "text"]
        assert made in out[2]["content"]
    out = render_request(request, [go, uses, added, result("t1", "x")])["messages"]
    assert [b["tool_use_id"] for b in out[2]["content"]] == ["t0", "t1"]


def test_two_user_objects_that_each_hold_a_result_stay_two() -> None:
    """A client that answers parallel calls in separate messages gets them back as they were."""
    body = steps({"type": "tool_result", "tool_use_id": "t0", "content": "a"})
    body["messages"].append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "b"}]})
    request = parse_request(body, "anthropic.messages")
    assert render_request(request, request.messages) == body
    view = [*request.messages[:-1], with_text(request.messages[-1], "s")]
    out = render_request(request, view)["messages"]
    assert out[2] is body["messages"][2] and out[3]["content"][0]["content"] == "s"


def test_text_that_follows_does_not_change_the_message_before_it() -> None:
    """A user message after results is a message of its own, so what was sent before stays the same bytes."""
    request = Request("anthropic.messages", {}, [])
    view = [user("go"), assistant("", call("ls", id="a")), result("a", "x")]
    before = render_request(request, view)["messages"]
    after = render_request(request, [*view, user("and now?")])["messages"]
    assert after[: len(before)] == before and after[-1] == {"role": "user", "content": "and now?"}


def test_system_text_of_brims_own_is_appended_to_the_system_field() -> None:
    """A string stays a string untouched; added text makes it blocks, and marked blocks keep their marks."""
    marked = {"type": "text", "text": "sys", "cache_control": {"type": "ephemeral"}}
    for field, blocks in (("sys", [{"type": "text", "text": "sys"}]), ([marked], [marked])):
        request = parse_request({"system": field, "messages": []}, "anthropic.messages")
        assert render_request(request, request.messages)["system"] is field
        out = render_request(request, [*request.messages, system("summary")])
        assert out["system"] == [*blocks, {"type": "text", "text": "summary"}]
        assert "system" not in render_request(request, [])
    request = parse_request({"system": "long", "messages": []}, "anthropic.messages")
    assert render_request(request, [edit(request.messages[0], Text("short"))])["system"] == "short"
    more = edit(request.messages[0], *request.messages[0].parts, Text("summary"))
    assert [block["text"] for block in render_request(request, [more])["system"]] == ["long", "summary"]
    bare = parse_request({"messages": []}, "anthropic.messages")
    assert render_request(bare, [system("new")])["system"] == [{"type": "text", "text": "new"}]


def test_a_system_message_in_mid_conversation_stays_where_the_client_put_it() -> None:
    """Entries with the role system inside `messages` keep place and form."""
    body = {
        "system": "s",
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "system", "content": [{"type": "tool_addition", "tool": {}}]},
            {"role": "user", "content": "b"},
        ],
    }
    request = parse_request(body, "anthropic.messages")
    assert [m.role for m in request.messages] == ["system", "user", "system", "user"]
    assert render_request(request, request.messages) == body


@pytest.mark.parametrize("old", ["x", [{"type": "text", "text": "x", "k": 1}]])
def test_chat_content_keeps_its_form(old: Any) -> None:
    """A string stays a string with all text in it, a list stays a list; nothing else of the message changes."""
    wire = {"role": "user", "content": old, "name": "ann", "k": 2}
    (message,) = parse_message(wire, "openai.chat")
    more = edit(message, *message.parts, Text("recalled"))
    out = render_message(more, "openai.chat")
    expected = "x\n\nrecalled" if isinstance(old, str) else [*old, {"type": "text", "text": "recalled"}]
    assert out == {**wire, "content": expected} and wire["content"] is old


def test_chat_calls_change_only_where_they_were_changed() -> None:
    """A renamed id or new arguments replace that field in a copy of the call; arguments become a JSON object."""
    one: dict[str, Any] = {
        "id": "a",
        "type": "function",
        "function": {"name": "f", "arguments": "", "x": 1},
        "extra_content": {"g": 1},
    }
    two = {"id": "b", "type": "custom", "custom": {"name": "g", "input": "free"}}
    wire = {"role": "assistant", "content": None, "tool_calls": [one, two], "x": 2}
    (message,) = parse_message(wire, "openai.chat")
    first, second = message.calls
    new = edit(message, msgspec.structs.replace(first, arguments="null"), second)
    out = render_message(new, "openai.chat")
    assert out == {**wire, "tool_calls": [{**one, "function": {**one["function"], "arguments": "{}"}}, two]}
    assert out["tool_calls"][1] is two
    new = edit(
        message, msgspec.structs.replace(first, id="a2"), msgspec.structs.replace(second, arguments='{"input":"new"}')
    )
    out = render_message(new, "openai.chat")
    assert out["tool_calls"] == [{**one, "id": "a2"}, {**two, "custom": {"name": "g", "input": "new"}}]
    assert "tool_calls" not in render_message(edit(message, Text("only text")), "openai.chat")


def test_anthropic_call_arguments_go_back_as_an_object() -> None:
    """Changed arguments replace `input` in a copy of the block; the text beside it is the same object."""
    text = {"type": "text", "text": "t"}
    use = {"type": "tool_use", "id": "a", "name": "write", "input": {"path": "p", "text": "long"}, "caller": {}}
    wire = {"role": "assistant", "content": [text, use]}
    (message,) = parse_message(wire, "anthropic.messages")
    said, made = message.parts
    assert isinstance(made, ToolCall)
    new = edit(message, said, msgspec.structs.replace(made, arguments='{"path":"p"}'))
    out = render_message(new, "anthropic.messages")
    assert out["content"] == [text, {**use, "input": {"path": "p"}}]
    assert out["content"][0] is text


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "function_call_output", "call_id": "c", "output": "long", "id": "fco_1"}, "s"),
        ({"type": "custom_tool_call_output", "call_id": "c", "output": "long"}, "s"),
        (
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "long"}]},
            [{"type": "input_text", "text": "s"}],
        ),
        (
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{"stdout": "long", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}],
            },
            [{"stdout": "s", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}],
        ),
    ],
)
def test_responses_outputs_keep_the_form_their_type_has(item: dict[str, Any], expected: Any) -> None:
    """A cut output is what its item type takes, under the same ids."""
    (message,) = parse_message(item, "openai.responses")
    assert render_message(with_text(message, "s"), "openai.responses") == {**item, "output": expected}


def test_a_cleared_screenshot_is_still_a_screenshot() -> None:
    """The API takes only a picture as the answer to a computer call, so a stub there is an empty picture."""
    item = {
        "type": "computer_call_output",
        "call_id": "c",
        "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"},
        "acknowledged_safety_checks": [],
    }
    (message,) = parse_message(item, "openai.responses")
    out = render_message(with_text(message, "[screenshot removed]"), "openai.responses")
    assert out["output"]["type"] == "computer_screenshot" and out["output"]["image_url"].startswith(
        "data:image/png;base64,iVBOR"
    )
    assert out["acknowledged_safety_checks"] == []
    assert render_message(msgspec.structs.replace(message, edited=True), "openai.responses") == item


def test_responses_input_stays_a_string_until_more_is_said() -> None:
    """`input` as a string goes out as one; with brim's messages beside it, it becomes a list of items."""
    request = parse_request({"input": "hi", "instructions": "i"}, "openai.responses")
    assert render_request(request, request.messages) == {"input": "hi", "instructions": "i"}
    out = render_request(request, [*request.messages, system("note")])
    assert out["input"] == [
        {"role": "user", "content": "hi"},
        {"type": "message", "role": "developer", "content": "note"},
    ]
    assert out["instructions"] == "i"


def test_brims_own_messages_in_each_api() -> None:
    """One line builders become the plain wire objects of each API."""
    view = [system("s"), user("u"), assistant("a", call("f", {"x": 1}, id="c")), result("c", "r", is_error=True)]
    function = {"name": "f", "arguments": '{"x":1}'}
    chat = render_request(Request("openai.chat", {}, []), view)["messages"]
    assert chat == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "a", "tool_calls": [{"id": "c", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    claude = render_request(Request("anthropic.messages", {}, []), view)
    assert claude["system"] == [{"type": "text", "text": "s"}]
    assert claude["messages"][1:] == [
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "c", "name": "f", "input": {"x": 1}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r", "is_error": True}]},
    ]
    items = render_request(Request("openai.responses", {}, []), view)["input"]
    assert [item["type"] for item in items] == [
        "message",
        "message",
        "message",
        "function_call",
        "function_call_output",
    ]


def test_an_edited_result_of_an_unknown_kind_of_message_is_a_tool_result() -> None:
    """`ToolResult` parts made anew, without a wire block, replace the block as a whole."""
    request = parse_request(
        steps({"type": "tool_result", "tool_use_id": "t0", "content": "a"}, calls=1), "anthropic.messages"
    )
    new = edit(request.messages[-1], ToolResult("t0", (Text("stub"),)))
    out = render_request(request, [*request.messages[:-1], new])["messages"][-1]
    assert out == {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t0", "content": "stub"}],
        "x_new": 1,
    }


@pytest.mark.parametrize(
    "item",
    [
        {"type": "web_search_call", "id": "ws_1"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "reasoning", "summary": [], "content": []},
    ],
)
def test_text_in_place_of_an_item_is_a_message(item: dict[str, Any]) -> None:
    """A stub for a search, a call or reasoning is an item of its own kind, not a search with text in it."""
    (message,) = parse_message(item, "openai.responses")
    out = render_message(edit(message, Text("[stub]")), "openai.responses")
    assert out == {"type": "message", "role": "assistant", "content": "[stub]"}


@pytest.mark.parametrize(
    ("api", "wire"),
    [
        ("openai.chat", {"role": "user", "content": "x"}),
        ("anthropic.messages", {"role": "user", "content": [{"type": "text", "text": "x"}]}),
        ("openai.responses", {"role": "user", "content": "x"}),
    ],
)
def test_a_message_edited_down_to_nothing_is_left_out(api: str, wire: dict[str, Any]) -> None:
    """No API takes an empty message, so none is sent."""
    field = "input" if api == "openai.responses" else "messages"
    request = parse_request({field: [wire, wire]}, api)
    assert render_request(request, [edit(request.messages[0]), request.messages[1]])[field] == [wire]


def test_pictures_and_unknown_blocks_replaced_by_text_become_text_blocks() -> None:
    """A stub for a picture is a text block of the API, beside the untouched blocks."""
    text = {"type": "text", "text": "t"}
    image = {"type": "image", "source": {"type": "url", "url": "https://a.test"}}
    (message,) = parse_message({"role": "user", "content": [text, image, {"type": "hologram"}]}, "anthropic.messages")
    out = render_message(edit(message, message.parts[0], Text("[image]"), Text("[hologram]")), "anthropic.messages")
    assert out["content"] == [text, {"type": "text", "text": "[image]"}, {"type": "text", "text": "[hologram]"}]
    item = {"role": "user", "content": [{"type": "input_image", "image_url": "https://a.test"}]}
    (message,) = parse_message(item, "openai.responses")
    out = render_message(edit(message, Text("[image]")), "openai.responses")
    assert out["content"] == [{"type": "input_text", "text": "[image]"}]
