"""Which results report a failure. They never age and keep their error text (C4, law 3)."""

from __future__ import annotations

import re

from brim.context.memo import ByText
from brim.conversation import Message

_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: status| code)?|return ?code|returncode)\W{0,4}(-?\d+)|(?:退出码|返回码)\W{0,3}(-?\d+)",
    re.IGNORECASE,
)
_WORDS = re.compile(
    r"\b(?:[A-Z]\w*(?:Error|Exception)|error|errors|failed|failure|fatal|panic|traceback|exception|denied|refused|"
    r"not found|no such file|cannot|timed out|segmentation fault)\b|错误|失败|异常|出错|拒绝|超时|未找到|无法",
    re.IGNORECASE,
)
_LOOK_LINES = 3
_LOOK_CHARS = 400


def is_failed(message: Message) -> bool:
    """The tool result carries an error flag or a non-zero exit code, or, where it has neither, error words in its first
    or last lines (English or Chinese)."""
    result = message.result
    if result.is_error is not None:
        return result.is_error
    return _reads_as_failed(result.text)


def _judge(text: str) -> bool:
    edge = _edges(text)
    codes = [int(a or b) for a, b in _EXIT.findall(edge)]
    if codes:
        return any(code != 0 for code in codes)
    return _WORDS.search(edge) is not None


_reads_as_failed = ByText(_judge)


def _edges(text: str) -> str:
    if len(text) <= 2 * _LOOK_CHARS:
        lines = text.split("\n")
        return text if len(lines) <= 2 * _LOOK_LINES else "\n".join(lines[:_LOOK_LINES] + lines[-_LOOK_LINES:])
    head = "\n".join(text[:_LOOK_CHARS].split("\n")[:_LOOK_LINES])
    tail = "\n".join(text[-_LOOK_CHARS:].rstrip().split("\n")[-_LOOK_LINES:])
    return f"{head}\n{tail}"
