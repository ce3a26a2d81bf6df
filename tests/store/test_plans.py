"""Plan changes: exact, and small where little changed."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.store import Store, apply_change, plan_change

LEAVES = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=5),
    max_leaves=20,
)
PLANS = st.dictionaries(st.sampled_from(["fates", "sent", "inserts", "summaries", "x"]), VALUES, max_size=5)


@given(before=st.none() | PLANS, after=PLANS)
def test_change_is_exact(before: dict[str, Any] | None, after: dict[str, Any]) -> None:
    """Applying a change gives the plan after, byte for byte, and alters neither plan; it survives being JSON."""
    kept = copy.deepcopy(before)
    change = json.loads(json.dumps(plan_change(before, after)))
    assert json.dumps(apply_change(before, change)) == json.dumps(after)
    assert json.dumps(before) == json.dumps(kept)


@given(plan=PLANS)
def test_no_change_is_nothing(plan: dict[str, Any]) -> None:
    """A plan that stayed the same costs a few bytes."""
    assert plan_change(plan, copy.deepcopy(plan)) == {"keys": {}}


def test_appended_fates_are_all_that_is_stored() -> None:
    """What is added to a long plan is stored, not the plan."""
    fates = [{"range": [n, n + 1], "fate": "stub", "reason": {"rule": "expire", "age": n}} for n in range(500)]
    before = {"fates": fates, "sent": {"count": 900, "hash": "a"}, "mode": "auto"}
    added = {"range": [501, 502], "fate": "trim", "reason": {"rule": "truncate"}}
    after = {"fates": [*fates, added], "sent": {"count": 903, "hash": "b"}, "mode": "auto"}
    change = plan_change(before, after)
    assert apply_change(before, change) == after
    assert len(json.dumps(change)) < 300
    changed = {**before, "fates": [*fates[:200], {**fates[200], "fate": "drop"}, *fates[201:]]}
    assert len(json.dumps(plan_change(before, changed))) < 300


@pytest.mark.parametrize(
    ("one", "other"), [(1, 1.0), (1, True), (0, False), (0.0, -0.0), ({"a": 1, "b": 2}, {"b": 2, "a": 1})]
)
def test_equal_is_not_the_same(one: Any, other: Any) -> None:
    """What Python calls equal but JSON writes otherwise is a change."""
    after = {"x": other, "l": [other]}
    assert json.dumps(apply_change({"x": one, "l": [one]}, plan_change({"x": one, "l": [one]}, after))) == json.dumps(
        after
    )


@given(plans=st.lists(PLANS, min_size=1, max_size=8))
def test_chains_rebuild_every_plan(plans: list[dict[str, Any]]) -> None:
    """Changes applied one after another give each plan in turn."""
    before: Any = None
    rebuilt: Any = None
    for plan in plans:
        rebuilt = apply_change(rebuilt, plan_change(before, plan))
        before = plan
        assert json.dumps(rebuilt) == json.dumps(plan)


def test_store_rebuilds_plans(store: Store) -> None:
    """The last plan comes back after any number of changes, also at an earlier message and in a store opened anew."""
    session = store.new_session("/work").id
    assert store.last_plan(session) is None
    plan: dict[str, Any] = {"fates": [], "sent": {"count": 0}}
    seen: list[dict[str, Any]] = []
    from brim.conversation import user

    for n in range(130):
        store.append(session, [user(str(n))])
        plan = {"fates": [*plan["fates"], {"at": n, "fate": "stub"}], "sent": {"count": n}}
        store.record_request(session, plan=plan)
        store.record_request(session, mode="auto")  # a request without a plan changes nothing
        seen.append(plan)
    assert store.last_plan(session) == plan
    assert store.last_plan(session, 61) == seen[60]
    assert store.last_plan(session, 0) is None
    from brim.store.requests import Requests

    anew = Requests(store)
    assert anew.last_plan(session) == plan
    anew.record(session, plan={"fates": [], "sent": {"count": 0}})
    assert store.last_plan(session) == {"fates": [], "sent": {"count": 0}}
    store.record_request(session, plan=plan)
    assert anew.last_plan(session) == plan
    sizes = [len(json.dumps(record.plan_change)) for record in store.requests(session) if record.plan_change]
    assert sum(size > 200 for size in sizes) <= 6, "nearly all are stored as what changed"
