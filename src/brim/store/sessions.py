"""Session rows: made, found by short id or project, listed, forked, renamed, deleted. Each function works in a transaction."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import BigInteger, Integer, Text, bindparam, delete, func, insert, or_, select, update

from brim.errors import SessionNotFound, UsageError
from brim.store.bodies import encode, plain
from brim.store.requests import rebuild_plan
from brim.store.schema import blob_uses, drafts, leases, messages, requests, row_into, sessions
from brim.store.values import Session

if TYPE_CHECKING:
    from brim.store.database import Row, Work

_ID = bindparam("id", type_=Text)
_N = bindparam("session", type_=BigInteger)

next_seq = select(func.coalesce(func.max(messages.c.seq) + 1, 0)).where(messages.c.session == sessions.c.n)
"""The seq that the next message of a session gets (correlated to `sessions`)."""
_updated = select(messages.c.created).where(messages.c.session == sessions.c.n).order_by(messages.c.seq.desc()).limit(1)
_facts = select(
    sessions.c.n, sessions.c.id, sessions.c.project, sessions.c.title, sessions.c.created,
    _updated.scalar_subquery(), next_seq.scalar_subquery(), sessions.c.mode, sessions.c.model, sessions.c.parent,
    sessions.c.parent_seq, sessions.c.archived, sessions.c.meta,
)  # fmt: skip
_BY_ID = _facts.where(sessions.c.id == _ID)
_last_used_first = (sessions.c.touched.desc(), sessions.c.n.desc())
_BY_PREFIX = (
    _facts.where(func.substr(sessions.c.id, 1, bindparam("length", type_=Integer)) == bindparam("prefix", type_=Text))
    .order_by(*_last_used_first)
    .limit(20)
)
_project = bindparam("project", type_=Text)
_LIST = (
    _facts.where(
        (_project.is_(None)) | (sessions.c.project == _project),
        sessions.c.archived <= bindparam("archived", type_=Integer),
    )
    .order_by(*_last_used_first)
    .limit(bindparam("most", type_=Integer))
)
NUMBER = select(sessions.c.n).where(sessions.c.id == _ID)
_INSERT = row_into(sessions)
_NEXT_TOUCH = select(func.coalesce(func.max(sessions.c.touched), 0) + 1)
_UPDATE = {
    name: update(sessions).where(sessions.c.n == _N).values({name: bindparam("value", type_=sessions.c[name].type)})
    for name in ("id", "parent", "title", "mode", "model", "archived", "meta")
}
_REFERRING = select(sessions.c.n, sessions.c.parent, sessions.c.meta).where(
    or_(
        sessions.c.parent.in_([bindparam("first", type_=Text), bindparam("second", type_=Text)]),
        sessions.c.meta.like(bindparam("like", type_=Text)),
    )
)
_DELETE = [delete(table).where(table.c.session == _N) for table in (messages, drafts, requests, leases, blob_uses)] + [
    delete(sessions).where(sessions.c.n == _N)
]
_SEED = select(sessions.c.plan).where(sessions.c.n == _N)
_FROM = bindparam("source", type_=BigInteger)
_COPY_MESSAGES = insert(messages).from_select(
    [c.name for c in messages.columns],
    select(*(_N.label("session") if c.name == "session" else c for c in messages.columns)).where(
        messages.c.session == _FROM, messages.c.seq < bindparam("upto", type_=BigInteger)
    ),
)
_COPY_USES = insert(blob_uses).from_select(
    ["blob", "session"], select(blob_uses.c.blob, _N.label("session")).where(blob_uses.c.session == _FROM)
)


def create(work: Work, id: str | None, values: Mapping[str, Any], now: float) -> Session:
    """A new session; an id is made where none is given, unique already in its first 7 characters."""
    if id is None:
        id = secrets.token_hex(10)
        while work.one(_BY_PREFIX, {"length": 7, "prefix": id[:7]}) is not None:
            id = secrets.token_hex(10)
    else:
        _check_id(id)
        if exists(work, id):
            raise UsageError(f"there already is a session {id!r}", hint=f"continue it with --session {id}")
    touched = work.one(_NEXT_TOUCH)
    assert touched is not None
    row: dict[str, Any] = {
        "id": id, "title": None, "created": now, "touched": touched[0], "mode": None, "model": None, "parent": None,
        "parent_seq": None, "archived": 0, "meta": None, "plan": None, **values,
    }  # fmt: skip
    for name in ("project", "title", "mode", "model"):
        row[name] = plain(row[name])
    row["meta"] = encode(row["meta"]) if row["meta"] else None
    work.run(_INSERT, row)
    return get(work, id)


def exists(work: Work, id: str) -> bool:
    return work.one(NUMBER, {"id": plain(id)}) is not None


def number(work: Work, id: str) -> int:
    """The session's number. Raises SessionNotFound."""
    row = work.one(NUMBER, {"id": plain(id)})
    if row is None:
        raise SessionNotFound(f"no session {id!r}", hint="`brim sessions list` shows all")
    return int(row[0])


def get(work: Work, id: str) -> Session:
    row = work.one(_BY_ID, {"id": plain(id)})
    if row is None:
        raise SessionNotFound(f"no session {id!r}", hint="`brim sessions list` shows all")
    return _session(row)


def listed(work: Work, project: str | None, limit: int, archived: bool) -> list[Session]:
    rows = work.all(_LIST, {"project": plain(project), "archived": int(archived), "most": limit})
    return [_session(row) for row in rows]


def find(work: Work, prefix: str | None, project: str | None) -> Session:
    if prefix is None:
        if latest := listed(work, project, 1, False):
            return latest[0]
        raise SessionNotFound(f"no session yet in {project}" if project else "no session yet", hint='start one: ai "…"')
    exact = work.one(_BY_ID, {"id": plain(prefix)})
    if exact is not None:
        return _session(exact)
    rows = work.all(_BY_PREFIX, {"length": len(prefix), "prefix": plain(prefix)}) if prefix else []
    found = [_session(row) for row in rows]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(_name(each, len(prefix)) for each in found[:5])
        raise SessionNotFound(f"{prefix!r} is short for {len(found)} sessions", hint=f"say which: {names}")
    names = ", ".join(_name(each) for each in listed(work, project, 5, True))
    raise SessionNotFound(
        f"no session {prefix!r}", hint=f"the latest are: {names}" if names else "`brim sessions list` shows all"
    )


def change(work: Work, n: int, name: str, value: Any) -> None:
    """Set one column of a session."""
    if name == "meta":
        value = encode(value) if value else None
    elif name == "archived":
        value = int(value)
    else:
        value = plain(value)
    work.run(_UPDATE[name], {"session": n, "value": value})


def remove(work: Work, n: int) -> None:
    for statement in _DELETE:
        work.run(statement, {"session": n})


def fork(work: Work, parent: Session, at_seq: int | None, title: str | None, now: float) -> Session:
    """A new session that has the parent's messages before `at_seq` (all of them: None) and the plan it had there."""
    upto = parent.messages if at_seq is None else at_seq
    if not 0 <= upto <= parent.messages:
        raise UsageError(f"session {parent.short} has {parent.messages} messages: it cannot be forked at {upto}")
    seed = work.one(_SEED, {"session": parent.n})
    plan, _ = rebuild_plan(work, parent.n, seed[0] if seed else None, upto)
    meta = dict(parent.meta)
    if "pins" in meta:
        meta["pins"] = [seq for seq in meta["pins"] if seq < upto]  # what comes there now is another message
    meta.pop("rewound", None)
    made = create(
        work,
        None,
        {
            "project": parent.project, "title": title or parent.title, "mode": parent.mode, "model": parent.model,
            "parent": parent.id, "parent_seq": upto, "plan": encode(plan) if plan is not None else None,
            "meta": meta,
        },
        now,
    )  # fmt: skip
    work.run(_COPY_MESSAGES, {"session": made.n, "source": parent.n, "upto": upto})
    work.run(_COPY_USES, {"session": made.n, "source": parent.n})
    return get(work, made.id)


def pass_name(work: Work, old: Session, new: Session) -> str:
    """`new` takes the id of `old`, which goes on as `old~1` (the first that is free). Returns that id. What names either by
    its id, as a parent or as where a rewind came from, names it by the new one."""
    aside = next(id for k in itertools.count(1) if not exists(work, id := f"{old.id}~{k}"))
    moves = {old.id: aside, new.id: old.id}
    for n, id in ((old.n, aside), (new.n, old.id)):
        work.run(_UPDATE["id"], {"session": n, "value": id})
    for n, parent, meta in work.all(
        _REFERRING, {"first": plain(old.id), "second": plain(new.id), "like": '%"rewound"%'}
    ):
        if parent in moves:
            work.run(_UPDATE["parent"], {"session": n, "value": moves[parent]})
        facts = msgspec.json.decode(meta, type=dict[str, Any]) if meta else {}
        if (rewound := facts.get("rewound")) and rewound.get("from") in moves:
            facts["rewound"] = {**rewound, "from": moves[rewound["from"]]}
            work.run(_UPDATE["meta"], {"session": n, "value": encode(facts)})
    return aside


def _session(row: Row) -> Session:
    n, id, project, title, created, updated, count, mode, model, parent, parent_seq, archived, meta = row
    return Session(
        n=n, id=id, project=project, title=title, created=created, updated=updated or created, messages=count,
        mode=mode, model=model, parent=parent, parent_seq=parent_seq, archived=bool(archived),
        meta=msgspec.json.decode(meta) if meta else {},
    )  # fmt: skip


def _name(session: Session, longer_than: int = 0) -> str:
    name = session.short if len(session.short) > longer_than else session.id[: longer_than + 4]
    return f"{name} ({session.title})" if session.title else name


def fits(id: str) -> bool:
    """Whether a session can be called so."""
    return (
        bool(id) and len(id) <= 200 and id.isprintable() and not any(c.isspace() for c in id) and not id.startswith("-")
    )


def _check_id(id: str) -> None:
    if not fits(id):
        raise UsageError(f"{id!r} cannot name a session", hint="use up to 200 letters, digits and signs, no spaces")
