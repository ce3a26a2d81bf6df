"""The step between the model and every tool: a verdict by the rules, a question to the user where they leave it open,
and a refusal that names the flag which would allow it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from brim.permissions import MODES, LeftOut, Verdict, check, left_out, parse_rule, parse_rules
from brim.tools import Tool, ToolContext, resolve_path

_PATH_ARGUMENTS = ("path", "file_path")

Answer: TypeAlias = Literal["once", "always", "no"]


class Question(msgspec.Struct, frozen=True):
    """What the user is asked: may this call run? `rules` would allow it from now on; none where no rule can."""

    tool: str
    arguments: Mapping[str, Any]
    why: str
    rules: tuple[str, ...]


Ask: TypeAlias = Callable[[Question], Awaitable[Answer]]
Remember: TypeAlias = Callable[[str], None]


def unknown_tools(rules: Sequence[str], tools: Sequence[str]) -> list[str]:
    """What is wrong with rules that name no tool there is, a sentence each. Tools of MCP servers may come later."""
    said: list[str] = []
    for text in rules:
        named = parse_rule(text, "allow").tool
        if named != "*" and named not in tools and not re.match(r"\w+__|mcp_", named) and "*" not in named:
            close = difflib.get_close_matches(named, tools, 1)
            better = f"did you mean {close[0]}?" if close else f"tools: {', '.join(tools)}"
            said.append(f"the rule {text} fits nothing: there is no tool {named!r}; {better}")
    return said


class Permits:
    """Decides each call. Without `ask` nobody can be asked: what would need it is refused.

    `remember` is told each rule that was answered with "always". `refused` lists the refusals. Raises
    UsageError for a rule or mode that makes no sense.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        mode: str = "ask",
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        ask_rules: Sequence[str] = (),
        ask: Ask | None = None,
        remember: Remember | None = None,
    ) -> None:
        self.workspace = workspace
        self.mode = mode
        self.allow = list(allow)
        self.deny = list(deny)
        self.ask_rules = list(ask_rules)
        self.ask = ask
        self.remember = remember
        self.refused: list[str] = []
        for given, decision in ((self.allow, "allow"), (self.deny, "deny"), (self.ask_rules, "ask")):
            parse_rules(given, decision)  # type: ignore[arg-type]  # the three lists are named by their decisions

    def left_out(self, tool: str, start: str) -> LeftOut | None:
        """What a search below a folder must not show: files that deny and ask rules cover."""
        rules = [*parse_rules(self.deny, "deny"), *parse_rules(self.ask_rules, "ask")]
        return left_out(tool, rules, start, self.workspace)

    def judge(self, tool: Tool, arguments: Mapping[str, Any], cwd: Path | None = None) -> Verdict:
        """What the rules and the mode say."""
        return check(
            tool.name, arguments, self.allow, self.deny, self.ask_rules, self.workspace, self.mode, cwd=cwd,
            read_only=tool.read_only,
        )  # fmt: skip

    async def __call__(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> str | None:
        """None lets the call run; a text is the refusal that the model is told."""
        verdict = self.judge(tool, arguments, context.cwd)
        if verdict.decision == "deny":
            return self._refuse(tool, f"refused: {verdict.why}. Do not try to get around it")
        if verdict.decision == "ask":
            if self.ask is None:
                way = f"The user can allow it with {verdict.flags()}" if verdict.needs else "No rule can allow it"
                return self._refuse(tool, f"refused: {verdict.why}, and nobody can be asked here. {way}")
            answer = await self.ask(Question(tool.name, arguments, verdict.why, verdict.needs))
            if answer == "no":
                return self._refuse(tool, "refused: the user said no. Ask what to do instead")
            if answer == "always":
                self.allow += verdict.needs
                if self.remember is not None:
                    for rule in verdict.needs:
                        self.remember(rule)
        self._grant(arguments, context)
        return None

    def _refuse(self, tool: Tool, text: str) -> str:
        self.refused.append(f"{tool.name}: {text}")
        return text

    def _grant(self, arguments: Mapping[str, Any], context: ToolContext) -> None:
        """A place outside the workspace that was allowed here may be opened; each further call is judged all the same."""
        for name in _PATH_ARGUMENTS:
            if isinstance(path := arguments.get(name), str) and path:
                resolved = resolve_path(context.workspace, path)
                if not resolved.inside:
                    context.granted.add(resolved.path)


__all__ = ["MODES", "Answer", "Ask", "Permits", "Question", "Remember"]
