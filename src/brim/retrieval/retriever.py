"""A workspace that can be asked: its index kept up to date, its best snippets for a question, its tree.

Whatever is wrong with the index is said in a notice and never raised: a question without snippets is still a question.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from brim.errors import ToolError
from brim.retrieval.index import Index, Place, read_text
from brim.retrieval.listing import MOST_BYTES, MOST_FILES, Listing, is_noise, is_secret, list_files, list_paths
from brim.retrieval.query import SMALL_TALK, Query, parse_question
from brim.retrieval.ranking import Ranked, rank
from brim.retrieval.schema import index_path, is_busy, open_database, remove_database
from brim.retrieval.tree import MOST_CHARS, render_tree
from brim.retrieval.words import terms_of

LEAST_EVIDENCE = 4.0
"""Words that say less of a file than this (see `Ranked.evidence`) do not show it, where none is in its path or what it
defines."""
LEAST_TERMS = 2
"""So many words of the question must stand in a file, one in its path or in what it defines counting double: a single word
is chance ("commit this")."""
LEAST_SHARE = 0.3
"""A snippet's score is at least this share of the best one's."""
SNIPPET_CHARS = 2_000
SNIPPET_LINES = 50
TOLD_SECONDS = 2.0
"""An update that takes longer is told."""
_TRIES = 40
"""Candidates looked at, where some are gone, denied or already there."""


class Snippet(msgspec.Struct, frozen=True):
    """Lines `start` to `end` of a file, counted from 1. `why`: what of the question named it."""

    path: str
    start: int
    end: int
    title: str
    text: str
    score: float
    why: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        return f"{self.path}:{self.start}-{self.end}"


class Found(msgspec.Struct, frozen=True):
    """Snippets, best first, and what the user should be told."""

    snippets: tuple[Snippet, ...] = ()
    notices: tuple[str, ...] = ()


class Retriever:
    """Finds what in a workspace a question is about.

    `folder`: where indexes are kept (None: in memory); `ripgrep`: the binary; `noise`: names of folders to leave out;
    `seconds`: how long one question may wait for the index. Calls take turns, from any thread.
    """

    def __init__(
        self,
        workspace: Path,
        folder: Path | None,
        *,
        ripgrep: str,
        noise: Sequence[str],
        seconds: float = 10.0,
        most_files: int = MOST_FILES,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.workspace = workspace
        self.seconds = seconds
        self._path = index_path(folder, workspace) if folder is not None else None
        self._ripgrep = ripgrep
        self._noise = tuple(noise)
        self._most_files = most_files
        self._most_bytes = most_bytes
        self._index: Index | None = None
        self._lock = threading.Lock()
        self._said: set[str] = set()
        self._stopped = False

    def close(self) -> None:
        """Ends an update that is under way, and closes the index."""
        self._stopped = True
        with self._lock:
            if self._index is not None:
                self._index.close()
                self._index = None

    def search(
        self,
        question: str,
        count: int,
        *,
        allowed: Callable[[str], bool] = lambda path: True,
        shown: Collection[str] = (),
    ) -> Found:
        """The `count` best snippets, at most one of a file. `allowed`: may this path be shown; `shown`: texts and paths that
        the request holds already. Never raises for the state of workspace or index."""
        query = parse_question(question)
        if count <= 0 or not query:
            return Found()
        notices: list[str] = []
        with self._lock:
            for attempt in (1, 2):
                try:
                    index = self._updated(notices)
                    picked = self._pick(index, query, count, allowed, shown)
                    return Found(picked, tuple(self._once(notices)))
                except (sqlite3.DatabaseError, zlib.error, ValueError) as error:
                    if isinstance(error, sqlite3.Error) and is_busy(error):
                        return Found(notices=self._once(["the index of this workspace is locked: no snippets for now"]))
                    notices.append(f"the index of this workspace was damaged ({error}) and is made anew")
                    self._throw_away()
                    if attempt == 2:
                        notices[-1] = f"the index of this workspace cannot be used ({error}): no snippets"
                except (OSError, ToolError) as error:
                    return Found(notices=self._once([f"no snippets of the workspace: {error}"]))
        return Found(notices=self._once(notices))

    def tree(self, *, allowed: Callable[[str], bool] = lambda path: True, most_chars: int = MOST_CHARS) -> str:
        """The directory tree, bounded; "" where nothing can be listed."""
        try:
            paths = list_paths(self.workspace, self._ripgrep, self._noise)
        except ToolError:
            return ""
        shown = (path for path in paths if not is_noise(path) and not is_secret(path) and allowed(path))
        return render_tree(shown, most_chars=min(most_chars, MOST_CHARS))

    # ---- the index ---------------------------------------------------------------------------------------------

    def _updated(self, notices: list[str]) -> Index:
        listing = list_files(
            self.workspace, self._ripgrep, self._noise, most_files=self._most_files, most_bytes=self._most_bytes
        )
        if listing.left_out:
            notices.append(
                f"{listing.left_out:,} files of this workspace are beyond the bounds of retrieval ({self._most_files:,} "
                f"files, {self._most_bytes // 1_000_000:,} MB): those nearest to its top are searched"
            )
        if self._index is None:
            database, note = open_database(self._path)
            if note is not None:
                notices.append(note)
            self._index = Index(database, self.workspace)
        try:
            change = self._index.update(listing, seconds=self.seconds, stop=lambda: self._stopped)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            self._index.load()  # another process brings it up to date: what is there by now is used
            return self._index
        if change.seconds > TOLD_SECONDS and not change.unfinished:
            notices.append(f"indexed {change.read:,} files of this workspace in {change.seconds:.1f} s")
        if change.unfinished:
            notices.append(
                f"{len(listing.entries) - change.unfinished:,} of {len(listing.entries):,} files are indexed so far; the rest "
                "follows with the next questions"
            )
        return self._index

    def _throw_away(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None
        if self._path is not None:
            remove_database(self._path)

    def _once(self, notices: Sequence[str]) -> tuple[str, ...]:
        """Those that were not said yet."""
        fresh = tuple(each for each in dict.fromkeys(notices) if each not in self._said)
        self._said.update(fresh)
        return fresh

    # ---- choosing ----------------------------------------------------------------------------------------------

    def _pick(
        self, index: Index, query: Query, count: int, allowed: Callable[[str], bool], shown: Collection[str]
    ) -> tuple[Snippet, ...]:
        ranked = rank(index, query)
        picked: list[Snippet] = []
        best: float | None = None
        for each in ranked[:_TRIES]:
            if len(picked) == count or (best is not None and each.score < best * LEAST_SHARE):
                break
            path = index.files[each.file].path
            if not each.why and not _says_enough(each, query, path, index.place(each.chunk)):
                continue
            if path in shown or not allowed(path):
                continue
            best = each.score if best is None else best
            snippet = self._snippet(index, each, query)
            if snippet is not None and not any(snippet.text in text for text in shown):
                picked.append(snippet)
        return tuple(picked)

    def _snippet(self, index: Index, ranked: Ranked, query: Query) -> Snippet | None:
        """The text of a chunk, read from its file; None where the file has changed since it was listed."""
        entry = index.files[ranked.file]
        place = index.place(ranked.chunk)
        try:
            stat = os.stat(self.workspace / entry.path)
        except OSError:
            return None
        if place is None or (stat.st_mtime_ns, stat.st_size) != (entry.mtime, entry.size):
            return None
        text = read_text(self.workspace / entry.path)
        if text is None:
            return None
        lines = text.split("\n")[place.start : place.stop]
        first, last = _window(lines, query)
        kept = "\n".join(line[:400] for line in lines[first:last])
        head = f"{lines[0][:400]}\n…\n" if first > 1 else ""
        start = place.start + first + 1
        return Snippet(
            entry.path, start, place.start + last, place.title, head + kept, round(ranked.score, 3), ranked.why
        )


def _says_enough(ranked: Ranked, query: Query, path: str, place: Place | None) -> bool:
    told = {term for term in ranked.terms if term not in SMALL_TALK}
    named = told.intersection(terms_of(f"{path} {place.title if place is not None else ''}"))
    return len(told) + len(named) >= LEAST_TERMS and (bool(named) or ranked.evidence >= LEAST_EVIDENCE)


def _window(lines: Sequence[str], query: Query) -> tuple[int, int]:
    """The part of a chunk to show, where it is too long: the lines that hold most of the question."""
    start, end = 0, len(lines)
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    worth = [sum(query.terms.get(term, 0.0) for term in set(terms_of(line))) for line in lines]
    size = sum(min(len(line), 400) + 1 for line in lines[start:end])
    while end - start > 1 and (size > SNIPPET_CHARS or end - start > SNIPPET_LINES):
        # from the end that says less; at a tie from below, so that a definition keeps its head
        if sum(worth[start : start + 3]) < sum(worth[max(start, end - 3) : end]):
            size -= min(len(lines[start]), 400) + 1
            start += 1
        else:
            end -= 1
            size -= min(len(lines[end]), 400) + 1
    return start, end


def render_snippets(snippets: Sequence[Snippet], header: str) -> str:
    """The block that goes into a request."""
    parts = [header]
    for each in snippets:
        title = f" ({each.title})" if each.title else ""
        parts.append(f"--- {each.place}{title} ---\n{each.text}")
    return "\n\n".join(parts)


__all__ = ["Found", "Listing", "Retriever", "Snippet", "render_snippets"]
