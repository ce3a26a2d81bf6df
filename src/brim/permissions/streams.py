"""Commands with a language of their own, or that run others over a stream: find, fd, xargs, sed, awk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from brim.permissions.awk import awk_is_plain
from brim.permissions.effects import RM, Effect, read_options
from brim.permissions.words import UNKNOWN, Word


def find_effects(words: Sequence[Word]) -> Iterator[Effect]:
    position = 1
    while position < len(words):
        word = words[position]
        text = word.text
        position += 1
        if text is None:
            if word.may_be_option():
                yield Effect("doubt", why=f"{word.raw} may turn into an action of find")
            continue
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            inner: list[Word] = []
            while position < len(words) and words[position].text not in (";", "+"):
                inner.append(words[position])
                position += 1
            position += 1
            file = Word("{}", None, head="./", found=names_found(words))
            made = tuple(file if each.text == "{}" else each for each in inner)
            if any(each.text is not None and "{}" in each.text for each in made):
                made = tuple(Word(e.raw, None) if e.text is not None and "{}" in e.text else e for e in made)
            yield Effect("run", made, f"find {text}", text)
        elif text == "-delete":
            yield Effect("acts", RM, "find -delete deletes files", "-delete")
            yield Effect("doubt", why="find -delete deletes files", option="-delete")
        elif text in ("-fprint", "-fprint0", "-fls", "-fprintf"):
            target = words[position] if position < len(words) else UNKNOWN
            yield Effect("write", (target,), f"find {text}", text)
        elif text == "-files0-from":
            yield Effect("doubt", why="find -files0-from", option=text)


def names_found(words: Sequence[Word]) -> tuple[str, ...]:
    """A glob that covers the names of all that a find command finds, and the folders it starts from; nothing where its
    words do not tell."""
    texts = [word.text for word in words[1:]]
    start = next((i for i, text in enumerate(texts) if text is None or text.startswith(("-", "(", "!"))), len(texts))
    folders = [text for text in texts[:start] if text] or ["."]
    action = next(
        (i for i, text in enumerate(texts) if re.match(r"-(exec|ok|print|ls|fls|fprint|delete)", text or "")),
        len(texts),
    )
    globs = [
        texts[i + 1] for i, text in enumerate(texts[:action]) if text in ("-name", "-iname") and i + 1 < len(texts)
    ]
    odd = {"-o", "-or", ",", "!", "-not", "(", ")", "-L", "-H", "-follow", "-files0-from"} & set(texts)
    if None in texts[: start + 1] or any(word.glob for word in words[1 : start + 1]):
        return ()
    first = globs[0] if globs and not odd else None
    return (
        ("*" if first is None or re.search(r"[\[\\]", first) else first, *folders)
        if not odd & {"-L", "-H", "-follow", "-files0-from"}
        else ()
    )


UNKNOWN_FILE = Word("{}", None, head="./")
"""A file name that find puts in: never an option."""


def fd_effects(words: Sequence[Word]) -> Iterator[Effect]:
    for position, word in enumerate(words[1:], 1):
        text = word.text
        if text is None:
            if word.may_be_option():
                yield Effect("doubt", why=f"{word.raw} may turn into an option of fd")
        elif re.fullmatch(r"-[a-zA-Z]*[xX]", text) or (text.startswith("--e") and "--exec-batch".startswith(text[:6])):
            inner = [each for each in words[position + 1 :] if each.text not in (";",)]
            yield Effect(
                "run", tuple(UNKNOWN_FILE if e.text and "{" in e.text else e for e in inner), f"fd {text}", text
            )
            if "=" in text:
                yield Effect("doubt", why=f"fd {text}", option=text)
            return


_SED_SIMPLE = re.compile(
    r"[0-9$,~+!\s;{}]|[dDgGhHnNpPxz=l]|[btT:][ \t]*\w*[ \t]*(?=[;\n}]|\Z)|[qQ][ \t]*\d*|[aic]\\?[^\n\\]*(?=\n|\Z)"
    r"|y/[^/\n\\]*/[^/\n\\]*/"
)


def sed_is_plain(script: str) -> bool:
    """Whether a sed program only edits the stream: no command that writes, reads or runs."""
    position = 0
    while position < len(script):
        char = script[position]
        if char == "s" and position + 1 < len(script):
            mark = script[position + 1]
            if mark in "\n\\":
                return False
            end = position + 2
            for _ in range(2):
                while end < len(script) and script[end] != mark:
                    if script[end] == "[" and mark not in "[]" and (close := script.find("]", end + 2)) > 0:
                        inside = script[end:close]
                        if mark in inside:
                            return False
                    end += 2 if script[end] == "\\" else 1
                end += 1
            if end > len(script) or "\n" in script[position:end]:
                return False
            flags = re.compile(r"[gpIiMm0-9]*").match(script, end)
            position = flags.end() if flags else end
            if position < len(script) and script[position] not in ";}\n \t#":
                return False
            continue
        if char == "/" or (char == "\\" and position + 1 < len(script)):
            mark = "/" if char == "/" else script[position + 1]
            end = position + (1 if char == "/" else 2)
            while end < len(script) and script[end] != mark:
                if script[end] == "[":
                    close = script.find("]", end + 2)
                    if close > 0 and mark in script[end:close]:
                        return False
                end += 2 if script[end] == "\\" else 1
            if end >= len(script) or "\n" in script[position:end]:
                return False
            position = end + 1
            if position < len(script) and script[position] in "IM":
                position += 1
            continue
        if char == "#":
            position = script.find("\n", position)
            if position < 0:
                return True
            continue
        found = _SED_SIMPLE.match(script, position)
        if found is None or not found.end() > position:
            return False
        position = found.end()
    return True


def sed_effects(words: Sequence[Word]) -> Iterator[Effect]:
    scripts: list[Word] = []
    operands: list[Word] = []
    changes = ""
    for option in read_options(words[1:], "efl", ("--expression", "--file", "--line-length"), optional="i"):
        name = option.name
        if name is None:
            operands.append(option.word)
        elif name == "?":
            yield Effect("doubt", why=f"{option.word.raw} may turn into an option of sed")
        elif name == "-i" or (name.startswith("--i") and "--in-place".startswith(name)):
            changes = option.word.text or "-i"
            if option.value is not None and (option.value.text is None or re.search(r"[/*]", option.value.text)):
                yield Effect("doubt", why="sed -i writes into another folder", option=changes)
        elif name == "-f" or (name.startswith("--f") and "--file".startswith(name)):
            yield Effect("doubt", why="sed -f runs a program from a file", option="-f")
        elif (
            name == "-e" or (name.startswith("--e") and "--expression".startswith(name))
        ) and option.value is not None:
            scripts.append(option.value)
    if not scripts and operands:
        scripts.append(operands.pop(0))
    if changes:
        yield from (Effect("write", (each,), "sed -i changes files", changes) for each in operands or [UNKNOWN])
    for script in scripts:
        if not sed_is_plain(script.text if script.text is not None else script.sample.replace("\0", "1") or "w"):
            yield Effect("doubt", why=f"the sed program {script.raw[:60]} may write files or run commands")


def awk_effects(words: Sequence[Word]) -> Iterator[Effect]:
    program: Word | None = None
    for option in read_options(words[1:], "FvW", ("--assign", "--field-separator"), stop=True):
        if option.name is None:
            program = option.word
            break
        if option.name == "?":
            yield Effect("doubt", why=f"{option.word.raw} may turn into an option of awk")
        elif option.name not in (
            "-F",
            "-v",
            "--assign",
            "--field-separator",
            "-P",
            "-S",
            "--posix",
            "--sandbox",
            "--csv",
        ):
            yield Effect("doubt", why=f"awk {option.name}", option=option.name)
    text = program.text if program is not None else ""
    if text is None or not awk_is_plain(text):
        yield Effect("doubt", why="the awk program may write files or run commands")


def xargs_effects(words: Sequence[Word]) -> Iterator[Effect]:
    replaced: list[str] = []
    inner: list[Word] = []
    for option in read_options(
        words[1:], "adEILnPs", ("--arg-file", "--delimiter", "--max-args", "--max-procs", "--max-chars", "--replace",
                                "--process-slot-var", "--max-lines", "--eof"), stop=True, optional="ile"
    ):  # fmt: skip
        if option.name is None:
            inner = list(words[1 + option.index :])
            break
        if option.name == "?":
            yield Effect("doubt", why=f"{option.word.raw} may turn into what xargs runs")
            return
        if option.name in ("-I", "-i", "--replace", "-J"):
            replaced.append((option.value.text if option.value is not None else None) or "{}")
    if not inner:
        return
    from_pipe = not any(re.match(r"-\w*a|--a", word.text or "-a") for word in words[1 : len(words) - len(inner)])
    made = tuple(
        Word(word.raw, None, head=word.text.split(mark)[0], fed=from_pipe and word.text == mark)
        if word.text is not None and mark in word.text
        else word
        for mark in (replaced or ["\0"])[-1:]
        for word in inner
    )
    yield Effect("run", made if replaced else (*made, msgspec.structs.replace(UNKNOWN, fed=from_pipe)), "xargs")
