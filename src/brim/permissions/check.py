"""One question, one answer: may this tool run with these arguments?

Deny rules win, then ask rules, then allow rules; where none speaks, the mode decides. Bash commands are taken apart and
judged part by part; files are judged by where their paths lead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from brim.errors import UsageError
from brim.permissions.paths import is_guarded, literal_pattern, locate, matching_paths, shown
from brim.permissions.rules import Decision, Rule, format_rule, parse_rules, tool_matches
from brim.permissions.verdict import Part, Verdict

Mode: TypeAlias = Literal["ask", "accept-edits", "read-only", "allow-all"]
MODES: tuple[Mode, ...] = ("ask", "accept-edits", "read-only", "allow-all")

_READS = ("read", "grep", "glob")
_WRITES = ("write", "edit")
_ALWAYS = ("recall", "find_tool")
"""Tools that touch nothing but the conversation and the list of tools."""
_FAMILIES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    # tool: whose rules hold for it, by decision
    "read": {"deny": ("read",), "ask": ("read",), "allow": ("read",)},
    "grep": {"deny": ("grep", "read"), "ask": ("grep", "read"), "allow": ("grep", "read")},
    "glob": {"deny": ("glob", "read"), "ask": ("glob", "read"), "allow": ("glob", "read")},
    "write": {"deny": ("write", "edit"), "ask": ("write", "edit"), "allow": ("write",)},
    "edit": {"deny": ("write", "edit"), "ask": ("write", "edit"), "allow": ("write", "edit")},
}


def check(
    tool: str,
    arguments: Mapping[str, Any] | str,
    allow: Iterable[str | Rule] = (),
    deny: Iterable[str | Rule] = (),
    ask: Iterable[str | Rule] = (),
    workspace: str | os.PathLike[str] | None = None,
    mode: str = "ask",
    *,
    cwd: str | os.PathLike[str] | None = None,
    read_only: bool = False,
) -> Verdict:
    """Judge a call before it runs; nothing is run, files are looked at only to follow paths.

    `arguments`: as the tool takes them; for bash a plain string is the command. Rules are texts (`bash(git *)`, `read`,
    a bare `git *` for bash) or parsed. `workspace`: the folder that tools work in, None for the current one; `cwd`: where
    bash stands in it; `read_only`: what an unknown tool says of itself. Raises UsageError for a rule or a mode that makes
    no sense.
    """
    if mode not in MODES:
        raise UsageError(f"permission mode {mode!r} is unknown", hint=f"one of {', '.join(MODES)}")
    rules = [*_parsed(deny, "deny"), *_parsed(ask, "ask"), *_parsed(allow, "allow")]
    folder = Path(os.path.realpath(workspace if workspace is not None else os.getcwd()))
    given = {"command": arguments} if isinstance(arguments, str) else arguments
    where = None if cwd is None else os.path.realpath(cwd)
    if mode == "read-only":
        rules = [rule for rule in rules if rule.decision != "allow" or _may_allow_reading(rule, tool, read_only)]
        # what would change something without the rules that ask is denied: nobody is asked whether the mode holds
        unasked = _judge(tool, given, [r for r in rules if r.decision != "ask"], folder, mode, where, read_only)
        if any(part.decision == "ask" for part in unasked):
            parts = [
                Part(part.text, "deny", f"{part.why}, and the mode is read-only") if part.decision == "ask" else part
                for part in unasked
            ]
            return _sum_up(tool, given, parts, rules)
    parts = _judge(tool, given, rules, folder, mode, where, read_only)
    return _sum_up(tool, given, parts, rules)


def _may_allow_reading(rule: Rule, tool: str, read_only: bool) -> bool:
    """Whether an allow rule holds in the read-only mode: one about tools that read, or about another's tool that says so."""
    if tool in (*_WRITES, "bash"):
        return rule.tool in _READS
    return tool in (*_READS, *_ALWAYS) or read_only


def _parsed(texts: Iterable[str | Rule], decision: Decision) -> list[Rule]:
    if isinstance(texts, str):
        texts = [texts]
    made: list[Rule] = []
    for text in texts:
        made += [text] if isinstance(text, Rule) else parse_rules([text], decision)
    return made


def _judge(
    tool: str,
    arguments: Mapping[str, Any],
    rules: Sequence[Rule],
    workspace: Path,
    mode: str,
    cwd: str | None,
    read_only: bool,
) -> list[Part]:
    if tool == "bash":
        from brim.permissions.files import Rules
        from brim.permissions.judge import BashJudge

        commands = [value for key in ("command", "cmd", "script") if (value := arguments.get(key)) is not None]
        parts: list[Part] = []
        for command in commands:
            if not isinstance(command, str):
                parts.append(Part(str(command)[:200], "ask", f"the command is no text but {type(command).__name__}"))
                continue
            parts += BashJudge(Rules(rules), workspace, mode, cwd).judge(command)
        return parts or [Part("", "ask", "bash without a command")]
    paths = _paths(tool, arguments)
    if tool in _FAMILIES and paths:
        return [_path_part(tool, path, rules, workspace, mode) for path in paths]
    return [_tool_part(tool, arguments, rules, mode, read_only)]


def _paths(tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """The paths a call names, under all the names they go by."""
    named = [
        value for key in ("path", "file_path", "filepath", "file", "filename", "notebook_path", "directory", "dir", "paths")
        if (value := arguments.get(key)) is not None and value != ""
    ]  # fmt: skip
    found = [str(each) for value in named for each in (value if isinstance(value, list | tuple) else [value])]
    if tool == "glob" and isinstance(pattern := arguments.get("pattern"), str):
        # the part before the first glob is a path of its own
        head = re.split(r"[*?\[{]", pattern, maxsplit=1)[0]
        folder = head if head == pattern else head.rpartition("/")[0] + ("/" if "/" in head else "")
        base = found[0] if found else "."
        found.append(folder if folder.startswith(("/", "~")) else os.path.join(base, folder))
        climbs = [part for part in re.split(r"[/{},]", pattern) if part == ".."]
        if climbs:
            found.append(os.path.join(base, *climbs))
    if tool in _READS and not found:
        found.append(".")
    return found


def _path_part(tool: str, path: str, rules: Sequence[Rule], workspace: Path, mode: str) -> Part:
    text = f"{tool} {path}"
    place = locate(path, workspace)
    if place is None:
        return Part(text, "deny", f"{path!r} is a name that leads nowhere")
    where = shown(place, workspace)
    told = where if place.real == place.written else f"{path}, which leads to {place.real},"
    by = {
        d: [r for r in rules if r.decision == d and any(tool_matches(r, t) for t in _FAMILIES[tool][d])]
        for d in ("deny", "ask", "allow")
    }
    if (rule := matching_paths(by["deny"], place, workspace)) is not None:
        return Part(text, "deny", f"{tool} {told} is denied by {rule.text}", rule.text)
    if (rule := matching_paths(by["ask"], place, workspace)) is not None:
        return Part(text, "ask", f"{tool} {told}: the user wants to be asked: {rule.text}", rule.text)
    guarded = tool in _WRITES and is_guarded(place.real)
    rule = matching_paths(by["allow"], place, workspace)
    if rule is not None and (not guarded or is_guarded(f"/{rule.pattern or ''}")):
        return Part(text, "allow", f"allowed by {rule.text}", rule.text)
    if mode == "allow-all":
        return Part(text, "allow", "the mode allows all that is not denied")
    if place.inside and tool in _READS:
        return Part(text, "allow", "only reads, inside the workspace")
    if place.inside and tool in _WRITES and mode == "accept-edits" and not guarded:
        return Part(text, "allow", "edits are accepted")
    pattern = literal_pattern(place, workspace)
    why = (
        f"{told} is outside the workspace"
        if not place.inside
        else f"{told} can make other programs run something"
        if guarded
        else f"{tool} changes {where}"
    )
    return Part(text, "ask", why, None, format_rule(tool, pattern) if pattern is not None else None)


def _tool_part(tool: str, arguments: Mapping[str, Any], rules: Sequence[Rule], mode: str, read_only: bool) -> Part:
    """A tool without paths, such as one of an MCP server: rules for the whole tool, or a glob over its arguments."""
    subject = next(
        (v for k in ("query", "url", "command", "name", "pattern") if isinstance(v := arguments.get(k), str)), ""
    )
    text = f"{tool} {subject}".strip()
    texts = _texts(arguments) if tool.startswith("mcp__") else [subject]
    about = [
        rule
        for rule in rules
        if tool_matches(rule, tool)
        and (rule.pattern is None or (_covers_all if rule.decision == "allow" else _covers_any)(rule, texts))
    ]
    for decision in ("deny", "ask", "allow"):
        rule = next((each for each in about if each.decision == decision), None)
        if rule is not None:
            said = {"deny": "denied by", "ask": "the user wants to be asked:", "allow": "allowed by"}[decision]
            return Part(text, rule.decision, f"{said} {rule.text}", rule.text)
    if mode == "allow-all":
        return Part(text, "allow", "the mode allows all that is not denied")
    if tool in _ALWAYS or tool in _READS:
        return Part(
            text,
            "allow",
            "reads only what the session holds" if tool in _ALWAYS else "only reads, inside the workspace",
        )
    said = "says of itself that it only reads" if read_only else "may change something"
    return Part(text, "ask", f"{tool} {said}", None, format_rule(tool, None))


def _texts(value: Any) -> list[str]:
    """Every text in the arguments of a tool whose parameters brim knows nothing of."""
    if isinstance(value, Mapping):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list | tuple):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def _covers_any(rule: Rule, texts: Sequence[str]) -> bool:
    return any(_covers(rule, text) for text in texts)


def _covers_all(rule: Rule, texts: Sequence[str]) -> bool:
    """For what allows: every text of the call, and none that climbs out of the folder that the pattern names."""
    return bool(texts) and all(_covers(rule, text) and ".." not in re.split(r"[/\\]", text) for text in texts)


def _covers(rule: Rule, subject: str) -> bool:
    pattern = ".*".join(re.escape(piece) for piece in (rule.pattern or "*").split("*"))
    return re.fullmatch(pattern, subject, re.DOTALL) is not None


def _sum_up(tool: str, arguments: Mapping[str, Any], parts: Sequence[Part], rules: Sequence[Rule]) -> Verdict:
    for decision in ("deny", "ask"):
        found = [part for part in parts if part.decision == decision]
        if not found:
            continue
        part = found[0]
        whole = arguments.get("command") if tool == "bash" else None
        alone = whole in (None, part.text) or part.text in part.why
        why = part.why if alone else f"{part.text}: {part.why}"
        if decision == "deny":
            return Verdict("deny", why, part.rule, tuple(parts))
        needs = _needs(tool, arguments, found, rules)
        return Verdict("ask", why, needs[0] if needs else part.rule, tuple(parts), needs)
    deciding = next((part for part in parts if part.rule), parts[0])
    why = deciding.why if len(parts) == 1 else "; ".join(dict.fromkeys(part.why for part in parts))
    return Verdict("allow", why, deciding.rule, tuple(parts))


def _needs(tool: str, arguments: Mapping[str, Any], asked: Sequence[Part], rules: Sequence[Rule]) -> tuple[str, ...]:
    """The rules that would allow all that is asked; none where an ask rule of the user's own asks."""
    if any(part.rule in {rule.text for rule in rules if rule.decision != "allow"} for part in asked if part.rule):
        return ()
    if all(part.needs for part in asked):
        return tuple(dict.fromkeys(part.needs for part in asked if part.needs))
    command = arguments.get("command")
    if tool == "bash" and isinstance(command, str) and command.strip():
        return (format_rule("bash", command.strip()),)
    return ()
