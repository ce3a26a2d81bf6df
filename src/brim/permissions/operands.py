"""Which words of a command may be files, what folders they start from, and whether it takes all that lies below."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from brim.permissions.contents import SHOWS
from brim.permissions.effects import read_options
from brim.permissions.git import strip_globals
from brim.permissions.programs import canonical
from brim.permissions.words import Word, names


def paths_in(word: Word, *, pieces: bool = True) -> list[tuple[str, bool]]:
    """What of a word may be a path: the word, the value of an option, what follows `@` or `=`, and the `pieces`
    between `,` and `:`."""
    text = word.text or ""
    found = [(text, word.tilde)]
    if text.startswith("-"):
        found = [(text[at:], False) for at in range(2, 6) if text[1:at].isalpha()] if text[1:2] != "-" else []
    if "=" in text:
        value = text.partition("=")[2]
        found.append((value, value.startswith("~")))
    if pieces and re.search(r"[,:]", text) and not re.search(r"\s", text):
        found += [(piece.rpartition("=")[2], word.tilde and not at) for at, piece in enumerate(re.split(r"[,:]", text))]
    found += [(path[1:], False) for path, _ in list(found) if path.startswith("@")]
    return [(path, tilde) for path, tilde in dict.fromkeys(found) if path]


def folders_of(words: Sequence[Word], cwd: str | None, root: str) -> list[str | None]:
    """The folders that a command's paths may start from: where it runs, and what `-C` names."""
    found = [cwd]
    if canonical(words[0].text or "") == "ln" and (last := words[-1].text) is not None and cwd is not None:
        # what a symbolic link says is read from where the link lies
        there = os.path.join(cwd, last)
        return [cwd, there if os.path.isdir(there) else os.path.dirname(there)]
    if canonical(words[0].text or "") not in ("git", "tar", "make", "ninja", "gmake"):
        return found
    at: str | None = cwd
    for position, word in enumerate(words[1:], 1):
        text = word.text or word.head
        value: str | None = None
        if text in ("-C", "--directory") and position + 1 < len(words):
            value = words[position + 1].text
        elif text.startswith("--directory="):
            value = text.partition("=")[2]
        elif re.match(r"-C.", text):
            value = text[2:]
        else:
            continue
        at = None if value is None else os.path.join(at or root, value)
        found.append(at)
    return found[1:] if canonical(words[0].text or "") == "git" and len(found) > 1 else found


def known_to_git(words: Sequence[Word]) -> list[Word]:
    """A git command's words without those that are surely no files: revisions that another git command found."""
    shape = strip_globals(words)
    shows = len(shape) > 1 and shape[1].text in SHOWS
    ended = next((index for index, word in enumerate(words) if word.text == "--"), len(words))
    return [
        word
        for index, word in enumerate(words)
        if word.text is not None
        or (shows and not (word.harmless and index < ended and not word.head and re.match(r'"?(\$\(|`)', word.raw)))
    ]


_VERBS_ONLY = names(
    "npm pnpm yarn bun cargo go make docker podman kubectl terraform gradle mvn dotnet bundle rails mix gh"
)


def is_no_file(words: Sequence[Word], position: int) -> bool:
    """Whether a word is a subcommand, a target or a module, wherever the command runs."""
    name = canonical(words[0].text or "")
    text = words[position].text or "."
    if name == "git":
        verb = strip_globals(words)[1:2]
        return bool(verb) and verb[0] is words[position]
    if name == "python":
        return words[position - 1].text == "-m"
    return name in _VERBS_ONLY and re.fullmatch(r"[a-z][\w:-]*", text) is not None


def volumes(words: Sequence[Word]) -> list[str]:
    """The folders that a container is given: `docker run -v ~/x:/x`."""
    if canonical(words[0].text or "") not in ("docker", "podman", "nerdctl"):
        return []
    found: list[str] = []
    for position, word in enumerate(words[1:], 1):
        text = word.text or word.head
        before = words[position - 1].text
        if before in ("-v", "--volume") or text.startswith(("-v", "--volume=")):
            path = re.sub(r"^(-v|--volume=)", "", text).split(":")[0]
            found.append(os.path.expanduser(path) if word.tilde else path)
        elif before == "--mount" or text.startswith("--mount="):
            found += re.findall(r"(?:src|source)=([^,]*)", text)
    return [path for path in found if path.startswith(("/", "."))]


def pattern_of(words: Sequence[Word]) -> int | None:
    """Where among its words a command has a program or a pattern that is no file: `grep '.env' f`. None where it is not
    certain to have one."""
    name = canonical(words[0].text or "")
    letters = _PATTERN_FIRST.get(name)
    if letters is None:
        return None
    for option in read_options(words[1:], letters, ("--include", "--exclude", "--glob", "--type")):
        if option.name is None:
            return option.index + 1
        if option.name == "?" or re.match(r"-[efE]$|--(r|f|e|so|i[mn]*$|args|json|l)", option.name):
            return None
    return None


_PATTERN_FIRST = {"grep": "efABCmdD", "rg": "eEfgjmABCrMtTd", "sed": "efl", "awk": "FvWeEfil", "jq": "fL"}


WRITERS = names(
    "cp mv tee touch mkdir ln install dd truncate chmod chown chgrp rsync tar unzip sed patch rm rmdir shred scp split"
    " csplit zip gzip gunzip bzip2 xz 7z ed ex vim nano emacs sort curl wget"
)
"""Commands whose arguments may be files they write."""
_REWRITES = names("black yapf autopep8 gofmt rustfmt isort clang-format dos2unix unix2dos sponge")
"""Formatters: they write what they are given to read."""
_COPIES = names("cp install scp rsync")
_WRITES = re.compile(
    r"--(write|fix|in-?place|output.*|out.*|prefix|dest.*|target.*|format|save.*|log-file)(=.*)?|-[oOwi]"
)


def written_places(name: str, words: Sequence[Word]) -> set[int]:
    """Where among its words a command may have a file that it writes: of a copy the last one, of a program that is not
    known here all of them, where an option says that it writes."""
    operands = [
        index for index, word in enumerate(words) if index and not (word.text or word.head or "x").startswith("-")
    ]
    options = [word.text or word.head for word in words[1:] if (word.text or word.head).startswith("-")]
    if name in _COPIES:
        into = [index for index, word in enumerate(words) if re.match(r"-\w*t|--t", word.text or word.head)]
        return {*operands[-1:], *into, *(index + 1 for index in into)}
    if name in WRITERS or name in _REWRITES or any(_WRITES.fullmatch(option) for option in options):
        return set(range(1, len(words)))
    if name in ("docker", "podman", "nerdctl", "kubectl") and any(word.text == "cp" for word in words[1:4]):
        return set(operands[-1:])
    if name == "git":
        verb = strip_globals(words)[1:2]
        return set(operands) if verb and verb[0].text in _GIT_WRITES else set()
    return set()


_GIT_WRITES = names("clone init worktree checkout restore mv rm apply checkout-index archive bundle submodule")


_CHANGES_NOTHING = names("mkdir chmod chown chgrp rm rmdir touch shred")
_GIT_CHANGES = names("apply am checkout switch restore stash pull merge rebase reset cherry-pick revert")
_UNPACKS = names("tar unzip 7z patch rsync cpio wget curl")


def changed_by(words: Sequence[Word]) -> set[str]:
    """The names of files that a command may give other contents, `*` where it may be any: what it runs later in the same
    line is not what lies there now."""
    name = canonical(words[0].text or "") if words else ""
    verb = next((word.text for word in strip_globals(words)[1:2]), None) if name == "git" else None
    if name in _UNPACKS or verb in _GIT_CHANGES:
        return {"*"}
    if name in ("sed", "sort") and not any(re.match(r"-\w*[io]|--(in|out)", word.text or "-i") for word in words[1:]):
        return set()
    if name in WRITERS - _CHANGES_NOTHING or name in _REWRITES:
        texts = [word.text or "*" for word in words[1:]]
        return {os.path.basename(text.rpartition("=")[2]) or "*" for text in texts if not text.startswith("-")}
    return set()


def included(name: str, words: Sequence[Word]) -> list[str]:
    """Globs of the names that a search keeps to, `*` where it says none."""
    globs: list[str] = []
    option = {"grep": r"--include(?:=(.+))?", "rg": r"(?:-g|--glob)(?:=?(.+))?"}.get(name)
    for position, word in enumerate(words[1:], 1):
        found = re.fullmatch(option, word.text or "") if option else None
        if found is not None:
            following = words[position + 1].text if position + 1 < len(words) else None
            globs.append(found[1] or following or "*")
    wanted = [glob for glob in globs if not glob.startswith("!")]
    excluded = any((word.text or "").startswith("--exclude") and "dir" not in (word.text or "")[:13] for word in words)
    return ["*"] if not wanted or excluded or any(re.search(r"[{/\\\[]", glob) for glob in wanted) else wanted


_RG_FLAGS = re.compile(
    r"--(no-.*|line-number|hidden|count|files-with-matches|ignore-case|fixed-strings|word-regexp|stats|json|multiline|pcre2"
    r"|smart-case|column|vimgrep|only-matching|pretty|heading|trim|null|text|follow|invert-match|unrestricted|.*=.*)"
)


def searched_by_rg(words: Sequence[Word]) -> list[str]:
    """The places that a call of rg names to search; none where it is not certain which of its words they are."""
    places: list[str] = []
    pattern = False
    for option in read_options(words[1:], "eEfgjmABCrMtTd", ("--glob", "--iglob", "--type", "--regexp", "--file")):
        if option.name is None:
            if option.word.text is None:
                return []
            places.append(option.word.text)
        elif option.name in ("-e", "-f", "--regexp", "--file"):
            pattern = True
        else:
            takes_next = option.name.startswith("--") and option.value is None and not _RG_FLAGS.fullmatch(option.name)
            if takes_next or option.name in ("--files", "?"):
                return []
    return places if pattern else places[1:]


def swept(words: Sequence[Word], cwd: str) -> list[str]:
    """The folders that such a command goes through; none where it names only places that are no folders."""
    name = canonical(words[0].text or "")
    named = [word.text for word in words[1:] if word.text and not word.text.startswith("-")]
    below = [each for each in named if os.path.isdir(os.path.join(cwd, os.path.expanduser(each)))]
    if below or any(word.text is None for word in words[1:]):
        return below or ["."]
    if name in ("cp", "scp", "mv", "ln", "chmod", "chown", "diff"):
        return []
    pattern = pattern_of(words)
    if (
        name == "grep"
        and pattern is not None
        and any(word.text and not word.text.startswith("-") for word in words[pattern + 1 :])
    ):
        return []
    return [] if name == "rg" and searched_by_rg(words) else ["."]


def goes_below(words: Sequence[Word], folders: Sequence[str | None], root: str) -> bool:
    """Whether a command takes all that lies below a folder."""
    name = canonical(words[0].text or "")
    places = [word.text or "" for word in words[1:] if word.text and not word.text.startswith("-")]

    def are_folders(paths: Sequence[str]) -> bool:
        return any(
            os.path.isdir(os.path.join(cwd or root, os.path.expanduser(each))) for cwd in folders for each in paths
        )

    if name == "rg":
        given = [word.text or word.head for word in words[1:]]
        if "--files" in given and not any(re.match(r"-\w*[uL.]|--(hid|no-ig|unr|fol|pre)|$", text) for text in given):
            return False  # names that nobody hid, not what is in them
        files = searched_by_rg(words)
        return not files or are_folders(files)
    if name in ("ag", "ack", "zip", "rsync", "7z", "rgrep", "ugrep"):
        return True
    if name == "git":
        texts = [word.text for word in words]
        return ("grep" in texts and bool({"--no-index", "--untracked"} & set(texts))) or (
            "--no-index" in texts and are_folders(places)
        )
    if name == "tar":
        first = words[1].text if len(words) > 1 else None
        return re.match(r"\w*[cru]", first or "c") is not None or any(
            re.match(r"-\w*[cru]|--(create|append|update)", word.text or "-c") for word in words[1:3]
        )
    if name in ("diff", "sdiff", "diff3"):
        return any(word.text is None and word.head != "/dev/fd/" for word in words[1:]) or are_folders(places)
    if name in ("mv", "ln"):
        return are_folders(places)
    return name in ("grep", "cp", "scp", "chmod", "chown") and any(
        (word.text is None and word.may_be_option() and not word.fed)
        or re.fullmatch(r"-\w*[rRad].*|--(recursive|archive|d.*)", word.text or "")
        or word.text == "recurse"
        for word in words[1:]
    )
