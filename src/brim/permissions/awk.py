"""Programs of awk: whether one only computes and prints, told by reading it as awk does."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"(?P<blank>[ \t\r]+|\\\r?\n)|(?P<comment>#[^\n]*)|(?P<string>\"(?:[^\"\\\n]|\\.)*\")|(?P<name>[A-Za-z_][\w:]*)"
    r"|(?P<number>\d[\w.]*|\.\d[\w.]*)|(?P<sign>\+\+|--|&&|\|\||>=|>>|\|&|.|\n)",
    re.DOTALL,
)
_REGEX = re.compile(r"/(?:[^/\\\n]|\\.)*/", re.DOTALL)
_WORK = frozenset(["system", "getline", "ARGV", "ARGIND", "PROCINFO", "nextfile", "dcgettext", "bindtextdomain"])
"""Names of what runs commands, reads other files, or changes what is read."""
_GOES_ON = (",", "{", "&&", "||", "?", ":", "do", "else")
"""After these a line end ends no statement."""


def awk_is_plain(program: str) -> bool:
    """Whether a program opens no file, runs no command and calls nothing by a computed name."""
    position = 0
    last = "\n"
    printing, depth = False, 0
    while position < len(program):
        if program[position] == "/":
            if last in ("++", "--"):
                return False  # a division or a regular expression: only the parser knows
            if not (last[-1].isalnum() or last[-1] in '_)]"$'):
                found = _REGEX.match(program, position)
                if found is None or not _closes_brackets(found[0]):
                    return False
                position, last = found.end(), '"'
                continue
        token = _TOKEN.match(program, position)
        if token is None:
            return False
        text = token[0]
        position = token.end()
        if token["blank"]:
            if "\n" in text and re.match(r"\w", program[position : position + 1]) and last[-1].isalnum():
                return False
            continue
        if token["comment"]:
            continue
        if text in ('"', "@", "\\", "`", "|", "|&") or text.rpartition(":")[2] in _WORK:
            return False
        if text in ("print", "printf"):
            printing, depth = True, 0
        elif text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
        elif text in (";", "}") or (text == "\n" and last not in _GOES_ON):
            printing = False
        elif text in (">", ">>") and printing and depth <= 0:
            return False
        if text != "\n" or last not in _GOES_ON:
            last = text
    return True


def _closes_brackets(regex: str) -> bool:
    """Whether every awk finds the same end: a slash in brackets ends the expression for some, not for others."""
    return re.search(r"(?<!\\)\[(?!\^?\]?[^\]/]*\])", regex[:-1]) is None
