"""Files that a command reads, by name or by going through folders, against the rules about reading.

A rule about a file holds for every command that can show it: whether the file stands among its words, in a revision of
git's (`HEAD:.env`), below a folder that is searched, or among what another command lists for xargs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from brim.permissions.contents import limited_contents
from brim.permissions.files import LIMITS, NOTHING
from brim.permissions.git import strip_globals
from brim.permissions.globs import may_meet
from brim.permissions.harmless import LOOKERS, NAMING, PATHLESS
from brim.permissions.listings import ListingJudge
from brim.permissions.operands import (
    WRITERS,
    folders_of,
    goes_below,
    included,
    is_no_file,
    known_to_git,
    paths_in,
    pattern_of,
    searched_by_rg,
    swept,
    volumes,
    written_places,
)
from brim.permissions.paths import absolute_patterns, is_below, matching_paths, shown
from brim.permissions.programs import canonical
from brim.permissions.rules import Rule
from brim.permissions.values import Call, Redirect
from brim.permissions.words import Word, known

_COUNT = r'[-\w=:]*"?\$(\(\(.*\)\)|[?#$]|\{#\w+\}|\((?!pwd|.*show-toplevel)[^()$`]*\))"?'
"""What becomes a number, a date or a revision, which is no file."""


class ReadJudge(ListingJudge):
    """Judges redirections, and the files among a command's words."""

    def redirect(self, redirect: Redirect, call: Call) -> None:
        operator, target = redirect.operator, redirect.target
        text = target.text
        if operator in (">&", "<&") and text is not None and re.fullmatch(r"\d*-?", text):
            return
        if text in NOTHING or (text is not None and re.fullmatch(r"/dev/fd/\d+", text)):
            return
        if operator in ("<", "<&"):
            if text is not None and text.startswith(("/dev/tcp/", "/dev/udp/")):
                self.doubt(f"{operator} {target.raw}", "it opens a network connection")
            self.read(target, call, f"{operator} {target.raw}")
            return
        self.write(target, call, f"{operator} {target.raw}")

    def read(self, target: Word, call: Call, text: str) -> None:
        self.denied_paths([known("cat"), target], call, text)

    def denied_paths(self, words: Sequence[Word], call: Call, text: str) -> None:
        """Deny and ask rules about files hold for the arguments of commands, too."""
        if not words or words[0].text in PATHLESS:
            return
        name = canonical(words[0].text or "")
        rules = [rule for decision in LIMITS for rule in self.rules.of(decision, "read") if rule.pattern is not None]
        writes = [
            rule
            for decision in LIMITS
            for rule in self.rules.of(decision, "write", "edit")
            if rule.pattern is not None and name not in LOOKERS
        ]
        if not rules and not writes:
            return
        folders = [each for cwd in call.cwds for each in folders_of(words, cwd, self.root)]
        for volume in volumes(words) if rules else ():
            if any(
                not self.place_inside(volume, cwd) and self.held(volume, cwd or self.root, rules) for cwd in folders
            ):
                self.doubt(text, f"it hands on {volume}, which may hold what may not be read")
                return
        if name == "git":
            if rules and self.git_shows(words, folders, rules, text):
                return
            words = known_to_git(words)
        skipped = pattern_of(words)
        written = written_places(name, words)
        if (rule := self.patched(name, words, writes)) is not None:
            self.doubt(text, f"which files it changes stands in a patch, and there is the rule {rule.text}")
            return
        sizes = {
            (name, letter) for word in words[1:] if re.fullmatch(r"-\w+", word.text or "") for letter in word.text or ""
        }
        for position, word in enumerate(words[1:], 1):
            if position == skipped:
                continue
            if rules and (word.text or "").startswith("--files0"):
                self.doubt(text, f"{word.raw} names a list of files, and some may not be read")
                return
            feed = call.feed if word.fed else word.listed
            if (feed and not self.fed_limits(feed, call, folders, rules + writes)) or (
                word.text is None and name in ("cd", "pushd")
            ):
                continue
            if word.text is None and name in NAMING and not writes and not self.tame(word, call).may_be_option():
                continue
            if None in folders and is_no_file(words, position):
                continue
            is_count = word.harmless and re.fullmatch(_COUNT, word.raw)
            if word.text is None and word.sample and not is_count:
                word = Word(word.raw, word.sample.replace("\0", "*"), glob=True)
            if word.found and not self.found_among(word.found, folders, rules + writes):
                continue
            if word.text is None and not word.choices:
                if word.head != "/dev/fd/" and not is_count and (rules or name in WRITERS):
                    self.doubt(text, f"which file {word.raw} is, is not known, and some may not be read or written")
                    return
                continue
            if word.glob and (name, "d" if name == "ls" else "s") in sizes:
                continue
            limits = writes if position in written or (name not in WRITERS and self.is_outside(word, folders)) else []
            for path, tilde, is_glob in [
                (*pair, one.glob) for one in word.choices or [word] for pair in paths_in(one, pieces=name != "git")
            ]:
                for cwd in folders:
                    expanded = self.expanded(path, cwd) if is_glob else [path]
                    if is_glob and expanded == [path] and self.may_name(path, tilde, cwd, rules + limits, text):
                        return
                    for each in expanded:
                        if self.limited_place(Word(each, each, tilde=tilde), cwd, rules, limits, name, text):
                            return
        if goes_below(words, folders, self.root) and not (name == "rg" and call.feed and not searched_by_rg(words)):
            for cwd in folders:
                below = swept(words, cwd or self.root)
                limits = rules + (writes if name in WRITERS else [])
                held = (
                    self.held(each, cwd or self.root, limits, glob) for each in below for glob in included(name, words)
                )
                if (found := next(filter(None, held), None)) is not None:
                    self.doubt(text, f"it goes through folders that hold what {found.text} is about")
                    return

    def limited_place(
        self, word: Word, cwd: str | None, rules: Sequence[Rule], writes: Sequence[Rule], name: str, text: str
    ) -> bool:
        """Judge one path that a command names. True where a rule is about it, or it is not known which one it is."""
        place = self.place(word, cwd)
        if place is None:
            if cwd is None or word.tilde:
                self.doubt(text, f"where {word.raw} lies is not known")
                return True
            return False
        rule = matching_paths([*rules, *(writes if name in WRITERS else ())], place, self.workspace)
        if rule is not None:
            self.add(text, rule.decision, f"it names {shown(place, self.workspace)}: {rule.text}", rule.text)
            return True
        rule = matching_paths(writes, place, self.workspace)
        if rule is not None:
            self.add(text, "ask", f"it may write {shown(place, self.workspace)}: {rule.text}", rule.text)
            return True
        return False

    def may_name(self, pattern: str, tilde: bool, cwd: str | None, rules: Sequence[Rule], text: str) -> bool:
        """A pattern that names nothing here and now, judged by what it says. True where a rule is about what it may name."""
        path = os.path.expanduser(pattern) if tilde else pattern
        whole = os.path.normpath(os.path.join(cwd or "/*", path))
        for rule in rules:
            if any(may_meet(whole, each) for each in absolute_patterns(rule, self.workspace)):
                self.doubt(text, f"{pattern} may name what {rule.text} is about")
                return True
        return False

    def place_inside(self, path: str, cwd: str | None) -> bool:
        place = self.place(known(path), cwd)
        return place is not None and place.inside

    def is_outside(self, word: Word, folders: Sequence[str | None]) -> bool:
        """Whether a word may name a place outside the workspace."""
        places = [self.place(Word(path, path, tilde=tilde), cwd) for path, tilde in paths_in(word) for cwd in folders]
        return any(place is None or not place.inside for place in places)

    def patched(self, name: str, words: Sequence[Word], writes: Sequence[Rule]) -> Rule | None:
        """The first rule about writing in the workspace that a patch may touch: what it changes stands in it alone."""
        verb = next((word.text for word in strip_globals(words)[1:2]), None) if name == "git" else None
        if name != "patch" and verb not in ("apply", "am"):
            return None
        if {"--stat", "--numstat", "--summary", "--check"} & {word.text for word in words}:
            return None
        return next((rule for rule in writes if not os.path.isabs(os.path.expanduser(rule.pattern or ""))
                     or is_below(rule.pattern or "", self.root)), None)  # fmt: skip

    def git_shows(self, words: Sequence[Word], folders: Sequence[str | None], rules: Sequence[Rule], text: str) -> bool:
        """What git shows without a file's name standing among its words, or inside one. True where a rule is about it."""
        shape = [word for word in strip_globals(words) if word.text is not None]
        for cwd in folders:
            if cwd is None:
                continue
            found = limited_contents(rules, shape, cwd, self.workspace)
            if found is not None:
                rule, file, named = found
                if named:
                    self.add(text, rule.decision, f"it shows {file}: {rule.text}", rule.text)
                else:
                    self.doubt(text, f"it can show {file}, which {rule.text} is about")
                return True
        return False
