"""Which chunks answer a question: BM25 over its words, and what it names literally.

A file is worth what its words cover of the question, wherever in it they stand, and what its best chunk holds together;
then what the question names: its path, its module, something it defines. Tests, documentation, examples and copies of
others' code are where questions come from, not where they lead: they count less, unless asked for. One snippet a file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

import msgspec

from brim.retrieval.index import Index
from brim.retrieval.query import SHORT, Query
from brim.retrieval.words import terms_of


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of the ranking, chosen on questions apart from those it is judged on (bench/retrieval.py)."""

    coverage: float = 0.6
    """Of a file's words: the share that its terms count wherever they stand; the rest is its best chunk."""
    path_words: float = 0.4
    named_path: float = 0.8
    frame: float = 0.6
    module: float = 0.3
    defines: float = 0.2
    tests: float = 0.45
    docs: float = 0.5
    examples: float = 0.5
    vendored: float = 0.4
    init: float = 0.85
    notes: float = 0.3
    most_terms: int = 40
    common: float = 0.2


WEIGHTS = Weights()

_TESTS = re.compile(
    r"(?i)(^|/)(tests?|testing|spec|specs|__tests__|testcases|fixtures)/|(^|/)(test_[^/]*|[^/]*_tests?|[^/]*\.(test|spec)|conftest)\.\w+$"
)
_DOCS = re.compile(r"(?i)(^|/)(docs?|documentation|man|locale|i18n)/|\.(md|rst|txt|adoc|html?)$")
_EXAMPLES = re.compile(
    r"(?i)(^|/)(examples?|demos?|tutorials?|samples?|galleries|gallery|benchmarks?|asv_bench)/"
    r"|^(bench|tools?|scripts?|maint_tools|ci|contrib|doc_?gen)/"
)
_VENDORED = re.compile(
    r"(?i)(^|/)(vendor(ed)?|third[-_]?party|externals?|extern|cextern|_vendor|packages|contrib/libs)/|(^|/)(jquery|underscore|bootstrap)[^/]*\.(js|css)$"
)
_NOTES = re.compile(
    r"(?i)(^|/)(change(s|log)|history|news|release[-_ ]?notes?|releases|whats_?new"
    r"|authors|contributors|licen[sc]e|copying|todo)[^/]*($|/)"
)
_ASKS = {
    "tests": re.compile(r"(?i)\b(unit[- ]?tests?|tests?|testing|pytest|fixtures?|spec)\b|测试|单测|用例"),
    "docs": re.compile(r"(?i)\b(docs?|documentation|docstrings?|readme|tutorial|manual|guide)\b|文档|说明|手册|教程"),
    "examples": re.compile(r"(?i)\b(examples?|demos?|tutorials?|samples?|benchmarks?|scripts?)\b|示例|例子|样例|脚本"),
    "notes": re.compile(
        r"(?i)\b(changelog|release notes?|licen[sc]e|history|changes in|authors?|version \d)\b|更新日志|许可|作者"
    ),
}
_LEAST_CHUNKS = 200
"""Rarity in a small workspace is judged as if it had this many chunks."""
_FEW = 50


class Ranked(msgspec.Struct, frozen=True):
    """A file of the answer: its best chunk, its score (1 is the best words alone could reach), and what spoke for it."""

    file: int
    chunk: int
    score: float
    why: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    """The question's words that it holds."""
    evidence: float = 0.0
    """How rare those are, summed: a word of one chunk in a hundred is worth about 5."""


def rank(index: Index, query: Query, weights: Weights = WEIGHTS) -> list[Ranked]:
    """Files by how well they answer, best first; only those that share something with the question."""
    owner = index.files_of_chunks()
    asked = _chosen(index, query, weights)
    if not asked and not query.paths and not query.frames:
        return []
    chunk_scores: dict[int, float] = {}
    best_of_term: dict[int, float] = {}
    coverage: dict[int, float] = {}
    evidence: dict[int, float] = {}
    held: dict[int, list[str]] = {}
    for term, weight, rarity in asked:
        best_of_term.clear()
        for chunk, score in index.score(term):
            value = weight * score
            chunk_scores[chunk] = chunk_scores.get(chunk, 0.0) + value
            file = owner[chunk]
            if value > best_of_term.get(file, 0.0):
                best_of_term[file] = value
        for file, value in best_of_term.items():
            coverage[file] = coverage.get(file, 0.0) + value
            evidence[file] = evidence.get(file, 0.0) + rarity
            held.setdefault(file, []).append(term)
    best: dict[int, tuple[float, int]] = {}
    for chunk, value in chunk_scores.items():
        file = owner[chunk]
        if value > best.get(file, (0.0, 0))[0]:
            best[file] = (value, chunk)
    most_covered = max(coverage.values(), default=0.0) or 1.0
    most_dense = max((value for value, _ in best.values()), default=0.0) or 1.0
    scores = {
        file: weights.coverage * value / most_covered + (1 - weights.coverage) * best[file][0] / most_dense
        for file, value in coverage.items()
    }
    why: dict[int, set[str]] = {}
    favoured: dict[int, int] = {}
    _add_path_words(index, query, scores, weights)
    _add_named(index, query, scores, why, favoured, weights)
    _add_defined(index, query, owner, chunk_scores, scores, why, favoured, weights)
    ranked = []
    for file, score in scores.items():
        path = index.files[file].path
        named = "path" in why.get(file, ())
        value = score * (1.0 if named else _prior(path, query, weights))
        at = favoured.get(file) or (best[file][1] if file in best else None) or index.chunk_at(file, 0)
        if at is not None:
            spoke, terms = tuple(sorted(why.get(file, ()))), tuple(held.get(file, ()))
            ranked.append(Ranked(file, at, value, spoke, terms, evidence.get(file, 0.0)))
    ranked.sort(key=lambda each: (-each.score, index.files[each.file].path))
    return ranked


def _chosen(index: Index, query: Query, weights: Weights) -> list[tuple[str, float, float]]:
    """(term, weight, rarity) of the terms that count most; those that stand everywhere are left out."""
    total = max(_LEAST_CHUNKS, index.chunks)
    found = []
    for term, weight in query.terms.items():
        held = index.holders(term)
        if held and (held <= weights.common * total or held < _FEW):
            rarity = math.log(1 + total / held)
            found.append((weight * rarity, term, weight, rarity))
    found.sort(reverse=True)
    return [(term, weight, rarity) for _, term, weight, rarity in found[: weights.most_terms]]


def _add_path_words(index: Index, query: Query, scores: dict[int, float], weights: Weights) -> None:
    """Words of the question in a file's path, by how rare they are among paths."""
    holders: dict[str, list[int]] = {}
    for file, entry in index.files.items():
        for term in set(terms_of(entry.path)):
            if term in query.terms:
                holders.setdefault(term, []).append(file)
    total = max(2, len(index.files))
    sums: dict[int, float] = {}
    for term, files in holders.items():
        value = query.terms[term] ** 0.5 * math.log(total / len(files)) / math.log(total)
        for file in files:
            sums[file] = sums.get(file, 0.0) + value
    most = max(sums.values(), default=0.0)
    for file, value in sums.items():
        scores[file] = scores.get(file, 0.0) + weights.path_words * value / max(most, 1.0)


def _add_named(
    index: Index,
    query: Query,
    scores: dict[int, float],
    why: dict[int, set[str]],
    favoured: dict[int, int],
    weights: Weights,
) -> None:
    """Files that the question names: by path, by module, by a line of a traceback."""
    by_tail: dict[str, list[int]] = {}
    for file, entry in index.files.items():
        by_tail.setdefault(entry.path.rpartition("/")[2], []).append(file)
        stem = _module_parts(entry.path)
        if stem:
            by_tail.setdefault("." + stem[-1], []).append(file)

    def add(file: int, value: float, kind: str, line: int | None = None) -> None:
        scores[file] = scores.get(file, 0.0) + value
        why.setdefault(file, set()).add(kind)
        if line is not None and (chunk := index.chunk_at(file, line - 1)) is not None:
            favoured[file] = chunk

    for path in query.paths:
        found = _by_path(path, by_tail, index)
        for file in found[:5]:
            add(file, weights.named_path / len(found), "path")
    for place, (path, line, _) in enumerate(query.frames):
        inner = (place + 1) / len(query.frames)
        for file in _by_path(path, by_tail, index)[:1]:
            add(file, weights.frame * inner / len(query.frames) ** 0.5, "traceback", line)
    for name, weight in query.names.items():
        if "." not in name:
            continue
        parts = name.split(".")
        for size in range(len(parts), 1, -1):
            module = parts[:size]
            found = [
                file
                for file in by_tail.get("." + module[-1], ())
                if _module_parts(index.files[file].path)[-len(module) :] == module
            ]
            if found:
                for file in found[:3]:
                    add(file, weights.module * min(weight, 1.0) / len(found), "module")
                break


def _by_path(path: str, by_tail: Mapping[str, list[int]], index: Index) -> list[int]:
    """The files a written path may mean: those that share the most of its end; a bare name means all of that name."""
    parts = path.replace("\\", "/").strip("/").split("/")
    best: list[int] = []
    most = 0
    for file in by_tail.get(parts[-1], ()):
        own = index.files[file].path.split("/")
        same = 0
        while same < min(len(own), len(parts)) and own[-1 - same] == parts[-1 - same]:
            same += 1
        if same > most:
            best, most = [file], same
        elif same == most:
            best.append(file)
    return best if most >= min(2, len(parts)) else []


def _module_parts(path: str) -> list[str]:
    stem, dot, suffix = path.rpartition(".")
    if suffix not in ("py", "pyx", "pyi", "java", "kt", "scala") or not dot:
        return []
    parts = stem.split("/")
    return parts[:-1] if parts[-1] == "__init__" else parts


def _add_defined(
    index: Index,
    query: Query,
    owner: Mapping[int, int],
    chunk_scores: Mapping[int, float],
    scores: dict[int, float],
    why: dict[int, set[str]],
    favoured: dict[int, int],
    weights: Weights,
) -> None:
    """Files that define what the question names: the fewer define it, the more it says."""
    gained: dict[int, float] = {}
    chosen: dict[int, tuple[float, int]] = {}
    for name, weight in query.names.items():
        parts = name.strip("_").split(".")
        found = [
            (chunk, qualified)
            for chunk, qualified in index.definitions(name.split(".")[-1])
            if not _TESTS.search(index.files[owner[chunk]].path)
        ]
        if len(parts) > 1:
            holders = [each for each in found if each[1].split(".")[-2:-1] == parts[-2:-1]]
            found = holders or (found if len(found) <= 2 else [])
        exact = [each for each in found if each[1].rpartition(".")[2] == name.split(".")[-1]]
        found = exact or found
        files = {owner[chunk] for chunk, _ in found}
        if not files or len(files) > 8:
            continue
        value = weights.defines * min(weight, 2.0) / len(files)
        for file in files:
            gained[file] = gained.get(file, 0.0) + value
            why.setdefault(file, set()).add(f"defines {name}")
        for chunk, _ in found:
            file = owner[chunk]
            strength = value + chunk_scores.get(chunk, 0.0) * 1e-3
            if strength > chosen.get(file, (0.0, 0))[0]:
                chosen[file] = (strength, chunk)
    for file, value in gained.items():
        # each further name says less
        scores[file] = scores.get(file, 0.0) + weights.defines * 2 * (1 - math.exp(-value / (weights.defines * 2)))
    for file, (_, chunk) in chosen.items():
        favoured.setdefault(file, chunk)


def _prior(path: str, query: Query, weights: Weights) -> float:
    value = 1.0
    kinds: Iterable[tuple[str, re.Pattern[str], float]] = (
        ("tests", _TESTS, weights.tests),
        ("docs", _DOCS, weights.docs),
        ("examples", _EXAMPLES, weights.examples),
        ("notes", _NOTES, weights.notes),
    )
    short = len(query.text) <= SHORT
    for kind, pattern, weight in kinds:
        if pattern.search(path) and not (short and _ASKS[kind].search(query.text)):
            value *= weight
    if _VENDORED.search(path):
        value *= weights.vendored
    if path.endswith("__init__.py"):
        value *= weights.init
    return value


def is_code(path: str) -> bool:
    """Whether a file is neither test, documentation, example nor release note."""
    return not any(pattern.search(path) for pattern in (_TESTS, _DOCS, _EXAMPLES, _NOTES))
