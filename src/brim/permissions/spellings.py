"""The same command in other words, for rules that deny: `npm i` is `npm install`, `kill -KILL` is `kill -9`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from brim.permissions.words import Word, known, names

_VERBS: Mapping[str, Mapping[str, str]] = {
    "npm": {
        **dict.fromkeys(("i", "in", "ins", "inst", "insta", "instal", "isnt", "isnta", "isntal", "isntall", "add"), "install"),
        **dict.fromkeys(("rm", "r", "un", "unlink", "remove"), "uninstall"), **dict.fromkeys(("t", "tst"), "test"),
        **dict.fromkeys(("run-script", "rum", "urn"), "run"), **dict.fromkeys(("up", "upgrade", "udpate"), "update"),
        "x": "exec", "c": "config", "pub": "publish", "ic": "ci", "clean-install": "ci", "author": "owner",
    },
    "cargo": {"b": "build", "t": "test", "r": "run", "c": "check", "d": "doc", "rm": "remove"},
    "git": {"stage": "add"}, "helm": dict.fromkeys(("delete", "del", "un"), "uninstall"),
}  # fmt: skip
"""Other names of subcommands."""


def other_spellings(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Each other form of a command (`words` with its name) that a rule may have been written for."""
    name = (words[0].text or "").rpartition("/")[2]
    verb = words[1].text or "" if len(words) > 1 else ""
    family = "npm" if name in ("pnpm", "yarn", "bun") else name
    if verb in _VERBS.get(family, {}):
        yield [words[0], known(_VERBS[family][verb]), *words[2:]]
    if (
        name in ("docker", "podman")
        and verb in ("container", "image", "volume", "network", "system")
        and len(words) > 2
    ):
        yield [words[0], *([known("rmi")] if (verb, words[2].text) == ("image", "rm") else [words[2]]), *words[3:]]
    if name.endswith("-compose"):
        yield [known(name.removesuffix("-compose")), known("compose"), *words[1:]]
    if name in ("apt-get", "apt"):
        yield [known("apt" if name == "apt-get" else "apt-get"), *words[1:]]
    if (
        name in ("terraform", "tofu", "terragrunt")
        and verb == "apply"
        and any(re.fullmatch(r"--?destroy(=true)?", word.text or "") for word in words[2:])
    ):
        yield [words[0], known("destroy"), *words[2:]]
    if name == "cargo" and verb.startswith("+"):
        yield [words[0], *words[2:]]
    if name in _TARGETS:
        # every target counts, wherever it stands
        for word in words[2:]:
            if word.text is None or not (word.text.startswith("-") or "=" in word.text):
                yield [words[0], word]
    if name in ("kill", "pkill", "killall"):
        yield from _signals(words)
    if name == "chmod":
        yield from _modes(words)


_TARGETS = names("make gmake just task rake ant gradle gradlew mvn mvnw nox invoke ninja")
"""Programs that are given the names of what they are to make."""
_SIGNALS = {"1": "HUP", "2": "INT", "3": "QUIT", "9": "KILL", "15": "TERM", "19": "STOP"}


def _signals(words: Sequence[Word]) -> Iterator[list[Word]]:
    """`kill -9`, `-KILL`, `-SIGKILL`, `-s 9` and `--signal=KILL` are one."""
    for position, word in enumerate(words[1:], 1):
        text = (word.text or "").upper()
        following = (words[position + 1].text or "").upper() if position + 1 < len(words) else ""
        given, more = (
            (following, 2) if text in ("-S", "-N", "--SIGNAL") else (re.sub(r"^-(-SIGNAL=|S|N)?(?=.)", "", text), 1)
        )
        for name in (given, re.sub(r"^-", "", text)):
            number = {signal: each for each, signal in _SIGNALS.items()}.get(name.removeprefix("SIG"), name)
            if number in _SIGNALS and text.startswith("-"):
                spelled = [known(each) for each in (f"-{number}", f"-{_SIGNALS[number]}", f"-SIG{_SIGNALS[number]}",
                                                    "-s", _SIGNALS[number])]  # fmt: skip
                yield [words[0], *spelled, *words[1:position], *words[position + more :]]
                return


def _modes(words: Sequence[Word]) -> Iterator[list[Word]]:
    """`0777`, `a+rwx` and `ugo=rwx` are `777`; `a+x` is `+x`."""
    at = next((i for i, word in enumerate(words) if i and re.fullmatch(r"[0-7]+|[ugoa]*[-+=][rwxXst]*(,.*)?", word.text or "")
               and not re.fullmatch(r"-[RvcfhHLP]+", word.text or "")), None)  # fmt: skip
    if at is None:
        return
    mode = words[at].text or ""
    if mode.isdigit():
        bits = int(mode, 8)
    else:
        bits = 0
        for who, sign, what in re.findall(r"([ugoa]*)([-+=])([rwxX]*)", mode):
            if sign != "-":
                each = sum(
                    {"r": 4, "w": 2, "x": 1, "X": 1}[letter] for letter in set(what) - {"X"} | ({"x"} & set(what))
                )
                bits |= sum(each << shift for letter, shift in (("u", 6), ("g", 3), ("o", 0))
                            if not who or "a" in who or letter in who)  # fmt: skip
                yield [*words[:at], known(f"{'' if sign == '=' else sign}{what}"), *words[at + 1 :]]
    for form in {f"{bits:o}", f"{bits & 0o777:o}"}:
        yield [*words[:at], known(form), *words[at + 1 :]]


_KIN = {"pnpm": "npm", "yarn": "npm", "bun": "npm", "podman": "docker", "nerdctl": "docker"}


def kindred(words: Sequence[Word]) -> list[Word] | None:
    """What another program of the same kind would be told: `pnpm publish` publishes as `npm publish` does. What installs
    is left out: a rule against `npm install` may be for the sake of the other program."""
    name = os.path.basename(words[0].text or "")
    verb = next((word.text or "" for word in words[1:] if not (word.text or "-").startswith("-")), "")
    if name not in _KIN:
        return None
    if _KIN[name] == "docker":
        return [known("docker"), *words[1:]]
    if verb in ("publish", "unpublish", "run", "run-script", "exec", "dlx", "login", "token", "deprecate", "npm"):
        return [known("npm"), *words[2 if verb == "npm" else 1 :]]
    return [known("npm"), known("run"), *words[1:]] if name == "yarn" or verb == "deploy" else None
