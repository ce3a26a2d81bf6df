"""find_tool and call_tool: how tools are reached whose definitions do not fit into every request.

find_tool answers with names, descriptions and parameters; call_tool calls by name. Both stand in the list of tools from the
first request on and never change, so the prompt cache holds: a list of tools that grew with each find would be written anew,
and with it all that follows, since every provider puts tools before the conversation. What was found stands in the
conversation instead, where only what is new is paid for.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from brim.errors import ToolError
from brim.tools.bounded import BoundedOutput, Limits
from brim.tools.context import Tool, ToolContext, ToolOutput
from brim.tools.mcp.schemas import RemoteTool

FIND, CALL = "find_tool", "call_tool"
_SHOWN = 5
_LISTED = 15
_SCHEMA_CHARS = 6_000
"""Parameters of all that is shown; a tool beyond it is listed only, and shown when it is asked for by name."""
_WORD = re.compile(r"[A-Za-z]+|\d+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def describe_find(groups: Mapping[str, Sequence[RemoteTool]], starting: Sequence[str], names: int) -> str:
    """The description of find_tool, with the names of at most so many tools, shared out among the servers."""
    total = sum(len(tools) for tools in groups.values())
    lines = [
        f"Find one of {total} more tools by what it should do or by name; answers with names, descriptions and parameters. "
        f"Call what you found with {CALL}."
        if total
        else f"Find tools of servers that are still starting. Call what you found with {CALL}."
    ]
    left, servers = names, len(groups)
    for server, tools in groups.items():
        share = min(len(tools), left // max(1, servers))
        left, servers = left - share, servers - 1
        shown = ", ".join(tool.name.removeprefix(f"mcp__{server}__") for tool in tools[:share])
        more = f" and {len(tools) - share} more" if share and len(tools) > share else ""
        lines.append(f"mcp__{server}__ ({len(tools)})" + (f": {shown}{more}" if shown else ""))
    if starting:
        lines.append(f"Still starting: {', '.join(starting)}")
    return "\n".join(lines)


def make_finder(
    description: str,
    look: Callable[[], Any],
    find: Callable[[str], Tool | None],
) -> list[Tool]:
    """The two tools. `look` is awaited for (tools, words about servers that are not there); `find` knows tools by name."""

    async def run_find(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        tools, notes = await look()
        text = show_found(str(arguments["query"]), tools, notes)
        bounded = BoundedOutput(Limits(ctx.caps.other), ctx.count, blobs=ctx.blobs, collapse=False)
        bounded.feed(text.encode("utf-8", "replace"))
        done = bounded.finish()
        return ToolOutput(done.text, False, done.facts(), done.handle)

    async def run_call(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        raise ToolError(f"{CALL} was not forwarded")  # `run_tool` forwards it before it gets here

    def forward(arguments: Mapping[str, Any]) -> tuple[str, Any]:
        name = str(arguments["name"]).strip()
        if name in (FIND, CALL):
            raise ToolError(f"{name} is called directly, not through {CALL}")
        return name, arguments.get("arguments")

    return [
        Tool(
            FIND, description,
            {
                "type": "object",
                "properties": {"query": {"type": "string", "description": "words, or a tool's name"}},
                "required": ["query"],
            },
            run_find, read_only=True, aliases={"q": "query", "name": "query", "search": "query"},
        ),
        Tool(
            CALL, f"Call a tool that {FIND} named, with the parameters that it gave.",
            {
                "type": "object",
                "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
                "required": ["name"],
            },
            run_call, aliases={"tool": "name", "tool_name": "name", "parameters": "arguments", "args": "arguments"},
            forward=forward,
        ),
    ]  # fmt: skip


def show_found(query: str, tools: Sequence[RemoteTool], notes: Sequence[str]) -> str:
    """What find_tool answers: the best with their parameters, more by name, and what cannot be reached."""
    ranked = rank(query, tools)
    lines: list[str] = []
    if not tools:
        lines.append("There are no tools of MCP servers.")
    elif not ranked:
        lines.append(f"No tool fits {query!r}. There are {len(tools)}:" if query.strip() else f"{len(tools)} tools:")
        ranked = list(tools)
        lines += [f"- {tool.name}: {tool.brief}" for tool in ranked[:_LISTED]]
    else:
        room = _SCHEMA_CHARS
        more: list[RemoteTool] = []
        exact = tuple(tool for tool in ranked[:1] if tool.name == query.strip())
        for tool in exact or ranked:
            schema = json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":"))
            if len(lines) >= 2 * _SHOWN or (lines and len(schema) > room):
                more.append(tool)
                continue
            room -= len(schema)
            lines += [f"{tool.name}: {tool.about.strip() or tool.tool}", f"  parameters: {schema}"]
        if more:
            lines.append(f"Also ({len(more)}), with {FIND} by name for their parameters:")
            lines += [f"- {tool.name}: {tool.brief}" for tool in more[:_LISTED]]
            if len(more) > _LISTED:
                lines.append(f"- and {len(more) - _LISTED} more")
    return "\n".join([*lines, *notes])


def rank(query: str, tools: Sequence[RemoteTool]) -> list[RemoteTool]:
    """The tools that share a word with the query, best first: rare words count more, those of the name three times. The
    tool of that very name comes first."""
    wanted = set(_terms(query))
    named = [set(_terms(f"{tool.server} {tool.tool}")) for tool in tools]
    said = [set(_terms(f"{tool.about[:2_000]} {' '.join(tool.parameters.get('properties', {}))}")) for tool in tools]
    spread = Counter(term for at in range(len(tools)) for term in named[at] | said[at])
    given = query.strip().lower()
    scored: list[tuple[float, int]] = []
    for at, tool in enumerate(tools):
        score = 0.0
        for term in wanted:
            rare = math.log(1 + len(tools) / (1 + spread[term])) if spread[term] else 0.0
            score += rare * (3.0 * (term in named[at]) + (term in said[at]))
        if given and given in (tool.name.lower(), tool.tool.lower()):
            score += 1_000.0
        if score > 0:
            scored.append((-score, at))
    return [tools[at] for _, at in sorted(scored)]


def _terms(text: str) -> list[str]:
    terms: list[str] = []
    for word in _WORD.findall(text):
        if word[0] >= "\u3040":
            terms += [word[at : at + 2] for at in range(len(word) - 1)] or [word]
            continue
        for piece in _HUMP.split(word):
            lower = piece.lower()
            terms.append(lower[:-1] if len(lower) > 3 and lower.endswith("s") and not lower.endswith("ss") else lower)
    return terms
