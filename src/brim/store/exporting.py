"""A session written out: as one JSON object, as JSON Lines, as Markdown."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import BigInteger, bindparam, select

from brim.conversation import Media, Message, Opaque, Thinking, ToolCall, ToolResult
from brim.conversation import Text as TextPart
from brim.store.bodies import encode
from brim.store.schema import blob_uses, blobs, messages, sessions

if TYPE_CHECKING:
    from brim.store.store import Store
    from brim.store.values import Session

FORMAT = "brim.session"
VERSION = 1

_N = bindparam("session", type_=BigInteger)
_ROWS = (
    select(
        messages.c.seq, messages.c.role, messages.c.api, messages.c.piece, messages.c.body, messages.c.created,
        messages.c.incomplete, messages.c.meta,
    )
    .where(messages.c.session == _N)
    .order_by(messages.c.seq)
)  # fmt: skip
_SEED = select(sessions.c.plan).where(sessions.c.n == _N)
_ORIGINALS = (
    select(blobs.c.hash, blobs.c.size, blobs.c.total)
    .join(blob_uses, blob_uses.c.blob == blobs.c.n)
    .where(blob_uses.c.session == _N)
    .order_by(blobs.c.n)
)


def as_object(store: Store, session: str, originals: bool) -> dict[str, Any]:
    """See `Store.export_session`."""
    parts: dict[str, list[dict[str, Any]]] = {"message": [], "request": [], "original": []}
    head: dict[str, Any] = {}
    for entry in _entries(store, session, originals):
        kind = entry.pop("type")
        if kind == "session":
            head = entry
        else:
            parts[kind].append(entry)
    return {**head, "messages": parts["message"], "requests": parts["request"], "originals": parts["original"]}


def as_lines(store: Store, session: str, originals: bool) -> Iterator[str]:
    """See `Store.export_lines`."""
    for entry in _entries(store, session, originals):
        yield encode(entry) + "\n"


def _entries(store: Store, session: str, originals: bool) -> Iterator[dict[str, Any]]:
    facts = store.get_session(session)
    rows = store.read(lambda work: work.all(_ROWS, {"session": facts.n}))
    seed = store.read(lambda work: work.one(_SEED, {"session": facts.n}))
    kept = store.read(lambda work: work.all(_ORIGINALS, {"session": facts.n}))
    yield {
        "type": "session",
        "format": FORMAT,
        "version": VERSION,
        "session": _head(facts) | {"count": len(rows)},
        "seed_plan": msgspec.json.decode(seed[0]) if seed and seed[0] else None,
        "recallable": originals or not kept,
    }
    for seq, role, api, piece, body, created, incomplete, meta in rows:
        entry: dict[str, Any] = {"type": "message", "seq": seq, "role": role, "created": created}
        if incomplete:
            entry["incomplete"] = True
        if meta:
            entry["meta"] = msgspec.json.decode(meta)
        if piece is None:
            entry["message"] = msgspec.json.decode(body)
        elif piece == 0:
            entry |= {"api": api, "wire": msgspec.json.decode(body)}
        else:
            entry["piece"] = piece  # of the wire object that stands `piece` messages before
        yield entry
    for record in store.requests(session):
        yield {"type": "request", **msgspec.to_builtins(record)}
    for digest, size, total in kept if originals else ():
        data = base64.b64encode(store.blobs().get(digest)).decode()
        yield {"type": "original", "hash": digest, "size": size, "total": total, "data": data}


def _head(session: Session) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(session)
    del values["n"], values["messages"]
    return values


def as_markdown(store: Store, session: str) -> str:
    """See `Store.export_markdown`."""
    facts = store.get_session(session)
    out = [f"# {facts.title or facts.short}", "", f"Session {facts.id} of `{facts.project}`", ""]
    for stored in store.load(session):
        title = stored.role.capitalize() + (" (broke off)" if stored.incomplete else "")
        out += [f"## {stored.seq}. {title}", "", *_paragraphs(stored.message)]
    return "\n".join(out)


def _paragraphs(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, TextPart):
            yield from (part.text, "")
        elif isinstance(part, ToolCall):
            yield from (f"Calls `{part.name}`:", "", *_fenced(part.arguments, "json"), "")
        elif isinstance(part, ToolResult):
            yield from (*_fenced(part.text), "")
        elif isinstance(part, Thinking):
            yield from ("> " + part.text.replace("\n", "\n> "), "")
        elif isinstance(part, Media):
            yield from (f"*{part.kind}, {part.media_type}*", "")
        elif isinstance(part, Opaque):
            yield from (f"*{part.kind}*", "")


def _fenced(text: str, language: str = "") -> Sequence[str]:
    """A code block whose fence is longer than any run of backticks in the text."""
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    return (fence + language, text, fence)
