"""How a one-shot answer is shown: text for people, one JSON object or a line of JSON for each event for programs.

stdout gets the answer (or the JSON), stderr everything else. Colour and movement only where stderr is a terminal and
NO_COLOR is not set.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from typing import IO, Any, Protocol

from brim.agent import events as ev
from brim.agent.events import Event, Result, as_json
from brim.budget import render_bill
from brim.budget.bill import columns, fit
from brim.cli.spinner import Spinner
from brim.errors import BrimError

DIFF_LINES = 40
_ERROR_COLUMNS = 300
_CONTROLS = {
    code: 0x2400 + code if code < 0x20 else 0x2421 if code == 0x7F else 0xFFFD
    for code in (*range(0x20), *range(0x7F, 0xA0))
    if chr(code) not in "\n\t\r"
}
"""What a model says must not steer the terminal (titles, clipboard, colours): control characters are shown as signs."""
_LONE_RETURN = re.compile(r"\r(?!\n)")
DIFF_COLOURS = {"+": "32", "-": "31", "@": "36"}
_INSERTED = {"tree": "the folder's tree", "workspace": "snippets of the folder"}
_WAITS = {"retry": "waiting", "summary": "summarising"}
"""Notices that something begins which takes its time, and what it is called meanwhile."""
TIGHT = 0.1
"""The bill is shown unasked where less than this share of the window is free."""


class Unwritable(BrokenPipeError):
    """stdout cannot be written (a full disk): as final as a reader who has gone, but it must be said."""


class Output(Protocol):
    """Where events go. `fail` tells of an error before any turn could begin, and returns its exit code."""

    def __call__(self, event: Event) -> None: ...
    def fail(self, error: BrimError) -> int: ...
    def close(self) -> None: ...


def output_for(
    kind: str, *, bill: bool = False, verbose: bool = False, markdown: bool = True, structured: bool = False
) -> Output:
    """The output of a format's name. `structured`: the answer is JSON by a schema, shown once it was checked."""
    if kind == "text":
        return TextOutput(bill=bill, verbose=verbose, markdown=markdown, structured=structured)
    return JsonOutput(stream=kind == "stream-json")


class JsonOutput:
    """The result as one JSON object, or each event as a line; the result is always last, and there is one only. Where
    the events are not written, notices go to stderr."""

    def __init__(self, *, stream: bool, out: IO[str] | None = None, err: IO[str] | None = None) -> None:
        self._stream = stream
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._ended = False

    def __call__(self, event: Event) -> None:
        if self._stream or isinstance(event, Result):
            self._ended = self._ended or isinstance(event, Result)
            write_json(self._out, as_json(event).decode())
        elif isinstance(event, ev.Notice):
            self._err.write(f"! {event.text}\n")

    def fail(self, error: BrimError) -> int:
        if self._ended:
            self._err.write(f"ai: {error.message}\n")
            return error.code
        self(ev.Failed(error=plain_error(error), bill=getattr(error, "bill", None)))
        self(Result(ok=False, exit_code=error.code, error=plain_error(error)))
        return error.code

    def close(self) -> None:
        pass


class TextOutput:
    """Plain text; on a terminal with Markdown rendered, one line for each tool call and one dim line in the end."""

    def __init__(
        self,
        *,
        bill: bool = False,
        verbose: bool = False,
        markdown: bool = True,
        structured: bool = False,
        out: IO[str] | None = None,
        err: IO[str] | None = None,
    ) -> None:
        self._out = out or sys.stdout
        self._err = self.err = err or sys.stderr
        self._bill = bill
        self._verbose = verbose
        self.colour = is_colourful(self._err)
        self._structured = structured
        self._rendered: Any = None
        self._markdown = markdown and is_colourful(self._out)
        self._to_terminal = self._out.isatty()
        self._open_line = False
        self._shown_bill = False
        self._calls: dict[str, ev.ToolStarted] = {}
        self._thinking = False
        self._repairs: set[str] = set()
        self._spinner = Spinner(self._err, self.colour)

    # ---- events ------------------------------------------------------------------------------------------------

    def __call__(self, event: Event) -> None:
        self._spinner.stop()
        if isinstance(event, ev.Text):
            if self._structured:
                self._spinner.start("answering")
            else:
                self._text(event.text)
        elif isinstance(event, ev.Thinking):
            self._think(event.text)
        elif isinstance(event, ev.Requested):
            self._request(event)
            self._spinner.start("thinking")
        elif isinstance(event, ev.ToolStarted):
            self._end_text()
            self._calls[event.id] = event
            self._spinner.start(f"{event.name} {fit(brief_arguments(event.arguments, event.name), 40)}")
        elif isinstance(event, ev.ToolFinished):
            self._tool(event)
        elif isinstance(event, ev.Notice):
            self._sentence(f"! {event.text}", "33", "  ")
            if event.kind in _WAITS:
                self._spinner.start(_WAITS[event.kind])
        elif isinstance(event, ev.Failed):
            self._failed(event.error, event.advice, event.bill)
        elif isinstance(event, Result):
            self._end_text()
            if self._structured:
                self._show_data(event)
            if event.usage is not None and (event.usage.reported or event.bill is not None):
                self._sentence(closing_line(event), "2")

    def fail(self, error: BrimError) -> int:
        self._failed(plain_error(error), [], getattr(error, "bill", None))
        return error.code

    def close(self) -> None:
        self._spinner.stop()
        self._end_text()

    def running(self, label: str) -> None:
        """A tool goes on after a question was answered."""
        self._spinner.start(label)

    # ---- pieces ------------------------------------------------------------------------------------------------

    def _show_data(self, event: Result) -> None:
        """The checked answer alone on stdout; one that was none is shown beside it."""
        import json

        if event.ok:
            indent = 2 if self._out.isatty() else None
            write_json(self._out, json.dumps(event.data, ensure_ascii=False, indent=indent), indent)
        elif event.text.strip():
            self._say(event.text.strip(), "2")

    def _text(self, text: str) -> None:
        self._end_thinking()
        if self._to_terminal:
            text = text.translate(_CONTROLS)
        if self._markdown:
            if self._rendered is None:
                from brim.cli.markdown import MarkdownStream

                self._rendered = MarkdownStream(self._out)
            self._rendered.feed(text)
            return
        write(self._out, text)
        self._open_line = not text.endswith("\n")

    def _end_text(self) -> None:
        self._end_thinking()
        if self._rendered is not None:
            self._rendered.close()
            self._rendered = None
        if self._open_line:
            self._open_line = False
            write(self._out, "\n")

    def _think(self, text: str) -> None:
        if self._verbose:
            self._thinking = True
            self._err.write(self._dyed(text.translate(_CONTROLS), "2"))
            self._err.flush()

    def _end_thinking(self) -> None:
        if self._thinking:
            self._err.write("\n")
            self._thinking = False

    def _request(self, event: ev.Requested) -> None:
        report = [described for line in event.report if (described := self._new(line))]
        if report:
            self._sentence("context: " + "; ".join(report), "2", "    ")
        free, window = event.bill["free"], max(1, event.bill["window"])
        tight = free < TIGHT * window and not self._shown_bill
        if self._bill or tight:
            self._shown_bill = True
            self._say(render_bill(event.bill, min(100, width_of(self._err))), "2")

    def _new(self, line: Mapping[str, Any]) -> str:
        """One entry of a report in words; "" for a repair that was told before, since it is made in every request."""
        told = describe_pass(line)
        if line.get("pass") == "repair":
            if told in self._repairs:
                return ""
            self._repairs.add(told)
        return told

    def _tool(self, event: ev.ToolFinished) -> None:
        call = self._calls.pop(event.id, None)
        mark = "✗" if event.is_error else "·"
        size = f"{event.tokens:,} tokens, {event.seconds:.1f} s"
        brief = brief_arguments(call.arguments if call else "", event.name)
        head = f"{mark} {event.name} {brief}".rstrip()
        self._say(
            f"{fit(head, max(20, width_of(self._err) - len(size) - 3))}  {size}", "31" if event.is_error else "36"
        )
        changed = event.name in ("edit", "write") and not event.is_error and self.colour
        if self._verbose or changed:
            lines = event.text.splitlines()
            shown = lines if self._verbose else lines[:DIFF_LINES]
            for line in shown:
                self._say(f"  {line}", DIFF_COLOURS.get(line[:1], "2") if changed else "2")
            if len(lines) > len(shown):
                self._say(f"  … {len(lines) - len(shown):,} more lines", "2")
        elif event.is_error:
            first = event.text.strip().partition("\n")[0]
            self._sentence(f"  {fit(first, _ERROR_COLUMNS)}", "2", "  ")

    def _failed(self, error: Mapping[str, Any], advice: list[str], bill: Mapping[str, Any] | None) -> None:
        self._sentence(f"ai: {error['message']}", "31", "    ")
        if error.get("hint"):
            self._sentence(f"    {error['hint']}", "", "    ")
        if bill is not None:
            self._say(render_bill(bill, min(100, width_of(self._err))), "2")
        for line in advice:
            self._sentence(f"  - {line}", "", "    ")

    def _say(self, text: str, colour: str) -> None:
        self._end_text()
        if self._err.isatty():
            text = signs(text)
        self._err.write(self._dyed(text, colour) + "\n")
        self._err.flush()

    def _sentence(self, text: str, colour: str, indent: str = "") -> None:
        """Words: on a terminal they are not broken in the middle at its border."""
        width = width_of(self._err) if self._err.isatty() else 0
        self._say("\n".join(wrap_words(text, width, indent)) if width else text, colour)

    def _dyed(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colour and colour else text


def write(out: IO[str], text: str) -> None:
    """Writes to stdout at once. Raises BrokenPipeError where nobody reads it, Unwritable where it cannot be written."""
    try:
        try:
            out.write(text)
        except UnicodeEncodeError:  # a locale that cannot say it: what cannot be said is shown by its code
            encoding = encoding_of(out)
            out.write(text.encode(encoding, "backslashreplace").decode(encoding))
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritable(error.errno, error.strerror or str(error)) from error


def signs(text: str) -> str:
    """Text for a terminal that steers nothing there: control characters are seen as signs, and so is a carriage return
    alone, which would write over what stands before it."""
    return _LONE_RETURN.sub("␍", text.translate(_CONTROLS))


def encoding_of(out: IO[str]) -> str:
    """What a stream can say."""
    return str(getattr(out, "encoding", None) or "utf-8")


def write_json(out: IO[str], text: str, indent: int | None = None) -> None:
    """Writes JSON and a line's end; with escapes where stdout's encoding cannot say a character."""
    import json

    try:
        text.encode(encoding_of(out))
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=indent)
    write(out, text + "\n")


# ---- words that the REPL uses, too ---------------------------------------------------------------------------------


def closing_line(result: Result) -> str:
    """`3,112 in (2,048 cached), 87 out · context 38% · $0.0012 · session $0.0034 · 2.1 s`."""
    usage = result.usage
    parts = []
    if usage is not None and usage.reported:
        cached = f" ({usage.cached_read:,} cached)" if usage.cached_read else ""
        parts.append(f"{usage.input:,} in{cached}, {usage.output:,} out")
    elif result.bill is not None and result.ok:
        parts.append(f"~{result.bill['used']:,} in")
    if result.context is not None:
        parts.append(f"context {result.context:.0%}")
    if result.cost is not None:
        parts.append(money(result.cost))
    elif usage is not None and usage.reported:
        parts.append("no price known")
    if result.session_cost is not None:
        parts.append(f"session {money(result.session_cost)}")
    parts.append(f"{result.duration:.1f} s")
    if result.session:
        parts.append(short_session(result.session))
    return " · ".join(parts)


def wrap_words(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of at most `width` columns, broken between words; the later ones begin with `indent`. A longer word (a path, a
    Chinese sentence) is left to the terminal."""
    lines: list[str] = []
    line = text[: len(text) - len(text.lstrip())]
    used = columns(line)
    empty = True
    for word in text.split():
        size = columns(word)
        if not empty and used + 1 + size > width:
            lines.append(line)
            line, used, empty = indent, columns(indent), True
        line += word if empty else f" {word}"
        used += size + (0 if empty else 1)
        empty = False
    return [*lines, line]


def money(dollars: float) -> str:
    """US dollars, with as many digits as a small sum needs."""
    return "$0" if dollars == 0 else f"${dollars:.4f}" if dollars < 1 else f"${dollars:.2f}"


def paid(cost: float, requests: int, unpriced: int) -> str:
    """What `requests` that were answered cost, `unpriced` of them at a price that is not known: those are not free."""
    if not unpriced:
        return money(cost)
    return f"{money(cost)}, {unpriced:,} without a known price" if requests > unpriced else "no price known"


def short_session(id: str) -> str:
    from brim.store.values import short_id

    return short_id(id)


def brief_arguments(arguments: str, tool: str = "") -> str:
    """The values of a call's arguments on one line; of a change to a file its path alone, since a diff follows."""
    import msgspec

    try:
        values = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, ValueError):
        return " ".join(arguments.split())[:200]
    if not isinstance(values, dict):
        return " ".join(str(values).split())[:200]
    if tool in ("edit", "write") and isinstance(path := values.get("path"), str):
        return " ".join(path.split())
    shown = [
        " ".join(str(value).split())[:120] if place == 0 else f"{key}={' '.join(str(value).split())[:60]}"
        for place, (key, value) in enumerate(values.items())
    ]
    return " ".join(shown)


def describe_pass(line: Mapping[str, Any]) -> str:
    """One entry of a report in words: `compress 3 stub, 41,000 -> 12,000 tokens`."""
    if line.get("pass") == "repair":
        return f"repaired message {line.get('at')}: {line.get('did')}"
    if line.get("pass") == "insert" and "left_out" in line:
        return (
            f"no room for what was found ({line.get('source')}): {line['left_out']:,} tokens, room for {line['room']:,}"
        )
    if line.get("pass") == "insert":
        what = _INSERTED.get(str(line.get("source")), "what was let go and matters now")
        return f"{what} added, {line['after'] - line['before']:,} tokens"
    done = ", ".join(f"{line[kind]} {kind}" for kind in ("trim", "stub", "fold", "drop") if line.get(kind))
    sizes = f", {line['before']:,} -> {line['after']:,} tokens" if "before" in line else ""
    for key in ("refused", "failed", "notice"):
        if line.get(key):
            done += f" ({line[key]})"
    return " ".join(f"{line.get('pass')} {done}".split()) + sizes


def plain_error(error: BrimError) -> dict[str, Any]:
    """An error as JSON values, without its bill."""
    return {key: value for key, value in error.as_dict().items() if key != "bill"}


def is_colourful(stream: IO[str]) -> bool:
    """Whether colours belong on a stream: a terminal, no NO_COLOR, not a dumb one."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width_of(stream: IO[str]) -> int:
    """Columns of the terminal; 100 where there is none."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 100
    except (OSError, ValueError):
        return shutil.get_terminal_size((100, 24)).columns
