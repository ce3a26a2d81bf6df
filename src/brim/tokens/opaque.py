"""What stands inside a block brim does not know: text to count, pictures in disguise, encrypted matter.

An unknown block is counted by its JSON text; but pictures reach us in shapes no table lists, and megabytes of base64
must not be counted as words. So long base64 inside an unknown block is taken out and priced as what it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from brim.conversation import Media, Thinking

_LONG = 1_000
"""Characters from which a string that looks like base64 is taken for binary data."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_=\r\n-]{1000}")
_SEALED = frozenset({"encrypted_content", "signature", "thoughtSignature", "thought_signature"})
_DEEPEST = 40


def opaque_parts(wire: Any) -> tuple[str, list[Media], int]:
    """The JSON text of a block without its binary data, that data as media, and the tokens of what is encrypted."""
    found = _Found()
    plain = found.walk(wire, "", 0)
    return json_text(plain), found.media, found.tokens


def json_text(value: Any) -> str:
    """A value as compact JSON; what JSON cannot say, as Python would show it."""
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except (TypeError, ValueError, RecursionError):  # ValueError: also a lone surrogate
        pass
    try:
        return str(value)
    except RecursionError:
        return "(nested too deep)"


class _Found:
    def __init__(self) -> None:
        self.media: list[Media] = []
        self.tokens = 0

    def walk(self, value: Any, media_type: str, depth: int) -> Any:
        if isinstance(value, str):
            return self._take(value, media_type)
        if depth > _DEEPEST:
            return json_text(value)
        if isinstance(value, Mapping):
            for key in ("media_type", "mimeType", "mime_type", "type", "format"):
                if isinstance(value.get(key), str):
                    media_type = value[key]
                    break
            sealed = "redacted" in str(value.get("type", ""))
            return {
                str(key): self._seal(item)
                if isinstance(item, str) and (key in _SEALED or (sealed and key == "data"))
                else self.walk(item, media_type, depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.walk(item, media_type, depth + 1) for item in value]
        return value

    def _take(self, text: str, media_type: str) -> str:
        is_url = text.startswith("data:") and "," in text[:200]
        if not is_url and (len(text) < _LONG or not _BASE64.match(text)):
            return text
        kind = text[5:200].partition(";")[0] if is_url else media_type
        if "pdf" in kind or "document" in kind:
            self.media.append(Media("document", kind, "base64", text))
        elif "audio" in kind or kind in ("wav", "mp3"):
            self.media.append(Media("audio", kind, "base64", text))
        else:
            self.media.append(Media("image", kind, "base64", text))
        return ""

    def _seal(self, text: str) -> str:
        self.tokens += _sealed(text)
        return ""


def sealed_tokens(part: Thinking) -> int:
    """Tokens of thinking that is there in encrypted form only, or whose encrypted form is what counts; 0 for text.

    Responses items carry a summary for people beside the encrypted whole; Claude may leave the text out and keep all of
    it in the signature.
    """
    wire = part.wire
    if not isinstance(wire, Mapping):
        return 0
    whole = wire.get("encrypted_content")
    if not isinstance(whole, str) and not part.text:
        whole = wire.get("data") or wire.get("signature")
    return _sealed(whole) if isinstance(whole, str) and whole else 0


def _sealed(text: str) -> int:
    """Bytes are 3/4 of the base64, about 650 of them envelope, about 4 to a token."""
    return max(1, (len(text) * 3 // 4 - 650) // 4)
