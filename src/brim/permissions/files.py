"""Files that a command line writes or names: where their paths lead, and what the rules about files say."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from brim.permissions.globs import names_it
from brim.permissions.operands import paths_in
from brim.permissions.paths import Place, is_guarded, literal_pattern, locate, matching_paths, shown
from brim.permissions.rules import Rule, format_rule, quote_word
from brim.permissions.values import Call
from brim.permissions.verdict import Part
from brim.permissions.words import Word

LIMITS: tuple[Literal["deny", "ask"], ...] = ("deny", "ask")
NOTHING = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/stdin")


_SYSTEM = re.compile(r"/(etc|usr|bin|sbin|lib|lib64|boot|opt|var/spool)(/|$)")
"""Places of the system's."""


class Rules:
    """The rules of one check, by decision and tool."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        every = list(rules)
        self.deny = [rule for rule in every if rule.decision == "deny"]
        self.ask = [rule for rule in every if rule.decision == "ask"]
        self.allow = [rule for rule in every if rule.decision == "allow"]

    def of(self, decision: Literal["deny", "ask", "allow"], *tools: str) -> list[Rule]:
        """Rules about any of the tools."""
        rules = {"deny": self.deny, "ask": self.ask, "allow": self.allow}[decision]
        return [rule for rule in rules if rule.tool in tools or ("*" in rule.tool and any(
            fnmatch.fnmatchcase(tool, rule.tool) for tool in tools))]  # fmt: skip


class FileJudge:
    """What judges of commands share: the rules, the parts judged so far, and the judgement of files."""

    def __init__(self, rules: Rules, workspace: Path, mode: str, cwd: str | None) -> None:
        self.rules = rules
        self.workspace = workspace
        self.root = os.path.realpath(workspace)
        self.mode = mode
        self.cwd = cwd or self.root
        self.parts: list[Part] = []
        self.bash = {d: rules.of(d, "bash") for d in ("deny", "ask", "allow")}
        self.everything = next((rule for rule in self.bash["allow"] if rule.pattern is None), None)
        self.limits = bool(self.bash["deny"] or self.bash["ask"] or rules.of("deny", "read", "write", "edit")
                           or rules.of("ask", "read", "write", "edit"))  # fmt: skip
        self.command = ""
        self.written: set[str] = set()
        self.changed: set[str] = set()
        self.dashed = False
        self.spaced = False

    def add(
        self,
        text: str,
        decision: Literal["allow", "ask", "deny"],
        why: str,
        rule: str | None = None,
        needs: str | None = None,
    ) -> None:
        self.parts.append(Part(text if len(text) <= 300 else text[:299] + "…", decision, why, rule, needs))

    def doubt(self, text: str, why: str, needs: str | None = None) -> None:
        """Something that cannot be judged: asked about even where everything is allowed, since some things are denied."""
        self.add(text, "ask", why, None, needs)

    def default(self, text: str, why: str, needs: str | None) -> None:
        """Something no rule speaks of."""
        if self.mode == "allow-all":
            self.add(text, "allow", "the mode allows all that is not denied")
        else:
            self.add(text, "ask", why, None, needs)

    def write(self, target: Word, call: Call, text: str, *, granted: bool = False) -> None:
        """A file that is written. `granted`: the rule for the command names it."""
        path = target.text
        if path is not None and (path in NOTHING or re.fullmatch(r"/dev/fd/\d+", path)):
            return
        if path is None or target.glob or path.startswith(("/dev/tcp/", "/dev/udp/")):
            if not granted:
                self.doubt(text, f"which file {target.raw} is, is not known before it runs")
            return
        for cwd in call.cwds:
            place = self.place(target, cwd)
            if place is None:
                self.doubt(text, f"where {target.raw} lies is not known")
                return
            where = shown(place, self.workspace)
            for decision in LIMITS:
                rule = matching_paths(self.rules.of(decision, "write", "edit"), place, self.workspace)
                if rule is not None:
                    self.add(text, rule.decision, f"writes {where}: {rule.text}", rule.text)
                    return
            allowed = matching_paths(self.rules.of("allow", "write"), place, self.workspace)
            guarded = is_guarded(place.real)
            if allowed is not None and guarded and not is_guarded(f"/{allowed.pattern or ''}"):
                allowed = None
            if allowed is not None:
                self.add(text, "allow", f"writes {where}: {allowed.text}", allowed.text)
            elif granted or (self.everything and not guarded):
                continue
            elif self.mode == "accept-edits" and place.inside and not guarded:
                self.add(text, "allow", f"writes {where}: edits are accepted")
            else:
                pattern = literal_pattern(place, self.workspace)
                self.default(text, f"it writes {where}", format_rule("write", pattern) if pattern else None)
                return

    def place(self, word: Word, cwd: str | None) -> Place | None:
        path = word.text
        if path is None or (cwd is None and not path.startswith("/") and not word.tilde):
            return None
        if word.tilde and not re.match(r"~(/|$)", path):
            return None
        return locate(path, self.workspace, cwd, home=word.tilde)

    def guarded_places(self, words: Sequence[Word], call: Call, text: str) -> None:
        """`cp x .git/hooks/pre-commit`: who may copy may not, for that, plant what other programs run."""
        for word in words[1:]:
            for path, tilde in paths_in(word) if word.text is not None else ():
                for cwd in call.cwds:
                    place = self.place(Word(path, path, tilde=tilde), cwd)
                    if place is None or not (is_guarded(place.real) or _SYSTEM.match(place.real)):
                        continue
                    named = [
                        rule
                        for rule in self.rules.of("allow", "write")
                        if is_guarded(f"/{rule.pattern}") or _SYSTEM.match(rule.pattern or "")
                    ]
                    if matching_paths(named, place, self.workspace):
                        continue
                    exact = None
                    if all(each.text is not None and not each.glob for each in words):
                        exact = format_rule("bash", " ".join(quote_word(each.text or "") for each in words))
                    self.doubt(text, f"{shown(place, self.workspace)} can make other programs run something", exact)
                    return

    def expanded(self, pattern: str, cwd: str | None) -> list[str]:
        base = cwd or self.root
        found = glob.glob(_as_python_reads(pattern), root_dir=base, include_hidden=True)
        plain = not _ODD.search(re.sub(r"\[[:.=]\w+[:.=]\]", "a", pattern))
        return [each for each in found if not plain or names_it(pattern, each)][:500] or [pattern]

    def stays(self, word: Word, call: Call) -> bool:
        if word.choices:
            return all(self.stays(each, call) for each in word.choices)
        if word.text is None:
            return word.head in ("./", "/dev/fd/")
        for path, _ in paths_in(word):
            if word.tilde and not re.match(r"~(/|$)", path):
                return False
            full = os.path.expanduser(path) if word.tilde else path
            for cwd in call.cwds:
                if cwd is None:
                    return False
                if not all(self.inside(each, cwd) for each in (self.expanded(full, cwd) if word.glob else [full])):
                    return False
        return True

    def inside(self, path: str, cwd: str) -> bool:
        """Inside the workspace, or nowhere at all: what does not exist cannot be read."""
        place = locate(path, self.workspace, cwd, home=False)
        if place is None:
            return False
        return place.inside or place.real in NOTHING or not os.path.lexists(os.path.join(cwd, path))


_ODD = re.compile(r"\[[!^]?\]|\[[^/]*\][^/]*\]|[\\(]")
"""A pattern whose words do not tell how the shell reads it: quotes are gone from it by now."""


def _as_python_reads(pattern: str) -> str:
    """A pattern of the shell's in the form that python knows, or one that covers more: `[^a]`, `[[:alpha:]]`, `[]a]`."""
    if re.search(r"\[[^/]*\[[:.=]", pattern) or _ODD.search(pattern):
        return re.sub(r"[\[\\][^/]*", "*", pattern)
    return pattern.replace("[^", "[!")
