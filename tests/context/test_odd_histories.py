"""Histories no well-behaved client sends, plans that came back damaged, and numbers out of range."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import brim
from brim.budget.settings import DIALECTS as SETTABLE
from brim.errors import BrimError, ConfigError, ContextOverflow, RequestTooLarge, UsageError
from brim.formats import DIALECTS
from brim.formats.dialects import dialect_of, violations
from shared_bodies import MODES, answered, called, prepared, returned, said, text_of, used

Body = dict[str, Any]
every_mode = pytest.mark.parametrize("mode", MODES)
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
CLAUDE, GPT = "claude-sonnet-4-5", "gpt-5"


def responses(items: list[Body], **more: Any) -> Any:
    return brim.prepare({"model": GPT, "input": items, **more}, api="openai.responses")


def messages_api(messages: list[Body], **more: Any) -> Any:
    return brim.prepare({"model": CLAUDE, "max_tokens": 100, "messages": messages, **more}, api="anthropic.messages")


def shells(count: int, *, error: bool = False) -> list[Body]:
    """Responses items of a model that runs shell commands."""
    items: list[Body] = [{"role": "user", "content": "look around"}]
    for n in range(count):
        outcome = {"type": "exit", "exit_code": 1 if error and n == 0 else 0}
        items.append({"type": "shell_call", "id": f"sh_{n}", "call_id": f"c{n}", "action": {"commands": ["ls"]}})
        chunk = {"stdout": f"line {n} of it\n" * 60, "stderr": "warned", "outcome": outcome}
        items.append({"type": "shell_call_output", "call_id": f"c{n}", "output": [chunk]})
    return items


# ---- what a provider refuses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dialect", "model"), [("anthropic", CLAUDE), ("gemini", "gemini-2.5-pro")])
def test_history_that_begins_with_the_assistant(dialect: str, model: str) -> None:
    """A greeting by the assistant gets a line of brim's before it where the API wants the user first, and protects none."""
    messages = [said("assistant", "Hello, how can I help?"), said("user", "What is 2 + 2?")]
    api = "anthropic.messages" if dialect == "anthropic" else "openai.chat"
    view = brim.prepare({"model": model, "max_tokens": 50, "messages": messages}, api=api)
    assert not violations(view.request, api, dialect)
    assert view.request["messages"][1:] == messages
    assert "user's line" in view.plan["repairs"][0]["what"]
    again = brim.prepare({"model": model, "max_tokens": 50, "messages": messages}, api=api, previous=view.plan)
    assert again.request == view.request and again.plan.get("epoch", 0) == 0


def test_brims_own_line_is_no_last_user_message() -> None:
    """Where a strict template gets a line between two assistant messages, the user's own last message stays protected."""
    messages = [said("user", f"q{n} " + "word " * 80) for n in range(1)] + [said("assistant", "first part")]
    messages += [said("assistant", "second part " + "word " * 400) for _ in range(6)]
    view = prepared(messages, window=700, max_output=100, mode="full", dialect="openai-strict")
    assert messages[0]["content"] in text_of(view.request)


@pytest.mark.parametrize("content", [None, []])
@pytest.mark.parametrize("role", ["user", "assistant", "tool", "system"])
def test_content_that_is_not_there(role: str, content: Any) -> None:
    """Null or an empty list where content must be is filled, for OpenAI too; empty text stays as it is there."""
    messages = [said("user", "go"), called("a"), answered("a", "x"), said("user", "on")]
    at = {"user": 0, "tool": 2}.get(role)
    if at is None:
        messages.insert(0 if role == "system" else 3, said(role, content))
    else:
        messages[at] = {**messages[at], "content": content}
    view = brim.prepare({"model": "gpt-4o", "messages": messages})
    assert not violations(view.request, "openai.chat", "openai")
    assert view.plan["repairs"]
    empty = brim.prepare({"model": "gpt-4o", "messages": [said("user", ""), said("assistant", "")]})
    assert not empty.changed


@pytest.mark.parametrize("model", ["gpt-4o", "deepseek-reasoner", "mistral-large-latest", "gemini-2.5-pro"])
def test_chat_message_with_reasoning_alone(model: str) -> None:
    """An assistant message with reasoning fields and neither content nor calls gets content: servers refuse it otherwise."""
    thought = {"role": "assistant", "content": None, "reasoning_content": "hm"}
    view = brim.prepare({"model": model, "messages": [said("user", "a"), thought, said("user", "b")]})
    sent = next(m for m in view.request["messages"] if "reasoning_content" in m)
    assert sent["content"] and sent["reasoning_content"] == "hm"


def test_audio_and_refusals_are_content() -> None:
    """An assistant message that is only audio or a refusal is not empty, and stays as it came."""
    messages = [
        said("user", "a"),
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
        said("user", "b"),
    ]
    messages += [{"role": "assistant", "content": None, "refusal": "No."}, said("user", "c")]
    for model in ("gpt-4o", "gemini-2.5-pro"):
        assert not brim.prepare({"model": model, "messages": messages}).changed


def test_old_function_call_without_a_result() -> None:
    """The stand-in for the result of a `function_call` of the old kind is a function message, as that call wants it."""
    call = {"role": "assistant", "content": None, "function_call": {"name": "grep", "arguments": "{}"}}
    view = brim.prepare({"model": "gpt-4o", "messages": [said("user", "a"), call, said("user", "b")]})
    answer = view.request["messages"][2]
    assert answer["role"] == "function" and answer["name"] == "grep" and "interrupted" in answer["content"]
    assert not violations(view.request, "openai.chat", "openai")


def test_reasoning_that_nothing_follows() -> None:
    """Responses refuses a reasoning item without the item that has to follow it: it is left out, and the plan says so."""
    loose = {"type": "reasoning", "id": "rs_1", "summary": []}
    view = responses([said("user", "a"), loose, said("user", "b"), {**loose, "id": "rs_2"}])
    assert [item.get("type") for item in view.request["input"]] == [None, None]
    assert not violations(view.request, "openai.responses", "openai-responses")
    assert sum("reasoning" in each["what"] for each in view.plan["repairs"]) == 2


@pytest.mark.parametrize("api", ["openai.chat", "openai.responses", "anthropic.messages"])
def test_history_of_which_nothing_can_be_sent(api: str) -> None:
    """Where a client's own trimming left a result without its call and nothing else, no empty list is sent: providers refuse
    one. A user's line stands there until more comes."""
    system, lone = said("system", "be careful"), {"role": "tool", "tool_call_id": "c1", "content": "4 C"}
    body: Body = {"model": GPT, "messages": [system, lone]}
    if api == "openai.responses":
        body = {"model": GPT, "input": [{"type": "function_call_output", "call_id": "c1", "output": "4 C"}]}
    elif api == "anthropic.messages":
        body = {
            "model": CLAUDE,
            "max_tokens": 100,
            "system": "be careful",
            "messages": [said("user", [returned("c1", "4 C")])],
        }
    dialects = [d for d in DIALECTS if d not in ("anthropic", "openai-responses")] if api == "openai.chat" else [None]
    for dialect in dialects:
        view = brim.prepare(body, api, settings={"dialect": dialect})
        kept = view.request["input" if api == "openai.responses" else "messages"][-1]
        assert kept["role"] == "user" and not violations(view.request, api, dialect or dialect_of(body["model"], api))
        assert "nothing else" in view.plan["repairs"][-1]["what"]


@every_mode
@pytest.mark.parametrize("turns", [0, 1, 6])
@pytest.mark.parametrize("roles", ["su", "aaaaa", "uauau", "uauauauau"])
def test_no_recent_turns_kept(mode: str, turns: int, roles: str) -> None:
    """With `recent_rounds_kept` at 0 the question alone stays of the recent turns, also where there is no question yet."""
    names = {"s": "system", "u": "user", "a": "assistant"}
    messages = [said(names[role], f"{at} " + "some words here " * (90 if at else 10)) for at, role in enumerate(roles)]
    if roles == "aaaaa":  # one step, which no pass can make smaller
        with pytest.raises(ContextOverflow):
            prepared(messages, window=700, max_output=100, mode=mode, recent_rounds_kept=turns)
        return
    view = prepared(messages, window=700, max_output=100, mode=mode, recent_rounds_kept=turns)
    assert view.request["messages"][-1] == messages[-1]
    if turns == 0 and mode == "compact" and roles == "uauauauau":
        shown = text_of(view.request)
        assert all(f"{at} some words here some words here some" not in shown for at in range(1, 7))


def test_items_that_stand_twice() -> None:
    """Responses refuses an item id twice: a copy is left out, another item under the id goes without it, also when it
    comes in a later request."""
    first = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "one"}]}
    other = {**first, "content": [{"type": "output_text", "text": "two"}]}
    items = [said("user", "a"), first, said("user", "b")]
    assert not responses(items).changed
    view = responses([*items, first, said("user", "c"), other, said("user", "d")])
    assert text_of(view.request).count('"one"') == 1 and '"two"' in text_of(view.request)
    assert not violations(view.request, "openai.responses", "openai-responses")


def test_result_of_a_call_that_the_provider_keeps() -> None:
    """An output behind an item reference may answer the call that the reference stands for: it is not taken for an orphan."""
    items = [said("user", "weather?"), {"type": "item_reference", "id": "fc_1"}]
    items.append({"type": "function_call_output", "call_id": "call_1", "output": "sunny"})
    view = responses([*items, said("user", "thanks")])
    assert not view.changed
    orphan = {"type": "function_call_output", "call_id": "call_2", "output": "rain"}
    assert "rain" not in text_of(responses([*items, said("user", "thanks"), orphan]).request)


def test_blank_blocks_of_the_system_prompt() -> None:
    """Anthropic refuses an empty text block among the system blocks: it is left out, the others stay as they came."""
    rule = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    view = messages_api([said("user", "hi")], system=[{"type": "text", "text": " "}, rule])
    assert view.request["system"] == [rule]
    assert "system" not in messages_api([said("user", "hi")], system=[{"type": "text", "text": ""}]).request
    assert not messages_api([said("user", "hi")], system=[rule]).changed


def test_words_put_into_the_assistants_mouth() -> None:
    """Where the history ends with the assistant's words, Anthropic refuses white space and thinking at their end; anywhere
    else they stay."""
    signed = {"type": "thinking", "thinking": "hm", "signature": "s"}
    text = {"type": "text", "text": "The answer is "}
    view = messages_api([said("user", "a"), said("assistant", [text, signed])])
    assert view.request["messages"][1]["content"] == [{"type": "text", "text": "The answer is"}]
    earlier = [said("user", "a"), said("assistant", "words \n"), said("user", "b")]
    assert not messages_api(earlier).changed


@pytest.mark.parametrize("dialect", ["mistral", "openai-strict"])
@every_mode
def test_no_user_message_behind_a_tool_message(mode: str, dialect: str) -> None:
    """Where what stood between a result and the next question is left out, a line of brim's stands there instead."""
    messages: list[Body] = []
    for n in range(30):
        ids = f"{n:09d}"
        messages += [said("user", f"question {n} " + "why so " * 20), called(ids), answered(ids, "data " * 60)]
        messages.append(said("assistant", "well " * 200))
    messages.append(said("user", "and now?"))
    prepared(messages, window=2500, max_output=200, mode=mode, dialect=dialect)  # checks the rules of the dialect


# ---- left to the provider ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "body"),
    [
        ("openai.responses", {"previous_response_id": "resp_1"}),
        ("openai.responses", {"conversation": "conv_1"}),
        ("openai.responses", {"context_management": [{"type": "compaction", "compact_threshold": 1000}]}),
        ("anthropic.messages", {"thread": {"type": "continue", "previous_message_id": "msg_1"}}),
        ("anthropic.messages", {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}),
    ],
)
def test_history_the_provider_holds_or_edits_is_only_counted(api: str, body: Body) -> None:
    """A request that adds to what the provider holds, or asks it to compact or edit, goes out as it came, whatever its
    size: its results answer calls that are not in it."""
    if api == "openai.responses":
        body = {**body, "input": [{"type": "function_call_output", "call_id": "c", "output": "word " * 5000}]}
    else:
        body = {**body, "max_tokens": 10, "messages": [said("user", [returned("t", "word " * 5000)])]}
    for mode in MODES:
        view = brim.prepare(body, api=api, mode=mode, window=2000, recall_tool=True)
        assert not view.changed and view.request == body
        assert view.bill["used"] == brim.count(body, api) and view.bill["free"] < 0
        assert view.report[0]["pass"] == "left to the provider"
        assert brim.prepare(body, api=api, mode=mode, window=2000, previous=view.plan).request == body


def test_clearing_no_thinking_is_no_editing() -> None:
    """A request that asks the provider to keep all thinking is brim's to fit, like any other."""
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    with pytest.raises(ContextOverflow):
        brim.prepare(
            {"max_tokens": 10, "messages": [said("user", "word " * 5000)], "context_management": edits},
            api="anthropic.messages",
            window=2000,
        )


def test_conversation_the_provider_holds() -> None:
    """A `Conversation` whose body names an earlier response is only counted, too."""
    output = {"type": "function_call_output", "call_id": "c", "output": "x"}
    talk = brim.Conversation("openai.responses", body={"previous_response_id": "r"}, messages=[output])
    assert talk.prepare(window=2000).request["input"] == [output]
    assert talk.prepare(window=2000).plan["requests"] == 2


# ---- results that are no text -----------------------------------------------------------------------------------


@every_mode
def test_shell_output_is_text(mode: str) -> None:
    """What a shell call of Responses wrote is read as text: cut at lines, with its size, and the bill says what is sent."""
    view = brim.prepare({"model": GPT, "input": shells(20)}, api="openai.responses", mode=mode, window=2000)
    assert " 0 characters" not in text_of(view.request) and "line 0 of it" not in text_of(view.request)
    assert view.bill["used"] == brim.count(view.request, "openai.responses")
    for fate in view.plan["fates"]:
        assert "line" in brim.recall(fate["handle"], {"input": shells(20)}, api="openai.responses")


def test_shell_outcome_says_whether_it_failed() -> None:
    """A shell command that left with a non-zero code is a failed result, whatever it wrote; its text stays."""
    view = brim.prepare(
        {"model": GPT, "input": shells(20, error=True)}, api="openai.responses", mode="full", window=4500
    )
    rules = {fate["start"]: fate["kind"] for fate in view.plan["fates"]}
    assert rules.get(2) != "stub" and "stub" in rules.values()


def test_screenshot_costs_what_stands_in_its_place() -> None:
    """Only a picture can answer a computer call: what replaces a screenshot is counted as the picture it is."""
    big = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x08\0\0\0\x08\0" + b"\0" * 900).decode()
    items: list[Body] = [said("user", "click through")]
    for n in range(30):
        items.append({"type": "computer_call", "id": f"cu_{n}", "call_id": f"c{n}", "action": {"type": "screenshot"}})
        shot = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{big}"}
        items.append({"type": "computer_call_output", "call_id": f"c{n}", "output": shot})
    for mode in MODES:
        view = brim.prepare({"model": GPT, "input": items}, api="openai.responses", mode=mode, window=12_000)
        assert view.bill["used"] == brim.count(view.request, "openai.responses")
        assert not violations(view.request, "openai.responses", "openai-responses")


def test_what_a_result_held_beside_text_is_named() -> None:
    """A cut never takes a picture or an unknown block silently: the line in its place names it, also in a failed result."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
    found = {
        "type": "search_result",
        "source": "http://x",
        "title": "t",
        "content": [{"type": "text", "text": "w " * 900}],
    }
    messages: list[Body] = [said("user", "go")]
    for n in range(6):
        messages.append(said("assistant", [used(f"t{n}")]))
        content: Any = [found] if n == 0 else [{"type": "text", "text": "data " * 300}, picture]
        messages.append(said("user", [returned(f"t{n}", content, **({"is_error": True} if n == 0 else {}))]))
    for mode in MODES:
        view = brim.prepare(
            {"model": CLAUDE, "max_tokens": 100, "messages": messages}, api="anthropic.messages", mode=mode, window=1900
        )
        assert not violations(view.request, "anthropic.messages", "anthropic")
        text = text_of(view.request)
        assert " 0 characters" not in text and '"content": []' not in text
        for fate in view.plan["fates"]:
            assert brim.recall(fate["handle"], {"messages": messages}, api="anthropic.messages")
    stubbed = text_of(view.request)
    assert "1 image" in stubbed or "handle" not in stubbed


# ---- pins, bytes, the last rung ---------------------------------------------------------------------------------


@every_mode
@pytest.mark.parametrize("at", [1, 2, 3])
def test_pin_inside_a_step_holds_the_step(mode: str, at: int) -> None:
    """A pinned call or result is verbatim in every view, and its step stays with it, so that the request stays valid."""
    talk = brim.Conversation(model="gpt-4o", messages=[said("user", "q"), called("a", "b")])
    talk.extend([answered("a", "first " * 40), answered("b", "second " * 40)])
    pinned = talk.messages[at].wire
    for n in range(20):
        talk.extend([said("user", f"x{n} " + "word " * 60), said("assistant", "y " * 60)])
    talk.append(said("user", "end"))
    talk.pin(at)
    for window in (1500, 2500):
        view = talk.prepare(mode=mode, window=window)
        assert pinned in view.request["messages"]
        assert not violations(view.request, "openai.chat", "openai")


@every_mode
def test_bytes_are_brought_down_by_text_too(mode: str) -> None:
    """A request of nothing but text is brought under `max_request_bytes`; one that cannot be is an error, not sent."""
    messages: list[Body] = []
    for n in range(40):
        messages += [said("user", f"look {n} " + "a b c d " * 300), said("assistant", "ok " * 300)]
    messages.append(said("user", "which?"))
    settings = {"max_request_bytes": 30_000}
    view = brim.prepare({"model": "gpt-4o", "messages": messages}, window=10**6, mode=mode, settings=settings)
    assert len(json.dumps(view.request)) <= 30_000
    messages[-1] = said("user", "x" * 40_000)
    with pytest.raises(RequestTooLarge, match=r"40,.* bytes.*max_request_bytes is 30,000") as error:
        brim.prepare({"model": "gpt-4o", "messages": messages}, window=10**6, mode=mode, settings=settings)
    assert error.value.hint


def test_newest_pictures_together_over_the_bytes() -> None:
    """Pictures of one parallel step that are too many bytes together: the newest stay, the others become a line."""
    data = base64.b64encode(b"\x89PNG" + b"\0" * 75_000).decode()
    messages: list[Body] = [said("user", "go"), called(*"abcde")]
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    messages += [answered(id, [part]) for id in "abcde"]
    body = {"model": "gpt-4o", "messages": messages}
    view = brim.prepare(body, settings={"max_request_bytes": 250_000})
    assert len(json.dumps(view.request)) <= 250_000
    assert view.request["messages"][-1] == messages[-1]
    assert not violations(view.request, "openai.chat", "openai")


def test_summary_goes_before_the_request_fails() -> None:
    """A request that would fit without its summary is sent with a smaller one, or without: only what cannot go overflows."""
    talk = brim.Conversation(model="gpt-4o")
    for n in range(12):
        talk.extend([said("user", f"Always keep rule {n}. " + "word " * 60), said("assistant", "done " * 60)])
    talk.append(said("user", "next"))
    assert "summary" in talk.prepare(mode="compact", window=2000, max_output=100).plan
    talk.extend([said("assistant", "ok"), said("user", "word " * 1860)])
    view = talk.prepare(mode="compact", window=2000, max_output=100)
    assert any(line["pass"] == "shorten_summary" for line in view.report)
    assert view.request["messages"][-1]["content"] == "word " * 1860


# ---- what comes back from outside -------------------------------------------------------------------------------


def long_chat(turns: int = 12) -> list[Body]:
    messages = [said("system", "sys")]
    for n in range(turns):
        messages += [said("user", f"q{n} " + "word " * 50), called(f"c{n}"), answered(f"c{n}", f"data {n} " * 60)]
        messages.append(said("assistant", f"ok {n}"))
    return [*messages, said("user", "last")]


@every_mode
def test_rewind_to_a_message_that_was_cut(mode: str) -> None:
    """After a rewind the last user message is another one: it is whole again, whatever the plan before did to it."""
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    messages = long_chat()
    for at in (1, 9, 21):
        messages[at] = said("user", [{"type": "text", "text": messages[at]["content"]}, picture])
    body = {"model": "gpt-4o", "messages": messages}
    plan = brim.prepare(body, mode=mode, window=1200).plan
    assert plan["fates"]
    for at in range(1, len(messages), 4):
        cut = {**body, "messages": messages[: at + 1]}
        view = brim.prepare(cut, mode=mode, window=1200, previous=plan)
        assert view.request["messages"][-1] == messages[at]
        assert not violations(view.request, "openai.chat", "openai")


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("end", ["start", "end"])
def test_plan_whose_places_were_moved(end: str, change: int) -> None:
    """A plan that no longer fits its history is not believed: the view is valid, or the error says what is wrong."""
    body = {"model": "gpt-4o", "messages": long_chat()}
    good = brim.prepare(body, mode="full", window=1500).plan
    assert len(good["fates"]) > 3
    for at in range(len(good["fates"])):
        plan = json.loads(json.dumps(good))
        plan["fates"][at][end] += change
        try:
            view = brim.prepare(body, mode="full", window=1500, previous=plan)
        except UsageError:
            continue
        assert not violations(view.request, "openai.chat", "openai")
        assert view.request["messages"][-1]["content"] == "last"
        for fate in view.plan["fates"]:
            assert brim.recall(fate["handle"], body)


@pytest.mark.parametrize("previous", [5, "x", [], {}, {"mode": "full", "line": "x", "sent": {"count": -1}}])
def test_what_is_no_plan(previous: Any) -> None:
    """Anything else in place of a plan is a usage error that says what to pass."""
    with pytest.raises(UsageError, match="not a plan") as error:
        brim.prepare({"messages": long_chat()}, previous=previous)
    assert "previous" in str(error.value.hint)


@pytest.mark.parametrize("model", ["mistral-large-latest", "gemini-2.5-pro", "gpt-4o"])
@every_mode
def test_recall_finds_what_was_repaired(mode: str, model: str) -> None:
    """Every handle of a plan gives the originals back, also where an end of the run was filled, added or renamed."""
    messages: list[Body] = []
    for n in range(20):
        messages += [said("user", f"find {n} " + "word " * 30), called(f"call_{n}", f"more_{n}")]
        messages.append(answered(f"more_{n}", "" if n % 2 else f"result {n} " * 30))
        messages.append(said("assistant", None if n % 3 == 0 else f"done {n}"))
    body = {"model": model, "messages": [*messages, said("user", "last")]}
    view = brim.prepare(body, mode=mode, window=2500)
    assert view.plan["fates"]
    text = "".join(brim.recall(fate["handle"], body) for fate in view.plan["fates"])
    for n in range(20):
        assert f"find {n} " in text or f"find {n} " in text_of(view.request)
    assert "interrupted" not in text


# ---- numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, True, "4096", 1.5, float("nan"), [1]])
def test_window_that_is_none(value: Any) -> None:
    """A window is a whole number of tokens above 0; anything else is a usage error with the value and what to give."""
    with pytest.raises(UsageError, match="window is") as error:
        brim.prepare({"messages": [said("user", "hi")]}, window=value)
    assert "tokens" in str(error.value.hint)


@pytest.mark.parametrize("value", [-5, True, "50", 1.5])
def test_output_that_is_none(value: Any) -> None:
    """So is the reserve for the reply; a nonsense figure in the body is left to the provider and reserves the default."""
    with pytest.raises(UsageError, match="max_output is"):
        brim.prepare({"messages": [said("user", "hi")]}, max_output=value)
    body = {"messages": [said("user", "hi")], "max_tokens": -5}
    assert brim.prepare(body, window=4000).bill["reserved"] == 1000


@pytest.mark.parametrize("value", ["now", float("nan"), 1_900_000_000_000, True])
def test_time_that_is_none(value: Any) -> None:
    """`now` is Unix seconds: no text, no milliseconds."""
    with pytest.raises(UsageError, match="now is"):
        brim.prepare({"messages": [said("user", "hi")]}, now=value)


@pytest.mark.parametrize(
    "values",
    [
        {"margin": 1.0}, {"margin": -0.5}, {"recent_rounds_kept": -1}, {"error_keep_tokens": -1}, {"price_read": -1},
        {"price_read": float("nan")}, {"cache_life_s": -4}, {"summarizer_window": 0}, {"summarizer": "gpt-4o"},
        {"relevance": 5}, {"dialect": "claude"}, {"cap_tokens": {"read": 0}}, {"expire_soft_s": -1}, 5, "full",
    ],
)  # fmt: skip
def test_settings_out_of_range(values: Any) -> None:
    """A setting out of its range is refused by name, with what is allowed, before anything is planned."""
    with pytest.raises(ConfigError) as error:
        brim.prepare({"messages": [said("user", "hi")]}, settings=values)
    assert error.value.hint
    if isinstance(values, dict):
        assert next(iter(values)) in str(error.value)


def test_settings_made_by_hand_are_checked() -> None:
    """`brim.Settings` refuses what a mapping would be refused for, and knows the dialects of the formats."""
    with pytest.raises(ConfigError, match="margin"):
        brim.Settings(margin=2.0)
    assert SETTABLE == DIALECTS


@pytest.mark.parametrize(
    "body", [{}, {"messages": None}, {"messages": "hi"}, None, {"messages": [{"role": "user", "content": 5}]}]
)
def test_bodies_that_are_none(body: Any) -> None:
    """A body that cannot be read is an error that names the place and says how it was read."""
    with pytest.raises(BrimError) as error:
        brim.prepare(body)
    assert "api" in str(error.value.hint)


@every_mode
def test_pin_set_later_takes_back_what_was_done(mode: str) -> None:
    """A message that is pinned after a plan took it out, or cut it, is whole again, with its step."""
    talk = brim.Conversation(model="gpt-4o", messages=long_chat()[:-1])
    talk.append(said("user", "now?"))
    plan = talk.prepare(mode=mode, window=1600, max_output=100).plan
    assert plan["fates"]
    for at in (1, 3, 4):
        talk.pin(at)
        view = talk.prepare(mode=mode, window=1600, max_output=100)
        assert talk.messages[at].wire in view.request["messages"]
        assert not violations(view.request, "openai.chat", "openai")


@pytest.mark.parametrize("dialect", ["openai", "openai-strict", "mistral"])
def test_pin_and_age_where_a_repair_moved_the_places(dialect: str) -> None:
    """A pin belongs to the message it was set on, and so does its time, also behind a call that got a stand-in, an orphan
    that was left out, and system messages that were joined."""
    first = [said("system", "one"), said("system", "two"), said("user", "q"), called("lost"), answered("orphan", "x")]
    talk = brim.Conversation(model="x", messages=first, settings={"dialect": dialect})
    for n in range(12):
        talk.append(said("user", f"q{n}"), at=1000.0 + n)
        talk.append(called(f"c{n:08d}"), at=1000.0 + n)
        talk.append(answered(f"c{n:08d}", f"result {n} " + "word " * 80), at=1000.0 if n < 6 else 1990.0)
        talk.append(said("assistant", f"ok {n}"), at=1000.0 + n)
    talk.append(said("user", "end"))
    pinned = next(at for at, message in enumerate(talk.messages) if message.text.startswith("result 1 "))
    talk.pin(pinned)
    view = talk.prepare(mode="compact", window=20_000, now=2000.0, passes=("expire",))
    results = [m["content"] for m in view.request["messages"] if m["role"] == "tool"]
    assert "result 1 " + "word " * 80 in results
    for n in range(12):
        whole = f"result {n} " + "word " * 80 in results
        assert whole == (n == 1 or n >= 6), n


def test_insert_does_not_take_a_body_over_its_bytes() -> None:
    """What comes back for a question in auto stays out where it would exceed `max_request_bytes`."""
    plan: Any = None
    messages: list[Body] = []
    for turn in range(24):
        topic = "zebrafish pigmentation locus XK-774" if turn in (1, 18) else f"topic{turn} filler{turn} thing"
        messages = [*messages, said("user", f"Tell me of {topic}")]
        body = {"model": "gpt-4o", "messages": messages}
        view = brim.prepare(body, window=2600, previous=plan, settings={"max_request_bytes": 5_000})
        assert len(json.dumps(view.request)) <= 5_000
        assert brim.prepare(body, window=2600, previous=view.plan, settings={"max_request_bytes": 5_000})
        plan = view.plan
        messages = [*messages, said("assistant", f"{topic}: " + " ".join(f"word{turn}x{n}" for n in range(40)))]


def never_awaited(_: Any) -> Any:
    """An async function handed in where a plain one is wanted."""

    async def write() -> str:
        return "x"

    return write()


@pytest.mark.parametrize("mode", ["compact", "auto"])
@pytest.mark.parametrize(
    "write", [lambda _: "SUM \ud800 MARY", never_awaited, lambda _: {"text": "x"}, lambda _: 1 / 0]
)
def test_whatever_a_summarizer_gives(mode: str, write: Any) -> None:
    """A summary with half a character is cleaned, one that is no text is refused: the request goes out in any case."""
    body = {"model": "gpt-4o", "messages": long_chat(30)}
    view = brim.prepare(body, mode=mode, window=2500, max_output=100, settings={"summarizer": write})
    json.dumps(view.request, ensure_ascii=False).encode()
    assert not violations(view.request, "openai.chat", "openai")
    assert "summary" in view.plan


@pytest.mark.parametrize(
    "judge", [lambda q, m: [], lambda q, m: [float("nan")] * len(m), lambda q, m: 1 / 0, lambda q, m: "x"]
)
def test_whatever_a_relevance_gives(judge: Any) -> None:
    """Scores that are missing, no numbers or an error: words judge instead, and the report says so."""
    body = {"model": "gpt-4o", "messages": long_chat(30)}
    view = brim.prepare(body, window=2500, max_output=100, settings={"relevance": judge})
    assert not violations(view.request, "openai.chat", "openai")
    assert any(line["pass"] == "relevance" and "judged by words" in line["failed"] for line in view.report)
