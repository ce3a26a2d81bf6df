"""Structured answers: a JSON schema in the words of each API, and the check of what came back.

What an API can hold to is asked of it; where it has no such field, or only part of the schema can be said there, the
schema stands in the system prompt, too. Whatever a server promises, the answer is checked here, against the schema as
the user wrote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from brim.agent.effort import claude_version
from brim.errors import UsageError
from brim.providers import ModelRef

WRAPPED = "answer"
"""The one property of the object that stands around a schema which is no object's: APIs take objects only."""
_MOST_BYTES = 1_000_000
_ANTHROPIC_UNTAKEN = frozenset(
    {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems",
        "maxItems", "uniqueItems", "minProperties", "maxProperties", "patternProperties", "propertyNames", "not", "if",
        "then", "else", "$schema", "$id", "examples", "contains",
    }
)  # fmt: skip
_FENCE = re.compile(r"\A```(?:json|JSON)?\s*\n(.*)\n\s*```\Z", re.DOTALL)


class Form(msgspec.Struct, frozen=True):
    """A schema that answers keep to. `schema` as the user wrote it; `name` for APIs that want one."""

    schema: Mapping[str, Any]
    name: str

    @property
    def wrapped(self) -> bool:
        """Whether the API is asked for an object around the answer."""
        return self.schema.get("type") != "object"

    def asked(self) -> dict[str, Any]:
        """The schema as an object's."""
        if not self.wrapped:
            return dict(self.schema)
        inner = {key: value for key, value in self.schema.items() if key not in ("$defs", "definitions", "$schema")}
        around = {
            "type": "object",
            "properties": {WRAPPED: inner},
            "required": [WRAPPED],
            "additionalProperties": False,
        }
        return around | {key: self.schema[key] for key in ("$defs", "definitions") if key in self.schema}

    def fields(self, model: ModelRef) -> dict[str, Any]:
        """What the body needs for this model; empty where its API has nothing of the kind."""
        schema = self.asked()
        if model.api == "anthropic.messages":
            version = claude_version(model.model)
            if (version is not None and version < (4, 5)) or not (closed := _closed(schema)):
                return {}
            return {"output_config": {"format": {"type": "json_schema", "schema": closed}}}
        strict = _is_strict(schema)
        if model.api == "openai.responses":
            return {"text": {"format": {"type": "json_schema", "name": self.name, "schema": schema, "strict": strict}}}
        if model.provider == "deepseek" or "deepseek.com" in model.base_url:
            return {"response_format": {"type": "json_object"}}
        form = {"name": self.name, "schema": schema, "strict": strict}
        return {"response_format": {"type": "json_schema", "json_schema": form}}

    def told(self) -> str:
        """The schema as words of a system prompt."""
        text = json.dumps(self.asked(), ensure_ascii=False, separators=(",", ":"))
        return f"Your last message is read by a program. It is one JSON value and nothing else, by this JSON schema:\n{text}"

    def read(self, text: str) -> tuple[Any, str | None]:
        """The answer as a value, and what is wrong with it; None where it keeps to the schema."""
        import jsonschema

        try:
            value = _parse(text)
        except ValueError as error:
            return None, f"it is no JSON ({error})"
        checker = jsonschema.validators.validator_for(self.schema, jsonschema.Draft202012Validator)(self.schema)
        if self.wrapped and isinstance(value, dict) and set(value) == {WRAPPED} and not checker.is_valid(value):
            value = value[WRAPPED]
        problem = jsonschema.exceptions.best_match(checker.iter_errors(value))
        if problem is None:
            return value, None
        return None, f"{problem.json_path}: {_short(problem.message)}"

    def again(self, problem: str) -> str:
        """What the model is told of an answer that was none."""
        return f"Your answer does not keep to the schema: {problem}.\n\n{self.told()}"


def load_form(path: Path) -> Form:
    """The schema in a file. Raises UsageError: no file, no JSON, no schema, a reference out of the file."""
    import jsonschema

    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the schema {path}: {error.strerror}", hint="check the path") from error
    if len(data) > _MOST_BYTES:
        raise UsageError(f"the schema {path} has {len(data):,} bytes", hint=f"at most {_MOST_BYTES:,}")
    try:
        schema = json.loads(data)
    except ValueError as error:
        raise UsageError(f"the schema {path} is no JSON: {error}", hint="a JSON schema in one file") from error
    if not isinstance(schema, dict):
        raise UsageError(
            f"the schema {path} is {type(schema).__name__}, no object", hint='such as {"type": "object", …}'
        )
    checker = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    try:
        checker.check_schema(schema)
    except jsonschema.exceptions.SchemaError as error:
        said = f"{error.json_path}: {_short(error.message)}"
        raise UsageError(f"{path} is no JSON schema: {said}", hint="see https://json-schema.org") from error
    outside = next((ref for ref in _references(schema) if not ref.startswith("#")), None)
    if outside is not None:
        raise UsageError(f"the schema {path} refers to {outside!r}", hint="put all of it into one file, under $defs")
    name = re.sub(r"[^\w-]", "_", str(schema.get("title") or path.name.split(".")[0]))[:64].strip("_") or "answer"
    return Form(schema, name if name.isascii() else "answer")


def _parse(text: str) -> Any:
    """The one JSON value of an answer; a fence around it, and words before or after an object or list, are let pass."""
    stripped = text.strip()
    if fenced := _FENCE.match(stripped):
        stripped = fenced[1].strip()
    if not stripped:
        raise ValueError("it is empty")
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    try:
        return decoder.decode(stripped)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        for start in (place for place, char in enumerate(stripped[:2_000]) if char in "{["):
            try:
                return decoder.raw_decode(stripped, start)[0]
            except (ValueError, RecursionError):
                continue
        raise error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _references(schema: Any) -> list[str]:
    if isinstance(schema, Mapping):
        own = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
        return [*own, *(ref for value in schema.values() for ref in _references(value))]
    return [ref for item in schema for ref in _references(item)] if isinstance(schema, list) else []


def _is_strict(schema: Any) -> bool:
    """Whether OpenAI's strict form takes a schema: every object closed, and all of its properties required."""
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" or "properties" in schema:
            properties = schema.get("properties") or {}
            if schema.get("additionalProperties") is not False or set(schema.get("required") or ()) != set(properties):
                return False
        if {"allOf", "oneOf", "not", "if", "patternProperties", "dependentRequired"} & set(schema):
            return False
        return all(_is_strict(value) for value in schema.values())
    return all(_is_strict(item) for item in schema) if isinstance(schema, list) else True


def _closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in the part of the language that Anthropic's API takes: objects closed, bounds left to our own check.
    Empty where an object must stay open, or a part contains itself."""
    defs = {
        f"#/{table}/{name}": part for table in ("$defs", "definitions") for name, part in schema.get(table, {}).items()
    }

    def recursive(part: Any, seen: tuple[str, ...] = ()) -> bool:
        refs = _references(part)
        return any(ref == "#" or ref in seen or recursive(defs.get(ref, {}), (*seen, ref)) for ref in refs)

    def close(part: Any, inside: bool = False) -> Any:
        """`inside` a table of names, which are no keywords."""
        if isinstance(part, list):
            return [close(item) for item in part]
        if not isinstance(part, Mapping):
            return part
        if inside:
            return {name: close(value) for name, value in part.items()}
        made = {
            key: value
            if key in ("enum", "const", "default", "required")
            else close(value, key in ("properties", "$defs", "definitions"))
            for key, value in part.items()
            if key not in _ANTHROPIC_UNTAKEN and key != "additionalProperties"
        }
        if "oneOf" in made and "anyOf" not in made:
            made["anyOf"] = made.pop("oneOf")
        if part.get("type") == "object" or "properties" in part:
            if not part.get("properties") and part.get("additionalProperties") is not False:
                raise _OpenObject
            made["additionalProperties"] = False
        return made

    if recursive(schema):
        return {}
    try:
        closed: dict[str, Any] = close(schema)
    except _OpenObject:
        return {}
    return closed


class _OpenObject(Exception):
    """An object whose properties are not known beforehand."""


def _short(text: str) -> str:
    return text if len(text) <= 300 else text[:297] + "…"
