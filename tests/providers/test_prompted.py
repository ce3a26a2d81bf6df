"""The prompted protocol: what goes out for a body with tools, and what comes back as text or calls."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.budget import Usage
from brim.conversation import Message, assistant, call, result, system, user
from brim.formats import parse_request
from brim.providers.events import Done, Event, TextDelta, ToolCallDelta
from brim.providers.offered import line_groups, lines_of, paths_of, words_of
from brim.providers.prompted import AnswerReader, prompted_request, read_reply, tools_written, written
from brim.providers.prompted_provider import PromptedProvider


def tool(name: str, argument: str, *more: str) -> dict[str, Any]:
    """A tool with one required text argument and optional ones."""
    properties = {argument: {"type": "string", "pattern": "^x"}, **{key: {"type": "integer"} for key in more}}
    parameters = {"type": "object", "properties": properties, "required": [argument]}
    return {
        "type": "function",
        "function": {"name": name, "description": f"{name}s. Really.", "parameters": parameters},
    }


TOOLS = [tool("grep", "pattern", "limit"), tool("glob", "pattern"), tool("read", "path"), tool("bash", "command")]
WRITE = {
    "type": "function",
    "function": {
        "name": "write",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    },
}


def chat_call(name: str, arguments: Mapping[str, Any], id: str) -> dict[str, Any]:
    """An assistant message that calls one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def session(steps: int) -> list[dict[str, Any]]:
    """A conversation of one question and so many steps."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Search the project for the keyword TODO"},
    ]
    for step in range(steps):
        messages.append(chat_call("grep", {"pattern": f"TODO{step}"}, f"c{step}"))
        messages.append({"role": "tool", "tool_call_id": f"c{step}", "content": f"a.py:{step}:TODO x\n[1 line]"})
    return messages


def schema_of(body: Mapping[str, Any]) -> Any:
    """The reply's schema in a prompted body."""
    return body["response_format"]["json_schema"]["schema"]


@pytest.mark.parametrize("small", [True, False])
def test_each_step_extends_the_one_before(small: bool) -> None:
    """The messages of a step begin with all those of the step before, so that the model's cache holds."""
    before: list[Any] = []
    for steps in range(4):
        body = prompted_request({"messages": session(steps), "tools": TOOLS}, small=small)
        assert body["messages"][: len(before)] == before
        assert {message["role"] for message in body["messages"]} <= {"system", "user", "assistant"}
        before = body["messages"]


@pytest.mark.parametrize("small", [True, False])
def test_bodies_are_not_changed_and_fields_pass(small: bool) -> None:
    """A body goes in unharmed; what the protocol does not know passes; nothing of native tools is left."""
    body = {"messages": session(2), "tools": TOOLS, "tool_choice": "auto", "seed": 7, "max_tokens": 9, "x": {"y": 1}}
    kept = copy.deepcopy(body)
    sent = prompted_request(body, small=small)
    assert body == kept
    assert (sent["seed"], sent["max_tokens"], sent["x"]) == (7, 9, {"y": 1})
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(sent)
    assert all("tool_calls" not in message for message in sent["messages"])


@pytest.mark.parametrize("small", [True, False])
def test_messages_are_turned_one_by_one(small: bool) -> None:
    """What is sent is the system messages, the tools' messages, then every message by itself: it can be counted so."""
    body = {"messages": [*session(3), {"role": "assistant", "content": "Done."}], "tools": TOOLS}
    messages = parse_request(body, "openai.chat").messages
    turned = [written(message, small=small) for message in messages]
    expected = [turned[0], *tools_written(TOOLS, small=small), *turned[1:]]
    sent = [(message["role"], message["content"]) for message in prompted_request(body, small=small)["messages"]]
    assert sent == expected


def test_no_tools_no_protocol() -> None:
    """Without tools nothing is added and the reply is free."""
    body = prompted_request({"messages": [{"role": "user", "content": "hi"}]}, small=True)
    assert body == {"messages": [{"role": "user", "content": "hi"}]}


def test_small_model_is_offered_words_of_the_user() -> None:
    """A small model picks its argument among the words of the user's message, for each tool that takes one text."""
    body = {
        "messages": [{"role": "user", "content": "搜索 TODO 关键词"}],
        "tools": [*TOOLS, WRITE, tool("recall", "handle")],
    }
    *calls, talk = schema_of(prompted_request(body, small=True))["anyOf"]
    assert [offer["properties"]["tool"]["const"] for offer in calls] == [
        "search text", "list files", "read file", "run command",
    ]  # fmt: skip
    assert all(offer["properties"]["argument"] == {"enum": ["TODO"]} for offer in calls)
    assert list(calls[0]["properties"]) == ["argument", "tool"]
    assert talk["properties"]["tool"] == {"const": "talk"}


def test_after_a_result_lines_are_offered() -> None:
    """After a result the model may answer with lines that stand in it, or make another call; not the same again."""
    lines = "\n".join(f"src/a{n}.py:{n}:TODO {n}" for n in range(12))
    messages = [
        {"role": "user", "content": "Find TODO"},
        chat_call("grep", {"pattern": "TODO"}, "c"),
        {"role": "tool", "tool_call_id": "c", "content": f"{lines}\n[12 matching lines]"},
    ]
    *calls, answer = schema_of(prompted_request({"messages": messages, "tools": TOOLS}, small=True))["anyOf"]
    groups = [slot["enum"] for slot in answer["properties"]["lines"]["prefixItems"]]
    assert [line for group in groups for line in group] == lines.split("\n") and len(groups) == 5
    assert all("12" in sentence for sentence in answer["properties"]["text"]["enum"])
    assert [offer["properties"]["tool"]["const"] for offer in calls] == ["read file"]
    assert "TODO" not in calls[0]["properties"]["argument"]["enum"]
    assert "src/a0.py" in calls[0]["properties"]["argument"]["enum"]


@pytest.mark.parametrize("small", [True, False])
def test_tool_choice_is_kept(small: bool) -> None:
    """`none` leaves only an answer, `required` only calls, a named function only that one."""
    messages = [{"role": "user", "content": "Find TODO"}]

    def names(choice: object) -> list[Any]:
        schema = schema_of(prompted_request({"messages": messages, "tools": TOOLS, "tool_choice": choice}, small=small))
        offers = schema.get("anyOf", [schema])
        return [offer["properties"].get("tool", {}).get("const") for offer in offers]

    assert names("none") == (["talk"] if small else [None])
    assert len(names("required")) == 4 and names("required")[-1] not in ("talk", None)
    named = names({"type": "function", "function": {"name": "read"}})
    assert named == (["read file"] if small else ["read"])


def test_schemas_lose_what_grammars_cannot_hold() -> None:
    """Keywords that llama.cpp refuses or ignores are left out of the reply's schema; argument names never are."""
    odd = tool("odd", "pattern")
    offers = schema_of(prompted_request({"messages": session(0), "tools": [odd]}, small=False))["anyOf"]
    assert offers[0]["properties"]["arguments"]["properties"] == {"pattern": {"type": "string"}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("搜索 TODO 关键词", ["TODO"]),
        ("Search the project for the keyword TODO", ["TODO"]),
        ("在代码里查找登录函数", ["登录函数"]),
        ("运行命令 make test", ["make test"]),
        ("Read `my notes.txt` please", ["my notes.txt", "notes.txt"]),
        ("find the TODOs here", ["TODO"]),
        ("find TODO FIXME", ["TODO FIXME", "TODO", "FIXME"]),
        ("List **/*.css and src/*.ts.", ["**/*.css", "src/*.ts"]),
        ("你好", []),
        ("", []),
    ],
)
def test_words_offered(text: str, words: list[str]) -> None:
    """Words that name something are offered, whole runs and quotes too; words that only ask are not."""
    assert words_of(text) == words


@given(st.text(max_size=300))
def test_offers_stand_in_the_text(text: str) -> None:
    """Whatever the text, what is offered stands in it (runs of words with single spaces), and nothing raises."""
    squeezed = " ".join(text.split())
    for word in words_of(text):
        assert word in text or word in squeezed
    for path in paths_of(text):
        assert path in text
    for line in (line for group in line_groups(lines_of(text)) for line in group):
        assert line in text


def test_huge_results_are_offered_in_part() -> None:
    """Of a result of very many lines a bounded, even choice is offered; how many there are is said all the same."""
    text = "\n".join(f"a.py:{n}:{'x' * 500}" for n in range(50_000))
    lines = lines_of(f"{text}\n[a notice]")
    offered = [line for group in line_groups(lines) for line in group]
    assert len(lines) == 50_000 and len(offered) == 400 and max(map(len, offered)) == 160
    assert all(line in text for line in offered) and int(offered[-1].split(":")[1]) > 49_000


def test_replies_of_the_small_form() -> None:
    """A call names the tool and its argument; picked lines become a list; what is no JSON is text."""
    called = read_reply('{"argument": "TODO", "tool": "search text"}', TOOLS, small=True)
    assert (called.name, json.loads(called.arguments)) == ("grep", {"pattern": "TODO"})
    assert called.message("c1")["tool_calls"][0]["id"] == "c1"
    picked = read_reply('{"text": "Two:", "lines": ["a `b`", "c"]}', TOOLS, small=True)
    assert picked.text == "Two:\n- a `b`\n- `c`"
    assert read_reply('{"argument": "-", "tool": "talk", "text": "Hi \\"you\\""}', TOOLS, small=True).text == 'Hi "you"'
    assert read_reply("plain words", TOOLS, small=True).text == "plain words"
    assert read_reply('{"argument": "-", "tool": "talk", "text": "cut of', TOOLS, small=True).text == "cut of"


def test_replies_of_the_full_form() -> None:
    """The full form gives any arguments, and answers as text."""
    called = read_reply('{"tool": "grep", "arguments": {"pattern": "a", "limit": 3}}', TOOLS, small=False)
    assert (called.name, json.loads(called.arguments)) == ("grep", {"pattern": "a", "limit": 3})
    assert read_reply('{"answer": "yes\\n"}', TOOLS, small=False).text == "yes\n"


def test_history_reads_as_the_model_wrote_it() -> None:
    """A call and an answer of picked lines go back as the JSON they were, so that cached tokens stay cached."""
    raw = '{"text": "5 of the 12 lines of the result:", "lines": ["a.py:1:x", "b `q`"]}'
    answer = read_reply(raw, TOOLS, small=True).message("c")
    (message,) = parse_request({"messages": [answer]}, "openai.chat").messages
    assert written(message, small=True) == ("assistant", raw)
    raw = '{"argument": "TODO", "tool": "search text"}'
    (message,) = parse_request({"messages": [read_reply(raw, TOOLS, small=True).message("c")]}, "openai.chat").messages
    assert written(message, small=True) == ("assistant", raw)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    ['"text": "', "\\", '"}', "😀\u0000"]
)


@given(
    st.sampled_from(["talk", "lines", "answer", "call"]), TEXTS, st.lists(TEXTS, max_size=3), st.booleans(), st.data()
)
def test_streamed_text_is_the_whole_text(
    form: str, text: str, lines: list[str], ascii_only: bool, data: st.DataObject
) -> None:
    """However the pieces fall, the text shown while a reply streams is the text of the finished reply."""
    forms: dict[str, dict[str, Any]] = {
        "talk": {"argument": "-", "tool": "talk", "text": text},
        "lines": {"text": text, "lines": lines},
        "answer": {"answer": text},
        "call": {"argument": text, "tool": "search text"},
    }
    raw = json.dumps(forms[form], ensure_ascii=ascii_only)
    reader = AnswerReader()
    shown = ""
    at = 0
    while at < len(raw):
        size = data.draw(st.integers(1, 9))
        shown += reader.feed(raw[at : at + size])
        at += size
    assert shown == ("" if form == "call" else read_reply(raw, TOOLS, small=form != "answer").text)


class Recorded:
    """A provider that answers with one text in pieces and keeps the body it was asked with."""

    name = "recorded"
    api = "openai.chat"

    def __init__(self, text: str) -> None:
        self.text = text
        self.body: Mapping[str, Any] = {}
        self.closed = False

    async def stream(self, body: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        self.body = body
        for at in range(0, len(self.text), 3):
            yield TextDelta(self.text[at : at + 3])
        yield await self.complete(body)

    async def complete(self, body: Mapping[str, Any]) -> Done:
        message = {"role": "assistant", "content": self.text}
        return Done(message=message, api=self.api, finish_reason="stop", usage=Usage(input=10, output=5))

    async def close(self) -> None:
        self.closed = True


async def events_of(provider: PromptedProvider, body: Mapping[str, Any]) -> list[Event]:
    """All events of one answer."""
    async with aclosing(provider.stream(body)) as events:
        return [event async for event in events]


def run(provider: PromptedProvider, body: Mapping[str, Any]) -> list[Event]:
    """The same from ordinary code."""
    import asyncio

    return asyncio.run(events_of(provider, body))


def test_provider_makes_calls() -> None:
    """A call in the model's JSON comes out as a native one: no text, a delta, a finish reason, the usage kept."""
    inner = Recorded('{"argument": "TODO", "tool": "search text"}')
    delta, done = run(PromptedProvider(inner, small=True), {"messages": session(0), "tools": TOOLS})
    assert isinstance(delta, ToolCallDelta) and isinstance(done, Done) and isinstance(done.message, dict)
    assert (delta.name, json.loads(delta.arguments)) == ("grep", {"pattern": "TODO"})
    assert done.finish_reason == "tool_calls" and done.usage.input == 10
    assert done.message["tool_calls"][0]["id"] == delta.id
    assert "tools" not in inner.body and "response_format" in inner.body


def test_provider_streams_answers() -> None:
    """An answer streams as it is written and adds up to the message that is kept."""
    inner = Recorded('{"text": "Two lines:", "lines": ["a", "b"]}')
    *deltas, done = run(PromptedProvider(inner, small=True), {"messages": session(1), "tools": TOOLS})
    texts = [event.text for event in deltas if isinstance(event, TextDelta)]
    assert isinstance(done, Done) and isinstance(done.message, dict)
    assert len(texts) > 2 and "".join(texts) == done.message["content"] == "Two lines:\n- `a`\n- `b`"


def test_ids_are_never_used_twice() -> None:
    """The same call made twice has two ids."""
    provider = PromptedProvider(Recorded('{"argument": "TODO", "tool": "search text"}'), small=True)
    ids = {run(provider, {"messages": session(0), "tools": TOOLS})[0].id for _ in range(20)}  # type: ignore[union-attr]
    assert len(ids) == 20


def test_brim_messages_are_written_too() -> None:
    """Messages made by brim are written like those that came over the wire."""
    made: list[Message] = [
        system("s"),
        user("u"),
        assistant("", call("grep", {"pattern": "x"}, id="1")),
        result("1", "r"),
    ]
    assert [written(message, small=True)[0] for message in made] == ["system", "user", "assistant", "user"]
    assert written(made[2], small=True)[1] == '{"argument": "x", "tool": "search text"}'
