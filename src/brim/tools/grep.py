"""The grep tool: ripgrep's matches as `file:line:content`, in a stable order, with exact totals.

The whole output is counted while it streams by; only the first lines in the order of paths are held. A cut falls
between lines, and a huge line is reduced to its match's surroundings, so `file:line:content` never breaks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from brim.errors import ToolError
from brim.tools.caps import Caps
from brim.tools.child import Ended, Stop, run_child
from brim.tools.cleaning import show_controls
from brim.tools.clusters import cut_after, cut_before
from brim.tools.context import Tool, ToolContext, ToolOutput
from brim.tools.globs import compile_include, split_globs
from brim.tools.listing import Listing
from brim.tools.paths import kind_of, require_inside
from brim.tools.ripgrep import Skipped, find_ripgrep, walk_options
from brim.tools.spool import Spool

# A line whose end has not come within this many bytes is looked at through a window around its match.
_LONG_LINE = 64 * 1024
# Bytes kept of a line to either side of where its match starts.
_AROUND = 2_048


class GrepArguments(msgspec.Struct, frozen=True):
    pattern: str
    path: str = "."
    include: str | None = None
    ignore_case: bool = False
    no_ignore: bool = False
    literal: bool = False
    stop_early: bool = False
    """End the search once more lines than can be shown were found: fast, but without totals and in order of arrival."""


async def run_grep(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
    """Search; see `GREP`."""
    asked = msgspec.convert(dict(arguments), GrepArguments)
    if not asked.pattern:
        raise ToolError("pattern is empty", hint="give a regular expression, or use glob to list files")
    start = search_start(asked.path, ctx)
    assert start is not None
    options = ["--line-number", "--column", "--with-filename", "--no-heading", "--null", "--binary", "--max-columns=0"]
    options += walk_options(ctx.workspace, no_ignore=asked.no_ignore)
    options += ["--ignore-case"] * asked.ignore_case + ["--fixed-strings"] * asked.literal
    accept: Callable[[bytes], bool] | None = None
    if asked.include:
        accept = compile_include(asked.include)
        options += _types(asked.include)
    spool = Spool(ctx.blobs, ctx.caps.blob_bytes)
    matches = _Matches(Listing(ctx.caps.grep_lines, spool), accept, ctx.caps, asked.stop_early)
    skipped = Skipped()
    ended = await run_child(
        [find_ripgrep(), *options, f"--regexp={asked.pattern}", "--", start],
        cwd=ctx.workspace,
        env=os.environ,
        stdout=matches.feed,
        stderr=skipped.feed,
        timeout=ctx.caps.search_timeout,
        sweep=False,
    )
    matches.close()
    skipped.close()
    if ended.code == 2 and skipped.failed and not matches.listing.records:
        spool.discard()
        said = "\n".join(text for text in skipped.errors if "os error" not in text)
        raise ToolError(f"ripgrep cannot search for {asked.pattern!r}: {said}", hint=_pattern_hint(said))
    return _answer(asked, matches, skipped, ended, ctx)


def search_start(path: str, ctx: ToolContext, *, missing_ok: bool = False) -> str | None:
    """The path to hand to ripgrep: relative to the workspace where it is inside, never an option. None for one that is
    not there, if that is no error."""
    real = require_inside(ctx.workspace, path or ".", ctx.granted, what="search")
    try:
        kind = kind_of(os.stat(real).st_mode)
    except OSError:
        if missing_ok:
            return None
        raise ToolError(f"no such file or directory: {path}", hint="paths are relative to the workspace") from None
    if kind not in (None, "a directory"):
        raise ToolError(f"{path} is {kind}; it was not opened")
    if real == ctx.workspace:
        return "."
    return f"./{real.relative_to(ctx.workspace)}" if ctx.workspace in real.parents else str(real)


def _types(include: str) -> list[str]:
    """The part of an include that ripgrep can judge by file name alone, as a file type: unlike its --glob, a type does
    not bring back ignored files. Whole paths are judged here, afterwards."""
    names = [glob.rstrip("/").rsplit("/", 1)[-1] for glob in split_globs(include) if not glob.startswith("!")]
    if (
        not names
        or any(glob.endswith("/") for glob in split_globs(include))
        or any("**" in n or "\\" in n for n in names)
    ):
        return []
    if any(name.count("{") != name.count("}") for name in names):
        return []
    return [f"--type-add=brim:{name}" for name in names] + ["--type=brim"]


def _pattern_hint(said: str) -> str:
    if "look-around" in said or "backreferences" in said:
        return "look-around and backreferences are not supported: search for something simpler"
    if "\\n" in said:
        return "a pattern is matched within one line"
    if "size limit" in said:
        return "use smaller repetitions"
    return "fix the regular expression, or set literal: true to search for the text as it stands"


class _Matches:
    """Reads `path NUL line:column:content` as ripgrep prints it, in chunks of any size."""

    def __init__(self, listing: Listing, accept: Callable[[bytes], bool] | None, caps: Caps, stop_early: bool) -> None:
        self.listing = listing
        self.files = 0
        self.binary: list[bytes] = []
        self.binary_count = 0
        self._accept = accept
        self._line_chars = caps.line_chars
        self._stop_after: int | None = caps.grep_lines if stop_early else None
        self._rest = b""
        self._long: _LongLine | None = None
        self._name = b""
        self._most = caps.grep_lines
        self.shortened = False
        self._accepted = True

    def feed(self, data: bytes) -> None:
        if self._long is not None:
            data = self._go_on(data)
            if self._long is not None:
                return
        if self._rest:
            data = self._rest + data
        end = data.rfind(b"\n") + 1
        self._rest = data[end:]
        if end:
            self._lines(data[:end].split(b"\n"))
        if len(self._rest) > _LONG_LINE:
            self._begin_long()
        if self._stop_after is not None and self.listing.records > self._stop_after:
            raise Stop

    def close(self) -> None:
        if self._long is not None:
            self._go_on(b"\n")
        elif self._rest:
            self._lines([self._rest, b""])
        self._rest = b""

    def _lines(self, lines: list[bytes]) -> None:
        """Complete lines, the last one empty. Runs of one file go to the listing together."""
        name, path, wanted = self._name, _display(self._name), False
        records: list[bytes] = []
        shown: list[bytes] = []
        for line in lines[:-1]:
            found, nul, rest = line.partition(b"\0")
            if not nul:
                self._binary(line)
                continue
            if found != name:
                if records:
                    self.listing.add(path, b"".join(records), len(records), shown)
                    records, shown = [], []
                name, path = found, _display(found)
                self._enter(name)
            if not self._accepted:
                continue
            if not records:
                wanted = self.listing.wants(path)
            number, _, rest = rest.partition(b":")
            column, _, content = rest.partition(b":")
            head = path + b":" + number + b":"
            records.append(head + content + b"\n")
            if wanted and len(shown) < self._most:
                shown.append(self._shown(head, content, int(column) - 1, len(content), 0))
        if records:
            self.listing.add(path, b"".join(records), len(records), shown)

    def _enter(self, name: bytes) -> None:
        self._name = name
        self._accepted = self._accept is None or self._accept(_display(name))
        self.files += self._accepted

    def _binary(self, line: bytes) -> None:
        name, found, _ = line.rpartition(b": binary file matches")
        if found and (self._accept is None or self._accept(_display(name))):
            self.binary_count += 1
            if len(self.binary) < 20:
                self.binary.append(_display(name))

    def _shown(self, head: bytes, content: bytes, match: int, length: int, start: int) -> bytes:
        """One record for showing; `content` starts at byte `start` of a line of `length` bytes, the match at byte `match`."""
        if length <= self._line_chars:
            return head + content
        self.shortened = True
        return head + shorten(content, match, length, start, self._line_chars)

    def _begin_long(self) -> None:
        name, nul, rest = self._rest.partition(b"\0")
        number, colon, rest = rest.partition(b":")
        column, colon2, content = rest.partition(b":")
        if not (nul and colon and colon2):
            return
        if name != self._name:
            self._enter(name)
        self._long = _LongLine(_display(name), number, int(column) - 1)
        self._rest = b""
        if self._accepted:
            self.listing.store(self._long.path, self._long.head)
        self._go_on(content)

    def _go_on(self, data: bytes) -> bytes:
        """Feed the long line; returns what comes after it."""
        long = self._long
        assert long is not None
        end = data.find(b"\n")
        piece = data if end < 0 else data[:end]
        long.take(piece)
        if self._accepted:
            self.listing.store(long.path, piece)
        if end < 0:
            return b""
        self._long = None
        if self._accepted:
            shown = [self._shown(long.head, bytes(long.window), long.match, long.length, long.start)]
            self.listing.add(long.path, b"\n", 1, shown if self.listing.wants(long.path) else [])
            self.listing.chars += len(long.head) + long.chars
        return data[end + 1 :]


class _LongLine:
    """A line too long to hold: its length, and a window of bytes around its match."""

    def __init__(self, path: bytes, number: bytes, match: int) -> None:
        self.path, self.match = path, match
        self.head = path + b":" + number + b":"
        self.start = max(0, match - _AROUND)
        self.length = self.chars = 0
        self.window = bytearray()

    def take(self, piece: bytes) -> None:
        # Every byte but those that continue a character begins one; near enough only where the line is no UTF-8.
        self.chars += len(piece) if piece.isascii() else sum(1 for byte in piece if byte & 0xC0 != 0x80)
        low = max(0, self.start - self.length)
        high = self.match + _AROUND - self.length
        if high > low:
            self.window += piece[low:high]
        self.length += len(piece)


def shorten(content: bytes, match: int, length: int, start: int, chars: int) -> bytes:
    """About `chars` characters of a line around its match, with marks that give the bytes left out at either side."""
    at = match - start
    before = content[max(0, at - chars * 4) : at].decode("utf-8", "replace")
    after = content[at : at + chars * 4].decode("utf-8", "replace")
    text = before + after
    low = max(0, len(before) - chars // 3)
    high = min(len(text), low + chars)
    low = max(0, min(low, high - chars))
    # A window that starts or ends inside the line may hold half a character at its ends.
    low, high = cut_after(text, low), cut_before(text, high)
    kept = text[low:high].strip("�") if len(text) > chars else text
    left = start + max(0, at - chars * 4) + len(text[:low].encode())
    right = max(0, length - left - len(kept.encode()))
    return (
        (f"[{left} bytes] ... " if left else "").encode()
        + kept.encode()
        + (f" ... [{right} bytes]" if right else "").encode()
    )


def _display(path: bytes) -> bytes:
    return path[2:] if path.startswith(b"./") else path


def _answer(asked: GrepArguments, matches: _Matches, skipped: Skipped, ended: Ended, ctx: ToolContext) -> ToolOutput:
    listing, caps = matches.listing, ctx.caps
    lines = [show_controls(line.decode("utf-8", "replace").replace("\r", "")) for line in listing.first()]
    early = ended.stopped or ended.timed_out
    notes = [note for note in (skipped.describe() if not ended.stopped else "", skipped.unreadable()) if note]
    if ended.timed_out:
        notes.insert(0, f"Stopped after {caps.search_timeout} s: there may be more; narrow the path or the include.")
    if matches.binary_count:
        names = ", ".join(path.decode("utf-8", "replace") for path in sorted(matches.binary)[:10])
        more = f" and {matches.binary_count - 10} more" if matches.binary_count > 10 else ""
        notes.insert(0, f"Binary files that match (content not shown): {show_controls(names)}{more}.")
    where = "" if asked.path in (".", "") else f" in {asked.path}"
    where += f" (include {asked.include})" if asked.include else ""
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
        text = f"[No matching lines for {asked.pattern!r}{where}. {' '.join(notes)}".rstrip() + "]"
        return ToolOutput(text, False, {**meta, "shown_lines": 0, "cut": False})

    files = f"{matches.files} file" + ("" if matches.files == 1 else "s")
    plus = "more than " if early else ""
    total = f"{listing.records} matching line" + ("" if listing.records == 1 else "s")
    whole = "\n".join([*lines, f"[{plus}{total} in {files}{where}. {' '.join(notes)}".rstrip() + "]"])
    if listing.records <= len(lines) and not early and not matches.shortened and ctx.count(whole) <= caps.grep:
        listing.discard()
        return ToolOutput(whole, False, {**meta, "shown_lines": len(lines), "cut": False})

    handle = listing.keep()
    if matches.shortened:
        notes.insert(0, "Long lines are shortened around their match.")

    def notice(shown: int) -> str:
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
        "ignoreCase": "ignore_case", "case_insensitive": "ignore_case", "fixed_strings": "literal", "stopEarly": "stop_early",
    },
)  # fmt: skip
