"""The validator: every rule is found where it is broken, and a valid body breaks none."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from brim.errors import UsageError
from brim.formats import ask_to_drop, binds_thinking, dialect_of, violations

Body = dict[str, Any]


def chat_call(call_id: str, arguments: Any = "{}") -> Body:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}}


def chat() -> Body:
    """Valid in every chat dialect."""
    return {
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": None, "tool_calls": [chat_call("aaaaaaaa1"), chat_call("aaaaaaaa2")]},
            {"role": "tool", "tool_call_id": "aaaaaaaa2", "content": "r"},
            {"role": "tool", "tool_call_id": "aaaaaaaa1", "content": "r"},
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": [{"type": "text", "text": "u"}]},
        ]
    }


def claude() -> Body:
    uses = [{"type": "tool_use", "id": f"t{i}", "name": "f", "input": {}} for i in (1, 2)]
    return {
        "system": [{"type": "text", "text": "s", "cache_control": {}}],
        "messages": [
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "S"}, *uses]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t2", "content": "r"},
                    {"type": "text", "text": "go"},
                ],
            },
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": "u"},
        ],
    }


def responses() -> Body:
    return {
        "input": [
            {"type": "message", "role": "developer", "content": "d"},
            {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c2", "output": "r"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "r"}]},
            {"type": "reasoning", "id": "rs_2", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
            {"type": "web_search_call", "id": "ws_1"},
            {"role": "user", "content": "next"},
        ]
    }


@pytest.mark.parametrize("dialect", ["openai", "openai-strict", "mistral", "gemini"])
def test_a_valid_chat_body_breaks_no_rule(dialect: str) -> None:
    """Parallel calls answered in any order, in a conversation that alternates, are valid everywhere."""
    assert violations(chat(), "openai.chat", dialect) == []


def test_valid_bodies_of_the_other_apis_break_no_rule() -> None:
    """Results over two user messages (one turn), thinking, server items and reasoning pairs are valid."""
    assert violations(claude(), "anthropic.messages", "anthropic") == []
    assert violations(responses(), "openai.responses", "openai-responses") == []
    assert violations({"input": "hi"}, "openai.responses", "openai-responses") == []


def broken(make: Callable[[], Body], change: Callable[[Any], Any], api: str, dialect: str) -> list[str]:
    body = make()
    before = copy.deepcopy(body)
    change(body["input" if api == "openai.responses" else "messages"])
    assert body != before
    return violations(body, api, dialect)


def put(index: int, **fields: Any) -> Callable[[Any], None]:
    return lambda messages: messages[index].update(fields)


CHAT_RULES: list[tuple[str, Callable[[Any], Any], str]] = [
    ("openai", lambda m: m.clear(), "at least one entry"),
    ("openai", put(1, role="wizard"), "'wizard' is not one of"),
    ("openai", put(1, content=None), "messages[1].content: empty"),
    ("openai", put(1, content=[]), "messages[1].content: empty"),
    ("openai-strict", put(6, content=[{"type": "text", "text": " "}]), "messages[6].content[0]: empty text block"),
    ("openai", put(1, content={"a": 1}), "messages[1].content: must be"),
    ("openai-strict", put(5, content=""), "empty, and no tool call"),
    ("openai", put(3, content=None), "a tool message must have content"),
    ("openai", lambda m: m.pop(3), "call 'aaaaaaaa2' has no result"),
    ("openai", lambda m: m.insert(4, {"role": "user", "content": "x"}), "call 'aaaaaaaa1' has no result"),
    ("openai", lambda m: m.pop(2), "messages[2]: result of call 'aaaaaaaa2', which is not in"),
    ("openai", put(3, tool_call_id="aaaaaaaa1"), "messages[4]: second result"),
    ("openai", put(3, tool_call_id=""), "messages[3].tool_call_id: missing"),
    ("openai", put(2, tool_calls=[chat_call("aaaaaaaa1"), chat_call("aaaaaaaa1")]), "used twice in one message"),
    ("openai", put(2, tool_calls=[chat_call("aaaaaaaa1"), chat_call("")]), "tool_calls[1].id: missing"),
    ("openai", put(2, tool_calls=[]), "tool_calls: an empty list"),
    (
        "openai",
        put(2, tool_calls=[chat_call("aaaaaaaa1", "{"), chat_call("aaaaaaaa2")]),
        "arguments: not the JSON text",
    ),
    (
        "openai-strict",
        put(2, tool_calls=[chat_call("aaaaaaaa1", ""), chat_call("aaaaaaaa2")]),
        "arguments: not the JSON",
    ),
    (
        "openai",
        put(2, tool_calls=[chat_call("aaaaaaaa1", "[1]"), chat_call("aaaaaaaa2")]),
        "arguments: not the JSON text",
    ),
    ("openai", put(2, tool_calls=[chat_call(f"{i}") for i in range(129)]), "129 calls in one message, at most 128"),
    ("openai", put(1, content="half \ud83d"), "lone surrogate"),
    ("openai-strict", put(1, content="  "), "messages[1].content: empty"),
    ("openai-strict", put(3, content=""), "messages[3].content: empty"),
    (
        "openai-strict",
        lambda m: m.insert(1, {"role": "system", "content": "x"}),
        "messages[1]: a system message that is not",
    ),
    (
        "openai-strict",
        lambda m: m.insert(6, {"role": "system", "content": "x"}),
        "messages[6]: a system message that is not",
    ),
    ("openai-strict", lambda m: m.insert(1, {"role": "user", "content": "x"}), "two user messages in a row"),
    ("openai-strict", lambda m: m.insert(2, {"role": "assistant", "content": "x"}), "two assistant messages in a row"),
    ("openai-strict", lambda m: m.pop(5), "messages[5]: a user message right after a tool message"),
    ("openai-strict", lambda m: m.pop(1), "must be the user's"),
    ("openai-strict", lambda m: m.insert(1, {"role": "assistant", "content": "x"}), "assistant where user must come"),
    ("mistral", lambda m: m.pop(5), "messages[5]: a user message right after a tool message"),
    ("mistral", put(2, tool_calls=[chat_call("call_1"), chat_call("aaaaaaaa2")]), "is not nine letters or digits"),
    ("gemini", lambda m: m.pop(1), "the first turn must be the user's, not assistant"),
    ("gemini", lambda m: m.pop(1), "a function call turn must follow"),
]


@pytest.mark.parametrize(("dialect", "change", "message"), CHAT_RULES)
def test_each_chat_rule_is_found(dialect: str, change: Callable[[Any], Any], message: str) -> None:
    """One change that breaks one rule is named, with its place."""
    found = broken(chat, change, "openai.chat", dialect)
    assert any(message in line for line in found), found


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.insert(1, {"role": "user", "content": "x"}),
        lambda m: m.insert(6, {"role": "system", "content": "x"}),
        lambda m: m.pop(5),
        put(3, content=""),
        put(1, content="  "),
        put(5, content=""),
        put(6, content=[{"type": "text", "text": ""}]),
        put(2, tool_calls=[chat_call("aaaaaaaa1", ""), chat_call("aaaaaaaa2")]),
    ],
)
def test_what_the_hosted_api_takes_is_no_violation(change: Callable[[Any], Any]) -> None:
    """Neighbours of one role, later system messages, empty text, white space and calls without arguments are legal in plain
    `openai`."""
    assert broken(chat, change, "openai.chat", "openai") == []


def test_gemini_reads_neighbours_of_one_role_as_one_turn() -> None:
    """A call in a second assistant message in a row follows the user turn before both."""
    assert (
        broken(chat, lambda m: m.insert(2, {"role": "assistant", "content": "Checking."}), "openai.chat", "gemini")
        == []
    )


def test_the_legacy_function_pair_is_checked() -> None:
    """A function_call is answered by the function message of that name."""
    messages = [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "r"},
    ]
    assert violations({"messages": messages}, "openai.chat", "openai") == []
    assert violations({"messages": messages[:2]}, "openai.chat", "openai") != []


def blocks(index: int, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda messages: change(messages[index]["content"])


CLAUDE_RULES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda m: m.clear(), "at least one entry"),
    (lambda m: m.pop(0), "the first message must be the user's"),
    (put(0, role="tool"), "'tool' is not user, assistant or system"),
    (put(0, content=""), "messages[0].content: empty"),
    (put(4, content="  "), "messages[4].content: empty"),
    (put(4, content=[]), "messages[4].content: empty"),
    (put(4, content=None), "must be a string or a list"),
    (put(4, content=[{"type": "text", "text": ""}]), "messages[4].content[0]: empty text block"),
    (put(4, content=[{"text": "x"}]), "messages[4].content[0].type: missing"),
    (blocks(2, lambda c: c[0].update(content="")), "messages[2].content[0].content: empty"),
    (blocks(2, lambda c: c[0].update(content=[{"type": "text", "text": ""}])), "empty text block"),
    (blocks(1, lambda c: c[1].update(id="a.b")), "does not match"),
    (blocks(1, lambda c: c[1].update(input="{}")), "input: must be an object"),
    (blocks(1, lambda c: c[1].update(name="")), "name: missing"),
    (blocks(1, lambda c: c[1].update(id="t2")), "'t2' is used twice"),
    (blocks(1, lambda c: c[0].update(signature="")), "without its signature"),
    (lambda m: m.pop(2), "tool_use 't1' has no result"),
    (lambda m: m.pop(1), "which the turn before does not call"),
    (blocks(3, lambda c: c[0].update(tool_use_id="t1")), "second result of 't1'"),
    (blocks(3, lambda c: c.reverse()), "must come before all others"),
    (lambda m: m.insert(2, {"role": "user", "content": "first"}), "must come before all others"),
    (lambda m: m.insert(2, {"role": "system", "content": "x"}), "between tool_use and its result"),
    (
        lambda m: m.insert(
            2, {"role": "user", "content": [{"type": "tool_use", "id": "t9", "name": "f", "input": {}}]}
        ),
        "tool_use in a user",
    ),
    (
        lambda m: m.append(
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t9", "name": "f", "input": {}}]}
        ),
        "'t9' has no result",
    ),
    (
        put(5, content=[{"type": "text", "text": "x", "cache_control": {}}] * 4),
        "5 blocks with cache_control, at most 4",
    ),
    (put(5, content=[{"type": "thinking", "thinking": "x", "signature": "s"}]), "thinking in a user message"),
    (put(5, content="\udc00"), "lone surrogate"),
]


@pytest.mark.parametrize(("change", "message"), CLAUDE_RULES)
def test_each_anthropic_rule_is_found(change: Callable[[Any], Any], message: str) -> None:
    """One change that breaks one rule is named, with its place."""
    found = broken(claude, change, "anthropic.messages", "anthropic")
    assert any(message in line for line in found), found


@pytest.mark.parametrize("system", ["", " ", [{"type": "text", "text": ""}], 5])
def test_an_empty_or_odd_system_field_is_found(system: Any) -> None:
    """System text has to be text."""
    assert violations({**claude(), "system": system}, "anthropic.messages", "anthropic") != []


RESPONSES_RULES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda m: m.clear(), "at least one entry"),
    (lambda m: m.pop(3), "which is not before it"),
    (lambda m: m.pop(5), "no output found for call 'c2'"),
    (put(5, call_id="c1"), "second output of call 'c1'"),
    (put(4, call_id="c1"), "'c1' is used twice"),
    (put(4, id="fc_1"), "duplicate item id"),
    (put(4, arguments="null"), "arguments: not the JSON text"),
    (put(4, name=None), "name: missing"),
    (put(5, output=None), "output: must be"),
    (put(5, call_id=""), "call_id: missing"),
    (lambda m: (m.pop(8), m.pop(8)), "input[7]: a reasoning item"),
    (lambda m: m.insert(8, {"role": "user", "content": "x"}), "input[7]: a reasoning item"),
    (lambda m: m.append({"type": "reasoning", "summary": []}), "input[11]: a reasoning item"),
    (put(1, content=[{"type": "output_text", "text": "q"}]), "'output_text' in a user message"),
    (put(8, content=[{"type": "input_text", "text": "q"}]), "'input_text' in a assistant message"),
    (put(1, content=[]), "input[1].content: empty"),
    (put(1, content=[{"type": "input_text"}]), "text: must be a string"),
    (put(1, role="tool"), "is not user, assistant"),
]


@pytest.mark.parametrize(("change", "message"), RESPONSES_RULES)
def test_each_responses_rule_is_found(change: Callable[[Any], Any], message: str) -> None:
    """One change that breaks one rule is named, with its place."""
    found = broken(responses, change, "openai.responses", "openai-responses")
    assert any(message in line for line in found), found


@pytest.mark.parametrize(
    ("model", "api", "dialect"),
    [
        ("gpt-5", "openai.chat", "openai"),
        (None, "openai.chat", "openai"),
        ("qwen-max", "openai.chat", "openai"),
        ("deepseek-chat", "openai.chat", "openai"),
        ("local/smollm2-135m", "openai.chat", "openai-strict"),
        ("/models/qwen3-8b-q4_k_m.gguf", "openai.chat", "openai-strict"),
        ("mistral-large-latest", "openai.chat", "mistral"),
        ("mistralai/Devstral-Small", "openai.chat", "mistral"),
        ("google/gemini-3-pro-preview", "openai.chat", "gemini"),
        ("models/gemini-2.5-flash", "openai.chat", "gemini"),
        ("claude-sonnet-4-5", "anthropic.messages", "anthropic"),
        ("gpt-5", "openai.responses", "openai-responses"),
    ],
)
def test_the_dialect_follows_from_the_model_and_the_api(model: str | None, api: str, dialect: str) -> None:
    """Only names that are surely strict get a strict dialect."""
    assert dialect_of(model, api) == dialect


def test_unknown_dialects_and_apis_are_refused() -> None:
    """A misspelt dialect or api is an error, not a silent pass."""
    with pytest.raises(UsageError, match="unknown dialect"):
        violations({}, "openai.chat", "openay")
    with pytest.raises(UsageError, match="unknown api"):
        dialect_of("m", "openai")


@pytest.mark.parametrize(
    ("model", "bound"),
    [
        ("claude-fable-5-1", True),
        ("claude-fable-5-2-20261101", True),
        ("anthropic/claude-fable-5.1", True),
        ("us.anthropic.claude-opus-5-5-v1:0", True),
        ("claude-sonnet-5-5", True),
        ("claude-haiku-5-5", True),
        ("claude-fable-5", False),
        ("claude-opus-5-20260601", False),
        ("claude-opus-4-6", False),
        ("claude-sonnet-4-5-20250929", False),
        ("gpt-5", False),
        (None, False),
    ],
)
def test_models_that_bind_thinking_are_known(model: str | None, bound: bool) -> None:
    """The models the vendor lists for the prefix check, in any vendor's spelling, and no older ones."""
    assert binds_thinking(model) is bound


def test_asking_to_drop_keeps_what_the_caller_set() -> None:
    """The switch is added to a copy; the caller's own choice stays, and thinking that is off is not touched."""
    body: Body = {"messages": [], "thinking": {"type": "adaptive", "display": "omitted"}}
    asked = ask_to_drop(body)
    assert asked["thinking"] == {**body["thinking"], "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert "block_binding" not in body["thinking"]
    assert ask_to_drop({})["thinking"]["type"] == "adaptive"
    assert ask_to_drop({"thinking": {"type": "disabled"}}) == {"thinking": {"type": "disabled"}}
    chosen = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}}
    assert ask_to_drop(chosen) == chosen
