"""The write tool: a whole file, new or in place of the old one, atomically."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from brim.errors import ToolError
from brim.tools.atomic import checkpoint, in_whole, replace_file
from brim.tools.context import Tool, ToolContext, ToolOutput
from brim.tools.diffs import bounded_diff
from brim.tools.encodings import Encoding
from brim.tools.paths import is_there, refuse_special, require_inside
from brim.tools.textfile import TextFile, load_text, with_newlines


class WriteArguments(msgspec.Struct, frozen=True):
    path: str
    content: str


async def run_write(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
    """Write a file; see `WRITE`."""
    return await in_whole(_write, msgspec.convert(dict(arguments), WriteArguments), ctx)


def _write(asked: WriteArguments, ctx: ToolContext) -> ToolOutput:
    if not asked.path.strip() or asked.path.endswith("/"):
        raise ToolError(f"{asked.path!r} names no file", hint="give the path of a file; its folders are made as needed")
    real = require_inside(ctx.workspace, asked.path, ctx.granted, what="write")
    exists = is_there(real, asked.path)
    if exists:
        refuse_special(os.stat(real).st_mode, asked.path)
    elif real in ctx.files:
        # Gone since it was read: writing it is no clash, it just is new again.
        del ctx.files[real]
    old = load_text(ctx, real, asked.path) if exists else None
    text, notes = asked.content, []
    if old is not None and old.encoding.bom:
        text = text.removeprefix("\ufeff")
    if old is not None and old.all_crlf and "\r" not in text:
        text = with_newlines(text, "\r\n")
        notes.append("CRLF line ends kept")
    elif old is not None and old.only_returns:
        notes.append("CR line ends kept")
    encoder = old or TextFile(b"", "", Encoding("utf-8"))
    try:
        data = encoder.encode(text, asked.path)
    except ToolError:
        data = text.encode("utf-8", "surrogateescape")
        notes.append(f"was {encoder.encoding.told}, is UTF-8 now")
    if old is not None and data == old.raw:
        return ToolOutput(
            f"[{asked.path} already has this content; {len(data)} bytes, unchanged]", False, {"changed": False}
        )
    saved = checkpoint(ctx, real, None if old is None else old.raw, data)
    broke = replace_file(ctx, real, data, asked.path, None if old is None else old.seen)
    lines = text.count("\n") + (1 if text and not text.endswith("\n") else 0)
    diff = "" if old is None else bounded_diff(old.text, text, asked.path, ctx)
    did = "wrote" if old is not None else "created"
    told = "".join(f"; {note}" for note in notes)
    size = f"{lines} line{'' if lines == 1 else 's'}, {len(data)} bytes"
    return ToolOutput(f"{diff}[{did} {asked.path}: {size}{told}{broke}]", False, {"changed": True, "checkpoint": saved})


WRITE = Tool(
    name="write",
    description="Write a whole text file, creating folders as needed. Use edit for changes to a part of one.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
    run=run_write,
    aliases={
        "file_path": "path",
        "filePath": "path",
        "file": "path",
        "filename": "path",
        "text": "content",
        "contents": "content",
    },
)
