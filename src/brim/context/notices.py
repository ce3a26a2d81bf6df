"""The lines brim puts into a view in place of what it left out.

They state facts (what, how much, under which handle) and may name the call that fetches more. They stand in square
brackets, never speak of the task, and never in a user's voice.
"""

from __future__ import annotations

from collections.abc import Iterable

from brim.conversation import Part, Text


def size_of(text: str) -> str:
    """`412 lines, 15,332 characters`, or the characters alone for a single line."""
    lines = count_lines(text)
    characters = f"{len(text):,} character{'' if len(text) == 1 else 's'}"
    return f"{lines:,} lines, {characters}" if lines > 1 else characters


def count_lines(text: str) -> int:
    """Lines of a text; a newline at its end starts no further line."""
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def fetch(handle: str, recall: bool) -> str:
    """How to get an original back: by the recall tool where the model has one."""
    return f'recall("{handle}") returns it' if recall else f"handle {handle}"


def stub(tool: str, text: str, handle: str, *, recall: bool, because: str = "", rest: str = "") -> str:
    """The line in place of a whole tool result; `rest` is what it held beside its text."""
    reason = f"{because}; " if because else ""
    size = " and ".join(each for each in (size_of(text) if text or not rest else "", rest) if each)
    return f"[result of {tool} left out: {reason}{size}; {fetch(handle, recall)}]"


def rest_of(parts: Iterable[Part]) -> str:
    """What a content holds beside text: `2 images, 1 search_result`; "" for nothing."""
    kinds: dict[str, int] = {}
    for part in parts:
        if not isinstance(part, Text):
            kind = getattr(part, "kind", "block")
            kinds[kind] = kinds.get(kind, 0) + 1
    return ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in kinds.items())


def rest_note(rest: str, handle: str, *, recall: bool) -> str:
    """The line in place of what a content held beside the text that stays."""
    return f"[{rest} left out; {fetch(handle, recall)}]"


def mark(gap: str, handle: str, *, recall: bool, first: bool, style: str = "cut") -> str:
    """The mark in place of a run cut out of a text. The first one of a text says how to get all of it, in a digest only
    where the model can use that: `[…12 lines]`; the others of a digest give the number alone: `[…12]`."""
    if style == "cut":
        where = f"; all of it: {fetch(handle, recall)}" if first else ""
        return f"[… {size_of(gap)} left out{where} …]"
    lines = gap.count("\n") or 1
    counted = f"{lines:,} line{'' if lines == 1 else 's'}"
    if style == "digest" and not (first and recall):
        # A digest has many marks; spelled out they would cost half of what it saves.
        return f"[…{counted if first else lines}]"
    size = counted if "\n" in gap else f"{len(gap):,} characters"
    above = " as above" if style == "repeat" else " left out"
    where = f", {fetch(handle, recall)}" if first and recall else ""
    return f"[… {size}{above}{where}]"


def media_note(kind: str, tokens: int, handle: str) -> str:
    """The line in place of an image or document."""
    return f"[{kind} left out: about {tokens:,} tokens; handle {handle}]"


def seam(messages: int, handle: str) -> str:
    """The line between two messages that became neighbours and whose roles the API wants apart."""
    return f"[{messages:,} message{'' if messages == 1 else 's'} left out here; handle {handle}]"
