"""Bounded output: within its cap, whole characters, exact counts, whatever comes and however it comes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brim.tools.bounded import BoundedOutput, Limits
from brim.tools.clusters import cut_after, cut_before, is_boundary

from .bounded_oracle import KeptBlobs, check, count_quarters, feed

_PIECES = st.one_of(
    st.binary(max_size=12),
    st.text(alphabet="ab é中🦊\u0301\u200d👩👧🇩🇪\ufe0f", max_size=12).map(str.encode),
    st.sampled_from(
        [
            b"\n", b"\r", b"\r\n", b"\r\r\n", b"10%\r20%\r30%", b"\x1b[31m", b"\x1b[0m", b"\x1b]0;title\x07",
            b"\x1b]8;;x\x1b\\",
            b"\x1b", b"\x1b[", b"\x1b[1;2", b"\x1b(B", b"\x1bP1$r", b"\xc2\x9b1m", b"\x1b[G", b"\x1b[2G", b"\0",
            b"\xff", b"\xe4\xb8", b"\xf0\x9f\xa6",
            b"\xed\xa0\xbd", b"\xef\xbf\xbd", b"\x08\x07\x0c", b"\x08", b"-\x08\\\x08|", b"\x08" * 300, b"\x1b[3D",
            b"\x1b[99999D",
            b"x" * 90, b"line\n" * 30, "👩‍👩‍👧".encode(), "é中🦊".encode(), b"z" * 700,
        ]
    ),
)  # fmt: skip


@st.composite
def _streams(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """Bytes, and the same bytes in random chunks."""
    data = b"".join(draw(st.lists(_PIECES, max_size=40)))
    borders = sorted(draw(st.lists(st.integers(0, len(data)), max_size=20)))
    edges = [0, *borders, len(data)]
    return data, [data[a:b] for a, b in pairwise(edges)]


_LIMITS = st.builds(
    Limits,
    tokens=st.integers(1, 400),
    lines=st.one_of(st.none(), st.integers(1, 20)),
    chars=st.one_of(st.none(), st.integers(1, 1500)),
    head=st.sampled_from([0.4, 0.5, 0.6, 1.0]),
)


@settings(max_examples=400, deadline=None)
@given(_streams(), _LIMITS)
def test_any_bytes_in_any_chunks(stream: tuple[bytes, list[bytes]], limits: Limits) -> None:
    """Any bytes in any chunks: the same text within the cap, valid UTF-8, exact counts, the original kept."""
    data, pieces = stream
    check(data, pieces, limits)


@settings(max_examples=60, deadline=None)
@given(_streams())
def test_byte_by_byte(stream: tuple[bytes, list[bytes]]) -> None:
    """The hardest chunking, a byte at a time, gives what one piece gives."""
    data, _ = stream
    check(data, [data[at : at + 1] for at in range(len(data))], Limits(120))


def test_final_newline_is_no_line() -> None:
    """3,500 printed lines are 3,500, and the numbers in the notice are those of the lines that are missing."""
    data = b"".join(b"row %d\n" % i for i in range(1, 3501))
    done = check(data, [data], Limits(1000))
    gap = done.gap
    assert gap is not None and gap.total_lines == done.total_lines == 3500
    shown = [int(line.split()[1]) for line in done.text.splitlines() if line.startswith("row")]
    assert shown == [*range(1, gap.first), *range(gap.last + 1, 3501)]
    assert f"of 3500 shown; left out: {gap.first}-{gap.last}" in done.text
    assert done.handle is not None and f"recall handle {done.handle}, offset {gap.first}" in done.text


def test_one_giant_line_keeps_its_end() -> None:
    """A single line of 7 MB is cut inside, at its head and its tail; it is never "no output"."""
    for end in (b"", b"\n", b"\ncode=0\n"):
        data = b"z" * 7_000_000 + b"LASTWORD" + end
        done = check(data, [data[at : at + 100_000] for at in range(0, len(data), 100_000)], Limits(2000, head=0.4))
        assert "zLASTWORD" in done.text and done.text.startswith("zzz")
        assert ("code=0" in done.text) == (end == b"\ncode=0\n")
        assert done.gap is not None and f"{done.gap.chars} of {len(data)} characters" in done.text


@pytest.mark.parametrize("n", range(995, 1006))
def test_no_cut_inside_an_emoji(n: int) -> None:
    """Sweeping the cut over emoji, a joined family, accents and Chinese never splits one, by characters, bytes or tokens."""
    text = "a" * n + "🦊👩‍👩‍👧é中" + "b" * 5000
    for limits in (
        Limits(100_000, chars=1000 + 150, head=1.0),
        Limits(250, head=1.0),
        Limits(310, head=1.0),
        Limits(400),
    ):
        for size in (1, 3, 1000, 9000):
            data = text.encode()
            done = check(data, [data[at : at + size] for at in range(0, len(data), size)], limits)
            assert "\ufffd" not in done.text


def test_progress_bars_show_their_last_state() -> None:
    """What a carriage return wrote over is gone, lines of progress are one line, and escapes are removed."""
    bar = b"".join(b"\r\x1b[K%3d%%" % i for i in range(101)) + b"\n"
    assert feed([b"start\n" + bar + b"\x1b[32mdone\x1b[0m\r\n"], Limits(500)).text == "start\n100%\ndone\n"
    assert feed([b"\x1b[1G\x1b[0Ka\x1b[1G\x1b[0Kb\n"], Limits(500)).text == "b\n"
    assert feed([b"1%\r2%\r"], Limits(500)).text == "2%"


def test_what_was_typed_over_is_gone() -> None:
    """After backspaces the text stands as on a terminal: spinners, overstruck manual pages, erased characters."""
    assert feed([b"wait |\b/\b-\b\\\b", b"done\n"], Limits(500)).text == "wait done\n"
    assert feed([b"N\bNA\bAM\bME\bE _\bu_\bs_\be\n"], Limits(500)).text == "NAME use\n"
    assert feed([b"abc\b\b\bXY\n", b"\b\bno line before\n", b"99%\x1b[3D100%"], Limits(500)).text == (
        "XYc\nno line before\n100%"
    )
    out = BoundedOutput(Limits(500), count_quarters, collapse=False)
    out.feed(b"a\bb\n")
    assert out.finish().text == "a\ufffdb\n"


def test_nul_and_invalid_bytes_are_shown_and_counted() -> None:
    """NUL and bytes that are no UTF-8 become U+FFFD and are counted; a U+FFFD of the output's own is not."""
    done = feed([b"a\0b\xff\xfe", "c\ufffd".encode(), b"\xe4\xb8"], Limits(500))
    assert done.text == "a\ufffdb\ufffd\ufffdc\ufffd\ufffd" and done.replaced == 4


def test_an_endless_escape_swallows_nothing_for_ever() -> None:
    """A stray introducer of a terminal string ends at the line's end, and one without an end takes no memory."""
    assert feed([b"\x1b]stray title\nnext line\n"], Limits(500)).text == "\nnext line\n"
    out = BoundedOutput(Limits(500), count_quarters)
    for _ in range(200):
        out.feed(b"\x1b[" + b"1;" * 50_000)
    out.feed(b"mend")
    assert out.finish().text == "end"


def test_the_original_has_a_cap_of_its_own() -> None:
    """Of an endless output only so much is stored, and the notice says so."""
    blobs = KeptBlobs()
    out = BoundedOutput(Limits(200), count_quarters, blobs=blobs, blob_bytes=1_000_000)
    for _ in range(100):
        out.feed(b"0123456789\n" * 10_000)
    done = out.finish()
    assert done.handle is not None and blobs.size(done.handle) == 1_000_000
    assert "only its beginning was kept" in done.text and done.total_lines == 1_000_000


def test_memory_is_flat() -> None:
    """300 MB of lines, or as one line, cost less than 15 MB more than 1 MB does."""
    code = """
        import resource, sys
        from brim.tools.bounded import BoundedOutput, Limits
        out = BoundedOutput(Limits(6000), lambda text: len(text) // 4 + 1)
        piece = b"x" * 65536 if sys.argv[1] == "line" else b"some line of text\\n" * 3640
        for at in range(4800):
            if at == 16:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            out.feed(piece)
        out.finish()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    for kind in ("line", "lines"):
        command = [sys.executable, "-c", textwrap.dedent(code), kind]
        grown = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        assert grown * (1 if sys.platform == "darwin" else 1024) < 15 * 1024 * 1024


def test_tiny_caps_hold() -> None:
    """A cap too small for any notice still holds; the text shrinks to nothing rather than break it."""
    data = b"many words\n" * 1000
    for tokens in range(1, 60):
        done = check(data, [data], Limits(tokens))
        assert count_quarters(done.text) <= tokens


def test_cluster_borders() -> None:
    """Flags, families, skin tones, accents, jamo and CR LF are one character each; letters are not joined."""
    for text in ("🇩🇪🇫🇷", "👩‍👩‍👧👍🏽", "e\u0301x", "\u1112\u1161\u11ab\u1100", "a\r\nb"):
        for at in range(len(text) + 1):
            assert is_boundary(text, cut_before(text, at)) and is_boundary(text, cut_after(text, at))
    assert [at for at in range(5) if is_boundary("🇩🇪🇫🇷", at)] == [0, 2, 4]
    assert cut_before("a👩‍👩‍👧", 4) == 1 and cut_after("a👩‍👩‍👧b", 2) == 6
    assert all(is_boundary("plain text 中文", at) for at in range(13))
    assert is_boundary("line\n\u0301", 5)
    assert cut_before("a" + "\u0301" * 500, 400) == 400
