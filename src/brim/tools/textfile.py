"""A text file as it is on disk, for changing it: its bytes, its encoding, its line ends.

Text comes out with every byte of the file accounted for, so that what is not changed goes back exactly as it was.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from brim.errors import ToolError
from brim.tools.context import ToolContext
from brim.tools.encodings import SAMPLE, Encoding, detect, first_wide
from brim.tools.filestate import refuse_changed, stamp_of
from brim.tools.paths import open_regular


class TextFile(msgspec.Struct, frozen=True):
    """`raw` are the bytes on disk; `text` is all of them but the byte order mark, line ends as they are.

    Of a file whose lines all end in CR alone (`only_returns`, an old Mac's) the text has LF in their place.
    """

    raw: bytes
    text: str
    encoding: Encoding
    only_returns: bool = False
    seen: tuple[int, int, int] | None = None
    """What the file was like when it was loaded, as `stamp_of` says it."""

    def encode(self, text: str, shown: str) -> bytes:
        """`text` as bytes of this file. Raises ToolError for a character that its encoding does not have."""
        if self.only_returns:
            text = with_newlines(text, "\r")
        try:
            return self.encoding.bom + text.encode(self.encoding.name, _errors(self.encoding))
        except UnicodeEncodeError as error:
            raise ToolError(
                f"{shown} is {self.encoding.told}, which has no {error.object[error.start]!r}; nothing was written",
                hint="use characters of that encoding, or convert the file to UTF-8 first (iconv)",
            ) from None

    @property
    def newline(self) -> str:
        """The line end that most lines have."""
        pairs = self.text.count("\r\n")
        return "\r\n" if pairs > self.text.count("\n") - pairs else "\n"

    @property
    def all_crlf(self) -> bool:
        pairs = self.text.count("\r\n")
        return pairs > 0 and pairs == self.text.count("\n")


def _errors(encoding: Encoding) -> str:
    # Bytes that are no UTF-8 survive as lone surrogates, and so go back as they came.
    return "surrogateescape" if encoding.name == "utf-8" else "strict"


def load_text(ctx: ToolContext, path: Path, shown: str) -> TextFile:
    """The file as text. Raises ToolError where it is special, too large, no text, or not what it was when it was read."""
    fd = open_regular(path, shown, ctx.workspace, ctx.granted)
    try:
        refuse_changed(ctx, path, shown, fd)
        seen = stamp_of(os.fstat(fd))
        size = os.fstat(fd).st_size
        if size > ctx.caps.edit_bytes:
            raise ToolError(
                f"{shown} is {size} bytes; at most {ctx.caps.edit_bytes} are changed here",
                hint="use bash, for example sed -i",
            )
        pieces = []
        while piece := os.read(fd, 1024 * 1024):
            pieces.append(piece)
        raw = b"".join(pieces)
    finally:
        os.close(fd)
    encoding = detect(raw[:SAMPLE], all_of_it=len(raw) <= SAMPLE)
    if isinstance(encoding, str):
        raise ToolError(f"{shown} is {encoding}, not a text file; nothing was written")
    if encoding == Encoding("utf-8") and len(raw) > SAMPLE and raw[:SAMPLE].isascii():
        start = first_wide(raw)
        later = detect(raw[start : start + SAMPLE], all_of_it=len(raw) <= start + SAMPLE)
        encoding = later if isinstance(later, Encoding) else encoding
    text = _decoded(raw, encoding)
    if text is None:
        encoding = Encoding("latin-1")
        text = raw.decode("latin-1")
    if "\r" in text and "\n" not in text:
        return TextFile(raw, text.replace("\r", "\n"), encoding, only_returns=True, seen=seen)
    return TextFile(raw, text, encoding, seen=seen)


def _decoded(raw: bytes, encoding: Encoding) -> str | None:
    """The text, None where these very bytes would not come back from it."""
    try:
        text = raw[len(encoding.bom) :].decode(encoding.name, _errors(encoding))
        exact = encoding.name.startswith("utf-") or text.encode(encoding.name) == raw
    except UnicodeError:
        return None
    return text if exact else None


_LINE_END = re.compile(r"\r\n|\n")


def with_newlines(text: str, newline: str) -> str:
    """`text` with every LF and CR LF as `newline`; a lone CR is data."""
    return _LINE_END.sub(newline, text)


def common_prefix(one: str, other: str) -> int:
    """Length of the longest common prefix."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
