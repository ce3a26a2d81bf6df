"""What servers say of their tools, as definitions that every provider takes."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.tools.arguments import check_arguments
from brim.tools.context import Tool, ToolContext, ToolOutput
from brim.tools.mcp.finder import describe_find, rank, show_found
from brim.tools.mcp.repair import parse_line, repaired
from brim.tools.mcp.schemas import RemoteTool, build_tool, name_tool, plain_schema

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner | st.sampled_from(["#/$defs/a", "#", "#/properties/a", "string", "object"]), max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "required",
                    "$ref",
                    "$defs",
                    "anyOf",
                    "allOf",
                    "oneOf",
                    "items",
                    "enum",
                    "minimum",
                    "a",
                ]
            )
            | st.sampled_from(
                ["additionalProperties", "maxItems", "default", "not", "pattern", "description", "uniqueItems"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(st.text(min_size=1, max_size=90), st.text(max_size=90))
def test_every_name_is_one_that_providers_take(first: str, second: str) -> None:
    """Whatever a tool is called, its name has at most 64 letters, digits, _ and -, and two tools never share one."""
    taken: dict[str, object] = {}
    for tool in dict.fromkeys((first, second)):
        name = name_tool("srv", tool, taken)
        assert NAME.fullmatch(name) and name.startswith("mcp__srv__")
        assert name not in taken
        taken[name] = tool


@given(JSON)
def test_every_schema_becomes_one_that_providers_take(value: Any) -> None:
    """Whatever stands in place of a schema, out comes an object schema without references and combinations at its top."""
    schema = plain_schema(value)
    assert schema["type"] == "object" and isinstance(schema["properties"], dict)
    assert not {"anyOf", "oneOf", "allOf", "not", "enum", "$defs", "definitions"} & set(schema)
    assert set(schema.get("required", ())) <= set(schema["properties"])
    assert all(isinstance(each, dict) for each in schema["properties"].values())
    assert plain_schema(schema) == schema
    jsonschema.Draft202012Validator.check_schema(schema)


def test_references_are_written_out_and_circles_end() -> None:
    """A reference within the schema becomes what it refers to; one that goes in circles, or to another place, anything."""
    schema = plain_schema(
        {
            "type": "object",
            "$defs": {
                "Point": {"type": "object", "title": "Point", "properties": {"x": {"type": "number", "title": "X"}}},
                "Tree": {
                    "type": "object",
                    "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
                },
            },
            "properties": {
                "at": {"$ref": "#/$defs/Point", "description": "where"},
                "tree": {"$ref": "#/$defs/Tree"},
                "far": {"$ref": "https://example.org/schema.json"},
                "title": {"type": "string"},
            },
            "required": ["at", "gone"],
        }
    )
    assert schema["properties"]["at"] == {
        "type": "object", "properties": {"x": {"type": "number"}}, "description": "where",
    }  # fmt: skip
    assert schema["properties"]["tree"]["properties"]["children"] == {"type": "array", "items": {}}
    assert schema["properties"]["far"] == {} and schema["properties"]["title"] == {"type": "string"}
    assert schema["required"] == ["at"] and "$ref" not in json.dumps(schema)


def test_references_that_multiply_are_cut_off() -> None:
    """A schema whose references double at each step does not grow without end."""
    steps = {f"s{at}": {"properties": {side: {"$ref": f"#/$defs/s{at + 1}"} for side in "lr"}} for at in range(40)}
    schema = plain_schema({"$defs": steps, "properties": {"top": {"$ref": "#/$defs/s0"}}})
    assert len(json.dumps(schema)) < 200_000


def test_a_choice_at_the_top_becomes_one_object() -> None:
    """Providers refuse anyOf at the top: all its properties are taken, and only what every choice requires is required."""
    one = {"properties": {"id": {"type": "integer"}, "deep": {"type": "boolean"}}, "required": ["id", "deep"]}
    other = {"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}, "required": ["id", "name"]}
    schema = plain_schema({"anyOf": [one, other]})
    assert set(schema["properties"]) == {"id", "deep", "name"} and schema["required"] == ["id"]


async def nothing(arguments: Any, ctx: ToolContext) -> ToolOutput:
    raise AssertionError


def test_parameters_under_names_that_no_provider_takes() -> None:
    """A parameter that is called like no parameter may be gets another name, and the server its own one."""
    tool = build_tool(
        "s", "t", "", {"properties": {"größe": {}, "user id": {}, "plain": {}}, "required": ["user id"]}, "n"
    )
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", key) for key in tool.parameters["properties"])
    renamed = next(key for key in tool.parameters["properties"] if key.startswith("user_id"))
    assert tool.parameters["required"] == [renamed]
    assert tool.arguments({renamed: 7, "plain": 8}) == {"user id": 7, "plain": 8}


def test_a_tool_that_says_nothing_of_its_parameters_takes_any() -> None:
    """Without any schema nothing is refused before it reaches the server."""
    tool = build_tool("s", "t", "", None, "n")
    assert check_arguments(Tool("n", "", tool.parameters, nothing), {"what": "ever"}) == {"what": "ever"}


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "x"},
        {"name": "x", "inputSchema": None},
        {"name": "x", "inputSchema": {"type": "array"}, "outputSchema": 7, "annotations": "yes", "description": 5},
        {"name": "x", "inputSchema": [], "annotations": {"readOnlyHint": "maybe", "destructiveHint": []}, "icons": 1},
    ],
)
def test_one_careless_tool_does_not_spoil_the_list(tool: Any) -> None:
    """A broken tool is put right, what is none is left out, and the sound ones beside it stay."""
    sound = {"name": "sound", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    message = repaired({"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool, 5, {"title": "nameless"}, sound]}})
    from mcp.types import ListToolsResult

    listed = ListToolsResult.model_validate(message["result"])
    assert [each.name for each in listed.tools] == ["x", "sound"]


@pytest.mark.parametrize(
    "content",
    [
        None,
        "plain",
        5,
        [{"type": "video", "data": "…"}, "text", None],
        {"type": "text", "text": "one"},
        [{"type": "text"}],
    ],
)
def test_an_odd_result_is_shown_as_text(content: Any) -> None:
    """A result of blocks that are none is text, not an error."""
    from mcp.types import CallToolResult

    message = repaired({"jsonrpc": "2.0", "id": 1, "result": {"content": content, "isError": 0}})
    assert all(block.type == "text" for block in CallToolResult.model_validate(message["result"]).content)


def test_half_characters_of_a_server_are_made_whole() -> None:
    """A lone surrogate in a message becomes U+FFFD, so that no later request fails for it."""
    assert parse_line(b'{"a": "x\\ud83d", "b": "\\ud83d\\ude00"}') == {"a": "x\ufffd", "b": "😀"}


def make(name: str, about: str, server: str = "srv") -> RemoteTool:
    return build_tool(server, name, about, {"properties": {"path": {"type": "string"}}}, f"mcp__{server}__{name}")


TOOLS = [
    make("read_file", "Reads a file."),
    make("createIssue", "Opens an issue in the tracker."),
    make("list_issues", "Lists all issues of a repository."),
    make("weather", "天气预报：查询一个城市的天气。"),
    make("delete_branch", "Removes a branch."),
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create an issue", "createIssue"),
        ("list issues", "list_issues"),
        ("查询天气", "weather"),
        ("mcp__srv__delete_branch", "delete_branch"),
        ("delete_branch", "delete_branch"),
        ("path of a file to read", "read_file"),
    ],
)
def test_the_tool_that_is_meant_comes_first(query: str, first: str) -> None:
    """find_tool ranks by words of names and descriptions, English or Chinese, and by exact names."""
    assert rank(query, TOOLS)[0].tool == first


def test_what_find_tool_answers() -> None:
    """The best come with their parameters, the rest by name; a query that nothing fits lists what there is."""
    many = [make(f"tool_{at}", "Works on records. " + "Long words. " * 50) for at in range(100)]
    told = show_found("records", many, ["(The MCP server x is not running: why)"])
    assert told.count("parameters: {") == 5 and "Also (95)" in told and told.endswith("why)")
    assert "No tool fits" in show_found("zzz", TOOLS, []) and "createIssue" in show_found("zzz", TOOLS, [])
    alone = show_found("mcp__srv__tool_7", many, [])
    assert alone.startswith("mcp__srv__tool_7:") and alone.count("parameters: {") == 1


def test_the_names_in_the_description_are_shared_out() -> None:
    """Each server behind find_tool is named with its number of tools, and a fair share of the names that fit."""
    groups = {"srv": TOOLS, "big": [make(f"t{at}", "", "big") for at in range(50)]}
    text = describe_find(groups, ["late"], 10)
    assert "55 more tools" in text and "mcp__srv__ (5): read_file" in text
    assert "mcp__big__ (50): t0, t1, t2, t3, t4 and 45 more" in text and "Still starting: late" in text
    assert "mcp__big__ (50)\n" in describe_find(groups, ["late"], 0)
