"""What is read of an answer that should keep to a schema, and how a schema is said to each API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brim.agent.structured import WRAPPED, Form
from brim.providers import resolve_model

OBJECT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
CLAUDE = resolve_model("anthropic/claude-sonnet-5-5", {})

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(json_values)
def test_any_json_value_is_read_as_it_is(value: Any) -> None:
    """Bare, in a fence, and wrapped as it was asked for: the same value comes out."""
    form = Form({"description": "anything"}, "any")
    text = json.dumps(value)
    assert form.read(text) == (value, None)
    assert form.read(f"```json\n{text}\n```") == (value, None)
    exact = Form({"const": value}, "exact")
    assert exact.read(json.dumps({WRAPPED: value})) == (value, None) or value == {WRAPPED: value}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}), ('Here it is: {"a": 1} — as asked.', {"a": 1}), ('{"b": {"a": 1}}', None), ("", None),
        ("the answer is 4", None), ('{"a": "1"}', None), ('{"a": 1', None), ("[" * 100_000, None),
    ],
)  # fmt: skip
def test_what_keeps_to_a_schema_and_what_does_not(text: str, value: Any) -> None:
    """Words around an object are let pass; types are not guessed; nothing raises."""
    read, problem = Form(OBJECT, "o").read(text)
    assert (read, problem is None) == (value, value is not None)


def test_numbers_that_are_no_json_are_refused() -> None:
    """NaN and Infinity, which Python reads, no other program would."""
    assert Form({"type": "number"}, "n").read("NaN")[1] is not None
    assert Form(OBJECT, "o").read('{"a": Infinity}')[1] is not None


def test_a_problem_names_its_place() -> None:
    """The model is told where, what, and the whole schema."""
    form = Form({"type": "object", "properties": {"people": {"type": "array", "items": OBJECT}}}, "o")
    _, problem = form.read('{"people": [{"a": 1}, {"a": "x"}]}')
    assert problem is not None and "$.people[1].a" in problem
    assert problem in form.again(problem) and '"people"' in form.again(problem)


def test_openais_strict_form_only_where_it_is_taken() -> None:
    """Closed objects with all properties required: else the schema goes without `strict`."""
    gpt = resolve_model("openai/gpt-5", {})

    def strict(schema: dict[str, Any]) -> bool:
        return bool(Form(schema, "o").fields(gpt)["response_format"]["json_schema"]["strict"])

    closed = {**OBJECT, "additionalProperties": False}
    assert not strict(OBJECT) and strict(closed)
    assert not strict({**closed, "required": []})
    assert not strict({**closed, "properties": {"a": OBJECT}}), "an open object inside"


def test_anthropics_form_closes_objects_and_drops_bounds() -> None:
    """A property may be called like a keyword; what cannot be closed is said in the prompt instead."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "minimum": {"type": "integer", "minimum": 3},
            "inner": {
                "oneOf": [{"type": "object", "properties": {"x": {"type": "string", "maxLength": 3}}}, {"type": "null"}]
            },
        },
        "required": ["minimum"],
    }
    asked = Form(schema, "o").fields(CLAUDE)["output_config"]["format"]["schema"]
    assert asked["properties"]["minimum"] == {"type": "integer"} and asked["additionalProperties"] is False
    inner = asked["properties"]["inner"]["anyOf"][0]
    assert inner["additionalProperties"] is False and inner["properties"] == {"x": {"type": "string"}}
    assert schema["properties"]["minimum"] == {"type": "integer", "minimum": 3}, "the user's own is left as it is"
    assert Form({"type": "object", "additionalProperties": {"type": "integer"}}, "o").fields(CLAUDE) == {}
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    assert Form(tree, "o").fields(CLAUDE) == {}
    assert Form(OBJECT, "o").fields(resolve_model("anthropic/claude-3-5-haiku-20241022", {})) == {}


def test_deepseek_is_asked_for_json_and_told_the_schema() -> None:
    """Its API knows json_object only."""
    model = resolve_model("deepseek/deepseek-flash", {})
    assert Form(OBJECT, "o").fields(model) == {"response_format": {"type": "json_object"}}
    assert "JSON" in Form(OBJECT, "o").told()


def test_the_file_may_lie_beside_the_settings(tmp_path: Path) -> None:
    """A path in a settings file is relative to it, a flag's to where the user is."""
    from brim.agent.config import load_config

    (tmp_path / "o.json").write_text(json.dumps(OBJECT))
    (tmp_path / "config.toml").write_text('schema = "o.json"\n')
    work = tmp_path / "work"
    work.mkdir()
    env = {"BRIM_CONFIG": str(tmp_path / "config.toml")}
    assert load_config(work, env).schema_path(work) == tmp_path / "o.json"
    assert load_config(work, env, flags={"schema": "x.json"}).schema_path(work) == Path("x.json")
