"""How much an older message matters to a question: BM25 over words and CJK bigrams, names of files and symbols doubled.

Deterministic and without a model. An embedding model can take its place through `Settings.relevance`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from brim.context.memo import ByText
from brim.conversation import Message

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
    return ByText(_counts)


def _counts(text: str) -> Counts:
    counts = dict(Counter(terms_of(text)))
    return counts, sum(counts.values())


def score(question: str, messages: Sequence[Message], terms: Terms) -> list[float]:
    """One score for each message, 0 where it shares nothing with the question. Of a long question the names of files and
    symbols and its first words count, `_MOST_TERMS` in all."""
    asked = sorted(dict.fromkeys(terms_of(question)), key=lambda term: not _is_name(term))[:_MOST_TERMS]
    if not asked or not messages:
        return [0.0] * len(messages)
    counts = [terms(_text(message)) for message in messages]
    mean = sum(length for _, length in counts) / len(counts) or 1.0
    scores = [0.0] * len(messages)
    for term in asked:
        holders = [index for index, (count, _) in enumerate(counts) if term in count]
        if not holders:
            continue
        rarity = math.log(1 + (len(messages) - len(holders) + 0.5) / (len(holders) + 0.5))
        weight = rarity * (2.0 if _is_name(term) else 1.0)
        for index in holders:
            count, length = counts[index]
            often = count[term]
            scores[index] += weight * often * (_K + 1) / (often + _K * (1 - _B + _B * length / mean))
    return scores


def _is_name(term: str) -> bool:
    return any(mark in term for mark in "._/-") or any(c.isdigit() for c in term)


def _text(message: Message) -> str:
    calls = message.calls
    return message.text + "".join(f"\n{call.name} {call.arguments}" for call in calls) if calls else message.text
