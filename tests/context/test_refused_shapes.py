"""Shapes that providers answer with a 400, taken from what users of other clients reported: repaired, and said so."""

from __future__ import annotations

import json
from typing import Any

import pytest

import brim
from brim.budget.usage import parse_usage
from brim.formats import parse_message
from brim.formats.dialects import violations
from shared_bodies import MODES, answered, called, prepared, returned, said, text_of, used

Body = dict[str, Any]
CLAUDE, GPT = "claude-sonnet-4-5", "gpt-5"
every_mode = pytest.mark.parametrize("mode", MODES)


def claude(messages: list[Body], **more: Any) -> Any:
    body = {"model": CLAUDE, "max_tokens": 100, "messages": messages}
    return brim.prepare(body, api="anthropic.messages", **more)


def responses(items: list[Body], **more: Any) -> Any:
    return brim.prepare({"model": GPT, "input": items}, api="openai.responses", **more)


def search(id: str, *, result: bool = True, call: bool = True) -> list[Body]:
    blocks: list[Body] = []
    if call:
        blocks.append({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "q"}})
    if result:
        blocks.append({"type": "web_search_tool_result", "tool_use_id": id, "content": []})
    return blocks


# ---- Anthropic --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", ["call", "result"])
def test_server_tool_without_its_other_half(kept: str) -> None:
    """A search that was interrupted, or a result whose call is gone, is left out: the API refuses one without the other."""
    half = search("srv_1", call=kept == "call", result=kept == "result")
    messages = [said("user", "a"), said("assistant", [{"type": "text", "text": "ok"}, *half]), said("user", "b")]
    view = claude(messages)
    assert "srv_1" not in text_of(view.request) and view.request["messages"][1]["content"][0]["text"] == "ok"
    assert "provider runs" in view.plan["repairs"][0]["what"]
    whole = [said("user", "a"), said("assistant", search("srv_1")), said("user", "b")]
    assert not claude(whole).changed


@every_mode
def test_text_before_results(mode: str) -> None:
    """In a user message results come first: what the client put before or between them goes behind, word for word."""
    text = [{"type": "text", "text": each} for each in ("hold on", "and one more thing")]
    mixed = [text[0], returned("t1", "A"), text[1], returned("t2", "B")]
    messages = [said("user", "a"), said("assistant", [used("t1"), used("t2")]), said("user", mixed)]
    view = claude(messages, mode=mode)
    assert view.request["messages"][2]["content"] == [returned("t1", "A"), returned("t2", "B"), *text]
    assert "behind it" in view.plan["repairs"][0]["what"]
    more = claude([*messages, said("assistant", "ok"), said("user", "b")], mode=mode, previous=view.plan)
    assert more.request["messages"][:3] == view.request["messages"]


@pytest.mark.parametrize(
    "block", [{"thinking": "hm"}, {"thinking": "hm", "signature": ""}, {"type": "redacted_thinking"}]
)
def test_thinking_that_was_broken_off(block: Body) -> None:
    """Thinking without its signature is refused: its message goes without any, also where nothing else is in it. Models
    that sign nothing get theirs back."""
    broken = {"type": "thinking", **block}
    whole = {"type": "thinking", "thinking": "first", "signature": "S1"}
    said_too = [whole, broken, {"type": "text", "text": "ok"}]
    messages = [said("user", "a"), said("assistant", said_too), said("user", "b"), said("assistant", [broken])]
    messages += [said("user", "c"), said("assistant", [whole, used("t1")]), said("user", [returned("t1", "r")])]
    view = claude(messages)
    assert not violations(view.request, "anthropic.messages", "anthropic")
    sent = view.request["messages"]
    assert sent[1]["content"] == [{"type": "text", "text": "ok"}] and "hm" not in text_of(sent)
    assert sent[5] == messages[5]
    body = {"model": "deepseek-v4", "max_tokens": 100, "messages": messages}
    kept = brim.prepare(body, "anthropic.messages").request
    assert kept["messages"] == messages and not violations(kept, "anthropic.messages", "anthropic")


def test_more_cache_marks_than_are_taken() -> None:
    """Four blocks may be marked: of more, the last four stay; nothing else of the blocks changes."""
    mark = {"cache_control": {"type": "ephemeral"}}
    system = [{"type": "text", "text": "rules", **mark}]
    messages = [said("user", [{"type": "text", "text": "a", **mark}]), said("assistant", [used("t1") | mark])]
    messages += [said("user", [returned("t1", "r", **mark), {"type": "text", "text": "b", **mark}])]
    messages += [said("assistant", "c"), said("user", [{"type": "text", "text": "d", **mark}])]
    body = {"model": CLAUDE, "max_tokens": 100, "system": system, "messages": messages}
    before = brim.prepare({**body, "messages": messages[:3]}, "anthropic.messages")
    assert text_of(before.request).count("ephemeral") == 4
    view = brim.prepare(body, "anthropic.messages", previous=before.plan)
    assert not violations(view.request, "anthropic.messages", "anthropic")
    assert text_of(view.request).count("ephemeral") == 4
    assert view.request["system"] == [{"type": "text", "text": "rules"}]
    assert view.request["messages"][1:] == messages[1:]
    assert sum("cache mark" in each["what"] for each in view.plan["repairs"]) == 2


def test_empty_system_prompt() -> None:
    """A system prompt of nothing is left out."""
    for blank in ("", "  ", [{"type": "text", "text": ""}]):
        body = {"model": CLAUDE, "max_tokens": 100, "system": blank, "messages": [said("user", "a")]}
        view = brim.prepare(body, "anthropic.messages")
        assert not violations(view.request, "anthropic.messages", "anthropic") and "system" not in view.request


def test_server_tool_that_waits() -> None:
    """A paused search at the end of the history is to be gone on with; a program that called tools gets its result with a
    later message. Both stay, also while the conversation grows."""
    paused = [said("user", "a"), said("assistant", search("srv_1", result=False))]
    assert not claude(paused).changed
    program = {"type": "server_tool_use", "id": "srv_2", "name": "code_execution", "input": {"code": "x"}}
    inner = {**used("toolu_1"), "caller": {"type": "code_execution_20250825", "tool_id": "srv_2"}}
    outcome = {
        "type": "code_execution_tool_result",
        "tool_use_id": "srv_2",
        "content": {"type": "code_execution_result"},
    }
    messages = [said("user", "a"), said("assistant", [program, inner]), said("user", [returned("toolu_1", "42")])]
    messages += [said("assistant", [outcome, {"type": "text", "text": "42"}]), said("user", "b")]
    talk = brim.Conversation("anthropic.messages", body={"model": CLAUDE, "max_tokens": 10})
    for message in messages:
        talk.append(message)
        if message["role"] == "user":
            assert not talk.prepare().changed
    assert not claude(messages).changed


@pytest.mark.parametrize("value", ["x", None, ["a"]])
def test_tool_input_that_is_no_object(value: Any) -> None:
    """Anthropic takes an object as input and nothing else."""
    call = {"type": "tool_use", "id": "t", "name": "r", "input": value}
    view = claude([said("user", "a"), said("assistant", [call]), said("user", [returned("t", "x")])])
    assert isinstance(view.request["messages"][1]["content"][0]["input"], dict)
    assert view.plan["repairs"]


def test_insert_stays_a_block_of_its_own() -> None:
    """Clients send a text as a string once its cache mark has moved on; an insert before it stays where and what it was."""
    messages: list[Body] = []
    plan: Any = None
    before: list[Any] = []
    epoch = 0
    inserted = False
    for turn in range(24):
        topic = "zebrafish pigmentation locus XK-774" if turn in (1, 18) else f"topic{turn} filler{turn} thing"
        messages = [_unmarked(message) for message in messages]
        block = {"type": "text", "text": f"Tell me of {topic}", "cache_control": {"type": "ephemeral"}}
        messages = [*messages, said("user", [block])]
        view = claude(messages, window=2600, mode="auto", previous=plan)
        sent = [json.dumps(_unmarked(message), sort_keys=True) for message in view.request["messages"]]
        if before and view.plan.get("epoch", 0) == epoch:
            assert sent[: len(before)] == before
        plan, epoch, before = view.plan, view.plan.get("epoch", 0), sent
        inserted = inserted or "inserts" in plan
        messages = [*messages, said("assistant", f"{topic}: " + " ".join(f"word{turn}x{n}" for n in range(40)))]
    assert inserted


def _unmarked(message: Body) -> Body:
    content = message["content"]
    if isinstance(content, list):
        blocks = [{key: value for key, value in block.items() if key != "cache_control"} for block in content]
        return said(message["role"], blocks[0]["text"] if len(blocks) == 1 and "text" in blocks[0] else blocks)
    return message


# ---- Responses --------------------------------------------------------------------------------------------------


def test_ids_longer_than_the_api_takes() -> None:
    """Ids over 64 characters, or spelled as only another provider does, are replaced; pairs stay pairs."""
    items = [
        said("user", "a"),
        {"type": "message", "id": "m" * 400, "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
        {"type": "function_call", "id": "fc|1", "call_id": "c" * 80, "name": "r", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c" * 80, "output": "o"},
        said("user", "b"),
    ]
    view = responses(items)
    assert all(len(str(item.get(key, ""))) <= 64 for item in view.request["input"] for key in ("id", "call_id"))
    assert view.request["input"][2]["call_id"] == view.request["input"][3]["call_id"]
    assert not violations(view.request, "openai.responses", "openai-responses")


def test_blocks_of_the_wrong_role_and_output_that_is_an_object() -> None:
    """A block's type follows the role of its message; an output is a string or a list."""
    items: list[Body] = [
        {"role": "user", "content": [{"type": "output_text", "text": "a"}]},
        {"role": "assistant", "content": [{"type": "input_text", "text": "b", "x": 1}]},
        {"type": "function_call", "call_id": "c", "name": "r", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": {"rows": 3}},
        said("user", "c"),
    ]
    view = responses(items)
    assert not violations(view.request, "openai.responses", "openai-responses")
    assert view.request["input"][1]["content"] == [{"type": "output_text", "text": "b", "x": 1}]
    assert json.loads(view.request["input"][3]["output"]) == {"rows": 3}


# ---- chat -------------------------------------------------------------------------------------------------------


def test_calls_without_ids() -> None:
    """A server that gives its calls no id is answered in order; a result without one goes to the first open call."""
    calls = called("", "")
    view = brim.prepare(
        {"messages": [said("user", "a"), calls, answered("", "one"), answered("", "two"), said("user", "b")]}
    )
    assert not violations(view.request, "openai.chat", "openai")
    assert [m["content"] for m in view.request["messages"][2:4]] == ["one", "two"]
    nameless = {"role": "tool", "name": "read", "content": "R"}
    view = brim.prepare({"messages": [said("user", "a"), called("c1"), nameless, said("user", "b")]})
    assert view.request["messages"][2]["tool_call_id"] == "c1" and view.request["messages"][2]["content"] == "R"


@every_mode
@pytest.mark.parametrize("dialect", ["openai", "openai-strict", "mistral", "gemini"])
def test_more_calls_than_are_taken_back(mode: str, dialect: str) -> None:
    """Over 128 calls in one message are refused: they become several messages, each with its results behind it."""
    ids = [f"call{n:05}" for n in range(300)]
    calls = {**called(*ids, text="all of them"), "reasoning_content": "why"}
    ids_answered = [*reversed(ids[1:]), "unknown"]
    messages = [said("user", "a"), calls, *(answered(id, f"out of {id}") for id in ids_answered), said("user", "b")]
    view = prepared(messages, window=100_000, mode=mode, dialect=dialect)
    sent = view.request["messages"]
    assert [len(m["tool_calls"]) for m in sent if m.get("tool_calls")] == [128, 128, 44]
    assert [m["tool_call_id"] for m in sent if m["role"] == "tool"] == ids
    assert text_of(sent).count("all of them") == 1 and text_of(sent).count("why") == 1
    assert all(f"out of {id}" in text_of(sent) for id in ids[1:])
    again = prepared(messages, window=100_000, mode=mode, dialect=dialect, previous=view.plan)
    assert again.request == view.request
    small = prepared(messages, window=9_000, max_output=500, mode=mode, dialect=dialect)
    assert small.request["messages"][-1] == said("user", "b")


@pytest.mark.parametrize("dialect", ["openai", "openai-strict", "mistral", "gemini", "anthropic"])
def test_result_that_comes_late(dialect: str) -> None:
    """A result behind something else goes to its call, also where the API wants the call's id in another spelling."""
    for id in ("c1", "functions.read:0", "abcdefghi"):
        late: list[Body] = [said("user", "a"), called(id), said("assistant", "waiting"), answered(id, "OUT")]
        if dialect == "anthropic":
            late[1], late[3] = said("assistant", [used(id)]), said("user", [returned(id, "OUT")])
        view = prepared([*late, said("user", "b")], window=9_000, dialect=dialect)
        assert text_of(view.request).count("OUT") == 1 and "interrupted" not in text_of(view.request)
        first = prepared(late[:3], window=9_000, dialect=dialect)
        grown = prepared([*late, said("user", "b")], window=9_000, dialect=dialect, previous=first.plan)
        assert text_of(grown.request).count("OUT") == 1 and "interrupted" not in text_of(grown.request)


@pytest.mark.parametrize("name", ["", None])
def test_calls_without_names(name: Any) -> None:
    """A call that came without a name gets one: every API refuses the history otherwise. Its result stays with it."""
    call = called("c12345678", name=name)
    for dialect in ("openai", "openai-strict", "mistral", "gemini"):
        prepared([said("user", "a"), call, answered("c12345678", "OUT")], window=9_000, dialect=dialect)
    block = {**used("t1"), "name": name}
    view: Any = claude([said("user", "a"), said("assistant", [block]), said("user", [returned("t1", "OUT")])])
    assert not violations(view.request, "anthropic.messages", "anthropic") and "OUT" in text_of(view.request)
    item = {"type": "function_call", "call_id": "c1", "name": name, "arguments": "{}"}
    for each in (item, {key: value for key, value in item.items() if key != "name"}):
        view = responses([said("user", "a"), each, {"type": "function_call_output", "call_id": "c1", "output": "OUT"}])
        assert not violations(view.request, "openai.responses", "openai-responses")
        assert view.request["input"][1]["name"] == "unnamed"


def test_empty_list_of_calls() -> None:
    """`tool_calls: []` is refused as too short; null is taken, and stays."""
    view = brim.prepare(
        {"messages": [said("user", "a"), {**said("assistant", "x"), "tool_calls": []}, said("user", "b")]}
    )
    assert view.request["messages"][1] == said("assistant", "x")
    null = [said("user", "a"), {**said("assistant", "x"), "tool_calls": None}, said("user", "b")]
    assert not brim.prepare({"messages": null}).changed


@pytest.mark.parametrize("arguments", ["{bad", '["x"]', '"str"', "null", '{"a": 1}{"b": 2}'])
@pytest.mark.parametrize("api", ["openai.chat", "openai.responses"])
def test_arguments_that_are_no_object(api: str, arguments: str) -> None:
    """Broken arguments are put into an object, whole: a server that parses them would refuse the session from then on."""
    if api == "openai.chat":
        view: Any = brim.prepare(
            {"messages": [said("user", "a"), called("c", arguments=arguments), answered("c", "r"), said("user", "b")]}
        )
        sent = view.request["messages"][1]["tool_calls"][0]["function"]["arguments"]
    else:
        call = {"type": "function_call", "call_id": "c", "name": "r", "arguments": arguments}
        view = responses([said("user", "a"), call, {"type": "function_call_output", "call_id": "c", "output": "r"}])
        sent = view.request["input"][1]["arguments"]
    assert isinstance(json.loads(sent), dict)
    assert arguments == "null" or arguments.strip('{}["]').split('"')[0][:3] in sent


def test_no_arguments_at_all() -> None:
    """Nothing in place of arguments stays nothing at OpenAI, which sends it itself; a chat template gets an object."""
    messages = [
        said("user", "a"),
        called("c12345678", arguments=""),
        answered("c12345678", "r"),
        said("assistant", "x"),
    ]
    assert not brim.prepare({"model": "gpt-4o", "messages": messages}).changed
    view = brim.prepare({"model": "local/x", "messages": messages})
    assert view.request["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize("dialect", ["openai-strict", "mistral"])
@every_mode
def test_system_messages_where_one_is_taken(mode: str, dialect: str) -> None:
    """Leading system messages become one; a later one is sent in the user's place, and no pass ever takes it."""
    messages = [said("system", "FIRST RULE"), said("system", "SECOND RULE")]
    for turn in range(20):
        messages += [said("user", f"q{turn} " + "word " * 60), said("assistant", "fine " * 60)]
        if turn == 3:
            messages.append(said("system", "LATER RULE"))
    messages.append(said("user", "end"))
    body = {"model": "x", "messages": messages}
    for recall_tool in (False, True):
        view = brim.prepare(
            body, window=1300, max_output=100, mode=mode, settings={"dialect": dialect}, recall_tool=recall_tool
        )
        first = view.request["messages"][0]
        assert first["role"] == "system" and "FIRST RULE\n\nSECOND RULE" in first["content"]
        assert "LATER RULE" in text_of(view.request)
        assert not recall_tool or "call recall" in first["content"]
        assert not violations(view.request, "openai.chat", dialect)
        for fate in view.plan["fates"]:
            assert brim.recall(fate["handle"], body)


@every_mode
@pytest.mark.parametrize("dialect", ["openai", "openai-strict", "mistral", "gemini"])
def test_system_message_behind_what_was_left_out(mode: str, dialect: str) -> None:
    """Where the start of a history without a user goes, a system message that stays is no user: a line of brim's is first."""
    messages = [said("system", "RULES"), said("assistant", "word " * 600), said("developer", "ALSO A RULE")]
    messages += [called("c12345678"), answered("c12345678", "line of output\n" * 200)]
    view = prepared(messages, window=500, max_output=50, mode=mode, dialect=dialect)
    sent = text_of(view.request)
    assert "RULES" in sent and "ALSO A RULE" in sent and "word word word" not in sent
    first = prepared(messages[:3], window=500, max_output=50, mode=mode, dialect=dialect)
    grown = [*messages[:3], called("c12345678"), answered("c12345678", "short")]
    then = prepared(grown, window=500, max_output=50, mode=mode, dialect=dialect, previous=first.plan)
    assert then.plan.get("epoch", 0) == 0 and "short" in text_of(then.request)
    assert then.request["messages"][: len(first.request["messages"])] == first.request["messages"]


@pytest.mark.parametrize("dialect", ["openai-strict", "mistral"])
def test_neighbours_of_one_role(dialect: str) -> None:
    """Two messages of one role in a row, or an assistant first, get a line between them where roles must alternate."""
    for roles in ("uu", "uaau", "au", "suu", "sau"):
        names = {"u": "user", "a": "assistant", "s": "system"}
        messages = [said(names[role], f"{role}{place}") for place, role in enumerate(roles)]
        view = brim.prepare({"model": "x", "messages": messages}, settings={"dialect": dialect})
        assert not violations(view.request, "openai.chat", dialect), roles
        assert all(message["content"] in text_of(view.request) for message in messages)


# ---- counting ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [said("user", [{"type": "text", "text": "hello"}, {"type": "image_url", "image_url": None}])]},
        {"messages": [{**said("assistant", "hello"), "tool_calls": None}]},
        {"messages": [{**said("assistant", None), "tool_calls": [{"id": "a", "type": "function", "function": None}]}]},
        {"messages": [said("user", "hi")], "tools": [{"name": "a", "input_schema": None}]},
        {
            "messages": [said("user", "hi")],
            "tools": [{"type": "function", "function": {"name": "b", "parameters": None}}],
        },
        {
            "messages": [
                {**said("assistant", None), "tool_calls": [{"id": "a", "function": {"name": "r", "arguments": None}}]}
            ]
        },
    ],
)
def test_nulls_are_counted_not_raised(body: Body) -> None:
    """A null where a client left something out is counted as nothing; the rest of the body counts as ever."""
    assert brim.count(body) > 3


def test_what_is_easily_forgotten_counts() -> None:
    """Call arguments, reasoning, search results and structured results all take room in the window."""
    words = "word " * 2000
    bodies: list[tuple[str, Body]] = [
        ("openai.chat", {"messages": [called("a", arguments=json.dumps({"body": words}))]}),
        ("openai.chat", {"messages": [{**said("assistant", "x"), "reasoning_content": words}]}),
        (
            "openai.responses",
            {"input": [{"type": "mcp_call", "id": "m", "name": "t", "arguments": "{}", "output": words}]},
        ),
        ("openai.responses", {"input": [{"type": "shell_call_output", "call_id": "c", "output": [{"stdout": words}]}]}),
        ("anthropic.messages", {"messages": [said("user", [returned("t", [{"type": "resource", "text": words}])])]}),
    ]
    for api, body in bodies:
        assert brim.count(body, api=api) > 1_800, body


def test_thoughts_counted_within_the_candidates() -> None:
    """Some Gemini endpoints count the thoughts among the candidates: where prompt and candidates are the total, once."""
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 120, "thoughtsTokenCount": 100}
    assert parse_usage({**usage, "totalTokenCount": 130}).output == 120
    assert parse_usage({**usage, "totalTokenCount": 230}).output == 220
    assert parse_usage(usage).output == 220


# ---- epochs and recall ------------------------------------------------------------------------------------------


def test_epoch_that_cannot_reach_its_target_is_not_repeated() -> None:
    """Where the system prompt alone is near the trigger, a new epoch comes once a tenth of the budget has, not with every
    request: the prefix stands in between, and the summarizer is left in peace."""
    asked: list[int] = []

    def write(_: Any) -> str:
        asked.append(1)
        return "SUMMARY"

    messages = [said("system", "rule " * 900)]
    for turn in range(20):
        messages += [said("user", f"q{turn} " + "w " * 60), said("assistant", "a " * 60)]
    plan: Any = None
    epochs = []
    for turn in range(8):
        messages = [*messages, said("user", f"go on {turn}")]
        body = {"model": "gpt-4o", "messages": messages}
        view = brim.prepare(
            body, window=1600, max_output=100, mode="compact", previous=plan, settings={"summarizer": write}
        )
        plan = view.plan
        epochs.append(plan.get("epoch", 0))
        messages.append(said("assistant", "ok"))
    assert epochs[-1] <= 1 and len(asked) <= 8
    assert plan.get("floor", 0) > 0


def test_runs_with_the_same_ends_are_told_apart() -> None:
    """Where many runs begin and end alike, a handle gives back the run it was made for, also when the history given has
    its places moved by one: it was prepared with the recall tool's notice before it."""
    items: list[Body] = []
    for step in range(40):
        items.append({"role": "user", "content": "next"})
        for call in range(2):
            items.append({"type": "function_call", "call_id": f"c{step}_{call}", "name": "shot", "arguments": "{}"})
        items.append(
            {"type": "function_call_output", "call_id": f"c{step}_0", "output": f"step {step} " + "word " * 30}
        )
        items.append({"type": "function_call_output", "call_id": f"c{step}_1", "output": "done"})
    body = {"model": GPT, "input": items}
    view = brim.prepare(body, api="openai.responses", mode="full", window=2500, max_output=100, recall_tool=True)
    text = "".join(brim.recall(fate["handle"], body, api="openai.responses") for fate in view.plan["fates"])
    for step in range(40):
        assert f"step {step} word" in text or f"step {step} word" in text_of(view.request)


def test_empty_content_in_a_strict_template() -> None:
    """A chat template takes no empty content either: a tool without output says so, at hosted OpenAI it stays empty."""
    messages = [said("user", "a"), called("c1"), answered("c1", ""), said("assistant", "x"), said("user", "b")]
    assert not brim.prepare({"model": "gpt-4o", "messages": messages}).changed
    view = brim.prepare({"model": "local/x", "messages": messages})
    assert not violations(view.request, "openai.chat", "openai-strict")
    assert view.request["messages"][2]["content"] == "(no output)"


def test_calls_of_another_api_are_not_repaired_for_their_form() -> None:
    """A history that a chat model began goes to Anthropic's API without a word about arguments that are an object."""
    conversation = brim.Conversation("anthropic.messages", model="claude-sonnet-4-5", body={"max_tokens": 100})
    chat = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": f"c{n}", "type": "function", "function": {"name": "ls", "arguments": arguments}}
            for n, arguments in enumerate(['{"path": "."}', "", "{broken"])
        ]},
        *({"role": "tool", "tool_call_id": f"c{n}", "content": "a.py"} for n in range(3)),
    ]  # fmt: skip
    for message in chat:
        for each in parse_message(message, "openai.chat"):
            conversation.append(each)
    prepared = conversation.prepare()
    said = [line for line in prepared.report if "arguments of call" in str(line)]
    assert len(said) == 1 and "c2" in str(said[0])
    blocks = [block for message in prepared.request["messages"] for block in message["content"] if "input" in block]
    assert [block["input"] for block in blocks][:2] == [{"path": "."}, {}]
    assert all(isinstance(block["input"], dict) for block in blocks)


def test_approval_of_a_server_is_not_empty() -> None:
    """Yes or no to a call of an MCP server has no text, and lacks nothing."""
    ask = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{}"}
    yes = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    items = [said("user", "a"), ask, yes]
    view = responses(items)
    assert not view.changed and view.request["input"] == items


@pytest.mark.parametrize(
    "call",
    [
        {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch"},
        {"type": "shell_call", "action": {"commands": ["ls"]}},
        {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}, "status": "completed"},
        {"type": "computer_call", "action": {"type": "screenshot"}, "pending_safety_checks": [], "status": "completed"},
        {"type": "function_call", "name": "read", "arguments": "{}"},
    ],
)
def test_stand_in_of_the_kind_the_call_wants(call: Body) -> None:
    """A call that was interrupted is answered by an item of its own kind: a function's output answers a function alone."""
    call = {**call, "id": "x_1", "call_id": "c1"}
    view = responses([said("user", "a"), call, said("user", "b")])
    answer = view.request["input"][2]
    assert (answer["type"], answer["call_id"]) == (f"{call['type']}_output", "c1")
    assert call["type"] == "computer_call" or "interrupted" in text_of(answer)
    assert not violations(view.request, "openai.responses", "openai-responses")
    late = {"type": f"{call['type']}_output", "call_id": "c1", "output": answer["output"]}
    assert responses([said("user", "a"), call, said("user", "b"), late]).request["input"][2] == late


def test_question_about_a_server_needs_no_answer() -> None:
    """A question whether a server's tool may run is not a call that lost its result: nothing answers it but the user."""
    ask = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{}"}
    assert not responses([said("user", "a"), ask, said("user", "b")]).changed
