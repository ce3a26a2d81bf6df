"""A person's message as sentences: where each begins and ends, and which of its characters are not the person's own.

Both English and Chinese are split by their marks, lines and list items. Fenced code, quoted lines, log lines, stack
traces, source code and JSON inside a message are *pasted*: they are split off and never read as the user's own words.
Inside a sentence, quoted spans are known, so that an order that stands in quotes can be told from one that is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# A full stop ends a sentence only before white space: 2.17, ledger.py and 09:00 hold no sentence end.
_END = re.compile(
    r"[。！？…]+[”’」』）)\"']*"
    r"|[!?]+[”’\"')\]]*(?=\s|$|[\u4e00-\u9fff])"
    r"|\.+[”’\"')\]]*(?=\s|$)"
    r"|[～~]+(?=\s|$)"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|approx|no|nos|fig|dr|mr|mrs|ms|st|prof|inc|ltd|co|ca|cf|resp|p|pp|ed|a\.m|p\.m)|"
    r"\b[A-Z])\.$",
    re.I,
)
_BULLET = re.compile(r"\s*(?:[-*+](?=\s)|[•·‣]|\(?\d{1,2}[.)、]|[（(]?[一二三四五六七八九十]{1,2}[)）、.])\s*")

_QUOTES = re.compile(
    r"“[^”\n]{2,}”|「[^」\n]{2,}」|『[^』\n]{2,}』|‘[^’\n]{2,}’"
    r"|\"[^\"\n]{2,600}\"|(?<!\w)'(?=\S)[^'\n]{0,300}(?:(?<=\w)'(?=\w)[^'\n]{0,300}){0,6}(?<=\S)'(?!\w)|"
    r"`[^`\n]{1,300}`"
)

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.S)
_PASTED_TAG = re.compile(
    r"<(document|file|pr_description|issue|log|email|source|context|attachment|paste|\w*example|output|code)"
    r"\b[^>\n]{0,200}>"
)
_PASTED_LINE = re.compile(
    r"\s*>"  # quoted mail
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d"  # logs
    r"|\[(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\s*\]"
    r"|(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\b[ :]"
    r"|[\w./\\-]+\.\w{1,5}:\d+[:\s]"  # grep
    r"|Traceback \(most recent|\s+File \"[^\"]+\", line \d+|\s+at [\w.$<>]+\("
    r"|(?:diff --git|index [0-9a-f]{7}|@@ -\d|\+\+\+ |--- [ab]/)"
    r"|\s*(?:def|class|import|from|return|const|let|var|function|public|private|package|#include|using|if|for|"
    r"while)\b.*[({;:]\s*$"
    r"|\s*[\w\]).]+\s*=\s*[\w\[({\"'].*[;,)\]}]?\s*$(?<![.!?])"
    r"|\s*[\[{\]}][^\u4e00-\u9fff]*$|\s*\"[\w-]+\"\s*:"
    r"|\s*(?:#|//|/\*|\*/)\s?\S"
    r"|\$ \S|(?:From|To|Subject|Cc|Date|Sent): "
)
LONG_MESSAGE_CHARS = 200_000
"""Of a longer message only its first and last half of this are read for sentences."""


class Sentence(NamedTuple):
    """A sentence of one message: half-open character span, and whether it is pasted rather than said."""

    start: int
    end: int
    pasted: bool


def split_sentences(text: str) -> list[Sentence]:
    """The sentences of `text` in order; white space and list markers at their edges belong to none."""
    if len(text) > LONG_MESSAGE_CHARS:
        half = LONG_MESSAGE_CHARS // 2
        tail = len(text) - half
        return split_sentences(text[:half]) + [
            Sentence(s.start + tail, s.end + tail, s.pasted) for s in split_sentences(text[tail:])
        ]
    blocks = sorted((*_spans(_FENCE, text), *_tagged(text)))
    found: list[Sentence] = []
    at = 0
    for start, end in blocks:
        if start < at:
            continue
        found.extend(_said(text, at, start))
        found.append(Sentence(start, end, True))
        at = end
    found.extend(_said(text, at, len(text)))
    return found


def quoted_spans(text: str) -> list[tuple[int, int]]:
    """Half-open spans of quoted text and inline code in `text`, quotation marks included."""
    return _spans(_QUOTES, text)


def without_quotes(text: str) -> str:
    """`text` with every quoted span replaced by a placeholder that no rule matches."""
    return _QUOTES.sub("◦", text)


def _spans(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    return [match.span() for match in pattern.finditer(text)]


def _tagged(text: str) -> list[tuple[int, int]]:
    """Spans of pasted documents between an opening tag and its closing one."""
    found: list[tuple[int, int]] = []
    unclosed: set[str] = set()
    for match in _PASTED_TAG.finditer(text):
        closing = f"</{match[1]}>"
        if closing in unclosed or (found and match.start() < found[-1][1]):
            continue
        end = text.find(closing, match.end())
        if end < 0:
            unclosed.add(closing)  # searched once: many openings without an end stay linear
        else:
            found.append((match.start(), end + len(closing)))
    return found


def _said(text: str, start: int, end: int) -> Iterator[Sentence]:
    """Sentences between two pasted blocks, line by line."""
    for line_start, line_end in _lines(text, start, end):
        line = text[line_start:line_end]
        if _PASTED_LINE.match(line):
            if line.strip():
                yield Sentence(line_start, line_end, True)
            continue
        if bullet := _BULLET.match(line):
            line_start += bullet.end()
        yield from _line_sentences(text, line_start, line_end)


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        if stop > start:
            yield start, stop
        start = stop + 1


def _line_sentences(text: str, start: int, end: int) -> Iterator[Sentence]:
    at = start
    for match in _END.finditer(text, start, end):
        if match.group().startswith(".") and _ABBREVIATION.search(text[max(at, match.start() - 8) : match.start() + 1]):
            continue
        # A mark inside a quotation that goes on ends the quotation's sentence, not ours.
        if _inside_quote(text[at : match.end()]):
            continue
        yield from _trimmed(text, at, match.end())
        at = match.end()
    yield from _trimmed(text, at, end)


def _inside_quote(piece: str) -> bool:
    if len(piece) > 600:
        return False
    return (
        piece.count("“") > piece.count("”")
        or piece.count("「") > piece.count("」")
        or piece.count("『") > piece.count("』")
        or (piece.count('"') % 2 == 1)
    )


def _trimmed(text: str, start: int, end: int) -> Iterator[Sentence]:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    right = len(piece.rstrip())
    if right > left:
        yield Sentence(start + left, start + right, False)
