"""Words of a shell command as they are known before it runs.

A word is known whole (`text`), known at its start (`head`), or not known. What matters of an unknown word is what it
could turn into: an option, several words, another command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product

import msgspec


def names(text: str) -> frozenset[str]:
    """A table of words from a text of them."""
    return frozenset(text.split())


class Word(msgspec.Struct, frozen=True):
    """`text`: its value, None where it is only known when it runs; `head`: what it surely begins with.

    `splits`: may become several words or none; `harmless`: unknown, but set by nobody in this script (`$HOME`, `$?`, a
    hash); `glob`: `text` is a pattern that the shell turns into file names; `tilde`: begins with an unquoted `~`;
    `computed`: its text came out of a variable; `found`: it stands for what a search finds, a glob of names and folders;
    `fed`: a line of what xargs reads; `choices`: the words it is one of; `listed`: the words of the command whose output it
    comes out of; `sample`: its text with a NUL for each number or date, where only those are unknown.
    """

    raw: str
    text: str | None
    head: str = ""
    splits: bool = False
    harmless: bool = False
    glob: bool = False
    tilde: bool = False
    computed: bool = False
    found: tuple[str, ...] = ()
    fed: bool = False
    choices: tuple[Word, ...] = ()
    listed: tuple[Word, ...] = ()
    sample: str = ""

    def may_be_option(self) -> bool:
        """Whether it can reach a program as an option that nobody sees here."""
        if self.text is not None:
            return False
        if self.splits and not self.harmless:
            return True
        return self.head.startswith("-") or (not self.head and not self.harmless)


def variants(words: Sequence[Word]) -> list[list[Word]]:
    """A command in every form that the choices of its words give; as it is where these are too many."""
    count = 1
    for word in words:
        count *= len(word.choices) or 1
    if count > 50:
        return [list(words)]
    return [list(form) for form in product(*(word.choices or (word,) for word in words))]


def known(text: str) -> Word:
    """A word that is just this text."""
    return Word(text, text)


UNKNOWN = Word("…", None, splits=True)
"""Any words at all."""


class Segment(msgspec.Struct, frozen=True):
    """A stretch of a word: `text` None is an expansion of unknown value, perhaps one of `choices`; see `Word`."""

    text: str | None
    quoted: bool
    harmless: bool = False
    computed: bool = False
    choices: tuple[Word, ...] = ()
    listed: tuple[Word, ...] = ()
    sample: str = ""


def build_words(raw: str, segments: Iterable[Segment]) -> list[Word]:
    """The words that a word of the source becomes: one, or several where braces are expanded."""
    parts = list(segments)
    if any(not part.quoted and not part.computed and part.text and "{" in part.text for part in parts):
        expanded = _expand_braces(parts)
        if expanded is None:
            return [Word(raw, None, splits=True)]
        return [word for each in expanded for word in _fields(raw, each)]
    return _fields(raw, parts)


def _fields(raw: str, parts: list[Segment]) -> list[Word]:
    """One word, or those that a variable's blanks make of it."""
    if any(part.computed and not part.quoted and part.text and re.search(r"\s", part.text) for part in parts):
        if all(part.text is not None for part in parts):
            return _split_fields(raw, parts)
        return [Word(raw, None, splits=True)]
    return [_one_word(raw, parts)]


def _one_word(raw: str, parts: list[Segment]) -> Word:
    glob = any(not part.quoted and part.text and re.search(r"[*?\[]|[@!+]\(", part.text) for part in parts)
    tilde = bool(parts and not parts[0].quoted and not parts[0].computed and (parts[0].text or "").startswith("~"))
    computed = any(part.computed for part in parts)
    if all(part.text is not None for part in parts):
        text = "".join(part.text or "" for part in parts)
        vanishes = not text and not any(part.quoted for part in parts)
        if vanishes and computed:
            return Word(raw, None, splits=True, harmless=True)
        return Word(raw, text, glob=glob, tilde=tilde, computed=computed)
    head = ""
    for part in parts:
        if part.text is None:
            break
        head += part.text
    unknown = [part for part in parts if part.text is None]
    return Word(
        raw,
        None,
        head=head,
        splits=any(not part.quoted for part in unknown),
        harmless=all(part.harmless for part in unknown),
        glob=glob,
        tilde=tilde,
        computed=computed,
        choices=_choices(raw, parts),
        listed=unknown[0].listed if len([part for part in parts if part.text != ""]) == 1 else (),
        sample="".join(part.sample if part.text is None else part.text for part in parts)
        if all(part.sample for part in unknown)
        else "",
    )


def _choices(raw: str, parts: list[Segment]) -> tuple[Word, ...]:
    """The words that a word with one unknown stretch may be, where that is known to be one of a few."""
    at = [index for index, part in enumerate(parts) if part.text is None]
    if len(at) != 1:
        return ()
    unknown = parts[at[0]]
    if not unknown.quoted and any(re.search(r"\s", choice.text or "") for choice in unknown.choices):
        return ()
    before = "".join(part.text or "" for part in parts[: at[0]])
    after = "".join(part.text or "" for part in parts[at[0] + 1 :])
    return tuple(Word(raw, f"{before}{choice.text}{after}", glob=choice.glob) for choice in unknown.choices)


def _split_fields(raw: str, parts: list[Segment]) -> list[Word]:
    fields: list[str] = []
    current, begun = "", False
    for part in parts:
        text = part.text or ""
        if not (part.computed and not part.quoted):
            current, begun = current + text, True
            continue
        for piece in re.split(r"(\s+)", text):
            if piece and not piece.strip():
                if begun:
                    fields.append(current)
                current, begun = "", False
            elif piece:
                current, begun = current + piece, True
    if begun:
        fields.append(current)
    return [Word(raw, field, glob=bool(re.search(r"[*?\[]", field)), computed=True) for field in fields]


def _expand_braces(parts: list[Segment]) -> list[list[Segment]] | None:
    """Every word that `{a,b}` and `{1..3}` give; None where that is not certain."""
    flat: list[tuple[str, Segment]] = []
    for part in parts:
        if part.text is None:
            flat.append(("", part))
        else:
            flat += [(char, Segment(char, part.quoted, part.harmless, part.computed)) for char in part.text]
    found = _braces(flat, 0)
    return None if found is None else [[segment for _, segment in word] for word in found]


_Chars = list[tuple[str, Segment]]


def _braces(chars: _Chars, depth: int) -> list[_Chars] | None:
    if depth > 6:
        return None
    for start, (char, segment) in enumerate(chars):
        if char != "{" or segment.quoted:
            continue
        level, commas, end = 0, [], -1
        for position in range(start, len(chars)):
            inner, its = chars[position]
            if its.quoted:
                continue
            if inner == "{":
                level += 1
            elif inner == "}":
                level -= 1
                if level == 0:
                    end = position
                    break
            elif inner == "," and level == 1:
                commas.append(position)
        if end < 0:
            # not closed: bash leaves it as it stands, but what follows may still hold braces
            continue
        body = "".join(inner for inner, _ in chars[start + 1 : end])
        if not commas:
            if ".." in body:
                numbers = re.fullmatch(r"(-?\d{1,4})\.\.(-?\d{1,4})", body)
                if numbers is None:
                    return None
                low, high = int(numbers[1]), int(numbers[2])
                step = 1 if low <= high else -1
                if abs(high - low) > 200:
                    return None
                choices: list[_Chars] = [
                    [(each, Segment(each, True)) for each in str(number)] for number in range(low, high + step, step)
                ]
            else:
                continue
        else:
            edges = [start, *commas, end]
            choices = [chars[one + 1 : two] for one, two in zip(edges, edges[1:], strict=False)]  # noqa: RUF007 - pairwise reads no better
        result: list[_Chars] = []
        for choice in choices:
            more = _braces([*chars[:start], *choice, *chars[end + 1 :]], depth + 1)
            if more is None:
                return None
            result += more
            if len(result) > 500:
                return None
        return result
    return [chars]


_ANSI_SIMPLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ANSI = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)


def decode_ansi(body: str) -> str | None:
    """What stands between `$'` and `'`; None where it is not certain (a NUL cuts the text short, bytes make no text)."""
    failed = re.search(r"\\x\{|\\c", body) is not None

    def one(found: re.Match[str]) -> str:
        nonlocal failed
        what = found[1]
        if what in _ANSI_SIMPLE:
            return _ANSI_SIMPLE[what]
        if what[0] in "xuU" and len(what) > 1:
            code = int(what[1:], 16)
        elif what[0] in "01234567":
            code = int(what, 8)
        else:
            return "\\" + what
        if code == 0 or code > 0x10FFFF or (what[0] not in "uU" and code > 127):
            failed = True
            return ""
        return chr(code)

    text = _ANSI.sub(one, body)
    return None if failed else text


def decode_double(body: str) -> str:
    """What stands between double quotes, expansions apart: a backslash holds before `$`, a backtick, `"`, `\\` and newline."""
    return re.sub(r'\\([$`"\\\n])', lambda found: "" if found[1] == "\n" else found[1], body)


def decode_bare(body: str) -> list[Segment]:
    """A bare word's stretches: what follows a backslash is quoted."""
    segments: list[Segment] = []
    position = 0
    for found in re.finditer(r"\\(.)", body, re.DOTALL):
        if found.start() > position:
            segments.append(Segment(body[position : found.start()], False))
        if found[1] != "\n":
            segments.append(Segment(found[1], True))
        position = found.end()
    if position < len(body):
        segments.append(Segment(body[position:], False))
    return segments
