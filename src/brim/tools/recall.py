"""The recall tool: pages and greps of an original that was left out, by its handle.

An original reads exactly like what it was cut from: cleaned in the same way, so line and character numbers in a notice
lead to the missing piece. The answer is a page, bounded like any other, and says how to go on.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from brim.errors import ToolError
from brim.tools.bounded import BoundedOutput, Gap, Limits, collapse_returns
from brim.tools.child import run_child
from brim.tools.cleaning import Cleaner, show_controls
from brim.tools.context import Tool, ToolContext, ToolOutput
from brim.tools.read import Page, page_output
from brim.tools.ripgrep import Skipped, find_ripgrep

_CHUNK = 1024 * 1024


class RecallArguments(msgspec.Struct, frozen=True):
    handle: str
    offset: int = 1
    limit: int | None = None
    char: int = 1
    pattern: str | None = None


async def run_recall(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
    """Page or grep an original; see `RECALL`."""
    asked = msgspec.convert(dict(arguments), RecallArguments)
    handle = asked.handle.strip().strip("[]#`'\"")
    if len(handle) < 4:
        raise ToolError(
            f"handle {asked.handle!r} is too short", hint="give at least 4 characters of a handle that a notice named"
        )
    size = ctx.blobs.size(handle)
    if asked.pattern:
        return await _grep(asked, handle, ctx)
    if asked.limit is not None and asked.limit < 1:
        raise ToolError(f"limit is {asked.limit}", hint="limit is a number of lines, at least 1")
    import asyncio

    return await asyncio.to_thread(_page, asked, handle, size, ctx)


def _page(asked: RecallArguments, handle: str, size: int, ctx: ToolContext) -> ToolOutput:
    page = Page(max(asked.offset, 1), asked.limit, max(asked.char, 1), ctx.caps.read * 10)
    for text in _texts(handle, ctx):
        page.feed(text)
    page.close()
    output = page_output(page, f"original {handle[:12]}", size, None, ctx)
    return msgspec.structs.replace(output, handle=None, meta={**output.meta, "recalled": handle})


def _texts(handle: str, ctx: ToolContext) -> Iterator[str]:
    """The original as cleaned text, with what carriage returns wrote over reduced to its last state, line by line."""
    cleaner, rest, at = Cleaner(), "", 0
    while data := ctx.blobs.get(handle, at, _CHUNK):
        at += len(data)
        rest, lines = _settle(rest + cleaner.feed(data))
        yield lines
    yield _collapse(rest + cleaner.close())


def _settle(text: str) -> tuple[str, str]:
    end = text.rfind("\n") + 1
    if not end and "\r" not in text:
        # One endless line: nothing in it can be written over any more unless a carriage return comes, and then at its end.
        return "", text
    return text[end:], _collapse(text[:end])


def _collapse(text: str) -> str:
    return show_controls(collapse_returns(text))


async def _grep(asked: RecallArguments, handle: str, ctx: ToolContext) -> ToolOutput:
    def advise(gap: Gap) -> str:
        return f"Narrow the pattern, or page the original: recall handle {handle[:12]}, offset N."

    out = BoundedOutput(
        Limits(ctx.caps.grep, lines=ctx.caps.grep_lines, head=1.0), ctx.count, advise=advise, collapse=False
    )
    said = Skipped()
    with tempfile.TemporaryFile() as original:
        for text in _texts(handle, ctx):
            original.write(text.encode("utf-8", "replace"))
        original.flush()
        original.seek(0)
        ended = await run_child(
            [find_ripgrep(), "--no-config", "--color=never", "--line-number", "--text", "--max-columns=1000",
             "--max-columns-preview", f"--regexp={asked.pattern}", "--", "-"],
            cwd=ctx.workspace,
            env=os.environ,
            stdin=original.fileno(),
            stdout=out.feed,
            stderr=said.feed,
            timeout=ctx.caps.search_timeout,
            sweep=False,
        )  # fmt: skip
    said.close()
    done = out.finish()
    if ended.code == 2:
        raise ToolError(
            f"cannot search for {asked.pattern!r}: " + "\n".join(said.errors), hint="fix the regular expression"
        )
    if not done.total_lines:
        return ToolOutput(
            f"[No line of {handle[:12]} matches {asked.pattern!r}.]", False, {"recalled": handle, **done.facts()}
        )
    end = "" if done.text.endswith("\n") else "\n"
    lines = f"{done.total_lines} matching line" + ("" if done.total_lines == 1 else "s")
    return ToolOutput(f"{done.text}{end}[{lines} in {handle[:12]}]", False, {"recalled": handle, **done.facts()})


RECALL = Tool(
    name="recall",
    description="Read on in an output that was cut: by line offset, or the lines that match a pattern.",
    parameters={
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "from the notice"},
            "offset": {"type": "integer", "description": "first line, from 1"},
            "limit": {"type": "integer", "description": "number of lines"},
            "char": {"type": "integer", "description": "first character in that line"},
            "pattern": {"type": "string", "description": "regular expression"},
        },
        "required": ["handle"],
    },
    run=run_recall,
    read_only=True,
    aliases={"id": "handle", "regex": "pattern", "query": "pattern"},
)
