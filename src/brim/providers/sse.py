"""An incremental reader of server-sent events: bytes in any chunking in, events out.

It follows the WHATWG algorithm, with two departures that real servers ask for: a last event without its blank line
is still delivered, and so is an event that has a name but no data. The work is linear in the bytes fed. (The
libraries on PyPI read from an httpx or requests response, line by line; none takes bytes as they come.)
"""

from __future__ import annotations

import msgspec


class ServerEvent(msgspec.Struct, frozen=True):
    """`event` is "" where the stream named none; `data` is its data lines joined with a newline; `id` is the last one
    seen; `retry` is in milliseconds."""

    event: str
    data: str
    id: str | None = None
    retry: int | None = None


class EventReader:
    """`feed` returns the events that a chunk completed, `end` the one that the end of the stream completes."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the line that is not yet complete
        self._first = True
        self._after_cr = False
        self._last_id: str | None = None
        self._clear()

    def _clear(self) -> None:
        self._event = ""
        self._data: list[str] = []
        self._retry: int | None = None
        self._any = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Take in the next bytes; returns the events they complete, in order."""
        events: list[ServerEvent] = []
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[:1] == b"\n":  # the second half of a CRLF that two chunks share
                chunk = chunk[1:]
        if not chunk:
            return events
        # CR, LF and CRLF end a line; bytes.splitlines would also take a form feed for one in str, but not in bytes.
        lines = chunk.splitlines(keepends=True)
        for line in lines:
            if line.endswith((b"\n", b"\r")):
                self._pieces.append(line.rstrip(b"\r\n"))
                self._line(b"".join(self._pieces), events)
                self._pieces.clear()
            else:
                self._pieces.append(line)
        self._after_cr = chunk.endswith(b"\r")
        return events

    def end(self) -> list[ServerEvent]:
        """The stream has ended; returns the last event if no blank line followed it."""
        events: list[ServerEvent] = []
        if self._pieces:
            self._line(b"".join(self._pieces), events)
            self._pieces.clear()
        self._dispatch(events)
        return events

    def _line(self, raw: bytes, events: list[ServerEvent]) -> None:
        if self._first:
            self._first = False
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if not raw:
            self._dispatch(events)
            return
        # Whole lines are decoded, so a character that two chunks share is never split.
        field, _, value = raw.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
            self._any = True
        elif field == "event":
            self._event = value
            self._any = True
        elif field == "id" and "\0" not in value:
            self._last_id = value
        elif field == "retry" and value.isascii() and value.isdigit():
            self._retry = int(value)

    def _dispatch(self, events: list[ServerEvent]) -> None:
        if self._any:
            events.append(ServerEvent(self._event, "\n".join(self._data), self._last_id, self._retry))
        self._clear()


def read_events(body: bytes) -> list[ServerEvent]:
    """All events of a whole body."""
    reader = EventReader()
    return reader.feed(body) + reader.end()
