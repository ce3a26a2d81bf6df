"""write and edit: exactly what was asked changes, whole or not at all, and can be put back."""

from __future__ import annotations

import os
import random
import re
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from brim.tools import restore

from .conftest import Bench

MIXED = b"one\ntwo\r\nthree\nbar\rbaz\n  trailing  \nno newline at end"


@pytest.mark.parametrize("old", ["first = 1\nsecond = 2", "first = 1\r\nsecond = 2"])
@pytest.mark.parametrize("more", [{}, {"replace_all": True}])
def test_edit_in_a_crlf_file(bench: Bench, old: str, more: dict[str, bool]) -> None:
    """Text given with LF matches a file with CRLF, and the file keeps its own line ends."""
    bench.write("w.py", b"first = 1\r\nsecond = 2\r\nthird = 3\r\n")
    output = bench.call("edit", path="w.py", old=old, new="first = 10\nsecond = 20", **more)
    assert (bench.root / "w.py").read_bytes() == b"first = 10\r\nsecond = 20\r\nthird = 3\r\n"
    assert "-first = 1\n" in output.text and "+first = 10\n" in output.text and "\r" not in output.text
    assert "\r" not in bench.call("read", path="w.py").text


def test_write_keeps_line_ends(bench: Bench) -> None:
    """A CRLF file written anew with LF stays a CRLF file; a new file has what was given."""
    bench.write("w.py", b"first = 1\r\nsecond = 2\r\n")
    output = bench.call("write", path="w.py", content="first = 10\nlast\n")
    assert (bench.root / "w.py").read_bytes() == b"first = 10\r\nlast\r\n" and "CRLF line ends kept" in output.text
    bench.call("write", path="deep/er/new.txt", content="a\r\nb\n")
    assert (bench.root / "deep/er/new.txt").read_bytes() == b"a\r\nb\n"
    assert "unchanged" in bench.call("write", path="w.py", content="first = 10\nlast\n").text


def test_edit_touches_nothing_else(bench: Bench) -> None:
    """In a file of mixed line ends, lone CRs and trailing blanks exactly the bytes of the text differ; the mode is kept."""
    bench.write("mix.txt", MIXED).chmod(0o755)
    bench.call("edit", path="mix.txt", old="three", new="3")
    assert (bench.root / "mix.txt").read_bytes() == MIXED.replace(b"three", b"3")
    assert os.stat(bench.root / "mix.txt").st_mode & 0o7777 == 0o755
    bench.call("edit", path="mix.txt", old="two\n3\nbar", new="two\n3\nBAR")
    assert (bench.root / "mix.txt").read_bytes() == MIXED.replace(b"three", b"3").replace(b"bar", b"BAR")


def _ends(text: str) -> list[str]:
    """The text character by character, CR LF as one."""
    return re.findall(r"\r\n|[\s\S]", text)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["a", "b", "é", "\n", "\r\n", " ", "汉", "x\n"]), min_size=1, max_size=25),
    st.data(),
    st.text(st.sampled_from("ab\né "), max_size=6),
)
def test_edit_is_a_splice(bench: Bench, pieces: list[str], data: st.DataObject, new: str) -> None:
    """Any unique text replaced by any other: before and after it every byte stays, and read back it says what was asked."""
    text = "".join(pieces)
    plain = text.replace("\r\n", "\n")
    start = data.draw(st.integers(0, len(plain) - 1))
    old = plain[start : data.draw(st.integers(start + 1, len(plain)))]
    assume(old != new and len(re.findall(f"(?={re.escape(old)})", plain)) == 1)
    path = bench.write("s.txt", text.encode())
    output = bench.call("edit", path="s.txt", old=old, new=new)
    assert not output.is_error, output.text
    after = path.read_bytes().decode()
    assert after.replace("\r\n", "\n") == plain.replace(old, new)
    before, behind = start, len(plain) - start - len(old)
    assert _ends(after)[:before] == _ends(text)[:before]
    assert _ends(after)[len(_ends(after)) - behind :] == _ends(text)[len(_ends(text)) - behind :]


@pytest.mark.parametrize(
    ("text", "old", "said"),
    [
        ("alpha\nbeta\n", "betta", "nearest is line 2: 'beta'"),
        ("    x = 1\n", "x  = 1", "line 1 differs only in blanks: '    x = 1'"),
        ("\tif a:\n\t\tb()\n", "if a:\n    b()", "line 1 differs only in blanks"),
        ("one\ntwo\nthree\n", "two\nfour", "it begins at line 2, but line 3 is 'three', not 'four'"),
        ("a = 1\nb = 2\na = 1\n", "a = 1", "2 times in f.txt (lines 1, 3)"),
        ("aaa\n", "aa", "2 times"),
        ("x\n" * 30, "x", "30 times in f.txt (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 20 more)"),
        ("x\n", "", "old is empty"),
        ("x\n", "y", "not found"),
        ("", "y", "the file is empty"),
        ("last", "last\n", "line 1 is the last one and has no line end"),
        ("if x:  \n", "if x: \n", "line 1 differs only in blanks"),
        ("with trailing  \nnext\n", "trailing\nnext", "line 1 differs only in blanks: 'with trailing  \\nnext'"),
        ("a a\n", "a", "2 times in f.txt (line 1)"),
        ("a\u00a0b\n", "a b", "line 1 differs only in blanks: 'a\\xa0b'"),
        (
            "x\nit\u2019s\n",
            "it's",
            "line 2 only looks the same: it has U+2019 (right single quotation mark) where old has U+0027",
        ),
        ("print\uff08\u4f60\uff09\n", "print(\u4f60)", "U+FF08 (fullwidth left parenthesis)"),
        ("a \u2014 b\n", "a - b", "U+2014 (em dash)"),
        ("a\tb\n", "a\\tb", "old was escaped twice"),
        ("if (a < b && c)\n", "if (a &lt; b &amp;&amp; c)", "old has HTML entities"),
        ("s = 'a\\nb'\n", "s = 'a\nb'", "line 1 has a backslash and a letter where old has a line end or a tab"),
        ("re.match('\\\\d')\n", "re.match('\\d')", "two backslashes where old has one"),
        ("foo\nbar\n", "     1\tfoo\n     2\tbar", "without the line numbers"),
        ("foo\nbar\n", "f.txt:1:foo\nf.txt:2:bar", "without the line numbers"),
        ("foo\n", "Foo", "line 1 has it in other upper and lower case letters"),
        ("a\nnew\nb\n", "something else", "new is there already, at line 2"),
        ("caf\xe9 \udcff\n", "caf\xe9 \ufffd", "U+FFFD in old stands for bytes that are no text"),
    ],
)
def test_what_cannot_be_edited_is_explained(bench: Bench, text: str, old: str, said: str) -> None:
    """No match or several: nothing changes, and the answer says where the text nearly is, or all the places."""
    data = text.encode("utf-8", "surrogateescape")
    path = bench.write("f.txt", data)
    output = bench.call("edit", path="f.txt", old=old, new="new")
    assert output.is_error and said in output.text, output.text
    assert path.read_bytes() == data


@pytest.mark.parametrize("new", ["$& $1 $$ $` $'", "\\1 \\g<0> \\n", "%s {0} ${HOME}", "\\", "[a](b)*+?", "\u2028\x85"])
def test_what_is_put_in_stands_as_it_was_given(bench: Bench, new: str) -> None:
    """Neither text is a pattern or a template: what looks like a group, an escape or a variable is just characters."""
    path = bench.write("t.txt", "a OLD b\n")
    assert not bench.call("edit", path="t.txt", old="OLD", new=new).is_error
    assert path.read_bytes() == f"a {new} b\n".encode()
    assert not bench.call("edit", path="t.txt", old=new, new="OLD").is_error
    assert path.read_bytes() == b"a OLD b\n"


def test_accents_composed_in_another_way(bench: Bench) -> None:
    """Text that Unicode calls the same is found, however its accents are composed; the rest of the file stays as it is."""
    apart = "cafe\u0301 = 1\nu\u0308ber\n\u1112\u1161\u11ab\nx\n"
    path = bench.write("nfd.txt", apart)
    output = bench.call("edit", path="nfd.txt", old="caf\xe9 = 1", new="tea = 2")
    assert not output.is_error and "composed in another way" in output.text
    assert path.read_text() == apart.replace("cafe\u0301 = 1", "tea = 2")
    assert not bench.call("edit", path="nfd.txt", old="\xfcber\n\ud55c\nx", new="y").is_error
    assert path.read_text() == "tea = 2\ny\n"
    path = bench.write("nfc.txt", "caf\xe9\ncafe\u0301\n")
    assert not bench.call("edit", path="nfc.txt", old="cafe\u0301", new="tea").is_error
    assert path.read_text() == "caf\xe9\ntea\n", "an exact match comes first"
    bench.write("part.txt", "e\u0301\n")
    assert bench.call("edit", path="part.txt", old="\u0301", new="").is_error is False


def test_line_ends_are_no_text_to_edit(bench: Bench) -> None:
    """Who asks edit for other line ends alone is told that it keeps them, and how to have others."""
    path = bench.write("f.txt", b"a\r\nb\r\n")
    for old, new, said in (
        ("\r\n", "\n", "differ in their line ends alone"),
        ("\r", "", "a part of the line end"),
        ("a\r", "a", "a part of the line end"),
        ("a\r\nb", "a\nb", "differ in their line ends alone"),
    ):
        output = bench.call("edit", path="f.txt", old=old, new=new, replace_all=True)
        assert output.is_error and said in output.text and "sed -i" in output.text, output.text
    assert path.read_bytes() == b"a\r\nb\r\n"


def test_lines_that_end_in_cr_alone(bench: Bench) -> None:
    """An old Mac's file reads and edits in lines, and keeps its line ends to the byte."""
    path = bench.write("mac.txt", b"one\rtwo\rthree\r")
    shown = bench.call("read", path="mac.txt")
    assert shown.text.startswith("one\ntwo\nthree\n[mac.txt: 3 lines") and "CR line ends" in shown.text
    assert not bench.call("edit", path="mac.txt", old="one\ntwo", new="1\n2\n2b").is_error
    assert path.read_bytes() == b"1\r2\r2b\rthree\r"
    assert not bench.call("edit", path="mac.txt", old="2\r2b\r", new="").is_error
    assert "CR line ends kept" in bench.call("write", path="mac.txt", content="a\nb\n").text
    assert path.read_bytes() == b"a\rb\r"


def test_the_diff_tells_a_last_line_without_end(bench: Bench) -> None:
    """Diffs know of a missing line end at the end of a file, and show no line that is not there."""
    bench.write("d.txt", "a\nb")
    assert "-b\n\\ No newline at end of file\n+b\n[" in bench.call("edit", path="d.txt", old="b", new="b\n").text
    assert bench.call("edit", path="d.txt", old="a\n", new="").text.startswith(
        "--- d.txt\n+++ d.txt\n@@ -1,2 +1 @@\n-a\n b\n["
    )
    bench.write("stray.txt", "\xfc \xfc \xfc \xfc \xfc one ".encode() + b"\xff\n")
    assert "+\xfc \xfc \xfc \xfc \xfc 1 \ufffd\n" in bench.call("edit", path="stray.txt", old="one", new="1").text


def test_the_diff_of_a_huge_line_shows_the_change(bench: Bench) -> None:
    """Of long lines the diff shows the surroundings of what changed, with the sizes of what it leaves out."""
    bench.write("min.json", '{"a":"' + "x" * 100_000 + '","b":1,"c":"' + "y" * 50_000 + '"}')
    text = bench.call("edit", path="min.json", old='"b":1', new='"b":25').text
    assert len(text) < 1_500 and '","b":1,"c":"' in text and '","b":25,"c":"' in text
    assert (
        "-[99892 characters] ... xxx" in text and "yyy ... [49888 characters]\n\\ No newline at end of file\n+" in text
    )
    bench.write("two.txt", "z" * 9_000 + "\nplain\n" + "é" * 9_000 + "\n")
    text = bench.call("edit", path="two.txt", old="plain\n", new="plain\nmore\n").text
    assert len(text) < 1_500 and "+more\n" in text and text.count("characters]") == 2


def test_replace_all(bench: Bench) -> None:
    """replace_all changes each place, in the line ends of each place."""
    bench.write("f.txt", b"a;b\r\na;b\na;b")
    output = bench.call("edit", path="f.txt", old=";", new=";\n", replaceAll=True)
    assert (bench.root / "f.txt").read_bytes() == b"a;\r\nb\r\na;\nb\na;\nb"
    assert output.meta["replaced"] == 3 and "3 places" in output.text
    assert "same text" in bench.call("edit", path="f.txt", old="a", new="a").text


def test_encodings_are_kept(bench: Bench) -> None:
    """UTF-16, a byte order mark, Latin-1 and stray bytes survive an edit; what an encoding cannot hold is refused."""
    for data, encoding in (
        ("größe = 1\r\nzwei\r\n".encode("utf-16"), "utf-16"), (b"\xef\xbb\xbf" + "größe = 1\nzwei\n".encode(), "utf-8-sig"),
        ("größe = 1\nzwei\n".encode("latin-1"), "latin-1"),
    ):  # fmt: skip
        path = bench.write("e.txt", data)
        assert not bench.call("edit", path="e.txt", old="größe = 1", new="größe = 2").is_error
        assert path.read_bytes() == data.decode(encoding).replace("1", "2").encode(encoding)
    refused = bench.call("edit", path="e.txt", old="zwei", new="二")
    assert refused.is_error and "Latin-1" in refused.text and "二" in refused.text
    assert "is UTF-8 now" in bench.call("write", path="e.txt", content="二\n").text
    for codec, text in (
        ("gb18030", "你好，世界。这是一个测试\n第二行\n"), ("big5", "你好，世界。這是一個測試\n第二行\n"),
        ("cp932", "こんにちは世界。テストです\n二\n"),
    ):  # fmt: skip
        path = bench.write("e.txt", text.encode(codec))
        old = text.split("\n")[1]
        assert not bench.call("edit", path="e.txt", old=old, new=old + "三").is_error, codec
        assert path.read_bytes() == text.replace(old, old + "三").encode(codec)
    path = bench.write("e.txt", b"# ascii\n" * 20_000 + "注释：这里是中文\n".encode("gbk"))
    assert not bench.call("edit", path="e.txt", old="这里是中文", new="这是").is_error
    assert path.read_bytes().endswith(b"# ascii\n" + "注释：这是\n".encode("gbk"))
    path = bench.write("e.txt", b"\xef\xbb\xbfone\ntwo\n")
    assert not bench.call("edit", path="e.txt", old="\ufeffone\n", new="\ufeff1\n").is_error
    bench.call("write", path="e.txt", content="\ufeffnew\n")
    assert path.read_bytes() == b"\xef\xbb\xbfnew\n"
    stray = bench.write("stray.txt", "ü one ".encode() + b"\xff\xfe two\n")
    bench.call("edit", path="stray.txt", old="two", new="2")
    assert stray.read_bytes() == "ü one ".encode() + b"\xff\xfe 2\n"
    assert bench.call("edit", path="stray.txt", old="ü", new="\ud83d").is_error
    bench.write("img.png", b"\x89PNG\r\n\x1a\n" + bytes(40))
    assert "a PNG image" in bench.call("edit", path="img.png", old="PNG", new="x").text


def test_changed_since_it_was_read(bench: Bench) -> None:
    """A file that somebody else changed since it was read is not overwritten; a touched or newly read one is fine."""
    path = bench.write("f.txt", "one\n")
    bench.call("read", path="f.txt")
    path.write_text("two\n")
    for name, more in (("edit", {"old": "two", "new": "2"}), ("write", {"content": "x\n"})):
        output = bench.call(name, path="f.txt", **more)
        assert output.is_error and "has changed since it was read" in output.text and path.read_text() == "two\n"
    bench.call("read", path="f.txt")
    os.utime(path, (1, 1))
    assert not bench.call("edit", path="f.txt", old="two", new="2").is_error
    assert not bench.call("edit", path="f.txt", old="2", new="3").is_error
    path.unlink()
    assert not bench.call("write", path="f.txt", content="again\n").is_error


def test_changed_while_it_is_changed(bench: Bench) -> None:
    """What somebody else writes between the look at a file and its change is not overwritten."""
    path = bench.write("race.txt", "one\n")

    class Slow:
        """A store of originals during whose work the file is changed, too."""

        def put(self, data: bytes) -> str:
            path.write_text("theirs\n")
            return kept.put(data)

    kept = bench.ctx.blobs
    bench.ctx.blobs = cast(Any, Slow())
    for output in (
        bench.call("edit", path="race.txt", old="one", new="two"), bench.call("write", path="race.txt", content="two\n"),
    ):  # fmt: skip
        assert output.is_error and "changed by somebody else just now" in output.text
        assert path.read_text() == "theirs\n" and [each.name for each in bench.root.iterdir()] == ["race.txt"]


def test_checkpoints_put_files_back(bench: Bench) -> None:
    """Each change keeps what was there: going back through the checkpoints restores content, mode and absence."""
    path = bench.write("f.sh", b"a\r\n\xff\n")
    path.chmod(0o750)
    first = bench.call("edit", path="f.sh", old="a", new="b").meta["checkpoint"]
    second = bench.call("write", path="f.sh", content="whole\n").meta["checkpoint"]
    third = bench.call("write", path="new/g.txt", content="x").meta["checkpoint"]
    for saved in (third, second, first):
        restore(bench.ctx, saved)
    assert path.read_bytes() == b"a\r\n\xff\n" and path.stat().st_mode & 0o777 == 0o750
    assert not (bench.root / "new/g.txt").exists()
    assert not bench.call("edit", path="f.sh", old="a", new="c").is_error


def test_links_out_of_the_workspace(bench: Bench) -> None:
    """No write goes through a link to the outside, dangling ones included; the real target is named; links inside work."""
    outside = bench.root.parent / "workspace_outside"
    outside.mkdir()
    (outside / "target.txt").write_text("before")
    (bench.root / "plan.txt").symlink_to(outside / "target.txt")
    (bench.root / "todo.txt").symlink_to(outside / "unborn.txt")
    (bench.root / "dir").symlink_to(outside)
    for path, real in (
        ("plan.txt", "target.txt"), ("todo.txt", "unborn.txt"), ("dir/new.txt", "new.txt"), ("dir/sub/new.txt", "sub/new.txt"),
        ("../workspace_outside/x", "x"), ("dir/../workspace_outside/y", "y"),
    ):  # fmt: skip
        output = bench.call("write", path=path, content="AFTER")
        assert output.is_error and str(outside / real) in output.text, output.text
    assert str(outside / "target.txt") in bench.call("edit", path="plan.txt", old="before", new="AFTER").text
    assert os.listdir(outside) == ["target.txt"] and (outside / "target.txt").read_text() == "before"
    bench.write("inside.txt", "in")
    (bench.root / "ok").symlink_to("inside.txt")
    assert not bench.call("edit", path="ok", old="in", new="out").is_error
    assert (bench.root / "ok").is_symlink() and (bench.root / "inside.txt").read_text() == "out"
    bench.ctx.granted.add(outside)
    assert not bench.call("write", path="plan.txt", content="AFTER").is_error
    assert (outside / "target.txt").read_text() == "AFTER" and (bench.root / "plan.txt").is_symlink()


def test_what_the_system_refuses_is_told(bench: Bench) -> None:
    """A path that cannot be written gives the system's reason, and leaves nothing behind."""
    bench.write("file", "x")
    for path in ("file/below.txt", "x" * 300, "a\0b", "", "folder/"):
        output = bench.call("write", path=path, content="y")
        assert output.is_error, path
    assert "file is a file, not a folder" in bench.call("write", path="file/a/b.txt", content="y").text
    for tool in ("read", "edit"):
        assert (
            "path is empty" in bench.call(tool, path=" ", **({} if tool == "read" else {"old": "a", "new": "b"})).text
        )
    assert [entry.name for entry in bench.root.iterdir()] == ["file"]
    (bench.root / "file").chmod(0o444)
    for refused in (bench.call("write", path="file", content="y"), bench.call("edit", path="file", old="x", new="y")):
        assert refused.is_error and "read-only" in refused.text and "chmod" in refused.text
    assert (bench.root / "file").read_text() == "x"


@pytest.mark.skipif(not os.geteuid(), reason="root may do anything")
def test_closed_folders(bench: Bench) -> None:
    """What lies in a closed folder is not said to be missing; where a folder takes no new file, that is said."""
    bench.write("locked/a.txt", "needle\n").parent.chmod(0)
    bench.write("full/f.txt", "needle\n").parent.chmod(0o555)
    try:
        change = {"old": "needle", "new": "x"}
        for output in (
            bench.call("read", path="locked/a.txt"), bench.call("edit", path="locked/a.txt", **change),
            bench.call("write", path="locked/a.txt", content="x"),
        ):  # fmt: skip
            assert "permission denied" in output.text and "no such file" not in output.text
        assert "could not be read" in bench.call("glob", pattern="locked/*").text
        assert "replaced as a whole; bash can write into it" in bench.call("edit", path="full/f.txt", **change).text
        assert "permission denied" in bench.call("write", path="full/new.txt", content="x").text
    finally:
        for folder in ("locked", "full"):
            (bench.root / folder).chmod(0o755)
    assert (bench.root / "locked/a.txt").read_text() == (bench.root / "full/f.txt").read_text() == "needle\n"


def test_what_hangs_on_a_file_stays(bench: Bench) -> None:
    """Mode and extended attributes are kept; hard links are parted, which is said."""
    path = bench.write("h.sh", "one\n")
    path.chmod(0o750)
    try:
        os.setxattr(path, "user.note", b"kept")
    except (OSError, AttributeError):
        attributes = None
    else:
        attributes = b"kept"
    os.link(path, bench.root / "other")
    output = bench.call("edit", path="h.sh", old="one", new="two")
    assert "2 hard links were parted" in output.text and (bench.root / "other").read_text() == "one\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert attributes is None or os.getxattr(path, "user.note") == attributes
    assert "hard links" not in bench.call("edit", path="h.sh", old="two", new="three").text


def test_large_diffs_are_bounded(bench: Bench) -> None:
    """Rewriting a large file answers at once, with the diff or its size, within the cap."""
    bench.write("big.txt", "".join(f"old line {i}\n" for i in range(40_000)))
    output = bench.call("write", path="big.txt", content="".join(f"new line {i}\n" for i in range(40_000)))
    assert "lines 1-40000 replaced by 40000 lines" in output.text
    many = bench.call("edit", path="big.txt", old="new line 1", new="changed line 1", replace_all=True)
    assert not many.is_error and bench.ctx.count(many.text) <= bench.ctx.caps.diff + 100
    small = bench.call("edit", path="big.txt", old="new line 39999\n", new="end\n")
    assert "@@ -39997,4 +39997,4 @@" in small.text and "+end\n" in small.text


_WRITER = """
    import asyncio, sys, pathlib
    from brim.tools import ToolContext, run_tool
    class NoBlobs:
        def put(self, data): return ""
    ctx = ToolContext(pathlib.Path(sys.argv[1]), NoBlobs(), len)
    async def main():
        print("ready", flush=True)
        size = 0
        while True:
            size += 1
            if sys.argv[2] == "write":
                await run_tool("write", {"path": "f.txt", "content": f"{size}\\n" * 60_000}, ctx)
            else:
                await run_tool("edit", {"path": "f.txt", "old": f"{size - 1}\\n", "new": f"{size}\\n",
                                        "replace_all": True}, ctx)
    asyncio.run(main())
"""


@pytest.mark.parametrize("unnamed", [True, False])
def test_nothing_is_left_beside_a_file(bench: Bench, monkeypatch: pytest.MonkeyPatch, unnamed: bool) -> None:
    """Old and new files are written with or without files that have no name, and stand alone in their folder."""
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    bench.write("old.sh", b"one\n").chmod(0o750)
    bench.call("edit", path="old.sh", old="one", new="two")
    bench.call("write", path="new.txt", content="new\n")
    assert {each.name: each.read_bytes() for each in bench.root.iterdir() if each.is_file()} == {
        "old.sh": b"two\n", "new.txt": b"new\n",
    }  # fmt: skip
    assert stat.S_IMODE((bench.root / "old.sh").stat().st_mode) == 0o750
    assert (bench.root / "new.txt").stat().st_nlink == 1


@pytest.mark.parametrize("tool", ["write", "edit"])
def test_killed_while_writing(tmp_path: Path, tool: str) -> None:
    """SIGKILL at a random moment of a write or an edit: the file is the old one or the new one, whole."""
    rng = random.Random(7)
    path = tmp_path / "f.txt"
    for _ in range(int(os.environ.get("BRIM_TEST_KILLS", "12"))):
        path.write_text("0\n" * 60_000)
        command = [sys.executable, "-c", textwrap.dedent(_WRITER), str(tmp_path), tool]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            time.sleep(rng.random() * 0.1)
            process.send_signal(signal.SIGKILL)
        lines = path.read_text().split("\n")
        assert len(lines) == 60_001 and lines[-1] == "" and len(set(lines[:-1])) == 1
        for left in tmp_path.glob(".f.txt.*.tmp"):
            left.unlink()
