"""A model's call arguments: JSON text -> a mapping that fits the tool's parameters, or an error the model can act on.

Nothing is guessed: text that is no JSON object is refused with the reason and the place, and never run as an empty
object. What only looks different (a number written as text, another spelling of a parameter, an object that was encoded
twice) is taken.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from brim.errors import ToolError
from brim.tools.cleaning import whole_text
from brim.tools.context import Tool

# What models like to add to a call to say why they make it; no tool asks for it, and it changes nothing.
_REMARKS = frozenset(
    {"description", "explanation", "reason", "reasoning", "thought", "thoughts", "purpose", "justification"}
)
# A parameter that is left out, in the words of models that must write something.
_NOTHING = frozenset({"", "null", "none", "undefined"})
# What stands where JSON breaks off: nothing, or the beginning of a word, of a number's next part or of an escape.
_BEGUN = re.compile(r"|-|t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|\.|[eE][+-]?|u[0-9a-fA-F]{0,4}")


def parse_arguments(raw: str | Mapping[str, Any] | None, *, cut: bool = False) -> dict[str, Any]:
    """The arguments of a call. None, blank text and `null` are no arguments. `cut`: the reply ended at the output limit, so
    that text which ends too early was cut there.

    Raises ToolError that says what is wrong and at which character.
    """
    if raw is None:
        return {}
    if isinstance(raw, Mapping):
        return dict(raw)
    if not raw.strip():
        return {}
    try:
        value = _loads(raw)
        if isinstance(value, str) and (not value.strip() or value.lstrip().startswith("{")):
            value = _loads(value) if value.strip() else None  # encoded twice: the text of an object, or none
    except json.JSONDecodeError as error:
        early = error.msg.startswith("Unterminated string") or _BEGUN.fullmatch(error.doc.rstrip(), error.pos)
        raise _invalid(_place(error), cut=cut and bool(early)) from None
    except RecursionError:
        raise _invalid("they are nested too deeply") from None
    except ValueError as error:
        raise _invalid(str(error)) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}[type(value)]
        raise _invalid(f"they are {kind} (at character 1), not an object")
    return value


def storable_arguments(raw: str | None) -> str:
    """Arguments as they may be sent back to any provider: the text itself where it is a JSON object, else an object
    that holds it."""
    try:
        arguments = parse_arguments(raw)
    except ToolError:
        return json.dumps({"invalid_arguments": raw}, ensure_ascii=True)
    if raw and raw.lstrip().startswith('"'):
        raw = json.dumps(arguments)
    if raw and "\\u" in raw and (whole := whole_text(told := json.dumps(arguments, ensure_ascii=False))) != told:
        return whole  # it held an escaped half of a character
    return raw if raw and raw.strip() and raw.strip() != "null" else "{}"


def storable_name(name: str) -> str:
    """A tool's name as it may be sent back to any provider: they refuse a whole history for one with other characters."""
    return re.sub(r"[^a-zA-Z0-9_-]+", "_", name)[:64] or "unknown"


def _loads(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_int=_whole, parse_float=_finite)


def _whole(digits: str) -> int:
    if len(digits) > 1_000:
        raise ValueError(f"a number in them has {len(digits)} digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:40]} in them is too large")
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found and found[name] != value:
            raise ValueError(f"{name!r} stands in them twice, with different values")
        found[name] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _place(error: json.JSONDecodeError) -> str:
    raw = error.doc
    near = raw[max(0, error.pos - 20) : error.pos + 20]
    if error.msg == "Extra data":
        each = "; make one call for each" if raw[error.pos :].lstrip().startswith("{") else ""
        return f"more text follows the object at character {error.pos + 1}: {near!r}{each}"
    if error.pos >= len(raw):
        return f"they end too early, after character {len(raw)}: {near!r} ({error.msg})"
    what = "JSON with a byte order mark" if raw.startswith("\ufeff") else error.msg.removesuffix(" at")
    return f"{what} at character {error.pos + 1} of {len(raw)}, near {near!r}"


def _invalid(what: str, *, cut: bool = False) -> ToolError:
    if cut:
        return ToolError(
            f"the arguments are not valid: {what}; the reply reached the output limit, which cut them; the tool was not run",
            hint="make the call again with less in it, for example in several steps",
        )
    return ToolError(
        f"the arguments are not valid: {what}; the tool was not run",
        hint="send one JSON object with the tool's parameters",
    )


def check_arguments(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments under their own names and of the declared types. Raises ToolError that names the parameter at fault.

    Only the schema's top level is judged; a null for an optional parameter is the same as leaving it out.
    """
    declared: Mapping[str, Mapping[str, Any]] = tool.parameters.get("properties", {})
    required = set(tool.parameters.get("required", ()))
    checked: dict[str, Any] = {}
    names: dict[str, str] = {}
    for name, value in given.items():
        known = name if name in declared else tool.aliases.get(name, name)
        if known not in declared:
            if tool.parameters.get("additionalProperties", False) or known in tool.aliases.values():
                checked[known] = value
                continue
            if name in _REMARKS:
                continue
            near = difflib.get_close_matches(name, [*declared, *tool.aliases], 1, 0.6)
            raise ToolError(
                f"{tool.name} has no parameter {name!r}"
                + (f"; did you mean {tool.aliases.get(near[0], near[0])!r}?" if near else ""),
                hint=f"{tool.name} takes {_signature(declared, required)}",
            )
        if known in checked and checked[known] != value:
            raise ToolError(
                f"{names[known]!r} and {name!r} are the same parameter of {tool.name}, with different values"
            )
        if known not in required and _is_nothing(value, declared[known]):
            continue
        names[known] = name
        checked[known] = _typed(tool.name, known, value, declared[known])
    missing = [name for name in tool.parameters.get("required", ()) if name not in checked]
    if missing:
        listed = ", ".join(repr(name) for name in missing)
        raise ToolError(
            f"{listed} {'is' if len(missing) == 1 else 'are'} missing",
            hint=f"{tool.name} takes {_signature(declared, required)}",
        )
    return checked


def _is_nothing(value: Any, schema: Mapping[str, Any]) -> bool:
    if isinstance(value, str) and schema.get("type") in ("integer", "number", "boolean"):
        return value.strip().lower() in _NOTHING
    return value is None


def _signature(declared: Mapping[str, Any], required: set[str]) -> str:
    if not declared:
        return "no parameters"
    return ", ".join(name if name in required else f"[{name}]" for name in declared)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def _typed(tool: str, name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ToolError(
                f"parameter {name!r} of {tool} has half a character (a lone surrogate) at character {error.start + 1}"
            ) from None
    if isinstance(value, (dict, list)) and whole_text(told := json.dumps(value, ensure_ascii=False)) != told:
        raise ToolError(f"parameter {name!r} of {tool} has half a character (a lone surrogate) in it")
    wanted = schema.get("type")
    if not isinstance(wanted, str) or wanted not in _TYPES:
        return value
    fits = isinstance(value, _TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
    if fits:
        if wanted == "string" and "enum" in schema and value not in schema["enum"]:
            allowed = ", ".join(map(str, schema["enum"]))
            raise ToolError(f"parameter {name!r} of {tool} is {value!r}; it must be one of {allowed}")
        return value
    if isinstance(value, str) and wanted in ("integer", "number", "boolean"):
        text = value.strip().lower()
        if wanted == "boolean" and text in ("true", "false"):
            return text == "true"
        try:
            if wanted == "integer":
                return int(text)
            if wanted == "number":
                return float(text)
        except ValueError:
            pass
    if isinstance(value, float) and wanted == "integer" and value.is_integer():
        return int(value)
    if wanted == "string" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    shown = json.dumps(value, ensure_ascii=False, default=str)
    raise ToolError(
        f"parameter {name!r} of {tool} must be {_article(wanted)}, not {shown if len(shown) <= 60 else shown[:57] + '...'}"
    )


def _article(kind: str) -> str:
    return ("an " if kind[0] in "aeiou" else "a ") + kind
