"""Programs that are more than they seem: which options run or write something, which arguments are programs themselves.

Only what goes beyond a command's own work stands here. `cp` copies and `mkdir` makes folders: who allows them allows
that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from brim.permissions.effects import Effect, Handler, Risks, effects_of, read_options
from brim.permissions.interpreters import RUNS_CODE, interpreter_effects, module_words
from brim.permissions.streams import awk_effects, fd_effects, find_effects, sed_effects, xargs_effects
from brim.permissions.words import UNKNOWN, Word, known, names

RISKS: Mapping[str, Risks] = {
    "sort": Risks({"-o": "write", "--output": "write", "--compress-program": "doubt", "--files0-from": "doubt"}, "kStT"),
    "shuf": Risks({"-o": "write", "--output": "write"}, "inr"),
    "tree": Risks({"-o": "write"}, "LPIHT"),
    "rg": Risks({"--pre": "doubt", "--hostname-bin": "doubt"}, "eEfgjmABCrMtTd", safe=("--pretty",)),
    "ag": Risks({"--pager": "doubt"}, "ABCGgmp"),
    "ack": Risks({"--pager": "doubt", "--ackrc": "doubt", "--env": "doubt"}, "ABCm"),
    "bat": Risks({"--pager": "doubt", "--config-file": "doubt", "--diagnostic": "doubt"}, "lHrmpA"),
    "less": Risks(
        dict.fromkeys(("-o", "-O", "-k", "-T", "--log-file", "--LOG-FILE", "--lesskey-file", "--lesskey-src",
                       "--lesskey-content", "--tag-file", "-t", "--tag"), "doubt")
    ),
    "man": Risks(
        dict.fromkeys(("-P", "--pager", "-H", "--html", "-C", "--config-file", "-X", "--gxditview", "-T", "-l",
                       "--local-file", "-p", "--preprocessor"), "doubt"), "SsMmRLeE"
    ),
    "curl": Risks(
        {"-o": "write", "--output": "write", "--output-dir": "write", "-D": "write", "--dump-header": "write",
         "-c": "write", "--cookie-jar": "write", "--trace": "write", "--trace-ascii": "write", "--stderr": "write",
         "--libcurl": "write", "--etag-save": "write", "--hsts": "write", "--alt-svc": "write", "-K": "doubt",
         "--config": "doubt", "-O": "doubt", "--remote-name": "doubt", "--remote-name-all": "doubt", "-J": "doubt",
         "--remote-header-name": "doubt", "--engine": "doubt", "-w": "doubt", "--write-out": "doubt",
         "-T": "read", "--upload-file": "read"},
        "AbdeEFHmPQrtTuUxXyYzC",
    ),
    "wget": Risks(
        {"-O": "write", "--output-document": "write", "-o": "write", "--output-file": "write", "-a": "write",
         "--append-output": "write", "-P": "write", "--directory-prefix": "write", "-e": "doubt", "--execute": "doubt",
         "--use-askpass": "doubt", "--config": "doubt", "--post-file": "read", "--body-file": "read",
         "--save-cookies": "write", "--warc-file": "write", "--rejected-log": "write", "-i": "doubt",
         "--input-file": "doubt", "--hsts-file": "write"},
        "tTwQUBADIXlR",
    ),
    "rsync": Risks(
        {"-e": "script", "--rsh": "script", "--rsync-path": "script", "--log-file": "write", "--early-input": "doubt",
         "--config": "doubt", "-M": "doubt", "--remote-option": "doubt", "--write-batch": "write",
         "--only-write-batch": "write", "--read-batch": "doubt"},
        "fBT",
        removes=("--delete", "--del", "--delete-before", "--delete-during", "--delete-after", "--delete-excluded",
                 "--delete-delay", "--remove-source-files", "--delete-missing-args"),
    ),
    "scp": Risks({"-S": "doubt", "-o": "doubt", "-F": "doubt", "-D": "doubt", "-J": "doubt"}, "cilP"),
    "sftp": Risks({"-S": "doubt", "-o": "doubt", "-F": "doubt", "-D": "doubt", "-b": "doubt", "-J": "doubt"}, "cilPBR"),
    "tar": Risks(
        {"-I": "doubt", "--use-compress-program": "doubt", "--to-command": "script", "--checkpoint-action": "doubt",
         "-F": "doubt", "-g": "write", "--listed-incremental": "write",
         "--info-script": "doubt", "--new-volume-script": "doubt", "--rsh-command": "doubt",
         "--rmt-command": "doubt", "--index-file": "write", "-T": "read", "--files-from": "read", "-P": "doubt",
         "--absolute-names": "doubt"},
        "fCbgKLNVX", removes=("--remove-files", "--recursive-unlink", "--unlink-first", "-U", "--delete"),
        safe=("--totals", "--transform", "--touch", "--to-stdout"),
    ),
    "zip": Risks({"-TT": "doubt", "--unzip-command": "doubt", "-O": "write", "--output-file": "write", "--out": "write",
                  "-T": "doubt", "-m": "doubt", "--move": "doubt"}, "bitnxP", removes=("-m", "--move")),
    "unzip": Risks({"-:": "doubt"}, "dxP"),
    "split": Risks({"--filter": "script"}, "abClnt"),
    "openssl": Risks({}),
    "gzip": Risks({}, "S"),
    "diff": Risks({"--output": "write"}, "CDFIUWxXS", safe=("--out",)),
    "sdiff": Risks({"-o": "write", "--output": "write", "--diff-program": "doubt"}, "IWw"),
    "patch": Risks({"-o": "write", "--output": "write", "-r": "write", "--reject-file": "write", "-e": "doubt",
                    "--ed": "doubt"}, "BDFVYdgipz"),
    "yq": Risks({"-i": "doubt", "--inplace": "doubt", "--in-place": "doubt", "-s": "doubt", "--split-exp": "doubt"}, "opI"),
    "jq": Risks({"--from-file": "read", "-f": "read"}, "L"),
    "date": Risks({"-s": "doubt", "--set": "doubt"}, "dfr"),
    "mypy": Risks({"--python-executable": "doubt", "--install-types": "doubt", "--junit-xml": "write",
                   "--cache-dir": "write"}, "mpc", safe=("--python-version",)),
    "file": Risks({"-C": "doubt", "--compile": "doubt", "-z": "doubt", "-Z": "doubt"}, "efFmP"),
    "tcpdump": Risks({"-z": "doubt", "-w": "write"}, "BcCEFGijmMQrsTVy"),
    "pytest": Risks({"--basetemp": "doubt", "--rootdir": "doubt", "-c": "doubt", "--confcutdir": "doubt",
                     "-o": "doubt", "--override-ini": "doubt", "-p": "doubt", "--junitxml": "write",
                     "--junit-xml": "write", "--log-file": "write", "--resultlog": "write", "--pdbcls": "doubt",
                     "--debug": "doubt", "--pastebin": "doubt", "--config-file": "doubt"}, "kmnWr",
                    safe=("--co", "--color", "--cov", "--cov-config", "--cov-report", "--collect-only", "--cache-clear")),
    "cargo": Risks({"--config": "doubt", "-Z": "doubt"}, "pjF"),
    "go": Risks({}),
    "pandoc": Risks({"--filter": "doubt", "-F": "doubt", "--lua-filter": "doubt", "-L": "doubt", "--pdf-engine": "doubt",
                     "-o": "write", "--output": "write", "--defaults": "doubt", "-d": "doubt", "--extract-media": "write"},
                    "frtw"),
    "ls": Risks({}, "ITw"),
    "mv": Risks({}, "tS"),
    "rake": Risks({"-e": "doubt", "-E": "doubt", "-p": "doubt", "--execute": "doubt", "-f": "doubt"}, "ITj"),
}  # fmt: skip

_SAME_AS = {
    "python2": "python", "python3": "python", "pypy": "python", "pypy3": "python", "nodejs": "node", "luajit": "lua",
    "vi": "vim", "nvim": "vim", "view": "vim", "rvim": "vim", "ncat": "nc", "netcat": "nc", "egrep": "grep",
    "fgrep": "grep", "zgrep": "grep", "gtar": "tar", "bsdtar": "tar", "gsed": "sed", "gawk": "awk", "mawk": "awk",
    "nawk": "awk", "gfind": "find", "fdfind": "fd", "batcat": "bat", "most": "less", "more": "less", "mariadb": "mysql",
    "cc": "gcc", "g++": "gcc", "clang": "gcc", "clang++": "gcc", "c++": "gcc", "gmake": "make", "py.test": "pytest",
    "ripgrep": "rg", "pip3": "pip", "gsort": "sort", "qalc": "bc", "tsx": "node", "ts-node": "node", "zshcompat": "sh",
    "vimdiff": "vim", "gvim": "vim", "rview": "vim", "gview": "vim", "evim": "vim", "c89": "gcc", "c99": "gcc",
    "octave-cli": "octave", "mongo": "mongosh",
}  # fmt: skip


def canonical(name: str) -> str:
    """The program that a name stands for in these tables: `python3.12` is `python`."""
    bare = name.rpartition("/")[2].lower() if name.rpartition("/")[2].lower() != "r" else name.rpartition("/")[2]
    bare = re.sub(r"(?<=[a-z+])(-?\d+(\.\d+)+|-\d+)$", "", bare)
    return _SAME_AS.get(bare, bare)


def program_effects(words: Sequence[Word]) -> Iterator[Effect]:
    """What a command does besides its own work, as far as its words tell. `words` begin with its name."""
    name = canonical(words[0].text or "")
    if (handler := HANDLERS.get(name)) is not None:
        yield from handler(words)
    elif (risks := RISKS.get(name)) is not None:
        yield from effects_of(risks, words)
    elif name in RUNS_CODE:
        yield from interpreter_effects(name, words)
    else:
        yield from _telling_options(name, words)
    if name in RUNS_CODE:
        module = module_words(words) if name == "python" else ()
        if module and module[0].text in ("pytest", "json.tool"):
            yield from program_effects(module)


def _make(words: Sequence[Word]) -> Iterator[Effect]:
    for option in read_options(words[1:], "CfIjloW", ("--file", "--makefile", "--directory", "--eval")):
        text = option.word.text or ""
        if option.name == "?":
            yield Effect("doubt", why=f"{option.word.raw} may turn into an option of make")
        elif option.name in ("--eval", "-E") or (option.name or "").startswith("--ev"):
            yield Effect("doubt", why="make --eval runs what it is given", option=option.name or "")
        elif option.name in ("-f", "--file", "--makefile") and (option.value is None or option.value.text in (None, "-")
                                                              or str(option.value.text).startswith("/dev/")):  # fmt: skip
            yield Effect("doubt", why="make runs rules that it reads", option=option.name)
        elif option.name is None and (
            re.match(r"(SHELL|MAKE\w*|\.SHELLFLAGS)\s*[:+?]*=", text) or re.search(r"=.*[$`;|&]", text)
        ):
            yield Effect("doubt", why=f"make {text} changes what is run")


def _uniq(words: Sequence[Word]) -> Iterator[Effect]:
    operands = [o.word for o in read_options(words[1:], "fsw") if o.name is None]
    if len(operands) > 1:
        yield Effect("write", (operands[1],), "uniq writes its second argument")
    yield from _maybe_hidden("uniq", words)


def _xxd(words: Sequence[Word]) -> Iterator[Effect]:
    operands = [o.word for o in read_options(words[1:], "cglnos") if o.name is None]
    if len(operands) > 1:
        yield Effect("write", (operands[1],), "xxd writes its second argument")
    yield from _maybe_hidden("xxd", words)


def _maybe_hidden(name: str, words: Sequence[Word]) -> Iterator[Effect]:
    if any(word.text is None and word.splits and not word.harmless for word in words[1:]):
        yield Effect("doubt", why=f"it is not known which files {name} gets")


def _dd(words: Sequence[Word]) -> Iterator[Effect]:
    for word in words[1:]:
        text = word.text
        if text is None:
            yield Effect("doubt", why=f"{word.raw} may name what dd writes")
        elif text.startswith("of="):
            yield Effect("write", (known(text[3:]),), "dd of=")
        elif text.startswith("if="):
            yield Effect("read", (known(text[3:]),), "dd if=")


def _openssl(words: Sequence[Word]) -> Iterator[Effect]:
    for position, word in enumerate(words[1:], 1):
        if word.text in ("-out", "-keyout", "-writerand", "-CAserial", "-sess_out", "-keylogfile"):
            yield Effect(
                "write", (words[position + 1] if position + 1 < len(words) else UNKNOWN,), f"openssl {word.text}"
            )
        elif word.text in ("-engine", "-provider", "-provider-path", "-config"):
            yield Effect("doubt", why=f"openssl {word.text} loads code", option=word.text)
        elif word.text is None and word.may_be_option():
            yield Effect("doubt", why=f"{word.raw} may turn into an option of openssl")


def _grep(words: Sequence[Word]) -> Iterator[Effect]:
    for option in read_options(words[1:], "efABCmdD", ("--file", "--regexp")):
        if option.name in ("-f", "--file") and option.value is not None:
            yield Effect("read", (option.value,), "grep -f")


def _npm(words: Sequence[Word]) -> Iterator[Effect]:
    options = list(read_options(words[1:], "C", ("--prefix", "--workspace", "--script-shell", "--dir")))
    for option in options:
        if option.name == "?":
            yield Effect("doubt", why=f"{option.word.raw} may turn into an option of npm")
        elif option.name in (
            "--script-shell",
            "--call",
            "-c",
            "--node-options",
            "--globalconfig",
            "--userconfig",
            "--git",
            "--viewer",
            "--editor",
            "--shell",
            "--browser",
            "--node-gyp",
            "--init-module",
        ) or any(long.startswith(option.name or "-") for long in ("--script-shell", "--call", "--node-options")
                 if len(option.name or "") > 4):  # fmt: skip
            yield Effect("doubt", why=f"npm {option.name} changes what is run", option=option.name or "")
    places = [option.word for option in options if option.name is None]
    if not places:
        return
    verb = places[0].text
    if verb in ("exec", "x", "dlx", "explore", "execute"):
        rest = places[1:]
        yield Effect("run", tuple(rest), f"npm {verb}", verb or "")
        return
    second = places[1].text if len(places) > 1 else None
    if verb in ("init", "create", "innit") and len(places) > 1:
        yield Effect("acts", (known("npx"), *places[1:]), f"npm {verb} runs a package")
    changes = verb == "set" or (verb in ("config", "c") and second not in ("get", "list", "ls"))
    if changes or (verb == "pkg" and second in ("set", "delete")):
        yield Effect("doubt", why=f"npm {verb} changes what other commands run", option=verb or "")


def _go(words: Sequence[Word]) -> Iterator[Effect]:
    for word in words[1:]:
        if word.text is None:
            if word.may_be_option():
                yield Effect("doubt", why=f"{word.raw} may turn into an option of go")
        elif re.match(r"--?(toolexec|exec|vettool|ldflags|gcflags|overlay|modfile|o)(=|$)", word.text):
            yield Effect("doubt", why=f"go {word.text} runs or writes something", option=word.text.partition("=")[0])


def _tar(words: Sequence[Word]) -> Iterator[Effect]:
    fixed = list(words)
    if len(words) > 1 and words[1].text and re.fullmatch(r"[A-Za-z]+", words[1].text):
        # the old form: letters first, their values after them in the same order
        if re.search(r"[IFTPV]", words[1].text):
            yield Effect("doubt", why=f"tar {words[1].text}", option=words[1].text)
        fixed = [words[0], *words[2:]]
    yield from effects_of(RISKS["tar"], fixed)
    for word in words[1:]:
        if word.text and re.match(r"(--file=|-\w*f)?[\w.@][\w.@-]*:[^=]", word.text):
            yield Effect("doubt", why=f"tar may take {word.text} for a file on another machine")


def _gcc(words: Sequence[Word]) -> Iterator[Effect]:
    for word in words[1:]:
        if word.text is None and word.may_be_option():
            yield Effect("doubt", why=f"{word.raw} may turn into an option of the compiler")
        elif re.match(r"-(wrapper|fplugin|specs|B)|--specs|@", word.text or ""):
            yield Effect("doubt", why=f"{word.text} makes the compiler run something", option=word.text or "")


def _cmake(words: Sequence[Word]) -> Iterator[Effect]:
    for position, word in enumerate(words[1:], 1):
        if word.text == "-E":
            yield Effect("acts", tuple(words[position + 1 :]), "cmake -E runs a command")
        if word.text in ("-E", "-P"):
            yield Effect("doubt", why=f"cmake {word.text} runs something", option=word.text)


def _apt(words: Sequence[Word]) -> Iterator[Effect]:
    for word in words[1:]:
        if re.match(r"-o|--option|-c|--config-file", word.text or ""):
            yield Effect("doubt", why=f"apt {word.text} changes what is run", option=word.text or "")


def _unlink(words: Sequence[Word]) -> Iterator[Effect]:
    yield Effect("acts", (known("rm"), *words[1:]), f"{words[0].text} deletes files")


def _docker(words: Sequence[Word]) -> Iterator[Effect]:
    for position, word in enumerate(words[1:], 1):
        if word.text in ("run", "exec"):
            for start in range(position + 1, len(words)):
                yield Effect("acts", tuple(words[start:]), f"{words[0].text} {word.text} runs a command")
            return


def _busybox(words: Sequence[Word]) -> Iterator[Effect]:
    yield Effect("run", tuple(words[1:]), f"{words[0].text}")


def _truncate(words: Sequence[Word]) -> Iterator[Effect]:
    for option in read_options(words[1:], "rs", ("--size", "--reference")):
        if option.name is None:
            yield Effect("write", (option.word,), "truncate")


def _eats_input(words: Sequence[Word]) -> Iterator[Effect]:
    yield Effect("doubt", why=f"{words[0].text} runs what it is given")


def _history(words: Sequence[Word]) -> Iterator[Effect]:
    """A list of what was run is harmless; all else runs it, or changes what can be run."""
    given = [word.text for word in words[1:]]
    listed = given[:1] == ["-l"] if words[0].text == "fc" else given == [] or (given[0] or "").isdigit()
    if not listed:
        yield from _eats_input(words)


def _crontab(words: Sequence[Word]) -> Iterator[Effect]:
    if [word.text for word in words[1:]] != ["-l"]:
        yield from _eats_input(words)


def _shopt(words: Sequence[Word]) -> Iterator[Effect]:
    for word in words[1:]:
        if word.text is None or re.search(r"glob|nocase|alias|extdebug|lastpipe", word.text):
            yield Effect("doubt", why=f"shopt {word.raw} changes what words mean", option=word.text or "")


def _source(words: Sequence[Word]) -> Iterator[Effect]:
    """The script that turns on a virtual environment is read like one that a shell is given; any other may set anything."""
    if len(words) == 2 and re.fullmatch(r"[\w./-]*bin/activate", words[1].text or ""):
        yield Effect("file", (words[1],), "source runs a file")
    else:
        yield from _eats_input(words)


def _sets_names(words: Sequence[Word]) -> Iterator[Effect]:
    """Builtins that evaluate the index of a name they are given: `read 'a[$(command)]'`."""
    name = words[0].text or ""
    after = {"test": "-v", "[": "-v", "printf": "-v", "wait": "-p"}.get(name)
    for position, word in enumerate(words[1:], 1):
        if name == "unset" and word.text in ("PATH", "IFS", "-f"):
            yield Effect("doubt", why=f"unset {word.text} can change what is run")
        if after is not None and words[position - 1].text != after and not (word.text or "").startswith(after):
            continue
        if after is None and word.text is None and word.harmless:
            continue
        if word.text is None or ("[" in word.text and re.search(r"[$`]", word.text)):
            yield Effect("doubt", why=f"{name} evaluates the name {word.raw}")


def _mapfile(words: Sequence[Word]) -> Iterator[Effect]:
    for word in words[1:]:
        if word.text is None or re.match(r"-\w*C", word.text):
            yield Effect("doubt", why="mapfile -C runs what it is given", option="-C")
    yield from _sets_names(words)


_RUNS_BY_NAME = re.compile(
    r"--(?!no-)(?:e(?:val|xec|xecute)|shell-escape|init-hook|post-renderer|pre|to-command|.*-(?:program|command|cmd|hook|exec|pager|editor"
    r"|wrapper|escape|eval))|-(?:shell-escape|enable-write18|wrapper)"
)


def _telling_options(name: str, words: Sequence[Word]) -> Iterator[Effect]:
    """Options of a program that no table here knows, with names that say that they run something."""
    for word in words[1:]:
        option = (word.text if word.text is not None else word.head).partition("=")[0]
        if option == "--":
            return
        if _RUNS_BY_NAME.fullmatch(option):
            yield Effect("doubt", why=f"{name} {option} may run something", option=option)


def _gh(words: Sequence[Word]) -> Iterator[Effect]:
    verbs = [word.text for word in words[1:] if not (word.text or "-").startswith("-")][:2]
    if verbs in (
        ["alias", "set"],
        ["alias", "import"],
        ["config", "set"],
        ["extension", "exec"],
        ["extension", "install"],
    ):
        yield Effect("doubt", why=f"{words[0].text} {' '.join(str(verb) for verb in verbs)} changes what is run",
                     option=verbs[0] or "")  # fmt: skip


def _sets_rights(words: Sequence[Word]) -> Iterator[Effect]:
    yield Effect("acts", (known("chmod"), *words[1:]), f"{words[0].text} sets rights")


def _pytest(words: Sequence[Word]) -> Iterator[Effect]:
    """Plugins that are left out (`-p no:cacheprovider`) run nothing."""
    kept: list[Word] = []
    for word in words:
        if kept and kept[-1].text == "-p" and (word.text or "").startswith("no:"):
            kept.pop()
        elif not (word.text or "").startswith("-pno:"):
            kept.append(word)
    for at in range(len(kept) - 1, 0, -1):
        if kept[at - 1].text in ("-o", "--override-ini") and _TELLS.match(kept[at].text or ""):
            del kept[at - 1 : at + 1]
    yield from effects_of(RISKS["pytest"], kept)


_TELLS = re.compile(r"(log_|console_|asyncio_|timeout|xfail_|junit_f)\w*=")
"""Settings of pytest that only say how it tells or waits."""


def _json_tool(words: Sequence[Word]) -> Iterator[Effect]:
    operands = [o.word for o in read_options(words[1:], "", ("--indent",)) if o.name is None]
    if len(operands) > 1:
        yield Effect("write", (operands[1],), "json.tool writes its second argument")


def _with_mode(words: Sequence[Word]) -> Iterator[Effect]:
    for option in read_options(words[1:], "mgotSZ", ("--mode",)):
        if option.name == "-m" or (option.name or "").startswith("--m"):
            yield Effect(
                "acts", (known("chmod"), option.value or UNKNOWN), f"{words[0].text} {option.name} sets a mode"
            )


def _jq(words: Sequence[Word]) -> Iterator[Effect]:
    """Programs of jq's and yq's can read files that stand in the program."""
    name = canonical(words[0].text or "")
    reads = re.compile(r"\b(load(_\w+)?|eval)\s*\(" if name == "yq" else r"\b(import|include)\s*\"")
    if any(reads.search(word.text or "") for word in words[1:]):
        yield Effect("doubt", why=f"the program of {name} may read other files")
    yield from effects_of(RISKS[name], words)


HANDLERS: Mapping[str, Handler] = {
    "jq": _jq, "yq": _jq, "find": find_effects,
    "fd": fd_effects, "sed": sed_effects, "awk": awk_effects, "xargs": xargs_effects,
    "make": _make, "uniq": _uniq, "xxd": _xxd,
    "dd": _dd, "openssl": _openssl, "grep": _grep, "npm": _npm, "pnpm": _npm, "yarn": _npm, "go": _go, "tar": _tar,
    "gh": _gh, "glab": _gh, "setfacl": _sets_rights, "pytest": _pytest, "json.tool": _json_tool,
    "unlink": _unlink, "shred": _unlink, "rmdir": _unlink, "srm": _unlink, "trash": _unlink, "docker": _docker,
    "podman": _docker, "kubectl": _docker, "nerdctl": _docker, "truncate": _truncate,
    "mkdir": _with_mode, "install": _with_mode, "mkfifo": _with_mode,
    "gcc": _gcc, "cmake": _cmake, "apt": _apt, "apt-get": _apt,
    **dict.fromkeys(names("run-parts alias hash enable bind complete"), _eats_input), "fc": _history, "history": _history,
    "crontab": _crontab,
    "source": _source, ".": _source, "shopt": _shopt,
    **dict.fromkeys(names("unset read export declare typeset local readonly getopts test [ printf wait"), _sets_names),
    "mapfile": _mapfile, "readarray": _mapfile,
}  # fmt: skip
