"""Text as the index knows it: identifiers whole and in pieces, plain words without their plural, Chinese by bigrams.

Chinese, Japanese and Korean runs become overlapping pairs: no dictionary, nothing to load, and a pair that crosses two
words is rare enough to weigh little.
"""

from __future__ import annotations

import re

_WORD = re.compile(
    r"[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]\w*|_\w+|\b\d{3,5}\b|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_ASCII_WORD = re.compile(r"[A-Za-z_]\w+|\b\d{3,5}\b|\b[A-Za-z]\b", re.ASCII)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_PIECES = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_LONGEST = 80
"""A longer word is data (base64, a hash), not a name."""

_stop = """a about above after again all also am an and any are as at be because been before being below between both but by
    can cannot could did do does doing don done down during each few for from further get gets getting given go had has
    have having he her here hers him his how however i if in instead into is isn it its itself just let like ll make may
    me might more most must my need no nor not now of off on once one only or other our out over own please re same see
    seem seems she should so some such than that the their them then there these they thing this those through to too
    under until up us use used using ve very want was way we well were what when where which while who why will with
    without would yes yet you your
    hello hi hey thanks thank ok okay bye
    的 了 是 在 和 与 或 我 你 他 她 它 们 吗 呢 吧 啊 你好 您好 谢谢 多谢 再见 什么 怎么 怎样 如何 哪里 在哪 哪个 哪些
    为什 可以 是否 能否 这个 那个 请问
    我们 你们 他们 一个 没有 有没 多少 里面 帮我 一下 请帮 是什 么样 的时 时候 里的"""
STOP = frozenset(_stop.split())
"""Words that say nothing about what is asked for."""


class _Terms(dict[str, str]):
    """The terms of a word, each with a space before it, made when first asked for."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _KNOWN:
            self.clear()
        made = self[word] = "".join(f" {term}" for term in terms_of_word(word))
        return made


_KNOWN = 200_000
_terms = _Terms()


def words_of(text: str) -> list[str]:
    """The words of a text, as they stand."""
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


def join_terms(text: str) -> str:
    """All terms of a text, in order, repeated as they are, as one line."""
    return "".join(map(_terms.__getitem__, words_of(text)))


def terms_of(text: str) -> list[str]:
    """The same as a list."""
    return join_terms(text).split()


def terms_of_word(word: str) -> tuple[str, ...]:
    """The terms of one word, in lower case: the whole first, then its pieces; CJK as pairs."""
    if len(word) > _LONGEST:
        return ()
    found = _CJK.search(word)
    if found is not None:
        run = found[0]
        pairs = [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        before, after = word[: found.start()], word[found.end() :]
        return (
            *(terms_of_word(before) if before else ()),
            *(pair for pair in pairs if pair not in STOP),
            *(terms_of_word(after) if after else ()),
        )
    lower = word.lower()
    whole = lower.strip("_")
    if not whole:
        return ()
    pieces = [stem(piece.lower()) for piece in _PIECES.findall(word) if len(piece) > 1]
    if len(pieces) <= 1:
        return () if whole in STOP else (stem(whole),)
    return (whole, *(piece for piece in pieces if piece not in STOP))


def stem(word: str) -> str:
    """A word without the endings of its forms, so that a question about what is capped finds the caps. Endings that make
    another word (-er, -ation) stay."""
    if len(word) <= 3 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith(("ies", "ied")) and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root is not word and len(root) >= 3 and _VOWEL.search(root):
            if root[-1] == root[-2] and root[-1] not in "lsz":
                root = root[:-1]
            word = root
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


_VOWEL = re.compile("[aeiouy]")
