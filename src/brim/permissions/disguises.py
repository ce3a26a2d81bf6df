"""Commands that are not what their first word says: hidden in the words of another, under another name, changed by a file
that is named like an option or by a folder that brings its own settings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from brim.permissions.forbidding import forbids
from brim.permissions.reads import ReadJudge
from brim.permissions.values import Call
from brim.permissions.words import Word, known, names


class DisguiseJudge(ReadJudge):
    """Judges what a command may turn out to be."""

    def hidden_command(self, words: Sequence[Word], text: str) -> None:
        """An unknown program may run the words it is given: `somewrapper rm -rf x`, `somewrapper "cd /; rm x"`."""
        if words[0].text in ("gh", "glab") and len(words) > 1 and words[1].text in _FORGE:
            return
        for start in range(1, len(words)):
            given = words[start].text
            if given is None:
                continue
            tail = given.rpartition("=")[2]
            for rule in self.bash["deny"]:
                first = rule.words()[0].literal if rule.pattern is not None else None
                if not first:
                    continue
                inside = re.search(rf"(?:^|[\s;&|(`/\"'!{{,])({re.escape(first)})(?:$|[\s;&|)`\"'}},])", tail)
                if (inside and re.search(r"[\s,]", tail)) or forbids(rule, [known(tail), *words[start + 1 :]]) == "yes":
                    self.add(
                        text,
                        "ask",
                        f"{words[0].raw} may run {words[start].raw}, and there is the rule {rule.text}",
                        rule.text,
                    )
                    return

    def renamed_program(self, words: Sequence[Word], text: str) -> None:
        """A copy of a denied program, or a link to it, runs under another name: `cp /bin/rm x; ./x y`."""
        for word in words[1:]:
            folder, _, base = (word.text or "").rpartition("/")
            if not re.search(r"bin$|/lib", folder):
                continue
            for rule in self.bash["deny"]:
                first = rule.words()[0] if rule.pattern is not None else None
                if first is not None and not first.star and re.fullmatch(first.regex, base):
                    self.add(
                        text,
                        "ask",
                        f"it can give {word.raw} another name, and there is the rule {rule.text}",
                        rule.text,
                    )
                    return

    def globbed_options(self, words: Sequence[Word], call: Call, text: str) -> None:
        """A file named like an option becomes one where a pattern names it: `sort *` beside a file `-oX`."""
        for word in words[1:]:
            for one in word.choices or (word,):
                if not one.glob or one.text is None or one.text[:1] not in "*?[":
                    continue
                if self.dashed or any(
                    each.startswith("-") for cwd in call.cwds for each in self.expanded(one.text, cwd)
                ):
                    self.doubt(text, f"{word.raw} may become an option")
                    return

    def foreign_repository(self, words: Sequence[Word], call: Call, text: str) -> None:
        """A folder that is itself a bare repository brings its own settings, which can run programs."""
        targets = [words[i + 1].text for i in range(len(words) - 1) if words[i].text == "-C"]
        for cwd in call.cwds:
            folders = [cwd, *(os.path.join(cwd or self.root, each) for each in targets if each is not None)]
            bare = next((folder for folder in folders if folder and _is_bare_repository(folder)), None)
            if bare is not None:
                self.doubt(text, f"{bare} is a bare repository with settings of its own")
                return


_FORGE = names("pr mr issue run release api search label workflow project ci job pipeline")
"""Subcommands of gh and glab that take texts, not commands."""


def _is_bare_repository(folder: str) -> bool:
    return all(os.path.exists(os.path.join(folder, each)) for each in ("HEAD", "objects", "refs", "config"))
