"""Files that a command reads, by name or by going through folders, against the rules about reading.

A rule about a file holds for every command that can show it: whether the file stands among its words, in a revision of
git's (`HEAD:.env`), below a folder that is searched, or among what another command lists for xargs.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Sequence

from brim.permissions.contents import limited_contents
from brim.permissions.files import LIMITS, NOTHING, FileJudge
from brim.permissions.git import strip_globals
from brim.permissions.harmless import LOOKERS, SILENT
from brim.permissions.operands import (
    WRITERS,
    folders_of,
    goes_below,
    included,
    known_to_git,
    paths_in,
    pattern_of,
    written_places,
)
from brim.permissions.paths import Place, is_below, locate, matching_paths, shown
from brim.permissions.programs import canonical
from brim.permissions.rules import Rule
from brim.permissions.streams import names_found
from brim.permissions.tracked import repository_of
from brim.permissions.values import Call, Redirect
from brim.permissions.words import Word, known

_COUNT = r'[-\w=]*"?\$(\(\(.*\)\)|[?#$]|\{#\w+\}|\((?!pwd|.*show-toplevel)[^()$`]*\))"?'
"""What becomes a number, a date or a revision, which is no file."""


class ReadJudge(FileJudge):
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
        if not words or words[0].text in SILENT:
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
        if name == "git":
            if rules and self.git_shows(words, folders, rules, text):
                return
            words = known_to_git(words)
        skipped = pattern_of(words)
        written = written_places(name, words)
        if (rule := self.patched(name, words, writes)) is not None:
            self.doubt(text, f"which files it changes stands in a patch, and there is the rule {rule.text}")
            return
        for position, word in enumerate(words[1:], 1):
            if position == skipped:
                continue
            if rules and (word.text or "").startswith("--files0"):
                self.doubt(text, f"{word.raw} names a list of files, and some may not be read")
                return
            if (word.fed and not self.fed_limits(call, folders, rules + writes)) or (
                word.text is None and name in ("cd", "pushd")
            ):
                continue
            if word.found and not self.found_among(word.found, folders, rules + writes):
                continue
            if word.text is None and not word.choices:
                is_count = word.harmless and re.fullmatch(_COUNT, word.raw)
                if word.head != "/dev/fd/" and not is_count and (rules or name in WRITERS):
                    self.doubt(text, f"which file {word.raw} is, is not known, and some may not be read or written")
                    return
                continue
            limits = writes if position in written or (name not in WRITERS and self.is_outside(word, folders)) else []
            for path, tilde, is_glob in [
                (*pair, one.glob) for one in word.choices or [word] for pair in paths_in(one, pieces=name != "git")
            ]:
                for cwd in folders:
                    for each in self.expanded(path, cwd) if is_glob else [path]:
                        if self.limited_place(Word(each, each, tilde=tilde), cwd, rules, limits, name, text):
                            return
        if goes_below(words, folders, self.root):
            named = [word.text for word in words[1:] if word.text and not word.text.startswith("-")]
            for cwd in folders:
                below = [each for each in named if os.path.isdir(os.path.join(cwd or self.root, each))] or ["."]
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

    def is_outside(self, word: Word, folders: Sequence[str | None]) -> bool:
        """Whether a word may name a place outside the workspace."""
        places = [self.place(Word(path, path, tilde=tilde), cwd) for path, tilde in paths_in(word) for cwd in folders]
        return any(place is None or not place.inside for place in places)

    def patched(self, name: str, words: Sequence[Word], writes: Sequence[Rule]) -> Rule | None:
        """The first rule about writing in the workspace that a patch may touch: what it changes stands in it alone."""
        verb = next((word.text for word in strip_globals(words)[1:2]), None) if name == "git" else None
        if name != "patch" and verb not in ("apply", "am"):
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

    def held(self, folder: str, cwd: str, rules: Sequence[Rule], name_glob: str = "*") -> Rule | None:
        """The first rule that covers something in a folder, as far as a short look tells; only files of some names. Of a
        folder with too many files it is the first of all."""
        top = os.path.realpath(os.path.join(cwd, folder))
        seen = 0
        for path, folders, files in os.walk(top) if rules else ():
            for name in (*files, *folders):
                seen += 1
                if not fnmatch.fnmatchcase(name.casefold(), name_glob.casefold()):
                    continue
                full = os.path.join(path, name)
                place = locate(full, self.workspace) if os.path.islink(full) else Place(full, full, True)
                rule = matching_paths(rules, place, self.workspace) if place is not None else None
                if rule is not None:
                    return rule
            if seen > 3000:
                return rules[0]
        return None

    def found_among(self, found: Sequence[str], folders: Sequence[str | None], rules: Sequence[Rule]) -> bool:
        """Whether what a search finds may hold a file that a rule covers. `found`: a glob of names, and the folders."""
        return bool(rules) and any(
            cwd is None or self.held(folder, cwd, rules, found[0]) for folder in found[1:] for cwd in folders
        )

    def fed_limits(self, call: Call, folders: Sequence[str | None], rules: Sequence[Rule]) -> bool:
        """Whether what xargs reads may name a file that a rule covers: what find finds, or git lists, is looked at; what a
        search names it has read, and was judged for."""
        words = call.feed
        texts = [word.text or "" for word in words]
        name = canonical(texts[0]) if texts else ""
        whole = any(re.match(r"-0|-d|--null|--delim|-\w*0", word.text or "") for word in call.words)
        if any(word.text is None for word in words) or not self.plain_names(whole):
            return True
        if name == "find":
            found = names_found(words)
            shows = [text for text in texts if re.match(r"-(exec|ok|printf|f|ls|del)", text)]
            return bool(shows) or not found or self.found_among(found, folders, rules)
        if name in ("grep", "rg") and pattern_of(words) is not None:
            return not any(re.fullmatch(r"-[a-zA-Z]*l[a-zA-Z]*|--files-with.*", text) for text in texts)
        if name == "git":
            shape = [text for text in texts[1:] if not text.startswith("--no-pager")]
            lists = shape[:1] == ["ls-files"] or (shape[:1] == ["diff"] and "--name-only" in shape)
            searches = shape[:1] == ["grep"] and bool({"-l", "--files-with-matches"} & set(shape))
            others = any(re.match(r"-\w*[oi]|--oth|--ign", text) for text in shape[1:])
            if searches or not lists or others:
                return not searches
            places = [repository_of(cwd or self.root) for cwd in folders]
            return any(
                place is None or place.files is None or any(
                    matching_paths(rules, Place(path, path, True), self.workspace)
                    for path in (os.path.join(place.top, file) for file, _ in place.files))
                for place in places
            )  # fmt: skip
        return True

    def plain_names(self, whole: bool) -> bool:
        """Whether no file of the workspace has a name that reads as an option or, unless xargs takes lines as a `whole`, as
        several; as far as a short look tells."""
        odd = re.compile(r"-" if whole else r"-|.*[\s'\"\\]", re.DOTALL)
        seen = 0
        for path, folders, files in os.walk(self.root):
            if ".git" in folders and path == self.root:
                folders.remove(".git")
            seen += len(files) + len(folders)
            if seen > 3000 or any(odd.match(each) for each in (*files, *folders)):
                return False
        return True
