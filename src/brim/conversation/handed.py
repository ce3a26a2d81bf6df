"""What a user typed, apart from the files that were handed over in the same message.

Files stand before the words, each in its tags (`<file path="…">`, `<folder path="…">`, `<stdin>`). Lists of sessions and of
messages show the words; where there are none, what was handed over is named.
"""

from __future__ import annotations

import re

_OPENS = re.compile(r'<(?:file|folder) path="([^"\n]*)"[^>\n]*>|<(stdin)>')
_CLOSES = re.compile(r"</(?:file|folder|stdin)>(?:\n\n|\Z)")


def typed_of(text: str) -> str:
    """The words of a message without what was handed over; names of that where there are no words."""
    if not _OPENS.match(text):
        return text
    end = 0
    for found in _CLOSES.finditer(text):
        end = found.end()
    if words := text[end:].strip() if end else "":
        return words
    starts = {0, *(found.end() for found in _CLOSES.finditer(text))}  # not what only stands in a file
    names = [found[1] or found[2] for found in _OPENS.finditer(text) if found.start() in starts]
    return ", ".join(dict.fromkeys(names))
