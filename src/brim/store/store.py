"""Sessions, messages and who may write them: the part of the store that every turn goes through.

Calls are plain and synchronous: each is one short transaction (a fifth of a millisecond on SQLite), so that an event
loop may call them directly; what can take longer (a search, an import, a huge blob) belongs in `asyncio.to_thread`,
and a `Store` may be used from several threads. Every call names its session by id; nothing is current or global.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Unpack

import msgspec
from sqlalchemy import BigInteger, Text, bindparam, delete, func, select, update

from brim.conversation import Message, assistant
from brim.errors import SessionNotFound, StoreError, StoreUnusable
from brim.store import sessions as rows_of_sessions
from brim.store.blobs import CAP
from brim.store.blobtable import StoredBlobs
from brim.store.bodies import Body, encode, pack, plain
from brim.store.database import Damaged, Database
from brim.store.history import History, no_collection
from brim.store.leases import LEASE_S, Holder, alive, this_holder
from brim.store.reply import Reply
from brim.store.requests import Axis, Record, RequestFacts, Requests, Sum
from brim.store.schema import drafts, leases, messages, row_into, sessions
from brim.store.sessions import next_seq
from brim.store.values import Session, SessionChanges, SessionHeld, short_id

if TYPE_CHECKING:
    from brim.store.database import Row, Work
    from brim.store.importing import Imported, Source
    from brim.store.retention import Collected
    from brim.store.searching import Hit

T = TypeVar("T")

_ID = bindparam("id", type_=Text)
_N = bindparam("session", type_=BigInteger)

_draft_count = select(func.count()).select_from(drafts).where(drafts.c.session == sessions.c.n).scalar_subquery()
_GATE = (
    select(
        sessions.c.n, sessions.c.title, next_seq.scalar_subquery(), _draft_count,
        leases.c.holder, leases.c.place, leases.c.host, leases.c.pid, leases.c.started, leases.c.since,
        leases.c.expires,
    )
    .select_from(sessions.outerjoin(leases, leases.c.session == sessions.c.n))
    .where(sessions.c.id == _ID)
)  # fmt: skip
# Postgres: writers of a session queue up here, before the gate looks. (Locking in the same statement would let it see
# the lease and the messages as they were before it had to wait.) SQLite has one writer at a time anyway.
_LOCK = select(sessions.c.n).where(sessions.c.id == _ID).with_for_update()
_INSERT_MESSAGE = row_into(messages)
_SET_TITLE = update(sessions).where(sessions.c.n == _N).values(title=bindparam("name"))
_READ_DRAFT = select(drafts.c.chunk).where(drafts.c.session == _N).order_by(drafts.c.n)
_INSERT_DRAFT = row_into(drafts)
_DELETE_DRAFT = delete(drafts).where(drafts.c.session == _N)
_DELETE_LEASE = delete(leases).where(leases.c.session == _N)
_DELETE_OWN_LEASES = delete(leases).where(leases.c.holder == bindparam("holder"))
_RELEASE = delete(leases).where(
    leases.c.holder == bindparam("holder"),
    leases.c.session == select(sessions.c.n).where(sessions.c.id == _ID).scalar_subquery(),
)
_INSERT_LEASE = row_into(leases)
_RENEW = update(leases).where(leases.c.session == _N).values(expires=bindparam("until"))
_TOUCH = (
    update(sessions)
    .where(sessions.c.n == _N)
    .values(touched=select(func.coalesce(func.max(sessions.c.touched), 0) + 1).scalar_subquery())
)

_LOAD = (
    select(
        messages.c.seq, messages.c.role, messages.c.api, messages.c.piece, messages.c.body,
        messages.c.created, messages.c.incomplete, messages.c.meta,
    )
    .where(messages.c.session == _N, messages.c.seq >= bindparam("start"))
    .order_by(messages.c.seq)
)  # fmt: skip


class Facts(NamedTuple):
    """What is known of a message beside itself; `meta` is JSON."""

    created: float
    incomplete: bool = False
    meta: str | None = None


class Gate(NamedTuple):
    """What a write transaction knows of its session once it may write."""

    n: int
    title: str | None
    next: int
    drafts: int


class Store:
    """An open store. `damage` says what is wrong with a damaged one, which is `read_only`; else it is None."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self.database = database
        self.damage: str | None = None
        self._clock = clock
        self._holder: Holder = this_holder()
        self._known: dict[str, int] = {}
        self._closing: list[Callable[[], None]] = []
        self._closed = False
        self._where = database.where
        self._requests = Requests(self)

    @property
    def read_only(self) -> bool:
        return self.damage is not None

    @property
    def where(self) -> str:
        """The file, or the URL without its password."""
        return self._where

    def seal(self, path: Path, damage: str) -> None:
        """Make this the read-only picture of the damaged database at `path`."""
        self._where = str(path)
        self.damage = damage

    def at_close(self, do: Callable[[], None]) -> None:
        self._closing.append(do)

    def close(self) -> None:
        """Give back this store's leases and its connections. May be called twice."""
        if self._closed:
            return
        self._closed = True
        try:
            if not self.read_only:
                with self.database.write() as work:
                    work.run(_DELETE_OWN_LEASES, {"holder": self._holder.token})
        except StoreError:
            pass  # leases of a process that is gone count for nothing
        finally:
            self.database.close()
            for do in self._closing:
                do()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Sessions

    def new_session(
        self,
        project: str,
        mode: str | None = None,
        model: str | None = None,
        *,
        id: str | None = None,
        title: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Session:
        """A new, empty session of a project directory. Raises UsageError where `id` is taken or unfit."""
        values = {"project": project, "title": title, "mode": mode, "model": model, "meta": meta}
        with self.writing() as work:
            made = rows_of_sessions.create(work, id, values, self._clock())
        self._known[made.id] = 0
        return made

    def find_session(self, prefix: str | None = None, project: str | None = None) -> Session:
        """The session whose id begins with `prefix`, or the one of `project` (None: of all) that was used last.

        Raises SessionNotFound, naming candidates where there are some.
        """
        return self.read(lambda work: rows_of_sessions.find(work, prefix, project))

    def get_session(self, session: str) -> Session:
        """The session with exactly this id. Raises SessionNotFound."""
        return self.read(lambda work: rows_of_sessions.get(work, session))

    def list_sessions(self, project: str | None = None, limit: int = 50, *, archived: bool = False) -> list[Session]:
        """Sessions of one project, or of all, the one used last first; archived ones only if asked for."""
        return self.read(lambda work: rows_of_sessions.listed(work, project, limit, archived))

    def change_session(self, session: str, **values: Unpack[SessionChanges]) -> Session:
        """Set title, mode, model, archived or meta. Needs no lease: none of it touches the history."""
        with self.writing() as work:
            n = rows_of_sessions.number(work, session)
            for name, value in values.items():
                rows_of_sessions.change(work, n, name, value)
            return rows_of_sessions.get(work, session)

    def rename(self, session: str, title: str) -> Session:
        return self.change_session(session, title=title)

    def fork(self, session: str, at_seq: int | None = None, *, title: str | None = None) -> Session:
        """A new session with the messages before `at_seq` (None: all there are), and the plan as it stood there.

        The parent may be in use by another terminal, and may be deleted later. Raises SessionNotFound, UsageError.
        """
        with self.writing() as work:
            made = rows_of_sessions.fork(work, rows_of_sessions.get(work, session), at_seq, title, self._clock())
        self._known[made.id] = made.messages
        return made

    def delete(self, session: str) -> None:
        """Delete a session and all of its rows; originals nobody else uses go with the next `gc`. Needs the lease."""
        with self.writing() as work:
            rows_of_sessions.remove(work, self.gate(work, session).n)
        self._known.pop(session, None)

    # Messages

    def append(
        self,
        session: str,
        new: Sequence[Message],
        *,
        incomplete: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> range:
        """Add messages, all or none; when this returns they are durable. Returns their seqs.

        Takes the session's lease where this store does not hold it. Raises SessionBusy where another does, or where
        another has written since this store last saw the session; SessionNotFound; StoreUnusable.
        """
        rows = pack(new)
        with self.writing() as work:
            gate = self.gate(work, session)
            start = self._settle_draft(work, gate) if gate.drafts else gate.next
            self.insert(work, gate, start, rows, new, [self._facts(incomplete, meta)])
        self._known[session] = start + len(rows)
        return range(start, start + len(rows))

    def load(self, session: str, start: int = 0) -> History:
        """The messages of a session from seq `start` on, a half answer still being written last.

        Bodies decode when first looked at (`Stored.message`), or all at once (`History.messages`). Raises
        SessionNotFound.
        """
        rows, draft, skip = self.read(lambda work: _load(work, session, start))
        following = rows[-1][0] + 1 if rows else start
        self._known.setdefault(session, following)
        if draft:
            rows.append((following, "assistant", "", None, encode(assistant(draft)), self._clock(), 1, None))
        return History(rows, session, skip)

    def begin_reply(self, session: str) -> Reply:
        """Start keeping an answer while it streams in; see `Reply`."""
        with self.writing() as work:
            gate = self.gate(work, session)
            if gate.drafts:
                self._known[session] = self._settle_draft(work, gate)
        return Reply(self, session)

    # Requests

    def record_request(self, session: str, **facts: Unpack[RequestFacts]) -> int:
        """Record one request of a session; returns its number.

        All by keyword, all optional: mode, model, plan (the whole plan: what changed is worked out here), bill, usage
        (`brim.budget.Usage` or a mapping of its fields), cost (US dollars), duration and ttft (seconds), finish, error,
        meta, seq (messages the session had; now by default). Needs the lease, like `append`.
        """
        return self._requests.record(session, **facts)

    def last_plan(self, session: str, at_seq: int | None = None) -> dict[str, Any] | None:
        """The plan of the last request (of the last one made with at most `at_seq` messages); None before the first."""
        return self._requests.last_plan(session, at_seq)

    def requests(self, session: str) -> list[Record]:
        """Every request of a session, in order."""
        return self._requests.all(session)

    def usage(
        self, by: Axis, *, since: str | None = None, project: str | None = None, session: str | None = None
    ) -> list[Sum]:
        """Sums by day (local), model, session or mode; `since` is a day, YYYY-MM-DD."""
        return self._requests.sums(by, since, project, session)

    # Search, exchange, retention: each told in its own module

    def search(self, text: str, *, project: str | None = None, limit: int = 50) -> list[Hit]:
        """Sessions and messages that contain `text`, those used last first; letters match in either case."""
        from brim.store import searching

        return self.read(lambda work: searching.search(work, self.database.sqlite, text, project, limit))

    def export_session(self, session: str, *, originals: bool = False) -> dict[str, Any]:
        """A session as one JSON object that `import_session` takes; with the originals it can recall, if asked."""
        from brim.store import exporting

        return exporting.as_object(self, session, originals)

    def export_lines(self, session: str, *, originals: bool = False) -> Iterator[str]:
        """The same as JSON Lines: the session, then one line for each message, request and original."""
        from brim.store import exporting

        return exporting.as_lines(self, session, originals)

    def export_markdown(self, session: str) -> str:
        """A session for people to read. It cannot be imported again."""
        from brim.store import exporting

        return exporting.as_markdown(self, session)

    def import_session(self, source: Source, *, project: str, name: str | None = None) -> Imported:
        """A new session from an export of brim's, a list of messages (OpenAI or Anthropic), a request body, a Claude Code
        log or `llm logs --json`: a path, the bytes of a file (`name` is what warnings call it) or the parsed JSON.

        What cannot be read is skipped, each with a warning that names the place. Raises UsageError where nothing of the
        source is a conversation.
        """
        from brim.store import importing

        return importing.import_session(self, source, project, name)

    def gc(self, *, max_age: float | None = None, max_bytes: int | None = None) -> Collected:
        """Delete what retention does not keep: sessions unused for `max_age` seconds, the oldest originals and then
        sessions until the rest fits `max_bytes`, and originals that no session has any more. Sessions in use stay."""
        from brim.store import retention

        return retention.collect(self, max_age, max_bytes)

    # Leases

    def acquire(self, session: str, *, wait: float = 0.0) -> int:
        """Become the session's writer, waiting up to `wait` seconds for another; returns how many messages it has.

        Raises SessionBusy, naming who holds it. Load the history after this, not before: it may have grown.
        """
        end = time.monotonic() + wait
        while True:
            self._known.pop(session, None)
            try:
                with self.writing() as work:
                    count = self.gate(work, session).next
            except SessionHeld:
                if time.monotonic() >= end:
                    raise
                time.sleep(0.02)
            else:
                self._known[session] = count
                return count

    def release(self, session: str) -> None:
        """Let others write the session."""
        with self.writing() as work:
            work.run(_RELEASE, {"holder": self._holder.token, "id": session})

    @contextlib.contextmanager
    def lease(self, session: str, *, wait: float = 0.0) -> Iterator[int]:
        """Hold the session for the length of a block."""
        count = self.acquire(session, wait=wait)
        try:
            yield count
        finally:
            self.release(session)

    # Originals

    def blobs(self, session: str | None = None, *, cap: int = CAP) -> StoredBlobs:
        """Where originals go; those of a session are kept as long as it is. `cap` 0 keeps none."""
        return StoredBlobs(self.database, None if session is None else self.get_session(session).n, cap=cap)

    # What the other modules of this package build on

    def read(self, do: Callable[[Work], T]) -> T:
        """What `do` finds in one snapshot. Where the file turns out damaged, the store becomes the read-only picture of
        what can be saved of it, and `do` runs again on that."""
        try:
            with self.database.read() as work:
                return do(work)
        except Damaged as damage:
            if self.read_only or self.database.path is None:
                raise
            from brim.store.opening import open_saved

            saved = open_saved(self.database.path, damage, self._clock)
            self.database.close()
            self.database, self.damage = saved.database, saved.damage
            self._closing += saved._closing
        with self.database.read() as work:
            return do(work)

    def writing(self) -> Work:
        """A write transaction. Raises StoreUnusable where the store is read-only."""
        if self.damage is not None:
            raise StoreUnusable(
                f"{self._where} is open read-only: {self.damage}",
                hint="export what is there, move the file away, and import it into a new one",
            )
        return self.database.write()

    def now(self) -> float:
        return self._clock()

    def gate(self, work: Work, session: str) -> Gate:
        """Make sure, for this transaction, that this store may write it. Raises SessionBusy, SessionNotFound."""
        if not self.database.sqlite:
            work.run(_LOCK, {"id": plain(session)})
        row = work.one(_GATE, {"id": plain(session)})
        if row is None:
            raise SessionNotFound(f"no session {session!r}")
        n, title, following, count, holder, place, host, pid, started, since, expires = row
        now = self._clock()
        if holder == self._holder.token:
            if expires - now < LEASE_S / 2:
                work.run(_RENEW, {"session": n, "until": now + LEASE_S})
            return Gate(n, title, following, count)
        if holder is not None:
            lives = alive(place, pid, started)
            if lives or (lives is None and expires > now):
                when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since))
                raise SessionHeld(
                    f"session {short_id(session)} is being written by process {pid} on {host}, since {when}",
                    session=session, host=host, pid=pid, since=since,
                )  # fmt: skip
            work.run(_DELETE_LEASE, {"session": n})
        known = self._known.get(session)
        if known is not None and known != following:
            raise SessionHeld(
                f"session {short_id(session)} went on elsewhere: it has {following} messages, not {known}",
                session=session,
            )
        work.run(
            _INSERT_LEASE,
            {
                "session": n, "holder": self._holder.token, "place": self._holder.place, "host": self._holder.host,
                "pid": self._holder.pid, "started": self._holder.started, "since": now, "expires": now + LEASE_S,
            },
        )  # fmt: skip
        work.run(_TOUCH, {"session": n})
        return Gate(n, title, following, count)

    def insert(
        self,
        work: Work,
        gate: Gate,
        start: int,
        rows: Sequence[Body],
        new: Sequence[Message],
        facts: Sequence[Facts],
    ) -> None:
        """Insert message rows from seq `start` on; `facts` has one entry for each message, or one for all."""
        each = facts if len(facts) == len(rows) else [facts[0]] * len(rows)
        work.run_many(
            _INSERT_MESSAGE,
            [
                {
                    "session": gate.n, "seq": seq, "role": row.role, "api": row.api, "piece": row.piece,
                    "body": row.body, "hash": row.hash, "created": fact.created, "incomplete": int(fact.incomplete),
                    "meta": fact.meta,
                }
                for seq, (row, fact) in enumerate(zip(rows, each, strict=True), start)
            ],
        )  # fmt: skip
        if gate.title is None and (title := _title_of(new)):
            work.run(_SET_TITLE, {"session": gate.n, "name": title})

    def _facts(self, incomplete: bool, meta: Mapping[str, Any] | None) -> Facts:
        return Facts(self._clock(), incomplete, encode(meta) if meta else None)

    def _settle_draft(self, work: Work, gate: Gate) -> int:
        """Make a half answer that was left behind an incomplete message; returns the seq after it."""
        text = _draft_text(work, gate.n)
        work.run(_DELETE_DRAFT, {"session": gate.n})
        if not text:
            return gate.next
        message = assistant(text)
        self.insert(work, gate, gate.next, pack([message]), [message], [self._facts(True, None)])
        return gate.next + 1

    def write_draft(self, session: str, n: int, chunk: str) -> None:
        with self.writing() as work:
            gate = self.gate(work, session)
            work.run(_INSERT_DRAFT, {"session": gate.n, "n": n, "chunk": encode(chunk)})

    def drop_draft(self, session: str) -> None:
        with self.writing() as work:
            gate = self.gate(work, session)
            work.run(_DELETE_DRAFT, {"session": gate.n})

    def replace_draft(
        self, session: str, new: Sequence[Message], incomplete: bool, meta: Mapping[str, Any] | None
    ) -> range:
        rows = pack(new)
        with self.writing() as work:
            gate = self.gate(work, session)
            if gate.drafts:
                work.run(_DELETE_DRAFT, {"session": gate.n})
            self.insert(work, gate, gate.next, rows, new, [self._facts(incomplete, meta)])
        self._known[session] = gate.next + len(rows)
        return range(gate.next, gate.next + len(rows))


def _load(work: Work, session: str, start: int) -> tuple[list[Row], str, int]:
    """Rows from `start` on, the half answer, and how many rows before `start` the first of them needs."""
    n = rows_of_sessions.number(work, session)
    with no_collection():
        rows = work.all(_LOAD, {"session": n, "start": start})
        skip = rows[0][3] if rows and rows[0][4] is None else 0
        if skip:
            rows = work.all(_LOAD, {"session": n, "start": start - skip})
    return rows, _draft_text(work, n), skip


def _draft_text(work: Work, n: int) -> str:
    return "".join(msgspec.json.decode(row[0], type=str) for row in work.all(_READ_DRAFT, {"session": n}))


def _title_of(new: Sequence[Message]) -> str | None:
    """The first line of the first user message, up to 80 characters."""
    for message in new:
        if message.role == "user":
            for line in message.text.splitlines():
                if words := " ".join((plain(line) or "").split()):
                    return words if len(words) <= 80 else words[:79] + "…"
    return None
