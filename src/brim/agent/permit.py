"""The step between the model and every tool: a verdict from the rules, a question to the user where the rules leave it
open, and a refusal that names the rule which would allow it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from brim.tools import Tool, ToolContext

Mode: TypeAlias = Literal["ask", "accept-edits", "read-only", "allow-all"]
MODES: tuple[Mode, ...] = ("ask", "accept-edits", "read-only", "allow-all")


class Judgement(Protocol):
    """What `brim.permissions.check` gives."""

    @property
    def decision(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def rule(self) -> str | None: ...


class Question(msgspec.Struct, frozen=True):
    """What the user is asked: may this call run? `rule` is the one that would allow it from now on."""

    tool: str
    arguments: Mapping[str, Any]
    why: str
    rule: str


Answer: TypeAlias = Literal["once", "always", "no"]
Ask: TypeAlias = Callable[[Question], Awaitable[Answer]]
Check: TypeAlias = Callable[[Tool, Mapping[str, Any], "Permits"], Judgement]


class Permits:
    """Decides each call. Without `ask` nobody can be asked: what would need it is refused.

    `refused` counts the refusals, so that a script's exit code can tell.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        mode: Mode = "ask",
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        ask: Ask | None = None,
        check: Check | None = None,
    ) -> None:
        self.workspace = workspace
        self.mode: Mode = mode
        self.allow = list(allow)
        self.deny = list(deny)
        self.ask = ask
        self.refused: list[str] = []
        self._check = check or check_minimal

    async def __call__(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> str | None:
        """None lets the call run; a text is the refusal that the model is told."""
        verdict = self._check(tool, arguments, self)
        if verdict.decision == "allow":
            return None
        rule = verdict.rule or f"{tool.name}(*)"
        if verdict.decision == "deny":
            self.refused.append(f"{tool.name}: {verdict.why}")
            return f"refused: {verdict.why}"
        if self.ask is None:
            said = f"refused: {verdict.why}, and nobody can be asked here. The user can allow it with --allow {rule!r}"
            self.refused.append(f"{tool.name}: {verdict.why}; --allow {rule!r} would allow it")
            return said
        answer = await self.ask(Question(tool.name, arguments, verdict.why, rule))
        if answer == "no":
            self.refused.append(f"{tool.name}: the user said no")
            return "refused: the user said no. Ask what to do instead"
        if answer == "always":
            self.allow.append(rule)
        return None


class _Verdict(msgspec.Struct, frozen=True):
    decision: str
    why: str
    rule: str | None = None


def check_minimal(tool: Tool, arguments: Mapping[str, Any], permits: Permits) -> Judgement:
    """The least there must be: read-only tools inside the workspace run, the rest asks; a rule is a tool's name, or
    `name(pattern)` over its command or path, `*` standing for anything. A deny rule wins over everything.
    """
    from fnmatch import fnmatchcase

    subject = next((str(arguments[key]) for key in ("command", "path", "file_path") if arguments.get(key)), "")
    rule = f"{tool.name}({subject.split(maxsplit=1)[0]} *)" if tool.name == "bash" and subject else tool.name

    def matches(given: str) -> bool:
        name, _, pattern = given.partition("(")
        return fnmatchcase(tool.name, name.strip()) and (not pattern or fnmatchcase(subject, pattern.rstrip(")")))

    if any(matches(given) for given in permits.deny):
        return _Verdict("deny", f"{tool.name} is denied by a rule")
    if any(matches(given) for given in permits.allow) or permits.mode == "allow-all":
        return _Verdict("allow", "allowed by a rule")
    path = arguments.get("path") or arguments.get("file_path")
    inside = True
    if isinstance(path, str) and path:
        target = (permits.workspace / path).resolve()
        inside = target == permits.workspace or permits.workspace in target.parents
    if tool.read_only and inside:
        return _Verdict("allow", "only reads, inside the workspace")
    if permits.mode == "read-only" and not tool.read_only:
        return _Verdict("deny", f"{tool.name} changes things, and the mode is read-only")
    if permits.mode == "accept-edits" and tool.name in ("edit", "write") and inside:
        return _Verdict("allow", "edits are accepted")
    why = f"{tool.name} is not only reading" if not tool.read_only else f"{path} lies outside the workspace"
    return _Verdict("ask", why, rule)
