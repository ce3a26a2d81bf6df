"""The JSON schema of what `ai --output-format json|stream-json` writes, made from the event structs themselves.

One line is one event; `json` writes the last one alone, the `result`. The schema is open to fields and events that a
later version may add, and strict about what is there: every field of this version is always written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

TITLE = "A line of `ai --output-format stream-json`; with `json` the only line, a result"


def output_schema() -> dict[str, Any]:
    """The schema, with each event under `$defs` by the name of its `type`."""
    import msgspec

    from brim.agent import events as ev

    kinds = (
        ev.Started, ev.Requested, ev.Text, ev.Thinking, ev.ToolStarted, ev.ToolFinished, ev.Notice, ev.Failed, ev.Used,
        ev.Result,
    )  # fmt: skip
    _, parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    names = {kind.__name__: str(kind.__struct_config__.tag) for kind in kinds}
    defs: dict[str, Any] = {}
    for name, part in parts.items():
        made = dict(_renamed(part, names))
        made["properties"] = dict(made["properties"])
        made["required"] = list(made["properties"])  # defaults are written, too
        made.pop("title", None)
        defs[names.get(name, name)] = made
    for name in ("error", "result"):
        defs[name]["properties"]["error"] = _error_or_none(name == "result")
    for name in ("request", "error", "result"):
        bill = {"$ref": "#/$defs/Bill"}
        defs[name]["properties"]["bill"] = bill if name == "request" else {"anyOf": [bill, {"type": "null"}]}
    defs["Bill"] = _bill()
    defs["Error"] = _error()
    defs["result"]["properties"]["exit_code"] = {"enum": sorted({0, *(each.code for each in errors())})}
    defs["result"]["allOf"] = list(_conditions())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": TITLE,
        "description": "The last line is always a result, also on failure; stdout carries nothing else.",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in names.values()],
        "$defs": defs,
    }


def errors() -> list[Any]:
    """Every kind of error there is, as classes, the base first."""
    from brim.errors import BrimError
    from brim.store.blobs import BlobMissing  # the one kind that is not in brim.errors

    assert issubclass(BlobMissing, BrimError)
    found: list[Any] = [BrimError]
    for each in found:
        found += [below for below in each.__subclasses__() if below.__module__.startswith("brim.")]
    return found


def _renamed(part: Any, names: Mapping[str, str]) -> Any:
    """The same with references to events by their type."""
    if isinstance(part, Mapping):
        return {
            key: f"#/$defs/{names.get(value.rpartition('/')[2], value.rpartition('/')[2])}"
            if key == "$ref"
            else _renamed(value, names)
            for key, value in part.items()
        }
    return [_renamed(item, names) for item in part] if isinstance(part, list) else part


def _error_or_none(optional: bool) -> dict[str, Any]:
    error = {"$ref": "#/$defs/Error"}
    return {"anyOf": [error, {"type": "null"}]} if optional else error


def _error() -> dict[str, Any]:
    return {
        "description": "What went wrong; beside these fields, every figure that is known (status, window, requested …).",
        "type": "object",
        "properties": {
            "kind": {"enum": sorted({str(each.kind) for each in errors()})},
            "message": {"type": "string", "minLength": 1},
            "hint": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["kind", "message", "hint"],
    }


def _bill() -> dict[str, Any]:
    from brim.budget.bill import KINDS

    tokens = {"type": "integer"}
    line = {
        "type": "object",
        "properties": {"kind": {"enum": list(KINDS)}, "label": {"type": "string"}, "tokens": tokens, "count": tokens},
        "required": ["kind", "label", "tokens", "count"],
    }
    figures = ("window", "reserved", "margin", "held_back", "free", "used")
    properties: dict[str, Any] = dict.fromkeys(figures, tokens)
    properties |= {
        "window_assumed": {"type": "boolean"},
        "counter": {"type": "string"},
        "exact": {"type": "boolean"},
        "lines": {"type": "array", "items": line},
    }
    return {
        "description": "Tokens of one request: used + reserved + margin + held_back + free = window.",
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def _conditions() -> Iterator[dict[str, Any]]:
    """Success and failure have their own codes: those of the error table."""
    yield {
        "if": {"properties": {"ok": {"const": True}}},
        "then": {"properties": {"exit_code": {"const": 0}, "error": {"type": "null"}}},
        "else": {"properties": {"error": {"$ref": "#/$defs/Error"}}},
    }
    by_code: dict[int, set[str]] = {}
    for each in errors():
        by_code.setdefault(int(each.code), set()).add(str(each.kind))
    for code, kinds in sorted(by_code.items()):
        kind = {"type": "object", "properties": {"kind": {"enum": sorted(kinds)}}}
        yield {
            "if": {"properties": {"error": kind}},
            "then": {"properties": {"exit_code": {"const": code}}},
        }
