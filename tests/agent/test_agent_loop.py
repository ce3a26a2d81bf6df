"""The loop over a real HTTP server: every event is told, every message stored once, whatever goes wrong on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brim.agent import events as ev
from brim.agent.agent import Agent
from brim.agent.config import load_config
from brim.agent.opening import Choice, Opened, open_agent
from brim.agent.permit import Answer, Question
from brim.providers import RetryPolicy
from brim.testing import ScriptedProvider, broken_stream, fault, reply, tool_call, tool_calls, violations
from brim.testing.dialogue import Call

SUMMARY = "## Goal\nThe user gave parts, each with some words to fill it.\n## Done\nEach part was acknowledged."


class Bench(msgspec.Struct):
    """An opened agent, what it emitted, and the server it asks."""

    opened: Opened
    events: list[ev.Event]
    upstream: ScriptedProvider

    @property
    def agent(self) -> Agent:
        return self.opened.agent

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def stored(self) -> list[tuple[str, str]]:
        return [(each.role, each.message.text) for each in self.opened.store.load(self.agent.session.id)]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("alpha\nneedle\n")
    (folder / "b.txt").write_text("beta\nneedle\n")
    return folder


@asynccontextmanager
async def bench(
    workspace: Path,
    *script: Any,
    model: str = "openai/gpt-4o",
    env: dict[str, str] | None = None,
    flags: dict[str, Any] | None = None,
    choice: Choice | None = None,
    ask: Callable[[Question], Any] | None = None,
    ladder: bool = True,
    **server: Any,
) -> AsyncIterator[Bench]:
    async with ScriptedProvider(script, **server) as upstream:
        given = {
            "OPENAI_BASE_URL": upstream.base_url, "OPENAI_API_KEY": "sk-test-123456", "ANTHROPIC_API_KEY": "sk-ant-123456",
            "ANTHROPIC_BASE_URL": upstream.url, "BRIM_CONFIG": str(workspace.parent / "config.toml"), **(env or {}),
        }  # fmt: skip
        values = {"model": model, "store": str(workspace.parent / "brim.db"), **(flags or {})}
        config = load_config(workspace, given, flags=values)
        events: list[ev.Event] = []
        opened = await open_agent(
            config, workspace, given, events.append, choice=choice, ask=ask, ladder=ladder, policy=RetryPolicy(scale=0)
        )
        try:
            yield Bench(opened, events, upstream)
        finally:
            await opened.close()


async def until(condition: Callable[[], Any]) -> None:
    """Waits for something that another task brings about."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.005)


def run(what: Callable[[], Any]) -> None:
    asyncio.run(what())


@pytest.mark.parametrize("model", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5"])
def test_a_turn_with_tools_is_told_and_stored_in_order(workspace: Path, model: str) -> None:
    """Request, calls, results and answer are emitted in order; what is sent is valid; the result comes last."""

    async def check() -> None:
        script = (
            tool_calls(("grep", {"pattern": "needle"}), ("read", {"path": "a.txt"}), text="Looking."),
            reply("Found."),
        )
        async with bench(workspace, *script, model=model) as at:
            outcome = await at.agent.ask("find it")
            assert outcome.ok and outcome.text == "Found." and outcome.steps == 2
            kinds = [type(event).__name__ for event in at.events if not isinstance(event, ev.Text)]
            assert kinds == [
                "Started", "Requested", "Used", "ToolStarted", "ToolStarted", "ToolFinished", "ToolFinished", "Requested",
                "Used", "Result",
            ]  # fmt: skip
            assert [role for role, _ in at.stored()] == ["user", "assistant", "tool", "tool", "assistant"]
            found = next(event for event in at.of(ev.ToolFinished) if event.name == "grep")
            assert "a.txt:2:needle" in found.text and found.tokens > 5
            for received in at.upstream.requests:
                dialect = "anthropic" if model.startswith("anthropic") else "openai"
                assert violations(received.body, received.api, dialect) == []
            assert outcome.usage is not None and outcome.usage.input == sum(e.usage.input for e in at.of(ev.Used))
            assert outcome.cost is not None and outcome.cost > 0 and outcome.session_cost == pytest.approx(outcome.cost)

    run(check)


def test_the_bill_is_what_was_sent(workspace: Path) -> None:
    """The bill's lines sum to what is used, and used, reserved, margin, held back and free to the window."""

    async def check() -> None:
        async with bench(workspace, tool_call("grep", {"pattern": "needle"}), reply("ok")) as at:
            outcome = await at.agent.ask("find it")
            for event in at.of(ev.Requested):
                bill = event.bill
                assert sum(line["tokens"] for line in bill["lines"]) == bill["used"]
                parts = ("used", "reserved", "margin", "held_back", "free")
                assert sum(bill[part] for part in parts) == bill["window"]
            assert outcome.bill is not None
            assert outcome.context == pytest.approx(outcome.bill["used"] / 128_000)

    run(check)


def test_steps_are_limited(workspace: Path) -> None:
    """A model that calls tools for ever is stopped with exit code 3; its results are kept."""

    async def check() -> None:
        async with bench(
            workspace, tool_call("glob", {"pattern": "*"}), repeat_last=True, flags={"max_steps": 3}
        ) as at:
            outcome = await at.agent.ask("go on")
            assert (outcome.ok, outcome.exit_code, outcome.steps) == (False, 3, 3)
            assert at.of(ev.Failed)[0].error["kind"] == "step_limit"
            assert len(at.stored()) == 7

    run(check)


def test_broken_arguments_are_told_to_the_model_and_never_sent_back_as_they_are(workspace: Path) -> None:
    """A call that is no JSON gets an error result, and later requests hold valid arguments."""

    async def check() -> None:
        async with bench(workspace, tool_call("grep", '{"pattern": "nee'), reply("sorry")) as at:
            assert (await at.agent.ask("find it")).ok
            assert at.of(ev.ToolFinished)[0].is_error
            sent = at.upstream.requests[1].body["messages"]
            call = next(message for message in sent if message.get("tool_calls"))["tool_calls"][0]
            json.loads(call["function"]["arguments"])
            assert violations(at.upstream.requests[1].body, "openai.chat", "openai") == []

    run(check)


@pytest.mark.parametrize("model", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5"])
def test_an_id_used_twice_is_told_to_the_model(workspace: Path, model: str) -> None:
    """Of two different calls under one id the second is not run, and the model reads that it was not, under an id of its
    own; the same call twice is one; the same id in the next answer is no clash."""

    async def check() -> None:
        append = Call(name="bash", arguments=json.dumps({"command": "echo x >> ran"}), id="c")
        look = Call(name="read", arguments='{"path": "a.txt"}', id="c")
        script = reply(calls=[look, append]), reply(calls=[append, append]), reply("done")
        async with bench(workspace, *script, model=model, flags={"permissions.mode": "allow-all"}) as at:
            assert (await at.agent.ask("go")).text == "done"
            assert (workspace / "ran").read_text() == "x\n"
            assert [role for role, _ in at.stored()] == [
                "user",
                "assistant",
                "tool",
                "tool",
                "assistant",
                "tool",
                "assistant",
            ]
            body = at.upstream.requests[-1].body
            assert violations(body, at.upstream.requests[-1].api, model.split("/")[0]) == []
            text = json.dumps(body)
            assert "this call was not run" in text and "interrupted" not in text
            assert text.count("echo x >> ran") == 2

    run(check)


def test_an_answer_that_breaks_off_is_kept_and_marked(workspace: Path) -> None:
    """What had come stays as an incomplete message; the turn fails with its reason; the next turn sends valid messages."""

    async def check() -> None:
        async with bench(workspace, broken_stream("Half of"), reply("whole")) as at:
            outcome = await at.agent.ask("first")
            assert (outcome.ok, outcome.exit_code, outcome.text, outcome.incomplete) == (False, 69, "Half of", True)
            assert at.of(ev.Failed)[0].error["kind"] == "stream_broken"
            assert [each.incomplete for each in at.opened.store.load(at.agent.session.id)] == [False, True]
            assert (await at.agent.ask("second")).text == "whole"
            assert violations(at.upstream.requests[1].body, "openai.chat", "openai") == []
            assert at.stored()[1] == ("assistant", "Half of")

    run(check)


def test_stopping_keeps_what_came(workspace: Path) -> None:
    """`stop` ends an answer under way: 130, the text so far is stored incomplete, and the session goes on."""

    async def check() -> None:
        slow = reply(" ".join(["word"] * 500), piece=5, delay=0.01)
        async with bench(workspace, slow, reply("on we go")) as at:
            asked = asyncio.create_task(at.agent.ask("talk"))
            await until(lambda: at.of(ev.Text))
            assert at.agent.stop()
            outcome = await asked
            assert (outcome.exit_code, outcome.incomplete) == (130, True)
            assert outcome.text and at.stored()[1] == ("assistant", outcome.text)
            assert not at.agent.stop()
            assert (await at.agent.ask("go on")).text == "on we go"

    run(check)


def test_stopping_a_tool_answers_its_call(workspace: Path) -> None:
    """A tool that is interrupted gets a result that says so, and the next request is valid."""

    async def check() -> None:
        script = (tool_calls(("bash", {"command": "sleep 60"}), ("read", {"path": "a.txt"})), reply("fine"))
        async with bench(workspace, *script, flags={"permissions.allow": ["bash(sleep *)"]}) as at:
            asked = asyncio.create_task(at.agent.ask("wait"))
            await until(lambda: at.of(ev.ToolStarted))
            await asyncio.sleep(0.2)
            at.agent.stop()
            assert (await asked).exit_code == 130
            tools = [text for role, text in at.stored() if role == "tool"]
            assert len(tools) == 2 and "interrupted" in tools[0]
            assert (await at.agent.ask("and?")).ok
            assert violations(at.upstream.requests[1].body, "openai.chat", "openai") == []

    run(check)


def test_an_overflow_without_figures_shrinks_the_request(workspace: Path) -> None:
    """A provider that names no window is believed: brim goes on with less than was refused, and says so."""

    async def check() -> None:
        refusal = fault(400, {"error": {"message": "Your input exceeds the context window of this model.",
                                        "code": "context_length_exceeded"}})  # fmt: skip
        async with bench(workspace, reply("a"), reply("b"), refusal, reply("fits now")) as at:
            await at.agent.ask("one " * 3_000)
            await at.agent.ask("two " * 3_000)
            outcome = await at.agent.ask("three " * 3_000)
            assert outcome.ok and outcome.text == "fits now"
            notice = next(event for event in at.of(ev.Notice) if event.kind == "overflow")
            assert "as if the window were" in notice.text
            first, second = [event.bill["used"] for event in at.of(ev.Requested)][-2:]
            assert second < first

    run(check)


def test_a_second_overflow_is_an_error_with_bill_and_advice(workspace: Path) -> None:
    """Asked once more and refused again: exit 3, the bill, what was largest, what stands in it twice, what to do."""

    async def check() -> None:
        async with bench(workspace, window=500) as at:
            block = "\n".join(f"line {n} with some words that make it long enough" for n in range(30))
            outcome = await at.agent.ask(f"{block}\nagain:\n{block}")
            assert outcome.exit_code == 3
            failed = at.of(ev.Failed)[0]
            assert failed.bill is not None and failed.bill["used"] > 500
            advice = "\n".join(failed.advice)
            assert "largest: user messages" in advice and "stands in it twice" in advice
            assert "max_response_tokens" in advice
            assert "compact_trigger_ratio" not in advice  # one message is too long: no threshold changes that

    run(check)


def test_what_cannot_fit_is_never_sent(workspace: Path) -> None:
    """A message larger than the budget is an error with its bill before any request is made."""

    async def check() -> None:
        async with bench(workspace, reply("never"), flags={"context.max_context_tokens": 4_000}) as at:
            outcome = await at.agent.ask("word " * 10_000)
            assert outcome.exit_code == 3 and outcome.error is not None
            assert outcome.error["kind"] == "context_overflow" and outcome.error["irreducible"] > 10_000
            assert at.upstream.requests == []
            assert at.of(ev.Failed)[0].bill is not None

    run(check)


def test_a_silent_cut_is_told_once_and_learned(workspace: Path) -> None:
    """A server whose usage shows a cut prompt is named once, and later requests stay within what it sees."""

    async def check() -> None:
        async with bench(workspace, reply("ok"), repeat_last=True, cut_at=1_500) as at:
            for _ in range(3):
                await at.agent.ask("some words " * 500)
                await at.agent.ask("and so on")
            cuts = [event for event in at.of(ev.Notice) if event.kind == "silent_cut"]
            assert len(cuts) == 1 and "num_ctx" in cuts[0].text
            assert at.of(ev.Requested)[-1].bill["window"] == 1_500

    run(check)


def test_an_empty_answer_is_not_silent(workspace: Path) -> None:
    """An answer without a word, and one that was cut at the maximum, are told."""

    async def check() -> None:
        async with bench(
            workspace, reply(""), reply("Some", finish="length"), reply("", finish="content_filter")
        ) as at:
            await at.agent.ask("a")
            second = await at.agent.ask("b")
            third = await at.agent.ask("c")
            assert [event.kind for event in at.of(ev.Notice)] == ["empty", "cut"]
            assert second.incomplete
            assert third.error is not None and third.error["kind"] == "refused" and third.exit_code == 1
            assert "content_filter" in at.of(ev.Failed)[0].error["message"]

    run(check)


def test_a_user_is_asked_and_may_allow_for_good(workspace: Path) -> None:
    """The question names the rule; `always` adds it; `no` is told to the model."""

    async def check() -> None:
        asked: list[Question] = []
        answers: list[Answer] = ["always", "no"]

        async def ask(question: Question) -> Answer:
            asked.append(question)
            return answers[len(asked) - 1]

        script = [tool_call("bash", {"command": f"touch {name}"}) for name in ("one", "two")]
        script.append(tool_call("write", {"path": "three", "content": "x"}))
        async with bench(workspace, *script, reply("done"), ask=ask) as at:
            await at.agent.ask("make files")
            assert [question.tool for question in asked] == ["bash", "write"]
            assert asked[0].rules == ("bash(touch *)",)
            made = [(workspace / name).exists() for name in ("one", "two", "three")]
            assert made == [True, True, False]
            assert "the user said no" in at.of(ev.ToolFinished)[-1].text

    run(check)


def test_a_session_goes_on_with_its_plan(workspace: Path) -> None:
    """What was shortened before stays shortened in the next process: the view begins with the very bytes sent before."""

    async def check() -> None:
        flags = {"context.max_context_tokens": 12_000, "mode": "compact"}
        choice = Choice(name="s")
        texts = [f"part {n} " + "some words to fill it " * 300 for n in range(8)]
        async with bench(workspace, reply("ok"), repeat_last=True, flags=flags, choice=choice) as at:
            for text in texts:
                assert (await at.agent.ask(text)).ok
            before = at.upstream.requests[-1].body["messages"]
            assert len(before) < 16
        async with bench(workspace, reply("ok"), repeat_last=True, flags=flags, choice=choice) as again:
            assert (await again.agent.ask("short")).ok
            after = again.upstream.requests[0].body["messages"]
        assert after[: len(before)] == before
        assert [message["content"] for message in after[len(before) :]] == ["ok", "short"]

    run(check)


def test_another_mode_starts_from_the_whole_history(workspace: Path) -> None:
    """Leaving compact brings everything back: no summary stands beside the originals."""

    async def check() -> None:
        flags = {"context.max_context_tokens": 12_000, "mode": "compact"}
        async with bench(workspace, reply("ok"), repeat_last=True, flags=flags) as at:
            for n in range(8):
                await at.agent.ask(f"part {n} " + "some words to fill it " * 300)
            shortened = at.upstream.requests[-1].body["messages"]
            at.agent.session.change_settings(
                msgspec.structs.replace(at.agent.session.settings, max_context_tokens=100_000)
            )
            at.agent.session.switch_mode("full")
            await at.agent.ask("all of it")
            whole = at.upstream.requests[-1].body["messages"]
        assert len(shortened) < 17 and len(whole) == 18
        assert next(m["content"] for m in whole if m["role"] == "user").startswith("part 0")

    run(check)


def test_a_model_writes_the_summary_where_one_is_configured(workspace: Path) -> None:
    """`summary_model` is asked for the summary, its request recorded with its cost; where it fails brim writes its own."""

    async def check() -> None:
        def answer(received: Any) -> Any:
            if received.stream:
                return reply("ok")
            return fault(500) if "part 5" in received.body["messages"][0]["content"] else reply(SUMMARY)

        flags = {"context.max_context_tokens": 12_000, "mode": "compact", "summary_model": "openai/gpt-4o-mini"}
        async with bench(workspace, answer, repeat_last=True, flags=flags) as at:
            for n in range(8):
                assert (await at.agent.ask(f"part {n} " + "some words to fill it " * 300)).ok
            lines = [line for event in at.of(ev.Requested) for line in event.report if line.get("pass") == "summarise"]
            assert "model" in [line.get("by") for line in lines]
            views = [json.dumps(received.body) for received in at.upstream.requests if received.stream]
            assert any("The user gave parts" in view for view in views)
            records = at.opened.store.requests(at.agent.session.id)
            asked = [each for each in records if each.meta.get("purpose") == "summary"]
            assert asked and asked[0].model == "openai/gpt-4o-mini" and asked[0].cost is not None

    run(check)


def test_originals_of_the_history_are_recalled(workspace: Path) -> None:
    """The recall tool finds what a view left out, by the handle in its notice."""

    async def check() -> None:
        flags = {"context.max_context_tokens": 9_000, "mode": "compact"}
        (workspace / "long.txt").write_text("\n".join(f"line {n} of the file" for n in range(900)))

        def recall_it(received: Any) -> Any:
            import re

            found = re.search(r'recall\(\\?"([0-9a-f]{12})', json.dumps(received.body))
            assert found is not None
            return tool_call("recall", {"handle": found[1], "limit": 2})

        script = [tool_call("read", {"path": "long.txt"}), reply("read it")]
        script += [reply("ok")] * 5
        async with bench(workspace, *script, recall_it, reply("here"), flags=flags) as at:
            await at.agent.ask("read long.txt")
            for n in range(5):
                await at.agent.ask(f"part {n} " + "some words to fill it " * 200)
            assert (await at.agent.ask("what was in the file?")).text == "here"
            assert "line 0 of the file" in at.of(ev.ToolFinished)[-1].text

    run(check)


def test_a_spending_limit_stops_the_turn(workspace: Path) -> None:
    """Once the session has cost so much, no further request is made: exit 3."""

    async def check() -> None:
        script = [tool_call("glob", {"pattern": "*"}), reply("never")]
        async with bench(workspace, *script, flags={"max_cost": 0.0001}) as at:
            outcome = await at.agent.ask("go")
            assert outcome.exit_code == 3 and outcome.error is not None
            assert outcome.error["kind"] == "spend_limit"
            assert len(at.upstream.requests) == 1

    run(check)


def test_every_event_is_json(workspace: Path) -> None:
    """Each event is one line of JSON with its type."""

    async def check() -> None:
        async with bench(workspace, tool_call("grep", {"pattern": "needle"}), fault(401)) as at:
            await at.agent.ask("find")
            types = [json.loads(ev.as_json(event))["type"] for event in at.events]
            assert types[0] == "started" and types[-1] == "result"
            assert {"request", "tool_call", "tool_result", "usage", "error"} <= set(types)

    run(check)
