"""The edit tool: exact text replaced by other text, and not one byte else touched.

Line ends in the text to find match whatever the file has (LF or CRLF); the new text gets the line ends of the place
it goes to. Only what differs between old and new text is spliced into the file's bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from brim.errors import ToolError
from brim.tools.atomic import checkpoint, in_whole, replace_file
from brim.tools.context import Tool, ToolContext, ToolOutput
from brim.tools.diffs import bounded_diff
from brim.tools.misses import OTHER_LINE_ENDS, find_equivalent, why_missing
from brim.tools.paths import is_there, missing_hint, refuse_special, require_inside
from brim.tools.textfile import common_prefix, load_text, with_newlines


class EditArguments(msgspec.Struct, frozen=True):
    path: str
    old: str
    new: str
    replace_all: bool = False


async def run_edit(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
    """Edit a file; see `EDIT`."""
    return await in_whole(_edit, msgspec.convert(dict(arguments), EditArguments), ctx)


def _edit(asked: EditArguments, ctx: ToolContext) -> ToolOutput:
    real = require_inside(ctx.workspace, asked.path, ctx.granted, what="edit")
    if not is_there(real, asked.path):
        raise ToolError(
            f"no such file: {asked.path}",
            hint=missing_hint(asked.path, "glob finds files by name; write makes a new one", ctx.workspace, ctx.cwd),
        )
    refuse_special(os.stat(real).st_mode, asked.path)
    if not asked.old:
        raise ToolError("old is empty", hint="give the text to replace, or use write for a whole file")
    if with_newlines(asked.old, "\n") == with_newlines(asked.new, "\n"):
        if asked.old != asked.new:
            raise ToolError(
                "old and new differ in their line ends alone, and edit keeps those of the file", hint=OTHER_LINE_ENDS
            )
        raise ToolError("old and new are the same text; nothing to change")
    file = load_text(ctx, real, asked.path)
    old, new = asked.old, asked.new
    if file.encoding.bom:
        old, new = old.removeprefix("\ufeff"), new.removeprefix("\ufeff")
    if file.only_returns:
        old, new = re.sub(r"\r\n?", "\n", old), re.sub(r"\r\n?", "\n", new)
    spans, told = find_spans(file.text, old), ""
    if not spans and (spans := find_equivalent(file.text, old, find_spans)):
        told = "; found where accents are composed in another way than in old"
    if not spans:
        raise ToolError(
            f"old was not found in {asked.path}; nothing was changed"
            + ("; the file is empty" if not file.text else why_missing(file.text, old, new)),
            hint="read the file and copy the text exactly",
        )
    if not asked.replace_all and (len(spans) > 1 or _overlaps(file.text, old, spans[0])):
        numbers = dict.fromkeys(file.text.count("\n", 0, start) + 1 for start, _ in spans[:10])
        lines = ", ".join(map(str, numbers))
        lines += f" and {len(spans) - 10} more" if len(spans) > 10 else ""
        where = f"line{'s' * (len(numbers) > 1)} {lines}" + (", overlapping" if len(spans) == 1 else "")
        raise ToolError(
            f"old is found {max(len(spans), 2)} times in {asked.path} ({where}); nothing was changed",
            hint="give more of the text around it, or replace_all: true",
        )
    text = splice(file.text, spans, new, file.newline)
    data = file.encode(text, asked.path)
    saved = checkpoint(ctx, real, file.raw, data)
    broke = replace_file(ctx, real, data, asked.path, file.seen)
    places = f"{len(spans)} place" + ("" if len(spans) == 1 else "s")
    diff = bounded_diff(file.text, text, asked.path, ctx)
    return ToolOutput(
        f"{diff}[edited {asked.path}: {places}, {len(file.raw)} -> {len(data)} bytes{told}{broke}]",
        False,
        {"changed": True, "replaced": len(spans), "checkpoint": saved},
    )


def find_spans(text: str, old: str) -> list[tuple[int, int]]:
    """Where `old` stands in `text`, without overlaps; a line end in it matches LF and CR LF."""
    return [match.span() for match in _pattern(old).finditer(text)]


def _pattern(old: str) -> re.Pattern[str]:
    # A CR LF is one line end: neither its LF nor its CR is anything of its own.
    lines = (re.escape(part).replace("\\\r", r"\r(?!\n)") for part in with_newlines(old, "\n").split("\n"))
    return re.compile(r"(?:\r\n|(?<!\r)\n)".join(lines))


def _overlaps(text: str, old: str, span: tuple[int, int]) -> bool:
    """Whether `old` also matches a place that overlaps the first one ("aa" in "aaa")."""
    return _pattern(old).search(text, span[0] + 1, span[1] + len(old) * 2) is not None


def splice(text: str, spans: list[tuple[int, int]], new: str, newline: str) -> str:
    """`text` with each span replaced; what a span and `new` have in common stays as it is in the file."""
    pieces, at = [], 0
    plain = with_newlines(new, "\n")
    # Most places hold the very same text, and there may be millions.
    known: dict[str, tuple[int, int, str]] = {}
    for start, end in spans:
        found = text[start:end]
        if found not in known:
            known[found] = _difference(found, plain)
        low, high, middle = known[found]
        if "\n" in middle:
            middle = middle.replace("\n", _newline_at(text, start, end, newline))
        pieces += [text[at : start + low], middle]
        at = start + high
    return "".join([*pieces, text[at:]])


def _difference(found: str, plain: str) -> tuple[int, int, str]:
    """Which part of a place goes (from, to), and what comes in there, its line ends LF."""
    was = with_newlines(found, "\n")
    same = common_prefix(was, plain)
    rest_was, rest_new = was[same:], plain[same:]
    tail = common_prefix(rest_was[::-1], rest_new[::-1])
    low = same + _pairs(found, same)
    high = len(found) - tail - (found.count("\r\n") - _pairs(found, len(was) - tail))
    return low, high, rest_new[: len(rest_new) - tail]


def _pairs(found: str, chars: int) -> int:
    """How many of the first `chars` characters of `found`, CR LF taken as one, are a CR LF."""
    count = seen = at = 0
    while seen < chars:
        if found.startswith("\r\n", at):
            count, at = count + 1, at + 2
        else:
            at += 1
        seen += 1
    return count


def _newline_at(text: str, start: int, end: int, default: str) -> str:
    """The line end in use at a place: the first one inside it, else the one that ends its line, else the one before it."""
    at = text.find("\n", start, end)
    if at < 0:
        at = text.find("\n", end)
    if at < 0:
        at = text.rfind("\n", 0, start)
    if at < 0:
        return default
    return "\r\n" if at and text[at - 1] == "\r" else "\n"


EDIT = Tool(
    name="edit",
    description="Replace exact text in a file. old must occur once, unless replace_all.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "old": {"type": "string"},
            "new": {"type": "string"},
            "replace_all": {"type": "boolean"},
        },
        "required": ["path", "old", "new"],
    },
    run=run_edit,
    aliases={
        "file_path": "path", "filePath": "path", "file": "path", "filename": "path", "old_string": "old", "new_string": "new",
        "old_str": "old", "new_str": "new", "oldString": "old", "newString": "new", "old_text": "old", "new_text": "new",
        "oldText": "old", "newText": "new", "replaceAll": "replace_all",
    },
)  # fmt: skip
