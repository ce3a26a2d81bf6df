"""A replay from files to figures: reads, plays, sums, and keeps a journal so that a run that was cut off can go on.

The journal is a file of JSON lines: what is played, then one outcome a line, each under a hash of the conversation. It
belongs to one run at a time. A line that was being written when the run ended is played again, so nothing
is counted twice and nothing is missed.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from brim.errors import UsageError
from brim.replay.engine import play_all
from brim.replay.figures import Figures
from brim.replay.play import Outcome, Plays, play
from brim.replay.sources import Found
from brim.replay.transcript import Transcript


class Step(NamedTuple):
    """One conversation done: its file, id, and the bytes of all files read by then."""

    file: str
    id: str
    bytes: int


def replay(
    found: Iterable[Found],
    plays: Plays,
    *,
    jobs: int = 1,
    engine: str = "local",
    journal: Path | None = None,
    step: Callable[[Step], None] | None = None,
    work: Callable[[Transcript, Plays], Outcome] = play,
) -> Figures:
    """The figures of all conversations found. `step` is called after each; `journal` makes the run resumable."""
    figures = Figures(plays)
    order: deque[tuple[Found, str, bool]] = deque()
    book = Journal(journal, plays) if journal is not None else None

    def feed() -> Iterator[Transcript]:
        for each in found:
            key = _key(each.transcript) if book is not None else ""
            known = book is not None and key in book.known
            order.append((each, key, known))
            if not known:
                yield each.transcript

    def settle(each: Found, outcome: Outcome) -> None:
        figures.add(each.file, outcome)
        if step is not None:
            step(Step(each.file, outcome.id, each.bytes))

    def settle_known() -> None:
        while order and order[0][2] and book is not None:
            each, key, _ = order.popleft()
            settle(each, book.outcome(key))

    try:
        for outcome in play_all(feed(), plays, jobs=jobs, engine=engine, work=work):
            settle_known()
            each, key, _ = order.popleft()
            if book is not None:
                book.add(key, outcome)
            settle(each, outcome)
        settle_known()
    finally:
        if book is not None:
            book.close()
    return figures


def _key(transcript: Transcript) -> str:
    """A hash of all that an outcome depends on, so that files may be added, moved or named anew between two runs."""
    try:
        data = msgspec.json.encode(transcript)
    except UnicodeEncodeError:  # a lone surrogate in a recording, which no UTF-8 can say
        data = json.dumps(msgspec.to_builtins(transcript, str_keys=True)).encode()
    return blake2b(data, digest_size=16).hexdigest()


class _Head(msgspec.Struct, frozen=True):
    replay: str
    plays: Plays


class _Entry(msgspec.Struct, frozen=True):
    key: str
    outcome: Outcome


class Journal:
    """Outcomes on disk, found again by key. Only the places of lines are held in memory."""

    def __init__(self, path: Path, plays: Plays) -> None:
        from brim import __version__

        self.known: dict[str, tuple[int, int]] = {}
        head = _Head(__version__, plays)
        try:
            self._file: Any = path.open("r+b" if path.exists() else "w+b")
        except OSError as error:
            raise UsageError(
                f"cannot write {path}: {error.strerror}", hint="name a file that can be written"
            ) from error
        try:
            self._claim(path)
            end = self._read(path, head)
        except BaseException:
            self._file.close()
            raise
        self._file.seek(end)
        self._file.truncate()
        if end == 0:
            self._write(head)

    def _claim(self, path: Path) -> None:
        """Holds the file for this run alone, until it is closed or the process is gone, however it goes."""
        try:
            import fcntl
        except ImportError:  # no such locks on Windows
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"{path} is in use by another replay", hint="wait until it is done, or name another file"
            ) from error
        except OSError:  # a file system without locks
            return

    def _read(self, path: Path, head: _Head) -> int:
        """Learns what is there; returns where the last whole line ends."""
        end = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            try:
                if end == 0:
                    before: object = msgspec.json.decode(line, type=_Head)
                    if before != head:
                        raise UsageError(
                            f"{path} belongs to a replay with other policies, prices or version",
                            hint="name another file, or delete it to begin anew",
                        )
                else:
                    entry = msgspec.json.decode(line, type=_Entry)
                    self.known[entry.key] = (end, len(line))
            except msgspec.DecodeError as error:
                if end == 0:
                    raise UsageError(f"{path} is no journal of a replay", hint="name another file") from error
                break
            end += len(line)
        return end

    def outcome(self, key: str) -> Outcome:
        """The outcome stored under `key`."""
        start, length = self.known[key]
        self._file.seek(start)
        return msgspec.json.decode(self._file.read(length), type=_Entry).outcome

    def add(self, key: str, outcome: Outcome) -> None:
        self._file.seek(0, os.SEEK_END)
        self._write(_Entry(key, outcome))

    def _write(self, value: msgspec.Struct) -> None:
        self._file.write(msgspec.json.encode(value) + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()
