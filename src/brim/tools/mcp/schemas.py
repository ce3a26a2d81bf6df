"""A server's description of a tool as one that every provider takes: a name by their rules, a plain object schema.

Providers refuse a whole request for one tool with a name or a schema that they do not like, so what servers send is brought
into the form that all of them take: references are written out, combinations at the top become one object, what is no
schema becomes "anything". Titles and other words that no model needs go, since they are paid for with every request.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

PREFIX = "mcp__"
_MOST_NAME = 64
_MOST_DESCRIPTION = 1_024
"""OpenAI's limit for the description of a function."""
_DEEPEST = 24
_MOST_PARTS = 3_000
"""Schemas within one schema; what references would write out beyond it is "anything"."""
_BY_NAME = ("properties", "patternProperties")
_COMBINED = ("allOf", "anyOf", "oneOf")
_SCHEMAS = ("items", "additionalProperties", "not", "contains", "propertyNames")
_LISTS = (*_COMBINED, "prefixItems")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_TEXTS = ("description", "format", "pattern")
_TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")

Json: TypeAlias = dict[str, Any]


class RemoteTool(msgspec.Struct, frozen=True):
    """A tool of a server: `tool` is its name there, `name` the one that models use. `renamed`: parameters whose names no
    provider takes, by the name given to them. `about` is the server's whole description."""

    server: str
    tool: str
    name: str
    about: str
    parameters: Json
    read_only: bool = False
    renamed: Mapping[str, str] = {}

    @property
    def description(self) -> str:
        """The description as it is sent, within what providers take."""
        text = self.about or f"{self.tool} of the MCP server {self.server}"
        return text if len(text) <= _MOST_DESCRIPTION else text[: _MOST_DESCRIPTION - 2].rstrip() + " …"

    @property
    def brief(self) -> str:
        """Its first sentence or line, short."""
        line = " ".join((self.about.strip() or self.tool).splitlines()[0].split())
        sentence = re.split(r"(?<=[.!?])\s|(?<=[。！？])", line, maxsplit=1)[0]
        return sentence if len(sentence) <= 120 else sentence[:118].rstrip() + " …"

    def arguments(self, given: Mapping[str, Any]) -> Json:
        """A call's arguments under the server's own names."""
        return {self.renamed.get(key, key): value for key, value in given.items()}


def name_tool(server: str, tool: str, taken: Mapping[str, object]) -> str:
    """`mcp__server__tool` in letters, digits, _ and -, at most 64 of them, and not one of `taken`. A name that would be too
    long, or is taken, ends in a hash of the full one."""
    full = f"{PREFIX}{server}__{tool}"
    name = re.sub(r"[^A-Za-z0-9_-]", "_", full)
    if len(name) <= _MOST_NAME and name not in taken:
        return name
    return f"{name[: _MOST_NAME - 9]}_{_short_hash(full)}"


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def build_tool(server: str, tool: str, about: str, schema: Any, name: str, *, read_only: bool = False) -> RemoteTool:
    """A tool from what its server says of it, whatever that is."""
    parameters = plain_schema(schema)
    properties: Json = {}
    renamed: dict[str, str] = {}
    for key, value in parameters["properties"].items():
        usable = key
        if not _PROPERTY.fullmatch(key):
            usable = f"{re.sub(r'[^A-Za-z0-9_.-]', '_', key)[:50]}_{_short_hash(key)}"
            renamed[usable] = key
        properties[usable] = value
    given = {key: usable for usable, key in renamed.items()}
    parameters["properties"] = properties
    if "required" in parameters:
        parameters["required"] = [given.get(key, key) for key in parameters["required"]]
    return RemoteTool(server, tool, name, about, parameters, read_only, renamed)


def plain_schema(schema: Any) -> Json:
    """A schema of an object that any provider takes, from any value at all."""
    whole = schema if isinstance(schema, Mapping) else {}
    plain = _plain(whole, whole, (), [_MOST_PARTS])
    for key in _COMBINED:
        plain = _merged(plain, plain.pop(key, []), every=key == "allOf")
    for key in ("not", "enum", "const"):
        plain.pop(key, None)
    properties = plain.get("properties", {})
    named = [key for key in plain.pop("required", ()) if key in properties]
    plain = {**plain, "type": "object", "properties": properties}
    if named:
        plain["required"] = list(dict.fromkeys(named))
    if not properties and "additionalProperties" not in plain:
        plain["additionalProperties"] = True  # nothing is said of its parameters: then nothing is refused
    return plain


def _merged(base: Json, options: list[Json], *, every: bool) -> Json:
    """Several object schemas as one: all properties; required is what all (`every`: any) of them require."""
    if not options:
        return base
    properties = dict(base.get("properties", {}))
    required = [set(each.get("required", ())) for each in options]
    needed = set.union(*required) if every else set.intersection(*required)
    for each in options:
        for key, value in each.get("properties", {}).items():
            properties.setdefault(key, value)
    return {**base, "properties": properties, "required": [*base.get("required", ()), *sorted(needed)]}


def _plain(value: Any, whole: Mapping[str, Any], above: tuple[str, ...], room: list[int]) -> Json:
    """A valid schema of the words that all providers know, with references written out; what goes in circles, too deep or
    on and on ends in "anything". `above`: the references that led here, "" for each other step; `room`: parts left."""
    room[0] -= 1
    if not isinstance(value, Mapping) or len(above) > _DEEPEST or room[0] < 0:
        return {}
    reference = value.get("$ref", value.get("$dynamicRef"))
    if isinstance(reference, str):
        beside = {key: each for key, each in value.items() if key not in ("$ref", "$dynamicRef")}
        target = None if reference in above else _resolve(reference, whole)
        found = _plain(target, whole, (*above, reference), room)
        return {**found, **_plain(beside, whole, above, room)}

    def sub(inner: Any) -> Json:
        return _plain(inner, whole, (*above, ""), room)

    made: Json = {}
    for key, each in value.items():
        if key in _BY_NAME and isinstance(each, Mapping):
            made[key] = {str(name): sub(inner) for name, inner in each.items()}
        elif key in _SCHEMAS and (
            isinstance(each, Mapping) or (key == "additionalProperties" and isinstance(each, bool))
        ):
            made[key] = each if isinstance(each, bool) else sub(each)
        elif key in _LISTS and isinstance(each, list) and each:
            made[key] = [sub(inner) for inner in each]
        elif _is_plain(key, each):
            made[key] = each
        elif key == "type" and isinstance(each, list):
            kinds = list(dict.fromkeys(kind for kind in each if kind in _TYPES))
            if kinds:
                made[key] = kinds
        elif key == "required" and isinstance(each, list):
            made[key] = list(dict.fromkeys(name for name in each if isinstance(name, str)))
    return made


def _is_plain(key: str, value: Any) -> bool:
    """Whether a keyword and its value stand for themselves."""
    if key in ("default", "const"):
        return True
    if key == "type":
        return isinstance(value, str) and value in _TYPES
    if key == "enum":
        return isinstance(value, list) and bool(value)
    if key in _TEXTS:
        return isinstance(value, str)
    if key == "uniqueItems":
        return isinstance(value, bool)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if key == "multipleOf":
        return number and value > 0
    return (key in _NUMBERS and number) or (key in _COUNTS and isinstance(value, int) and number and value >= 0)


def _resolve(reference: str, whole: Mapping[str, Any]) -> Any:
    """What a reference within the same schema points to; None for any other, nothing is fetched."""
    if not reference.startswith("#"):
        return None
    at: Any = whole
    for step in reference[1:].strip("/").split("/"):
        if not step:
            continue
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, Mapping):
            at = at.get(step)
        elif isinstance(at, list) and step.isdigit() and int(step) < len(at):
            at = at[int(step)]
        else:
            return None
    return at
