"""Commands about what stands around the conversation: tools, permissions, the debug log, help, the way out."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from brim.agent.opening import Choice
from brim.budget.bill import fit
from brim.cli.output import short_session, width_of
from brim.cli.slash.table import COMMANDS, command, number_of, path_of
from brim.errors import UsageError

if TYPE_CHECKING:
    from brim.cli.repl import Repl

_WIDE = 90
"""Columns from which on a command and its words stand on one line."""
_HEAD, _TAIL = 150, 50
"""Lines of a result that are shown of its beginning and its end."""


@command("help", "", "this list")
async def _help(repl: Repl, rest: str) -> None:
    width = width_of(repl.output.err)
    rows = [(f"/{name} {each.usage}", each.about) for name, each in COMMANDS.items()]
    rows += [
        ("!command", "run it here; what it prints joins the conversation"),
        ("@path", "in a message: hand over a file"),
        ("Alt-Enter, \\ at the end", "another line"),
        ("Ctrl-C", "stop the answer, what came is kept; twice: leave (Ctrl-D)"),
    ]
    for left, right in rows:
        if width >= _WIDE:
            head = f"  {left:<33} "
            lines = textwrap.wrap(right, width - len(head) - 1) or [""]
            repl.say("\n".join(f"{head if at == 0 else ' ' * 36}{line}" for at, line in enumerate(lines)))
            continue
        repl.say(fit(f"  {left}", width))
        for line in textwrap.wrap(right, width - 6):
            repl.say(f"      {line}", "2")


@command("tools", "[last|N]", "the tools; last, or message N: all that a call returned (Ctrl-O)")
async def _tools(repl: Repl, rest: str) -> None:
    agent = repl.opened.agent
    if rest:
        _result(repl, rest)
        return
    width = width_of(repl.output.err)
    for tool in agent.tools:
        does = "reads" if tool.read_only else "acts "
        repl.say(fit(f"  {tool.name:<8} {does}  {tool.description.split('. ')[0]}", width))
    permits = agent.permits
    if permits is not None:
        repl.tell(f"permission mode {permits.mode}; allowed: {', '.join(permits.allow) or 'nothing more'}", "2")


def _result(repl: Repl, rest: str) -> None:
    """What a call returned, as the model got it, and where the rest of it is."""
    session = repl.opened.agent.session
    messages, session_name = session.messages, short_session(session.id)
    results = [seq for seq, each in enumerate(messages) if each.role == "tool"]
    if not results:
        raise UsageError("no tool was called yet", hint="/tools lists them")
    seq = results[-1] if rest == "last" else number_of(rest, "message")
    if seq not in results:
        near = ", ".join(str(each) for each in results[-5:])
        raise UsageError(f"message {seq} is no result of a tool", hint=f"the latest are {near}; /tools last")
    answered = messages[seq].result
    calls = (call for each in reversed(messages[:seq]) for call in each.calls)
    call = next((each for each in calls if each.id == answered.call_id), None)
    if call is not None:
        repl.say(f"{seq}  {call.name} {call.arguments}", "36")
    lines = messages[seq].text.splitlines()
    if len(lines) > _HEAD + _TAIL:
        between = f"… {len(lines) - _HEAD - _TAIL:,} lines; brim sessions show {session_name} -m {seq} has all …"
        lines = [*lines[:_HEAD], between, *lines[-_TAIL:]]
    repl.say("\n".join(lines))


@command("permissions", "[allow|deny RULE]", "the rules; add one for this conversation")
async def _permissions(repl: Repl, rest: str) -> None:
    from brim.permissions import parse_rules

    permits = repl.opened.agent.permits
    assert permits is not None
    word, _, rule = rest.partition(" ")
    rule = rule.strip()
    if len(rule) > 1 and rule[0] == rule[-1] and rule[0] in "'\"":
        rule = rule[1:-1]  # as one would write it for a shell
    if word in ("allow", "deny") and rule:
        parse_rules([rule], "allow" if word == "allow" else "deny")
        (permits.allow if word == "allow" else permits.deny).append(rule)
    elif rest:
        lacking = (
            f"/permissions {word} needs a rule"
            if word in ("allow", "deny")
            else f"/permissions {rest} is not understood"
        )
        raise UsageError(lacking, hint="/permissions allow 'bash(git *)'")
    repl.tell(f"mode {permits.mode}" + ("" if permits.allow or permits.deny or permits.ask_rules else "; no rules"))
    for name, rules in (("allow", permits.allow), ("deny", permits.deny), ("ask", permits.ask_rules)):
        for each in rules:
            repl.tell(f"  {name} {each}")


@command("mcp", "[restart NAME]", "the MCP servers and their tools; start one again")
async def _mcp(repl: Repl, rest: str) -> None:
    from brim.agent.servers import tool_counter
    from brim.cli.commands.mcp import told_state

    servers = repl.opened.servers
    word, _, name = rest.partition(" ")
    if word == "restart" and name.strip() in servers.servers:
        await servers.servers[name.strip()].restart()
    elif rest and rest not in servers.servers:
        hint = f"servers: {', '.join(servers.servers) or 'none is configured'}"
        raise UsageError(f"/mcp {rest} is not understood", hint=f"/mcp, /mcp NAME, /mcp restart NAME; {hint}")
    for state in servers.states(tool_counter(repl.opened.agent)):
        for line in told_state(state, tools=state.name == rest):
            repl.say(fit(line, width_of(repl.output.err)))
    if not servers.servers:
        repl.tell("no MCP server is configured: [mcp.servers.NAME] in `brim config edit`", "2")


@command("profile", "[NAME]", "the profiles; go on under one of them")
async def _profile(repl: Repl, rest: str) -> None:
    from brim.agent.config import load_config
    from brim.agent.tables import PROFILES

    if not rest:
        for name in sorted({*PROFILES, *repl.config.table("profiles")}):
            profile = repl.config.profile(name)
            mark = "*" if name == repl.profile else " "
            repl.say(
                f"{mark} {name:<10} mode {profile.mode or repl.config.get('mode')}, {profile.model or 'any model'}"
            )
        return
    flags = {key: value for key, value in repl.options.flags.items() if key not in ("mode", "model")}
    config = load_config(repl.workspace, repl.env, flags=flags, profile=rest)
    await repl.reopen(Choice(id=repl.opened.agent.session.id), config)
    repl.profile = rest
    session = repl.opened.agent.session
    repl.tell(f"profile {rest}: mode {session.mode}, model {session.model.full_name}")


@command("debug", "[FILE|off]", "write requests, calls and results to a file")
async def _debug(repl: Repl, rest: str) -> None:
    from brim.agent.debuglog import DebugLog

    agent = repl.opened.agent
    if rest:
        path = None if rest == "off" else path_of(repl, rest)
        log = DebugLog(path, (agent.session.model.key or "",))
        repl.debug = path
        repl.opened.debug.close()
        repl.opened.debug = agent.debug = log
    repl.tell(f"debug log: {repl.debug or 'off'}")


@command("exit", "", "leave (Ctrl-D)")
async def _exit(repl: Repl, rest: str) -> None:
    from brim.cli.repl import Leave

    raise Leave
