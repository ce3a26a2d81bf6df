"""Why a text was not found in a file: one clause that lets a model mend its call without another look at the file.

Most misses are of a few kinds: blanks, characters that only look alike, an escape too many, line numbers copied from a
listing, a change that was made already. What is none of them is told by the nearest line.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable

from brim.tools.textfile import with_newlines

# What is looked at, at most, to find out about a text that is not there.
_SEARCHED_CHARS = 2_000_000
_SEARCHED_LINES = 20_000

OTHER_LINE_ENDS = r"bash changes line ends: sed -i 's/\r$//' makes CR LF to LF, sed -i 's/$/\r/' LF to CR LF"

_ESCAPED = re.compile(r"\\([ntr\"'\\])")
_UNESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
# "12: ", "12\t", "12|", "12→", "file.py:12:" and "file.py-12-" at a line's beginning.
_NUMBERED = re.compile(r"(?m)^(?:[^\s:]+[:-])?[ \t]*\d+[ \t]*[:|→│\t-]")

_LOOKALIKES = str.maketrans(
    "\u2018\u2019\u201a\u201b\u2032\u201c\u201d\u201e\u201f\u2033\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u3002",
    "'''''\"\"\"\"\"-------.",
)


def why_missing(text: str, old: str, new: str) -> str:
    """A clause that begins with "; ", or "" where there is nothing to say. `old` is not in `text`."""
    if "\r" in with_newlines(old, "\n") and old in text:
        return f"; a CR before a LF is a part of the line end, which edit keeps; {OTHER_LINE_ENDS}"
    text, old = with_newlines(text[:_SEARCHED_CHARS], "\n"), with_newlines(old, "\n")
    for look in (_open_end, _escapes, _numbers, _blanks, _lookalikes, _case):
        if said := look(text, old):
            return f"; {said}"
    if "\ufffd" in old:
        return "; U+FFFD in old stands for bytes that are no text: take a piece of text without them"
    said = _partly(text, old) or _nearest(text, old)
    if new.strip() and (at := text.find(with_newlines(new, "\n"))) >= 0:
        said += f"; new is there already, at line {_line(text, at)}"
    return said


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _open_end(text: str, old: str) -> str:
    bare = old.removesuffix("\n")
    if bare and bare != old and text.endswith(bare):
        return f"line {_line(text, len(text))} is the last one and has no line end: leave out the one at the end of old"
    return ""


def _escapes(text: str, old: str) -> str:
    plain = _ESCAPED.sub(lambda match: _UNESCAPED.get(match[1], match[1]), old)
    if plain != old and (at := text.find(plain)) >= 0:
        return (
            f"it is found at line {_line(text, at)} if the escapes in old are taken for what they mean:"
            " old was escaped twice (write \\n and \\t once in the JSON)"
        )
    import html  # its tables are half a megabyte, and few edits miss

    if (bare := html.unescape(old)) != old and (at := text.find(bare)) >= 0:
        return (
            f"it is found at line {_line(text, at)} with plain characters: old has HTML entities such as &lt; or &amp;"
        )
    double = old.replace("\\", "\\\\")
    for wanted, told in (
        (old.replace("\n", "\\n").replace("\t", "\\t"), "a backslash and a letter where old has a line end or a tab"),
        (double, "two backslashes where old has one"),
        (old.replace('"', '\\"'), "a backslash before each quote"),
    ):
        if wanted != old and (at := text.find(wanted)) >= 0:
            return f"line {_line(text, at)} has {told}"
    return ""


def _numbers(text: str, old: str) -> str:
    if not all(_NUMBERED.match(line) for line in old.split("\n") if line.strip()):
        return ""
    bare = _NUMBERED.sub("", old)
    for wanted in (bare, re.sub("(?m)^ ", "", bare)):
        if wanted.strip() and (at := text.find(wanted)) >= 0:
            return f"it is found at line {_line(text, at)} without the line numbers, which are not in the file"
    return ""


def _blanks(text: str, old: str) -> str:
    words = old.split()
    found = re.search(r"\s+".join(map(re.escape, words)), text) if words else None
    if found is None:
        return ""
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", found.end())
    lines = text[start : None if end < 0 else end]
    shown = lines if lines.count("\n") < 4 else lines.split("\n")[0]
    return f"line {_line(text, start)} differs only in blanks: {shown[:300]!r}"


def _lookalikes(text: str, old: str) -> str:
    folded, wanted = _folded(text), _folded(old)
    at = folded.find(wanted)
    if at < 0:
        return ""
    pairs = dict.fromkeys((have, want) for have, want in zip(text[at:], old, strict=False) if have != want)
    told = ", ".join(f"{_named(have)} where old has {_named(want)}" for have, want in list(pairs)[:4])
    return f"line {_line(text, at)} only looks the same: it has {told}"


def same_to_the_eye(one: str, other: str) -> bool:
    """Whether two names differ only in characters that look alike, or in how their accents are composed."""
    one, other = (_folded(unicodedata.normalize("NFC", name)) for name in (one, other))
    return one == other


def _folded(text: str) -> str:
    """One character for each, look-alikes as their plainest form."""
    if text.isascii():
        return text
    return "".join(map(_fold, text.translate(_LOOKALIKES)))


def _fold(char: str) -> str:
    if char < "\x80":
        return char
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 else char


def _named(char: str) -> str:
    return f"U+{ord(char):04X} ({unicodedata.name(char, 'no name').lower()})"


def _case(text: str, old: str) -> str:
    found = text.lower().find(old.lower()) if old.strip() else -1
    return f"line {_line(text.lower(), found)} has it in other upper and lower case letters" if found >= 0 else ""


def _partly(text: str, old: str) -> str:
    """Where its first lines are there, and which one is another."""
    lines, wanted = text.split("\n"), old.split("\n")
    while wanted and not wanted[0].strip():
        wanted.pop(0)
    for number, line in enumerate(lines, 1):
        if not wanted or line != wanted[0]:
            continue
        for ahead, (have, want) in enumerate(zip(lines[number - 1 :], wanted, strict=False)):
            if have != want:
                return f"; it begins at line {number}, but line {number + ahead} is {have[:200]!r}, not {want[:200]!r}"
    return ""


def _nearest(text: str, old: str) -> str:
    lines = text.split("\n")
    first = next((line for line in old.split("\n") if line.strip()), "").strip()[:300]
    best, found = 0.5, 0
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(first)
    for number, line in enumerate(lines[:_SEARCHED_LINES] if first else [], 1):
        matcher.set_seq1(line.strip()[:300])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, found = ratio, number
    return f"; the nearest is line {found}: {lines[found - 1][:200]!r}" if found else ""


def find_equivalent(text: str, old: str, find: Callable[[str, str], list[tuple[int, int]]]) -> list[tuple[int, int]]:
    """Where `text` has `old` with its accents (or syllables) composed in another way: by Unicode the same text.

    `find` gives the exact places; spans are of `text` as it is.
    """
    if text.isascii() or not find(unicodedata.normalize("NFC", text), wanted := unicodedata.normalize("NFC", old)):
        return []
    pieces: list[str] = []
    starts: dict[int, int] = {}
    at = composed = 0
    while at < len(text):
        end = at + 1
        while end < len(text) and (unicodedata.combining(text[end]) or "\u1160" <= text[end] <= "\u11ff"):
            end += 1
        starts[composed] = at
        pieces.append(unicodedata.normalize("NFC", text[at:end]))
        composed += len(pieces[-1])
        at = end
    starts[composed] = at
    return [(starts[a], starts[b]) for a, b in find("".join(pieces), wanted) if a in starts and b in starts]
