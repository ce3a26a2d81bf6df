"""A streamed answer is put together whole, whatever each server makes of the API it says it speaks."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.budget.usage import Usage
from brim.formats import parse_message
from brim.providers import Done, TextDelta, ThinkingDelta, ToolCallDelta
from brim.providers.assemble import Incomplete, Unreadable, UpstreamError, assembler_for
from brim.providers.events import Event, ended_of
from brim.providers.sse import ServerEvent


def assemble(api: str, *values: Any) -> tuple[list[Event], Done]:
    """The events and the end of a stream of JSON values (a str is sent as it stands)."""
    assembler = assembler_for(api)
    events: list[Event] = []
    for value in values:
        data = value if isinstance(value, str) else json.dumps(value)
        events += assembler.read(ServerEvent("", data))
    return events, assembler.end()


def chat(*deltas: dict[str, Any], finish: str | None = "stop") -> tuple[list[Event], Done]:
    """A chat stream of deltas."""
    chunks = [
        {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    last: list[Any] = [{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}] if finish else []
    return assemble("openai.chat", *chunks, *last, "[DONE]")


def calls_of(done: Done) -> list[tuple[str, str, str]]:
    """(id, name, arguments) of the calls of a chat answer."""
    assert isinstance(done.message, dict)
    return [
        (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in done.message["tool_calls"]
    ]


def piece(
    arguments: str | None = None, *, index: int | None = None, id: str | None = None, name: str | None = None
) -> dict[str, Any]:
    """One streamed piece of a tool call, fields that are None left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {key: value for key, value in (("index", index), ("id", id), ("function", function)) if value is not None}


@pytest.mark.parametrize(
    "pieces",
    [
        # as OpenAI sends them: the id and name once, the arguments in pieces
        [
            piece("", index=0, id="a", name="grep"),
            piece('{"p": ', index=0),
            piece("1}", index=0),
            piece("", index=1, id="b", name="read"),
            piece('{"q": 2}', index=1),
        ],
        # interleaved
        [
            piece("", index=0, id="a", name="grep"),
            piece("", index=1, id="b", name="read"),
            piece('{"p": ', index=0),
            piece('{"q": ', index=1),
            piece("1}", index=0),
            piece("2}", index=1),
        ],
        # whole calls, no index
        [piece('{"p": 1}', id="a", name="grep"), piece('{"q": 2}', id="b", name="read")],
        # no index, the id only at first
        [
            piece("", id="a", name="grep"),
            piece('{"p": '),
            piece("1}"),
            piece("", id="b", name="read"),
            piece('{"q": 2}'),
        ],
        # every piece repeats id and name
        [
            piece('{"p": ', index=0, id="a", name="grep"),
            piece("1}", index=0, id="a", name="grep"),
            piece('{"q": ', index=1, id="b", name="read"),
            piece("2}", index=1, id="b", name="read"),
        ],
        # every parallel call has the index 0
        [piece('{"p": 1}', index=0, id="a", name="grep"), piece('{"q": 2}', index=0, id="b", name="read")],
        # an end piece without arguments
        [
            piece('{"p": 1}', index=0, id="a", name="grep"),
            piece("", index=0, id="a", name="grep"),
            piece('{"q": 2}', index=1, id="b", name="read"),
        ],
    ],
)
def test_tool_calls_in_all_the_ways_servers_stream_them(pieces: list[dict[str, Any]]) -> None:
    """Two parallel calls arrive whole, whether index, id or name are missing, repeated or interleaved, in one chunk or many."""
    expected = [("a", "grep", '{"p": 1}'), ("b", "read", '{"q": 2}')]
    events, done = chat(*({"tool_calls": [one]} for one in pieces), finish="tool_calls")
    assert calls_of(done) == expected
    assert calls_of(chat({"tool_calls": pieces}, finish="tool_calls")[1]) == expected
    streamed: dict[int, str] = {}
    for event in events:
        assert isinstance(event, ToolCallDelta)
        streamed[event.index] = streamed.get(event.index, "") + event.arguments
    assert streamed == {0: '{"p": 1}', 1: '{"q": 2}'}
    assert done.ended == "tool_calls"


def test_calls_without_ids_get_their_own() -> None:
    """Calls that came without an id get one each, the same for the same answer, so that results can name them."""
    pieces = [piece('{"p": 1}', index=0, name="grep"), piece('{"p": 2}', index=0, name="grep")]
    first, again = (calls_of(chat({"tool_calls": pieces}, finish="stop")[1]) for _ in range(2))
    assert [call[2] for call in first] == ['{"p": 1}', '{"p": 2}']
    assert len({call[0] for call in first}) == 2
    assert all(call[0] for call in first)
    assert first == again


def test_arguments_as_an_object_and_the_old_function_call() -> None:
    """Arguments sent as an object become JSON text; the old `function_call` field becomes a call."""
    _, done = chat({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": [1]}}}]})
    assert json.loads(calls_of(done)[0][2]) == {"x": [1]}
    _, done = chat(
        {"function_call": {"name": "f", "arguments": '{"x"'}},
        {"function_call": {"arguments": ": 1}"}},
        finish="function_call",
    )
    assert calls_of(done)[0][1:] == ("f", '{"x": 1}')


def test_malformed_arguments_stay_as_they_came() -> None:
    """Arguments that are cut or no JSON are kept as text in both APIs: nobody runs the tool without its arguments."""
    _, done = chat(
        {"tool_calls": [piece('{"path": "a.txt", "content": "half', index=0, id="a", name="write")]}, finish="length"
    )
    assert calls_of(done)[0][2] == '{"path": "a.txt", "content": "half'
    assert done.ended == "output_limit"
    _, done = assemble(
        "anthropic.messages",
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "t", "name": "write", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": '{"path": "a'},
        },
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}},
    )
    (message,) = parse_message(done.message, done.api)
    assert message.calls[0].arguments == '{"path": "a'


def test_unknown_fields_of_a_chat_answer_are_kept() -> None:
    """Reasoning details, signatures and fields nobody knows are merged by their shape and stay in the message."""
    _, done = chat(
        {
            "role": "assistant",
            "content": "",
            "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "a", "format": "v1"}],
        },
        {
            "reasoning_details": [
                {"type": "reasoning.text", "index": 0, "text": "b", "format": "v1", "signature": "s"}
            ],
            "new_field": {"n": 1},
        },
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "a",
                    "function": {"name": "f", "arguments": "{}"},
                    "extra_content": {"google": {"thought_signature": "sig"}},
                }
            ]
        },
    )
    assert isinstance(done.message, dict)
    assert done.message["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "ab", "format": "v1", "signature": "s"}
    ]
    assert done.message["new_field"] == {"n": 1}
    assert done.message["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "sig"}}
    assert done.message["content"] is None
    assert done.message["role"] == "assistant"


def test_thinking_in_each_field() -> None:
    """Reasoning is shown once, whichever of its fields it comes in, and stays in the message."""
    for field in ("reasoning_content", "reasoning"):
        events, done = chat({field: "let me "}, {field: "see"}, {"content": "ok"})
        assert [event for event in events if isinstance(event, ThinkingDelta)] == [
            ThinkingDelta("let me "),
            ThinkingDelta("see"),
        ]
        assert isinstance(done.message, dict)
        assert done.message[field] == "let me see"
    events, _ = chat({"reasoning": "x", "reasoning_content": "x"}, {"content": "ok"})
    assert events == [ThinkingDelta("x"), TextDelta("ok")]
    events, done = chat(
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
        {"content": [{"type": "text", "text": "o"}]},
        {"content": "k"},
    )
    assert events == [ThinkingDelta("hm"), TextDelta("o"), TextDelta("k")]
    assert isinstance(done.message, dict)
    assert done.message["content"][-1] == {"type": "text", "text": "ok"}


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
        {
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2},
        },
        {"choices": [{"index": 0, "delta": {}, "usage": {"prompt_tokens": 10, "completion_tokens": 2}}]},
        {"choices": [], "x_groq": {"usage": {"prompt_tokens": 10, "completion_tokens": 2}}},
        {"choices": [], "timings": {"prompt_n": 4, "cache_n": 6, "predicted_n": 2}},
    ],
)
def test_usage_wherever_it_stands(chunk: dict[str, Any]) -> None:
    """Usage is found in a chunk of its own, in the last one, inside the choice, and in Groq's and llama.cpp's own fields."""
    _, done = assemble(
        "openai.chat", {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}, chunk, "[DONE]"
    )
    assert (done.usage.input, done.usage.output) == (10, 2)


@pytest.mark.parametrize("last", [{"output_tokens": 50}, {"input_tokens": 0, "output_tokens": 50}])
def test_usage_of_a_stream_only_grows(last: dict[str, int]) -> None:
    """What the start of a stream said of the input holds, also where its end has zeros in the same fields."""
    first = {"input_tokens": 7, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 40, "output_tokens": 1}
    _, done = assemble(
        "anthropic.messages",
        {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": first}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last},
        {"type": "message_stop"},
    )
    assert (done.usage.input, done.usage.cached_read, done.usage.cached_write, done.usage.output) == (947, 900, 40, 50)


def test_end_of_a_chat_stream() -> None:
    """Done is a finish reason or the end mark after an answer; neither, or no answer at all, is incomplete."""
    text = {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": None}]}
    stop = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    assert assemble("openai.chat", text, stop)[1].finish_reason == "stop"
    assert assemble("openai.chat", text, "[DONE]")[1].finish_reason == ""
    with pytest.raises(Incomplete):
        assemble("openai.chat", text)
    with pytest.raises(Incomplete):
        assemble("openai.chat", {"choices": [{"index": 0, "delta": {"role": "assistant"}}]}, "[DONE]")


@pytest.mark.parametrize("api", ["openai.chat", "openai.responses", "anthropic.messages"])
@pytest.mark.parametrize(
    "value",
    [
        {"error": {"message": "boom", "code": 500}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}},
        {"error": "boom"},
        {"object": "error", "message": "boom"},
        [{"error": {"message": "boom"}}],
    ],
)
def test_errors_inside_a_stream(api: str, value: Any) -> None:
    """An error object inside a stream is one in every API, in every form."""
    with pytest.raises(UpstreamError) as caught:
        assemble(api, value)
    assert "boom" in str(caught.value)


def test_errors_in_a_choice_and_in_a_failed_response() -> None:
    """An error inside a choice, a finish reason "error", and `response.failed` are errors."""
    for choice in (
        {"finish_reason": "error", "delta": {}},
        {"error": {"message": "boom", "code": 502}, "finish_reason": "error", "delta": {}},
    ):
        with pytest.raises(UpstreamError):
            assemble("openai.chat", {"choices": [{"index": 0, **choice}]})
    with pytest.raises(UpstreamError):
        assemble(
            "openai.responses",
            {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "boom"}}},
        )


def test_unreadable_data() -> None:
    """Data that is no JSON object is said to be unreadable, not skipped."""
    for data in ("Internal Server Error", "[1, 2]", "{bad"):
        with pytest.raises(Unreadable):
            assemble("openai.chat", data)


def test_anthropic_blocks_of_all_kinds() -> None:
    """Thinking, redacted thinking, citations, server tools and unknown blocks and deltas come out as they came."""
    server = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "s1",
        "content": [{"type": "web_search_result", "url": "u"}],
    }
    events, done = assemble(
        "anthropic.messages",
        {
            "type": "message_start",
            "message": {
                "id": "m1",
                "model": "c",
                "usage": {"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 1},
            },
        },
        {"type": "ping"},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "xyz"}},
        {"type": "content_block_start", "index": 2, "content_block": server},
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": '{"query": "q"}'},
        },
        {"type": "content_block_start", "index": 3, "content_block": found},
        {"type": "content_block_start", "index": 4, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 4, "delta": {"type": "text_delta", "text": "see"}},
        {
            "type": "content_block_delta",
            "index": 4,
            "delta": {"type": "citations_delta", "citation": {"cited_text": "t"}},
        },
        {"type": "content_block_start", "index": 5, "content_block": {"type": "hologram", "shape": ""}},
        {"type": "content_block_delta", "index": 5, "delta": {"type": "shape_delta", "shape": "cube"}},
        {
            "type": "content_block_start",
            "index": 6,
            "content_block": {"type": "tool_use", "id": "t1", "name": "read", "input": {}},
        },
        {"type": "content_block_delta", "index": 6, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 33}},
        {"type": "message_stop"},
    )
    assert done.message == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "xyz"},
            {**server, "input": {"query": "q"}},
            found,
            {"type": "text", "text": "see", "citations": [{"cited_text": "t"}]},
            {"type": "hologram", "shape": "cube"},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {}},
        ],
    }
    assert events == [ThinkingDelta("hm"), TextDelta("see"), ToolCallDelta(0, "t1", "read", "")]
    assert done.usage == Usage(95, 90, 0, 33)
    assert (done.finish_reason, done.ended, done.response_id) == ("tool_use", "tool_calls", "m1")


def test_anthropic_delta_without_its_start() -> None:
    """A delta whose block never began makes the block; a stream without stop reason and end is incomplete."""
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Partial"}}
    assembler = assembler_for("anthropic.messages")
    assert assembler.read(ServerEvent("content_block_delta", json.dumps(delta))) == [TextDelta("Partial")]
    assert assembler.text == "Partial"
    with pytest.raises(Incomplete):
        assembler.end()


RESPONSE = {
    "id": "r1",
    "object": "response",
    "model": "m",
    "status": "completed",
    "usage": {"input_tokens": 8, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}},
    "output": [
        {
            "type": "reasoning",
            "id": "rs",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "enc",
        },
        {
            "type": "message",
            "id": "ms",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "hi", "annotations": []}],
        },
        {"type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "new_item", "x": 1},
    ],
}


def test_responses_items_are_those_of_the_end() -> None:
    """The output of the final response is the answer, unknown items included, and what was not streamed is still shown."""
    events, done = assemble(
        "openai.responses",
        {"type": "response.created", "response": {**RESPONSE, "output": []}},
        {"type": "response.completed", "response": RESPONSE},
    )
    assert done.message == RESPONSE["output"]
    assert events == [ThinkingDelta("hm"), TextDelta("hi"), ToolCallDelta(0, "c1", "f", "{}")]
    assert done.usage == Usage(8, 4, 0, 2)
    assert (done.finish_reason, done.ended) == ("tool_calls", "tool_calls")


def test_responses_items_from_the_stream_alone() -> None:
    """Where the final response has no output, the streamed items are the answer; nothing is shown twice."""
    events, done = assemble(
        "openai.responses",
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "message", "id": "ms", "role": "assistant", "content": []},
        },
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "he"},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "llo"},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {"type": "function_call", "call_id": "c1", "name": "f", "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"a"'},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": ": 1}"},
        {"type": "response.some_new_event", "x": 1},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
        },
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [], "usage": None}},
    )
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "hello"
    assert "".join(event.arguments for event in events if isinstance(event, ToolCallDelta)) == '{"a": 1}'
    (text, called) = parse_message(done.message, done.api)
    assert text.text == "hello"
    assert called.calls[0].arguments == '{"a": 1}'


def test_incomplete_response_names_its_reason() -> None:
    """An incomplete response ends with its own reason; one that never ends is incomplete."""
    _, done = assemble(
        "openai.responses",
        {
            "type": "response.incomplete",
            "response": {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        },
    )
    assert done.ended == "output_limit"
    with pytest.raises(Incomplete):
        assemble("openai.responses", {"type": "response.output_text.delta", "output_index": 0, "delta": "half"})


@given(st.text(max_size=40), st.lists(st.integers(0, 40), max_size=6))
def test_text_is_joined_whatever_the_pieces(text: str, cuts: list[int]) -> None:
    """The pieces of a text make the text, also where JSON escapes cut a surrogate pair in two."""
    utf16 = text.encode("utf-16-le", "surrogatepass")
    places = sorted({min(2 * cut, len(utf16)) for cut in cuts} | {0, len(utf16)})
    pieces = [utf16[start:end].decode("utf-16-le", "surrogatepass") for start, end in itertools.pairwise(places)]
    events, done = chat(*({"content": part} for part in pieces))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text
    assert isinstance(done.message, dict)
    assert (done.message["content"] or "") == text


def test_finish_reasons() -> None:
    """Each API's words mean the same few things; a word nobody knows is "other"."""
    words = {
        "stop": "complete",
        "end_turn": "complete",
        "STOP": "complete",
        "tool_use": "tool_calls",
        "length": "output_limit",
        "MAX_TOKENS": "output_limit",
        "content_filter": "refused",
        "model_context_window_exceeded": "overflow",
        "context_overflow": "overflow",
        "": "complete",
        "quantum": "other",
    }
    assert {word: ended_of(word) for word in words} == words
