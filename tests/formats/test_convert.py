"""Conversations recorded over one API, continued on another."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brim.conversation import (
    Media,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    result,
    system,
    user,
)
from brim.formats import (
    APIS,
    Request,
    dialect_of,
    parse_message,
    parse_request,
    portable_id,
    render_message,
    render_messages,
    render_request,
    violations,
)

PICTURE = Media("image", "image/png", "base64", "AAAA")
words = st.text(alphabet="ab 搜é\n", min_size=1, max_size=8).filter(str.strip)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """A valid conversation of brim's own messages: turns with steps, parallel calls, odd ids, pictures."""
    ids = count()
    messages = [system(draw(words))] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 3))):
        messages.append(user(draw(words), *([PICTURE] if draw(st.booleans()) else [])))
        for _ in range(draw(st.integers(0, 2))):
            form = draw(st.sampled_from(["call_{}", "functions.bash:{}", "x" * 60 + "{}"]))
            arguments = st.sampled_from(['{"a":1}', "", "null", '["a"]', "{broken"])
            calls = [ToolCall(form.format(next(ids)), "bash", draw(arguments)) for _ in range(draw(st.integers(1, 3)))]
            messages.append(assistant(draw(words | st.just("")), *calls))
            for call in calls:
                content: tuple[Text | Media | Opaque, ...] = (Text(draw(words)),)
                content += (PICTURE,) if draw(st.booleans()) else ()
                messages.append(Message("tool", (ToolResult(call.id, content),)))
        messages.append(assistant(draw(words)))
    messages.append(user("last"))
    return messages


def body_of(messages: list[Message], api: str) -> dict[str, Any]:
    return render_request(Request(api, {"model": "m", "max_tokens": 9}, []), messages)


@pytest.mark.parametrize("first", APIS)
@pytest.mark.parametrize("second", APIS)
def test_a_valid_conversation_is_valid_on_every_api(first: str, second: str) -> None:
    """A valid history made by brim, sent over one API, parsed and continued on another, breaks no rule of either."""

    @settings(max_examples=50)
    @given(conversations())
    def check(messages: list[Message]) -> None:
        body = body_of(messages, first)
        assert violations(body, first, dialect_of("m", first)) == []
        parsed = parse_request(body, first).messages
        again = body_of(parsed, second)
        assert violations(again, second, dialect_of("m", second)) == []
        wire = json.dumps(again, ensure_ascii=False)
        for message in messages:
            for part in message.parts:
                if type(part) is Text:
                    assert json.dumps(part.text, ensure_ascii=False)[1:-1] in wire
        assert wire.count("AAAA") == sum(
            part == PICTURE or (type(part) is ToolResult and PICTURE in part.content)
            for message in messages
            for part in message.parts
        )

    check()


@given(conversations())
def test_the_native_part_of_a_mixed_history_keeps_its_wire(messages: list[Message]) -> None:
    """In a history of two APIs, the messages of the target's own go out as the objects they came as."""
    body = body_of(messages, "anthropic.messages")
    native = parse_request(body, "anthropic.messages").messages
    out = body_of([*native, assistant("more"), user("and")], "anthropic.messages")
    assert out["messages"][:-2] == body["messages"]
    assert all(new is old for new, old in zip(out["messages"], body["messages"], strict=False))


def test_thinking_of_another_api_is_dropped_and_a_message_of_nothing_else_vanishes() -> None:
    """No API sees another's thinking; a message that held only that leaves no empty shell."""
    thinking = parse_message(
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "S"}]},
        "anthropic.messages",
    )
    assert isinstance(thinking[0].parts[0], Thinking)
    for api in ("openai.chat", "openai.responses"):
        assert render_messages(thinking, api) == []
    reasoned = parse_message({"role": "assistant", "content": "a", "reasoning_content": "r"}, "openai.chat")
    assert render_messages(reasoned, "anthropic.messages") == [{"role": "assistant", "content": "a"}]


def test_one_responses_output_becomes_one_assistant_message() -> None:
    """Reasoning, text and parallel calls of one answer are one message where calls must stand together."""
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
        {"type": "function_call", "call_id": "c2", "name": "ls", "arguments": '{"p":1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "a"},
        {"type": "function_call_output", "call_id": "c2", "output": "b"},
    ]
    messages = parse_request({"input": items}, "openai.responses").messages
    chat = render_messages(messages, "openai.chat")
    assert [m["role"] for m in chat] == ["assistant", "tool", "tool"]
    assert chat[0]["content"] == "Looking." and [c["id"] for c in chat[0]["tool_calls"]] == ["c1", "c2"]
    claude = render_messages(messages, "anthropic.messages")
    assert [block["type"] for block in claude[0]["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["tool_use_id"] for block in claude[1]["content"]] == ["c1", "c2"]


def test_pictures_of_parallel_results_follow_the_last_result_in_chat() -> None:
    """Chat takes no picture in a result: a note stands there, the pictures come in one user message after the step."""
    calls = [ToolCall("a", "shot", "{}"), ToolCall("b", "shot", "{}")]
    results = [Message("tool", (ToolResult(call.id, (Text("done"), PICTURE)),)) for call in calls]
    out = render_messages([user("q"), assistant("", *calls), *results, assistant("seen")], "openai.chat")
    assert [m["role"] for m in out] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert out[2]["content"] == "done\n[image: shown in the next user message]"
    assert [part["type"] for part in out[4]["content"]] == ["text", "image_url", "image_url"]
    assert out[4]["content"][1]["image_url"]["url"] == "data:image/png;base64,AAAA"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {}),
        ("  ", {}),
        ("null", {}),
        ("{}", {}),
        ('{"a": [1]}', {"a": [1]}),
        ('["a"]', {"arguments": ["a"]}),
        ('{"a": "half', {"arguments": '{"a": "half'}),
    ],
)
def test_arguments_are_an_object_wherever_brim_writes_them(arguments: str, expected: dict[str, Any]) -> None:
    """A call with empty, null, odd or broken arguments is replayed with an object, in text or as such."""
    wire = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    (message,) = parse_message({"role": "assistant", "content": None, "tool_calls": [wire]}, "openai.chat")
    assert message.calls[0].arguments == arguments
    claude = render_message(message, "anthropic.messages")
    assert claude["content"][0]["input"] == expected
    assert json.loads(render_message(message, "openai.responses")["arguments"]) == expected
    assert (
        json.loads(
            render_message(assistant("", message.calls[0]), "openai.chat")["tool_calls"][0]["function"]["arguments"]
        )
        == expected
    )


def test_missing_and_object_arguments_are_read() -> None:
    """Servers that leave `arguments` out or send an object are understood."""
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f"}},
        {"id": "b", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
        {"id": "c", "type": "custom", "custom": {"name": "g", "input": "free text"}},
    ]
    (message,) = parse_message({"role": "assistant", "content": None, "tool_calls": calls}, "openai.chat")
    assert [call.arguments for call in message.calls] == ["", '{"x":1}', '{"input":"free text"}']


def test_a_system_message_in_mid_conversation_reaches_anthropic_verbatim() -> None:
    """Leading system text goes to the system field; later system text stays in place, as a marked user message."""
    body = body_of(
        [system("one"), system("two"), user("q"), assistant("a"), system("NEW RULE"), user("r")], "anthropic.messages"
    )
    assert [block["text"] for block in body["system"]] == ["one", "two"]
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user", "user"]
    assert body["messages"][2]["content"] == "<system>\nNEW RULE\n</system>"


def test_a_refusal_stays_as_text_and_opaque_results_as_json() -> None:
    """What a model refused with is text elsewhere; an unknown block inside a result is not lost."""
    refused = parse_message({"role": "assistant", "content": None, "refusal": "I can't."}, "openai.chat")
    assert render_messages(refused, "anthropic.messages") == [{"role": "assistant", "content": "I can't."}]
    odd = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "search_result", "title": "T"}]}
    (message,) = parse_message({"role": "user", "content": [odd]}, "anthropic.messages")
    assert json.loads(render_message(message, "openai.chat")["content"]) == {"type": "search_result", "title": "T"}


def test_ids_are_kept_where_they_may_be_and_renamed_the_same_way_where_not() -> None:
    """A call and its result get the same new id; a good id, and one of the target's own, is not touched."""
    assert portable_id("call_1", "anthropic.messages") == "call_1"
    odd = portable_id("functions.bash:0", "anthropic.messages")
    assert (
        odd
        == portable_id("functions.bash:0", "anthropic.messages")
        != portable_id("functions.bash.0", "anthropic.messages")
    )
    assert len(portable_id("x" * 60, "openai.chat")) <= 40
    assert portable_id("abc123XYZ", "openai.chat", "mistral") == "abc123XYZ"
    assert len(portable_id("call_1", "openai.chat", "mistral")) == 9
    long = "call_" + "y" * 60
    own = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": long, "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    native = parse_message(own, "openai.chat")
    out = render_messages([*native, result(long, "interrupted")], "openai.chat")
    assert out[0] is own and out[1]["tool_call_id"] == long


@pytest.mark.parametrize("api", APIS)
def test_documents_audio_and_foreign_files_become_what_the_api_takes(api: str) -> None:
    """Media an API has no shape for becomes a line of text that names it; text documents become their text."""
    media = [
        Media("document", "application/pdf", "base64", "JVBE"),
        Media("document", "application/pdf", "url", "https://example.test/a.pdf"),
        Media("document", "text/plain", "text", "plain words"),
        Media("audio", "audio/mp3", "base64", "SUQz"),
        Media("image", "image/png", "file", "file_123"),
        PICTURE,
    ]
    body = body_of([user("look", *media)], api)
    assert violations(body, api, dialect_of("m", api)) == []
    text = json.dumps(body)
    for piece in ("JVBE", "example.test/a.pdf", "plain words", "file_123", "AAAA"):
        assert piece in text
    assert ("SUQz" in text) == (api == "openai.chat")


@pytest.mark.parametrize("content", [(), (Text(""),), (Text(" \n"),)])
def test_an_empty_result_says_so_elsewhere(content: tuple[Text, ...]) -> None:
    """A tool that said nothing has an answer with words in it on every other API."""
    view = [user("q"), assistant("", ToolCall("a", "mkdir", "{}")), Message("tool", (ToolResult("a", content),))]
    for api in APIS:
        body = body_of(view, api)
        assert violations(body, api, dialect_of("m", api)) == []
        assert "(no output)" in json.dumps(body)
