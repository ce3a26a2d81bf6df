r"""A pattern as models write it -> how ripgrep is asked for it, and what to say where it cannot be.

Line ends are the difference: a `$` is also meant before CR LF, a `.` or `\s` is not meant for the CR of one, and a pattern
that names a line end is meant across lines, whichever kind of line end they have.
"""

from __future__ import annotations

import re

_LINE_END = r"(?:\r?\n)"
# Pieces that a line end in a pattern must not be looked for in: escapes, and sets up to their bracket.
_PIECES = re.compile(r"\\r\??(?:\\n|\n)|\\n|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\n|[^\\\[\n]+|.", re.DOTALL)
# A dot or a set that is meant to run over line ends.
_ANY = re.compile(r"\(\?[a-zA-Z]*s[a-zA-Z]*[:)]|\[\\s\\S\]|\[\\S\\s\]|\[\\d\\D\]|\[\\w\\W\]|\[\^\]")
# What a CR before a line end could be taken for, or be in the way of; and patterns that mean a CR.
_SEES_RETURNS = re.compile(r"[.$]|\[\^|\[:|\\[sWDBPp]")
_MEANS_RETURNS = re.compile(r"\r|\\r|\\x(?:0|\{0*)d", re.IGNORECASE)


def pattern_options(pattern: str, *, literal: bool, crlf: bool = True) -> list[str]:
    """ripgrep's options for a pattern. `crlf`: whether lines may end in CR LF."""
    if literal:
        if "\n" not in pattern:
            return ["--fixed-strings", f"--regexp={pattern}"]
        lines = re.split(r"\r?\n", pattern)
        return ["--multiline", f"--regexp={_LINE_END.join(map(re.escape, lines))}"]
    pieces = _PIECES.findall(pattern)
    ends = ("\\n", "\n", "\\r\\n", "\\r\n", "\\r?\\n", "\\r?\n")
    across = any(piece in ends for piece in pieces) or "\r\n" in pattern
    if across:
        pattern = "".join(_LINE_END if piece in ends else piece for piece in pieces).replace(
            "\r" + _LINE_END, _LINE_END
        )
    options = ["--multiline"] * (across or _ANY.search(pattern) is not None)
    seen = "$" in pattern if options else _SEES_RETURNS.search(pattern) and not _MEANS_RETURNS.search(pattern)
    if crlf and seen:
        options.append("--crlf")
    return [*options, f"--regexp={pattern}"]


def pattern_hint(said: str, *, literal: bool = True) -> str:
    """What to do about a pattern that ripgrep refused with these words. `literal`: whether the tool takes that."""
    if "look-around" in said or "backreferences" in said:
        return "look-around and backreferences are not supported: search for something simpler, or use bash: grep -rnP"
    if "size limit" in said:
        return "use smaller repetitions"
    return "fix the regular expression" + (
        ", or set literal: true to search for the text as it stands" if literal else ""
    )
