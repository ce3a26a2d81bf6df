"""A file cut at its own borders: functions and classes of code, headings of Markdown and reStructuredText.

Borders are found by their line, in any language, rather than with a grammar for each: what a definition's first line
looks like is enough to cut by, broken files are cut as well, and nothing has to be installed for a new language. Small
neighbours are joined, long ones split at blank lines, so that a chunk is what a person would look at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

MOST_LINES = 60
MOST_CHARS = 3_000
_LONG_LINE = 400
"""A longer line begins no definition."""
JOIN_LINES = 24
"""Neighbours are joined up to this many lines."""

_PYTHON = re.compile(r"^([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_CODE = re.compile(
    r"^([ \t]*)(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|internal|static|abstract|final|sealed|async"
    r"|unsafe|override|virtual|inline|extern|const|data|open|suspend|declare|partial|@\w+)[ \t]+)*"
    r"(?:function\*?|func|fn|fun|def|class|interface|enum|struct|trait|impl(?:<[^>]*>)?|module|namespace|object|protocol"
    r"|extension|record|type|macro_rules!|cdef(?:\s+class)?|cpdef|defmodule|defp?|sub|procedure|package)[ \t]+"
    r"(?:\([^)\n]*\)[ \t]*)?(?:self\.)?([\w$]+)",
    re.MULTILINE,
)
_CALLABLE = re.compile(
    r"^([ \t]{0,8})(?!(?:if|for|while|switch|return|else|catch|do|throw|new|case|with|await|yield)\b)"
    r"(?:[A-Za-z_][\w<>\[\],:*& \t]{0,80}?[ \t*&])?([A-Za-z_$][\w$]*)[ \t]*\([^;{}\n]*\)[^;{}()=\n]{0,60}\{[ \t]*$",
    re.MULTILINE,
)
_BINDING = re.compile(r"^()(?:export[ \t]+)?(?:const|let|var)[ \t]+([\w$]+)[ \t]*=", re.MULTILINE)
_HEADING = re.compile(r"(#{1,6})\s+(.+)")
_RULE = re.compile(r"([=\-~^\"'`#*+:.])\1{2,}\s*$")

PYTHON = frozenset({"py", "pyi", "pyx", "pxd"})
MARKDOWN = frozenset({"md", "markdown", "mdx", "qmd"})
RST = frozenset({"rst", "txt"})
_code = """js jsx ts tsx mjs cjs go rs java kt kts scala swift c h cc cpp cxx hpp hh cs php rb lua pl pm ex exs erl dart m mm sh
    bash zsh vue svelte groovy jl r sql zig nim proto"""
CODE = frozenset(_code.split())


class Chunk(msgspec.Struct, frozen=True):
    """Lines `[start, end)` of a file, counted from 0. `names`: what is defined there, qualified ("Class.method"), or the
    headings it stands under; `inside`: what it continues, where its beginning is in an earlier chunk."""

    start: int
    end: int
    names: tuple[str, ...] = ()
    inside: str = ""


class _Border(msgspec.Struct):
    line: int
    name: str


def cut_into_chunks(text: str, suffix: str) -> list[Chunk]:
    """The chunks of a file, in order; together they cover it. `suffix`: of its name, lower case, without the dot."""
    lines = text.split("\n")
    if suffix in PYTHON:
        borders = list(_code_borders(lines, text, (_PYTHON,)))
    elif suffix in MARKDOWN:
        borders = list(_markdown_borders(lines))
    elif suffix in RST:
        borders = list(_rst_borders(lines))
    elif suffix in CODE:
        borders = list(_code_borders(lines, text, (_CODE, _CALLABLE, _BINDING)))
    else:
        borders = []
    parts: list[Chunk] = []
    ends = [*(border.line for border in borders[1:]), len(lines)] if borders else []
    if not borders or borders[0].line > 0:
        parts.extend(_split(lines, 0, borders[0].line if borders else len(lines), ""))
    for border, end in zip(borders, ends, strict=True):
        parts.extend(_split(lines, border.line, end, border.name))
    return _join(lines, parts)


def _code_borders(lines: Sequence[str], text: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[_Border]:
    if max(map(len, lines)) > _LONG_LINE:  # data, and slow to look at
        text = "\n".join(line if len(line) <= _LONG_LINE else "" for line in lines)
    found: dict[int, tuple[str, str]] = {}
    for pattern in patterns:
        line = at = 0
        for match in pattern.finditer(text):
            line += text.count("\n", at, match.start())
            at = match.start()
            found.setdefault(line, (match[1], match[2]))
    around: list[tuple[int, str]] = []
    last = -1
    for at in sorted(found):
        spaces, name = found[at]
        indent = len(spaces.expandtabs(4))
        while around and around[-1][0] >= indent:
            around.pop()
        if len(around) > 1 and indent > 8:
            continue  # a function inside a method belongs to it
        around.append((indent, name))
        start = at
        while start - 1 > last and _belongs_below(lines[start - 1], spaces):
            start -= 1
        last = at
        yield _Border(start, ".".join(each for _, each in around))


def _belongs_below(line: str, indent: str) -> bool:
    """Decorators, attributes and comments right above a definition are its own."""
    return line.startswith(("@", "#", "//", "/*", " *", "*"), len(indent)) and line.startswith(indent)


def _markdown_borders(lines: Sequence[str]) -> Iterator[_Border]:
    above: list[tuple[int, str]] = []
    fenced = False
    for at, line in enumerate(lines):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and (found := _HEADING.match(line)):
            level = len(found[1])
            while above and above[-1][0] >= level:
                above.pop()
            above.append((level, found[2].strip().strip("#").strip()))
            yield _Border(at, " > ".join(title for _, title in above))


def _rst_borders(lines: Sequence[str]) -> Iterator[_Border]:
    for at in range(len(lines) - 1):
        title, below = lines[at].rstrip(), lines[at + 1]
        if not title or title[0].isspace() or _RULE.match(title) or not _RULE.match(below):
            continue
        if len(below.rstrip()) >= len(title) // 2:
            yield _Border(at, title)


def _split(lines: Sequence[str], start: int, end: int, name: str) -> Iterator[Chunk]:
    """`[start, end)` in parts of at most `MOST_LINES` lines and about `MOST_CHARS`, ended at blank lines where one is near."""
    first = True
    while start < end:
        stop, chars = start, 0
        while stop < end and stop - start < MOST_LINES and (chars < MOST_CHARS or stop == start):
            chars += len(lines[stop]) + 1
            stop += 1
        if stop < end:
            blank = next((at for at in range(stop, start + (stop - start) // 2, -1) if not lines[at - 1].strip()), None)
            stop = blank or stop
        if first:
            yield Chunk(start, stop, (name,) if name else ())
        else:
            yield Chunk(start, stop, (), name)
        first = False
        start = stop


def _join(lines: Sequence[str], parts: Sequence[Chunk]) -> list[Chunk]:
    """Small neighbours as one chunk."""
    joined: list[Chunk] = []
    chars = 0
    for part in parts:
        size = sum(len(line) + 1 for line in lines[part.start : part.end])
        before = joined[-1] if joined else None
        if (
            before is not None
            and part.end - before.start <= JOIN_LINES
            and chars + size <= MOST_CHARS
            and not part.inside
        ):
            joined[-1] = Chunk(before.start, part.end, before.names + part.names, before.inside)
            chars += size
        else:
            joined.append(part)
            chars = size
    return joined
