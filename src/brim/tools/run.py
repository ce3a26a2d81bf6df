"""Running a model's calls: each gets an answer, whatever it asked for; none runs twice; nothing here raises on bad input.

Calls of one message run in order. Neighbours that only read run beside each other, a few at a time; a call that
changes something waits for all before it and is waited for.
"""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from brim.conversation import ToolCall
from brim.errors import BrimError, ToolError
from brim.tools.arguments import check_arguments, parse_arguments
from brim.tools.bounded import BoundedOutput, Limits
from brim.tools.cleaning import whole_text
from brim.tools.context import Tool, ToolContext, ToolOutput
from brim.tools.paths import resolve_path

_OUTPUT_LIMIT = frozenset({"length", "max_tokens", "max_output_tokens", "MAX_TOKENS", "output_limit"})

# What other assistants call tools that do the same.
_JOBS: Mapping[str, frozenset[str]] = {
    "grep": frozenset({"search", "ripgrep", "rg", "codebase"}),
    "glob": frozenset({"ls", "list", "dir", "tree", "find", "files"}),
    "edit": frozenset({"replace", "patch", "str", "modify", "update"}),
    "write": frozenset({"create", "save"}),
    "read": frozenset({"cat", "view", "open", "show"}),
    "bash": frozenset({"shell", "sh", "terminal", "exec", "execute", "command", "run", "python"}),
    "recall": frozenset({"retrieve", "original"}),
}

# Tools that the refusal of an unknown one names.
_NAMED = 60

Permit: TypeAlias = Callable[[Tool, Mapping[str, Any], ToolContext], Awaitable[str | None]]
"""Asked before a tool runs; None lets it run, a text is the refusal that the model is told."""
OnResult: TypeAlias = Callable[[ToolCall, ToolOutput], Awaitable[None]]
"""Told of each result as soon as it is there."""


async def run_tool(
    name: str,
    arguments: str | Mapping[str, Any] | None,
    ctx: ToolContext,
    *,
    tools: Sequence[Tool] | None = None,
    permit: Permit | None = None,
    finish_reason: str | None = None,
) -> ToolOutput:
    """Run one call. Every failure is a ToolOutput with `is_error` that says what was wrong; only cancellation raises.

    `finish_reason` is the provider's, of the message that held the call ("length", "max_tokens" ...).
    """
    if tools is None:
        from brim.tools.catalogue import default_tools

        tools = default_tools()
    try:
        tool = find_tool(name, tools, ctx.more_tools)
        checked = check_arguments(tool, parse_arguments(arguments, cut=finish_reason in _OUTPUT_LIMIT))
        if tool.forward is not None:
            name, arguments = tool.forward(checked)
            tool = find_tool(name, tools, ctx.more_tools)
            checked = check_arguments(tool, parse_arguments(arguments))
        if permit is not None:
            target = outside_target(checked, ctx)
            refused = await permit(tool, checked, ctx)
            if refused is not None:
                return _error(refused, ctx, {"denied": True})
            if target is not None and tool.name != "bash":
                # What was allowed is this one place, as it was when it was judged.
                ctx = replace(ctx, granted={*ctx.granted, target})
        output = _capped(tool, await tool.run(checked, ctx), ctx)
    except BrimError as error:
        return _error(error.message + (f" ({error.hint})" if error.hint else ""), ctx, {"error": error.kind})
    except (OSError, msgspec.ValidationError) as error:
        return _error(f"{name} failed: {error}", ctx, {"error": type(error).__name__})
    except Exception as error:  # a defect in one tool must not end the conversation; it is told, not swallowed
        return _error(
            f"{name} failed: {type(error).__name__}: {error}", ctx, {"error": type(error).__name__, "defect": True}
        )
    return output


def outside_target(arguments: Mapping[str, Any], ctx: ToolContext) -> Path | None:
    """The real place outside the workspace that a call's `path` leads to; None for a path inside, or none at all."""
    path = arguments.get("path")
    if not isinstance(path, str) or not path:
        return None
    try:
        resolved = resolve_path(ctx.workspace, path)
    except ToolError:
        return None
    return None if resolved.inside else resolved.path


def _capped(tool: Tool, output: ToolOutput, ctx: ToolContext) -> ToolOutput:
    """No tool's answer passes uncapped, wherever the tool comes from. brim's own have capped theirs as it streamed in."""
    caps = ctx.caps
    tokens = {
        # Two capped streams and how it ended; a capped diff and what was done.
        "bash": caps.bash + caps.bash_stderr + 1_000, "write": caps.diff + 500, "edit": caps.diff + 500,
        "read": caps.read, "recall": caps.read, "grep": caps.grep, "glob": caps.glob,
    }.get(tool.name, caps.other)  # fmt: skip
    if not output.text.isascii() and (text := whole_text(output.text)) != output.text:
        output = msgspec.structs.replace(output, text=text)
    if len(output.text) * 4 <= tokens or ctx.count(output.text) <= tokens:
        return output
    bounded = BoundedOutput(Limits(tokens), ctx.count, blobs=ctx.blobs, blob_bytes=caps.blob_bytes, collapse=False)
    bounded.feed(output.text.encode("utf-8", "replace"))
    done = bounded.finish()
    return ToolOutput(done.text, output.is_error, {**output.meta, **done.facts()}, done.handle, output.media)


def find_tool(name: str, tools: Sequence[Tool], more: Callable[[str], Tool | None] | None = None) -> Tool:
    """The tool of that name; `more` is asked for one that is not in the list.

    Raises ToolError that names the nearest one, or says that two share the name.
    """
    found = [tool for tool in tools if tool.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise ToolError(
            f"{len(found)} tools are called {name!r}; none was run", hint="rename one of them in the config"
        )
    if more is not None and (other := more(name)) is not None:
        return other
    names = [tool.name for tool in tools]
    near = _meant(name, names)
    raise ToolError(
        f"there is no tool {name[:100]!r}" + (f"; did you mean {near!r}?" if near else ""),
        hint="tools: " + ", ".join(names if len(names) <= _NAMED else [*names[:_NAMED], "…"]),
    )


def _meant(name: str, names: Sequence[str]) -> str | None:
    """The tool that an unknown name probably is: without its prefix ("functions.read"), by its job, or nearly spelled so."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name.split("<|")[0])]
    for word in words:
        if word in names:
            return str(word)
    for tool, jobs in _JOBS.items():
        if tool in names and any(word in jobs for word in words):
            return tool
    last = re.split(r"[.:/]", name.strip())[-1].lower()
    return next(iter(difflib.get_close_matches(last, names, 1, 0.6)), None)


def _error(text: str, ctx: ToolContext, meta: dict[str, Any]) -> ToolOutput:
    bounded = BoundedOutput(Limits(ctx.caps.bash_stderr), ctx.count, blobs=ctx.blobs, collapse=False)
    bounded.feed(f"Error: {text}".encode("utf-8", "replace"))
    done = bounded.finish()
    return ToolOutput(done.text, True, meta, done.handle)


async def run_calls(
    calls: Sequence[ToolCall],
    ctx: ToolContext,
    *,
    tools: Sequence[Tool] | None = None,
    permit: Permit | None = None,
    finish_reason: str | None = None,
    on_result: OnResult | None = None,
) -> list[ToolOutput]:
    """Run all calls of one assistant message; the answers stand in the order of the calls.

    An exact duplicate (id, name and arguments) is not run again and shares the first one's answer; the same id with
    other content is refused, since its result could not be told from the first one's.
    """
    if tools is None:
        from brim.tools.catalogue import default_tools

        tools = default_tools()
    outputs: list[ToolOutput | None] = [None] * len(calls)
    first: dict[str, int] = {}
    again: list[int] = []
    gate = asyncio.Semaphore(ctx.caps.parallel)
    questions = asyncio.Lock()

    async def one_question_at_a_time(tool: Tool, checked: Mapping[str, Any], ctx: ToolContext) -> str | None:
        assert permit is not None
        async with questions:
            return await permit(tool, checked, ctx)

    asking = None if permit is None else one_question_at_a_time

    async def one(at: int) -> None:
        call = calls[at]
        async with gate:
            output = await run_tool(
                call.name, call.arguments, ctx, tools=tools, permit=asking, finish_reason=finish_reason
            )
        outputs[at] = output
        if on_result is not None:
            await on_result(call, output)

    reading: list[int] = []

    async def flush() -> None:
        waiting, reading[:] = list(reading), []
        if waiting:
            try:
                async with asyncio.TaskGroup() as group:
                    for at in waiting:
                        group.create_task(one(at))
            except BaseExceptionGroup as failed:  # what `on_result` raised: one error is as good as all
                raise failed.exceptions[0] from None

    read_only = {tool.name for tool in tools if tool.read_only}
    for at, call in enumerate(calls):
        key = _key(call)
        if key in first:
            again.append(at)
            continue
        first[key] = at
        if call.name in read_only:
            reading.append(at)
            continue
        await flush()
        await one(at)
    await flush()
    for at in again:
        call, before = calls[at], calls[first[_key(calls[at])]]
        if call.name == before.name and _same(call.arguments, before.arguments):
            shared = outputs[first[_key(call)]]
            assert shared is not None
            outputs[at] = msgspec.structs.replace(shared, meta={**shared.meta, "duplicate": True})
            continue
        outputs[at] = _error(
            f"the call id {call.id!r} was already used by a call of {before.name}; this call was not run", ctx, {}
        )
        if on_result is not None:
            await on_result(call, outputs[at] or ToolOutput(""))
    return [output for output in outputs if output is not None]


def _key(call: ToolCall) -> str:
    """What makes a call one: its id; where a provider gave none, what it asks for."""
    return call.id or f"{call.name}\0{call.arguments}"


def _same(one: str | None, other: str | None) -> bool:
    """Whether two texts hold the same arguments."""
    try:
        return one == other or parse_arguments(one) == parse_arguments(other)
    except ToolError:
        return False
