"""What a text of a transcript weighs and what stands in it: the yardstick every policy is measured with.

Tokens are UTF-8 bytes / 4 + 3 per message. What stands in a text are its code-like identifiers, the CJK values of JSON
results and its lines of 20 to 240 characters, each with its surroundings: the whole line, or of a line over 240
characters the 60 to either side. So a list of words taken from a result shows none of them "as it stood".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

Wire: TypeAlias = Mapping[str, Any]
"""One message in OpenAI's chat form."""
Places: TypeAlias = dict[str, tuple[str, ...]]
"""What stands in a text: identifier, CJK value or line -> the surroundings in which it stands."""

_WORD = re.compile(r"[A-Za-z_][\w./-]{3,}|\d{3,}")
_CODE_LIKE = re.compile(r"\d|[_./-]|[a-z][A-Z]")
_CJK_VALUE = re.compile(r'"([^"\\\n]{2,24})"')
_CJK = re.compile("[\u4e00-\u9fff]")
SHORTEST_LINE, LONGEST_LINE, AROUND = 20, 240, 60


def text_of(message: Wire) -> str:
    """The text of a chat message that is measured: content, then each call's name and the values of its arguments."""
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content)
    calls = message.get("tool_calls")
    if not calls:
        return str(content)
    spoken = (f"\n{call['function']['name']}\n{_arguments(call['function']['arguments'])}" for call in calls)
    return str(content) + "".join(spoken)


@lru_cache(maxsize=20_000)
def _arguments(raw: str) -> str:
    try:
        return "\n".join(_strings(json.loads(raw)))
    except (ValueError, RecursionError):
        return raw


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    else:
        yield str(value)


def weight(text: str) -> int:
    """Tokens of a message with this text."""
    return len(text.encode("utf-8", "surrogatepass")) // 4 + 3


def places(text: str) -> Places:
    """What stands in a text, and where."""
    found: dict[str, set[str]] = {}
    for raw in text.split("\n"):
        line = raw.strip()
        if len(line) < 2:
            continue
        long = len(line) > LONGEST_LINE
        if not long and len(line) >= SHORTEST_LINE:
            found.setdefault(line, set()).add(line)
        for match in _WORD.finditer(line):
            word = match.group().strip("./-")
            if len(word) >= 3 and _CODE_LIKE.search(word):
                found.setdefault(word, set()).add(_around(line, match) if long else line)
        if not line.isascii() and _CJK.search(line):
            for match in _CJK_VALUE.finditer(line):
                found.setdefault(match.group(1), set()).add(_around(line, match))
    return {word: tuple(sorted(where)) for word, where in found.items()}


def _around(line: str, match: re.Match[str]) -> str:
    return line[max(0, match.start() - AROUND) : match.end() + AROUND]


def cjk_values(text: str) -> set[str]:
    """The string values with Chinese characters in a JSON result."""
    if text.isascii():
        return set()
    return {value for value in _CJK_VALUE.findall(text) if _CJK.search(value)}
