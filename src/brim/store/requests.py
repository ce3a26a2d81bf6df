"""What was asked of a model: one row a request, with mode, model, plan, bill, usage and cost, and their sums.

Plans are stored as the change against the plan before (see `plans`), now and then whole, so that rebuilding the last
one reads a bounded number of rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

import msgspec
from sqlalchemy import BigInteger, Text, bindparam, func, select

from brim.errors import SessionNotFound
from brim.store.bodies import encode, plain
from brim.store.plans import apply_change, plan_change
from brim.store.schema import requests, row_into, sessions

if TYPE_CHECKING:
    from brim.store.database import Row, Work
    from brim.store.store import Store

WHOLE_EVERY = 50
"""Changes that may follow one another before a plan is stored whole again."""

Plan: TypeAlias = dict[str, Any]
Axis: TypeAlias = Literal["day", "model", "session", "mode"]


class RequestFacts(TypedDict, total=False):
    """What may be recorded of a request; see `Store.record_request`."""

    mode: str | None
    model: str | None
    plan: Mapping[str, Any] | None
    bill: Mapping[str, Any] | None
    usage: Any
    cost: float | None
    duration: float | None
    ttft: float | None
    finish: str | None
    error: str | None
    meta: Mapping[str, Any] | None
    seq: int | None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it was recorded. Tokens as in `brim.budget.Usage` (input includes cached); `cost` in US dollars,
    None where no price is known; `duration` and `ttft` (time to the first text) in seconds; `seq`: messages the session
    had; `plan_change` is what `plans.apply_change` takes, None where no plan came with the request."""

    id: int
    seq: int
    created: float
    mode: str | None
    model: str | None
    plan_change: Mapping[str, Any] | None
    bill: Mapping[str, Any] | None
    input: int | None
    cached_read: int | None
    cached_write: int | None
    output: int | None
    reasoning: int | None
    cached_write_1h: int | None
    cost: float | None
    duration: float | None
    ttft: float | None
    finish: str | None
    error: str | None
    meta: Mapping[str, Any]


class Sum(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of the requests that share `key` (a day, model, session id or mode; None where it was not recorded).

    `unpriced` counts requests with usage whose cost is unknown; `seconds` and `ttft` are means over those
    that have one."""

    key: str | None
    requests: int
    failed: int
    input: int
    cached_read: int
    cached_write: int
    output: int
    reasoning: int
    cost: float
    unpriced: int
    seconds: float | None
    ttft: float | None


_N = bindparam("session", type_=BigInteger)
_UPTO = bindparam("upto", type_=BigInteger)
_INSERT = row_into(requests).returning(requests.c.id)
_earlier = (requests.c.session == _N, requests.c.plan.is_not(None), requests.c.seq <= _UPTO)
_last_whole = select(func.max(requests.c.id)).where(*_earlier, requests.c.plan_whole == 1).scalar_subquery()
_CHAIN = (
    select(requests.c.id, requests.c.plan, requests.c.plan_whole)
    .where(*_earlier, requests.c.id >= func.coalesce(_last_whole, 0))
    .order_by(requests.c.id)
)
_LAST_ID = select(func.max(requests.c.id)).where(requests.c.session == _N, requests.c.plan.is_not(None))
_SESSION = select(sessions.c.n, sessions.c.plan).where(sessions.c.id == bindparam("id", type_=Text))
_ALL = (
    select(
        requests.c.id, requests.c.seq, requests.c.created, requests.c.mode, requests.c.model, requests.c.plan,
        requests.c.bill, requests.c.input, requests.c.cached_read, requests.c.cached_write, requests.c.output,
        requests.c.reasoning, requests.c.cached_write_1h, requests.c.cost, requests.c.duration, requests.c.ttft,
        requests.c.finish, requests.c.error, requests.c.meta,
    )
    .where(requests.c.session == _N)
    .order_by(requests.c.id)
)  # fmt: skip
_since = bindparam("since", type_=Text)
_project = bindparam("project", type_=Text)
_only = bindparam("only", type_=Text)
_keys = {"day": requests.c.day, "model": requests.c.model, "session": sessions.c.id, "mode": requests.c.mode}
_SUMS = {
    axis: select(
        key, func.count(), func.count(requests.c.error),
        *(
            func.coalesce(func.sum(column), 0)
            for column in (
                requests.c.input, requests.c.cached_read, requests.c.cached_write, requests.c.output,
                requests.c.reasoning, requests.c.cost,
            )
        ),
        func.count(requests.c.input) - func.count(requests.c.cost),
        func.avg(requests.c.duration), func.avg(requests.c.ttft),
    )
    .select_from(requests.outerjoin(sessions, sessions.c.n == requests.c.session))
    .where(
        (_since.is_(None)) | (requests.c.day >= _since),
        (_project.is_(None)) | (sessions.c.project == _project),
        (_only.is_(None)) | (sessions.c.id == _only),
    )
    .group_by(key)
    .order_by(key)
    for axis, key in _keys.items()
}  # fmt: skip


class Requests:
    """The requests of a store. A part of `Store`, which hands its methods on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._plans: dict[int, tuple[int, Plan, int]] = {}  # by session: request id, plan, changes since a whole one

    def record(self, session: str, **facts: Unpack[RequestFacts]) -> int:
        """See `Store.record_request`."""
        now = self._store.now()
        plan, bill, meta, seq = facts.get("plan"), facts.get("bill"), facts.get("meta"), facts.get("seq")
        with self._store.writing() as work:
            gate = self._store.gate(work, session)
            change, whole, chain = None, False, 0
            after: Plan = {}
            if plan is not None:
                after = msgspec.json.decode(encode(plan))
                change, whole, chain = self._change(work, gate.n, session, after)
            row = work.one(
                _INSERT,
                {
                    "session": gate.n, "seq": gate.next if seq is None else seq, "created": now,
                    "day": _day(now), "mode": plain(facts.get("mode")),
                    "model": plain(facts.get("model")), "plan": change, "plan_whole": int(whole),
                    "bill": encode(bill) if bill is not None else None, **_tokens(facts.get("usage")),
                    "cost": facts.get("cost"), "duration": facts.get("duration"), "ttft": facts.get("ttft"),
                    "finish": plain(facts.get("finish")), "error": plain(facts.get("error")),
                    "meta": encode(meta) if meta else None,
                },
            )  # fmt: skip
            assert row is not None
            number = int(row[0])
        if plan is not None:
            self._plans[gate.n] = (number, after, chain)
        return number

    def last_plan(self, session: str, at_seq: int | None = None) -> Plan | None:
        """See `Store.last_plan`."""

        def rebuilt(work: Work) -> Plan | None:
            row = _session_row(work, session)
            return rebuild_plan(work, row[0], row[1], at_seq)[0]

        return self._store.read(rebuilt)

    def all(self, session: str) -> list[Record]:
        """See `Store.requests`."""
        rows = self._store.read(lambda work: work.all(_ALL, {"session": _session_row(work, session)[0]}))
        return [_record(each) for each in rows]

    def sums(self, by: Axis, since: str | None, project: str | None, session: str | None) -> list[Sum]:
        """See `Store.usage`."""
        wanted = {"since": since, "project": plain(project), "only": plain(session)}
        rows = self._store.read(lambda work: work.all(_SUMS[by], wanted))
        return [
            Sum(
                key=row[0], requests=row[1], failed=row[2], input=int(row[3]), cached_read=int(row[4]),
                cached_write=int(row[5]), output=int(row[6]), reasoning=int(row[7]), cost=float(row[8]),
                unpriced=row[9], seconds=row[10], ttft=row[11],
            )
            for row in rows
        ]  # fmt: skip

    def _change(self, work: Work, n: int, session: str, after: Plan) -> tuple[str, bool, int]:
        """The JSON to store for `after`, whether it is whole, and how many changes follow a whole one with it."""
        last = work.one(_LAST_ID, {"session": n})
        before: Plan | None
        cached = self._plans.get(n)
        if cached is not None and last is not None and cached[0] == last[0]:
            _, before, chain = cached
        else:
            before, chain = rebuild_plan(work, n, _session_row(work, session)[1], None)
        whole = encode({"whole": after})
        if before is None or chain >= WHOLE_EVERY:
            return whole, True, 0
        change = encode(plan_change(before, after))
        return (change, False, chain + 1) if len(change) < len(whole) else (whole, True, 0)


def _session_row(work: Work, session: str) -> Row:
    row = work.one(_SESSION, {"id": plain(session)})
    if row is None:
        raise SessionNotFound(f"no session {session!r}", hint="`brim sessions list` shows all")
    return row


def rebuild_plan(work: Work, n: int, seed: str | None, at_seq: int | None) -> tuple[Plan | None, int]:
    """The plan after the last request that was made with at most `at_seq` messages, and how many changes it took."""
    plan: Any = msgspec.json.decode(seed) if seed else None
    rows = work.all(_CHAIN, {"session": n, "upto": 2**62 if at_seq is None else at_seq})
    for _, change, _ in rows:
        plan = apply_change(plan, msgspec.json.decode(change))
    return plan, sum(1 for row in rows if not row[2])


_TOKENS = ("input", "cached_read", "cached_write", "output", "reasoning", "cached_write_1h")


def _tokens(usage: Any) -> dict[str, int | None]:
    """The token figures of a usage, whether it is `brim.budget.Usage` or a mapping of its fields."""
    if usage is None:
        return dict.fromkeys(_TOKENS)
    if not getattr(usage, "reported", True):  # the provider said nothing: unknown, not nought
        return dict.fromkeys(_TOKENS)
    if isinstance(usage, Mapping):
        return {name: usage.get(name) for name in _TOKENS}
    return {name: getattr(usage, name, None) for name in _TOKENS}


def _record(row: Row) -> Record:
    values = dict(zip(Record.__struct_fields__, row, strict=True))
    for name in ("plan_change", "bill"):
        values[name] = msgspec.json.decode(values[name]) if values[name] is not None else None
    values["meta"] = msgspec.json.decode(values["meta"]) if values["meta"] else {}
    return Record(**values)


def restore_request(work: Work, n: int, exported: Mapping[str, Any]) -> None:
    """Insert a request as `exporting` wrote it out."""
    row = {column.name: exported.get(column.name) for column in requests.columns if column.name != "id"}
    change, bill, meta = exported.get("plan_change"), exported.get("bill"), exported.get("meta")
    created = float(exported.get("created") or 0.0)
    work.run(
        _INSERT,
        {
            **row, "session": n, "seq": int(exported.get("seq") or 0), "created": created, "day": _day(created),
            "plan": encode(change) if change is not None else None,
            "plan_whole": int(change is not None and "whole" in change),
            "bill": encode(bill) if bill is not None else None, "meta": encode(meta) if meta else None,
        },
    )  # fmt: skip


def _day(seconds: float) -> str:
    """The local date, so that costs by day are by the user's day."""
    return datetime.datetime.fromtimestamp(seconds).date().isoformat()
