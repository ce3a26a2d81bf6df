"""Whether a deny or ask rule for bash covers a command: broadly, in whatever order and spelling its options stand.

Words that are not known before they run make it a "maybe".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from brim.permissions.rules import PatternWord, Rule, covers_text
from brim.permissions.words import Word, known, names, variants

Match: TypeAlias = Literal["yes", "maybe", "no"]

_LONG_OF_SHORT: Mapping[str, tuple[str, ...]] = {
    "f": ("force",), "r": ("recursive", "R"), "R": ("recursive", "r"), "v": ("verbose",), "n": ("dry-run", "no-verify"),
    "i": ("in-place", "interactive"), "a": ("all",), "g": ("global",), "d": ("delete",),
    "o": ("output",), "X": ("request",), "T": ("upload-file",), "y": ("yes",), "c": ("command", "config"), "e": ("eval",),
}  # fmt: skip
"""What a letter is long for, in the programs that people write rules about."""
_LETTERS_OF: Mapping[str, str] = {"git commit": "na", "git push": "fnd", "git am": "n", "git branch": "fd", "git clean": "f",
                                  "rm": "frR", "cp": "fr", "mv": "f", "npm": "fg"}  # fmt: skip
"""Letters that are sure to be short for those names, for rules that are about any command."""
_SCRIPTED: Mapping[str, str] = {
    "python": "WXQ", "node": "rC", "nodejs": "rC", "bash": "oO", "sh": "oO", "zsh": "o", "dash": "o", "perl": "IMm",
    "ruby": "IrC", "php": "dcf", "deno": "", "bun": "",
}  # fmt: skip
"""Programs that take a script of one's own, whose options are the script's; and their letters with a value before it."""


_OPERATORS = names("| || && ; & |& > >> <")
"""Words of a rule that is about a whole command line: no command has them among its own."""


def forbids(rule: Rule, words: Sequence[Word]) -> Match:
    """Whether a deny or ask rule for bash covers a command; "maybe" where a word is not known before it runs."""
    return _forbids(rule, rule.words(), words)


def forbids_at(rule: Rule, words: Sequence[Word], cwds: Sequence[str | None]) -> Match:
    """The same for a rule that names a place (`cat /etc/passwd`, `ls ~/.ssh/*`), with the command's words as places:
    absolute, links followed. `cwds`: the folders that it may run in."""
    pattern = tuple(_at_home(want) for want in rule.words())
    if not any(want.stem.startswith("/") or re.match(r"(\.\*)?/", want.regex) for want in pattern[1:]):
        return "no"
    found: Match = "no"
    for cwd in cwds:
        folder = [known(cwd)] if cwd is not None and os.path.basename(words[0].text or "") in _TAKES_FOLDER else []
        for real in (False, True):
            placed = [words[0], *(_placed(word, cwd, real) for word in words[1:])]
            found = _stronger(found, _forbids(rule, pattern, placed))
            if folder and not any(word.text is None or not word.text.startswith("-") for word in words[1:]):
                found = _stronger(found, _forbids(rule, pattern, [*placed, *folder]))
    return found


_TAKES_FOLDER = names("ls find tree du rg dir vdir ll")
"""What takes the folder it runs in where none is named."""


def _at_home(want: PatternWord) -> PatternWord:
    """A word of a pattern with the user's home in the place of `~`."""
    for sign in ("~/", "$HOME/", "${HOME}/"):
        if want.stem.startswith(sign) or (want.literal is None and want.regex.startswith(re.escape(sign))):
            home = os.path.expanduser("~") + "/"
            return PatternWord(
                re.escape(home) + want.regex[len(re.escape(sign)) :], want.star,
                None if want.literal is None else home + want.literal[len(sign) :], want.open,
                home + want.stem[len(sign) :] if want.stem else "",
            )  # fmt: skip
    return want


def _placed(word: Word, cwd: str | None, real: bool) -> Word:
    text = word.text
    if text is None or text.startswith("-") or word.glob:
        return word
    path = os.path.expanduser(text) if word.tilde else text
    if not path.startswith("/") and cwd is None:
        return word
    full = os.path.join(cwd or "/", path)
    return known(os.path.realpath(full) if real else os.path.normpath(full))


def _forbids(rule: Rule, words_of_rule: Sequence[PatternWord], words: Sequence[Word]) -> Match:
    if len(forms := variants(words)) > 1:
        found: Match = "no"
        for form in forms:
            found = _stronger(found, _forbids(rule, words_of_rule, form))
        return found
    pattern = list(words_of_rule)
    while len(pattern) > 1 and pattern[-1].star:
        pattern.pop()
    if not words or any(want.literal in _OPERATORS for want in pattern):
        return "no"
    if rule.pattern is not None and "*" in rule.pattern and _as_text(rule.pattern, words):
        return "yes"
    name = words[0].text
    first = pattern[0]
    if name is None:
        return "maybe"
    called = {name.casefold(), os.path.basename(name).casefold()}
    if not any(
        re.fullmatch(first.regex.casefold() if first.literal else first.regex, each, re.DOTALL) for each in called
    ):
        return "no"
    found = "yes"
    for want in pattern[1:]:
        if _is_option(want):
            found = _weaker(found, _has_option(want.literal or want.stem, words, any_command=first.star))
    places = [want for want in pattern[1:] if not _is_option(want)]
    if found == "no":
        return "no"
    try:
        short = os.path.basename(name) in ("npm", "pnpm", "hg", "vagrant", "ip", "cargo")
        return _weaker(found, _aligned(places, words[1:], after_option=False, first=short))
    except RecursionError:  # thousands of words
        return "maybe"


def _is_option(want: PatternWord) -> bool:
    text = want.literal or want.stem
    return text.startswith("-") and len(text) > 1


def _as_text(pattern: str, words: Sequence[Word]) -> bool:
    """Whether a pattern with stars covers the command as one text: `*--no-verify*`, `git commit * -n *`."""
    if any(word.text is None for word in words):
        return False
    return covers_text(pattern, " ".join(word.text or "" for word in words))


def _weaker(one: Match, other: Match) -> Match:
    order: tuple[Match, ...] = ("no", "maybe", "yes")
    return min(one, other, key=order.index)


def _stronger(one: Match, other: Match) -> Match:
    order: tuple[Match, ...] = ("no", "maybe", "yes")
    return max(one, other, key=order.index)


def _aligned(
    pattern: Sequence[PatternWord], words: Sequence[Word], *, after_option: bool, first: bool = False
) -> Match:
    """Places of a pattern against the words that are no options; a word after an option may be its value."""
    if not pattern:
        return "yes"
    if not words:
        return "yes" if all(want.star for want in pattern) else "no"
    want, word = pattern[0], words[0]
    if want.star:
        return _stronger(
            _aligned(pattern[1:], words, after_option=after_option), _aligned(pattern, words[1:], after_option=False)
        )
    if word.text is None:
        return "maybe"
    if word.text.startswith("-") and word.text != "-":
        left = _aligned(pattern, words[1:], after_option="=" not in word.text, first=first)
        value = word.text.partition("=")[2] if word.text.startswith("--") else word.text[2:]
        if left == "yes" or not value or re.fullmatch(want.regex, value, re.DOTALL | re.IGNORECASE) is None:
            return left
        return _stronger(left, _aligned(pattern[1:], words[1:], after_option=False))  # `-XDELETE` is `-X DELETE`
    best: Match = "no"
    text = word.text
    if re.fullmatch(want.regex, text, re.DOTALL | re.IGNORECASE) or _same_path(want, text):
        best = _aligned(pattern[1:], words[1:], after_option=False)
    elif word.glob and want.literal is not None:
        best = "maybe"
    elif first and want.stem and len(text) > 1 and want.stem.startswith(text):
        best = "maybe"  # npm and others take a subcommand by its first letters
    is_path = want.literal is not None and (
        want.literal.startswith("~") or re.search(r"[/.]", want.literal) is not None
    )
    if best == "no" and is_path and text.endswith(f"/{(want.literal or '').removeprefix('./')}"):
        best = "maybe"  # the same name in some folder, which may be this one
    if best != "yes" and (after_option or is_path):
        best = _stronger(best, _aligned(pattern, words[1:], after_option=False))
    return best


def _same_path(want: PatternWord, text: str) -> bool:
    return want.literal is not None and "/" in want.literal + text and _plain_path(want.literal) == _plain_path(text)


def _plain_path(path: str) -> str:
    return os.path.normpath(re.sub("/+", "/", path))


def _has_option(wanted: str, words: Sequence[Word], *, any_command: bool) -> Match:
    """Whether the options of a command hold the wanted ones, in whatever order, cluster or abbreviation. `any_command`: for
    a rule that is not about this program alone, whose letters may stand for something else."""
    own = list(_own_words(words))
    hidden = any(word.may_be_option() for word in own)
    given = [word.text for word in own if word.text is not None and word.text.startswith("-")]
    if own and own[0].text == "push":  # git takes `+main` for --force, `:main` for --delete
        refs = [word.text or "" for word in own[1:]]
        given += ["-f"] * any(ref.startswith("+") for ref in refs) + ["-d"] * any(ref.startswith(":") for ref in refs)
    if wanted in given:
        return "yes"
    shorts = {letter for each in given if not each.startswith("--") for letter in each[1:]}
    longs = [each[2:].partition("=")[0] for each in given if each.startswith("--") and len(each) > 3]
    long_of = _LONG_OF_SHORT
    if any_command:
        name = os.path.basename(words[0].text or "")
        sure = _LETTERS_OF.get(name, "") + _LETTERS_OF.get(f"{name} {own[0].text if own else ''}", "")
        long_of = {letter: long for letter, long in long_of.items() if letter in sure}
    if wanted.startswith("--"):
        name = wanted[2:].partition("=")[0]
        letters = {short for short, long in long_of.items() if name in long}
        met = any(name.startswith(each) or each.startswith(name) for each in longs) or bool(letters & shorts)
    else:
        met = all(
            letter in shorts
            or any(other in shorts for other in long_of.get(letter, ()))
            or any(long.startswith(each) for long in long_of.get(letter, ()) for each in longs)
            for letter in wanted[1:]
        )
        if wanted == "-D":
            met = met or all({letter, long} & {*shorts, *longs} for letter, long in (("d", "delete"), ("f", "force")))
    return "yes" if met else "maybe" if hidden else "no"


def _own_words(words: Sequence[Word]) -> Iterator[Word]:
    """A command's words after its name; of a program that is given a script, those before the script's own."""
    name = re.sub(r"[\d.]+$", "", os.path.basename(words[0].text or ""))
    letters = _SCRIPTED.get(name)
    if letters is None:
        yield from words[1:]
        return
    value = False
    for word in words[1:]:
        text = word.text if word.text is not None else word.head
        if not value and text and not text.startswith(("-", "+")):
            return
        yield word
        value = re.fullmatch(rf"-\w*[{letters or '-'}]|--[a-z-]+", text) is not None and "=" not in text
