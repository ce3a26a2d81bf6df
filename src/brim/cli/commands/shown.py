"""How the commands of `brim` speak: results on stdout, the rest on stderr, tables that line up in any script."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from brim.errors import BrimError


def say(text: str) -> None:
    """A result, as text."""
    _write(sys.stdout, text + "\n")


def note(text: str) -> None:
    """What is no result: on stderr."""
    _write(sys.stderr, text + "\n")


def say_json(value: Any) -> None:
    """A result, as one JSON value on one line; with escapes where stdout's encoding cannot say a character."""
    say(as_json(value, getattr(sys.stdout, "encoding", None) or "utf-8"))


def say_json_text(text: str) -> None:
    """A result that is JSON already, over several lines; with escapes where stdout's encoding cannot say a character."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=1)
    say(text)


def say_data(pieces: Iterable[str]) -> None:
    """What stands in a file of brim's, on stdout: as UTF-8, whatever the locale."""
    for piece in pieces:
        if (raw := getattr(sys.stdout, "buffer", None)) is None:  # a stream of texts alone
            sys.stdout.write(piece)
            continue
        sys.stdout.flush()
        raw.write(piece.encode("utf-8", "backslashreplace"))


def as_json(value: Any, encoding: str = "utf-8") -> str:
    """JSON text; structs become objects, and what the encoding cannot say (lone surrogates, in UTF-8) is escaped."""
    import msgspec

    plain = msgspec.to_builtins(value, enc_hook=str, str_keys=True)
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(plain, separators=(",", ":"))
    return text


def told(error: BrimError, as_json_too: bool) -> int:
    """Tells of a failure: message and hint on stderr, with the bill where there is one; as JSON on stdout, too, if asked.
    Returns the exit code."""
    note(f"brim: {error.message}")
    if error.hint:
        note(f"      {error.hint}")
    bill = getattr(error, "bill", None)
    if isinstance(bill, Mapping):
        from brim.budget import render_bill

        note(render_bill(bill))
    if as_json_too:
        # typer leaves a note of its own on whatever passes through it
        say_json({"error": {key: value for key, value in error.as_dict().items() if not key.startswith("_")}})
    return error.code


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> str:
    """Rows under their heads; the columns named in `right` are figures and stand at the right. The last one is not padded."""
    from brim.budget.bill import columns

    widths = [max(columns(row[at]) for row in [head, *rows]) for at in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = []
        for at, cell in enumerate(row):
            space = " " * (widths[at] - columns(cell))
            cells.append(space + cell if head[at] in right else cell + space)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def size(count: int) -> str:
    """Bytes for people: `92.9 MB`."""
    if count < 1_000:
        return f"{count} B"
    for unit in ("kB", "MB", "GB"):
        count_in_unit = count / {"kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
        if count_in_unit < 999.5 or unit == "GB":
            return f"{count_in_unit:.1f} {unit}"
    raise AssertionError


def when(seconds: float) -> str:
    """Unix seconds as local date and time, to the minute."""
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def one_line(text: str, width: int) -> str:
    """The beginning of a text on one line of at most `width` columns."""
    from brim.budget.bill import fit

    return fit(" ".join(text.split()), width)


def _write(stream: Any, text: str) -> None:
    if stream.isatty():
        from brim.cli.output import signs

        text = signs(text)
    try:
        stream.write(text)
    except UnicodeEncodeError:
        # a terminal or a locale that cannot say it: what cannot be said is shown by its code
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
