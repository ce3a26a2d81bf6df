"""glob: sorted names, exact totals, and no list built that is not shown."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from .conftest import Bench
from .test_grep import matches


def test_a_hundred_thousand_files(bench: Bench) -> None:
    """'**' over 102,000 files: a bounded list with the total and advice, quickly; a narrow pattern gets exactly its files."""
    for folder in range(100):
        path = bench.root / f"d{folder:02d}"
        path.mkdir()
        for number in range(1000):
            (path / f"f{number:04d}.txt").touch()
    (bench.root / "node_modules").mkdir()
    for number in range(2000):
        (bench.root / "node_modules" / f"m{number}.js").touch()
    output = bench.call("glob", pattern="**")
    names = matches(output.text)
    assert 100 <= len(names) <= 1000
    assert names == [f"d00/f{number:04d}.txt" for number in range(len(names))]
    assert f"{len(names)} of 100000 files shown" in output.text and "Narrow the pattern" in output.text
    assert "Not listed: noise folders (node_modules)" in output.text
    narrow = bench.call("glob", pattern="**/f0001.txt")
    assert matches(narrow.text) == [f"d{folder:02d}/f0001.txt" for folder in range(100)]
    assert output.handle is not None and bench.ctx.blobs.get(output.handle).count(b"\n") == 100_000
    page = bench.call("recall", handle=output.handle, offset=len(names) + 1, limit=1)
    assert page.text.startswith(f"d00/f{len(names):04d}.txt\n")


def test_memory_is_flat(bench: Bench) -> None:
    """A walk over many names holds only those that are shown: the listing of 200,000 costs less than 60 MB."""
    code = """
        import resource, tempfile, sys
        from brim.tools.glob import Names
        from brim.tools.globs import compile_glob
        from brim.tools.listing import Listing
        from brim.tools.spool import Spool
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        names = Names(compile_glob("**"), ".", Listing(2000, Spool(None, 1)))
        for folder in range(2000):
            names.feed(b"".join(b"./some/folder/%04d/file%04d.txt\\0" % (folder, n) for n in range(100)))
        assert names.listing.records == 200_000 and len(names.listing.first()) == 2000
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    grown = int(subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, check=True).stdout)
    assert grown * (1 if sys.platform == "darwin" else 1024) < 60 * 1024 * 1024


def test_where_a_pattern_starts(bench: Bench) -> None:
    """Fixed folders narrow the walk, whole paths inside the workspace work, others are refused, none is no error."""
    for name in ("src/a.py", "src/x/b.py", "c.py", "dist/d.py", ".github/w.yml"):
        bench.write(name, "x")
    assert matches(bench.call("glob", pattern="src/**/*.py").text) == ["src/a.py", "src/x/b.py"]
    assert matches(bench.call("glob", pattern=f"{bench.root}/src/*.py").text) == ["src/a.py"]
    assert matches(bench.call("glob", pattern=f"{bench.root}/*.py").text) == ["c.py"]
    assert matches(bench.call("glob", pattern="*.py", path="src").text) == ["src/a.py", "src/x/b.py"]
    assert matches(bench.call("glob", pattern="dist/*").text) == ["dist/d.py"]
    assert matches(bench.call("glob", pattern="**/*.yml", noIgnore=True).text) == [".github/w.yml"]
    for folder in ("src", "src/", "./src", "src/**"):
        assert matches(bench.call("glob", pattern=folder).text) == ["src/a.py", "src/x/b.py"]
    for pattern in ("/etc/*", "../*", "src/../../*", "~/*", "~/.ssh/**"):
        assert "outside the workspace" in bench.call("glob", pattern=pattern).text
    none = bench.call("glob", pattern="nowhere/*.py")
    assert not none.is_error and "No files match 'nowhere/*.py'" in none.text
    assert "There is no folder nowhere." in none.text
    assert "hidden (.github)" in bench.call("glob", pattern="*.yml").text
    assert bench.call("glob", pattern=" ").is_error


def test_what_is_asked_for_by_name_is_listed(bench: Bench) -> None:
    """A pattern that names hidden files finds them, the very path of an ignored file or of a link does too, outside none."""
    for name in (".env", ".github/w.yml", "a/.eslintrc.json", "x.log", "real.py", ".git/config", "app/[id]/page.tsx"):
        bench.write(name, "x")
    bench.write(".gitignore", "*.log\n")
    (bench.root / "link.py").symlink_to("real.py")
    (bench.root / "out.py").symlink_to("/etc/hosts")
    for pattern, found in {
        ".env*": [".env"], "**/.eslintrc*": ["a/.eslintrc.json"], ".github/*.yml": [".github/w.yml"], "x.log": ["x.log"],
        ".*": [".env", ".gitignore", "a/.eslintrc.json"], "link.py": ["link.py"], "out.py": [], "*.log": [],
        "app/[id]/page.tsx": ["app/[id]/page.tsx"], "app/[id]": ["app/[id]/page.tsx"], "{.env,x.log}": [".env"],
    }.items():  # fmt: skip
        assert matches(bench.call("glob", pattern=pattern).text) == found, pattern
    assert "no_ignore: true lists them" in bench.call("glob", pattern="*.log").text
    assert not bench.call("glob", pattern="*" * 2000).is_error
