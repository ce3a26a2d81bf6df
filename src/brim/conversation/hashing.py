"""Content hashes: the handle of an original, and the canonical digest that links messages into a chain.

The canonical form leaves out what clients change without meaning to: ids, cache markers, key order, and whether text
came as a bare string or as a text block.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b, sha256

import msgspec

from brim.conversation.messages import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult

HANDLE_LENGTH = 12
"""Hex digits shown to a model: 48 bits, so that a million originals collide with a chance of about 1 in 500."""

_sorted_json = msgspec.json.Encoder(order="deterministic")


def handle_of(message: Message) -> str:
    """The handle of a message's original: the sha256 of its text (UTF-8), 12 hex digits, as a blob store would name it.

    A message without text (calls alone, images) is named by its canonical digest.
    """
    text = message.text
    return handle_of_text(text) if text else digest_of(message).hex()[:HANDLE_LENGTH]


def handle_of_text(text: str) -> str:
    """The sha256 of the UTF-8 text, 12 hex digits."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HANDLE_LENGTH]


def range_handle(messages: Sequence[Message], start: int, end: int) -> str:
    """The handle of the run `[start, end)`: `first-last.hash`, found again by place and checked by content at both ends."""
    run = blake2b(digest_size=5)
    run.update(digest_of(messages[start]))
    run.update(digest_of(messages[end - 1]))
    return f"{start}-{end - 1}.{run.hexdigest()}"


def digest_of(message: Message) -> bytes:
    """The canonical digest of one message, 16 bytes."""
    parts = message.parts
    if len(parts) == 1:
        only = parts[0]
        if type(only) is Text:
            return blake2b(f"{message.role}\0{only.text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if type(only) is ToolResult and len(only.content) == 1 and type(only.content[0]) is Text:
            text = f"tool\0\1{only.content[0].text}"
            return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    run = blake2b(message.role.encode(), digest_size=16)
    for part in parts:
        _feed(run, part)
    return run.digest()


def chain(before: bytes, message: Message) -> bytes:
    """`H(before, message)`: the hash of a history that ends with this message."""
    return blake2b(before + digest_of(message), digest_size=16).digest()


def _feed(run: blake2b, part: object) -> None:
    if isinstance(part, Text):
        run.update(b"\0" + part.text.encode("utf-8", "surrogatepass"))
    elif isinstance(part, ToolResult):
        run.update(b"\1")
        for inner in part.content:
            _feed(run, inner)
    elif isinstance(part, ToolCall):
        run.update(b"\2" + part.name.encode("utf-8", "surrogatepass") + b"\0")
        run.update(part.arguments.encode("utf-8", "surrogatepass"))
    elif isinstance(part, Media):
        run.update(b"\3" + part.kind.encode() + part.data.encode("utf-8", "surrogatepass"))
    elif isinstance(part, Thinking):
        run.update(b"\4" + part.text.encode("utf-8", "surrogatepass"))
    elif isinstance(part, Opaque):
        run.update(b"\5" + _opaque(part))


def _opaque(part: Opaque) -> bytes:
    if isinstance(part.wire, dict):
        return _sorted_json.encode({k: v for k, v in part.wire.items() if k not in ("id", "cache_control")})
    return _sorted_json.encode(part.wire)
