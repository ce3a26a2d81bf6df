"""grep: file:line:content that never breaks, exact totals, a stable order, and word of what was not searched."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brim.tools.caps import Caps
from brim.tools.globs import compile_glob, compile_include
from brim.tools.listing import Listing
from brim.tools.matches import FIELD, Matches, as_shown
from brim.tools.ripgrep import NOISE, Skipped
from brim.tools.spool import Spool

from .bounded_oracle import KeptBlobs
from .conftest import Bench


def matches(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("[")]


def test_binary_and_nul_files_are_named_not_shown(bench: Bench) -> None:
    """A file with a NUL is not passed over in silence, and none of a binary's bytes are shown."""
    bench.write("nul.ts", b"const a = 1; // PINEAPPLE\x00\n")
    bench.write("img.bin", bytes(range(256)) * 50 + b"PINEAPPLE" + bytes(range(256)) * 50)
    bench.write("plain.txt", "PINEAPPLE\n")
    output = bench.call("grep", pattern="PINEAPPLE")
    assert matches(output.text) == ["plain.txt:1:PINEAPPLE"]
    assert "Binary files that match (content not shown): img.bin, nul.ts." in output.text
    assert len(output.text) <= 1000


def test_minified_line_shows_the_surroundings_of_its_match(bench: Bench) -> None:
    """A match inside a line of 5 MB is shown with its surroundings, marked as shortened, in bounded time."""
    bench.write("bundle.min.js", "a" * 2_500_000 + "quokka" + "b" * 2_500_000)
    bench.write("ok.py", "x=1\n# quokka here\n")
    output = bench.call("grep", pattern="quokka")
    long, short = matches(output.text)
    assert short == "ok.py:2:# quokka here"
    assert (
        re.fullmatch(r"bundle\.min\.js:1:\[\d+ bytes\] \.\.\. a+quokkab+ \.\.\. \[\d+ bytes\]", long)
        and len(long) <= 500
    )
    assert len(output.text) <= 5000 and output.handle is not None
    left, right = map(int, re.findall(r"\[(\d+) bytes\]", long))
    assert left + right + len(re.search(r"a+quokkab+", long)[0]) == 5_000_006  # type: ignore[index]
    assert output.meta["total_chars"] == len("bundle.min.js:1:") + 5_000_006 + 1 + len("ok.py:2:# quokka here\n")


def test_where_nothing_is_left_out_but_parts_of_lines(bench: Bench) -> None:
    """Where all matching lines are shown and some are shortened, the notice leads to them whole, not past their end."""
    bench.write("a.js", "x" * 3_000 + "quokka\nshort quokka\n")
    output = bench.call("grep", pattern="quokka")
    [handle] = re.findall(r"under recall handle (\w+), offset 1\.", output.text)
    assert "2 matching lines in 1 file;" in output.text and "left out" not in output.text
    whole = bench.call("recall", handle=handle, offset=1)
    assert whole.text.startswith("a.js:1:" + "x" * 3_000 + "quokka\na.js:2:short quokka\n")


@pytest.mark.parametrize("place", [0, 150, 5_000, 70_000, 200_000])
def test_long_lines_of_wide_characters(bench: Bench, place: int) -> None:
    """Shortening never splits a character, wherever the match stands and however long the line is."""
    bench.write("zh.txt", "汉👩‍👩‍👧" * (place // 6) + "TODO关键词" + "字" * 90_000 + "\nsecond TODO\n")
    output = bench.call("grep", pattern="TODO")
    assert "\ufffd" not in output.text and "TODO关键词" in output.text and "zh.txt:2:second TODO" in output.text
    assert output.meta["total_lines"] == 2


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("--max-depth|-q ", [2, 3]),
        ("-> arrow", [4]),
        ("--", [2]),
        ("-e", []),
        ("-f/etc/passwd", []),
        ("--files", []),
        ("-q", [3]),
    ],
)
def test_patterns_are_never_options(bench: Bench, pattern: str, lines: list[int]) -> None:
    """A pattern that begins with dashes is searched for."""
    bench.write("help.txt", "usage: x\n  --max-depth N  levels\n  -q  quiet\n  -> arrow\n")
    output = bench.call("grep", pattern=pattern)
    assert not output.is_error
    assert [int(line.split(":")[1]) for line in matches(output.text)] == lines


def test_paths_are_never_options(bench: Bench) -> None:
    """A path that looks like an option is a path, whether it exists or not."""
    assert "no such file or directory: -R" in bench.call("grep", pattern="a", path="-R").text
    bench.write("-R", "a\n")
    bench.write("--files/x.txt", "a\n")
    assert matches(bench.call("grep", pattern="a", path="-R").text) == ["-R:1:a"]
    assert matches(bench.call("grep", pattern="a", path="--files").text) == ["--files/x.txt:1:a"]


def test_symlink_loops(bench: Bench) -> None:
    """Links that lead to a parent, to themselves or nowhere neither loop nor fail; each file is found once."""
    bench.write("a/t.txt", "walrus\n")
    (bench.root / "a" / "link").symlink_to("..")
    (bench.root / "self").symlink_to("self")
    (bench.root / "dangling").symlink_to("nowhere")
    assert matches(bench.call("grep", pattern="walrus").text) == ["a/t.txt:1:walrus"]
    assert matches(bench.call("glob", pattern="**/*.txt").text) == ["a/t.txt"]
    assert "leads back to itself" in bench.call("grep", pattern="x", path="self").text


def test_outside_files_are_not_listed(bench: Bench) -> None:
    """What lies behind a link out of the workspace is neither searched nor listed; a path there is refused by its real name."""
    outside = bench.root.parent / "outside"
    outside.mkdir()
    (outside / "target.txt").write_text("before\n")
    (bench.root / "dir").symlink_to(outside)
    (bench.root / "plan.txt").symlink_to(outside / "target.txt")
    assert matches(bench.call("grep", pattern="before", no_ignore=True).text) == []
    assert matches(bench.call("glob", pattern="**", no_ignore=True).text) == []
    for output in (
        bench.call("grep", pattern="before", path="dir"), bench.call("grep", pattern="before", path=".."),
        bench.call("glob", pattern="dir/**"), bench.call("glob", pattern="*", path="dir"),
    ):  # fmt: skip
        assert output.is_error and "outside the workspace" in output.text
    assert str(outside) in bench.call("grep", pattern="before", path="dir").text
    bench.ctx.granted.add(outside)
    assert matches(bench.call("grep", pattern="before", path="dir").text) == [f"{outside}/target.txt:1:before"]


@pytest.fixture
def specials(bench: Bench) -> Iterator[Bench]:
    os.mkfifo(bench.root / "feed.fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(bench.root)  # a socket's whole path may be too long for its address
        try:
            listening.bind("sock")
        finally:
            os.chdir(here)
        (bench.root / "zero").symlink_to("/dev/zero")
        bench.write("x.txt", "find me\n")
        yield bench


def test_pipes_sockets_and_devices_are_not_opened(specials: Bench) -> None:
    """A FIFO, socket or device in the tree holds nothing up and is refused by its kind when named."""
    assert matches(specials.call("grep", pattern="find me", no_ignore=True).text) == ["x.txt:1:find me"]
    assert matches(specials.call("glob", pattern="**").text) == ["x.txt"]
    assert "FIFO" in specials.call("grep", pattern="a", path="feed.fifo").text
    assert "socket" in specials.call("grep", pattern="a", path="sock").text
    assert "device" in specials.call("grep", pattern="a", path="zero").text


@pytest.mark.parametrize("pattern", ["(", "a{1000}{1000}{1000}", "(?=x)", "[z-a]", r"(a)\1", "a\\"])
def test_an_invalid_pattern_is_an_error(bench: Bench, pattern: str) -> None:
    """A pattern that cannot be searched for is an error with the reason, not "no matches"."""
    bench.write("a.txt", "aaa\n")
    output = bench.call("grep", pattern=pattern)
    assert output.is_error and "error" in output.text.lower() and "No matching" not in output.text
    assert not bench.call("grep", pattern=pattern, literal=True).is_error


def test_catastrophic_patterns_take_bounded_time(bench: Bench) -> None:
    """A pattern that would keep a backtracking engine busy for ever is answered, and no search is longer than its limit."""
    bench.write("a.txt", ("a" * 30_000 + "!\n") * 20)
    output = bench.call("grep", pattern="(a+)+$")
    assert not output.is_error and "timed out" not in output.text


def test_a_search_ends_at_its_time(bench: Bench) -> None:
    """A search over its time is ended; what was found is shown with word that there may be more."""
    bench.write("a.txt", "a" * 8_000_000 + "\n")
    output = bench.with_caps(search_timeout=1).call("grep", pattern="(.*?a){1,200}b|(a{1,80}){1,40}c")
    if output.meta["timed_out"]:
        assert "Stopped after 1 s: there may be more" in output.text


def test_noise_ignored_and_hidden_are_said_to_be_left_out(bench: Bench) -> None:
    """Noise folders, gitignored and hidden files are not searched by default; the answer says which, and how to search them."""
    for folder in ("node_modules", "dist", "a/b/target", "src"):
        bench.write(f"{folder}/x.js", "needle\n")
    bench.write(".gitignore", "*.log\n")
    bench.write("x.log", "needle\n")
    bench.write(".env.example", "needle\n")
    output = bench.call("grep", pattern="needle")
    assert matches(output.text) == ["src/x.js:1:needle"]
    for name in ("node_modules", "dist", "a/b/target", "x.log", ".env.example", "no_ignore: true"):
        assert name in output.text
    every = bench.call("grep", pattern="needle", noIgnore=True)
    assert len(matches(every.text)) == 6 and "Not searched" not in every.text
    assert matches(every.text) == sorted(matches(every.text))
    assert matches(bench.call("grep", pattern="needle", path="node_modules").text) == ["node_modules/x.js:1:needle"]
    for file in ("script/build", "out", "bin/target"):
        bench.write(file, "script\n")
    assert len(matches(bench.call("grep", pattern="script").text)) == 3, "a file may be called like a noise folder"
    assert matches(bench.call("glob", pattern="script/*").text) == ["script/build"]
    assert len(NOISE) >= 18 and {
        "node_modules",
        ".git",
        "dist",
        "build",
        "vendor",
        "__pycache__",
        ".venv",
        "target",
    } <= {*NOISE}


def test_ignore_rules_are_those_of_git(bench: Bench) -> None:
    """Negations, anchored rules, nested files, .git/info/exclude: what git leaves out is left out, and nothing else."""
    subprocess.run(["git", "init", "-q"], cwd=bench.root, check=True)
    rules = "*.log\n!keep.log\n/temp/\ngen/code/\nmade/*\n!made/keep/\n**/store/*.bin\n\\#hash\nsp ace.txt\n*.[oa]\n"
    bench.write(".gitignore", rules)
    bench.write("sub/.gitignore", "!b.log\nn.txt\n")
    bench.write(".git/info/exclude", "excluded.txt\n")
    for name in (
        "a.log", "keep.log", "sub/b.log", "sub/keep.log", "temp/a.py", "sub/temp/a.py", "gen/code/b.py", "x/gen/code/b.py",
        "made/a.txt", "made/keep/b.txt", "store/a.bin", "q/store/b.bin", "#hash", "sp ace.txt", "m.o", "sub/deep/n.txt",
        "excluded.txt", "plain.txt",
    ):  # fmt: skip
        bench.write(name, "needle\n")
    listed = ["git", "ls-files", "-o", "--exclude-standard", "-z"]
    said = subprocess.run(listed, cwd=bench.root, check=True, capture_output=True).stdout.decode().split("\0")
    expected = sorted(name for name in said if name and not name.endswith(".gitignore"))
    assert matches(bench.call("grep", pattern="needle").text) == [f"{name}:1:needle" for name in expected]
    assert matches(bench.call("glob", pattern="**").text) == expected


def test_gitignore_of_a_repository(bench: Bench) -> None:
    """In a git repository its own .gitignore files count, also for a search below them."""
    subprocess.run(["git", "init", "-q"], cwd=bench.root, check=True)
    bench.write(".gitignore", "out.txt\n")
    bench.write("sub/out.txt", "needle\n")
    bench.write("sub/in.txt", "needle\n")
    output = bench.call("grep", pattern="needle", path="sub")
    assert matches(output.text) == ["sub/in.txt:1:needle"] and "sub/out.txt" in output.text


@pytest.mark.parametrize(
    ("include", "found"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("*.{ts,py}", ["a.py", "a.ts", "src/b.py", "src/deep/c.py"]),
        ("*.ts, a.py", ["a.py", "a.ts"]),
        ("!*.py", ["a.ts"]),
        ("*.py,!**/deep/**", ["a.py", "src/b.py"]),
        ("src/", ["src/b.py", "src/deep/c.py"]),
        ("[ab].py", ["a.py", "src/b.py"]),
        ("nothing.*", []),
    ],
)
def test_include_filters(bench: Bench, include: str, found: list[str]) -> None:
    """include takes globs of names or paths, several, or what to leave out; ignored files stay ignored."""
    for name in ("a.py", "a.ts", "src/b.py", "src/deep/c.py", "skip.py"):
        bench.write(name, "needle\n")
    bench.write(".gitignore", "skip.py\n")
    output = bench.call("grep", pattern="needle", include=include)
    assert [line.split(":")[0] for line in matches(output.text)] == found
    assert output.meta["total_lines"] == output.meta["files"] == len(found)


def test_cut_by_lines_with_exact_totals(bench: Bench) -> None:
    """Over 200 lines the first 200 by path are shown whole, the rest is counted exactly, and recall reads on."""
    for number in range(40):
        bench.write(f"d{number % 7}/f{number:02d}.txt", "".join(f"needle {i}\n" for i in range(25)))
    output = bench.call("grep", pattern="needle")
    lines = matches(output.text)
    every = sorted(
        (f"d{number % 7}/f{number:02d}.txt", i) for number in range(40) for i in range(25)
    )  # fmt: skip
    assert lines == [f"{path}:{i + 1}:needle {i}" for path, i in every[:200]]
    assert "200 of 1000 matching lines shown, in 40 files" in output.text and "800 lines left out" in output.text
    assert "Narrow the pattern" in output.text and output.handle is not None
    whole = bench.ctx.blobs.get(output.handle).decode()
    assert whole.splitlines() == [f"{path}:{i + 1}:needle {i}" for path, i in every]
    assert f"{len(whole)} characters in all" in output.text
    following = bench.call("recall", handle=output.handle, offset=201, limit=1)
    assert following.text.startswith(f"{every[200][0]}:{every[200][1] + 1}:needle {every[200][1]}\n")
    assert output.text == bench.call("grep", pattern="needle").text


def test_cut_by_tokens_keeps_lines_whole(bench: Bench) -> None:
    """Where the tokens run out first, the cut still falls between lines, and an odd file name breaks nothing."""
    bench.write("a:1:b.txt", "".join(f"needle number {i} of many in a line of some length\n" for i in range(150)))
    output = bench.with_caps(grep=500).call("grep", pattern="needle")
    lines = matches(output.text)
    assert lines == [f"a:1:b.txt:{i + 1}:needle number {i} of many in a line of some length" for i in range(len(lines))]
    assert 5 < len(lines) < 100 and f"{len(lines)} of 150 matching lines shown" in output.text


def test_seven_megabytes_of_noise_stay_out_or_bounded(bench: Bench) -> None:
    """7 MB of matches under node_modules: not there by default, bounded with no_ignore, all there if the caps are lifted."""
    line = "// TODO: " + "x" * 90 + "\n"
    for number in range(70):
        bench.write(f"node_modules/p{number:02d}/index.js", line * 1000)
    bench.write("src/main.py", "# TODO one\n" * 40)
    assert bench.call("grep", pattern="TODO").meta["total_lines"] == 40
    every = bench.call("grep", pattern="TODO", no_ignore=True)
    assert every.meta["total_lines"] == 70_040 and every.meta["shown_lines"] <= 200 and every.handle is not None
    lifted = bench.with_caps(grep=100_000_000, grep_lines=1_000_000, read=100_000_000)
    assert len(matches(lifted.call("grep", pattern="TODO", no_ignore=True).text)) == 70_040


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_a_file_with_very_many_matches(bench: Bench) -> None:
    """Where ripgrep would hold more matches than it may, they are counted all the same, without holding them."""
    bench.write("many.txt", "needle\n" * 700_000)
    bench.write("one.txt", "needle\n")
    output = bench.with_caps(search_memory=16_000_000, search_timeout=200).call("grep", pattern="needle")
    assert "200 of 700001 matching lines shown, in 2 files" in output.text and not output.is_error
    assert matches(output.text)[0] == "many.txt:1:needle"


def test_stop_early(bench: Bench) -> None:
    """On request a search ends as soon as there is more than can be shown, and does not claim a total."""
    for number in range(300):
        bench.write(f"f{number}.txt", "needle\n" * 50)
    output = bench.call("grep", pattern="needle", stop_early=True)
    assert len(matches(output.text)) == 200 and "200 of more than" in output.text


def test_crlf_and_latin1_and_utf16(bench: Bench) -> None:
    """Carriage returns are not shown, bytes of other encodings are, and UTF-16 is searched."""
    bench.write("crlf.txt", b"one needle\r\ntwo\r\n")
    bench.write("latin.txt", "needle café\n".encode("latin-1"))
    bench.write("wide.txt", "needle größe\n".encode("utf-16"))
    assert matches(bench.call("grep", pattern="needle").text) == [
        "crlf.txt:1:one needle", "latin.txt:1:needle caf\ufffd", "wide.txt:1:needle größe"
    ]  # fmt: skip


def test_names_of_any_kind(bench: Bench) -> None:
    """Each line is told under its file's own name: colons, blanks, dashes, brackets, bytes that are no UTF-8, line ends."""
    names = [
        "co:lon:1.txt",
        "we ird/na me.txt",
        "-dash.txt",
        "app/[id]/p.txt",
        "ünï.txt",
        "$HOME.txt",
        "'q\".txt",
        "a\nb.txt",
    ]
    for name in names:
        bench.write(name, "needle\n" * 2)
    bench.write("long\nname.txt", "x" * 200_000 + "needle\n")
    bench.write("bin\nary.bin", b"needle\0" + bytes(range(256)))
    with open(os.fsencode(bench.root) + b"/bad\xff.txt", "wb") as file:
        file.write(b"needle\n")
    output = bench.call("grep", pattern="needle")
    shown = [name.replace("\n", "?") for name in names]
    expected = [f"{name}:{line}:needle" for name in shown for line in (1, 2)] + ["bad\ufffd.txt:1:needle"]
    lines = matches(output.text)
    assert set(expected) <= set(lines) and len(lines) == len(expected) + 1
    assert any(line.startswith("long?name.txt:1:[") for line in lines) and "bin?ary.bin" in output.text
    assert "18 matching lines" in output.text and "10 files" in output.text
    assert "new?line" not in output.text and len(matches(bench.call("glob", pattern="**/*.txt").text)) == 10


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"foo\(\):\n    return", ["crlf.py:1", "crlf.py:2", "lf.py:1", "lf.py:2"]),
        ("foo():\n    return bar", []),
        (r"def.*\r?\n.*bar$", ["crlf.py:1", "crlf.py:2", "lf.py:1", "lf.py:2"]),
        ("bar$", ["crlf.py:2", "lf.py:2"]),
        (r"^$", ["crlf.py:3", "lf.py:3"]),
        (r"bar\r", ["crlf.py:2"]),
        (r"(?s)def.*end", [f"{name}.py:{line}" for name in ("crlf", "lf") for line in (1, 2, 3, 4)]),
        (r"def[\s\S]*?bar", ["crlf.py:1", "crlf.py:2", "lf.py:1", "lf.py:2"]),
        (r"[^\n]end", ["crlf.py:4", "lf.py:4"]),
        (r"\\n", ["lf.py:5"]),
    ],
)
def test_line_ends_in_patterns(bench: Bench, pattern: str, found: list[str]) -> None:
    """A pattern that names a line end is matched across lines, $ stands before either kind of line end."""
    text = "def foo():\n    return bar\n\n end\n"
    bench.write("lf.py", text + "s = 'a\\nb'\n")
    bench.write("crlf.py", text.replace("\n", "\r\n"))
    output = bench.call("grep", pattern=pattern)
    assert [":".join(line.split(":")[:2]) for line in matches(output.text)] == found
    assert not output.is_error and "\r" not in output.text and output.meta["total_lines"] == len(found)
    literal = bench.call("grep", pattern="foo():\n    return bar\n", literal=True)
    assert len(matches(literal.text)) == 4


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("$", [1, 2, 3, 4]),
        ("^$", [3]),
        (r"\s", [2]),
        (r"\s+$", [2]),
        (".", [1, 2, 4]),
        ("[^a-z]", [2]),
        (r"n\W", []),
        (r"n.|t$", [4]),
        (r"[[:space:]]", [2]),
        (r"\z|clean", [1, 2, 3, 4]),
    ],
)
def test_the_end_of_a_line_is_none_of_its_text(bench: Bench, pattern: str, lines: list[int]) -> None:
    """A pattern finds the same lines whichever kind of line end they have, and the last one whether it has one or not."""
    text = "clean\ntrail \n\nlast"
    bench.write("crlf.txt", text.replace("\n", "\r\n"))
    bench.write("crlf_end.txt", text.replace("\n", "\r\n") + "\r\n")
    bench.write("lf.txt", text)
    output = bench.call("grep", pattern=pattern)
    texts = text.split("\n")
    expected = [f"{name}.txt:{n}:{texts[n - 1]}" for name in ("crlf", "crlf_end", "lf") for n in lines]
    assert matches(output.text) == expected and not output.is_error
    assert output.meta["total_lines"] == len(expected)
    bench.write("huge.txt", "x" * 500_000)
    assert "huge.txt:1:xxx" in bench.call("grep", pattern="$", path="huge.txt").text


def test_the_same_search_has_the_same_answer(bench: Bench) -> None:
    """What was not searched is named in order, not as the threads of a search came by it."""
    for number in range(60):
        bench.write(f"d{number:02}/x.log", "needle\n")
        bench.write(f"d{number:02}/.env", "needle\n")
        bench.write(f"d{number:02}/node_modules/x.js", "needle\n")
    bench.write(".gitignore", "*.log\n")
    said = {bench.call("grep", pattern="needle").text for _ in range(8)}
    assert len(said) == 1
    assert "gitignored (d00/x.log, d01/x.log, d02/x.log, d03/x.log, d04/x.log and 55 more)" in said.pop()
    assert len({bench.call("glob", pattern="*.py").text for _ in range(8)}) == 1


def test_ignore_files_that_cannot_be_read_are_no_error() -> None:
    """Where some file cannot be read, a line of an ignore file that ripgrep does not understand is not taken for the reason
    why the search failed."""
    skipped = Skipped()
    skipped.feed(
        b"rg: ./.gitignore: line 1: error parsing glob '/{{c.p}}.yml': nested alternate groups are not allowed\n"
    )
    skipped.feed(b"./.gitignore: line 2: error parsing glob '[z-a]': invalid range; 'z' > 'a'\n")
    skipped.feed(b"rg: ./z: Permission denied (os error 13)\nrg: ./a: Permission denied (os error 13)\n")
    skipped.close()
    assert not skipped.errors
    assert skipped.unreadable() == "2 could not be read, for example ./a: Permission denied (os error 13)."


def test_what_found_nothing_says_why_it_may(bench: Bench) -> None:
    """No match is not the same as an include that fits no file, or a pattern in another tool's language."""
    bench.write("src/a.py", "foo\n")
    bench.write(".github/w.yml", "foo\n")
    for include in (".py", "py", "*.PY", "src", "[z", "{a,b", "*.ts,*.js"):
        assert "No file there fits the include" in bench.call("grep", pattern="foo", include=include).text, include
    for include in ("*.py", "src/**", "src/", f"{bench.root}/src/**", "./src/*.py"):
        output = bench.call("grep", pattern="bar", include=include)
        assert "No matching lines" in output.text and "fits the include" not in output.text
        assert matches(bench.call("grep", pattern="foo", include=include).text) == ["src/a.py:1:foo"], include
    assert matches(bench.call("grep", pattern="foo", include=".github/**").text) == [".github/w.yml:1:foo"]
    assert "a|b finds either" in bench.call("grep", pattern=r"foo\|bar").text
    assert "grep -rnP" in bench.call("grep", pattern="foo(?=bar)").text
    assert "wildcards belong in" in bench.call("grep", pattern="foo", path="*.py").text
    assert (
        "No files match" in bench.call("glob", pattern="a.PY").text
        and "Case matters" in bench.call("glob", pattern="a.PY").text
    )
    assert (
        "**/sub/**" in bench.call("glob", pattern="sub").text
        and "{py,ts}" in bench.call("glob", pattern="*.a,*.b").text
    )


def test_files_in_older_encodings_are_searched(bench: Bench) -> None:
    """A pattern that no UTF-8 file has is looked for in the encodings its letters had before, which is said."""
    for codec, text in (
        ("gbk", "// 搜索 TODO 关键词"), ("big5", "// 搜尋 關鍵字"), ("cp932", "// テスト 検索"), ("euc_kr", "// 시험 검색"),
        ("latin-1", "// café"), ("utf-8", "// 中文"),
    ):  # fmt: skip
        bench.write(f"{codec}.c", (text + "\nint x;\n").encode(codec))
    for pattern, found, told in (
        ("搜索", "gbk.c:1:// 搜索 TODO 关键词", "gb18030"), ("關鍵字$", "big5.c:1:// 搜尋 關鍵字", "big5"),
        ("テスト", "cp932.c:1:// テスト 検索", "shift_jis"), ("검색", "euc_kr.c:1:// 시험 검색", "euc-kr"),
        ("café", "latin-1.c:1:// café", "windows-1252"), ("中文", "utf-8.c:1:// 中文", ""),
    ):  # fmt: skip
        output = bench.call("grep", pattern=pattern)
        assert matches(output.text) == [found]
        assert (f"read as {told}" in output.text) if told else ("read as" not in output.text)
    assert "No matching lines" in bench.call("grep", pattern="没有").text


def test_patterns_that_no_search_can_take(bench: Bench) -> None:
    """A NUL is refused as such; a very long pattern is shortened in the answer; a lone CR is shown, not swallowed."""
    bench.write("a.txt", b"one\rneedle\rthree")
    assert "pattern has a NUL character at position 1" in bench.call("grep", pattern="a\0").text
    assert "include has a NUL" in bench.call("grep", pattern="a", include="\0").text
    assert "pattern has a NUL" in bench.call("glob", pattern="\0").text
    for tool in ("grep", "glob"):
        assert len(bench.call(tool, pattern="x" * 9_000).text) < 400
        assert len(bench.call(tool, pattern="(" + "x" * 9_000).text) < 9_500
    assert matches(bench.call("grep", pattern="needle").text) == ["a.txt:1:one\ufffdneedle\ufffdthree"]


def test_unreadable_files_are_said(bench: Bench) -> None:
    """A file that cannot be read is said to be so; the rest is searched."""
    bench.write("ok.txt", "needle\n")
    bench.write("locked/secret.txt", "needle\n").parent.chmod(0)
    try:
        output = bench.call("grep", pattern="needle")
        if os.geteuid():
            assert "could not be read" in output.text
        assert "ok.txt:1:needle" in matches(output.text) and not output.is_error
    finally:
        (bench.root / "locked").chmod(0o755)


_NAMES = st.sampled_from(["a.py", "a b.py", "x:1:y", "dir/z.txt", "dir/a.py", "汉.md", "a.py2"])
_LINES = st.one_of(
    st.just("needle"), st.text(st.sampled_from("ab:\u0301汉👩\u200d"), max_size=40), st.just("n" * 70_000)
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(_NAMES, st.lists(_LINES, min_size=1, max_size=12), max_size=6), st.data(), st.booleans())
def test_any_chunks_give_the_same(files: dict[str, list[str]], data: st.DataObject, filtered: bool) -> None:
    """However ripgrep's output is cut into chunks, and whatever the files are called: the same lines, totals and original."""
    printed, lines = b"", {}
    for name, texts in files.items():
        for number, text in enumerate(texts, 1):
            printed += b"./%b\0%d" % (name.encode(), number) + FIELD + b"1" + FIELD + text.encode() + b"\n"
        lines[name.encode()] = [f"{name}:{number}:{text}\n" for number, text in enumerate(texts, 1)]
    borders = sorted(data.draw(st.lists(st.integers(0, len(printed)), max_size=8)))
    kept = KeptBlobs()
    accept = (lambda path: True) if filtered else None
    matches = Matches(Listing(3, Spool(kept, 1 << 26), as_shown), accept, Caps(grep_lines=3), False)
    for start, end in pairwise([0, *borders, len(printed)]):
        matches.feed(printed[start:end])
    matches.close()
    matches.listing.close()
    whole = "".join(line for name in sorted(lines) for line in lines[name])
    assert (matches.files, matches.listing.records) == (len(lines), sum(map(len, lines.values())))
    assert matches.listing.chars == len(whole)
    handle = matches.listing.keep()
    assert handle is not None and kept.get(handle).decode() == whole
    for shown, line in zip(matches.listing.first(), whole.splitlines(), strict=False):
        assert shown.decode() == line or (len(line) > 400 and len(shown) < 600 and b" bytes]" in shown)
    assert len(matches.listing.first()) == min(3, matches.listing.records)


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("**", ["a", "a/b"], []),
        ("*.py", ["a.py", "x/a.py"], ["a.pyc", "a.py/b"]),
        ("./*.py", ["a.py"], []),
        ("src/*", ["src/a"], ["src/a/b", "src"]),
        ("**/test_*.py", ["test_a.py", "x/y/test_b.py"], ["x/atest_.py"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]),
        ("{a,b/c}.txt", ["a.txt", "b/c.txt"], ["c.txt"]),
        ("[!a]?.md", ["bc.md"], ["ac.md", "b.md"]),
        ("a[b", ["a[b"], []),
        (r"\*.py", ["*.py"], ["a.py"]),
        ("a.b", ["a.b"], ["axb"]),
        ("{a", ["{a"], []),
        ("汉*", ["汉字"], ["字"]),
        ("app/[id]/*", ["app/[id]/page.tsx", "app/i/page.tsx"], ["app/id/page.tsx", "app/x/page.tsx"]),
        ("app/[[...slug]]/*", ["app/[[...slug]]/page.tsx"], ["app/slug/page.tsx"]),
        ("app/[[...sign-in]]/*.js", ["app/[[...sign-in]]/a.js"], []),
        ("[z-a]", ["[z-a]"], ["z"]),
        ("[!a]x", ["bx", "[!a]x"], ["ax"]),
        ("app/(auth)/*", ["app/(auth)/x"], ["app/auth/x"]),
        ("{br}/*", ["{br}/x"], ["br/x"]),
        ("a{b,{c}}d", ["abd", "a{c}d"], ["acd"]),
        ("{a,{b,c}}.x", ["a.x", "b.x", "c.x"], ["{b,c}.x"]),
        ("a{,b}.x", ["a.x", "ab.x"], []),
        (r"a\{b,c}", ["a{b,c}"], ["ab"]),
    ],
)
def test_globs(glob: str, yes: list[str], no: list[str]) -> None:
    """Globs mean what people expect: stars stay in a folder, double stars cross them, names match at any depth."""
    test = compile_glob(glob)
    assert all(test.fullmatch(name.encode()) for name in yes)
    assert not any(test.fullmatch(name.encode()) for name in no)
    assert compile_include("*.a !b.a")(b"x/c.a") and not compile_include("*.a !b.a")(b"x/b.a")
