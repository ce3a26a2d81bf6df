"""Programs that run programs: what of their words is code, and when they run what they read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from brim.permissions.effects import Effect, Option, read_options, reads_input
from brim.permissions.snippets import node_is_plain, python_files, sql_is_plain
from brim.permissions.words import UNKNOWN, Word, known, names

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
    "ghci": ("e", ""),
    "jjs": ("", ""),
    "pry": ("e", ""),
    "byebug": ("", ""),
    "wish": ("", ""),
    "iex": ("e", ""),
    "erl": ("", ""),
    "sbcl": ("", ""),
    "racket": ("e", ""),
    "octave": ("", ""),
    "gnuplot": ("e", ""),
    "mongosh": ("", "u"),
    "lftp": ("ce", "up"),
    "smbclient": ("c", "U"),
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
    if name in _QUERIES and _only_queries(name, words):
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
        elif name == "node" and (option.name == "--test" or _is_plain_to_node(option, words)):
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


_QUERIES = {
    # program: letters with values, the option that takes a query (none: operands after the first)
    "psql": ("cdhpU", ("-c", "--command")),
    "mysql": ("eDhPu", ("-e", "--execute")),
    "sqlite3": ("", ()),
}


_QUERY_OPTIONS = re.compile(
    r"-[dhpUDPutAqxNB]|--(dbname|host|port|username|tuples-only|csv|json|header|noheader|column|line|box|markdown|table"
    r"|readonly|list|batch|no-align|no-psqlrc|quiet|separator)"
)


def _only_queries(name: str, words: Sequence[Word]) -> bool:
    """Whether a database's client is given queries that only read, and nothing else that it would run."""
    letters, takers = _QUERIES[name]
    queries: list[Word] = []
    operands = 0
    fixed = [
        known(f"-{word.text}") if name == "sqlite3" and re.match(r"-\w\w", word.text or "") else word for word in words
    ]
    for option in read_options(
        fixed[1:], letters, ("--command", "--execute", "--dbname", "--host", "--port", "--username")
    ):
        if option.name in takers:
            queries.append(option.value if option.value is not None else UNKNOWN)
        elif option.name is None:
            operands += 1
            if name == "sqlite3" and operands > 1:
                queries.append(option.word)
        elif not _QUERY_OPTIONS.fullmatch(option.name):
            return False
    return bool(queries) and all(query.text is not None and sql_is_plain(query.text) for query in queries)


def _is_plain_to_node(option: Option, words: Sequence[Word]) -> bool:
    """Whether the code that an option of node's takes, in its word or the next one, only prints."""
    following = words[option.index + 2] if option.index + 2 < len(words) else UNKNOWN
    code = option.value if option.value is not None else following
    takes_code = re.fullmatch(r"-(e|p|pe)|--(eval|print)(=.*)?", option.word.text or "", re.DOTALL) is not None
    return takes_code and code.text is not None and node_is_plain(code.text)


def _python(words: Sequence[Word]) -> Iterator[Effect]:
    position, skips = 1, False  # `-x` leaves out a line of the program
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
            known_as = "<python" if text == "-" and not skips else ""
            yield Effect("doubt", why="python reads its program from its input", option=known_as)
            return
        if not text.startswith("-"):
            return
        skips |= not text.startswith("--") and "x" in text
        if text in ("--version", "--help") or re.fullmatch(r"-[Vh]+", text):
            return
        if text.startswith("--"):
            position += 2 if text == "--check-hash-based-pycs" else 1
            continue
        for offset, letter in enumerate(text[1:], 1):
            if letter == "c":
                given = (
                    [text[offset + 1 :]]
                    if text[offset + 1 :]
                    else [each.text for each in words[position + 1 : position + 2]]
                )
                files = python_files(given[0]) if given and given[0] is not None else None
                if files is not None:
                    yield from (Effect("read", (known(file),), "python -c opens it") for file in files)
                    return
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
    yield Effect("doubt", why="python reads its program from its input", option="" if skips else "<python")


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
