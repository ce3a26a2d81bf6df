"""How much an older message matters to a question: BM25 over words and CJK bigrams, names of files and symbols doubled.

Deterministic and without a model. An embedding model can take its place through `Settings.relevance`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from brim.context.memo import ByText

_WORD = re.compile(r"[A-Za-z_][\w./-]*\w|\d{2,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_SPLIT = re.compile(r"[./_-]+|(?<=[a-z0-9])(?=[A-Z])")
_STOP = frozenset(
    [
        "the",
        "a",
        "an",
        "and",
        "or",
        "of",
        "to",
        "in",
        "on",
        "for",
        "with",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "what",
        "which",
        "who",
        "how",
        "why",
        "when",
        "where",
        "do",
        "does",
        "did",
        "done",
        "can",
        "could",
        "will",
        "would",
        "should",
        "may",
        "might",
        "must",
        "have",
        "has",
        "had",
        "i",
        "you",
        "he",
        "she",
        "we",
        "they",
        "me",
        "my",
        "your",
        "our",
        "their",
        "as",
        "at",
        "by",
        "from",
        "if",
        "so",
        "not",
        "no",
        "yes",
        "please",
        "then",
        "than",
        "there",
        "here",
        "just",
        "about",
        "into",
        "over",
        "out",
        "up",
        "now",
        "also",
        "let",
        "us",
    ]
)
_K, _B = 1.2, 0.75  # the usual BM25 constants (Robertson and Zaragoza, 2009)
_MOST_TERMS = 20
_READ_CHARS = 20_000
"""Of a longer text, both halves of this much are read: what a message is about stands at its ends."""


def terms_of(text: str) -> list[str]:
    """Lower-case words, the pieces of identifiers and paths, and bigrams of CJK runs; stop words left out."""
    if len(text) > _READ_CHARS:
        text = text[: _READ_CHARS // 2] + "\n" + text[-_READ_CHARS // 2 :]
    terms: list[str] = []
    for word in _WORD.findall(text):
        if word[0] >= "\u3040":
            terms.extend([word[i : i + 2] for i in range(len(word) - 1)] or [word])
            continue
        lower = word.lower()
        if lower in _STOP:
            continue
        terms.append(lower)
        pieces = _SPLIT.split(word)
        if len(pieces) > 1:
            terms.extend(piece.lower() for piece in pieces if len(piece) > 2 and piece.lower() not in _STOP)
    return terms


Counts = tuple[dict[str, int], int]
"""How often each term stands in a text, and how many terms it has."""
Terms = ByText[Counts]


def make_terms() -> Terms:
    """A cache of term counts; one for a process is enough."""
    return ByText(counts_of)


def counts_of(text: str) -> Counts:
    """A text as `score` takes it."""
    counts = dict(Counter(terms_of(text)))
    return counts, sum(counts.values())


class Index:
    """Texts by their terms: scoring a question costs what holds its terms, not what was indexed."""

    def __init__(self, counts: Sequence[Counts]) -> None:
        self._size = len(counts)
        self._lengths = [length for _, length in counts]
        self._mean = sum(self._lengths) / self._size if self._size else 1.0
        self._holders: dict[str, list[tuple[int, int]]] = {}
        for place, (count, _) in enumerate(counts):
            for term, often in count.items():
                self._holders.setdefault(term, []).append((place, often))

    def score(self, question: str) -> list[float]:
        """One score for each text, 0 where it shares nothing with the question. Of a long question the names of files and
        symbols and its first words count, `_MOST_TERMS` in all."""
        asked = sorted(dict.fromkeys(terms_of(question)), key=lambda term: not _is_name(term))[:_MOST_TERMS]
        scores = [0.0] * self._size
        for term in asked:
            holders = self._holders.get(term, ())
            rarity = math.log(1 + (self._size - len(holders) + 0.5) / (len(holders) + 0.5))
            weight = rarity * (2.0 if _is_name(term) else 1.0)
            for place, often in holders:
                length = _K * (1 - _B + _B * self._lengths[place] / (self._mean or 1.0))
                scores[place] += weight * often * (_K + 1) / (often + length)
        return scores


def score(question: str, counts: Sequence[Counts]) -> list[float]:
    """The scores of texts that are asked about once."""
    asked = frozenset(terms_of(question))
    return Index([({t: count[t] for t in asked if t in count}, length) for count, length in counts]).score(question)


def _is_name(term: str) -> bool:
    return any(mark in term for mark in "._/-") or any(c.isdigit() for c in term)
