"""Families of phrasings, and sentences prepared so that many families can be tried on each at little cost.

A family is found by a single word, by an English phrase, or by a Chinese one. The words of a sentence are a set, so a
family costs one set test unless one of the words that open its phrases is there; Chinese patterns are tried only on
sentences with Han characters. A history of millions of tokens is judged sentence by sentence this way.
"""

from __future__ import annotations

import re
from functools import cached_property

from brim.context.sentences import without_quotes

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_HAN = re.compile(r"[\u4e00-\u9fff]")


_NO_APOSTROPHE = re.compile(r"\b(do|ca|wo|must|should|is|are|does|did|have|has|was|were)nt\b")


def _lower(text: str) -> str:
    """Lower case with straight apostrophes, put back where a hasty writer left them out."""
    lower = text.lower().replace("’", "'")
    return _NO_APOSTROPHE.sub(r"\1n't", lower) if "nt" in lower else lower


class Spoken:
    """One sentence: its `text`, the text with quotations blanked out (`bare`), and what is looked up of that."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.bare = without_quotes(text)
        self.lower = _lower(self.bare)
        self.words = frozenset(_WORD.findall(self.lower))
        self.han = _HAN.search(self.bare) is not None

    @property
    def quotes(self) -> bool:
        """Something in it stands in quotation marks."""
        return self.bare is not self.text and self.bare != self.text

    @cached_property
    def unquoted(self) -> Spoken:
        """The same sentence with the content of its quotations counted as its own words."""
        whole = Spoken.__new__(Spoken)
        whole.text = whole.bare = self.text
        whole.lower = _lower(self.text)
        whole.words = frozenset(_WORD.findall(whole.lower))
        whole.han = _HAN.search(self.text) is not None
        return whole


class Phrases:
    """One family. `words` are hits by themselves; `english` is an alternation of phrases of which each holds one of
    the words `opens`; `chinese` is an alternation searched as it is."""

    def __init__(self, words: str = "", english: str = "", opens: str = "", chinese: str = "") -> None:
        self.words = frozenset(words.split())
        self.opens = frozenset(opens.split())
        self.english = re.compile(rf"\b(?:{english})") if english else None
        self.chinese = re.compile(chinese) if chinese else None

    def found_in(self, spoken: Spoken) -> bool:
        """Whether the family occurs in the sentence, outside its quotations."""
        if not self.words.isdisjoint(spoken.words):
            return True
        if self.english and not self.opens.isdisjoint(spoken.words) and self.english.search(spoken.lower):
            return True
        return bool(spoken.han and self.chinese and self.chinese.search(spoken.bare))
