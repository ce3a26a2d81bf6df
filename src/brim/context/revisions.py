"""Which earlier wording a later one replaces: "actually, make that …", "on second thought", "改成", "不对，是…".

A sentence revises if it carries a marker of revision. What it revises is the nearest earlier sentence that is about
the same thing: that shares words with it, or the kind of quantity (a time, a day, an amount) where the later one says
"make it" and little else. Within one message a strong marker revises what stands before it even without that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from brim.context.phrases import Phrases, Spoken

_STRONG = Phrases(
    words="correction",
    english=r"(?:scratch|strike|forget) that\b|on second thoughts?\b|make (?:it|that|them)\b"
    r"(?! (?:change|work|happen|clear|possible|easier|better|look|more|less|sound|feel|so)\b)|no,? wait\b|wait,? no\b|"
    r"changed? (?:that|it|this|them) to\b|changed? (?:my|our) minds?\b|i mean(?:t)?\b|let me (?:rephrase|correct)\b|"
    r"instead of (?:what|the)\b|i misspoke|my (?:mistake|bad)\b|forget what|never ?mind\b|not .{1,40}? after all\b",
    opens="scratch strike make forget second wait change changed mean meant rephrase correct instead misspoke mistake bad "
    "never nevermind after",
    chinese=r"改[成为到用]|改一下|换[成到]|更正|纠正|[说写记弄搞]错了|(?:^|[，。！,\s])不对|[哦啊]不|推翻|作废",
)
_WEAK = Phrases(
    words="actually sorry oops instead rather anymore update postponed",
    english=r"hm+\b|(?:is|are|it's|has|that's) now\b|now\W*$|now (?:it|we|the \w+) (?:is|are|has|have)\b|from now on\b|"
    r"no longer\b|any more\b|after all\b|so (?:please|let's)\b|let's (?:do|make|go)\b|turns out\b|"
    r"(?:moved|changed|brought forward|pushed back)\b",
    opens="hm hmm hmmm now longer more all so let's turns moved changed brought pushed",
    chinese=r"那就|还是.{1,20}吧|应该是|现在(?:改|要|得|是|变|又)|变[成了]|推迟到|提前到|延到|挪到|不是|等等|等一下|哎|"
    r"从现在(?:起|开始)|以后[都就]?|算了|重新|临时",
)
_ANAPHORIC = re.compile(
    r"\b(?:make (?:it|that|them)|change (?:it|that|this|them)|it(?:'s| is| must| should| has)|that)\b|改成|改为|"
    r"改到|换成|改一下|那就",
    re.I,
)

_QUANTITY = (
    (
        "clock",
        re.compile(
            r"\b\d{1,2}:\d\d\b|\b\d{1,2} ?(?:am|pm)\b|\b(?:at|by|until|till) (?:one|two|three|four|five|six|seven|"
            r"eight|nine|ten|eleven|"
            r"twelve|noon|midnight|\d{1,2})\b|[上下中]午|\d ?点|[一二三四五六七八九十]点|晚上|"
            r"早上",
            re.I,
        ),
    ),
    (
        "day",
        re.compile(
            r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:january|february|march|april|may|june|july|august|"
            r"september|october|"
            r"november|december)\b|\b\d{1,2}(?:st|nd|rd|th)\b|\b\d{4}-\d\d-\d\d\b|周[一二三四五六日天]|"
            r"星期[一二三四五六日天]|礼拜[一二三四五六日天]|\d+ ?[号日]|\d+ ?月",
            re.I,
        ),
    ),
    (
        "span",
        re.compile(
            r"\b\d+[- ]?(?:second|sec|minute|min|hour|day|week|month|year)s?\b|\bevery \w+ \w+|"
            r"[\d一二两三四五六七八九十半]+ ?(?:个)?(?:秒|分钟|小时|天|周|月|年)",
            re.I,
        ),
    ),
    (
        "amount",
        re.compile(
            r"[$€£¥]\s?\d|\b\d+[\d,.]* ?(?:euros?|pounds?|dollars?|usd|eur|gb|mb|tb|%|percent|kg|km|ms)\b|"
            r"[\d.]+ ?(?:元|块|万|克|公斤|斤|米|折|%)",
            re.I,
        ),
    ),
    (
        "number",
        re.compile(
            r"\b\d[\d,.]*\b|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)\b|"
            r"[一二两三四五六七八九十百]+(?:个|只|位|人|台|张|份|盒|页|次|遍)",
            re.I,
        ),
    ),
)

_WORD = re.compile(r"[a-z0-9_]+(?:[./_-][a-z0-9_]+)*", re.I)
_HAN_RUN = re.compile(r"[\u4e00-\u9fff]{2,}")
_STOP = frozenset(
    """
    the a an and or of to in on at for with from by is are was were be been it its this that these those there
    here i you we they he she my your our their me us them not no do does did so as if but please just can could
    will would should must may have has had need want like make let lets get go set put use all any every now then
    than instead actually sorry second thought after before too also only
    """.split()  # noqa: SIM905 - a word list reads better as prose
)


def terms_of(text: str) -> frozenset[str]:
    """What a sentence is about: its words without the common ones, lightly stemmed, and its Chinese bigrams."""
    words = {_stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP and not word.isdigit()}
    for run in _HAN_RUN.findall(text):
        words.update(run[i : i + 2] for i in range(len(run) - 1))
    return frozenset(words)


def quantities_of(text: str) -> frozenset[str]:
    """Kinds of quantity a sentence names: clock, day, span, amount, number."""
    return frozenset(kind for kind, pattern in _QUANTITY if pattern.search(text))


def revises(text: str | Spoken) -> int:
    """2 with a strong marker of revision, 1 with a weak one, 0 without."""
    spoken = text if isinstance(text, Spoken) else Spoken(text)
    return 2 if _STRONG.found_in(spoken) else 1 if _WEAK.found_in(spoken) else 0


def replaced_by(text: str, earlier: Sequence[str], *, same_message: bool) -> int | None:
    """Index in `earlier` of the sentence that `text` replaces, None where it replaces none.

    `earlier` are the sentences before it that could be replaced, oldest first: those of the same message, or the
    constraints of the messages before.
    """
    strength = revises(text)
    if not strength or not earlier:
        return None
    terms, kinds = terms_of(text), quantities_of(text)
    best, best_score = None, 0.0
    for distance, index in enumerate(range(len(earlier) - 1, -1, -1)):
        if same_message and distance > 2:
            break
        other = terms_of(earlier[index])
        shared = len(terms & other)
        score = shared / (1 + min(len(terms), len(other)))
        if kinds & quantities_of(earlier[index]) and (shared or strength == 2):
            score += 0.25
        if same_message:
            # The sentence right before is what a correction is about, explanations between them apart.
            score += (0.2 if strength == 2 else 0.05) / (1 + distance)
            needed = 0.2 if strength == 2 else 0.3
        else:
            anaphoric = distance == 0 and _ANAPHORIC.search(text) and strength == 2
            needed = 0.25 if anaphoric else (0.35 if strength == 2 else 0.5)
        if score >= needed and score > best_score:
            best, best_score = index, score
    return best


def _stem(word: str) -> str:
    for ending in ("ies", "es", "s", "ing", "ed"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            return word[: -len(ending)]
    return word
