"""Programs that run programs: what of their words is code, and when they run what they read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from brim.permissions.effects import Effect, read_options, reads_input
from brim.permissions.words import Word, known, names

RUNS_CODE: Mapping[str, tuple[str, str]] = {
    # program: options that take code, options with a value that is no code
    "python": ("c", "WXQ"),
    "perl": ("eEiMmxdI", "0lF"),
    "ruby": ("erIx", "CEFKTW"),
    "node": ("eprC", ""),
    "php": ("rBRFEd", "cfSt"),
    "lua": ("el", ""),
    "Rscript": ("e", ""),
    "R": ("ef", ""),
    "osascript": ("e", "l"),
    "tclsh": ("", ""),
    "groovy": ("e", ""),
    "scala": ("e", ""),
    "julia": ("eE", ""),
    "elixir": ("e", ""),
    "guile": ("c", ""),
    "ocaml": ("e", ""),
    "ghc": ("e", ""),
    "bun": ("ep", ""),
    "deno": ("", ""),
    "pwsh": ("cCe", ""),
    "expect": ("c", ""),
    "gdb": ("x", ""),
    "sqlite3": ("", ""),
    "psql": ("cfvo", "dhpU"),
    "mysql": ("e", "DhPu"),
    "jshell": ("", ""),
    "irb": ("", ""),
    "ipython": ("c", ""),
    "ed": ("", ""),
    "ex": ("cSsu", ""),
    "vim": ("cSsuwWirn", "tT"),
    "emacs": ("fl", ""),
    "dc": ("ef", ""),
    "m4": ("", ""),
    "rpm": ("E", ""),
    "nc": ("ec", "psw"),
    "socat": ("", ""),
    "tmux": ("", ""),
    "screen": ("", ""),
    "at": ("", ""),
    "batch": ("", ""),
    "crontab": ("", ""),
    "ftp": ("", ""),
    "telnet": ("", ""),
    "logrotate": ("", ""),
}  # fmt: skip
_CODE_LONG = re.compile(
    r"--(e(?:val|xec|xpression|x)?|print|require|import|loader|experimental-loader|command|code|run|cmd|init-command|load"
    r"|interactive|batch|script|eval-command|source|init-hook|r)\b"
)


_READS = names("sqlite3 socat tmux screen at batch crontab telnet ftp nc emacs psql mysql ed ex dc m4")
"""Programs that take commands from their input whatever else they are given."""


def interpreter_effects(name: str, words: Sequence[Word]) -> Iterator[Effect]:
    code, values = RUNS_CODE[name]
    if name == "python":
        yield from _python(words)
        return
    operand = False
    for option in read_options(words[1:], values, stop=name not in ("vim", "ex", "emacs", "psql", "mysql", "sqlite3")):
        if option.name == "?":
            yield Effect("doubt", why=f"{option.word.raw} may turn into an option of {name}")
        elif option.name is None:
            text = option.word.text or ""
            if not operand and reads_input(option.word):
                yield Effect("doubt", why=f"{name} reads its program from its input")
            if text.startswith("+") and name in ("vim", "ex", "emacs"):
                yield Effect("doubt", why=f"{name} {text} runs a command", option=text)
            if name in ("deno", "bun") and not operand and text in ("eval", "repl", "x", "exec"):
                yield Effect("doubt", why=f"{name} {text} runs code", option=text)
            operand = True
        elif name == "node" and option.name == "--test":
            operand = True
        elif (len(option.name) == 2 and option.name[1] in code) or _CODE_LONG.match(option.name):
            yield Effect("doubt", (option.word,), f"{name} {option.name} runs code that is not judged", option.name)
    versions = {w.text for w in words[1:]} & {"--version", "-V", "-v", "--help", "-h"}
    if (not operand and not versions) or name in _READS:
        yield Effect("doubt", why=f"{name} may run what it reads")


_RUN_TEXT = names(
    "timeit pdb code idlelib runpy trace asyncio sqlite3 ipython ipdb pudb bpdb bpython ptpython ptipython pty xonsh"
)
"""Modules of python that run what they are given or read."""
_RUN_MODULES = names(
    "cprofile profile coverage viztracer scalene pyinstrument kernprof memory_profiler debugpy line_profiler"
)
"""Modules of python that run another: `python -m cProfile -m pdb x`."""


def _from_module(words: Sequence[Word]) -> Sequence[Word]:
    """A module's words from the `-m` on that names another."""
    return next((words[i:] for i, word in enumerate(words) if i and (word.text or "-m").startswith("-m")), words)


def _python(words: Sequence[Word]) -> Iterator[Effect]:
    position = 1
    while position < len(words):
        word = words[position]
        text = word.text
        if text is None:
            if word.may_be_option():
                yield Effect("doubt", why=f"{word.raw} may turn into an option of python")
            elif reads_input(word):
                yield Effect("doubt", why="python reads its program from a substitution")
            return
        if reads_input(word):
            yield Effect("doubt", why="python reads its program from its input")
            return
        if not text.startswith("-"):
            return
        if text in ("--version", "--help") or re.fullmatch(r"-[Vh]+", text):
            return
        if text.startswith("--"):
            position += 2 if text == "--check-hash-based-pycs" else 1
            continue
        for offset, letter in enumerate(text[1:], 1):
            if letter == "c":
                yield Effect("doubt", tuple(words[position:]), "python -c runs code that is not judged", "-c")
                return
            if letter == "m":
                rest = [known(text[offset + 1 :])] if text[offset + 1 :] else []
                inner = (*rest, *words[position + 1 :])
                yield Effect("acts", inner, "python -m runs a module")
                module = (inner[0].text or "").lower() if inner else None
                if not inner or inner[0].text is None or module in _RUN_TEXT:
                    yield Effect("doubt", why="that module of python runs what it is given")
                elif module in _RUN_MODULES and any(
                    word.text is None or word.text.startswith("-m") for word in inner[1:]
                ):
                    yield from _python((known("python"), *_from_module(inner)))
                return
            if letter == "i":
                yield Effect("doubt", why="python -i reads a program from its input", option="-i")
            if letter in "WXQ":
                position += 0 if text[offset + 1 :] else 1
                break
        position += 1
    yield Effect("doubt", why="python reads its program from its input")


def module_words(words: Sequence[Word]) -> Sequence[Word]:
    """What stands from the module on in `python -m module …`; nothing where there is no `-m`."""
    for position, word in enumerate(words[1:], 1):
        text = word.text or ""
        found = re.fullmatch(r"-[bBdEIOPqsSuvx]*m(.*)", text)
        if found is not None:
            return ([known(found[1])] if found[1] else []) + list(words[position + 1 :])
        if not text.startswith("-"):
            return ()
    return ()
