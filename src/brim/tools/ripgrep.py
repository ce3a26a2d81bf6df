"""ripgrep as a child process: where it is, how it is asked, and what it says that it left out."""

from __future__ import annotations

import re
import sys
import sysconfig
from bisect import insort
from pathlib import Path

from brim.errors import ToolError

# Folders that hold what is fetched, built, cached or recorded by tools: many matches, none of them the user's own text.
NOISE = (
    "node_modules", "bower_components", "jspm_packages", ".git", ".hg", ".svn", "dist", "build", "out", "target", "vendor",
    "__pycache__", ".venv", "venv", "site-packages", ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache",
    ".cache", ".next", ".nuxt", ".gradle", ".terraform", ".idea", "coverage", "htmlcov", ".eggs", "Pods", "DerivedData",
)  # fmt: skip

_IGNORING = re.compile(rb"ignoring (.*): Ignore\(IgnoreMatch\((Hidden|Override|\w+)")
# A line of an ignore file that ripgrep cannot read says nothing of the search.
_RULE = re.compile(rb".*: line \d+: error parsing glob")
_LOGGED = re.compile(rb"^rg: (?:DEBUG|TRACE|INFO)\|")
_NAMES = 5
# With several threads ripgrep holds all matches of a file until it has searched it; with one it prints them at once.
ONE_BY_ONE = ("--threads=1", "--sort=path")


def find_ripgrep() -> str:
    """The binary of the `ripgrep` package in this environment, else `rg` on PATH. Raises ToolError where there is neither."""
    name = "rg.exe" if sys.platform == "win32" else "rg"
    for folder in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
        beside = Path(folder) / name
        if beside.is_file():
            return str(beside)
    import shutil  # brings four compression libraries along

    found = shutil.which("rg")
    if found is None:
        raise ToolError(
            "ripgrep (rg) was not found, neither in this Python environment nor on PATH",
            hint="pip install ripgrep, or install rg with the system's package manager",
        )
    return found


def walk_options(workspace: Path, *, no_ignore: bool, hidden: bool = False) -> list[str]:
    """What to walk. Noise folders are left out by name, but for those that are asked for as a start; `hidden` is for
    patterns that name hidden files, which then are not left out."""
    options = ["--no-config", "--color=never", "--debug", *["--hidden"] * hidden]
    if no_ignore:
        return [*options, "--no-ignore", "--hidden"]
    if not any((folder / ".git").exists() for folder in (workspace, *workspace.parents)):
        # Outside a repository a .gitignore still says what its owner thinks of the files below; one above is a stranger's.
        options += ["--no-require-git", "--no-ignore-parent"]
    return options + [f"--glob=!**/{name}/" for name in NOISE]


class Skipped:
    """Reads ripgrep's stderr as it streams: what was left out of the walk, and what went wrong."""

    def __init__(self) -> None:
        self.noise: list[str] = []
        self.ignored: list[str] = []
        self.hidden: list[str] = []
        self.counts = {"noise": 0, "ignored": 0, "hidden": 0}
        self.errors: list[str] = []
        """What ripgrep said of the search as such; what it could not read is counted apart."""
        self._unreadable: list[str] = []
        self.unreadable_count = 0
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-8192:]
        for line in lines:
            self._take(line)

    def close(self) -> None:
        self._take(self._rest)
        self._rest = b""

    def _take(self, line: bytes) -> None:
        if _LOGGED.match(line):
            match = _IGNORING.search(line)
            if match is None:
                return
            path = match[1].removeprefix(b"./").decode("utf-8", "replace")
            why = match[2]
            if why == b"Types" or path.rsplit("/", 1)[-1] in (".git", ".hg", ".svn"):
                return
            kind = "noise" if why == b"Override" or path.rsplit("/", 1)[-1] in NOISE else "ignored"
            if why == b"Hidden" and kind != "noise":
                kind = "hidden"
            self.counts[kind] += 1
            _keep_first(getattr(self, kind), path, _NAMES)
        elif line.strip() and not _RULE.match(line):
            text = line[:300].decode("utf-8", "replace").removeprefix("rg: ")
            if "os error" in text:
                self.unreadable_count += 1
                _keep_first(self._unreadable, text, 1)
            elif len(self.errors) < 12:
                self.errors.append(text)

    def describe(self) -> str:
        """One sentence on what was not searched, "" where nothing was left out."""
        said = []
        for kind, label in (("noise", "noise folders"), ("ignored", "gitignored"), ("hidden", "hidden")):
            count, names = self.counts[kind], getattr(self, kind)
            if count:
                more = f" and {count - len(names)} more" if count > len(names) else ""
                said.append(f"{label} ({', '.join(names)}{more})")
        return f"Not searched: {'; '.join(said)}. no_ignore: true searches them." if said else ""

    def unreadable(self) -> str:
        """One sentence on files that could not be read."""
        if not self._unreadable:
            return ""
        return f"{self.unreadable_count} could not be read, for example {self._unreadable[0]}."


def _keep_first(names: list[str], name: str, most: int) -> None:
    """The first names in order, since several threads report theirs in any."""
    if len(names) < most or name < names[-1]:
        insort(names, name)
        del names[most:]
