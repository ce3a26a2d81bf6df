"""The recall tool: pages and greps of an original that was left out, by its handle.

An original reads exactly like what it was cut from: cleaned in the same way, so line and character numbers in a notice
lead to the missing piece. The answer is a page, bounded like any other, and says how to go on.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from brim.errors import ToolError
from brim.tools.bounded import BoundedOutput, Gap, Limits, collapse_returns
from brim.tools.child import run_child
from brim.tools.cleaning import Cleaner, show_controls
from brim.tools.context import Tool, ToolContext, ToolOutput
from brim.tools.grep import quoted, refuse_nul
from brim.tools.page import Page, page_chars, page_output
from brim.tools.regexes import pattern_hint, pattern_options
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
    if asked.limit is not None and asked.limit < 1:
        raise ToolError(f"limit is {asked.limit}", hint="limit is a number of lines, at least 1")
    # As it may stand in a notice: with brackets, quotes or the full stop of its sentence, or in its words.
    handle = asked.handle.strip().removeprefix("recall ").removeprefix("handle ").strip("[]#`'\".,; ")
    if not handle:
        raise ToolError("handle is empty", hint="give the handle that a notice named")
    original = await asyncio.to_thread(_find, handle, ctx)
    if asked.pattern:
        refuse_nul(pattern=asked.pattern)
        return await _grep(asked, original, ctx)
    return await asyncio.to_thread(_page, asked, original, ctx)


class _Original(msgspec.Struct, frozen=True):
    """`text` is the original where it is a part of the history; otherwise it is a blob of `size` bytes."""

    handle: str
    size: int
    text: str | None

    def texts(self, ctx: ToolContext) -> Iterator[str]:
        """The original in pieces, with what carriage returns wrote over reduced to its last state."""
        if self.text is not None:
            yield show_controls(collapse_returns(self.text))
            return
        cleaner, rest, at = Cleaner(), "", 0
        while at < self.size and (data := ctx.blobs.get(self.handle, at, _CHUNK)):
            at += len(data)
            text = rest + cleaner.feed(data)
            end = text.rfind("\n") + 1
            if not end and "\r" not in text:
                end = len(text)  # an endless line: it is not held until its end
            yield show_controls(collapse_returns(text[:end]))
            rest = text[end:]
        yield show_controls(collapse_returns(rest + cleaner.close()))


def _find(handle: str, ctx: ToolContext) -> _Original:
    """The history's own original, else the blob store's. Raises StoreError where neither has it."""
    text = ctx.originals(handle) if ctx.originals is not None else None
    if text is not None:
        return _Original(handle, len(text.encode("utf-8", "replace")), text)
    return _Original(handle, ctx.blobs.size(handle), None)


def _page(asked: RecallArguments, original: _Original, ctx: ToolContext) -> ToolOutput:
    page = Page(max(asked.offset, 1), asked.limit, max(asked.char, 1), page_chars(ctx))
    for text in original.texts(ctx):
        page.feed(text)
    page.close()
    output = page_output(page, f"original {original.handle}", original.size, None, ctx)
    return msgspec.structs.replace(output, meta={**output.meta, "recalled": original.handle})


async def _grep(asked: RecallArguments, original: _Original, ctx: ToolContext) -> ToolOutput:
    handle = original.handle

    def advise(gap: Gap) -> str:
        return f"Narrow the pattern, or page the original: recall handle {handle}, offset N."

    out = BoundedOutput(
        Limits(ctx.caps.grep, lines=ctx.caps.grep_lines, head=1.0), ctx.count, advise=advise, collapse=False
    )
    said = Skipped()
    import tempfile

    with tempfile.TemporaryFile() as file:
        for text in original.texts(ctx):
            file.write(text.encode("utf-8", "replace"))
        file.flush()
        file.seek(0)
        ended = await run_child(
            [find_ripgrep(), "--no-config", "--color=never", "--line-number", "--text", "--max-columns=1000",
             "--max-columns-preview", *pattern_options(asked.pattern or "", literal=False, crlf=False), "--", "-"],
            cwd=ctx.workspace,
            env=os.environ,
            stdin=file.fileno(),
            stdout=out.feed,
            stderr=said.feed,
            timeout=ctx.caps.search_timeout,
            sweep=False,
        )  # fmt: skip
    said.close()
    done = out.finish()
    if ended.code == 2:
        told = "\n".join(said.errors)
        raise ToolError(
            f"cannot search for {quoted(asked.pattern or '')}: {told}", hint=pattern_hint(told, literal=False)
        )
    if not done.total_lines:
        return ToolOutput(
            f"[No line of {handle} matches {quoted(asked.pattern or '')}.]", False, {"recalled": handle, **done.facts()}
        )
    end = "" if done.text.endswith("\n") else "\n"
    lines = f"{done.total_lines} matching line" + ("" if done.total_lines == 1 else "s")
    return ToolOutput(f"{done.text}{end}[{lines} in {handle}]", False, {"recalled": handle, **done.facts()})


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
