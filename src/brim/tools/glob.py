"""The glob tool: file names from ripgrep's walk that fit a pattern, sorted, with the exact total.

The walk streams by; only the first names in order are held, so 200,000 files cost no more memory than 200.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from brim.errors import ToolError
from brim.tools.child import run_child
from brim.tools.cleaning import show_controls
from brim.tools.context import Tool, ToolContext, ToolOutput
from brim.tools.globs import compile_glob, fixed_folder, wants_hidden
from brim.tools.grep import but_not, fit_records, left_out_below, quoted, refuse_nul, search_start
from brim.tools.listing import Listing
from brim.tools.paths import require_inside, resolve_path
from brim.tools.ripgrep import Skipped, find_ripgrep, walk_options
from brim.tools.spool import Spool

if TYPE_CHECKING:
    from brim.permissions import LeftOut


class GlobArguments(msgspec.Struct, frozen=True):
    pattern: str
    path: str = "."
    no_ignore: bool = False


async def run_glob(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
    """List files; see `GLOB`."""
    asked = msgspec.convert(dict(arguments), GlobArguments)
    refuse_nul(pattern=asked.pattern)
    pattern, start = _where(asked, ctx)
    if start is None:
        return _answer(asked, None, Skipped(), False, ctx, None)
    closed = left_out_below("glob", start, ctx)
    listing = Listing(max(1, ctx.caps.glob), Spool(ctx.blobs, ctx.caps.blob_bytes))
    found = Names(compile_glob(pattern), start, listing, None if closed is None else but_not(closed, ctx, None))
    skipped = Skipped()
    walk = walk_options(ctx.workspace, no_ignore=asked.no_ignore, hidden=wants_hidden(asked.pattern))
    ended = await run_child(
        [find_ripgrep(), "--files", "--null", *walk, "--", start],
        cwd=ctx.workspace,
        env=os.environ,
        stdout=found.feed,
        stderr=skipped.feed,
        timeout=ctx.caps.search_timeout,
        sweep=False,
    )
    skipped.close()
    if not listing.records:
        found.take_named(_named_file(asked, ctx))
    return _answer(asked, found.listing, skipped, ended.timed_out, ctx, closed)


def _where(asked: GlobArguments, ctx: ToolContext) -> tuple[str, str | None]:
    """The pattern relative to where the walk starts (both in the workspace's terms), None for a folder that is not there."""
    pattern = asked.pattern.strip()
    if not pattern:
        raise ToolError("pattern is empty", hint="for example **/*.py")
    if pattern.startswith("~/"):
        pattern = os.path.expanduser(pattern)
    base, whole_path = asked.path or ".", pattern.startswith("/")
    if whole_path:
        root = f"{ctx.workspace}/"
        base, pattern = (root, pattern.removeprefix(root)) if pattern.startswith(root) else ("/", pattern.lstrip("/"))
    if _is_folder(os.path.join(base, pattern), ctx):
        pattern = os.path.join(pattern, "**")  # a folder's name: what is in it
    folder = fixed_folder(pattern)
    start = search_start(os.path.join(base, folder) if folder else base, ctx, missing_ok=bool(folder))
    rest = pattern.removeprefix("./").removeprefix(folder).lstrip("/") or "**"
    # What is left of a whole path still is one, even if no slash is left in it.
    return ("/" if folder or whole_path else "") + rest, start


def _is_folder(path: str, ctx: ToolContext) -> bool:
    try:
        return os.path.isdir(resolve_path(ctx.workspace, path).path)
    except ToolError:  # no file can be called so
        return False


def _named_file(asked: GlobArguments, ctx: ToolContext) -> bytes | None:
    """The file that the pattern is the very path of: asked for by its name, it is listed even if it is ignored or a link."""
    name = os.path.normpath(os.path.join(asked.path or ".", asked.pattern.strip()))
    try:
        real = require_inside(ctx.workspace, name, ctx.granted, what="list")
    except ToolError:
        return None
    return (
        os.fsencode(os.path.relpath(os.path.join(ctx.workspace, name), ctx.workspace)) if os.path.isfile(real) else None
    )


class Names:
    """Reads names divided by NUL, in chunks of any size; those that fit the pattern below `start` are listed."""

    def __init__(
        self, pattern: Any, start: str, listing: Listing, accept: Callable[[bytes], bool] | None = None
    ) -> None:
        self._accept = accept
        self.listing = listing
        self._test = pattern.fullmatch
        self._cut = 0 if start == "." else len(os.fsencode(start)) + 1
        if start == ".":
            self._cut = 2
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *names, self._rest = (self._rest + data).split(b"\0")
        test, cut = self._test, self._cut
        for name in names:
            if test(name[cut:]):
                self.take_named(name.removeprefix(b"./"))

    def take_named(self, name: bytes | None) -> None:
        """List a file, unless it is left out."""
        if name is None or (self._accept is not None and not self._accept(name)):
            return
        record = name.replace(b"\n", b"?")
        self.listing.add(name, record + b"\n", 1, [record] if self.listing.wants(name) else [])


def _answer(
    asked: GlobArguments,
    listing: Listing | None,
    skipped: Skipped,
    timed_out: bool,
    ctx: ToolContext,
    closed: LeftOut | None,
) -> ToolOutput:
    where = "" if asked.path in (".", "") else f" in {asked.path}"
    notes = [
        note
        for note in (
            skipped.describe().replace("Not searched", "Not listed").replace("searches them", "lists them"),
            skipped.unreadable(),
        )
        if note
    ]
    if closed is not None:
        notes.append(closed.describe("listed"))
    if timed_out:
        notes.insert(0, f"Stopped after {ctx.caps.search_timeout} s: there may be more.")
    if listing is None:
        notes.append(f"There is no folder {fixed_folder(asked.pattern.strip())[:200]}.")
    else:
        listing.close()
    total = listing.records if listing is not None else 0
    meta: dict[str, Any] = {"total": total, "timed_out": timed_out, "skipped": dict(skipped.counts)}
    if listing is None or not total:
        text = (
            f"[No files match {quoted(asked.pattern)}{where}. {' '.join([*_hints(asked.pattern), *notes])}".rstrip()
            + "]"
        )
        return ToolOutput(text, False, {**meta, "shown": 0, "cut": False})
    names = [show_controls(name.decode("utf-8", "replace")) for name in listing.first()]
    plus = "more than " if timed_out else ""
    files = f"{plus}{total} file" + ("" if total == 1 else "s")
    whole = "\n".join([*names, f"[{files}{where}. {' '.join(notes)}".rstrip() + "]"])
    if len(names) == total and ctx.count(whole) <= ctx.caps.glob:
        listing.discard()
        return ToolOutput(whole, False, {**meta, "shown": total, "cut": False})
    handle = listing.keep()
    if listing.error:
        notes.append(f"The whole could not be kept: {listing.error[:200]}.")

    def notice(shown: int) -> str:
        recall = f", or recall handle {handle} from offset {shown + 1 if listing.is_sorted else 1}" if handle else ""
        return (
            f"[{shown} of {files} shown{where}, by path; {listing.chars} characters in all; {total - shown} left out."
            f" Narrow the pattern or give a path{recall}. {' '.join(notes)}"
        ).rstrip() + "]"

    shown, text = fit_records(names, ctx.caps.glob, notice, ctx.count)
    return ToolOutput(text, False, {**meta, "shown": shown, "cut": True}, handle)


def _hints(pattern: str) -> list[str]:
    """What a pattern that found nothing may have been meant for."""
    hints = []
    if any(mark in pattern.strip() for mark in ", |") and "{" not in pattern:
        hints.append("Several patterns are one with braces: *.{py,ts}.")
    if not set("*?[{(/.") & set(pattern.strip()):
        hints.append(f"Files are listed, not folders; those in a folder: **/{pattern.strip()[:100]}/**.")
    if pattern != pattern.lower():
        hints.append("Case matters.")
    return hints


GLOB = Tool(
    name="glob",
    description="List files by glob pattern. Skips noise folders, gitignored and hidden files unless no_ignore.",
    parameters={
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "e.g. *.py (any depth) or src/**/*.ts"},
            "path": {"type": "string", "description": "folder, default all"},
            "no_ignore": {"type": "boolean"},
        },
        "required": ["pattern"],
    },
    run=run_glob,
    read_only=True,
    aliases={"noIgnore": "no_ignore", "glob": "pattern", "directory": "path", "dir": "path"},
)
