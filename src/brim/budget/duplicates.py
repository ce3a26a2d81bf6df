"""Finds text that stands in a request twice: a file read again, a log pasted and also attached, a repeated reply.

Compares line by line across all texts, tool results and string arguments, and reports runs of equal lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from brim.conversation import Message, Text, ToolCall, ToolResult

_LINE = 24
"""Lines shorter than this in characters (closing brackets, blank lines) do not begin a run; they may continue one."""


class Duplicate(msgspec.Struct, frozen=True):
    """The same text in message `again` as in the earlier (or same) message `first`, by index; `chars` of it, in `lines`
    lines, beginning with `sample`. `where` names both places for people."""

    first: int
    again: int
    chars: int
    lines: int
    sample: str
    where: str


def duplicates(messages: Sequence[Message], min_chars: int = 400) -> list[Duplicate]:
    """Runs of equal lines of at least `min_chars` characters, longest first; each stretch is reported once.

    Time grows with the size of the text alone.
    """
    places: dict[str, tuple[int, int]] = {}
    texts = list(_texts(messages))
    split = [text.splitlines() for _, _, text in texts]
    found: list[Duplicate] = []
    for number, lines in enumerate(split):
        at = 0
        while at < len(lines):
            line = lines[at]
            earlier = places.get(line) if len(line) >= _LINE else None
            if earlier is None:
                if len(line) >= _LINE:
                    places[line] = (number, at)
                at += 1
                continue
            length = _run(split[earlier[0]], earlier[1], lines, at, same=earlier[0] == number)
            chars = sum(len(same) + 1 for same in lines[at : at + length])
            if chars >= min_chars:
                found.append(_duplicate(texts, earlier[0], number, chars, length, line))
            at += length
    return sorted(found, key=lambda one: -one.chars)


def _run(first: list[str], start: int, again: list[str], at: int, same: bool) -> int:
    """How many lines from `at` on equal those from `start` on; within one text the two must not overlap."""
    most = min(len(again) - at, len(first) - start, at - start if same else len(again))
    length = 0
    while length < most and first[start + length] == again[at + length]:
        length += 1
    return length


def _duplicate(
    texts: list[tuple[int, str, str]], first: int, again: int, chars: int, lines: int, line: str
) -> Duplicate:
    (first_index, first_place, _), (again_index, again_place, _) = texts[first], texts[again]
    where = f"{again_place} (message {again_index}) repeats {first_place} (message {first_index})"
    return Duplicate(first_index, again_index, chars, lines, line.strip()[:80], where)


def _texts(messages: Sequence[Message]) -> Iterator[tuple[int, str, str]]:
    """Index, place in words, and text of everything a person or tool wrote."""
    names = {call.id: call.name for message in messages for call in message.calls}
    for index, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, Text):
                yield index, f"{message.role} text", part.text
            elif isinstance(part, ToolResult):
                yield index, f"result of {names.get(part.call_id, 'a tool')}", part.text
            elif isinstance(part, ToolCall) and len(part.arguments) >= 200:
                for text in _strings(part.arguments):
                    yield index, f"arguments of {part.name}", text


def _strings(arguments: str) -> Iterator[str]:
    try:
        waiting = [msgspec.json.decode(arguments)]
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value))
