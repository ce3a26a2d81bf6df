"""Trimming keeps requests valid: what users of other systems reported, in all three modes."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any

import pytest

import brim
from brim.errors import ContextOverflow
from shared_bodies import MODES, answered, called, prepared, returned, said, text_of, used

Body = dict[str, Any]
every_mode = pytest.mark.parametrize("mode", MODES)
PAD = "lorem ipsum dolor sit "


def summary(_: Any) -> str:
    return "SUMMARY"


@pytest.mark.parametrize("mode", ["compact", "auto"])
@pytest.mark.parametrize("share", [round(0.05 * step, 2) for step in range(1, 20)])
def test_boundary_never_parts_a_call_from_its_answer(share: float, mode: str) -> None:
    """Wherever the recent part begins, pairs stand, a user message is first and the summary stands once."""
    messages: list[Body] = []
    for turn in range(10):
        messages += [
            said("user", f"step {turn}: " + "please look at this " * 15),
            said("assistant", [used(f"toolu_{turn}", input={"path": f"m{turn}.py"})]),
            said("user", [returned(f"toolu_{turn}", "def f(): pass  # comment " * 20)]),
            said("assistant", f"step {turn} done"),
        ]
    view = prepared(
        messages, window=4000, max_output=500, mode=mode, dialect="anthropic", recent_share=share, summarizer=summary
    )
    assert view.request["messages"][0]["role"] == "user"
    pressed = view.report != []  # auto starts later than compact
    assert text_of(view.request).count("SUMMARY") == pressed
    assert pressed or mode == "auto"


@every_mode
def test_answer_and_user_text_in_one_message_are_parted(mode: str) -> None:
    """A user message that carries an old result and a new wish keeps the wish when the result goes."""
    messages = [
        said("user", "build the site " + "with many details " * 100),
        said("assistant", [used("toolu_old", "write", {"path": "index.html", "text": "<p>" + "hello " * 400})]),
        said(
            "user",
            [
                returned("toolu_old", "no result was recorded (interrupted)", is_error=True),
                {"type": "text", "text": "continue please"},
            ],
        ),
        said("assistant", [{"type": "text", "text": "Continuing."}, used("toolu_new", input={"path": "index.html"})]),
        said("user", [returned("toolu_new", "<p>hello")]),
    ]
    view = prepared(messages, window=800, max_output=100, mode=mode, dialect="anthropic", summarizer=summary)
    shown = text_of(view.request)
    assert "continue please" in shown
    assert shown.count("toolu_new") == 2


@every_mode
@pytest.mark.parametrize("window", [2000, 420, 380])
def test_instruction_beside_a_result_survives_verbatim(window: int, mode: str) -> None:
    """What the user said beside a tool result is still there after compaction; the newest message is last."""
    messages = [
        said("user", "start"),
        said("assistant", [used("toolu_1", "ls")]),
        said("user", [returned("toolu_1", "a.py b.py"), {"type": "text", "text": "IMPORTANT: never touch b.py"}]),
        said("assistant", "Understood."),
        said("user", "Now rename a.py to c.py."),
    ]
    view = prepared(
        messages,
        window=window,
        max_output=300,
        mode=mode,
        dialect="anthropic",
        summarizer=summary,
        recent_rounds_kept=1,
        compact_trigger_ratio=0.1,
        auto_trigger_ratio=0.1,
    )
    assert "never touch b.py" in text_of(view.request)
    assert view.request["messages"][-1]["content"] == "Now rename a.py to c.py."


@every_mode
def test_duplicate_call_is_merged(mode: str) -> None:
    """The same call twice under one id, as a broken stream leaves it, becomes one call with its answer."""
    twice = used("t1", "ls", {"p": "."})
    messages = [said("user", "go"), said("assistant", [twice, dict(twice)]), said("user", [returned("t1", "a")])]
    messages.append(said("user", "next"))
    view = prepared(messages, window=100_000, mode=mode, dialect="anthropic")
    shown = text_of(view.request["messages"])
    assert shown.count('"tool_use"') == shown.count('"tool_result"') == 1
    assert '"a"' in shown


@every_mode
def test_two_calls_under_one_id_get_ids_of_their_own(mode: str) -> None:
    """Different calls that share an id are told apart, and answers go to them in order."""
    messages = [
        said("user", "go"),
        said("assistant", [used("t1", "ls", {"p": "a"}), used("t1", "ls", {"p": "b"})]),
        said("user", [returned("t1", "first"), returned("t1", "second")]),
    ]
    view = prepared(messages, window=100_000, mode=mode, dialect="anthropic")
    calls, results = view.request["messages"][1]["content"], view.request["messages"][2]["content"]
    assert [block["id"] for block in calls] == [block["tool_use_id"] for block in results]
    assert len({block["id"] for block in calls}) == 2
    assert [block["content"] for block in results] == ["first", "second"]


@every_mode
def test_empty_content_becomes_sendable(mode: str) -> None:
    """Empty texts and results are filled, in place, and calls keep their answers."""
    messages = [
        said("user", "hi"),
        said("assistant", [{"type": "thinking", "thinking": "hmm", "signature": "c2ln"}]),
        said("user", [{"type": "text", "text": ""}]),
        said("assistant", [used("t1", "touch")]),
        said("user", [returned("t1", "")]),
        said("assistant", "   "),
        said("user", "next"),
    ]
    out = prepared(messages, window=8000, mode=mode, dialect="anthropic").request["messages"]
    assert out[4]["content"][0]["content"] == "(no output)"
    assert all(message["content"] and str(message["content"]).strip() for message in out)


@every_mode
def test_interrupted_call_gets_a_stand_in_answer_once(mode: str) -> None:
    """A call without an answer is answered as interrupted; preparing the result again adds nothing."""
    messages = [
        said("user", "start the server"),
        called("c1", "c2", name="bash", arguments='{"command": "npm run dev"}'),
        answered("c2", "text"),
        said("user", "continue"),
    ]
    view = prepared(messages, window=100_000, mode=mode)
    out = view.request["messages"]
    answers = {message["tool_call_id"]: message["content"] for message in out if message["role"] == "tool"}
    assert "interrupted" in answers["c1"] and "unknown" in answers["c1"]
    assert answers["c2"] == "text" and out[-1] == messages[-1]
    assert prepared(out, window=100_000, mode=mode).request["messages"] == out
    assert view.plan["repairs"]


@every_mode
def test_late_result_goes_back_to_its_call(mode: str) -> None:
    """A result that stands behind a later user message is moved to its call; an orphan is left out, and the plan says so."""
    messages = [
        said("user", "go"),
        called("c1"),
        said("user", "are you there?"),
        answered("c1", "here it is"),
        answered("zz", "whose?"),
        said("user", "go on"),
    ]
    view = prepared(messages, window=100_000, mode=mode)
    out = view.request["messages"]
    assert out[2] == answered("c1", "here it is")
    assert "whose?" not in text_of(out)
    assert any("no call" in repair["what"] for repair in view.plan["repairs"])


@every_mode
def test_parallel_results_are_one_unit(mode: str) -> None:
    """Seven parallel calls of the newest turn stay with their seven answers while older turns go."""
    ids = [f"p{place}" for place in range(7)]
    messages = [
        said("system", "sys"),
        said("user", "old question " + "filler words again " * 120),
        said("assistant", "old answer " + "filler words again " * 120),
        said("user", "Import all seven pictures."),
        called(*ids, name="import_image"),
        *[answered(id, f"imported {id} " + "meta data " * 40) for id in ids],
    ]
    view = prepared(messages, window=1500, max_output=300, mode=mode)
    shown = text_of(view.request)
    assert shown.count("tool_call_id") == 7
    assert "Import all seven pictures." in shown


@every_mode
def test_huge_parallel_results_share_the_cut(mode: str) -> None:
    """Twelve answers that are too large together are all shortened, none emptied, each with its mark."""
    ids = [f"p{place}" for place in range(12)]
    messages = [said("user", "Read all twelve files."), called(*ids)]
    messages += [answered(id, f"HEAD-{id} " + "some code tokens " * 500 + f" TAIL-{id}") for id in ids]
    view = prepared(messages, window=8000, max_output=1000, mode=mode)
    results = [message["content"] for message in view.request["messages"] if message["role"] == "tool"]
    assert len(results) == 12
    assert all("left out" in result for result in results)
    assert min(map(len, results)) > max(map(len, results)) / 2


@every_mode
def test_reasoning_item_keeps_its_partner(mode: str) -> None:
    """A Responses reasoning item stands before the item that followed it, or both are gone."""
    items: list[Body] = [
        {"type": "message", "role": "user", "content": "old " + "word " * 900},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "data " * 900},
        {"type": "reasoning", "id": "rs_2", "summary": []},
        {"type": "message", "id": "msg_2", "role": "assistant", "content": "done"},
        {"type": "message", "role": "user", "content": "next"},
    ]
    view = prepared(items, window=1500, max_output=100, mode=mode, dialect="openai-responses")
    assert view.request["input"][-1]["content"] == "next"


@every_mode
def test_signed_thinking_of_the_newest_step_is_verbatim(mode: str) -> None:
    """The newest assistant message with thinking goes out as it came; the size comes down elsewhere."""
    newest = said(
        "assistant",
        [
            {"type": "thinking", "thinking": "I should look. " * 40, "signature": "AAAA-sig-1"},
            {"type": "redacted_thinking", "data": "BBBB"},
            {"type": "text", "text": "Looking."},
            used("t1", input={"path": "x"}),
        ],
    )
    messages = [
        said("user", "old " + "word " * 600),
        said("assistant", "old answer " + "word " * 600),
        said("user", "now fix it"),
        newest,
        said("user", [returned("t1", "code " * 900)]),
    ]
    out = prepared(messages, window=2500, max_output=300, mode=mode, dialect="anthropic").request["messages"]
    assert [message for message in out if message["role"] == "assistant"][-1] == newest


@every_mode
def test_thinking_that_cannot_fit_is_refused_by_name(mode: str) -> None:
    """Where only an edit beside a thinking block would help, the refusal names the message and the figures."""
    messages = [
        said("user", "q"),
        said(
            "assistant",
            [
                {"type": "thinking", "thinking": "a", "signature": "S1"},
                {"type": "text", "text": "long text " * 500},
                {"type": "thinking", "thinking": "b", "signature": "S2"},
                used("t1", "n"),
            ],
        ),
        said("user", [returned("t1", "r")]),
    ]
    with pytest.raises(ContextOverflow) as refused:
        prepared(messages, window=900, max_output=200, mode=mode, dialect="anthropic")
    assert refused.value.irreducible > refused.value.budget
    assert "an assistant message" in refused.value.message and refused.value.bill["used"] > 0


@every_mode
def test_tool_run_without_a_user_boundary_is_cut(mode: str) -> None:
    """One prompt and eight tool rounds fit: the prompt is first, the newest pair survives."""
    messages = [said("user", "Look over this change.")]
    for place in range(1, 9):
        messages.append(said("assistant", [used(f"toolu_{place}", "fetch_part", {"n": place})]))
        messages.append(said("user", [returned(f"toolu_{place}", "line of code here " * 60)]))
    out = prepared(messages, window=1400, max_output=200, mode=mode, dialect="anthropic").request["messages"]
    assert out[0]["role"] == "user" and "Look over this change." in text_of(out[0])
    assert "toolu_8" in text_of(out)


@every_mode
@pytest.mark.parametrize("dialect", ["gemini", "openai", "openai-strict"])
def test_view_starts_with_a_user_message(dialect: str, mode: str) -> None:
    """A trimmed chat never starts with the model's own call, in any dialect."""
    messages = [said("user", "Check the pods. " + "context words here " * 80), said("assistant", "Checking.")]
    for place in range(5):
        messages += [called(f"a{place}", name="pod_status"), answered(f"a{place}", f"pod {place} running " * 40)]
    messages.append(said("user", "Which one restarted?"))
    out = prepared(messages, window=900, max_output=150, mode=mode, dialect=dialect).request["messages"]
    assert out[0]["role"] == "user"
    assert out[-1]["content"] == "Which one restarted?"


@every_mode
def test_tail_that_is_a_tool_result_keeps_its_call(mode: str) -> None:
    """Pressure in the middle of a tool loop: the last message answers the call before it, the task is still there."""
    messages = [said("system", "sys"), said("user", "Audit the repo.")]
    for place in range(1, 5):
        messages += [called(f"c{place}"), answered(f"c{place}", f"FILE {place} " + PAD * (90 if place < 4 else 120))]
    out = prepared(messages, window=1500, max_output=300, mode=mode).request["messages"]
    assert out[-1]["tool_call_id"] == "c4" and out[-2]["tool_calls"][0]["id"] == "c4"
    assert "Audit the repo." in text_of(out)


@every_mode
def test_fitting_chat_that_ends_in_a_tool_result_is_untouched(mode: str) -> None:
    """Nothing to do is the commonest call, and must be a no-op."""
    messages = [
        said("system", "You are helpful."),
        said("user", "Weather in Oslo?"),
        called("call_w", name="weather", arguments='{"city":"Oslo"}'),
        answered("call_w", "4 C, rain"),
    ]
    view = prepared(messages, window=128_000, max_output=4096, mode=mode)
    assert view.request["messages"] == messages and view.changed is False


@every_mode
def test_system_prompt_outlives_compaction(mode: str) -> None:
    """The system message is first, byte for byte, and the last question is last."""
    messages = [said("system", "You are a nurse bot. Never give dosages. Answer in French.")]
    for place in range(12):
        messages += [
            said("user", f"q{place} " + "some words go here " * 30),
            said("assistant", f"a{place} " + "more words go here " * 30),
        ]
    messages.append(said("user", "last question"))
    view = prepared(messages, window=2000, max_output=300, mode=mode, summarizer=summary)
    out = view.request["messages"]
    assert out[0] == messages[0] and out[-1]["content"] == "last question"
    if mode != "full":
        assert sum("SUMMARY" in text_of(message) for message in out) == 1


@pytest.mark.parametrize("mode", ["compact", "auto"])
def test_strict_template_gets_one_system_message_and_turns_in_order(mode: str) -> None:
    """On a local chat template the summary is no second system message, and roles alternate from a user on."""
    messages = [said("system", "sys")]
    for place in range(20):
        messages += [said("user", f"u{place} " + "word " * 60), said("assistant", f"a{place} " + "word " * 60)]
    view = prepared(messages, window=1500, max_output=200, mode=mode, dialect="openai-strict", summarizer=summary)
    roles = [message["role"] for message in view.request["messages"]]
    assert roles[0] == "system" and roles.count("system") == 1 and roles[1] == "user"
    assert all(one != other for one, other in itertools.pairwise(roles[1:]))


@every_mode
def test_no_user_message_right_behind_a_tool_message_for_mistral(mode: str) -> None:
    """Mistral refuses a user message right behind a tool message, and ids that are not nine letters or digits."""
    messages = [said("user", "go"), called("c1"), answered("c1", "a b c"), said("user", "now this")]
    out = prepared(messages, window=2000, mode=mode, dialect="mistral").request["messages"]
    assert [message["role"] for message in out] == ["user", "assistant", "tool", "assistant", "user"]


@every_mode
def test_id_used_again_in_a_later_turn(mode: str) -> None:
    """OpenAI takes an id again in a later turn, so it stays; Anthropic does not, so it gets one of its own."""
    chat = [
        said("user", "a"),
        called("c0"),
        answered("c0", "one"),
        said("user", "b"),
        called("c0"),
        answered("c0", "two"),
    ]
    assert prepared(chat, window=9_000, mode=mode).changed is False
    blocks = [
        said("user", "a"),
        said("assistant", [used("c0")]),
        said("user", [returned("c0", "one"), {"type": "text", "text": "b"}]),
        said("assistant", [used("c0")]),
        said("user", [returned("c0", "two")]),
    ]
    out = prepared(blocks, window=9_000, mode=mode, dialect="anthropic").request["messages"]
    assert out[3]["content"][0]["id"] == out[4]["content"][0]["tool_use_id"] != "c0"


@every_mode
def test_lone_surrogates_are_replaced(mode: str) -> None:
    """A half emoji in a stored message no longer makes every request invalid JSON."""
    messages = [said("user", "hi"), called("c1"), answered("c1", "status \ud83d… failed \udc00 and fine 🔥")]
    view = prepared(messages, window=9_000, mode=mode)
    sent = json.dumps(view.request, ensure_ascii=False).encode("utf-8").decode()
    assert "🔥" in sent and sent.count("\ufffd") == 2


@every_mode
def test_body_stays_under_a_byte_limit(mode: str) -> None:
    """Forty-two pictures under the token budget but over the limit in bytes: the newest stay, older ones become a line."""
    picture = base64.b64encode(b"\x89PNG" + b"\0" * 75_000).decode()
    shot = [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + picture}}]
    messages = [said("user", "Walk through the site.")]
    for place in range(42):
        messages += [called(f"s{place}", name="shot"), answered(f"s{place}", shot)]
    view = prepared(messages, window=1_000_000, max_output=4000, mode=mode, max_request_bytes=2_000_000)
    assert len(json.dumps(view.request)) <= 2_000_000
    results = [message for message in view.request["messages"] if message["role"] == "tool"]
    assert results[-1]["content"] == shot and "left out" in text_of(results[0])


@every_mode
def test_tool_schemas_are_part_of_the_budget(mode: str) -> None:
    """Tool definitions are billed, messages give way to them, and tools alone over the window are named in the error."""
    tools = [
        {
            "type": "function",
            "function": {
                "name": f"tool_{place}",
                "description": "does a thing with many options " * 6,
                "parameters": {
                    "type": "object",
                    "properties": {
                        f"p{number}": {"type": "string", "description": "an option that matters " * 3}
                        for number in range(8)
                    },
                },
            },
        }
        for place in range(15)
    ]
    messages = [said("system", "sys")]
    for place in range(30):
        messages += [said("user", f"u{place} " + "word " * 60), said("assistant", f"a{place} " + "word " * 60)]
    messages.append(said("user", "final"))
    with_tools = prepared(messages, window=6000, max_output=500, mode=mode, tools=tools)
    without = prepared(messages, window=6000, max_output=500, mode=mode)
    assert sum(line["tokens"] for line in with_tools.bill.lines if line["kind"] == "tools") > 1_500
    assert len(without.request["messages"]) >= len(with_tools.request["messages"])
    with pytest.raises(ContextOverflow, match="tool_0"):
        prepared(messages, window=6000, max_output=500, mode=mode, tools=tools * 5)


@every_mode
def test_window_of_an_unknown_model_is_an_assumption(mode: str) -> None:
    """No window is given and none known: 128,000, reported as assumed; small windows always leave a budget."""
    for model in ("my-company/custom-model-v7", "MiniMax-M9", "qwen36-35b"):
        view = brim.prepare({"model": model, "messages": [said("user", "hello")]}, mode=mode)
        assert view.changed is False
        assert (view.bill.window, view.bill.window_assumed) == (128_000, True)
        large = {"model": model, "messages": [said("user", "hello")], "max_tokens": 262_144}
        view = brim.prepare(large, mode=mode)  # it asks for more than was assumed: the assumption is wrong
        assert view.request == large and view.bill.reserved == 64_000
    for window in range(1024, 9000, 512):
        view = brim.prepare({"model": "x", "messages": [said("user", "hello")]}, window=window, mode=mode)
        assert view.changed is False and view.bill.free > 0
