"""How messages become rows and rows become messages again, without losing anything.

A message that came over a wire is stored as its wire object, as JSON: parsing it again gives the same message.
Several messages of one wire object (tool results beside a text) share one body. Whatever parsing does not give back
exactly, and every message brim made itself, is stored as the message value. Lone surrogates, which no encoder and no
provider takes, become U+FFFD on the way in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from brim.conversation import Message
from brim.conversation.clean import clean_text, clean_value
from brim.errors import BrimError, StoreUnusable


class Body(NamedTuple):
    """The columns of one message row that hold the message itself."""

    role: str
    api: str
    piece: int | None
    body: str | None
    hash: str


def pack(messages: Sequence[Message]) -> list[Body]:
    """Rows for `messages`, in order."""
    rows: list[Body] = []
    start = 0
    while start < len(messages):
        first = messages[start]
        end = start + 1
        if first.wire is not None:
            while end < len(messages) and messages[end].wire is first.wire:
                end += 1
        rows += _pack_group(messages[start:end])
        start = end
    return rows


def _pack_group(group: Sequence[Message]) -> Iterable[Body]:
    first = group[0]
    if _wire_says_it_all(group):
        body = encode(first.wire)
        return [
            Body(each.role, first.api, piece, None if piece else body, digest(body, piece))
            for piece, each in enumerate(group)
        ]
    return [Body(each.role, each.api, None, text, digest(text, None)) for each in group for text in (encode(each),)]


def _wire_says_it_all(group: Sequence[Message]) -> bool:
    first = group[0]
    if first.wire is None or not first.api or any(each.edited for each in group):
        return False
    from brim.formats import parse_message

    try:
        return parse_message(first.wire, first.api) == list(group)
    except BrimError:
        return False


class Packed:
    """A body as it stands in the database; decoded when first asked for, once for all its messages."""

    __slots__ = ("_body", "_messages", "api", "piece", "where")

    def __init__(self, api: str, piece: int | None, body: str, where: str) -> None:
        self.api = api
        self.piece = piece
        self.where = where
        self._body = body
        self._messages: list[Message] | None = None

    @property
    def messages(self) -> list[Message]:
        """All messages of the body. Raises StoreUnusable, naming session and message, where it cannot be read."""
        if self._messages is None:
            try:
                self._messages = self._decode()
            except (msgspec.DecodeError, BrimError) as error:
                hint = "the rest of the session can be read"
                raise StoreUnusable(f"{self.where} cannot be read: {error}", hint=hint) from error
        return self._messages

    def message(self, piece: int | None) -> Message:
        found = self.messages
        if (piece or 0) >= len(found):
            raise StoreUnusable(f"{self.where} cannot be read: it holds {len(found)} messages, not {(piece or 0) + 1}")
        return found[piece or 0]

    def _decode(self) -> list[Message]:
        if self.piece is None:
            return [_decode_message(self._body)]
        from brim.formats import parse_message

        return parse_message(msgspec.json.decode(self._body), self.api)


_decode_message = msgspec.json.Decoder(Message).decode


def encode(value: Any) -> str:
    """JSON text of a value; lone surrogates in it become U+FFFD."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(clean_value(msgspec.to_builtins(value))[0]).decode()


def plain(text: str | None) -> str | None:
    """Text for a column of its own: no lone surrogates, and no NUL, which Postgres refuses."""
    return None if text is None else clean_text(text).replace("\0", "")


def digest(body: str, piece: int | None) -> str:
    """What a row's `hash` must be: 32 hex characters of sha256 over the body, and the piece of it that the row is."""
    made = hashlib.sha256(body.encode())
    if piece:
        made.update(b"\0%d" % piece)
    return made.hexdigest()[:32]
