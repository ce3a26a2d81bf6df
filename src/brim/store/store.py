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
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from brim.conversation import Message, assistant
from brim.errors import StoreError, StoreUnusable
from brim.store import messages as rows_of_messages
from brim.store import sessions as rows_of_sessions
from brim.store.blobs import CAP
from brim.store.blobtable import StoredBlobs
from brim.store.bodies import encode, pack
from brim.store.database import Clash, Damaged, Database
from brim.store.gate import RELEASE, RELEASE_ALL, Gate, enter
from brim.store.history import History
from brim.store.leases import Holder, this_holder
from brim.store.messages import Facts
from brim.store.reply import Reply
from brim.store.requests import Axis, Record, RequestFacts, Requests, Sum
from brim.store.values import Session, SessionChanges, SessionHeld

if TYPE_CHECKING:
    from brim.store.database import Work
    from brim.store.importing import Imported, Source
    from brim.store.retention import Collected
    from brim.store.searching import Hit

T = TypeVar("T")


class Store:
    """An open store. `damage` says what is wrong with one that is damaged or cannot be written, and is `read_only`; else it
    is None."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self.database = database
        self.damage: str | None = None
        self.on_damage: Callable[[str], object] | None = None
        """Told what is wrong where that is found only while reading."""
        self.unwritable = False
        """Nothing is damaged: the place cannot be written."""
        self.migrated: str | None = None
        """The older schema that this was brought from as it was opened."""
        self.former: Path | None = None
        """The file as it was before that."""
        self._clock = clock
        self._holder: Holder = this_holder()
        self._known: dict[str, int] = {}
        self._closing: list[Callable[[], None]] = []
        self._closed = False
        self._where = database.where
        self._remedy = "export what is there, move the file away, and import it into a new one"
        self._requests = Requests(self)

    @property
    def read_only(self) -> bool:
        return self.damage is not None

    @property
    def where(self) -> str:
        """The file, or the URL without its password."""
        return self._where

    def seal(self, path: Path, damage: str, hint: str | None = None) -> None:
        """Make this the read-only picture of the database at `path`. `hint`: the next step where nothing is damaged, but
        the place cannot be written."""
        self._where = str(path)
        self.damage = damage
        self.unwritable = hint is not None
        self._remedy = hint or self._remedy

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
                    work.run(RELEASE_ALL, {"holder": self._holder.token})
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
        try:
            with self.writing() as work:
                made = rows_of_sessions.create(work, id, values, self._clock())
        except Clash:  # made by another process after we looked: now it can be seen
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

    def pass_name(self, old: str, new: str) -> str:
        """Session `new` takes the id of `old`, which goes on as `old~1` (the first that is free). Returns that id. Ends this
        store's lease on either. Raises SessionBusy where another writes one of them."""
        with self.writing() as work:
            for each in (old, new):
                self._known.pop(each, None)  # nothing is written behind messages that were not seen
                self.gate(work, each)
                work.run(RELEASE, {"holder": self._holder.token, "id": each})
            aside = rows_of_sessions.pass_name(work, rows_of_sessions.get(work, old), rows_of_sessions.get(work, new))
        self._known.pop(aside, None)
        return aside

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
        return self._append(session, new, incomplete, meta, settle=True)

    def load(self, session: str, start: int = 0) -> History:
        """The messages of a session from seq `start` on, a half answer still being written last.

        Bodies decode when first looked at (`Stored.message`), or all at once (`History.messages`). Raises
        SessionNotFound.
        """
        rows, draft, skip = self.read(lambda work: rows_of_messages.load(work, session, start))
        following = rows[-1][0] + 1 if rows else start
        self._known.setdefault(session, following)
        if draft:
            rows.append((following, "assistant", "", None, encode(assistant(draft)), self._clock(), 1, None))
        return History(rows, session, skip)

    def begin_reply(self, session: str) -> Reply:
        """Start keeping an answer while it streams in; see `Reply`."""
        with self.writing() as work:
            count = rows_of_messages.settle_draft(work, self.gate(work, session), self._clock())
        self._known[session] = count
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
            work.run(RELEASE, {"holder": self._holder.token, "id": session})

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
            if self.on_damage is not None and self.damage is not None:
                self.on_damage(self.damage)
        with self.database.read() as work:
            return do(work)

    def writing(self) -> Work:
        """A write transaction. Raises StoreUnusable where the store is read-only."""
        if self.damage is not None and self.unwritable:
            raise StoreUnusable(self.damage, hint=self._remedy)
        if self.damage is not None:
            raise StoreUnusable(
                f"{self._where} is open read-only: {self.damage}",
                hint=self._remedy,
            )
        return self.database.write()

    def now(self) -> float:
        return self._clock()

    def gate(self, work: Work, session: str) -> Gate:
        """Make sure, for this transaction, that this store may write it. Raises SessionBusy, SessionNotFound."""
        known = self._known.get(session)
        return enter(work, session, self._holder, known, self._clock(), lock=not self.database.sqlite)

    def write_draft(self, session: str, n: int, chunk: str) -> None:
        with self.writing() as work:
            rows_of_messages.write_draft(work, self.gate(work, session), n, chunk)

    def drop_draft(self, session: str) -> None:
        with self.writing() as work:
            rows_of_messages.drop_draft(work, self.gate(work, session))

    def replace_draft(
        self, session: str, new: Sequence[Message], incomplete: bool, meta: Mapping[str, Any] | None
    ) -> range:
        return self._append(session, new, incomplete, meta, settle=False)

    def _append(
        self, session: str, new: Sequence[Message], incomplete: bool, meta: Mapping[str, Any] | None, *, settle: bool
    ) -> range:
        rows = pack(new)
        now = self._clock()
        facts = [Facts(now, incomplete, encode(meta) if meta else None)]
        with self.writing() as work:
            gate = self.gate(work, session)
            start = gate.next
            if settle:
                start = rows_of_messages.settle_draft(work, gate, now)
            else:
                rows_of_messages.drop_draft(work, gate)
            seqs = rows_of_messages.insert(work, gate, start, rows, new, facts)
        self._known[session] = seqs.stop
        return seqs
