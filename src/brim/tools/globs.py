"""Glob patterns as models write them -> a test on paths relative to the workspace.

`*` and `?` stay within a folder, `**` crosses them, `{a,b}` and `[a-z]` as in a shell. A pattern without a slash is
about names at any depth; one with a slash, if only at its beginning, is about the whole path. Brackets also match
themselves, since folders are called `[id]` and models write them down as they are called.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from brim.errors import ToolError

_WILD = frozenset("*?[{")
# A part of a path that begins with a dot, and is neither "." nor "..".
_HIDDEN = re.compile(r"(?:^|[/{,])\.[^./]")
# A choice of plain pieces, none of them empty: what every kind of glob takes in the same way.
_PLAIN_NAME = re.compile(r"[^][{}\\,]*(?:\{[^][{}\\,]+(?:,[^][{}\\,]+)+\}[^][{}\\,]*)*")


def compile_glob(pattern: str) -> re.Pattern[bytes]:
    """A regular expression for whole paths (bytes, no leading "./"). Raises ToolError for a pattern that is no glob."""
    body = pattern.removeprefix("./")
    anchored, body = body.startswith("/"), body.removeprefix("/")
    if not anchored and "/" not in body.rstrip("/") and body not in ("**", "**/"):
        body = "**/" + body
    if body.endswith("/"):
        body += "**"
    try:
        return re.compile(_translate(body).encode("utf-8", "surrogateescape"), re.DOTALL)
    except (re.error, IndexError) as error:
        raise ToolError(
            f"{pattern!r} is not a glob pattern: {error}", hint="for example **/*.py or src/**/*.{ts,tsx}"
        ) from None


def compile_include(include: str) -> Callable[[bytes], bool]:
    """A test for grep's `include`: one or more globs, divided by commas or blanks outside braces; `!` excludes."""
    wanted, unwanted = [], []
    for part in split_globs(include):
        if part.startswith("!"):
            unwanted.append(compile_glob(part[1:]))
        else:
            wanted.append(compile_glob(part))

    def test(path: bytes) -> bool:
        if any(glob.fullmatch(path) for glob in unwanted):
            return False
        return not wanted or any(glob.fullmatch(path) for glob in wanted)

    return test


def split_globs(include: str) -> list[str]:
    """The globs of an include, in order."""
    parts, depth, current = [], 0, ""
    for char in include:
        depth += (char == "{") - (char == "}" and depth > 0)
        if char in ", \t" and not depth:
            if current:
                parts.append(current)
            current = ""
        else:
            current += char
    return [*parts, current] if current else parts


def fixed_folder(pattern: str) -> str:
    """The leading folders of a pattern that hold no wildcard, "" for none: where its walk can start."""
    parts = pattern.removeprefix("./").split("/")[:-1]
    fixed: list[str] = []
    for part in parts:
        if _WILD & set(part) or "\\" in part:
            break
        fixed.append(part)
    return "/".join(fixed)


def wants_hidden(pattern: str) -> bool:
    """Whether a pattern names hidden files or folders."""
    return _HIDDEN.search(pattern.removeprefix("./")) is not None


def is_plain_name(name: str) -> bool:
    """Whether a glob of a name (no slash) means the same to everybody."""
    return "**" not in name and _PLAIN_NAME.fullmatch(name) is not None


def _choices(pattern: str) -> dict[int, str]:
    """Where braces and commas make a choice, as in a shell: braces without a comma of their own are just characters."""
    found: dict[int, str] = {}
    open_at: list[tuple[int, list[int]]] = []
    escaped = False
    for at, char in enumerate(pattern):
        if escaped or char == "\\":
            escaped = not escaped
        elif char == "{":
            open_at.append((at, []))
        elif char == "," and open_at:
            open_at[-1][1].append(at)
        elif char == "}" and open_at:
            start, commas = open_at.pop()
            if commas:
                found |= {start: "(?:", at: ")"} | dict.fromkeys(commas, "|")
    return found


def _bracket(inner: str) -> str:
    """One of the characters, or the brackets as they stand; only the latter where they are no set."""
    itself = re.escape(f"[{inner}]")
    chars = inner.replace("\\", r"\\").replace("[", r"\[")
    chosen = "(?!/)[" + ("^" + chars[1:] if chars[0] in "!^" else chars) + "]"
    try:
        re.compile(chosen)
    except re.error:
        return itself
    return f"(?:{chosen}|{itself})"


def _translate(pattern: str) -> str:
    out: list[str] = []
    at, size, choices = 0, len(pattern), _choices(pattern)
    while at < size:
        char = pattern[at]
        if char == "*":
            run = at
            while run < size and pattern[run] == "*":
                run += 1
            starts = at == 0 or pattern[at - 1] in "/{,"
            if run - at >= 2 and starts and run < size and pattern[run] == "/":
                out.append("(?:[^/]+/)*")
                run += 1
            elif run - at >= 2 and starts:
                out.append(".*")
            else:
                out.append("[^/]*")
            at = run
            continue
        if char == "?":
            out.append("[^/]")
        elif char == "[":
            end = pattern.find("]", at + 2 if pattern[at + 1 : at + 2] not in ("!", "^") else at + 3)
            if end < 0:
                out.append(r"\[")
            else:
                out.append(_bracket(pattern[at + 1 : end]))
                at = end
        elif at in choices:
            out.append(choices[at])
        elif char == "\\" and at + 1 < size:
            at += 1
            out.append(re.escape(pattern[at]))
        else:
            out.append(re.escape(char))
        at += 1
    return "".join(out)
