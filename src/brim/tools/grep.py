"""The grep tool: ripgrep's matches as `file:line:content`, in a stable order, with exact totals.

The whole output is counted while it streams by; only the first lines in the order of paths are held. A cut falls
between lines, and a huge line is reduced to its match's surroundings, so `file:line:content` never breaks.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from brim.errors import ToolError
from brim.tools.child import Ended, Stop, run_child
from brim.tools.cleaning import show_controls
from brim.tools.clusters import cut_before
from brim.tools.context import Tool, ToolContext, ToolOutput
from brim.tools.globs import compile_include, is_plain_name, split_globs, wants_hidden
from brim.tools.legacy import encodings_elsewhere
from brim.tools.listing import Listing
from brim.tools.matches import FIELD, Matches, as_shown, display
from brim.tools.paths import kind_of, missing_hint, require_inside
from brim.tools.regexes import pattern_hint, pattern_options
from brim.tools.ripgrep import ONE_BY_ONE, Skipped, find_ripgrep, walk_options
from brim.tools.spool import Spool

if TYPE_CHECKING:
    from brim.permissions import LeftOut


class GrepArguments(msgspec.Struct, frozen=True):
    pattern: str
    path: str = "."
    include: str | None = None
    ignore_case: bool = False
    no_ignore: bool | None = None
    """None: what the settings say."""
    literal: bool = False
    stop_early: bool = False
    """End the search once more lines than can be shown were found: fast, but without totals and in order of arrival."""


async def run_grep(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
    """Search; see `GREP`."""
    asked = msgspec.convert(dict(arguments), GrepArguments)
    if not asked.pattern:
        raise ToolError("pattern is empty", hint="give a regular expression, or use glob to list files")
    refuse_nul(pattern=asked.pattern, include=asked.include or "")
    start = search_start(asked.path, ctx)
    assert start is not None
    options = ["--line-number", "--column", "--with-filename", "--no-heading", "--null", "--binary", "--max-columns=0"]
    options.append("--field-match-separator=" + FIELD.decode())
    include = (asked.include or "").replace(f"{ctx.workspace}/", "/")
    walk = walk_options(
        ctx.workspace,
        no_ignore=ctx.caps.grep_no_ignore if asked.no_ignore is None else asked.no_ignore,
        hidden=any(wants_hidden(glob) for glob in split_globs(include) if not glob.startswith("!")),
    )
    options += walk + ["--ignore-case"] * asked.ignore_case
    included: Callable[[bytes], bool] | None = None
    if include:
        included = compile_include(include)
        options += _types(include)
    closed = left_out_below("grep", start, ctx)
    accept = included if closed is None else but_not(closed, ctx, included)
    command = [find_ripgrep(), *options, *pattern_options(asked.pattern, literal=asked.literal), "--", start]
    matches, skipped, ended = await _search(command, accept, asked, ctx, ctx.caps.search_timeout)
    if ended.signal == signal.SIGABRT and (left := ctx.caps.search_timeout - ended.seconds) > 0:
        # Out of memory over a file with very many matches: once more, in the way that holds none of them.
        matches.listing.discard()
        matches, skipped, ended = await _search([command[0], *ONE_BY_ONE, *command[1:]], accept, asked, ctx, left)
    if ended.code == 2 and skipped.errors and not matches.listing.records:
        matches.listing.discard()
        said = "\n".join(skipped.errors)
        raise ToolError(f"ripgrep cannot search for {quoted(asked.pattern)}: {said[:2_000]}", hint=pattern_hint(said))
    hints = []
    for encoding in encodings_elsewhere(asked.pattern):
        left = ctx.caps.search_timeout - ended.seconds
        if matches.listing.records or matches.binary_count or ended.code != 1 or left <= 0:
            break
        matches.listing.discard()
        matches, _, ended = await _search(
            [*command[:1], f"--encoding={encoding}", *command[1:]], accept, asked, ctx, left
        )
        hints = [f"Found in files read as {encoding}, none as UTF-8."] if matches.listing.records else []
    if not matches.listing.records and not matches.binary_count:
        if included is not None and not ended.timed_out and not await _any_file(included, [*walk, "--", start], ctx):
            hints.append("No file there fits the include, in which case matters: for example *.py or src/**/*.ts.")
        if r"\|" in asked.pattern and not asked.literal:
            hints.append(r"\| is a plain | here: a|b finds either.")
    return _answer(asked, matches, skipped, ended, ctx, closed, hints)


async def _any_file(included: Callable[[bytes], bool], walk: list[str], ctx: ToolContext) -> bool:
    """Whether the walk comes by any file of the include."""
    rest, found = b"", False

    def look(data: bytes) -> None:
        nonlocal rest, found
        *names, rest = (rest + data).split(b"\0")
        found = found or any(included(display(name)) for name in names)
        if found:
            raise Stop

    command = [find_ripgrep(), "--files", "--null", *walk]
    await run_child(
        command,
        cwd=ctx.workspace,
        env=os.environ,
        stdout=look,
        stderr=len,
        timeout=ctx.caps.search_timeout,
        sweep=False,
    )
    return found


async def _search(
    command: list[str], accept: Callable[[bytes], bool] | None, asked: GrepArguments, ctx: ToolContext, seconds: float
) -> tuple[Matches, Skipped, Ended]:
    spool = Spool(ctx.blobs, ctx.caps.blob_bytes)
    matches = Matches(Listing(ctx.caps.grep_lines, spool, as_shown), accept, ctx.caps, asked.stop_early)
    skipped = Skipped()
    ended = await run_child(
        command,
        cwd=ctx.workspace,
        env=os.environ,
        stdout=matches.feed,
        stderr=skipped.feed,
        timeout=seconds,
        sweep=False,
        most_memory=ctx.caps.search_memory,
    )
    matches.close()
    skipped.close()
    return matches, skipped, ended


def search_start(path: str, ctx: ToolContext, *, missing_ok: bool = False) -> str | None:
    """The path to hand to ripgrep: relative to the workspace where it is inside, never an option. None for one that is
    not there, if that is no error."""
    real = require_inside(ctx.workspace, path or ".", ctx.granted, what="search")
    try:
        kind = kind_of(os.stat(real).st_mode)
    except OSError:
        if missing_ok:
            return None
        hint = "paths are relative to the workspace"
        if set("*?{,|") & set(path) or " " in path:
            hint = "path is one file or folder; wildcards belong in grep's include or glob's pattern"
        raise ToolError(
            f"no such file or directory: {path}", hint=missing_hint(path, hint, ctx.workspace, ctx.cwd)
        ) from None
    if kind not in (None, "a directory"):
        raise ToolError(f"{path} is {kind}; it was not opened")
    if real == ctx.workspace:
        return "."
    return f"./{real.relative_to(ctx.workspace)}" if ctx.workspace in real.parents else str(real)


def left_out_below(tool: str, start: str, ctx: ToolContext) -> LeftOut | None:
    """What a search from `start` (as `search_start` gave it) must not show."""
    return None if ctx.left_out is None else ctx.left_out(tool, os.path.normpath(os.path.join(ctx.workspace, start)))


def but_not(closed: LeftOut, ctx: ToolContext, accept: Callable[[bytes], bool] | None) -> Callable[[bytes], bool]:
    """Accepts what `accept` does, but for files that are left out."""
    root = str(ctx.workspace)

    def judge(path: bytes) -> bool:
        return (accept is None or accept(path)) and not closed.covers(os.path.join(root, os.fsdecode(path)))

    return judge


def _types(include: str) -> list[str]:
    """The part of an include that ripgrep can judge by file name alone, as a file type: unlike its --glob, a type does
    not bring back ignored files. Whole paths are judged here, afterwards."""
    names = [glob.rstrip("/").rsplit("/", 1)[-1] for glob in split_globs(include) if not glob.startswith("!")]
    if not names or any(glob.endswith("/") for glob in split_globs(include)) or not all(map(is_plain_name, names)):
        return []
    return [f"--type-add=brim:{name}" for name in names] + ["--type=brim"]


def _answer(
    asked: GrepArguments,
    matches: Matches,
    skipped: Skipped,
    ended: Ended,
    ctx: ToolContext,
    closed: LeftOut | None,
    hints: list[str],
) -> ToolOutput:
    listing, caps = matches.listing, ctx.caps
    lines = [_shown(line) for line in listing.first()]
    early = ended.stopped or ended.timed_out or ended.signal is not None
    notes = [note for note in (skipped.describe() if not ended.stopped else "", skipped.unreadable()) if note]
    if closed is not None:
        notes.append(closed.describe("searched"))
    notes = [*hints, *notes]
    if ended.timed_out:
        notes.insert(0, f"Stopped after {caps.search_timeout} s: there may be more; narrow the path or the include.")
    if ended.signal is not None and not (ended.stopped or ended.timed_out):
        notes.insert(0, f"The search ended early (signal {ended.signal}): there may be more; narrow the path.")
    if matches.binary_count:
        names = ", ".join(path.decode("utf-8", "replace") for path in sorted(matches.binary)[:10])
        more = f" and {matches.binary_count - 10} more" if matches.binary_count > 10 else ""
        notes.insert(0, f"Binary files that match (content not shown): {show_controls(names)}{more}.")
    where = "" if asked.path in (".", "") else f" in {asked.path}"
    where += f" (include {asked.include})" if asked.include else ""
    listing.close()
    meta: dict[str, Any] = {
        "total_lines": listing.records,
        "total_chars": listing.chars,
        "files": matches.files,
        "binary_files": matches.binary_count,
        "skipped": dict(skipped.counts),
        "timed_out": ended.timed_out,
        "stopped_early": ended.stopped,
        "sorted": listing.is_sorted,
    }
    if not listing.records:
        listing.discard()
        text = f"[No matching lines for {quoted(asked.pattern)}{where}. {' '.join(notes)}".rstrip() + "]"
        return ToolOutput(text, False, {**meta, "shown_lines": 0, "cut": False})

    files = f"{matches.files} file" + ("" if matches.files == 1 else "s")
    plus = "more than " if early else ""
    total = f"{listing.records} matching line" + ("" if listing.records == 1 else "s")
    whole = "\n".join([*lines, f"[{plus}{total} in {files}{where}. {' '.join(notes)}".rstrip() + "]"])
    if listing.records <= len(lines) and not early and not matches.shortened and ctx.count(whole) <= caps.grep:
        listing.discard()
        return ToolOutput(whole, False, {**meta, "shown_lines": len(lines), "cut": False})

    handle = listing.keep()
    if listing.error:
        notes.append(f"The whole could not be kept: {listing.error[:200]}.")
    if matches.shortened:
        notes.insert(0, "Long lines are shortened around their match.")

    def notice(shown: int) -> str:
        if shown == listing.records and not early:
            kept = f"; they are whole under recall handle {handle}, offset 1" if handle is not None else ""
            said = f"[{total} in {files}{where}; {listing.chars} characters in all{kept}. {' '.join(notes)}"
            return said.rstrip() + "]"
        recall = ""
        if handle is not None:
            order = "" if listing.is_sorted else " (in order of arrival)"
            recall = f"; recall handle {handle} from offset {shown + 1 if listing.is_sorted else 1}{order}"
        return (
            f"[{shown} of {plus}{total} shown, in {files}{where}, by path; {listing.chars} characters in all;"
            f" {listing.records - shown} lines left out. Narrow the pattern, add include or path{recall}. {' '.join(notes)}"
        ).rstrip() + "]"

    shown, text = fit_records(lines, caps.grep, notice, ctx.count)
    return ToolOutput(text, False, {**meta, "shown_lines": shown, "cut": True}, handle)


def _shown(line: bytes) -> str:
    return show_controls(line.decode("utf-8", "replace").rstrip("\r").replace("\r", "\ufffd"))


def quoted(pattern: str) -> str:
    """A pattern in quotes for an answer, which it must not fill."""
    return repr(pattern) if len(pattern) <= 200 else repr(pattern[: cut_before(pattern, 200)]) + "..."


def refuse_nul(**given: str) -> None:
    """Raises ToolError for a text that cannot be handed to another program."""
    for name, text in given.items():
        if "\0" in text:
            raise ToolError(f"{name} has a NUL character at position {text.index(chr(0))}")


def fit_records(
    records: list[str], tokens: int, notice: Callable[[int], str], count: Callable[[str], int]
) -> tuple[int, str]:
    """As many whole records as fit together with the notice that says how many they are, and the text of both."""

    def text(shown: int) -> str:
        return "\n".join([*records[:shown], notice(shown)])

    low, high = 0, len(records)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text(middle)) <= tokens:
            low = middle
        else:
            high = middle - 1
    cut = text(low)
    while cut and count(cut) > tokens:
        cut = cut[: cut_before(cut, len(cut) * 3 // 4)]
    return low, cut


GREP = Tool(
    name="grep",
    description=(
        "Search file contents with a regular expression; answers file:line:content. Skips noise folders"
        " (node_modules, .git, dist ...), gitignored and hidden files unless no_ignore."
    ),
    parameters={
        "type": "object",
        "properties": {
            "pattern": {"type": "string"},
            "path": {"type": "string", "description": "file or folder, default all"},
            "include": {"type": "string", "description": "glob of files, e.g. *.py or src/**/*.{ts,tsx}"},
            "ignore_case": {"type": "boolean"},
            "literal": {"type": "boolean", "description": "pattern is plain text"},
            "no_ignore": {"type": "boolean"},
        },
        "required": ["pattern"],
    },
    run=run_grep,
    read_only=True,
    aliases={
        "noIgnore": "no_ignore", "query": "pattern", "regex": "pattern", "glob": "include", "directory": "path", "dir": "path",
        "ignoreCase": "ignore_case", "case_insensitive": "ignore_case", "-i": "ignore_case",
        "file_pattern": "include", "filePattern": "include", "include_pattern": "include", "includePattern": "include",
        "fixed_strings": "literal", "stopEarly": "stop_early",
    },
)  # fmt: skip
