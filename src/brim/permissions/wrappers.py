"""Commands that run another command: where their own words end and the other's begin, and shells given a script.

A *plain* wrapper (`timeout`, `env`, `nice`) adds nothing of its own: it is as allowed as what it runs. Any other
(`sudo`, `ssh`) needs a rule of its own, and what it runs is judged all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from brim.permissions.effects import Effect, read_options, reads_input
from brim.permissions.words import Word, known, names


class Wrapper(msgspec.Struct, frozen=True):
    """`values`, `longs`: options with values; `operands`: how many words stand before the command; `plain`: see above."""

    values: str = ""
    longs: tuple[str, ...] = ()
    operands: int = 0
    plain: bool = True
    doubtful: tuple[str, ...] = ()
    optional: str = ""


WRAPPERS: Mapping[str, Wrapper] = {
    "timeout": Wrapper("ks", ("--signal", "--kill-after"), 1),
    "gtimeout": Wrapper("ks", ("--signal", "--kill-after"), 1),
    "nice": Wrapper("n", ("--adjustment",)),
    "nohup": Wrapper(),
    "time": Wrapper("fo", ("--format", "--output"), doubtful=("-o", "--output")),
    "command": Wrapper(),
    "builtin": Wrapper(),
    "exec": Wrapper("a"),
    "stdbuf": Wrapper("ioe", ("--input", "--output", "--error")),
    "setsid": Wrapper(),
    "ionice": Wrapper("cnpPu", ("--class", "--classdata", "--pid")),
    "chrt": Wrapper("TPD", ("--sched-runtime", "--sched-period", "--sched-deadline"), 1),
    "taskset": Wrapper("", (), 1),
    "numactl": Wrapper("CNmpilt", ("--cpunodebind", "--physcpubind", "--membind", "--interleave", "--preferred")),
    "coproc": Wrapper(plain=False),
    "noglob": Wrapper(),
    "nocorrect": Wrapper(),
    "-": Wrapper(),
    "caffeinate": Wrapper("tw"),
    "unbuffer": Wrapper(),
    "rlwrap": Wrapper("CDHfpsS", plain=False),
    "prlimit": Wrapper("o", plain=False),
    "catchsegv": Wrapper(),
    "faketime": Wrapper("", (), 1, plain=False),
    "fakeroot": Wrapper("lisb", plain=False, doubtful=("-l", "--lib", "--faked")),
    "xvfb-run": Wrapper("nefsw", plain=False),
    "dbus-run-session": Wrapper(plain=False),
    "dbus-launch": Wrapper(plain=False),
    "sudo": Wrapper("ugpCThURD", ("--user", "--group", "--prompt", "--chdir", "--host", "--chroot"), plain=False),
    "sudoedit": Wrapper("ugpCThURD", plain=False),
    "doas": Wrapper("uC", plain=False),
    "pkexec": Wrapper("", ("--user",), plain=False),
    "run0": Wrapper("uDi", ("--user",), plain=False),
    "chroot": Wrapper("", ("--userspec", "--groups"), 1, plain=False),
    "unshare": Wrapper("GSRw", ("--root", "--wd", "--setuid", "--setgid", "--propagation"), plain=False),
    "nsenter": Wrapper("tGSrw", ("--target", "--setuid", "--setgid"), plain=False),
    "setpriv": Wrapper("", ("--reuid", "--regid", "--groups"), plain=False),
    "capsh": Wrapper(plain=False),
    "systemd-run": Wrapper(
        "pMHutE", ("--property", "--unit", "--machine", "--host", "--uid", "--gid", "--slice"), plain=False
    ),
    "strace": Wrapper("abeEIoOPpsSuUX", ("--output", "--trace"), plain=False, doubtful=("-o", "--output")),
    "ltrace": Wrapper("abeAaFlnopsuwxX", plain=False, doubtful=("-o", "--output")),
    "valgrind": Wrapper("", (), plain=False),
    "gdbserver": Wrapper("", (), 1, plain=False),
    "perf": Wrapper("eopFcCM", (), 1, plain=False),
    "hyperfine": Wrapper("wrmMpPDnNLS", (), plain=False),
    "entr": Wrapper(plain=False),
    "doppler": Wrapper(operands=1, plain=False),
    "direnv": Wrapper(operands=2, plain=False),
    "npx": Wrapper("pw", ("--package", "--workspace"), plain=False, doubtful=("-c", "--call")),
    "bunx": Wrapper("p", ("--package",), plain=False),
    "uvx": Wrapper("wp", ("--from", "--with", "--python"), plain=False),
    "pipx": Wrapper("", ("--spec", "--python"), 1, plain=False),
    "busybox": Wrapper(plain=False),
    "toybox": Wrapper(plain=False),
    "sem": Wrapper("jJ", ("--id", "--jobs"), plain=False),
    "bwrap": Wrapper(plain=False),
    "firejail": Wrapper(plain=False),
    "proot": Wrapper("rbwqv", plain=False),
    "torsocks": Wrapper(plain=False),
    "proxychains": Wrapper("f", plain=False),
    "proxychains4": Wrapper("f", plain=False),
    "cgexec": Wrapper("g", plain=False),
    "cpulimit": Wrapper("lpe", plain=False),
    "chpst": Wrapper("uUbenmdoprtcC", plain=False),
    "setarch": Wrapper("", (), 1, plain=False),
    "linux64": Wrapper(plain=False),
    "linux32": Wrapper(plain=False),
    "script": Wrapper("cIOBTtmoE", ("--command",), plain=False),
    "winpty": Wrapper(plain=False),
    "wine": Wrapper(plain=False),
    "rtk": Wrapper(plain=False),
    "mise": Wrapper(operands=1, plain=False),
    "nix-shell": Wrapper("pAI", ("--run", "--command"), plain=False),
    "arch": Wrapper(plain=False),
    "daemonize": Wrapper("acelopuE", plain=False),
    "start-stop-daemon": Wrapper("axpnurgsKd", ("--exec", "--startas"), plain=False),
    "runuser": Wrapper("ugGscw", ("--user", "--command", "--session-command"), plain=False),
    "su": Wrapper("gGscw", ("--command", "--session-command"), 1, plain=False),
    "ssh": Wrapper("BbcDEeFIiJLlmOoPpQRSWw", (), 1, plain=False, doubtful=("-o", "-F", "-E", "-J")),
    "flock": Wrapper("wEc", ("--wait", "--timeout", "--conflict-exit-code", "--command"), 1, plain=False),
    "watch": Wrapper("nsq", ("--interval", "--equexit"), plain=False),
    "parallel": Wrapper(
        "jaSIPnNL", ("--jobs", "--arg-file", "--sshlogin", "--delay", "--timeout", "--joblog"), plain=False
    ),
}
_JOINED = ("watch", "ssh", "hyperfine", "parallel", "sem", "su", "runuser")
"""Their words are put together and given to a shell."""
_WAITS = (
    "ssh",
    "watch",
    "entr",
    "busybox",
    "su",
    "runuser",
    "nix-shell",
    "parallel",
    "sem",
    "unshare",
    "chroot",
    "systemd-run",
    "nsenter",
    "fakeroot",
    "proot",
    "capsh",
    "dbus-run-session",
)
_RUN_VERBS = {
    "uv": ("run", "tool"), "poetry": ("run",), "pipenv": ("run",), "pdm": ("run",), "hatch": ("run",), "rye": ("run",),
    "bundle": ("exec",), "conda": ("run",), "mamba": ("run",), "micromamba": ("run",), "rbenv": ("exec",),
    "pyenv": ("exec",), "nodenv": ("exec",), "asdf": ("exec",), "volta": ("run",), "fnm": ("exec",), "lerna": ("exec",),
    "nix": ("shell", "run", "develop"), "pixi": ("run",), "op": ("run",), "dotenv": ("run",), "coverage": ("run",),
    "devbox": ("run",), "rustup": ("run",), "aws-vault": ("exec",), "git-lfs": ("fetch-run",),
}  # fmt: skip
SHELLS = names("sh bash dash zsh ksh ash mksh fish csh tcsh rbash busybox-sh yash pdksh lksh")


def wrapped(words: Sequence[Word], name: str) -> tuple[bool, list[Effect]] | None:
    """What a wrapper runs: whether it is plain, and its effects. None for a command that is no wrapper."""
    if name in SHELLS:
        return _shell(words)
    if name == "eval":
        return True, [Effect("script", (_join(words[1:]),), "eval")]
    if name == "trap":
        rest = [word for word in words[1:] if word.text != "--"]
        if len(rest) < 2 or (rest[0].text in ("-", "") or (rest[0].text or "").startswith("-")):
            return True, []
        return True, [Effect("script", (rest[0],), "trap")]
    if name == "env":
        effects = list(_env(words))
        return any(effect.kind in ("run", "script", "doubt") for effect in effects), effects
    if name in _RUN_VERBS:
        for position, word in enumerate(words[1:4], 1):
            if word.text in _RUN_VERBS[name]:
                inner = list(words[position + 1 :])
                while inner and inner[0].text is not None and inner[0].text.startswith("-"):
                    takes = inner[0].text in (
                        "-n",
                        "--name",
                        "--with",
                        "--python",
                        "-p",
                        "--group",
                        "--extra",
                        "--from",
                        "-m",
                    )
                    inner = inner[2:] if takes else inner[1:]
                return False, [Effect("run", tuple(inner), f"{name} {word.text}", word.text or "")] if inner else []
        return None
    if name not in WRAPPERS:
        return None
    return _by_table(words, name, WRAPPERS[name])


def _by_table(words: Sequence[Word], name: str, wrapper: Wrapper) -> tuple[bool, list[Effect]]:
    effects: list[Effect] = []
    if name == "command" and len(words) > 1 and re.fullmatch(r"-[pvV]*[vV][pvV]*", words[1].text or ""):
        return True, [Effect("read", (), "command -v only looks a name up")]
    rest = words[1:]
    if name == "nice" and rest and re.fullmatch(r"-{1,2}\d+", rest[0].text or ""):
        rest = rest[1:]
    if name == "setarch" and rest and (rest[0].text or "-").startswith("-"):
        rest = [known("x"), *rest]
    start = len(rest)
    operands = wrapper.operands
    for option in read_options(rest, wrapper.values, wrapper.longs, stop=operands == 0):
        if option.name is None:
            if operands == 0:
                start = option.index
                break
            operands -= 1
            if operands == 0:
                # after the last operand of its own, the command's words begin, options of its own before it
                start = option.index + 1
                while name in ("su", "flock", "ssh") and start < len(rest) and (rest[start].text or "").startswith("-"):
                    start += 2 if rest[start].text in ("-c", "--command", "-p", "-l", "-i", "-o") else 1
                break
            continue
        if option.name == "?":
            effects.append(Effect("doubt", why=f"{option.word.raw} may turn into what {name} runs"))
        if option.name in wrapper.doubtful:
            effects.append(Effect("doubt", why=f"{name} {option.name} does more", option=option.name))
        if option.name in ("-c", "--command", "--session-command", "--run") and name in ("script", "su", "runuser", "flock",
                                                                                         "nix-shell"):  # fmt: skip
            effects.append(Effect("script", (option.value or Word("?", None),), f"{name} {option.name}"))
    if name in ("su", "flock"):
        for position, word in enumerate(rest):
            if word.text in ("-c", "--command") and position + 1 < len(rest) and position >= start - 2:
                effects.append(Effect("script", (rest[position + 1],), f"{name} -c"))
            elif word.text and word.text.startswith(("--command=", "-c")) and len(word.text) > 2 and position > 0:
                value = word.text.partition("=")[2] if "=" in word.text[:10] else word.text[2:]
                effects.append(Effect("script", (known(value),), f"{name} -c"))
    inner = list(rest[start:])
    while name in ("env", "exec", "sudo", "doas", "nohup") and inner and _is_assignment(inner[0]):
        effects.append(Effect("acts", (inner[0],), f"{name} sets a variable"))
        inner = inner[1:]
    if name == "sudo" and any(re.match(r"-\w*[si]$|--(shell|login|edit)", w.text or "") for w in rest[:start]):
        effects.append(Effect("doubt", why="sudo starts a shell or an editor"))
    if name == "script":
        effects.append(Effect("doubt", why="script writes a file", option="script"))
        inner = inner[1:] if not any(e.kind == "script" for e in effects) else []
    if not inner:
        if name in _WAITS and not any(effect.kind == "script" for effect in effects):
            effects.append(Effect("doubt", why=f"{name} starts a shell or waits for commands"))
        return wrapper.plain, effects
    if name in _JOINED:
        if name in ("parallel", "sem"):
            cut = next((i for i, w in enumerate(inner) if w.text in (":::", "::::", ":::+", "::::+")), len(inner))
            replaced = [
                Word(w.raw, None) if w.text is None or re.search(r"\{[\d.+/#%]*\}", w.text) else w for w in inner[:cut]
            ]
            if not replaced:
                effects.append(Effect("doubt", why="parallel runs what it reads"))
            else:
                effects.append(Effect("run", (*replaced, Word("…", None, splits=True)), name))
                if replaced[0].text is not None and re.search(r"[\s;|&$`]", replaced[0].text):
                    effects.append(Effect("script", (_join(replaced),), name))
        elif name in ("su", "runuser"):
            effects.append(Effect("run", tuple(inner), name))
        else:
            effects.append(Effect("script", (_join(inner),), name))
    else:
        effects.append(Effect("run", tuple(inner), name))
    return wrapper.plain, effects


def _is_assignment(word: Word) -> bool:
    return re.match(r"[A-Za-z_]\w*=", word.text if word.text is not None else word.head) is not None


def _join(words: Sequence[Word]) -> Word:
    raw = " ".join(word.raw for word in words)
    if any(word.text is None or word.glob for word in words):
        return Word(raw, None)
    return Word(raw, " ".join(word.text or "" for word in words))


def _shell(words: Sequence[Word]) -> tuple[bool, list[Effect]]:
    """A shell: plain where it is given its script as text; a script file is a program that needs a rule."""
    name = words[0].text or "sh"
    effects: list[Effect] = []
    position = 1
    command = False
    while position < len(words):
        word = words[position]
        text = word.text
        if text is None:
            if command or word.may_be_option():
                return False, [*effects, Effect("doubt", why=f"{word.raw} may be what {name} runs")]
            break
        if text == "--" or not text.startswith(("-", "+")):
            position += text == "--"
            break
        if text.startswith("--"):
            if text.partition("=")[0] in ("--rcfile", "--init-file", "--command", "--init-command"):
                effects.append(Effect("doubt", why=f"{name} {text} runs something", option=text))
            if text in ("--version", "--help"):
                return False, effects
        else:
            command |= "c" in text
            if "s" in text or "i" in text:
                effects.append(Effect("doubt", why=f"{name} {text} reads what it runs", option=text))
            if re.search(r"[oO]$", text):
                position += 1
                if text.endswith("O"):
                    effects.append(Effect("doubt", why=f"{name} {text} changes what words mean", option=text))
        position += 1
    rest = words[position:]
    if command:
        return True, [*effects, Effect("script", (rest[0],) if rest else (Word("?", None),), f"{name} -c")]
    if not rest or reads_input(rest[0]):
        effects.append(Effect("doubt", why=f"{name} runs what it reads", option="" if rest else "<sh"))
    else:
        effects.append(Effect("file", (rest[0],), f"{name} runs a file"))
    return False, effects


def _env(words: Sequence[Word]) -> Iterator[Effect]:
    position = 1
    while position < len(words):
        word = words[position]
        text = word.text if word.text is not None else word.head
        if _is_assignment(word):
            yield Effect("acts", (word,), "env sets a variable")
            position += 1
            continue
        if word.text is None:
            break
        if text == "--":
            position += 1
            while position < len(words) and _is_assignment(words[position]):
                yield Effect("acts", (words[position],), "env sets a variable")
                position += 1
            break
        split = re.fullmatch(r"-[iv0]*S(.*)|--s[a-z-]*=(.*)", text, re.DOTALL)
        if split is not None or re.fullmatch(r"--s[a-z-]*", text):
            given = (split[1] or split[2] or "") if split is not None else ""
            more = words[position + 1 :]
            if not given and more:
                given_word, more = more[0], more[1:]
                if given_word.text is None:
                    yield Effect("doubt", why="env -S splits a text that is not known")
                    return
                given = given_word.text
            joined = _join([known(given), *more])
            yield Effect("script", (joined,), "env -S")
            return
        if text in ("-u", "--unset", "-C", "--chdir", "-a", "--argv0", "-P"):
            position += 2
            if text in ("-C", "--chdir"):
                yield Effect("doubt", why="env -C changes the folder", option=text)
            continue
        if text.startswith("-"):
            if text.startswith("--c") or re.match(r"-[iv0]*C", text):
                yield Effect("doubt", why="env -C changes the folder", option=text)
            position += 1
            continue
        break
    inner = words[position:]
    if inner:
        yield Effect("run", tuple(inner), "env")
