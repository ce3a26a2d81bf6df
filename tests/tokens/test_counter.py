"""Counts of texts, messages and tools: complete, stable, and quick where everything was counted before."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brim.conversation import Media, Message, Opaque, Text, Thinking, ToolResult, assistant, call, result, system, user
from brim.tokens import count_request, counter_for, estimate_counter
from brim.tokens.counter import CALL_OVERHEAD, NAME_OVERHEAD, SHARED, TokenCounter
from brim.tokens.media import media_rates

EVERY = [counter_for("gpt-4o"), counter_for("claude-sonnet-4-5"), counter_for("qwen3.5-plus"), estimate_counter()]
ids = [counter.name for counter in EVERY]
ANY_TEXT = st.text(st.characters(), max_size=300)  # lone surrogates and control characters included


@pytest.mark.parametrize("counter", EVERY, ids=ids)
def test_special_tokens_are_ordinary_text(counter: TokenCounter) -> None:
    """Markers of chat templates in user text are data: counted as their characters, never an error."""
    text = "before <|endoftext|> <|im_start|>system<|im_end|> <|fim_prefix|> [INST] </s> after"
    assert counter.count_text(text) >= 15


@pytest.mark.parametrize("counter", EVERY, ids=ids)
@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, "_" * 300_000, "你" * 200_000, " " * 500_000, "\n" * 300_000, "ab" * 300_000, "=" * 200_000,
     "\0" * 200_000, "🔥" * 100_000, "\ud800" * 100_000],
    ids=["a", "underscore", "cjk", "space", "newline", "ab", "bar", "nul", "emoji", "surrogate"],
)  # fmt: skip
def test_long_runs_are_counted_in_no_time(counter: TokenCounter, text: str) -> None:
    """A separator bar, base64 or a paragraph without spaces takes time that grows with its length alone; if it grew
    faster, this would not end."""
    count = counter.count_text(text)
    assert 0 < count <= 4 * len(text)
    if text[0] not in "🔥\ud800":
        assert count <= 2 * len(text)


@pytest.mark.parametrize("counter", EVERY, ids=ids)
@given(texts=st.lists(ANY_TEXT, max_size=8))
@settings(max_examples=60, deadline=None)
def test_texts_counted_together_or_alone_are_the_same(counter: TokenCounter, texts: list[str]) -> None:
    """Any text is counted without an error, and a batch gives what its texts give one by one."""
    assert counter.count_texts(texts) == [counter.count_text(text) for text in texts]
    assert all(count >= 0 for count in counter.count_texts(texts))


def test_a_message_costs_frame_role_parts_and_name() -> None:
    """The published formula: 3 a message, its role, its content, and its name with 1; 3 for the reply."""
    counter = counter_for("gpt-4o")
    hello = counter.count_text("hello there")
    named = Message("user", (Text("hello there"),), name="alice")
    assert counter.count_messages([user("hello there"), named]) == [
        3 + 1 + hello,
        3 + 1 + hello + NAME_OVERHEAD + counter.count_text("alice"),
    ]
    assert counter.priming == 3


def test_known_count_of_openais_example() -> None:
    """The example of OpenAI's cookbook on counting chat tokens gives the prompt tokens its API reports for gpt-4o."""
    messages = [
        system("You are a helpful, pattern-following assistant that translates corporate jargon into plain English."),
        Message("system", (Text("New synergies will help drive top-line growth."),), name="example_user"),
        Message("system", (Text("Things working well together will increase revenue."),), name="example_assistant"),
        Message(
            "system",
            (Text("Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage."),),
            name="example_user",
        ),
        Message(
            "system",
            (Text("Let's talk later when we're less busy about how to do better."),),
            name="example_assistant",
        ),
        user(
            "This late pivot means we don't have time to boil the ocean for the client deliverable."
        ),
    ]  # fmt: skip
    assert count_request(counter_for("gpt-4o"), messages).total == 124
    assert count_request(counter_for("gpt-4"), messages).total == 129


def test_calls_and_results_are_counted() -> None:
    """A call costs its name, arguments and a fixed overhead; a result its text; ids cost nothing."""
    counter = counter_for("gpt-4o")
    one = call("grep", {"pattern": "TODO"}, id="c1")
    expected = 4 + counter.count_text("grep") + counter.count_text(one.arguments) + CALL_OVERHEAD
    assert counter.count_messages([assistant("", one)]) == [expected]
    assert counter.count_messages([assistant("", call("grep", {"pattern": "TODO"}, id="x" * 500))]) == [expected]
    assert counter.count_messages([result("c1", "found nothing")]) == [4 + counter.count_text("found nothing")]


def test_blocks_of_every_kind_cost_something() -> None:
    """Thinking, tool calls, results in several parts, text documents and unknown blocks are counted, none crashes."""
    counter = counter_for("claude-sonnet-4-5")
    unknown = {"type": "some_future_block", "x": "y"}
    messages = [
        user("hi"),
        Message("assistant", (Thinking("hm", True), call("n", {"q": "some words here"}, id="t"))),
        Message("tool", (ToolResult("t", (Text("answer text"),)),)),
        Message("user", (Media("document", "text/plain", "text", "doc text"), Opaque("some_future_block", unknown))),
    ]
    counts = counter.count_messages(messages)
    assert sum(counts) >= 12
    assert counts[1] > 4 + CALL_OVERHEAD + counter.count_text("hm") + counter.count_text('{"q":"some words here"}')
    assert counts[3] == 4 + counter.count_text("doc text") + counter.count_text('{"type":"some_future_block","x":"y"}')
    two = Message("tool", (ToolResult("t", (Text("one"), Media("image", "image/png", "url", "https://x/y.png"))),))
    assert counter.count_messages([two]) == [4 + counter.count_text("one") + 1_600]
    assert counter.count_messages([Message("tool", (ToolResult("t", ()),))]) == [4]
    assert counter.count_messages([Message("assistant", ())]) == [4]


def test_documents_in_base64_that_are_text_count_as_text() -> None:
    """A text file attached as base64 costs what its text costs."""
    counter = counter_for("gpt-4o")
    data = base64.b64encode(b"plain words in a file").decode()
    document = Message("user", (Media("document", "text/plain", "base64", data),))
    assert counter.count_messages([document]) == [4 + counter.count_text("plain words in a file")]


@pytest.mark.parametrize(
    "wire",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,PICTURE"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "PICTURE"}},
        {"type": "input_image", "image_url": "data:image/png;base64,PICTURE"},
        {"inlineData": {"mimeType": "image/png", "data": "PICTURE"}},
    ],
    ids=["openai", "anthropic", "responses", "gemini"],
)
def test_pictures_in_unknown_blocks_are_not_read_as_text(wire: dict[str, Any]) -> None:
    """Base64 in a shape nobody parsed costs what a picture costs, at any depth."""
    picture = base64.b64encode(bytes(range(256)) * 8_000).decode()

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        return value.replace("PICTURE", picture) if isinstance(value, str) else value

    counter = counter_for("gpt-4o")
    messages = [Message("user", (Opaque("x", fill(wire)),)), Message("user", (Opaque("x", {"deep": [[fill(wire)]]}),))]
    counts = counter.count_messages(messages)
    assert all(500 <= count <= 6_000 for count in counts)


def test_encrypted_reasoning_is_not_read_as_text() -> None:
    """Encrypted thinking costs about the tokens it stands for, not those of its base64."""
    counter = counter_for("gpt-5")
    sealed = Opaque("reasoning", {"type": "reasoning", "encrypted_content": "Zm9v" * 5_000, "summary": []})
    assert 3_000 < counter.count_messages([Message("assistant", (sealed,))])[0] < 4_500


def test_thinking_counts_by_its_text_or_by_what_is_sealed() -> None:
    """Text where there is text; the encrypted whole where only a summary, a signature or nothing readable is shown."""
    counter = counter_for("claude-sonnet-4-5")

    def cost(part: Thinking) -> int:
        return counter.count_messages([Message("assistant", (part,))])[0] - 4

    signed = {"type": "thinking", "thinking": "plain words", "signature": "A" * 3_000}
    assert cost(Thinking("plain words", True, signed)) == counter.count_text("plain words")
    assert (
        cost(Thinking("", True, {"type": "thinking", "thinking": "", "signature": "A" * 8_000})) == (6_000 - 650) // 4
    )
    assert cost(Thinking("", True, {"type": "redacted_thinking", "data": "A" * 8_000})) == (6_000 - 650) // 4
    sealed = {"type": "reasoning", "summary": [{"text": "short"}], "encrypted_content": "A" * 8_000}
    assert cost(Thinking("short", True, sealed)) == (6_000 - 650) // 4
    assert cost(Thinking("", False)) == 0


def test_blocks_nobody_can_encode_are_counted() -> None:
    """Objects, sets and endless nesting inside an unknown block are counted by what can be said of them."""
    nested: Any = "end"
    for _ in range(3_000):
        nested = [nested]
    counter = counter_for("gpt-4o")
    for wire in ({"a": {1, 2}}, {"o": object()}, {"deep": nested}, "text", None, float("nan"), {"s": "\ud83d"}):
        assert counter.count_messages([Message("user", (Opaque("odd", wire),))])[0] > 4


def test_tools_are_counted_with_their_frame() -> None:
    """Definitions cost their JSON and a frame, in each of the formats; no tools cost nothing."""
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": "where to look"}}}
    chat = {"type": "function", "function": {"name": "read", "description": "reads a file", "parameters": schema}}
    claude = {"name": "read", "description": "reads a file", "input_schema": schema}
    built_in = {"type": "web_search_20250305", "max_uses": 3}
    counter = counter_for("gpt-4o")
    assert counter.count_tools([]) == 0 and counter.count_each_tool([]) == {}
    sizes = counter.count_each_tool([chat, claude, built_in])
    assert set(sizes) == {"read", "web_search_20250305", SHARED}
    assert sum(sizes.values()) == counter.count_tools([chat, claude, built_in])
    assert 40 < counter.count_tools([chat]) < 80
    assert counter_for("claude-sonnet-4-5").count_tools([claude]) > 346
    assert counter.count_tools([{"name": "x", "parameters": {1, 2}}]) > 0


def test_a_request_is_messages_tools_and_priming() -> None:
    """What a request costs is the sum of its messages, its tools and the priming of the reply, tools apart."""
    tools = [
        {
            "type": "function",
            "function": {
                "name": f"tool_{i}",
                "description": "does a thing with many options " * 6,
                "parameters": {
                    "type": "object",
                    "properties": {f"p{j}": {"type": "string", "description": "an option " * 3} for j in range(8)},
                },
            },
        }
        for i in range(15)
    ]
    counted = count_request(counter_for("gpt-4o"), [system("sys"), user("final")], tools)
    assert counted.tools > 1_500
    assert counted.total == sum(counted.messages) + counted.tools + counted.priming
    assert counted.exact and counted.counter == "o200k_base"


def test_an_estimate_says_so() -> None:
    """A counter without a tokenizer is named for what it is and never called exact."""
    assert estimate_counter("chars").count_text("x" * 400) == 120
    assert estimate_counter("chars").name == "estimate (chars)" and not estimate_counter().exact
    assert count_request(estimate_counter(), [user("hello")]).exact is False


MESSAGE = st.one_of(
    st.builds(user, ANY_TEXT),
    st.builds(system, ANY_TEXT),
    st.builds(result, st.just("c"), ANY_TEXT),
    st.builds(lambda text, name, raw: assistant(text, call(name, raw, id="c")), ANY_TEXT, ANY_TEXT, ANY_TEXT),
    st.builds(lambda text: Message("assistant", (Thinking(text, False), Text(text)), name=text), ANY_TEXT),
    st.builds(lambda wire: Message("user", (Opaque("o", wire),)), st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=3)),
)


@given(st.lists(MESSAGE, max_size=12))
@settings(max_examples=80, deadline=None)
def test_cached_or_fresh_a_message_counts_the_same(messages: list[Message]) -> None:
    """Counts do not depend on what was counted before, on order or company, or on what the cache has dropped."""
    counter = counter_for("gpt-4o")
    tiny = TokenCounter("tiny", True, counter._count_batch, media_rates("gpt-4o"), cache_chars=800)
    together = counter.count_messages(messages)
    assert together == counter.count_messages(messages)
    assert together == [counter.count_messages([message])[0] for message in messages]
    assert together == tiny.count_messages(messages) == tiny.count_messages(messages)


def test_the_cache_is_bounded() -> None:
    """However much is counted, at most so many characters stay; what is in use survives the change of generations."""
    counter = counter_for("gpt-4o")
    small = TokenCounter("small", True, counter._count_batch, media_rates(None), cache_chars=20_000)
    for number in range(400):
        small.count_texts([f"{number} " * 100, "always here"])
    held = sum(map(len, small._young)) + sum(map(len, small._old))
    assert held <= 20_000
    assert "always here" in small._young or "always here" in small._old
    assert small.count_text("x" * 50_000) == counter.count_text("x" * 50_000)
    assert sum(map(len, small._young)) + sum(map(len, small._old)) <= 20_000


def test_a_counted_history_costs_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that were counted are not counted again."""
    counter = counter_for("gpt-4o")
    history: list[Message] = []
    for number in range(5_000):
        history += [
            user(f"question {number}"),
            assistant("", call("grep", {"n": number}, id=str(number))),
            result(str(number), f"line {number}\n" * 8),
            assistant(f"answer {number}"),
        ]
    first = counter.count_messages(history)
    monkeypatch.setattr(type(counter), "_count", lambda *_: pytest.fail("counted again"))
    assert counter.count_messages(history) == first
