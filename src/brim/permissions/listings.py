"""Names of files that one command hands to another: what find finds, git lists, echo says, through xargs or a variable.

A rule about a file holds for whoever gets its name that way. What is handed on is looked at where it can be: the folder
that is searched, the index of a repository, the words that are told.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Sequence

import msgspec

from brim.permissions.contents import of_pathspecs
from brim.permissions.files import FileJudge
from brim.permissions.git import strip_globals
from brim.permissions.globs import may_meet
from brim.permissions.operands import pattern_of
from brim.permissions.paths import Place, absolute_patterns, is_below, locate, matching_paths
from brim.permissions.programs import canonical
from brim.permissions.rules import Rule
from brim.permissions.streams import names_found
from brim.permissions.tracked import repository_of
from brim.permissions.values import Call
from brim.permissions.words import Word

_LISTS = {
    "ls": r"(?!.*-\w*l)", "fd": "", "grep": r"(.* )?(-\w*l|--files-with)", "rg": r"(.* )?(-\w*l|--files)",
    "git": r".*(ls-files|--name-only|grep .*(-\w*l|--files-with))",
}  # fmt: skip
"""What lists names of files: a pattern of the options that a program does it with."""


def _is_revisions(words: Sequence[Word]) -> bool:
    """Whether a git command prints revisions, and no names of files."""
    shape = " ".join(word.text or "" for word in strip_globals(words)[1:])
    return (
        re.match(r"rev-list(?!.*--objects)|rev-parse(?!.*:)|log .*--(format|pretty)=(format:)?%[hH]( |$)", shape)
        is not None
    )


def _takes_whole(call: Call) -> bool:
    """Whether xargs takes what it reads by lines or zeros, so that blanks part nothing."""
    return any(re.match(r"-0|-d|--null|--delim|-\w*0", word.text or "") for word in call.words)


class ListingJudge(FileJudge):
    """Judges what is handed on."""

    def tame(self, word: Word, call: Call) -> Word:
        """An unknown word without the doubt that it may be an option, where what it comes out of gives none."""
        feed = call.feed if word.fed else word.listed
        if word.text is not None or not feed or not self.gives_no_options(feed, call):
            return word
        return msgspec.structs.replace(word, harmless=True)

    def gives_no_options(self, feed: Sequence[Word], call: Call) -> bool:
        """Whether a command lists numbers, revisions, or names of files, none of which begins with a dash."""
        texts = [word.text or "" for word in feed]
        name, options = texts[0], " ".join(texts[1:])
        if any(word.tilde or word.glob or re.match(r"/|\.\.", word.text or "/") for word in feed[1:]) and name != "git":
            return False
        if name == "seq" or (name in ("docker", "podman") and re.match(r"(ps|images) .*-\w*q", options)):
            return True
        if name in ("pgrep", "pidof") or (name == "lsof" and "-t" in texts):
            return True
        if name == "git" and _is_revisions(feed):
            return True
        finds = name == "find" and not re.search(r"-(exec|ok|printf|fprint|ls)", options)
        lists = re.match(_LISTS.get(name, r"\0"), options)
        return bool(finds or lists) and self.plain_names(_takes_whole(call))

    def held(
        self, folder: str, cwd: str, rules: Sequence[Rule], name_glob: str = "*", *, hidden: bool = True
    ) -> Rule | None:
        """The first rule that covers something in a folder, as far as a short look tells; only files of some names. Of a
        folder with too many files it is the first of all; of one outside the workspace what the rules say is enough."""
        top = os.path.realpath(os.path.join(cwd, os.path.expanduser(folder)))
        if not is_below(top, self.root):
            for one in rules:
                heads = [re.split(r"[*?\[]", each, maxsplit=1)[0] for each in absolute_patterns(one, self.workspace)]
                if any(
                    head != "/" and not is_below(head, self.root) and is_below(head.rstrip("/"), top) for head in heads
                ):
                    return one
        if name_glob.strip("*?"):
            for one in rules:
                lasts = [os.path.basename(each) for each in absolute_patterns(one, self.workspace)]
                if any(
                    may_meet(f"/{name_glob}", f"/{last}")
                    for last in lasts
                    if last.startswith(".") and (name_glob.startswith(".") or not re.search(r"[*?\[]", last))
                ):
                    return one  # a search made for it, whether or not it is there
        seen = 0
        for path, folders, files in os.walk(top) if rules else ():
            folders[:] = [each for each in folders if hidden or not each.startswith(".")]
            for name in (*files, *folders):
                seen += 1
                if not hidden and name.startswith("."):
                    continue
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

    def fed_limits(
        self, words: Sequence[Word], call: Call, folders: Sequence[str | None], rules: Sequence[Rule]
    ) -> bool:
        """Whether what a command lists, for xargs or a variable, may name a file that a rule covers: what find finds, or git
        or ls list, is looked at; what a search names it has read, and was judged for."""
        texts = [word.text or "" for word in words]
        name = canonical(texts[0]) if texts else ""
        if name in ("seq", "pgrep", "pidof") or (
            name in ("lsof", "docker", "podman") and self.gives_no_options(words, call)
        ):
            return False
        if any(word.text is None for word in words):
            return True
        if name == "git" and _is_revisions(words):
            return False
        if name in ("echo", "printf"):
            return any(cwd is None or self.told_limits(words, call, cwd, rules) for cwd in folders)
        if not self.plain_names(_takes_whole(call)):
            return True
        if name == "ls":
            return any(cwd is None or self.listed_limits(words, cwd, rules) for cwd in folders)
        if (
            name == "rg"
            and "--files" in texts
            and not any(re.match(r"-\w*[uL.]|--(hidden|no-ig|unr|follow)", text) for text in texts)
        ):
            return any(cwd is None or self.held(".", cwd, rules, hidden=False) for cwd in folders)
        if name == "find":
            found = names_found(words)
            shows = [text for text in texts if re.match(r"-(exec|ok|printf|f|ls|del)", text)]
            return bool(shows) or not found or self.found_among(found, folders, rules)
        if name in ("grep", "rg") and pattern_of(words) is not None:
            return not any(re.fullmatch(r"-[a-zA-Z]*l[a-zA-Z]*|--files-with.*", text) for text in texts)
        if name == "git":
            shape = [word.text or "" for word in strip_globals(words)[1:]] if "-C" not in texts else []
            lists = shape[:1] == ["ls-files"] or (shape[:1] == ["diff"] and "--name-only" in shape)
            searches = shape[:1] == ["grep"] and bool({"-l", "--files-with-matches"} & set(shape))
            others = any(re.match(r"-\w*[oi]|--oth|--ign", text) for text in shape[1:])
            if searches or not lists or others:
                return not searches
            return any(cwd is None or self.tracked_limits(shape, cwd, rules) for cwd in folders)
        return True

    def tracked_limits(self, shape: Sequence[str], cwd: str, rules: Sequence[Rule]) -> bool:
        """Whether `git ls-files` or `git diff --name-only` may list a file that a rule covers. Where there is no repository
        there is no list."""
        place = repository_of(cwd)
        if place is None or place.files is None:
            return place is not None
        after = shape[shape.index("--") + 1 :] if "--" in shape else shape[1:] if shape[0] == "ls-files" else []
        kept = of_pathspecs([text for text in after if not text.startswith("-")], cwd, place.top)
        return any(
            matching_paths(rules, Place(path, path, True), self.workspace)
            for path in (os.path.join(place.top, file) for file, _ in place.files if kept(file))
        )

    def told_limits(self, words: Sequence[Word], call: Call, cwd: str, rules: Sequence[Rule]) -> bool:
        """Whether `echo` or `printf '%s\\n'` may name a file that a rule covers."""
        rest = [word for word in words[1:] if word.text != "-n"]
        if words[0].text == "printf":
            if not rest or rest[0].text not in ("%s", "%s ", "%s\\n", "%s\\0"):
                return True
            rest = rest[1:]
        if any(word.glob or word.tilde or re.match(r"-|.*[\\'\"]", word.text or "") for word in rest):
            return True
        if any(re.match(r"-\w*d|--delim", word.text or "") for word in call.words):
            return True
        places = (locate(name, self.workspace, cwd) for word in rest for name in (word.text or "").split())
        return any(place is None or matching_paths(rules, place, self.workspace) for place in places)

    def listed_limits(self, words: Sequence[Word], cwd: str, rules: Sequence[Rule]) -> bool:
        """Whether `ls` may list a file that a rule covers: files by their names, of folders what lies in them."""
        options = "".join(text for word in words[1:] if (text := word.text or "").startswith("-"))
        if re.search(r"[lRL]|--", options):
            return True
        files = [word for word in words[1:] if not (word.text or "").startswith("-")]
        names = [
            each for word in files for each in (self.expanded(word.text or "", cwd) if word.glob else [word.text or ""])
        ]
        if any(word.tilde for word in files):
            return True
        for listed in [each for each in names or ["."] if os.path.isdir(os.path.join(cwd, each))]:
            inside = os.listdir(os.path.join(cwd, listed))
            names += [each for each in inside if re.search("[aA]", options) or not each.startswith(".")]
        places = (locate(name, self.workspace, cwd, home=False) for name in names)
        return any(place is None or matching_paths(rules, place, self.workspace) for place in places)

    def plain_names(self, whole: bool) -> bool:
        """Whether no file of the workspace has a name that reads as an option or, unless xargs takes lines as a `whole`, as
        several; as far as a short look tells."""
        if self.spaced or self.dashed:
            return False
        odd = re.compile(r"-" if whole else r"-|.*[\s'\"\\]", re.DOTALL)
        seen = 0
        for path, folders, files in os.walk(self.root):
            if ".git" in folders and path == self.root:
                folders.remove(".git")
            seen += len(files) + len(folders)
            if seen > 3000 or any(odd.match(each) for each in (*files, *folders)):
                return False
        return True
