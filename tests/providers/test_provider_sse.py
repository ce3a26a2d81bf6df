"""Event streams are read the same however the network cuts them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from brim.providers.sse import EventReader, ServerEvent, read_events

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20)


def _read(body: bytes, cuts: list[int]) -> list[ServerEvent]:
    reader = EventReader()
    events: list[ServerEvent] = []
    start = 0
    for cut in sorted({cut % (len(body) + 1) for cut in cuts}):
        events += reader.feed(body[start:cut])
        start = cut
    return events + reader.feed(body[start:]) + reader.end()


@given(
    st.lists(
        st.tuples(_TEXT.filter(lambda name: not name.startswith(" ")), st.lists(_TEXT, min_size=1, max_size=3)),
        max_size=5,
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 10_000), max_size=30),
    st.booleans(),
)
def test_chunking_does_not_matter(
    events: list[tuple[str, list[str]]], newline: str, cuts: list[int], bom: bool
) -> None:
    """Any chunking, line end and byte order mark gives the events that were written."""
    body = "\ufeff" if bom else ""
    for name, data in events:
        body += f": a comment{newline}" + (f"event: {name}{newline}" if name else "")
        body += "".join(f"data: {line}{newline}" for line in data) + newline
    got = [(event.event, event.data) for event in _read(body.encode(), cuts)]
    assert got == [(name, "\n".join(data)) for name, data in events]


@given(st.binary(max_size=200), st.lists(st.integers(0, 300), max_size=10))
def test_any_bytes_in_any_chunks(body: bytes, cuts: list[int]) -> None:
    """Even bytes that are no event stream give the same events in whatever chunks they come, and no exception."""
    assert _read(body, cuts) == read_events(body)


def test_fields() -> None:
    """id, retry and event are read; unknown fields and comments are not; one space after the colon goes."""
    body = b"id: 7\nretry: 250\nevent: delta\ndata:  two\ndata\ndata:x\nfoo: bar\n:comment\n\ndata: next\n\n"
    assert read_events(body) == [ServerEvent("delta", " two\n\nx", "7", 250), ServerEvent("", "next", "7", None)]


def test_no_final_blank_line() -> None:
    """The last event counts even if the stream ends in the middle of its line end."""
    assert [event.data for event in read_events(b"data: a\n\ndata: [DONE]")] == ["a", "[DONE]"]
    assert [event.data for event in read_events(b"data: a\r")] == ["a"]


def test_split_character_and_crlf() -> None:
    """A character of several bytes and a CRLF that two chunks share are whole."""
    reader = EventReader()
    raw = "data: 搜索\r\n\r\n".encode()
    events = [event for byte in raw for event in reader.feed(bytes([byte]))]
    assert [event.data for event in events] == ["搜索"]
    assert reader.end() == []


def test_empty_streams() -> None:
    """Nothing, comments and blank lines are no events; a name without data is one."""
    assert read_events(b"") == read_events(b": ping\n\n\n\n") == []
    assert read_events(b"event: error\n\n") == [ServerEvent("error", "")]


def test_one_long_line_in_small_chunks() -> None:
    """A line of a megabyte in small pieces is joined once."""
    reader = EventReader()
    reader.feed(b"data: ")
    for _ in range(10_000):
        assert reader.feed(b"x" * 100) == []
    assert len(reader.feed(b"\n\n")[0].data) == 1_000_000
