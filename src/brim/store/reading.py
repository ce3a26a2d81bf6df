"""A session file's bytes -> JSON values, each with its place, however damaged the file is.

JSON Lines are read line by line: a torn line costs itself, a run of NUL bytes nothing, a record that was written over
several lines is put together. One JSON value (a message list, a request body, an export) that breaks off is read as far
as it goes. All that was mended or skipped is named.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from brim.conversation.clean import clean_value
from brim.errors import UsageError

_JSON = json.JSONDecoder(strict=False)
_PADDING = "\0 \t\r\n"
_NULS = re.compile(rb"\0+")
_MOST_BEGINNINGS = 200
"""So many places of a torn line are tried as the beginning of a whole record."""
_MOST_LINES = 5_000
"""A record is looked for in so many lines at most."""
_MOST_TRIED = 64 * 1024 * 1024
"""Bytes that are gone through again, in one file, for records over several lines."""
_MOST_LOST = 1_000
"""Behind so many torn places one value that breaks off is read no further."""
_BEGINNING = re.compile(r"\{\s*\"")
_KEY = re.compile(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*')
_BETWEEN = re.compile(r"[\s,\0]*")


class Entry(NamedTuple):
    """One JSON value of a source, and what to call its place: "file, line 5"."""

    value: Any
    place: str


def read_entries(data: bytes, called: str, warnings: list[str]) -> list[Entry]:
    """The values in a file of that name; what was mended or skipped goes to `warnings`, one sentence each.

    Raises UsageError for what is no text of JSON at all.
    """
    if data.startswith(b"SQLite format 3\0"):
        raise UsageError(f"{called} is a database", hint="llm's log: `llm logs -n 0 --json > file`, then import that")
    data = _as_utf8(data)
    inner = data.strip(_PADDING.encode())
    if not inner:
        what = f"holds nothing but {data.count(0):,} NUL bytes" if data.count(0) else "is empty"
        raise UsageError(f"{called} {what}", hint="such files are left behind by a crash or a full disk")
    found, whole = _decode(inner)
    if not found and 0 in inner:
        found, whole = _without_nuls(inner)
    if found:
        if 0 in data:
            warnings.append(f"{called}: mended, it had NUL bytes in it")
        if isinstance(whole, list):
            return [Entry(value, f"{called}, entry {n}") for n, value in enumerate(whole, 1)]
        return [Entry(whole, called)]
    if inner[:1] == b"[" or (inner[:1] == b"{" and not _decode(inner.split(b"\n", 1)[0])[0]):
        lines_before = data[: data.index(inner)].count(b"\n")
        entries = _Document(inner.decode("utf-8", "replace"), called, lines_before).read(warnings)
        if entries is not None:
            return entries
    told: list[str] = []
    entries = list(_Lines(data.split(b"\n"), called).read(told))
    if len(told) >= len(entries):
        # perhaps one value without its beginning: whatever whole records it holds
        told_of_rest: list[str] = []
        rest = _Document(inner.decode("utf-8", "replace"), called, 0).rest(told_of_rest)
        if len(rest) > sum(_is_record(entry.value) for entry in entries):
            entries, told = rest, told_of_rest
    warnings += told
    return entries


def _as_utf8(data: bytes) -> bytes:
    """The text without its byte order mark; that of UTF-16, which Windows' shells write, as UTF-8."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data.removeprefix(codecs.BOM_UTF8)


def _decode(text: bytes) -> tuple[bool, Any]:
    """The JSON value, cleaned of lone surrogates, if there is one that anything can read."""
    try:
        return True, msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        # takes the lone surrogates that older writers escaped, NaN, and raw control characters in strings
        return True, clean_value(_JSON.decode(text.decode()))[0]
    except (ValueError, RecursionError):
        return False, None


def _without_nuls(text: bytes) -> tuple[bool, Any]:
    """As `_decode`, of a text that NUL bytes were written into: they stand for what is lost of a string, or for nothing."""
    marked = _decode(_NULS.sub("\ufffd".encode(), text))
    named = marked[1] if isinstance(marked[1], Mapping) else {}
    if marked[0] and not any("\ufffd" in name for name in named):
        return marked
    return _decode(_NULS.sub(b"", text))


# Lines


class _Lines:
    """JSON Lines, of which some may be torn."""

    def __init__(self, lines: list[bytes], called: str) -> None:
        self._lines, self._called = lines, called
        self._left = _MOST_TRIED

    def read(self, warnings: list[str]) -> Iterator[Entry]:
        at = 0
        while at < len(self._lines):
            line, place = self._lines[at], f"{self._called}, line {at + 1}"
            at += 1
            if not line.strip():
                continue
            values, told = _line(line)
            if not values and (joined := self._over_lines(at - 1)) is not None:
                more, values, told = joined
                at += more
            if told:
                warnings.append(f"{place}: {'mended' if values else 'skipped'}, {told}")
            yield from (Entry(value, place) for value in values)

    def _over_lines(self, start: int) -> tuple[int, list[Any], str] | None:
        """A record that begins on a line and ends on a later one: how many lines more it takes, and as `_line` has it.

        A writer that leaves line ends in strings as they are makes such, or one that writes for the eye.
        """
        lines = self._lines
        if not lines[start].lstrip(_PADDING.encode()).startswith(b"{") or not _ends_early(lines[start]):
            return None
        size = len(lines[start])
        for more, line in enumerate(lines[start + 1 : start + _MOST_LINES], 1):
            size += len(line) + 1
            self._left -= len(line) + 1
            if self._left < 0 or line.startswith(b'{"'):
                return None  # another record begins there: the one before it was torn
            if not line.rstrip().endswith(b"}"):
                continue
            self._left -= size
            text = b"\n".join(lines[start : start + more + 1])
            found, value = _decode(text)
            if found:
                as_they_are = f"it held line ends as they are, up to line {start + more + 1}"
                return more, [value], "" if _is_strict(text) else as_they_are
            if not _ends_early(text):
                return None
        return None


def _line(line: bytes) -> tuple[list[Any], str]:
    """The values of a line, and what was wrong with it ("": nothing)."""
    found, value = _decode(line) if 0 not in line else (False, None)
    if found:
        return [value], ""
    nuls = line.count(0)
    bare = line.strip(_PADDING.encode())
    if nuls and not bare:
        return [], f"{nuls} NUL bytes"
    found, value = _without_nuls(bare) if nuls else _decode(line.decode("utf-8", "replace").encode())
    if found:
        return [value], "it had NUL bytes in it" if nuls else "it had bytes that are no UTF-8 in it"
    return _unglue(line.decode("utf-8", "replace").strip(_PADDING), f"{nuls} NUL bytes" if nuls else "no JSON")


def _unglue(rest: str, otherwise: str) -> tuple[list[Any], str]:
    """The values of a line that is not one value, and what is wrong with it: several records on one line, or a whole one
    behind or inside one that was never written to its end."""
    found: list[Any] = []
    while rest:
        try:
            value, end = _JSON.raw_decode(rest)
        except (ValueError, RecursionError):
            break
        found.append(clean_value(value)[0])
        rest = rest[end:].lstrip(_PADDING)
    if not rest:
        return found, "it holds several records"
    if found and rest == ",":
        return found, ""
    start = 0
    for _ in range(_MOST_BEGINNINGS):
        start = rest.find('{"', start + 1)
        if start < 0:
            break
        try:
            value, end = _JSON.raw_decode(rest, start)
        except (ValueError, RecursionError):
            continue
        # it goes to the line's end, as no part of a torn record does, or is what only a record can be
        last = not rest[end:].strip(_PADDING)
        if last or _is_record(value):
            found.append(clean_value(value)[0])
            return found, f"a torn record stands {'before' if last else 'around'} a whole one"
    return found, "what follows is no JSON" if found else otherwise


def _is_record(value: Any) -> bool:
    """Whether a value that stands in the middle of something else is a message of its own."""
    if not isinstance(value, Mapping):
        return False
    if "role" in value and ("content" in value or "wire" in value):
        return True
    return ("uuid" in value or "seq" in value) and isinstance(value.get("message"), Mapping)


def _is_strict(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _ends_early(text: bytes) -> bool:
    """Whether a text is no JSON only because more of it must follow."""
    try:
        _JSON.decode(text.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated string") or error.pos >= len(error.doc.rstrip())
    except (ValueError, RecursionError):
        return False
    return False


# One value that breaks off


class _Document:
    """A list, or an object that holds one, of which a part is missing."""

    def __init__(self, text: str, called: str, lines_before: int) -> None:
        self._text, self._called, self._lines_before = text, called, lines_before
        self._lost: list[int] = []

    def read(self, warnings: list[str]) -> list[Entry] | None:
        """What is there of it; None where it is no document that holds messages."""
        if self._text.startswith("["):
            values: list[Any] = []
            at = 0
            while at < len(self._text) and self._text[at] == "[":  # several lists, one behind the other
                more, at = self._elements(at)
                values += more
                at = _next(self._text, at)
            if not any(_is_record(value) or _is_item(value) for value in values):
                return None
            entries = [Entry(value, f"{self._called}, entry {n}") for n, value in enumerate(values, 1)]
        else:
            value = self._object()
            if not any(isinstance(value.get(key), list) and value[key] for key in ("messages", "input")):
                return None
            entries = [Entry(value, self._called)]
        self._tell(warnings)
        return entries

    def rest(self, warnings: list[str]) -> list[Entry]:
        """The records that are there of a document whose beginning is lost."""
        self._lost.append(0)
        values: list[Any] = []
        at = -1
        while at < len(self._text):
            more, at = self._elements(at)
            values += more
        self._tell(warnings)
        return [
            Entry(value, f"{self._called}, entry {n}")
            for n, value in enumerate((value for value in values if _is_record(value) or _is_item(value)), 1)
        ]

    def _tell(self, warnings: list[str]) -> None:
        for place in self._lost[:20]:
            line = self._lines_before + self._text.count("\n", 0, place) + 1
            column = place - self._text.rfind("\n", 0, place)
            warnings.append(f"{self._called}, line {line}: skipped, from character {column} on it is no JSON")
        if len(self._lost) > 20:
            warnings.append(
                f"{self._called}: {len(self._lost) - 20} places more were skipped, and what is behind the last"
            )

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        at = 1
        while (key := _KEY.match(self._text, at)) is not None:
            at = key.end()
            value, end = self._value(at)
            if end is None:
                if self._text[at : at + 1] != "[":
                    self._lost.append(at)
                    break
                value, end = self._elements(at)
            found[str(json.loads(key[1], strict=False))] = value
            at = end
        return found

    def _elements(self, at: int) -> tuple[list[Any], int]:
        """The elements of the list that begins there, and where it ends. What is no JSON is passed over up to the next
        record."""
        found: list[Any] = []
        at = _next(self._text, at + 1)
        while at < len(self._text):
            if self._text[at] == "]":
                return found, at + 1
            value, end = self._value(at)
            if end is None:
                self._lost.append(at)
                value, end = self._resume(at) if len(self._lost) < _MOST_LOST else (None, None)
                if end is None:
                    break
            found.append(value)
            at = _next(self._text, end)
        if at >= len(self._text) and not self._lost:
            self._lost.append(len(self._text))
        return found, len(self._text)

    def _value(self, at: int) -> tuple[Any, int | None]:
        try:
            value, end = _JSON.raw_decode(self._text, at)
        except (ValueError, RecursionError):
            return None, None
        return clean_value(value)[0], end

    def _resume(self, at: int) -> tuple[Any, int | None]:
        """The next record behind a place where there is none."""
        for _ in range(_MOST_BEGINNINGS):
            begins = _BEGINNING.search(self._text, at + 1)
            if begins is None:
                break
            at = begins.start()
            value, end = self._value(at)
            if end is not None and (_is_record(value) or _is_item(value)):
                return value, end
        return None, None


def _is_item(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    kinds = ("message", "function_call", "function_call_output", "reasoning")
    return value.get("type") in kinds or ("prompt" in value and "response" in value)


def _next(text: str, at: int) -> int:
    between = _BETWEEN.match(text, at)
    return between.end() if between is not None else at
