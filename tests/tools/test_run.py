"""Calls from models: each gets an answer that says what was wrong, the loop goes on, nothing runs twice."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from brim.conversation import ToolCall, call
from brim.tokens import counter_for
from brim.tools import (
    Tool,
    ToolContext,
    ToolOutput,
    default_tools,
    run_calls,
    run_tool,
    storable_arguments,
    storable_name,
    tool_schemas,
)

from .conftest import Bench


class Counted:
    """A tool without required parameters that knows how often it ran, and how many of it at once."""

    def __init__(self, name: str = "list_files", read_only: bool = True) -> None:
        self.ran: list[Mapping[str, Any]] = []
        self.now = self.most = 0
        parameters = {"type": "object", "properties": {"n": {"type": "integer"}}}
        self.tool = Tool(name, "lists", parameters, self.run, read_only)

    async def run(self, arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        self.ran.append(arguments)
        return ToolOutput(f"answer {len(self.ran)}")


def run_all(bench: Bench, calls: list[ToolCall], **more: Any) -> list[ToolOutput]:
    return asyncio.run(run_calls(calls, bench.ctx, **more))


@pytest.mark.parametrize("raw", ["", "{}", "null", "  ", None, '""', '"  "', '"{}"'])
def test_no_arguments(bench: Bench, raw: str | None) -> None:
    """Empty, blank, null or missing arguments are none: a tool that needs none runs, another says what is missing."""
    listing = Counted()
    tools = [*default_tools(), listing.tool]
    assert asyncio.run(run_tool("list_files", raw, bench.ctx, tools=tools)).text == "answer 1"
    missing = asyncio.run(run_tool("read", raw, bench.ctx, tools=tools))
    assert missing.is_error and "'path' is missing" in missing.text
    assert json.loads(storable_arguments(raw)) == {}


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("write", '{"path": "a.txt", "content": "half', "at character 30 of 34"),
        ("bash", '{command: "touch ran"}', "at character 2 of 22"),
        ("read", '{"path":"a"}{"path":"b"}', "more text follows the object at character 13"),
        ("read", '["a"]', "a list"),
        ("read", '"a"', "a string"),
        ("read", "17", "a number"),
        ("read", '{"path": NaN}', "NaN"),
        ("read", '{"path": Infinity}', "Infinity"),
        ("bash", '{"command": "touch ran", "command": "true"}', "'command' stands in them twice"),
        ("read", "[" * 100_000, "nested too deeply"),
        ("read", "{'path': 'a'}", "at character 2"),
        ("read", '{"path": "a\nb"}', "Invalid control character at character 12"),
        ("read", '{"path": "a"', "they end too early, after character 12"),
        ("read", '{"path": "a",}', "at character 14"),
        ("read", '{"path": "a"}}', 'more text follows the object at character 14: \'{"path": "a"}}\';'),
        ("read", '{"path": "a"}<|im_end|>', "more text follows the object"),
        ("read", "```json\n{}\n```", "at character 1 of"),
        ("read", '\ufeff{"path": "a"}', "byte order mark"),
        ("read", '{"path": "C:\\Users"}', "Invalid \\escape"),
        ("read", '{"offset": 1' + "0" * 5000 + "}", "a number in them has 5001 digits"),
        ("read", json.dumps('{"path": "a'), "Unterminated string starting at character 10 of 11"),
        ("read", json.dumps(json.dumps('{"path": "a"}')), "a string"),
    ],
)
def test_malformed_arguments_run_nothing(bench: Bench, name: str, raw: str, said: str) -> None:
    """What is no JSON object is refused with reason and place and nothing runs; stored, it is valid JSON."""
    [output] = run_all(bench, [ToolCall("c1", name, raw)], finish_reason="tool_calls")
    assert (
        output.is_error and "not valid" in output.text and said in output.text and "the tool was not run" in output.text
    )
    assert "output limit" not in output.text and len(output.text) < 2000
    assert not list(bench.root.iterdir())
    assert json.loads(storable_arguments(raw)) == {"invalid_arguments": raw}


def test_arguments_cut_by_the_output_limit(bench: Bench) -> None:
    """Where the reply ended at the output limit, the call that was cut is told so; calls that are wrong otherwise are not."""
    calls = [
        ToolCall("c1", "write", '{"path": "a.txt", "content": "half'),
        ToolCall("c2", "read", "[]"),
        ToolCall("c3", "read", '{"path":'),
        ToolCall("c4", "read", "{'path': 1}"),
    ]
    outputs = run_all(bench, calls, finish_reason="length")
    assert [("reached the output limit" in output.text) for output in outputs] == [True, False, True, False]
    assert "several steps" in outputs[0].text and not (bench.root / "a.txt").exists()


def test_wherever_the_output_limit_cuts(bench: Bench) -> None:
    """A call cut at any character, in an escape, a number or a word, is told that the limit cut it, and nothing runs."""
    raw = r'{"command": "touch l\u0073 \"x\\ \ud83d\udd25", "timeout": -1.5e+10, "a": [true, false, null, {"b": {}}], "n": 12}'
    json.loads(raw)
    for end in range(1, len(raw)):
        output = asyncio.run(run_tool("bash", raw[:end], bench.ctx, finish_reason="length"))
        assert output.is_error and "the reply reached the output limit" in output.text, raw[:end]
    assert not list(bench.root.iterdir())


def test_halves_of_characters_and_numbers_without_end(bench: Bench) -> None:
    """An escaped half of a character is refused wherever it stands in the arguments, and stored whole; a number that is
    none is refused, since no JSON can say it."""
    odd = Tool("odd", "takes anything", {"type": "object", "properties": {"deep": {}}}, Counted().run)
    for raw in (r'{"deep": {"a": ["\ud83d"]}}', r'{"deep": "\udc00"}'):
        output = asyncio.run(run_tool("odd", raw, bench.ctx, tools=[odd]))
        assert output.is_error and "half a character" in output.text
        kept = storable_arguments(raw)
        assert "\ufffd" in kept and "\\ud" not in kept and list(json.loads(kept)) == ["deep"]
    whole = r'{"deep": "\ud83d\udd25"}'
    assert storable_arguments(whole) == whole
    output = asyncio.run(run_tool("odd", '{"deep": 1e999}', bench.ctx, tools=[odd]))
    assert output.is_error and "the number 1e999 in them is too large" in output.text


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("grepp", {}, "did you mean 'grep'?"),
        ("Read", {"path": "x"}, "did you mean 'read'?"),
        ("functions.bash", {}, "did you mean 'bash'?"),
        ("default_api:read", {}, "did you mean 'read'?"),
        ("ReadFile", {}, "did you mean 'read'?"),
        ("read<|channel|>commentary", {}, "did you mean 'read'?"),
        ("mcp__fs__write", {}, "did you mean 'write'?"),
        ("shell", {}, "did you mean 'bash'?"),
        ("list_dir", {}, "did you mean 'glob'?"),
        ("str_replace_editor", {}, "did you mean 'edit'?"),
        ("search_code", {}, "did you mean 'grep'?"),
        ("zzz", {}, "tools: grep, glob, read"),
        ("", {}, "there is no tool ''"),
        ("read", {"pth": "x"}, "no parameter 'pth'; did you mean 'path'?"),
        ("read", {"path": "x", "zzz": 1}, "read takes path, [offset], [limit], [char]"),
        ("read", {"path": ["x"]}, "'path' of read must be a string, not [\"x\"]"),
        ("read", {"path": "x", "offset": "two"}, 'must be an integer, not "two"'),
        ("read", {"path": "x", "offset": True}, "must be an integer, not true"),
        ("read", {"path": "x", "offset": 1.5}, "must be an integer, not 1.5"),
        ("grep", {"pattern": "x", "no_ignore": "yes"}, "must be a boolean"),
        ("read", {"path": "x", "file_path": "y"}, "'path' and 'file_path' are the same parameter"),
        ("read", {"path": None}, "must be a string, not null"),
        ("edit", {"path": "x"}, "'old', 'new' are missing"),
        ("write", {"path": "x", "content": "\ud83d"}, "half a character"),
    ],
)
def test_wrong_calls_are_explained(bench: Bench, name: str, arguments: dict[str, Any], said: str) -> None:
    """Unknown tools, unknown, missing or mistyped parameters: an error that names the culprit and what is right."""
    output = asyncio.run(run_tool(name, arguments, bench.ctx))
    assert output.is_error and said in output.text, output.text


def test_other_spellings_are_taken(bench: Bench) -> None:
    """Numbers as text, whole floats, nulls for optional parameters and well-known other names mean what they say."""
    bench.write("a.txt", "one\ntwo\n")
    for arguments in (
        {"path": "a.txt", "offset": "2"},
        {"file_path": "a.txt", "offset": 2.0, "limit": None}, {"filePath": "a.txt", "offset": " 2 "},
    ):  # fmt: skip
        assert asyncio.run(run_tool("read", arguments, bench.ctx)).text.startswith("two\n[")
    assert not asyncio.run(run_tool("bash", {"cmd": "true", "timeout": "5"}, bench.ctx)).is_error
    assert not asyncio.run(run_tool("grep", {"query": "one", "noIgnore": "true"}, bench.ctx)).is_error

    for raw in (
        json.dumps('{"path": "a.txt", "offset": 2}'), '{"path": "a.txt", "offset": "2", "limit": "null"}',
        '{"path": "a.txt", "offset": 2, "limit": "", "description": "the second line"}',
    ):  # fmt: skip
        assert asyncio.run(run_tool("read", raw, bench.ctx)).text.startswith("two\n[")
        assert json.loads(storable_arguments(raw))["path"] == "a.txt"


@pytest.mark.parametrize("name", ["functions.read", "", "re ad", "a/b:c", "x" * 300, "réad", "read<|channel|>x"])
def test_names_are_made_ones_that_providers_take(name: str) -> None:
    """Whatever a model called a tool, the name goes back in a form that no provider refuses."""
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", storable_name(name))
    assert storable_name("read_2-b") == "read_2-b"


def test_duplicate_ids_run_once(bench: Bench) -> None:
    """An exact duplicate shares the first answer, the same id with other content is refused; nothing runs twice."""
    listing = Counted()
    calls = [
        call("list_files", {"n": 1}, id="a"),
        call("list_files", {"n": 1}, id="a"),
        call("list_files", {"n": 2}, id="a"),
    ]
    told: list[str] = []

    async def on_result(which: ToolCall, output: ToolOutput) -> None:
        told.append(output.text)

    outputs = run_all(bench, calls, tools=[listing.tool], on_result=on_result)
    assert outputs[0].text == outputs[1].text == "answer 1" and len(listing.ran) == 1
    assert outputs[2].is_error and "already used" in outputs[2].text and len(told) == 2
    other = Counted()
    blanks = [ToolCall("b", "list_files", '{"n":1}'), ToolCall("b", "list_files", '{ "n": 1 }')]
    assert not any(output.is_error for output in run_all(bench, blanks, tools=[other.tool])) and len(other.ran) == 1
    without = [ToolCall("", "list_files", raw) for raw in ('{"n": 1}', '{"n": 2}', '{"n": 1}')]
    outputs = run_all(bench, without, tools=[other.tool])
    assert [output.is_error for output in outputs] == [False] * 3 and len(other.ran) == 3, (
        "calls without an id are no duplicates"
    )


def test_hundreds_of_calls(bench: Bench) -> None:
    """200 calls get 200 answers in order; only a few read at once, and changes run one after the other in their place."""
    reads, writes = Counted("look"), Counted("change", read_only=False)
    calls = [call("change" if n % 50 == 25 else "look", {"n": n}, id=f"c{n}") for n in range(200)]
    outputs = run_all(bench, calls, tools=[reads.tool, writes.tool])
    assert len(outputs) == 200 and not any(output.is_error for output in outputs)
    assert len(reads.ran) == 196 and [a["n"] for a in writes.ran] == [25, 75, 125, 175]
    assert 1 < reads.most <= bench.ctx.caps.parallel and writes.most == 1


def test_order_of_changes_and_reads(bench: Bench) -> None:
    """A read after a write in one message sees what was written."""
    outputs = run_all(
        bench,
        [
            call("write", {"path": "a.txt", "content": "one\n"}, id="1"),
            call("read", {"path": "a.txt"}, id="2"),
            call("edit", {"path": "a.txt", "old": "one", "new": "two"}, id="3"),
            call("grep", {"pattern": "two"}, id="4"),
        ],
    )
    assert outputs[1].text.startswith("one\n") and outputs[3].text.startswith("a.txt:1:two\n")


def test_colliding_names(bench: Bench) -> None:
    """Two tools of one name are an error that says so; neither runs."""
    one, two = Counted(), Counted()
    output = asyncio.run(run_tool("list_files", "{}", bench.ctx, tools=[one.tool, two.tool]))
    assert output.is_error and "2 tools are called 'list_files'" in output.text and not one.ran + two.ran


def test_a_broken_tool_is_told(bench: Bench) -> None:
    """A tool that raises is answered for, its message bounded; the conversation goes on."""

    async def broken(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        raise RuntimeError("boom " * 50_000)

    tool = Tool("broken", "", {"type": "object", "properties": {}}, broken)
    output = asyncio.run(run_tool("broken", "{}", bench.ctx, tools=[tool]))
    assert output.is_error and "RuntimeError: boom" in output.text
    assert bench.ctx.count(output.text) <= bench.ctx.caps.bash_stderr


def test_permission_stands_before_every_tool(bench: Bench) -> None:
    """What is not permitted does not run, and the refusal is the answer."""
    asked: list[tuple[str, Mapping[str, Any]]] = []

    async def permit(tool: Tool, arguments: Mapping[str, Any], ctx: ToolContext) -> str | None:
        asked.append((tool.name, arguments))
        return None if tool.read_only else "denied: run with --allow 'write(*)'"

    calls = [
        call("write", {"path": "a", "content": ""}, id="1"),
        call("glob", {"pattern": "*"}, id="2"),
        call("read", "[]", id="3"),
    ]
    outputs = run_all(bench, calls, permit=permit)
    assert "--allow 'write(*)'" in outputs[0].text and outputs[0].is_error and not outputs[1].is_error
    assert not list(bench.root.iterdir()) and asked == [
        ("write", {"path": "a", "content": ""}),
        ("glob", {"pattern": "*"}),
    ]


def test_what_was_allowed_outside_is_that_place_alone(bench: Bench) -> None:
    """A call that was permitted may go where its path leads outside the workspace, there only, and that time only."""
    outside = bench.root.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("one\n")

    async def permit(tool: Tool, arguments: Mapping[str, Any], ctx: ToolContext) -> str | None:
        return None

    assert run_all(bench, [call("read", {"path": "../outside/a.txt"}, id="1")])[0].is_error
    calls = [
        call("read", {"path": "../outside/a.txt"}, id="1"),
        call("edit", {"path": str(outside / "a.txt"), "old": "one", "new": "two"}, id="2"),
        call("write", {"path": str(outside / "new.txt"), "content": "x"}, id="3"),
        call("grep", {"pattern": "two", "path": "../outside"}, id="4"),
        call("glob", {"pattern": "../outside/*"}, id="5"),
    ]
    outputs = run_all(bench, calls, permit=permit)
    assert [output.is_error for output in outputs] == [False, False, False, False, True], outputs
    assert outputs[0].text.startswith("one\n") and (outside / "new.txt").exists() and "two" in outputs[3].text
    assert not bench.ctx.granted


def test_any_tool_answers_in_valid_text(bench: Bench) -> None:
    """Half characters in what a tool of any origin says become U+FFFD; whole ones stay."""

    async def halves(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        return ToolOutput("a \ud83d b \udc00 \ud83d\udd25 \udcff")

    tool = Tool("halves", "", {"type": "object", "properties": {}}, halves)
    output = asyncio.run(run_tool("halves", {}, bench.ctx, tools=[tool]))
    assert output.text == "a \ufffd b \ufffd \U0001f525 \ufffd"


def test_any_tool_is_capped(bench: Bench) -> None:
    """A tool from elsewhere that answers 2 MB is capped like all others, its original kept; a small answer passes as it is."""

    async def run(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        return ToolOutput("row of text\n" * arguments["rows"], meta={"mine": 1})

    tool = Tool("mcp_rows", "", {"type": "object", "properties": {"rows": {"type": "integer"}}}, run)
    output = asyncio.run(run_tool("mcp_rows", {"rows": 200_000}, bench.ctx, tools=[tool]))
    assert bench.ctx.count(output.text) <= bench.ctx.caps.other and "of 200000 shown" in output.text
    assert output.handle is not None and bench.ctx.blobs.size(output.handle) == 2_400_000 and output.meta["mine"] == 1
    assert asyncio.run(run_tool("mcp_rows", {"rows": 2}, bench.ctx, tools=[tool])).text == "row of text\n" * 2


def test_schemas_are_small() -> None:
    """All tools together cost a small model fewer than 900 tokens of its window, and each is complete."""
    schemas = tool_schemas(default_tools())
    assert [schema["name"] for schema in schemas] == ["grep", "glob", "read", "edit", "write", "bash", "recall"]
    assert counter_for("gpt-4o").count_text(json.dumps(schemas)) < 900
    for schema, tool in zip(schemas, default_tools(), strict=True):
        properties = schema["parameters"]["properties"]
        assert set(schema) == {"name", "description", "parameters"} and schema["description"]
        assert set(schema["parameters"]["required"]) <= set(properties)
        assert set(tool.aliases.values()) <= {*properties, "stop_early"} and not set(tool.aliases) & set(properties)
