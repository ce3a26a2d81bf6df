"""How often the right file is among five: brim's snippets beside ripgrep by keywords and bm25s on whole files.

    python bench/retrieval.py [--data FOLDER] [--cache FOLDER] [--quick] [--times]

The questions are the task statements of recorded coding runs (the first user message, between its pr_description tags),
asked of the source distribution that the project had released by then; the answer is the set of its source files that the
run's submitted diff edits: no new files, tests, set-up or build files. A hit is one of them among five.

- brim: `Retriever.search`, as `ai` calls it, at most five snippets;
- rg: every keyword of the question searched for, whatever its case; files ranked by how many they hold;
- bm25s: whole files with its own tokenizer and English stop words, Chinese as pairs of characters;
- bm25s, code only: the same without tests, documentation and examples, to see how much that alone is worth.

All of them see the same files. `releases` in retrieval.json says which distribution each run is asked against; they are
downloaded once, into a cache outside the repository. Without the transcripts, or without `pip install bm25s`, what needs
them is left out, with a word. Last come the times of the largest tree: its index from nothing, and one change.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from brim.retrieval import Retriever
from brim.retrieval.index import Index, decode
from brim.retrieval.listing import list_files
from brim.retrieval.ranking import is_code
from brim.retrieval.schema import open_database, remove_database
from brim.retrieval.words import STOP
from brim.tools.ripgrep import NOISE, find_ripgrep

HERE = Path(__file__).parent
COUNT = 5
FIRST_HALF = ("django", "sphinx", "sympy")
_KEYWORD = re.compile(r"[A-Za-z_]\w{3,}|[\u3400-\u9fff]+")
_CJK = re.compile(r"[\u3400-\u9fff]+")
_NOT_SOURCE = re.compile(r"(^|/)tests?/|(^|/)test_|(^|/)conftest\.py$|setup\.py$|setup\.cfg$|tox\.ini$|\.toml$|^build/")


class Run(NamedTuple):
    """A question with the files that answer it."""

    id: str
    tree: Path
    question: str
    files: list[str]
    group: str


Search = Callable[[Path, str], list[str]]
"""(tree, question) -> paths, best first."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = os.environ.get("BRIM_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(beside), help="recorded runs ($BRIM_DATA)")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "brim-bench" / "sources")
    parser.add_argument("--quick", action="store_true", help="brim alone")
    parser.add_argument("--times", action="store_true", help="only the times")
    options = parser.parse_args()
    told: dict[str, Any] = json.loads((HERE / "retrieval.json").read_text(encoding="utf-8"))
    runs = [*recorded(options.data, options.cache, told), *written(options.cache, told)]
    if not runs:
        sys.exit("nothing to ask: neither transcripts nor the source distributions are here")
    if options.times:
        measure(max({run.tree for run in runs}, key=size_of))
        return
    searches: dict[str, Search] = {"brim": brim_search(options.cache)}
    if not options.quick:
        texts = Texts()
        searches["rg"] = rg_search(texts)
        searches |= bm25s_search(texts)
    table: dict[str, dict[str, list[bool]]] = {}
    for run in sorted(runs, key=lambda run: run.tree):
        for name, search in searches.items():
            hit = any(path in run.files for path in search(run.tree, run.question)[:COUNT])
            table.setdefault(run.group, {}).setdefault(name, []).append(hit)
            if name == "brim" and not hit:
                print(f"  brim misses {run.id}: {', '.join(run.files)}")
    halves = [group for group in table if group.startswith("half")]
    if halves:
        table["the runs, all"] = {name: [hit for group in halves for hit in table[group][name]] for name in searches}
    order = sorted(table, key=lambda group: (not group.startswith("half"), not group.startswith("the runs"), group))
    print(f"\n{'one of the files among ' + str(COUNT):44}" + f"{'n':>4}" + "".join(f"{name:>18}" for name in searches))
    for group in order:
        columns = table[group]
        shares = "".join(f"{sum(hits) / len(hits):>18.0%}" for hits in columns.values())
        print(f"{group:44}{len(columns['brim']):>4}{shares}")
    measure(max({run.tree for run in runs}, key=size_of))


# ---- questions -----------------------------------------------------------------------------------------------------


def recorded(data: Path, cache: Path, told: dict[str, Any]) -> Iterator[Run]:
    """The recorded runs: those of one conversation each, in two halves by project, and those that were stitched together,
    which are others: on these the ranking was tried."""
    singles, stitched = data / "coding_mini_swe_gemini3.jsonl", data / "coding_stitched_long.jsonl"
    if not singles.is_file():
        print(f"no transcripts in {data}: the recorded runs are left out (--data FOLDER)")
        return
    seen: set[str] = set()
    for each in map(json.loads, singles.read_text(encoding="utf-8").splitlines()):
        project = told["releases"].get(each["id"].rpartition("/")[2], ["?"])[0]
        group = "half 1: " + ", ".join(FIRST_HALF) if project in FIRST_HALF else "half 2: seven other projects"
        seen.add(each["id"])
        yield from as_run(each["id"], each["messages"], group, cache, told)
    for each in map(json.loads, stitched.read_text(encoding="utf-8").splitlines() if stitched.is_file() else ()):
        messages = each["messages"]
        starts = [
            at
            for at, message in enumerate(messages)
            if "<pr_description>" in message["content"] and message["role"] == "user"
        ]
        for id, start, end in zip(each["parts"], starts, [*starts[1:], len(messages)], strict=True):
            if id not in seen:
                yield from as_run(id, messages[start:end], "other runs (weights were chosen here)", cache, told)


def as_run(id: str, messages: Sequence[dict[str, Any]], group: str, cache: Path, told: dict[str, Any]) -> Iterator[Run]:
    """A run as a question, or a word why it is none."""
    name = id.rpartition("/")[2]
    asked = next(message["content"] for message in messages if message["role"] == "user")
    statement = re.search(r"<pr_description>(.*?)</pr_description>", asked, re.DOTALL)
    if statement is None or name not in told["releases"]:
        print(f"left out: {name} (no statement or no release)")
        return
    tree = source_of(*told["releases"][name], cache)
    if tree is None:
        print(f"left out: {name} (no source distribution {told['releases'][name]})")
        return
    diff = [message["content"] for message in messages if message["role"] == "tool"][-1]
    edited = dict.fromkeys(re.findall(r"^diff --git a/(\S+)", diff, re.MULTILINE))
    files = [path for path in edited if not _NOT_SOURCE.search(path) and (tree / path).is_file()]
    if not files:
        print(f"left out: {name} (its diff edits no source file of the distribution)")
        return
    yield Run(name, tree, statement[1].replace("Consider the following PR description:", "").strip(), files, group)


def written(cache: Path, told: dict[str, Any]) -> Iterator[Run]:
    """Our own questions about a project that is documented in Chinese."""
    project, version = told["chinese_project"]
    tree = source_of(project, version, cache)
    if tree is None:
        print(f"left out: the questions about {project} {version} (no source distribution)")
        return
    for language, questions in told["questions"].items():
        for each in questions:
            yield Run(
                each["question"], tree, each["question"], each["files"], f"{project} (Chinese), asked in {language}"
            )


# ---- sources -------------------------------------------------------------------------------------------------------


def source_of(project: str, version: str, cache: Path) -> Path | None:
    """The unpacked source distribution; None where there is none. Nothing of it is built or run."""
    folder = cache / f"{project}-{version}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        if (archive := download(project, version, cache)) is None:
            return None
        part = cache / f".{project}-{version}.part"
        with tarfile.open(archive) as packed:
            packed.extractall(part, filter="data")
        (inner,) = part.iterdir()
        inner.rename(folder)
        part.rmdir()
        archive.unlink()
    return folder


def download(project: str, version: str, cache: Path) -> Path | None:
    """The archive, from the index that pip is set up with. (`pip download` would run the set-up code of old releases.)"""
    request = urllib.request.Request(
        f"{index_url()}/{project}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            files = json.load(answer)["files"]
        wanted = re.compile(
            rf"(?i){re.escape(project).replace(chr(92) + '-', '[-_]')}-{re.escape(version)}\.tar\.(gz|bz2)"
        )
        for each in files:
            if wanted.fullmatch(each["filename"]):
                print(f"downloading {each['filename']}")
                urllib.request.urlretrieve(each["url"], cache / each["filename"])
                return cache / str(each["filename"])
    except (OSError, ValueError) as error:
        print(f"{project} {version}: {error}")
    return None


def index_url() -> str:
    """The package index that pip uses here."""
    if named := os.environ.get("PIP_INDEX_URL"):
        return named.rstrip("/")
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    if asked.returncode == 0 and asked.stdout.strip():
        return asked.stdout.strip().rstrip("/")
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url).rstrip("/")


def size_of(tree: Path) -> int:
    return sum(entry.size for entry in list_files(tree, find_ripgrep(), NOISE).entries)


# ---- searches ------------------------------------------------------------------------------------------------------


def brim_search(cache: Path) -> Search:
    """Snippets, as the assistant asks for them."""
    open_ones: dict[Path, Retriever] = {}

    def search(tree: Path, question: str) -> list[str]:
        if tree not in open_ones:
            open_ones[tree] = Retriever(tree, cache / "indexes", ripgrep=find_ripgrep(), noise=NOISE, seconds=600)
        return [each.path for each in open_ones[tree].search(question, COUNT).snippets]

    return search


def keywords_of(question: str) -> list[str]:
    """The words somebody would search for: four letters and more, no stop words; Chinese by pairs."""
    found: dict[str, None] = {}
    for match in _KEYWORD.finditer(question):
        word = match[0].lower()
        if _CJK.match(word):
            found.update(dict.fromkeys(pairs_of(word)))
        elif word not in STOP:
            found[word] = None
    return list(found)


def pairs_of(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def rg_search(texts: Texts) -> Search:
    """Files by how many distinct keywords they hold, as `rg --files-with-matches --ignore-case --fixed-strings` finds them.
    A search for each of a hundred keywords takes minutes a question, so the texts are searched here; that this finds what
    ripgrep finds is checked with ripgrep itself for three keywords of each tree's first question."""
    checked: set[Path] = set()

    def search(tree: Path, question: str) -> list[str]:
        lower = {path: text.lower() for path, text in texts.of(tree).items()}
        words = keywords_of(question)
        if tree not in checked:
            checked.add(tree)
            for word in words[:3]:
                command = [find_ripgrep(), "--no-config", "-l", "-i", "-F", "--no-ignore", "--text", "--", word, *lower]
                found = subprocess.run(
                    command, cwd=tree, capture_output=True, text=True, check=False
                ).stdout.splitlines()
                mine = {path for path, text in lower.items() if word in text}
                assert len(mine ^ set(found)) <= 2, (tree.name, word, sorted(mine ^ set(found))[:5])
        counts = {path: sum(word in text for word in words) for path, text in lower.items()}
        return sorted((path for path in counts if counts[path]), key=lambda path: (-counts[path], path))[:COUNT]

    return search


class Texts:
    """The texts of one tree at a time."""

    def __init__(self) -> None:
        self._tree: Path | None = None
        self._texts: dict[str, str] = {}

    def of(self, tree: Path) -> dict[str, str]:
        if tree != self._tree:
            entries = list_files(tree, find_ripgrep(), NOISE).entries
            self._tree, self._texts = tree, {entry.path: decode((tree / entry.path).read_bytes()) for entry in entries}
        return self._texts


def bm25s_search(texts: Texts) -> dict[str, Search]:
    """bm25s over whole files, all of them and code alone; nothing where it is not installed."""
    try:
        import bm25s
    except ImportError:
        print("bm25s is not installed: its columns are left out (pip install bm25s)")
        return {}
    built: dict[bool, tuple[Path, list[str], Any]] = {}

    def spaced(text: str) -> str:
        return _CJK.sub(lambda match: f" {' '.join(pairs_of(match[0]))} ", text)

    def search(tree: Path, question: str, code_only: bool) -> list[str]:
        if code_only not in built or built[code_only][0] != tree:
            held = {path: text for path, text in texts.of(tree).items() if not code_only or is_code(path)}
            index = bm25s.BM25()
            tokens = bm25s.tokenize([spaced(text) for text in held.values()], stopwords="en", show_progress=False)
            index.index(tokens, show_progress=False)
            built[code_only] = (tree, list(held), index)
        _, paths, index = built[code_only]
        asked = bm25s.tokenize([spaced(question)], stopwords="en", show_progress=False)
        places, _ = index.retrieve(asked, k=min(COUNT, len(paths)), show_progress=False)
        return [paths[int(place)] for place in places[0]]

    return {
        "bm25s": lambda tree, question: search(tree, question, False),
        "bm25s, code only": lambda tree, question: search(tree, question, True),
    }


# ---- times ---------------------------------------------------------------------------------------------------------


def measure(tree: Path) -> None:
    """The index of a tree from nothing, and what one changed file costs."""
    path = tree.parent / "indexes" / "measured.db"
    remove_database(path)
    connection, _ = open_database(path)
    index = Index(connection, tree)
    began, spent = time.perf_counter(), time.process_time()
    listing = list_files(tree, find_ripgrep(), NOISE)
    index.update(listing)
    seconds, spent = time.perf_counter() - began, time.process_time() - spent
    size = sum(entry.size for entry in listing.entries)
    print(
        f"\nindex of {tree.name} ({len(listing.entries):,} files, {size / 1e6:.1f} MB, {index.chunks:,} chunks): "
        f"{seconds:.1f} s, of which {spent:.1f} s of processor time"
    )
    source = [entry for entry in listing.entries if entry.path.endswith(".py") and 5_000 < entry.size < 50_000]
    times = []
    for entry in source[:: max(1, len(source) // 9)][:9]:
        file = tree / entry.path
        before = file.stat()
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
        began = time.perf_counter()
        change = index.update(list_files(tree, find_ripgrep(), NOISE))
        times.append(time.perf_counter() - began)
        assert change.read == 1
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        index.update(list_files(tree, find_ripgrep(), NOISE))
    print(
        f"refresh after one change: median {statistics.median(times) * 1000:.0f} ms, worst {max(times) * 1000:.0f} ms"
    )
    index.close()
    remove_database(path)


if __name__ == "__main__":
    main()
