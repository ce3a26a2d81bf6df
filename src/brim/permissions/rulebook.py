"""All rules that hold, and who set them: the user, the project, this session.

A project's rules come with the project, so only those that narrow count: deny and ask. What the user allows "from now on"
is kept in a file of its own beside the user's config, in the config's form, so that it can be read, edited and moved
there:

    [permissions]
    allow = ["bash(git push *)"]
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from brim.errors import ConfigError, UsageError
from brim.permissions.check import check
from brim.permissions.rules import Decision, Rule, parse_rule
from brim.permissions.verdict import Verdict

DECISIONS: tuple[Decision, ...] = ("deny", "ask", "allow")


class RuleBook:
    """Rules with their origins, in the order in which they were added. `notices`: what was left out, and why."""

    def __init__(self, remembered: Path | None = None) -> None:
        """`remembered`: the file for rules that are to last; read here. Raises ConfigError for one that is no such file."""
        self.rules: list[Rule] = []
        self.notices: list[str] = []
        self.file = remembered
        if remembered is not None:
            self.add(load_rules(remembered), "remembered")

    def add(
        self,
        rules: Mapping[Decision, Sequence[str]] | Mapping[str, Sequence[str]],
        origin: str,
        *,
        narrow: bool = False,
    ) -> None:
        """Rules by decision, as a config's table [permissions] has them. `narrow`: of a project; its allow rules are left
        out with a notice. Raises UsageError for an empty rule."""
        for decision in DECISIONS:
            for text in rules.get(decision, ()):
                if narrow and decision == "allow":
                    self.notices.append(
                        f"{origin}: the rule {text!r} is left out: a project may only narrow permissions"
                    )
                    continue
                rule = parse_rule(text, decision, origin)
                if rule not in self.rules:
                    self.rules.append(rule)

    def texts(self, decision: Decision) -> list[str]:
        """The rules of one decision as they were written, each once."""
        return list(dict.fromkeys(rule.text for rule in self.rules if rule.decision == decision))

    def check(
        self, tool: str, arguments: Mapping[str, Any], workspace: Path, mode: str = "ask", **more: Any
    ) -> Verdict:
        """`brim.permissions.check` with these rules."""
        return check(
            tool, arguments, self.texts("allow"), self.texts("deny"), self.texts("ask"), workspace, mode, **more
        )

    def remember(self, text: str, decision: Decision = "allow", *, lasting: bool = False) -> Rule:
        """Add a rule for this session, `lasting` ones for all to come. Raises UsageError, and ConfigError where the file
        cannot be written."""
        rule = parse_rule(text, decision, "remembered" if lasting else "session")
        if lasting and self.file is None:
            raise UsageError("there is no file to remember rules in")
        if not any(each.text == rule.text and each.decision == decision for each in self.rules):
            self.rules.append(rule)
        if lasting and self.file is not None:
            kept = load_rules(self.file)
            if text not in kept[decision]:
                kept[decision].append(text)
                save_rules(self.file, kept)
        return rule

    def forget(self, text: str) -> list[Rule]:
        """Drop a rule, by its text, from this session and the file. Rules of config files stay: their origin is named in
        the UsageError that is raised where nothing can be dropped."""
        own = [rule for rule in self.rules if rule.text == text and rule.origin in ("session", "remembered")]
        if not own:
            elsewhere = next((rule.origin for rule in self.rules if rule.text == text), None)
            hint = f"it stands in {elsewhere}; remove it there" if elsewhere else "`brim permissions list` shows all"
            raise UsageError(f"no remembered rule {text!r}", hint=hint)
        self.rules = [rule for rule in self.rules if rule not in own]
        if self.file is not None:
            kept = load_rules(self.file)
            if any(text in kept[decision] for decision in DECISIONS):
                save_rules(
                    self.file, {decision: [each for each in kept[decision] if each != text] for decision in DECISIONS}
                )
        return own

    def listing(self) -> list[dict[str, str]]:
        """Every rule as it was written, with decision and origin; JSON-serialisable."""
        return [{"decision": rule.decision, "rule": rule.text, "origin": rule.origin} for rule in self.rules]


def remembered_path(env: Mapping[str, str]) -> Path:
    """`permissions.toml` beside the user's config file."""
    if named := env.get("BRIM_CONFIG", "").strip():
        return Path(named).expanduser().parent / "permissions.toml"
    if base := env.get("XDG_CONFIG_HOME", "").strip():
        return Path(base) / "brim" / "permissions.toml"
    import platformdirs

    return Path(platformdirs.user_config_dir("brim")) / "permissions.toml"


def load_rules(path: Path) -> dict[Decision, list[str]]:
    """The rules of a file, by decision; none where there is no file. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {decision: [] for decision in DECISIONS}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", hint="fix the file or its permissions") from error
    return parse_rules_file(text, str(path))


def parse_rules_file(text: str, shown: str = "the file") -> dict[Decision, list[str]]:
    """The table [permissions] of a TOML text. Raises ConfigError."""
    try:
        table = msgspec.toml.decode(text).get("permissions", {})
        return {decision: msgspec.convert(table.get(decision, []), list[str]) for decision in DECISIONS}
    except (msgspec.DecodeError, msgspec.ValidationError, AttributeError) as error:
        raise ConfigError(f"{shown} holds no rules: {error}", hint="write [permissions] and allow = [...]") from error


def format_rules_file(rules: Mapping[Decision, Iterable[str]]) -> str:
    """Rules as a TOML text that `parse_rules_file` reads back the same."""
    lines = [
        '# Rules that were answered with "always". Each can be removed with `brim permissions forget RULE`.',
        "[permissions]",
    ]
    for decision in DECISIONS:
        texts = list(rules.get(decision, ()))
        if texts:
            lines += [f"{decision} = [", *(f"  {_toml_text(text)}," for text in texts), "]"]
    return "\n".join(lines) + "\n"


def _toml_text(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def save_rules(path: Path, rules: Mapping[Decision, Iterable[str]]) -> None:
    """Write a file of rules, readable by its owner only; the old or the new one is there, whole. Raises ConfigError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".permissions")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(format_rules_file(rules))
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error}", hint="check the folder's permissions") from error
