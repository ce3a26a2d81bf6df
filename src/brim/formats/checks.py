"""Small checks that the rules of all APIs share, on raw wire values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def list_of(body: Mapping[str, Any], field: str, found: list[str]) -> Sequence[Any]:
    """The list in `field`, or nothing and an entry in `found`."""
    value = body.get(field)
    if not isinstance(value, list) or not value:
        found.append(f"{field}: must be a list with at least one entry")
        return ()
    return value


def blank(value: Any) -> bool:
    """Whether content is null, empty or white space."""
    return value is None or (isinstance(value, str) and not value.strip()) or value == []


def is_object(text: Any) -> bool:
    """Whether `text` is the JSON text of an object."""
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError, RecursionError):
        return False


def no_arguments(text: Any) -> bool:
    """Whether a call's arguments are there and say nothing, which OpenAI sends and takes back for an empty object."""
    return isinstance(text, str) and not text.strip()


def text_blocks(content: Any, where: str, *, empty: bool = False) -> Iterator[str]:
    """Text blocks without text in a content list; with `empty`, a text may be empty or white space."""
    if isinstance(content, list):
        for j, block in enumerate(content):
            if isinstance(block, Mapping) and block.get("type") in ("text", "input_text", "output_text"):
                if not isinstance(block.get("text"), str):
                    yield f"{where}[{j}].text: must be a string"
                elif not empty and not block["text"].strip():
                    yield f"{where}[{j}]: empty text block"
