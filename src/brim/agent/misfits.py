"""What a decoder says of a value that does not fit, in the words of whoever wrote the file: which key, and what it takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec

_TYPES = {
    "int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false", "array": "a list",
    "object": "a table", "null": "nothing",
}  # fmt: skip


def plain_type_error(said: str) -> str:
    """A decoder's complaint in words that a config file's writer knows."""
    words = re.sub(
        r"`([^`]+)`", lambda found: " or ".join(_TYPES.get(each, each) for each in found[1].split(" | ")), said
    )
    return words[:1].lower() + words[1:]


def place_of(given: Mapping[str, Any], struct: Any, path: str, unknown: str | None) -> tuple[str, tuple[str, ...]]:
    """The dotted key that a decoder's path (`.servers[...].env`) means, and the keys that may stand there. `[...]` is some
    entry of a table: the first that does not fit, or that has the unknown key."""
    keys: list[str] = []
    value: Any = given
    kind: Any = struct
    for name in re.findall(r"\.(\w+)|\[(?:\.\.\.|\d+)\]", path):
        if name:
            kind = next((each.type for each in _fields(kind) if name in (each.name, each.encode_name)), None)
            value = value.get(name) if isinstance(value, Mapping) else None
        else:
            entries = value if isinstance(value, Mapping) else {}
            kind = (get_args(kind) or (None,))[-1]
            name = next((each for each, inner in entries.items() if _misfits(inner, kind, unknown)), "…")
            value = entries.get(name)
        keys.append(name)
    return ".".join(keys), tuple(each.encode_name for each in _fields(kind))


def _misfits(value: Any, kind: Any, unknown: str | None) -> bool:
    if unknown is not None:
        return isinstance(value, Mapping) and unknown in value
    try:
        msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        return True
    return False


def _fields(kind: Any) -> Sequence[msgspec.structs.FieldInfo]:
    return msgspec.structs.fields(kind) if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else ()
