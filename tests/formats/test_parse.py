"""What brim understands of each format, and what it says of a body it cannot read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from brim.conversation import Media, Opaque, Text, Thinking, ToolCall, ToolResult
from brim.errors import UsageError
from brim.formats import parse_message, parse_request, render_request

DATA = "data:image/png;base64,AAAA"


@pytest.mark.parametrize(
    ("api", "body", "place"),
    [
        ("openai.chat", {}, "messages: missing"),
        ("openai.chat", {"messages": "hi"}, "messages: expected a list, got a string"),
        (
            "openai.chat",
            {"messages": [{"role": "user", "content": "a"}, "b"]},
            "messages[1]: expected a message object",
        ),
        ("openai.chat", {"messages": [{"content": "a"}]}, "messages[0].role: expected a string, got null"),
        ("openai.chat", {"messages": [{"role": "user", "content": 3}]}, "messages[0].content: expected"),
        ("openai.chat", {"messages": [{"role": "user", "content": [7]}]}, "messages[0].content[0]: expected"),
        ("openai.chat", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ("openai.chat", {"messages": [{"role": "assistant", "tool_calls": {}}]}, "messages[0].tool_calls: expected"),
        ("openai.chat", {"messages": [{"role": "assistant", "tool_calls": [1]}]}, "messages[0].tool_calls[0]"),
        ("openai.chat", {"messages": [{"role": "tool", "tool_call_id": 5}]}, "messages[0].tool_call_id"),
        ("openai.chat", {"messages": [], "tools": {}}, "tools: expected a list, got an object"),
        ("openai.chat", {"messages": [], "tools": [1]}, "tools[0]: expected an object"),
        ("anthropic.messages", {"messages": None}, "messages: expected a list, got null"),
        ("anthropic.messages", {"messages": [], "system": 5}, "system: expected"),
        ("anthropic.messages", {"messages": [{"role": "user", "content": {}}]}, "messages[0].content: expected"),
        (
            "anthropic.messages",
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": 1}]}]},
            "messages[0].content[0].tool_use_id",
        ),
        ("openai.responses", {"input": 5}, "input: expected a string or a list of items"),
        ("openai.responses", {"input": ["x"]}, "input[0]: expected an item object, got a string"),
        ("openai.responses", {"input": [{"role": "user", "content": 1}]}, "input[0].content"),
        ("openai.responses", {"input": [{"type": "function_call", "call_id": 1}]}, "input[0].call_id"),
        ("gopher", {}, "unknown api"),
    ],
)
def test_a_body_of_wrong_types_is_refused_with_the_place(api: str, body: dict[str, Any], place: str) -> None:
    """A wrong type raises UsageError that names where it stands, not a traceback from inside."""
    with pytest.raises(UsageError) as caught:
        parse_request(body, api)
    assert caught.value.message.startswith(place)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "image_url", "image_url": {"url": DATA, "detail": "low"}}, ("image", "image/png", "base64", "AAAA")),
        ({"type": "image_url", "image_url": DATA}, ("image", "image/png", "base64", "AAAA")),
        ({"type": "image_url", "image_url": {"url": "https://a.test/x"}}, ("image", "", "url", "https://a.test/x")),
        ({"type": "input_image", "image_url": DATA}, ("image", "image/png", "base64", "AAAA")),
        ({"type": "input_image", "file_id": "file_1"}, ("image", "", "file", "file_1")),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0"}},
            ("image", "image/gif", "base64", "R0"),
        ),
        ({"type": "image", "source": {"type": "url", "url": "https://a.test"}}, ("image", "", "url", "https://a.test")),
        ({"type": "image", "data": "AAAA", "mimeType": "image/webp"}, ("image", "image/webp", "base64", "AAAA")),
        ({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, ("image", "image/png", "base64", "AAAA")),
        ({"inline_data": {"mime_type": "audio/mp3", "data": "SU"}}, ("audio", "audio/mp3", "base64", "SU")),
        (
            {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b"}},
            ("document", "application/pdf", "url", "gs://b"),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
            ("audio", "audio/wav", "base64", "UklG"),
        ),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JV", "filename": "a.pdf"}},
            ("document", "application/pdf", "base64", "JV"),
        ),
        (
            {"type": "input_file", "file_url": "https://a.test/a.pdf"},
            ("document", "application/pdf", "url", "https://a.test/a.pdf"),
        ),
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
            ("document", "text/plain", "text", "words"),
        ),
        (
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "words"}]}},
            ("document", "text/plain", "text", "words"),
        ),
        (
            {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA"}},
            ("document", "video/mp4", "base64", "AA"),
        ),
    ],
)
def test_media_is_recognised_in_every_shape_clients_send(block: dict[str, Any], expected: tuple[str, ...]) -> None:
    """A picture, document or sound is Media in chat content and in tool results, whichever API's shape it has."""
    for wire, api in (
        ({"role": "user", "content": [block]}, "openai.chat"),
        ({"role": "tool", "tool_call_id": "c", "content": [block]}, "openai.chat"),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [block]}]},
            "anthropic.messages",
        ),
        ({"type": "function_call_output", "call_id": "c", "output": [block]}, "openai.responses"),
    ):
        (part,) = parse_message(wire, api)[0].parts
        media = part.content[0] if isinstance(part, ToolResult) else part
        assert isinstance(media, Media)
        assert (media.kind, media.media_type, media.source, media.data) == expected
        assert media.wire is block


def test_chat_roles_and_legacy_functions() -> None:
    """developer and unknown roles are system messages in place; a function call pairs with its function message."""
    body = {
        "messages": [
            {"role": "developer", "content": "d"},
            {"role": "user", "content": "u", "name": "ann"},
            {"role": "latest_reminder", "content": "r"},
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "out"},
        ]
    }
    messages = parse_request(body, "openai.chat").messages
    assert [m.role for m in messages] == ["system", "user", "system", "assistant", "tool"]
    assert messages[1].name == "ann"
    assert messages[3].calls[0].id == messages[4].result.call_id == "function:f"


def test_reasoning_fields_of_compatible_servers_are_thinking() -> None:
    """reasoning_content, reasoning and reasoning_details are one thinking part; edited away, they leave the message."""
    for extra, text, signed in (
        ({"reasoning_content": "why"}, "why", False),
        (
            {"reasoning": "why", "reasoning_details": [{"type": "reasoning.text", "text": "why", "signature": "s"}]},
            "why",
            True,
        ),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}, "", True),
    ):
        wire = {"role": "assistant", "content": "a", **extra}
        request = parse_request({"messages": [wire]}, "openai.chat")
        (message,) = request.messages
        thinking, said = message.parts
        assert isinstance(thinking, Thinking) and (thinking.text, thinking.signed) == (text, signed)
        edited = msgspec.structs.replace(message, parts=(said,), edited=True)
        assert render_request(request, [edited])["messages"] == [{"role": "assistant", "content": "a"}]


def test_anthropic_user_objects_are_split_by_result() -> None:
    """Each tool result is a tool message with its own span; text and pictures are one user message behind them."""
    content = [
        {"type": "tool_result", "tool_use_id": "a", "content": "one", "is_error": True},
        {"type": "tool_result", "tool_use_id": "b"},
        {"type": "text", "text": "IMPORTANT"},
        {"type": "image", "source": {"type": "url", "url": "https://a.test"}},
    ]
    messages = parse_request({"messages": [{"role": "user", "content": content}]}, "anthropic.messages").messages
    assert [(m.role, m.span) for m in messages] == [("tool", (0, 1)), ("tool", (1, 2)), ("user", (2, 4))]
    assert messages[0].result.is_error is True and messages[0].result.text == "one"
    assert messages[1].result == ToolResult("b", (), None, content[1])
    assert [type(part) for part in messages[2].parts] == [Text, Media]


def test_anthropic_assistant_blocks() -> None:
    """Text, calls with their input as JSON text, thinking signed or redacted, and what only the server knows."""
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "S"},
        {"type": "redacted_thinking", "data": "D"},
        {"type": "text", "text": "t", "citations": []},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "x"}},
    ]
    (message,) = parse_message({"role": "assistant", "content": content}, "anthropic.messages")
    assert [type(part) for part in message.parts] == [Thinking, Thinking, Text, Opaque, Opaque, ToolCall]
    assert message.calls[0].arguments == '{"path":"x"}'
    assert all(isinstance(part, Thinking) and part.signed for part in message.parts[:2])


def test_a_whole_anthropic_response_is_a_message_that_can_be_sent_back() -> None:
    """Of a response object only role and content become the message: the API refuses the rest in a request."""
    response = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "a"}],
        "usage": {},
    }
    (message,) = parse_message(response, "anthropic.messages")
    assert message.wire == {"role": "assistant", "content": [{"type": "text", "text": "a"}]}


def test_responses_items_pair_by_call_id_and_the_rest_is_opaque() -> None:
    """Every call with a call_id pairs with its output, functions or not; items of the server's own stay opaque."""
    items: list[dict[str, Any]] = [
        {"role": "developer", "content": "d"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "E"},
        {"type": "local_shell_call", "call_id": "c1", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "local_shell_call_output", "call_id": "c1", "output": "a"},
        {"type": "computer_call", "call_id": "c2", "action": {"type": "click"}},
        {"type": "computer_call_output", "call_id": "c2", "output": {"type": "computer_screenshot", "image_url": DATA}},
        {"type": "custom_tool_call", "call_id": "c3", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c3", "output": "ok"},
        {"type": "web_search_call", "id": "ws_1"},
        {"type": "compaction", "encrypted_content": "E"},
        {"type": "item_reference", "id": "msg_1"},
    ]
    request = parse_request({"input": items, "instructions": "i"}, "openai.responses")
    roles = [m.role for m in request.messages]
    assert roles[:4] == ["system", "system", "user", "assistant"]
    assert [m.role for m in request.messages[4:10]] == ["assistant", "tool"] * 3
    assert [m.calls[0].id for m in request.messages[4:10:2]] == [m.result.call_id for m in request.messages[5:10:2]]
    assert request.messages[4].calls[0].name == "local_shell"
    assert isinstance(request.messages[7].result.content[0], Media)
    assert all(isinstance(m.parts[0], Opaque) and m.role == "assistant" for m in request.messages[10:])


def test_the_request_knows_its_model_its_tools_and_its_output_limit() -> None:
    """Model, tools and the output limit are read under the names each API has for them."""
    chat = parse_request(
        {"model": "m", "messages": [], "max_completion_tokens": 5, "tools": [{"type": "function"}]}, "openai.chat"
    )
    assert (chat.model, chat.max_output, chat.tools) == ("m", 5, [{"type": "function"}])
    assert parse_request({"messages": [], "max_tokens": 6}, "anthropic.messages").max_output == 6
    assert parse_request({"input": "x", "max_output_tokens": 7}, "openai.responses").max_output == 7
    assert parse_request({"messages": [], "functions": [{"name": "f"}]}, "openai.chat").tools == [{"name": "f"}]


def test_tools_can_be_replaced_and_removed() -> None:
    """A new tool list replaces the old one; none takes the fields with it that need tools."""
    body = {"messages": [], "tools": [{"a": 1}], "tool_choice": "auto", "parallel_tool_calls": True, "x": 1}
    request = parse_request(body, "openai.chat")
    assert render_request(request, [], tools=[{"b": 2}])["tools"] == [{"b": 2}]
    assert render_request(request, [], tools=[]) == {"messages": [], "x": 1}
    assert render_request(request, []) == body


def test_lone_surrogates_are_replaced_everywhere_and_counted() -> None:
    """Half an emoji in a message, an argument, an unknown field or a tool description becomes U+FFFD; the rest stays."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "status \ud83d… failed \udc00 and fine 🔥"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": '"\ud83d"'}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "nul \x00 stays", "x_new": ["\udfff"]},
        {"role": "user", "content": "split \ud83d\udd25 pair"},
    ]
    body = {"messages": messages, "tools": [{"description": "\ud800"}]}
    request = parse_request(body, "openai.chat")
    out = render_request(request, request.messages)
    text = json.dumps(out, ensure_ascii=False)
    assert request.cleaned == 5 and text.encode()
    assert out["messages"][0]["content"] == "status \ufffd… failed \ufffd and fine 🔥"
    assert out["messages"][2] == {"role": "tool", "tool_call_id": "c", "content": "nul \x00 stays", "x_new": ["\ufffd"]}
    assert out["messages"][3]["content"] == "split 🔥 pair"
    assert out["tools"] == request.tools == [{"description": "\ufffd"}]
    assert messages[0]["content"].count("\ud83d") == 1, "the caller's body is not altered"


def test_long_histories_are_parsed_and_rendered_without_copies() -> None:
    """Rendering hands back the same objects, 20,000 of them."""
    messages: list[dict[str, Any]] = []
    for i in range(5_000):
        call = {"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        messages += [
            {"role": "user", "content": f"问题 {i}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": "结果 " * 20},
            {"role": "assistant", "content": "ok"},
        ]
    request = parse_request({"messages": messages}, "openai.chat")
    out = render_request(request, request.messages)
    assert all(new is old for new, old in zip(out["messages"], messages, strict=True))
