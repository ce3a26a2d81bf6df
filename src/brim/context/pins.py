"""Pins: the text that stays verbatim whatever happens to the rest of its message.

A pin is a paragraph that begins with `[PIN]` in a user or system message, up to the next blank line, or a whole
message that the caller marked. Nothing that a tool printed, a model wrote or brim put into a view can be a pin: a
page read from the web must not be able to nail itself into every later request.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from brim.context.wording import is_injected
from brim.conversation import Message, Text

MARKER = "[PIN]"

_PARAGRAPH_END = re.compile(r"\n[ \t\r]*\n")


def pinned_spans(message: Message) -> list[tuple[int, int]]:
    """Half-open character spans of the pinned paragraphs in `message.text`, in order; [] where there is none.

    A span starts at its marker and ends before the blank line (or the end of the text), trailing white space left
    out. Tool results, assistant messages and text injected by brim have none.
    """
    if message.role not in ("user", "system") or MARKER not in message.text:
        return []
    spans: list[tuple[int, int]] = []
    offset = 0
    for part in message.parts:
        if isinstance(part, Text):
            # A content block begins a paragraph: clients put a note or a file beside what the person typed.
            if not is_injected(part.text):
                spans.extend((offset + start, offset + end) for start, end in _spans(part.text))
            offset += len(part.text) + 1
    return spans


def pinned_texts(messages: Sequence[Message], marked: Collection[int] = ()) -> list[tuple[int, str]]:
    """Every pin of `messages` as (message index, its text verbatim), in order.

    `marked` are indices of messages pinned whole by the caller; such a message gives one pin, its full text.
    """
    chosen = frozenset(marked)
    pins = []
    for index, message in enumerate(messages):
        if index in chosen:
            if text := message.text:
                pins.append((index, text))
        else:
            pins.extend((index, message.text[start:end]) for start, end in pinned_spans(message))
    return pins


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Paragraphs whose first visible characters are the marker."""
    at = text.find(MARKER)
    while at >= 0:
        end_match = _PARAGRAPH_END.search(text, at)
        end = end_match.start() if end_match else len(text)
        if _begins_paragraph(text, at):
            stop = at + len(text[at:end].rstrip())
            yield at, stop
        at = text.find(MARKER, end)


def _begins_paragraph(text: str, at: int) -> bool:
    """Only white space between `at` and the blank line (or the start of the text) before it."""
    before = text[:at].rstrip()
    return not before or text.count("\n", len(before), at) >= 2
