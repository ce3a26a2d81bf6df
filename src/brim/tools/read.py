"""The read tool: a page of a text file, its facts at the end, in bounded memory however large the file is.

The file streams by once: lines before the page are counted, the page is held, the rest is counted. Pages join up to
the file: by lines, and inside a line that is longer than a page by characters.
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from brim.errors import ToolError
from brim.tools.context import Tool, ToolContext, ToolOutput
from brim.tools.encodings import SAMPLE, Encoding, detect, first_wide, is_mostly_utf8
from brim.tools.filestate import remember
from brim.tools.misses import same_to_the_eye
from brim.tools.page import Page, page_chars, page_output
from brim.tools.paths import is_there, missing_hint, open_regular, require_inside

_CHUNK = 1024 * 1024


class ReadArguments(msgspec.Struct, frozen=True):
    path: str
    offset: int = 1
    limit: int | None = None
    char: int = 1


async def run_read(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
    """Read a page; see `READ`."""
    return await asyncio.to_thread(_read, msgspec.convert(dict(arguments), ReadArguments), ctx)


def _read(asked: ReadArguments, ctx: ToolContext) -> ToolOutput:
    if asked.limit is not None and asked.limit < 1:
        raise ToolError(
            f"limit is {asked.limit}",
            hint="limit is a number of lines, at least 1; leave it out to read as much as fits",
        )
    real = require_inside(ctx.workspace, asked.path, ctx.granted, what="read")
    if not is_there(real, asked.path):
        raise ToolError(
            f"no such file: {asked.path}{_similar(real.parent, real.name)}",
            hint=missing_hint(asked.path, "glob finds files by name", ctx.workspace, ctx.cwd),
        )
    fd = open_regular(real, asked.path, ctx.workspace, ctx.granted)
    try:
        size = os.fstat(fd).st_size
        sample = os.pread(fd, SAMPLE, 0)
        encoding = detect(sample, all_of_it=len(sample) >= size)
        if isinstance(encoding, str):
            raise ToolError(
                f"{asked.path} is {encoding}, {size} bytes: it has no text to show",
                hint="use bash with a program for this kind of file",
            )
        remember(ctx, real, fd)
        page = _page(asked, sample, encoding, ctx)
        if not _stream(fd, encoding, page, ctx.caps.read_bytes):
            # A file that is not UTF-8 after all, and shows it only after the sample.
            encoding = _later_encoding(fd)
            page = _page(asked, sample, encoding, ctx)
            _stream(fd, encoding, page, ctx.caps.read_bytes)
    finally:
        os.close(fd)
    return page_output(page, asked.path, size, encoding, ctx)


def _page(asked: ReadArguments, sample: bytes, encoding: Encoding, ctx: ToolContext) -> Page:
    begins = sample[len(encoding.bom) :].decode(encoding.name, "replace")
    # A file of an old Mac: its lines end in CR alone.
    only_returns = "\r" in begins and "\n" not in begins and not begins.endswith("\r\n")
    return Page(max(asked.offset, 1), asked.limit, max(asked.char, 1), page_chars(ctx), only_returns=only_returns)


def _later_encoding(fd: int) -> Encoding:
    """What a file is in whose first bytes beyond ASCII stand far in it, and are no UTF-8."""
    at = 0
    while (data := os.pread(fd, _CHUNK, at)) and data.isascii():
        at += len(data)
    sample = os.pread(fd, SAMPLE, at + first_wide(data))
    found = detect(sample, all_of_it=False)
    return found if isinstance(found, Encoding) and found.name != "utf-8" else Encoding("latin-1")


def _similar(folder: Any, name: str) -> str:
    import difflib

    try:
        names = [entry for entry, _ in zip(os.listdir(folder), range(5_000), strict=False)]
    except OSError:
        return ""
    if twin := next((entry for entry in names if same_to_the_eye(entry, name)), None):
        return f" (there is {twin!a}, which only looks the same)"
    near = difflib.get_close_matches(name, names, 3, 0.6)
    return f" (there is {', '.join(near)})" if near else ""


def _stream(fd: int, encoding: Encoding, page: Page, most: int) -> bool:
    """Feed the whole file to `page`, but not much more than `most` bytes. False where it turns out not to be UTF-8 at all:
    the first bytes beyond ASCII are invalid."""
    os.lseek(fd, len(encoding.bom), os.SEEK_SET)
    utf8 = encoding.name == "utf-8"
    decoder = codecs.getincrementaldecoder(encoding.name)("replace")
    seen_wide, pending = False, b""
    while data := os.read(fd, _CHUNK):
        most -= len(data)
        if most < 0:
            page.unfinished = True
            break
        if not utf8:
            page.feed(decoder.decode(data))
            continue
        data = pending + data
        if data.isascii():
            pending = b""
            page.feed(data.decode("ascii"))
            continue
        text, used = codecs.utf_8_decode(data, "replace", False)
        marks = text.count("\ufffd")
        if marks and (marks := marks - data[:used].count(b"\xef\xbf\xbd")):
            if not seen_wide and not is_mostly_utf8(data[:used]):
                return False
            page.replaced += marks
        seen_wide = True
        pending = data[used:]
        page.feed(text)
    tail = codecs.utf_8_decode(pending, "replace", True)[0] if utf8 else decoder.decode(b"", True)
    page.replaced += len(tail) if utf8 else 0
    page.feed(tail)
    page.close()
    return True


READ = Tool(
    name="read",
    description="Read a text file. Ends with its facts: total lines, range shown, offset to go on from.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "offset": {"type": "integer", "description": "first line, from 1"},
            "limit": {"type": "integer", "description": "number of lines"},
            "char": {"type": "integer", "description": "first character in that line, for very long lines"},
        },
        "required": ["path"],
    },
    run=run_read,
    read_only=True,
    aliases={
        "file_path": "path", "filePath": "path", "file": "path", "filename": "path", "start_line": "offset", "line": "offset",
        "max_lines": "limit", "lines": "limit",
    },
)  # fmt: skip
