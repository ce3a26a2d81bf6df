"""brim's own sessions as transcripts: from a store's database, or from exports.

A database is copied first, and the copy is opened: nothing is written to the original, not even the files that SQLite
keeps beside one that is open.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brim.errors import UsageError
from brim.replay.transcript import Transcript

if TYPE_CHECKING:
    from brim.store import Store

Warn = Callable[[str], None]
EVERY = 1_000_000


def of_store(path: Path, warn: Warn) -> Iterator[Transcript]:
    """Each session of the database at `path`. Raises UsageError where it is none of brim's."""
    from brim.store import open_store

    with tempfile.TemporaryDirectory(prefix="brim-replay-") as folder:
        copy = Path(folder) / "brim.db"
        try:
            _backup(path, copy)
        except sqlite3.Error as error:
            raise UsageError(f"cannot read the database {path}: {error}", hint="name a store of brim's") from error
        with open_store(copy, create=False) as store:
            for session in store.list_sessions(limit=EVERY, archived=True):
                transcript = _session(store, session.id, session.model, warn)
                if transcript.messages:
                    yield transcript


def _backup(path: Path, copy: Path) -> None:
    """Copies a database without touching anything beside it.

    A database that nobody has open is read as it lies there. Where it is open, its log and its shared memory exist
    already, and SQLite's own backup reads through them. A log without shared memory was left by a crash: both files are
    copied, and recovery happens in the copy.
    """
    log = path.with_name(path.name + "-wal")
    if log.exists() and not path.with_name(path.name + "-shm").exists():
        shutil.copyfile(path, copy)
        shutil.copyfile(log, copy.with_name(copy.name + "-wal"))
        source = sqlite3.connect(copy)
    else:
        how = "mode=ro" if log.exists() else "mode=ro&immutable=1"
        source = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True)
    try:
        if source.execute("select 1 from sqlite_master where name = 'sessions'").fetchone() is None:
            raise UsageError(f"{path} is a database, but not one of brim's", hint="brim's is named brim.db")
        if not copy.exists():
            target = sqlite3.connect(copy)
            try:
                source.backup(target)
            finally:
                target.close()
    finally:
        source.close()


def of_export(name: str, values: Sequence[Mapping[str, Any]], warn: Warn) -> Iterator[Transcript]:
    """The session that an export holds."""
    from brim.store import TEMPORARY, open_store

    with open_store(TEMPORARY) as store:
        imported = store.import_session(list(values), project="", name=name)
        for warning in imported.warnings:
            warn(warning)
        yield _session(store, imported.session.id, imported.session.model, warn)


def _session(store: Store, id: str, model: str | None, warn: Warn) -> Transcript:
    from brim.replay.chat import Chat

    chat = Chat(id, warn)
    place: list[int] = []  # of each stored message, its index in the transcript
    answers: set[int] = set()
    for stored in store.load(id):
        if stored.role == "assistant":
            answers.add(stored.seq)
        chat.close()
        before = len(chat.messages)
        chat.add_message(stored.message, stored.created or None)
        place.append(before if len(chat.messages) > before else -1)
    for request in store.requests(id):
        if request.input is None:
            continue
        # brim records a request once its answer is stored, other writers may do so before
        answer = next((seq for seq in (request.seq, request.seq - 1) if seq in answers), None)
        usage = {
            "prompt_tokens": request.input,
            "completion_tokens": request.output or 0,
            **({"cached_tokens": request.cached_read} if request.cached_read is not None else {}),
            **({"cache_creation_input_tokens": request.cached_write} if request.cached_write is not None else {}),
            **({"cost_usd": request.cost} if request.cost is not None else {}),
            **({"model": request.model} if request.model else {}),
        }
        chat.used(usage, place[answer] if answer is not None else -1)
        model = request.model or model
    return chat.transcript(model, "brim")
