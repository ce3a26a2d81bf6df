"""What a command does besides its own work: run another one, write a file, or something nobody can tell from its words.

Effects are found by reading a command's options the way getopt does: clusters, values in the next word, `--name=value`,
and abbreviated long names. An unknown word that could be an option is an effect of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from brim.permissions.words import Word

Kind: TypeAlias = Literal["run", "script", "file", "write", "read", "doubt", "acts"]


class Effect(msgspec.Struct, frozen=True):
    """`run`: the command `words` is run; `script`: `words[0]` is run by a shell; `file`: the shell script in the file
    `words[0]`; `write`, `read`: the file `words[0]`;
    `acts`: does what the command `words` does; `doubt`: `why` cannot be judged.

    `option` is the one that does it: an allow rule that names it allows it.
    """

    kind: Kind
    words: tuple[Word, ...] = ()
    why: str = ""
    option: str = ""


def reads_input(word: Word) -> bool:
    """Whether a program that is given as a file comes out of a pipe or a substitution."""
    text = word.text if word.text is not None else word.head
    if word.text is None and not word.head and word.splits:
        return True
    return text in ("-", "/dev/stdin") or text.startswith(("/dev/fd/", "/proc/"))


Handler: TypeAlias = Callable[[Sequence[Word]], Iterable[Effect]]


class Option(msgspec.Struct, frozen=True):
    """`name` None is an operand, "?" a word that may turn into an option; `word` is where it stands."""

    name: str | None
    value: Word | None
    word: Word
    index: int


def read_options(
    words: Sequence[Word],
    short_values: str = "",
    long_values: Iterable[str] = (),
    *,
    stop: bool = False,
    optional: str = "",
) -> Iterator[Option]:
    """The options and operands of `words` (without the command). `short_values`: letters that take a value, `optional`
    ones only in the same word; `long_values`: long options whose value may be the next word; `stop`: the first operand
    ends the options.
    """
    longs = tuple(long_values)
    position = 0
    ended = False
    while position < len(words):
        word = words[position]
        index = position
        position += 1
        text = word.text if word.text is not None else word.head
        if ended or (word.text is not None and (text == "-" or not text.startswith("-"))):
            yield Option(None, None, word, index)
            if stop:
                for rest in range(position, len(words)):
                    yield Option(None, None, words[rest], rest)
                return
            continue
        if word.text is None and not text.startswith("-"):
            yield Option("?" if word.may_be_option() else None, None, word, index)
            if stop and not word.may_be_option():
                ended = True
            continue
        if text == "--" and word.text is not None:
            ended = True
            continue
        if text.startswith("--"):
            name, equals, value = text.partition("=")
            if equals:
                yield Option(name, Word(value, value if word.text is not None else None, head=value), word, index)
            elif word.text is None:
                yield Option("?", None, word, index)
            elif any(long == name or (len(name) > 2 and long.startswith(name)) for long in longs) and position < len(
                words
            ):
                yield Option(name, words[position], word, index)
                position += 1
            else:
                yield Option(name, None, word, index)
            continue
        for offset, letter in enumerate(text[1:], 1):
            tail = text[offset + 1 :]
            attached = Word(tail, tail if word.text is not None else None, head=tail)
            if letter in optional:
                yield Option(f"-{letter}", attached, word, index)
                break
            if letter not in short_values:
                yield Option(f"-{letter}", None, word, index)
                continue
            if tail or word.text is None:
                yield Option(f"-{letter}", attached, word, index)
            elif position < len(words):
                yield Option(f"-{letter}", words[position], word, index)
                position += 1
            else:
                yield Option(f"-{letter}", None, word, index)
            break
        else:
            if word.text is None:
                yield Option("?", None, word, index)


class Risks(msgspec.Struct, frozen=True):
    """Options of a program that do more than its own work. `options`: name to kind; `values`: letters that take a value
    and are harmless; `removes`: options that delete files, as rm does."""

    options: Mapping[str, Kind]
    values: str = ""
    removes: tuple[str, ...] = ()
    optional: str = ""
    safe: tuple[str, ...] = ()


RM = (Word("rm", "rm"), Word("…", None, splits=True))


def effects_of(risks: Risks, words: Sequence[Word]) -> Iterator[Effect]:
    """The effects of a command (`words` with its name) by its table of risky options."""
    name = words[0].text or ""
    valued = {option for option, kind in risks.options.items() if kind != "doubt"}
    letters = risks.values + "".join(option[1] for option in valued if not option.startswith("--") and len(option) == 2)
    longs = [option for option in risks.options if option.startswith("--")]
    for option in read_options(
        words[1:], letters, [option for option in longs if option in valued], optional=risks.optional
    ):
        if option.name is None:
            continue
        if option.name == "?":
            if risks.options or risks.removes:
                yield Effect("doubt", why=f"{option.word.raw} may turn into an option of {name}")
            continue
        if option.name in risks.removes or (
            len(option.name) > 5 and any(long.startswith(option.name) for long in risks.removes)
        ):
            yield Effect("acts", RM, f"{name} {option.name} deletes files", option.name)
        known = option.name
        if known not in risks.options and known.startswith("--") and known not in risks.safe:
            known = next((long for long in longs if len(known) > 2 and long.startswith(known)), known)
        kind = risks.options.get(known)
        if kind is None:
            continue
        if kind == "doubt":
            yield Effect("doubt", why=f"{name} {known} does more than {name}", option=option.name)
        elif option.value is None:
            yield Effect("doubt", why=f"{name} {known} without its value", option=option.name)
        else:
            yield Effect(kind, (option.value,), f"{name} {known}", option.name)
