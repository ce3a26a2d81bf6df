"""A plan is stored as its change against the plan before it. Pure functions on JSON values.

A change is one of

    {"whole": value}                         nothing of the value before is used
    {"keys": {key: change}, "gone": [key]}   an object: keys changed, added, removed
    {"splice": [start, removed, [values]]}   a list: `removed` entries from `start` on are replaced by the values

`apply_change(before, plan_change(before, after))` is `after`, key order and number types included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

JSON: TypeAlias = Any
"""Any JSON value."""


def plan_change(before: JSON, after: JSON) -> dict[str, JSON]:
    """What turns `before` into `after`. Never larger than `after` by more than its own keys."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return _object_change(before, after)
    if isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)):
        return _list_change(before, after)
    return {"whole": after}


def apply_change(before: JSON, change: Mapping[str, JSON]) -> JSON:
    """The value after `change`; `before` is not touched."""
    if "whole" in change:
        return change["whole"]
    if "splice" in change:
        start, removed, values = change["splice"]
        assert isinstance(before, (list, tuple)) and isinstance(start, int) and isinstance(removed, int)
        return [*before[:start], *values, *before[start + removed :]]
    assert isinstance(before, Mapping)
    after = dict(before)
    for key in change.get("gone", ()):
        del after[key]
    for key, inner in change.get("keys", {}).items():
        after[key] = apply_change(after.get(key), inner)
    return after


def _object_change(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> dict[str, JSON]:
    gone = [key for key in before if key not in after]
    kept = [key for key in before if key in after]
    # New keys land behind the old ones; where `after` has another order it is stored whole.
    if list(after)[: len(kept)] != kept:
        return {"whole": after}
    keys: dict[str, JSON] = {}
    for key, value in after.items():
        if key not in before:
            keys[key] = {"whole": value}
        elif not _same(before[key], value):
            keys[key] = plan_change(before[key], value)
    change: dict[str, JSON] = {}
    if keys or not gone:
        change["keys"] = keys
    if gone:
        change["gone"] = gone
    return change


def _list_change(before: Sequence[JSON], after: Sequence[JSON]) -> dict[str, JSON]:
    shortest = min(len(before), len(after))
    start = 0
    while start < shortest and _same(before[start], after[start]):
        start += 1
    tail = 0
    while tail < shortest - start and _same(before[-1 - tail], after[-1 - tail]):
        tail += 1
    return {"splice": [start, len(before) - tail - start, list(after[start : len(after) - tail])]}


def _same(a: JSON, b: JSON) -> bool:
    """Equal as JSON text: unlike `==`, 1, 1.0 and true differ, and so do orders of keys."""
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and a == b and repr(a) == repr(b)
