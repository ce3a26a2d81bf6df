"""Tool call arguments: JSON text in the OpenAI formats, an object in Anthropic's.

A model may send nothing, `null`, a list or broken JSON. Whatever it was, what goes into a request built by brim is a
JSON object: nothing becomes `{}`, and what is not an object is kept, as it was, under `arguments`.
"""

from __future__ import annotations

from typing import Any

import msgspec

_decode = msgspec.json.Decoder().decode


def arguments_object(text: str) -> dict[str, Any]:
    """The arguments as an object."""
    if not text or text.isspace():
        return {}
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {"arguments": text}
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"arguments": value}


def is_object_text(text: str) -> bool:
    """Whether `text` is the JSON of an object."""
    try:
        return isinstance(_decode(text), dict)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False


def arguments_object_text(text: str) -> str:
    """The arguments as JSON text of an object; the same text where it already is one."""
    return text if is_object_text(text) else msgspec.json.encode(arguments_object(text)).decode()
