"""The language of a conversation, and how brim marks the text it writes itself.

Everything brim puts into a view begins with `MARK` in square brackets, so that neither a model nor brim itself, when
it meets such text again in an imported history, takes it for the words of a user.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from brim.conversation import Message

Language: TypeAlias = Literal["en", "zh"]

MARK = "[brim"
"""What every text made by brim begins with."""

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LETTER = re.compile(r"[A-Za-z\u00c0-\u024f]")
_SAMPLE_CHARS = 20_000
_HAN_SHARE = 0.2
"""Above this share of Han among all letters a text counts as Chinese: a Chinese sentence with paths and English
terms in it is above, an English one that quotes a Chinese name is below."""


def is_injected(text: str) -> bool:
    """The text was made by brim (a summary, a notice, a stub), not typed by anyone."""
    return text.lstrip().startswith(MARK)


def language_of_text(text: str) -> Language:
    """`zh` where Han characters are more than a fifth of the letters of its first 20,000 characters, else `en`."""
    sample = text[:_SAMPLE_CHARS]
    han = len(_HAN.findall(sample))
    if not han:
        return "en"
    return "zh" if han > _HAN_SHARE * (han + len(_LETTER.findall(sample))) else "en"


def language_of(messages: Sequence[Message]) -> Language:
    """The language the user writes in; where there is no user text, that of the assistant."""
    for role in ("user", "assistant"):
        pieces: list[str] = []
        length = 0
        for message in messages:
            if message.role == role and (text := message.text) and not is_injected(text):
                # A long paste says little about the language of the person who pasted it.
                pieces.append(text[:400])
                length += len(pieces[-1])
                if length > _SAMPLE_CHARS:
                    break
        if pieces:
            return language_of_text("\n".join(pieces))
    return "en"
