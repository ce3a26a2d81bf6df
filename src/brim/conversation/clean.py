"""Text that no JSON body can carry: lone surrogates, the halves of an emoji that somebody cut in two.

A half pair survives in a Python string and in an old session file, and then every later request fails to encode. Here
it becomes U+FFFD; a pair that stands as two halves is joined to the character it is. Everything else, NUL included,
stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def needs_cleaning(text: str) -> bool:
    """Whether `text` holds a surrogate. Costs nothing for ASCII, one pass in C otherwise."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def clean_text(text: str) -> str:
    """`text` with lone surrogates made U+FFFD and split pairs joined; the same object where nothing is wrong."""
    if not needs_cleaning(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean_value(value: Any) -> tuple[Any, int]:
    """A JSON value with every string in it cleaned, keys too, and how many strings that changed.

    The value itself comes back, not a copy, where nothing is wrong; what is wrong is rebuilt, the input never altered.
    """
    try:
        _encode(value)
    except UnicodeEncodeError:
        return _clean(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return _clean(value)  # not plain JSON: only a walk can tell
    return value, 0


def _clean(value: Any) -> tuple[Any, int]:
    if isinstance(value, str):
        cleaned = clean_text(value)
        return cleaned, int(cleaned is not value)
    if isinstance(value, Mapping):
        pairs = [(_clean(key), _clean(item)) for key, item in value.items()]
        changed = sum(key[1] + item[1] for key, item in pairs)
        return ({key[0]: item[0] for key, item in pairs} if changed else value), changed
    if isinstance(value, list | tuple):
        items = [_clean(item) for item in value]
        changed = sum(item[1] for item in items)
        return ([item[0] for item in items] if changed else value), changed
    return value, 0
