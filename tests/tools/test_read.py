"""read: pages that join up to the file, facts that are true, and a reason where there is nothing to read."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import Bench, body, pages


@pytest.fixture
def seven(bench: Bench) -> Bench:
    bench.write("seven.txt", "".join(f"L{i}\n" for i in range(1, 8)))
    return bench


@pytest.mark.parametrize("offset", [8, 250])
def test_past_the_end(seven: Bench, offset: int) -> None:
    """An offset past the end names the file, its lines and a valid offset; it never says that the file is empty."""
    output = seven.call("read", path="seven.txt", offset=offset)
    assert output.is_error and "seven.txt has 7 lines" in output.text and "from 1 to 7" in output.text
    assert "empty" not in output.text


def test_facts(seven: Bench) -> None:
    """A page ends with file, total lines, range shown and the offset to go on from."""
    assert seven.call("read", path="seven.txt", offset=7).text.splitlines() == [
        "L7", "[seven.txt: 7 lines, 21 bytes; line 7 shown: up to the end.]"
    ]  # fmt: skip
    page = seven.call("read", path="seven.txt", offset=3, limit=2)
    assert page.text == "L3\nL4\n[seven.txt: 7 lines, 21 bytes; lines 3-4 shown. Go on with offset 5.]"
    assert page.meta["next"] == [5, 1] and page.meta["range"] == [3, 4]
    whole = seven.call("read", path="seven.txt")
    assert whole.text.endswith("lines 1-7 shown: all.]") and whole.meta["next"] is None
    assert seven.call("read", path="seven.txt", offset=0).text == whole.text
    assert seven.call("read", path="seven.txt", offset=-1).text == whole.text
    refused = seven.call("read", path="seven.txt", limit=0)
    assert refused.is_error and "at least 1" in refused.text


def test_empty_file(bench: Bench) -> None:
    """An empty file is said to exist and to be empty, in words."""
    bench.write("empty.txt", b"")
    for arguments in ({}, {"offset": 5}, {"limit": 1}):
        output = bench.call("read", path="empty.txt", **arguments)
        assert not output.is_error and output.text == "[empty.txt exists and is empty (0 lines, 0 bytes)]"


@pytest.fixture
def specials(bench: Bench) -> Iterator[Bench]:
    os.mkfifo(bench.root / "feed.fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(bench.root)
        try:
            listening.bind("sock")
        finally:
            os.chdir(here)
        (bench.root / "zero").symlink_to("/dev/zero")
        (bench.root / "self").symlink_to("self")
        (bench.root / "folder").mkdir()
        yield bench


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("feed.fifo", "FIFO"), ("sock", "socket"), ("zero", "character device"), ("/dev/zero", "character device"),
        ("folder", "a directory"), ("self", "leads back to itself"), ("/dev/stdin", "outside"),
        ("/proc/self/mem", "outside"), ("nothing.txt", "no such file"),
    ],
)  # fmt: skip
def test_what_is_no_regular_file_is_refused(specials: Bench, path: str, kind: str) -> None:
    """FIFOs, sockets, devices and directories are refused by their kind, unopened, by read, write and edit alike."""
    for name, more in (("read", {}), ("write", {"content": "x"}), ("edit", {"old": "a", "new": "b"})):
        output = specials.call(name, path=path, **more)
        if (name, path) == ("write", "nothing.txt"):
            assert not output.is_error
            (specials.root / path).unlink()
        else:
            assert output.is_error and kind in output.text, output.text
    # Allowed outside, they still are no files to read.
    specials.ctx.granted.add(
        specials.root.parent / "dev" if not path.startswith("/dev") else type(specials.root)("/dev")
    )
    if path == "/dev/zero":
        assert "character device" in specials.call("read", path=path).text


def test_links(bench: Bench) -> None:
    """A link inside the workspace is read; one that leads out is refused by the name of what it leads to, unless allowed."""
    outside = bench.root.parent / "outside"
    outside.mkdir()
    (outside / "target.txt").write_text("before\n")
    bench.write("inside.txt", "in\n")
    (bench.root / "ok").symlink_to("inside.txt")
    (bench.root / "plan.txt").symlink_to(outside / "target.txt")
    (bench.root / "dir").symlink_to(outside)
    assert body(bench.call("read", path="ok")) == "in\n"
    for path in (
        "plan.txt",
        "dir/target.txt",
        "../outside/target.txt",
        str(outside / "target.txt"),
        "dir/../outside/target.txt",
    ):
        output = bench.call("read", path=path)
        assert output.is_error and "outside the workspace" in output.text and str(outside) in output.text
    sibling = bench.root.parent / (bench.root.name + "2")
    sibling.mkdir()
    (sibling / "x").write_text("x")
    assert "outside" in bench.call("read", path=str(sibling / "x")).text
    bench.ctx.granted.add(outside)
    assert body(bench.call("read", path="plan.txt")) == "before\n"


@pytest.mark.parametrize(
    "text", ["é" * 300_000, "x" * 5_000_000 + "\nend\n", "汉👩‍👩‍👧" * 20_000 + "\n", "a\n\n" + "b" * 99_999]
)
def test_one_line_longer_than_a_page(bench: Bench, text: str) -> None:
    """A line of any length is paged by characters, none split, and the pages join up to the file."""
    bench.write("long.txt", text)
    if len(text) < 1_000_000:
        assert pages(bench, "read", path="long.txt") == text
        return
    page = bench.call("read", path="long.txt")
    _, char = page.meta["next"]
    assert "line 1, characters 1-" in page.text and "of 5000000 shown" in page.text and char > 10_000
    last = bench.call("read", path="long.txt", offset=1, char=4_999_990)
    assert body(last) == "x" * 11 + "\nend\n" and "line 1 from character 4999990" in last.text
    assert bench.call("read", path="long.txt", char=4_999_990, limit=1).meta["next"] == [2, 1]
    assert bench.call("read", path="long.txt", offset=1, char=5_000_009).is_error


_LONG = ("long " * 300, "z" * 2000)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.one_of(st.text(st.sampled_from("ab é汉🦊\u0301\u200d"), max_size=30), st.sampled_from(_LONG)), max_size=30),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
)  # fmt: skip
def test_pages_join_up_to_the_file(bench: Bench, lines: list[str], end: str, final: bool) -> None:
    """Whatever the file holds, and however its lines end, following the offsets gives all of it, once, in order."""
    text = end.join(lines) + (end if final else "")
    bench.with_caps(read=300).write("any.txt", text)
    if text:
        assert pages(bench, "read", path="any.txt") == text.replace("\r\n", "\n").replace("\r", "\n")


def test_encodings(bench: Bench) -> None:
    """UTF-16, Latin-1 and a byte order mark are recognised and told; CRLF is read as LF and kept in mind."""
    cases = {
        "utf16.txt": ("hällo\r\nwörld\r\n".encode("utf-16"), "UTF-16"),
        "utf16be.txt": (b"\xfe\xff" + "hällo\r\nwörld\r\n".encode("utf-16-be"), "UTF-16 (BE)"),
        "nobom.txt": ("hällo\r\nwörld\r\n".encode("utf-16-le"), "UTF-16 (LE)"),
        "bom.txt": (b"\xef\xbb\xbf" + "hällo\r\nwörld\r\n".encode(), "UTF-8 with BOM"),
        "latin1.txt": ("hällo\r\nwörld\r\n".encode("latin-1"), "Latin-1"),
        "late.txt": (b"x" * 100_000 + b"\r\n" + "hällo\r\nwörld\r\n".encode("latin-1"), "Latin-1"),
    }
    for name, (data, told) in cases.items():
        bench.write(name, data)
        output = bench.call("read", path=name, offset=2 if name == "late.txt" else 1)
        assert body(output) == "hällo\nwörld\n", name
        assert told in output.text and "CRLF" in output.text and "\r" not in output.text
    bench.write("mixed.txt", "gut ü\n".encode() * 20_000 + b"bad \xff\n")
    assert body(bench.call("read", path="mixed.txt", offset=20_001)) == "bad \ufffd\n"


@pytest.mark.parametrize(
    ("codec", "told", "text"),
    [
        ("gbk", "GB18030", "// 止盈点数(点) — 32个pip=320点\nint x = 1;\n"),
        ("gb18030", "GB18030", "你好，世界。\n"),
        ("gbk", "GB18030", "繁體字在國標擴展裡也有，這是一個測試。\n這裡的人們說中文，我們不是外國人。\n"),
        ("big5", "Big5", "繁體字在這裡也有，這是一個測試。\n"),
        ("cp932", "Shift-JIS", "# これはテストです\nx = 1\n"),
        ("euc_jp", "EUC-JP", "# これはテストです\nx = 1\n"),
        ("euc_kr", "EUC-KR", "# 이것은 시험입니다\nx = 1\n"),
        ("latin-1", "Latin-1", "größe = 1 # für déjà vu, naïve señor, ÀÉÎ\n"),
        ("cp1252", "Latin-1", "“quoted” – it’s €5\n"),
    ],
)
def test_older_encodings(bench: Bench, codec: str, told: str, text: str) -> None:
    """Text in an older encoding is read as what it says, wherever in the file it begins, and the encoding is told."""
    for ahead in (0, 100_000):
        bench.write("old.txt", b"#\n" * (ahead // 2) + text.encode(codec))
        output = bench.call("read", path="old.txt", offset=ahead // 2 + 1)
        assert body(output) == text and told in output.text


def test_one_bad_byte_does_not_make_another_encoding(bench: Bench) -> None:
    """UTF-8 text with a damaged place stays UTF-8, with that place shown as U+FFFD and counted."""
    bench.write("log.txt", "中文日志 ok\n".encode() * 20 + "中".encode()[:2] + b"\n" + "好\n".encode())
    output = bench.call("read", path="log.txt", offset=20)
    assert body(output) == "中文日志 ok\n\ufffd\n好\n" and "U+FFFD: 1" in output.text


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "a PNG image"), (b"\xff\xd8\xff\xe0" + bytes(100), "a JPEG image"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"PK\3\4" + bytes(50), "a ZIP archive"), (b"\x7fELF" + bytes(50), "an ELF"),
        (bytes(range(256)) * 9, "a binary file"), (bytes(5000), "a binary file"),
    ],
)  # fmt: skip
def test_binaries_are_named(bench: Bench, data: bytes, told: str) -> None:
    """What is no text is named for what it is, with its size, and not shown."""
    bench.write("thing", data)
    output = bench.call("read", path="thing")
    assert output.is_error and told in output.text and f"{len(data)} bytes" in output.text


def test_a_text_with_a_nul_is_still_text(bench: Bench) -> None:
    """A NUL or an escape in a source file is shown as U+FFFD and counted; the file is not refused."""
    bench.write("esc.txt", b"\x1b[31mred\x1b[0m\tand\x07\n")
    assert body(bench.call("read", path="esc.txt")) == "\ufffd[31mred\ufffd[0m\tand\ufffd\n"
    bench.write("nul.ts", b"const a = 1; // PINEAPPLE\x00\n")
    output = bench.call("read", path="nul.ts")
    assert body(output) == "const a = 1; // PINEAPPLE\ufffd\n" and "U+FFFD: 1" in output.text


@pytest.mark.parametrize("kind", ["lines", "line", "sparse"])
def test_large_files_in_bounded_memory(bench: Bench, kind: str) -> None:
    """A page from the middle or the end of a 300 MB file costs less than 40 MB more than a page of a small one."""
    path = bench.root / "large.txt"
    with path.open("wb") as file:
        piece = b"one line of a large file\n" * 40_000 if kind == "lines" else b"x" * 1_000_000
        for _ in range(300):
            file.write(piece)
        file.write(b"\nend\n")
    code = """
        import asyncio, resource, sys, pathlib
        from brim.tools import ToolContext, run_tool
        root = pathlib.Path(sys.argv[1])
        (root / "small.txt").write_text("a\\n")
        ctx = ToolContext(root, None, lambda text: len(text) // 4)
        asyncio.run(run_tool("read", {"path": "small.txt"}, ctx))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(asyncio.run(run_tool("read", {"path": "large.txt", **eval(sys.argv[2])}, ctx)).text[-150:])
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    where = {"lines": "{'offset': 6_000_000}", "line": "{'char': 299_999_990}", "sparse": "{}"}[kind]
    command = [sys.executable, "-c", textwrap.dedent(code), str(bench.root), where]
    *_, facts, grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert int(grown) * (1 if sys.platform == "darwin" else 1024) < 40 * 1024 * 1024
    assert "large.txt: " in facts


def test_a_file_too_large_to_count(bench: Bench) -> None:
    """Of a file beyond the limit a page of the beginning is shown, said to be that; a later one is a clear refusal."""
    bench.with_caps(read_bytes=3_000_000).write("log.txt", "one line of a log\n" * 300_000)
    output = bench.call("read", path="log.txt", limit=2)
    assert body(output) == "one line of a log\n" * 2 and "more than 1165" in output.text and "offset 3" in output.text
    later = bench.call("read", path="log.txt", offset=250_000)
    assert later.is_error and "only the first 3000000 bytes" in later.text and "sed -n '250000," in later.text


def test_similar_names_are_offered(bench: Bench) -> None:
    """A name that is nearly right gets the right one as an answer."""
    bench.write("src/settings.py", "x")
    assert "there is settings.py" in bench.call("read", path="src/setings.py").text
    bench.write("shot 3.00\u202fPM.txt", "x")
    bench.write("cafe\u0301.txt", "x")
    assert "'shot 3.00\\u202fPM.txt', which only looks the same" in bench.call("read", path="shot 3.00 PM.txt").text
    assert "'cafe\\u0301.txt', which only looks the same" in bench.call("read", path="caf\xe9.txt").text


def test_paging_order_does_not_matter(bench: Bench) -> None:
    """A page depends on its offset alone."""
    bench.write("a.txt", "".join(f"line {i}\n" for i in range(5000)))
    rng = random.Random(4)
    for offset in rng.sample(range(1, 5000), 10):
        assert bench.call("read", path="a.txt", offset=offset, limit=1).text.startswith(f"line {offset - 1}\n[")
