"""Where a path really leads, and which path rules cover it.

A path is judged by the place it leads to: links and `..` are followed, of a path that does not exist yet the deepest
existing part is. Patterns are paths: relative to the workspace (`src/**`, `./**`, `*.md`), absolute (`/etc/**`) or below
home (`~/.ssh/**`). `*` and `?` stay within one folder, `**` goes below; a pattern without a glob covers the file or, for
a folder, all below it. A name without a slash and with a deny or ask rule (`.env`) is that name in any folder.

An allow rule must cover the real place. A deny or ask rule holds if it covers the real place or the path as written, in
any case where the file system makes no difference.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from brim.permissions.rules import Rule


class Place(msgspec.Struct, frozen=True):
    """`real`: where it leads; `written`: the path as given, made absolute; `inside`: within the workspace."""

    real: str
    written: str
    inside: bool


def locate(path: str, workspace: Path, cwd: str | None = None, *, home: bool = True) -> Place | None:
    """Where a path leads; None where no file can have that name, or its links loop."""
    if "\0" in path:
        return None
    if home and (path == "~" or path.startswith("~/")):
        path = os.path.expanduser(path)
    root = os.path.realpath(workspace)
    written = os.path.normpath(os.path.join(cwd or root, path))
    try:
        joined = os.path.join(cwd or root, path)
        real = os.path.realpath(joined)
        if os.path.islink(real):
            return None
    except (OSError, ValueError):
        return None
    return Place(real, written, is_below(real, root))


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it, compared part by part (`/srv/app2` is not below `/srv/app`)."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@lru_cache(64)
def folds_case(folder: str) -> bool:
    """Whether the file system of a folder takes `A` and `a` for one name."""
    if sys.platform in ("darwin", "win32"):
        return True
    probe = folder
    while probe != "/" and probe.swapcase() == probe:
        probe = os.path.dirname(probe)
    try:
        return probe != "/" and os.path.samefile(probe, probe.swapcase())
    except OSError:
        return False


def path_matches(rule: Rule, place: Place, workspace: Path) -> bool:
    """Whether a path rule covers a place."""
    if rule.pattern is None:
        return True
    broad = rule.decision != "allow"
    fold = broad and folds_case(str(workspace))
    if broad and place.inside and rule.pattern.startswith("../"):
        return False  # what forbids the folders around it is not about the workspace itself
    patterns = _compiled(rule.pattern, str(workspace), broad, fold)
    targets = {place.real, place.written} if broad else {place.real}
    return any(pattern.fullmatch(_normal(each, fold)) for each in targets for pattern in patterns)


def _normal(path: str, fold: bool) -> str:
    return unicodedata.normalize("NFC", path).casefold() if fold else path


@lru_cache(1024)
def _compiled(pattern: str, workspace: str, broad: bool, fold: bool) -> tuple[re.Pattern[str], ...]:
    root = os.path.realpath(workspace)
    found: list[re.Pattern[str]] = []
    for text in spellings(pattern, broad):
        fixed = text
        while fixed.startswith("./"):
            fixed = fixed[2:]
        whole = fixed if text.startswith("/") else f"{root}/{fixed}"
        for each in {whole, _resolved_head(whole)}:
            found.append(re.compile(_normal(_regex(each, broad), fold), re.DOTALL))
        if broad and (anywhere := name_anywhere(fixed)) is not None:
            found.append(re.compile(_normal(".*/" + _regex(anywhere, broad), fold), re.DOTALL))
    return tuple(found)


def name_anywhere(pattern: str) -> str | None:
    """What of a pattern that forbids is meant in any folder, outside the workspace as well: `.env`, `**/.env`."""
    if pattern.startswith("**/"):
        return pattern[3:]
    return None if "/" in pattern else pattern


def absolute_patterns(rule: Rule, workspace: Path) -> list[str]:
    """The patterns of a deny or ask rule, each from the root on."""
    root = os.path.realpath(workspace)
    made: list[str] = []
    for text in spellings(rule.pattern or "**", True):
        fixed = text
        while fixed.startswith("./"):
            fixed = fixed[2:]
        made.append(text if text.startswith("/") else f"{root}/{fixed}")
        if (anywhere := name_anywhere(fixed)) is not None:
            made.append(f"/**/{anywhere}")
    return made


def spellings(pattern: str, broad: bool) -> list[str]:
    """The patterns that one stands for: quotes off, home filled in, `{a,b}` spread out, `//etc` as other programs write
    `/etc`; what forbids, with its backslashes taken off, too."""
    text = pattern
    if len(text) > 2 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    for variable in ("$HOME/", "${HOME}/"):
        text = text.replace(variable, "~/", 1) if text.startswith(variable) else text
    text = os.path.expanduser(text) if text.startswith("~") else text
    text = re.sub(r"^/{2,}", "/", text)
    made = [text]
    while any(_BRACES.search(each) for each in made) and len(made) < 200:
        made = [f"{each[: found.start()]}{choice}{each[found.end() :]}" for each in made
                for found in [_BRACES.search(each)] if found for choice in found[1].split(",")
                ] + [each for each in made if not _BRACES.search(each)]  # fmt: skip
    return [*made, *(re.sub(r"\\(.)", r"\1", each) for each in made if broad and "\\" in each)]


_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def _resolved_head(path: str) -> str:
    """The part before the first glob with its links followed."""
    head = re.split(r"[*?]", path, maxsplit=1)[0]
    folder = head.rsplit("/", 1)[0] or "/"
    if head == path:
        return os.path.realpath(path)
    return os.path.realpath(folder).rstrip("/") + path[len(folder.rstrip("/")) :]


def _regex(pattern: str, broad: bool) -> str:
    made, position = "", 0
    pattern = pattern.rstrip("/") if len(pattern) > 1 else pattern
    while position < len(pattern):
        if pattern.startswith("/**", position) and position + 3 == len(pattern):
            made += "(?:/.*)?"
            position += 3
        elif pattern.startswith("**/", position):
            made += "(?:.*/)?"
            position += 3
        elif pattern.startswith("**", position):
            made += ".*"
            position += 2
        elif pattern[position] == "*":
            made += "[^/]*"
            position += 1
        elif pattern[position] == "?":
            made += "[^/]"
            position += 1
        elif broad and (found := re.compile(r"\[([!^]?)(\]?[^\]/]+)\]").match(pattern, position)) is not None:
            # what forbids is about the class of characters and about the name as it stands
            inside = re.sub(r"([\\\[\]^])", r"\\\1", found[2])
            made += f"(?:[{'^/' if found[1] else ''}{inside}]|{re.escape(found[0])})"
            position = found.end()
        else:
            made += re.escape(pattern[position])
            position += 1
    if pattern == "/":
        return "/.*"
    below = broad or not re.search(r"[*?]", pattern.rsplit("/", 1)[-1])
    return made + ("(?:/.*)?" if below else "")


_GUARDED = re.compile(
    r"/\.git(/|$)|/\.brim(/|$)|/\.(bash|zsh|profile|zprofile|zshenv|inputrc|envrc|netrc|npmrc|pypirc|gitconfig|gitmodules)[\w]*$"
    r"|/\.ssh(/|$)|/\.husky(/|$)|/\.vscode(/|$)|/\.idea(/|$)|/\.github/workflows(/|$)|/sitecustomize\.py$",
    re.IGNORECASE,
)


def is_guarded(path: str) -> bool:
    """Files that make other programs run something: changing them is not an edit like others."""
    return _GUARDED.search(path) is not None


def shown(place: Place, workspace: Path) -> str:
    """A place in messages and offered rules: relative inside the workspace, else absolute."""
    root = os.path.realpath(workspace)
    if is_below(place.real, root):
        return os.path.relpath(place.real, root)
    return place.real


def literal_pattern(place: Place, workspace: Path) -> str | None:
    """The pattern of a rule for just this place; None where its name holds globs."""
    text = shown(place, workspace)
    if re.search(r"[*?]", text):
        return None
    return text if text.startswith("/") or text == "." or "/" in text else f"./{text}"


def matching_paths(rules: Iterable[Rule], place: Place, workspace: Path) -> Rule | None:
    """The first rule that covers a place."""
    return next((rule for rule in rules if path_matches(rule, place, workspace)), None)
