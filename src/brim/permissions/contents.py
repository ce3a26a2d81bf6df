"""Whose contents a git command shows: files named in a revision (`HEAD:.env`), and all it sweeps over (`git diff`).

Git shows files that it tracks without their names standing in the command. What its words name is a path; what it
sweeps over is every tracked file that its pathspecs leave.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from brim.permissions.effects import Option, read_options
from brim.permissions.paths import Place, path_matches
from brim.permissions.rules import Rule
from brim.permissions.tracked import Repository, repository_of
from brim.permissions.words import Word, names

SHOWS = names(
    "show diff cat-file log whatchanged blame annotate grep archive diff-tree diff-index diff-files difftool range-diff"
    " format-patch hash-object stash reflog unpack-file merge-file fast-export bundle apply checkout-index rebase am"
    " request-pull merge-tree"
)
"""Subcommands that can show what is in files."""
_NAMES_BLOBS = names(
    "show diff cat-file log whatchanged blame annotate grep archive diff-tree diff-index diff-files difftool ls-tree"
    " unpack-file merge-file range-diff format-patch read-tree checkout restore"
)
"""Subcommands that take `REVISION:PATH`."""
_ALL = names("archive fast-export bundle format-patch range-diff checkout-index difftool")
_PATCHES = names("log whatchanged reflog diff-tree diff-index diff-files stash request-pull")
_PATCH = re.compile(
    r"--(patch.*|unified.*|cc|dd|word-diff.*|color-words.*|binary|remerge-diff|diff-merges.*|function-context|show-current-patch.*)"
    r"|-(?![SGOnlIXLMCB])\w*[puUcWL]\w*|-L.*"
)
_SHORT_OF_CONTENT = re.compile(
    r"--(stat.*|numstat|shortstat|dirstat.*|name-only|name-status|summary|compact-summary|raw|no-patch|quiet)|-[sq]"
)
_PICKS = names("add checkout reset restore commit")
"""Subcommands that show what they let one pick from."""
_LETTERS = {"grep": "efABCm", "blame": "LSC", "log": "nSGLO", "diff": "SGOU", "show": "SGnOL", "format-patch": "oSGOUv",
            "cat-file": "", "archive": "o"}  # fmt: skip


_MOST = 3000
"""Files that are looked at where no index lists them."""


class Spec(msgspec.Struct, frozen=True):
    """A pathspec: `pattern` below the top of the repository, `fold`: in any case; `negative`: it takes away."""

    pattern: str
    fold: bool = False
    negative: bool = False

    def covers(self, name: str) -> bool:
        """Whether it names a tracked file, or a folder that holds it. Git's `*` stands for slashes, too."""
        pattern = self.pattern.casefold() if self.fold else self.pattern
        name = name.casefold() if self.fold else name
        if pattern == "." or name == pattern or name.startswith(f"{pattern}/"):
            return True
        if re.search(r"[\[\\]", pattern):
            # classes and escapes: what adds may be about more than it says, what takes away about nothing
            if self.negative:
                return False
            pattern = re.sub(r"[\[\\].*", "*", pattern)
        return any(fnmatch.fnmatchcase(name, f"{each}{end}")
                   for each in {pattern, pattern.replace("**/", "")} for end in ("", "/*"))  # fmt: skip


class Shown(msgspec.Struct, frozen=True):
    """`paths`: candidates for named files, absolute; `objects`: words that may be object ids; `sweeps`: every tracked file
    that `specs` (those that add: none of them means all) leave; `unnamed`: objects whose names come from its input."""

    paths: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    sweeps: bool = False
    specs: tuple[Spec, ...] = ()
    unnamed: bool = False

    def is_after(self, name: str) -> bool:
        """Whether a pathspec with stars or magic, and not just a folder or all there is, takes in a name."""
        return self.covers(name) and any(
            not spec.negative and spec.covers(name) and (spec.fold or re.search(r"[*?\[]", spec.pattern))
            for spec in self.specs
        )

    def covers(self, name: str) -> bool:
        """Whether a tracked file (by its name below the repository's top) is swept over."""
        if not self.sweeps or any(spec.negative and spec.covers(name) for spec in self.specs):
            return False
        wanted = [spec for spec in self.specs if not spec.negative]
        return not wanted or any(spec.covers(name) for spec in wanted)


def limited_contents(
    rules: Sequence[Rule], words: Sequence[Word], cwd: str, workspace: Path
) -> tuple[Rule, str, bool] | None:
    """The first rule that a git command (global options stripped) touches: with the file, and whether the words name it.

    `words` must be known; files of history that are no longer tracked are found only by their names.
    """
    cwd = os.path.realpath(cwd)
    repository = repository_of(cwd) or Repository(cwd, ())
    shown = shown_by(words, cwd, repository.top)
    for path in shown.paths:
        for rule in rules:
            if path_matches(rule, Place(os.path.realpath(path), path, True), workspace):
                return rule, os.path.relpath(path, os.path.realpath(workspace)), True
    if rules and shown.unnamed:
        return rules[0], "any object", False
    if not shown.sweeps and not shown.objects:
        return None
    if repository.files is None:
        return (rules[0], "files that are not known", False) if rules else None
    files = repository.files
    if len(words) > 1 and words[1].text == "grep":
        # outside a repository, and with settings that a user may have, it searches what is not tracked, too
        files = (*files, *_lying_below(repository.top))
    for name, identity in files:
        named = any(identity.startswith(each) for each in shown.objects)
        if not named and not shown.covers(name):
            continue
        path = os.path.join(repository.top, name)
        for rule in rules:
            if path_matches(rule, Place(path, path, True), workspace):
                return rule, name, named
    for rule in rules:
        # history may hold what is tracked no more: a pattern that was made to find it does
        gone = os.path.relpath(os.path.join(os.path.realpath(workspace), rule.pattern or "."), repository.top)
        if not re.search(r"[*?\[{]", gone) and shown.is_after(gone):
            return rule, gone, False
    return None


def _lying_below(top: str) -> list[tuple[str, str]]:
    """The first files below a folder, in the form of an index: `_MOST` and some at most."""
    found: list[tuple[str, str]] = []
    for path, folders, files in os.walk(top):
        if path == top and ".git" in folders:
            folders.remove(".git")
        found += [(os.path.relpath(os.path.join(path, file), top), "-") for file in files]
        if len(found) > _MOST:
            break
    return found


def shown_by(words: Sequence[Word], cwd: str, top: str) -> Shown:
    """What a git command (global options stripped) shows; `cwd`: where it runs; `top`: its repository's folder."""
    verb = words[1].text or "" if len(words) > 1 else ""
    rest = words[2:]
    texts = [word.text or "" for word in rest]
    cut = texts.index("--") if "--" in texts else len(texts)
    options = list(read_options(rest, _LETTERS.get(verb, ""), ("--file", "--regexp")))
    operands = [option.word for option in options if option.name is None and option.index < cut]
    if verb == "grep" and not any(option.name in ("-e", "-f") or (option.name or "").startswith(("--reg", "--fil"))
                                  for option in options):  # fmt: skip
        operands = operands[1:]
    pathspecs = texts[cut + 1 :]
    pathspecs += [word.text or "" for word in operands if _is_pathspec(word, cwd)]
    specs = [_pathspec(text, cwd, top) for text in pathspecs]
    paths = [os.path.join(top, spec.pattern) for spec in specs if not spec.negative]
    blobs = list(_blobs(verb, texts[:cut], options, cwd, top))
    if verb in ("grep", "archive", "diff"):
        specs += [Spec(os.path.relpath(path, top)) for path in blobs]
    only_blobs = bool(blobs) and all(":" in (word.text or "") for word in operands)
    return Shown(
        tuple(dict.fromkeys([*blobs, *paths])),
        tuple(word.text for word in operands if word.text and re.fullmatch(r"[0-9a-f]{4,40}", word.text)),
        not (verb == "show" and only_blobs) and _sweeps(verb, [t for t in texts[:cut] if t.startswith("-")], operands),
        tuple(spec for spec in specs if spec.pattern or spec.negative),
        verb == "cat-file" and any(re.match(r"--batch(-command|-all-objects|=|$)", text) for text in texts),
    )


def _is_pathspec(word: Word, cwd: str) -> bool:
    """Whether an operand before any `--` is a path: what is there, a pattern, or one with magic."""
    text = word.text or ""
    return word.glob or re.match(r":[(!^/]|[^:]*[*?\[]", text) is not None or os.path.lexists(os.path.join(cwd, text))


def _blobs(verb: str, texts: Sequence[str], options: Sequence[Option], cwd: str, top: str) -> Iterator[str]:
    """Paths that are named inside words: `HEAD:path`, `:0:path`, `-L 1,5:path`. A revision may hold colons of its own."""
    found: list[str] = []
    if verb in _NAMES_BLOBS:
        for text in texts:
            if not re.match(r"--(format|pretty|date|author|grep|since|until)|:[(!^]", text):
                found += [text[at + 1 :] for at in range(len(text)) if text[at] == ":"]
    for option in options:
        if option.name == "-L" and option.value is not None and option.value.text:
            found.append(option.value.text.rpartition(":")[2])
    for path in found:
        if path:
            yield os.path.normpath(os.path.join(top, path.lstrip("/")))
            yield os.path.normpath(os.path.join(cwd, path))


def _pathspec(text: str, cwd: str, top: str) -> Spec:
    magic = re.match(r":\(([^)]*)\)|:([!^/]*):?", text)
    words = (magic[1] or "").split(",") if magic else []
    signs = (magic[2] or "") if magic else ""
    body = text[magic.end() :] if magic else text
    full = os.path.normpath(os.path.join(top if "top" in words or "/" in signs else cwd, body or "."))
    negative = "exclude" in words or "!" in signs or "^" in signs
    if negative and set(words) - {"", "exclude", "top", "glob", "icase"}:
        return Spec("", False, True)  # how much it takes away is not known: nothing, then
    return Spec(os.path.relpath(full, top), "icase" in words, negative)


def of_pathspecs(texts: Sequence[str], cwd: str, top: str) -> Callable[[str], bool]:
    """Which tracked files (names below the top of the repository) some pathspecs leave."""
    shown = Shown(sweeps=True, specs=tuple(_pathspec(text, os.path.realpath(cwd), top) for text in texts))
    return shown.covers


def _sweeps(verb: str, options: Sequence[str], operands: Sequence[Word]) -> bool:
    patch = any(_PATCH.fullmatch(option) for option in options)
    short = any(_SHORT_OF_CONTENT.fullmatch(option) for option in options)
    if verb in _ALL or verb == "grep":
        return True
    if verb == "clone":
        return bool(operands) and ":" not in (operands[0].text or "")
    if verb in ("show", "diff"):
        return patch or not short
    if verb == "log" and all(option.startswith("-L") for option in options if _PATCH.fullmatch(option)):
        return False  # lines of the files that it names
    if verb in _PATCHES:
        return patch
    if verb == "worktree":
        return bool(operands) and operands[0].text == "add"
    if verb in ("rebase", "am"):
        return any(option.startswith("--show") for option in options)
    if verb in ("status", "commit"):
        return any(re.fullmatch(r"-[a-z]*v[a-z]*|--verbose", option) for option in options)
    return verb in _PICKS and any(re.fullmatch(r"-\w*p|--patch|--interactive|-i|-e", option) for option in options)
