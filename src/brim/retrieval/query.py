"""What a question asks for: its words by weight, and what it names literally: paths, modules, symbols, lines of tracebacks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from brim.retrieval.words import STOP, stem, terms_of_word, words_of

MOST_CHARS = 16_000
"""Of a longer question, this much of its beginning and end is read."""
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*\n(.*?)(?:^[ \t]*(?:```|~~~)|\Z)", re.DOTALL | re.MULTILINE)
_TICKS = re.compile(r"(?<!`)`{1,3}([^`\n]{1,200})`")
_FRAME = re.compile(r"File \"([^\"\n]+)\", line (\d+)(?:, in ([\w<>.]+))?")
_AT_LINE = re.compile(r"(?<![\w./-])((?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,4}):(\d+)\b")
_PATH = re.compile(
    r"(?<![\w.@+-])(?:[\w.@+-]+/)+[\w.@+-]*\w|(?<![\w-])[\w-]+\.(?:py[ix]?|[jt]sx?|mjs|go|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|"
    r"swift|scala|sh|md|rst|txt|toml|ya?ml|json|cfg|ini|html|css|sql)\b"
)
_DOTTED = re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_NAME = re.compile(r"\b(?:[A-Za-z]\w*_\w+|_\w+|[A-Z]?[a-z]+[A-Z]\w*|[A-Z][a-z]+\w*[A-Z]\w*|[A-Z]{2,}[a-z]\w+)\b")
_CALL = re.compile(r"\b([A-Za-z_]\w{2,})\(")
_OUTPUT = re.compile(r"^(?:\s*(?:>>>|\.\.\.|In \[\d+\]:|\$) ?)", re.MULTILINE)
_keywords = """import print def class return self none true false elif else except finally lambda yield assert raise pass global
    while async await int str float bool list dict tuple set len range type object open isinstance super args kwargs
    function var let const new this null undefined void public private static np pd plt foo bar baz traceback most recent
    call last file line version http https www com github org issue bug pull request python"""
_KEYWORDS = frozenset({*_keywords.split(), *map(stem, _keywords.split())})
"""Words of code and of reports that stand in every other file."""

_small_talk = """
    add change check commit continue create delete do explain faster better find first fix help implement improve last look
    name new next open read refactor remove rename run show start stop tell try undo update work write thing way time right
    wrong now please translate mean give want
    继续 运行 修改 添加 增加 删除 修复 解释 检查 看看 写一 讲个 今天 实现 代码
"""
SMALL_TALK = frozenset(map(stem, _small_talk.split()))
"""Words that say what to do rather than what it is about: alone they bring no snippet."""

PLACES = {"title": 2.0, "prose": 1.0, "ticked": 2.0, "code": 0.5}
"""How much a word weighs by where it stands in the question."""
_MOST_COUNT = 3
SHORT = 400
"""A question of more characters is a report: what it mentions on the way (tests, examples, common words) is not what it
asks for."""
_PLAIN_WORD = 0.5
"""How much a plain word of a short question counts as a name ("what does main do?")."""


class Query(msgspec.Struct, frozen=True):
    """`terms`: weights of words; `names`: weights of identifiers and dotted names, as they were written; `paths`: files and
    folders it names; `frames`: (path, line from 1, function) of tracebacks, the innermost last."""

    terms: dict[str, float]
    names: dict[str, float]
    paths: tuple[str, ...]
    frames: tuple[tuple[str, int, str], ...]
    text: str

    def __bool__(self) -> bool:
        return bool(self.terms)


def parse_question(text: str) -> Query:
    """Reads a question of any length, in English, Chinese or both."""
    if len(text) > MOST_CHARS:
        text = text[: MOST_CHARS // 2] + "\n" + text[-MOST_CHARS // 2 :]
    frames = [(path, int(line), name or "") for path, line, name in _FRAME.findall(text)]
    frames += [(path, int(line), "") for path, line in _AT_LINE.findall(text)]
    weights: dict[str, float] = {}
    names: dict[str, float] = {}
    for piece, kind in _pieces(text):
        weight = PLACES[kind]
        counts: dict[str, int] = {}
        for word in words_of(piece):
            for term in terms_of_word(word):
                if term not in _KEYWORDS and len(term) > 1:
                    counts[term] = counts.get(term, 0) + 1
        for term, count in counts.items():
            weights[term] = weights.get(term, 0.0) + weight * min(count, _MOST_COUNT) ** 0.5
        for pattern in (_DOTTED, _NAME, _CALL, _TICKED_NAME) if kind == "ticked" else (_DOTTED, _NAME, _CALL):
            for match in pattern.finditer(piece):
                name = match[match.lastindex or 0]
                if name.lower() not in _KEYWORDS:
                    names[name] = max(names.get(name, 0.0), weight)
    if len(text) <= SHORT:
        for word in _TICKED_NAME.findall(text):
            if (
                len(word) > 3
                and word.lower() not in STOP
                and not {word.lower(), stem(word.lower())} & (_KEYWORDS | SMALL_TALK)
            ):
                names.setdefault(word, _PLAIN_WORD)
    paths = tuple(dict.fromkeys(match[0].strip(".") for match in _PATH.finditer(text)))
    return Query(weights, names, paths, tuple(frames), text)


_TICKED_NAME = re.compile(r"\b[A-Za-z_]\w{2,}\b")


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """The question taken apart: (text, which of `PLACES` it is)."""
    code = " ".join(match[1] for match in _FENCE.finditer(text))
    prose = _FENCE.sub("\n", text)
    indented = [line for line in prose.split("\n") if line.startswith(("    ", "\t", ">>>", "...", "In [", "$ "))]
    plain = [line for line in prose.split("\n") if not line.startswith(("    ", "\t", ">>>", "...", "In [", "$ "))]
    rest = "\n".join(plain)
    yield " ".join([code, *indented]), "code"
    yield " ".join(_TICKS.findall(rest)), "ticked"
    title = next((line for line in plain if line.strip()), "")
    yield title, "title"
    yield rest, "prose"


__all__ = ["STOP", "Query", "parse_question"]
