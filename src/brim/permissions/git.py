"""What git does besides its own work: options, settings, addresses and subcommands that run programs or write files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from brim.permissions.effects import RM, Effect, Option, read_options
from brim.permissions.words import Word, known, names

_KNOWN = names(
    "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap"
    " check-ref-format checkout checkout-index cherry cherry-pick clean clone column commit commit-graph"
    " commit-tree config count-objects describe diff diff-files diff-index diff-tree difftool fast-export"
    " fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch fsck gc"
    " get-tar-commit-id grep hash-object help hook index-pack init interpret-trailers lfs log ls-files ls-remote"
    " ls-tree maintenance merge merge-base merge-file merge-index merge-tree mergetool mktag"
    " mktree multi-pack-index mv name-rev notes pack-objects pack-redundant pack-refs patch-id prune prune-packed"
    " pull push range-diff read-tree rebase reflog remote repack replace request-pull rerere reset restore"
    " rev-list rev-parse revert rm send-email send-pack shortlog show show-branch show-index show-ref"
    " sparse-checkout stage stash status stripspace submodule subtree switch symbolic-ref tag unpack-file"
    " unpack-objects update-index update-ref update-server-info var verify-commit verify-pack verify-tag version"
    " whatchanged worktree write-tree"
)
_RUNS = names(
    "filter-branch hook for-each-repo difftool mergetool send-email daemon shell instaweb web--browse cvsserver"
    " svn p4 credential fast-import merge-index upload-pack receive-pack upload-archive http-backend remote-ext"
    " remote-fd imap-send gui citool maintenance bundle-uri replay"
)
_GLOBAL_VALUES = (
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--attr-source",
    "--exec-path",
)
_SAFE_KEYS = re.compile(
    r"(user\.(name|email)|color\..*|advice\..*|core\.(quotepath|autocrlf|abbrev|ignorecase|filemode|precomposeunicode|safecrlf"
    r"|longpaths|eol|whitespace)|init\.defaultbranch|pull\.(rebase|ff)|push\.(default|autosetupremote)|log\.[a-z]+"
    r"|diff\.(renames|renamelimit|context|algorithm|noprefix|mnemonicprefix|colormoved|wserrorhighlight)|merge\.(conflictstyle|ff)"
    r"|fetch\.(prune|parallel)|rebase\.(autosquash|autostash)|commit\.(gpgsign|verbose)|tag\.(gpgsign|sort)|branch\.[^.]*"
    r"|branch\..*\.(remote|merge)|rerere\.enabled|status\..*|gc\.auto|column\.ui|help\.autocorrect|core\.pager=(cat|)|safe\.directory)",
    re.IGNORECASE,
)
# long options that run or write, with the subcommands that know them (None: any)
_LONG: dict[str, str] = {
    "--output": "write", "--output-directory": "write", "--ext-diff": "doubt", "--open-files-in-pager": "doubt",
    "--upload-pack": "doubt", "--receive-pack": "doubt", "--exec": "doubt", "--extcmd": "doubt", "--tool": "doubt",
    "--template": "doubt", "--config": "doubt", "--strategy": "strategy", "--export-marks": "write", "--import-marks": "read",
    "--edit-description": "doubt", "--interactive": "doubt", "--gui": "doubt", "--smtp-server": "doubt", "--to-cmd": "doubt",
    "--in-place": "doubt", "--trailer-cmd": "doubt", "--separate-git-dir": "doubt", "--index-output": "write",
    "--paginate": "doubt", "--exec-path": "doubt", "--unpacked-out": "write", "--shell-path": "ok", "--force-rm": "ok",
}  # fmt: skip
_SHORT: dict[str, dict[str, str]] = {
    "grep": {"-O": "doubt"},
    "clone": {"-u": "doubt", "-c": "doubt"},
    "fetch": {},
    "rebase": {"-x": "doubt", "-i": "doubt", "-s": "strategy"},
    "merge": {"-s": "strategy"},
    "pull": {"-s": "strategy"},
    "cherry-pick": {},
    "archive": {"-o": "write"},
    "format-patch": {"-o": "write"},
    "index-pack": {"-o": "write"},
    "bundle": {},
    "config": {"-e": "doubt", "-f": "doubt", "--file": "doubt", "--edit": "doubt"},
    "blame": {},
    "difftool": {"-x": "doubt"},
    "replace": {"-e": "doubt"},
    "help": {"-w": "doubt", "-i": "doubt", "-m": "doubt"},
}
_STRATEGIES = ("ort", "recursive", "resolve", "octopus", "ours", "theirs", "subtree")
_VALUES = {
    "commit": "mFCct", "log": "nSGLO", "diff": "SGOU", "show": "SGnO", "grep": "efABCm", "blame": "LSC", "merge": "mX",
    "tag": "mFun",
    "push": "o", "fetch": "jo", "clone": "boj", "rebase": "XsCx", "checkout": "bB", "switch": "cC", "branch": "u",
    "stash": "m", "notes": "mFCc", "archive": "o", "format-patch": "oSGOUv", "ls-files": "xX", "clean": "e", "describe": "",
    "config": "f", "shortlog": "w", "rev-list": "nSG", "cherry-pick": "mXs", "revert": "mX", "am": "C", "apply": "pC",
    "worktree": "bB", "submodule": "b", "hash-object": "t", "read-tree": "", "commit-tree": "pmF", "reset": "", "pull": "sX",
    "index-pack": "o", "difftool": "xt",
}  # fmt: skip


def strip_globals(words: Sequence[Word]) -> list[Word]:
    """The command without the options that stand before the subcommand, as rules mean it: `git -C x push` is `git push`."""
    position = 1
    while position < len(words):
        text = words[position].text
        if text is None or not text.startswith("-"):
            break
        position += 2 if text in ("-C", "-c", *_GLOBAL_VALUES[:-1]) else 1
    return [words[0], *words[position:]]


def git_effects(words: Sequence[Word]) -> Iterator[Effect]:
    """The effects of a git command."""
    position = 1
    while position < len(words):
        word = words[position]
        text = word.text
        if text is None:
            yield Effect("doubt", why=f"{word.raw} stands where git expects a subcommand")
            return
        if not text.startswith("-"):
            break
        value = words[position + 1] if position + 1 < len(words) else None
        if text == "-c":
            given = value.text if value is not None else None
            if given is None or (not _SAFE_KEYS.fullmatch(given) and not _SAFE_KEYS.fullmatch(given.partition("=")[0])):
                yield Effect("doubt", why=f"git -c {given} may run something", option="-c")
            position += 2
            continue
        if text in _GLOBAL_VALUES[:-1]:
            if text in ("--git-dir", "--work-tree", "--config-env"):
                yield Effect("doubt", why=f"git {text} takes settings from elsewhere", option=text)
            position += 2
            continue
        if text == "-C":
            position += 2
            if value is None or value.text is None:
                yield Effect("doubt", why="git -C goes to a folder that is not known", option="-C")
            continue
        if text.startswith(("--git-dir=", "--work-tree=", "--config-env=", "--exec-path=", "-c")):
            yield Effect(
                "doubt", why=f"git {text} takes settings or programs from elsewhere", option=text.partition("=")[0]
            )
        elif text in ("-p", "--paginate"):
            yield Effect("doubt", why="git --paginate runs a pager", option=text)
        elif text in ("--version", "--help", "-h", "-v", "--html-path", "--man-path", "--info-path", "--exec-path"):
            return
        position += 1
    if position >= len(words):
        return
    verb = words[position].text or ""
    rest = words[position + 1 :]
    if words[position].glob or verb not in _KNOWN or verb in _RUNS:
        known_verb = verb in _RUNS or verb in _KNOWN
        why = f"git {verb} runs other programs" if known_verb else f"git {verb} is no known subcommand"
        yield Effect("doubt", why=why, option=verb)
        return
    shorts = _SHORT.get(verb, {})
    options = list(
        read_options(
            rest, _VALUES.get(verb, "") + "".join(o[1] for o, kind in shorts.items() if kind in ("write", "strategy")),
            ("--output", "--output-directory", "--format", "--author", "--date", "--message", "--file", "--strategy",
             "--branch", "--depth", "--since", "--until", "--max-count", "--grep", "--prefix", "--config", "--upload-pack",
             "--receive-pack", "--exec", "--template", "--separate-git-dir", "--reference", "--export-marks"),
            optional="O" if verb == "grep" else "u" if verb == "commit" else "",
        )
    )  # fmt: skip
    for option in options:
        yield from _option(verb, option, shorts)
    yield from _by_verb(verb, options, rest)


_UNHARMED = names(
    "add commit status rev-parse mv checkout switch restore branch tag stash reset ls-tree merge-base cat-file describe"
)
"""Subcommands none of whose options run or write anything elsewhere."""


def _option(verb: str, option: Option, shorts: dict[str, str]) -> Iterator[Effect]:
    name = option.name
    if name == "?":
        if verb not in _UNHARMED:
            yield Effect("doubt", why=f"{option.word.raw} may turn into an option of git {verb}")
        return
    if name is None:
        text = option.word.text if option.word.text is not None else option.word.head
        if verb in (
            "clone",
            "fetch",
            "pull",
            "push",
            "ls-remote",
            "remote",
            "submodule",
            "archive",
            "subtree",
        ) and re.match(r"[\w+.-]*::|ssh://-|-|[^/]*:-|fd::", text):
            yield Effect("doubt", why=f"git runs a program for the address {text}")
        return
    if option.value is not None and re.match(r"[\w+.-]*::|ssh://-", option.value.text or ""):
        yield Effect("doubt", why=f"git runs a program for the address {option.value.text}")
    kind = shorts.get(name)
    if kind is None and name.startswith("--") and not name.startswith("--no-"):
        full = next((long for long in _LONG if long == name), None) or next(
            (long for long in _LONG if len(name) > 3 and long.startswith(name)), None
        )
        exact = {"--exec", "--tool", "--config", "--template", "--interactive", "--in-place", "--gui", "--strategy"}
        if full is not None and not (full in exact and verb in _UNHARMED):
            kind = _LONG[full]
        if (full == "--exec" and verb in ("clean", "log", "diff", "show")) or name in (
            "--strategy-option",
            "--exclude-standard",
        ):
            kind = None
        if full == "--output" and name == "--out":
            kind = "write"
        if full == "--interactive" and verb not in ("rebase", "add", "stash", "clean"):
            kind = None
    if kind == "doubt":
        yield Effect("doubt", why=f"git {verb} {name} may run something", option=name)
    elif kind == "strategy":
        if option.value is None or option.value.text not in _STRATEGIES:
            yield Effect("doubt", why=f"git {verb} {name} runs a program of that name", option=name)
    elif kind in ("write", "read"):
        if option.value is None:
            yield Effect("doubt", why=f"git {verb} {name} without its value", option=name)
        elif not (kind == "write" and name in ("-o", "--output") and verb == "archive" and option.value.text == "-"):
            yield Effect("write" if kind == "write" else "read", (option.value,), f"git {verb} {name}", name)


def _by_verb(verb: str, options: Sequence[Option], rest: Sequence[Word]) -> Iterator[Effect]:
    names = {option.name for option in options}
    places = [option.word for option in options if option.name is None]
    first = places[0].text if places else None
    if verb == "rm" and not names & {"--cached", "-n", "--dry-run"}:
        yield Effect("acts", (RM[0], *rest), "git rm deletes files", "rm")
    elif verb == "clean" and not names & {"-n", "--dry-run"}:
        yield Effect("acts", RM, "git clean deletes files", "clean")
        yield Effect("doubt", why="git clean deletes files", option="clean")
    elif verb == "worktree" and first == "remove":
        yield Effect("acts", RM, "git worktree remove deletes files", "remove")
    elif verb == "bisect" and first == "run":
        start = next((i for i, word in enumerate(rest) if word.text == "run"), 0)
        yield Effect("run", tuple(rest[start + 1 :]), "git bisect run", "run")
    elif verb == "bisect" and first in ("visualize", "view", "replay"):
        yield Effect("doubt", why=f"git bisect {first}", option=first or "")
    elif verb == "submodule" and first == "foreach":
        given = places[1:]
        text = " ".join(word.text or "" for word in given)
        made = known(text) if all(word.text is not None for word in given) else Word(text, None)
        yield Effect("script", (made,), "git submodule foreach")
        yield Effect("doubt", why="git submodule foreach runs a command", option="foreach")
    elif verb == "submodule" and (first == "add" or (first == "update" and "--remote" in names)):
        yield Effect("doubt", why=f"git submodule {first} may run something", option=first or "")
    elif verb == "config":
        yield from _config(names, places)
    elif verb in ("send-pack", "subtree", "lfs") and (verb == "send-pack" or first == "push"):
        yield Effect("acts", (known("git"), known("push"), *places[1:]), f"git {verb} pushes", verb)
    elif verb == "lfs" and first in ("install", "ext", "clone", "track"):
        yield Effect("doubt", why=f"git lfs {first}", option=first or "")
    elif (
        verb == "remote"
        and first in ("add", "set-url")
        and any(word.text is None or re.match(r"[\w+.-]*::|ssh://-|-", word.text) for word in places[1:])
    ):
        yield Effect("doubt", why="git may run a program for that address")
    elif verb == "bundle" and first == "create" and len(places) > 1:
        yield Effect("write", (places[1],), "git bundle create", "create")
    elif verb == "notes" and first == "edit":
        yield Effect("doubt", why="git notes edit opens an editor", option="edit")
    elif verb == "merge-file" and places and "-p" not in names and "--stdout" not in names:
        yield Effect("write", (places[0],), "git merge-file", "merge-file")
    elif verb == "checkout-index" and any((option.name or "").startswith("--prefix") for option in options):
        yield Effect("doubt", why="git checkout-index --prefix writes elsewhere", option="--prefix")
    elif verb == "worktree" and first == "add" and len(places) > 1:
        yield Effect("write", (places[1],), "git worktree add", "add")
    elif verb == "init" and places:
        yield Effect("write", (places[0],), "git init", "init")
    elif verb == "reflog" and first in ("expire", "delete"):
        return


_READS = ("--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch", "--get-color", "--get-colorbool")


def _config(names: set[str | None], places: Sequence[Word]) -> Iterator[Effect]:
    if names & set(_READS) or (places and places[0].text in ("get", "list")):
        return
    if places and places[0].text in ("set", "unset", "rename-section", "remove-section", "edit"):
        if places[0].text == "edit":
            yield Effect("doubt", why="git config edit opens an editor", option="edit")
        places = places[1:]
    elif len(places) == 1 and not names & {"--unset", "--unset-all", "--add", "--replace-all", "--edit"}:
        return
    if names & {"--global", "--system"}:
        yield Effect("doubt", why="git config changes settings of all projects", option="--global")
    key = places[0].text if places else None
    if key is None or not _SAFE_KEYS.fullmatch(key):
        yield Effect("doubt", why=f"git config {key} may make git run something", option=key or "?")
