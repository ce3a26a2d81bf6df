"""Content blocks that the APIs share: text, and media in any of the shapes clients really send.

Reading is lenient, since a chat body can carry Anthropic's image block, Gemini's `inlineData` or an MCP image: a
picture that is not recognised would be counted as a million characters of text. Writing is strict: each API gets its
own shape, and what it cannot take becomes a line of text that says what stood there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from brim.conversation import Media, Opaque, Part, Text, Thinking, ToolResult
from brim.errors import UsageError

TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
_DATA_URL = re.compile(r"data:([^,;]*)((?:;[^,;]*)*?)(;base64)?,", re.IGNORECASE)
_encode = msgspec.json.Encoder().encode


def wrong(where: str, expected: str, got: Any) -> UsageError:
    """The error for a value of the wrong type at `where` ("messages[3].content")."""
    name = {"NoneType": "null", "dict": "an object", "list": "a list", "str": "a string"}.get(
        type(got).__name__, type(got).__name__
    )
    return UsageError(
        f"{where}: expected {expected}, got {name}",
        hint="give the body as the provider takes it; `api` says which provider's it is read as",
    )


def json_text(value: Any, where: str) -> str:
    """`value` as compact JSON text. Raises UsageError where it is not JSON."""
    try:
        return _encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(f"{where}: not a JSON value ({error})") from None


def read_block(block: Any, where: str) -> Text | Media | Opaque | Thinking:
    """One content block of any API: text, thinking, media, or Opaque where brim does not know it."""
    if type(block) is str:
        return Text(block)
    if not isinstance(block, Mapping):
        raise wrong(where, "a content block", block)
    kind = block.get("type")
    if kind in TEXT_TYPES:
        text = block.get("text")
        if type(text) is not str:
            raise wrong(f"{where}.text", "a string", text)
        return Text(text, block)
    if kind == "thinking":
        inner = block.get("thinking")
        return Thinking(inner if type(inner) is str else _inner_text(inner), bool(block.get("signature")), block)
    if kind == "redacted_thinking":
        return Thinking("", bool(block.get("data")), block)
    return read_media(block) or Opaque(kind if type(kind) is str else "unknown", block)


def read_content(content: Any, where: str) -> tuple[Text | Media | Opaque | Thinking, ...]:
    """Message or result content: a string is one Text, null is nothing, a list is read block by block."""
    if type(content) is str:
        return (Text(content),)
    if content is None:
        return ()
    if isinstance(content, list | tuple):
        return tuple([read_block(block, f"{where}[{i}]") for i, block in enumerate(content)])
    raise wrong(where, "a string, a list of blocks or null", content)


def read_result_content(content: Any, where: str) -> tuple[Text | Media | Opaque, ...]:
    """Content of a tool result; thinking has no place there and stays opaque."""
    return tuple(
        [Opaque("thinking", part.wire) if type(part) is Thinking else part for part in read_content(content, where)]  # type: ignore[misc]  # only the kinds a result may hold
    )


def _inner_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "\n".join(b["text"] for b in value if isinstance(b, Mapping) and type(b.get("text")) is str)
    return ""


def _kind(media_type: str, fallback: Literal["image", "document", "audio"]) -> Literal["image", "document", "audio"]:
    head = media_type.partition("/")[0]
    return "image" if head == "image" else "audio" if head == "audio" else "document" if head else fallback


def read_media(block: Mapping[str, Any]) -> Media | None:
    """An image, document or audio block of the OpenAI, Anthropic, Gemini or MCP kind; None if it is none of these."""
    kind = block.get("type")
    if kind in ("image_url", "input_image", "video_url", "audio_url", "computer_screenshot"):
        inner: Any = block.get("image_url", block.get(str(kind)))
        detail = block.get("detail")
        if isinstance(inner, Mapping):
            detail, inner = inner.get("detail", detail), inner.get("url")
        fallback: Any = {"video_url": "document", "audio_url": "audio"}.get(str(kind), "image")
        return _located(inner, block.get("file_id"), fallback, detail if type(detail) is str else None, block)
    if kind == "input_audio":
        audio = block.get("input_audio")
        if isinstance(audio, Mapping) and type(audio.get("data")) is str:
            return Media("audio", f"audio/{audio.get('format') or 'wav'}", "base64", audio["data"], None, block)
        return None
    if kind in ("file", "input_file"):
        file = block.get("file") if kind == "file" else block
        if not isinstance(file, Mapping):
            return None
        return _located(
            file.get("file_data") or file.get("file_url"),
            file.get("file_id"),
            "document",
            None,
            block,
            "application/pdf",
        )
    if kind in ("image", "document", "audio"):
        return _sourced(kind, block)
    inline = block.get("inlineData", block.get("inline_data"))
    if isinstance(inline, Mapping) and type(inline.get("data")) is str:
        media_type = str(inline.get("mimeType") or inline.get("mime_type") or "")
        return Media(_kind(media_type, "image"), media_type, "base64", inline["data"], None, block)
    remote = block.get("fileData", block.get("file_data"))
    if isinstance(remote, Mapping) and type(uri := remote.get("fileUri", remote.get("file_uri"))) is str:
        media_type = str(remote.get("mimeType") or remote.get("mime_type") or "")
        return Media(_kind(media_type, "document"), media_type, "url", uri, None, block)
    return None


def _located(
    at: Any, file_id: Any, kind: Any, detail: str | None, block: Mapping[str, Any], media_type: str = ""
) -> Media | None:
    """Media given as a data URL, a URL, bare base64 or a file id."""
    if type(at) is str and at:
        if at[:5].lower() == "data:":
            if match := _DATA_URL.match(at):
                found = match[1] or media_type
                source: Literal["base64", "text"] = "base64" if match[3] else "text"
                return Media(_kind(found, kind), found, source, at[match.end() :], detail, block)
        elif "://" in at[:16]:
            return Media(kind, media_type, "url", at, detail, block)
        return Media(kind, media_type, "base64", at, detail, block)
    if type(file_id) is str and file_id:
        return Media(kind, media_type, "file", file_id, detail, block)
    return None


def _sourced(kind: Any, block: Mapping[str, Any]) -> Media | None:
    """Anthropic's `source`, or MCP's `data` with `mimeType`."""
    source = block.get("source")
    if not isinstance(source, Mapping):
        if type(data := block.get("data")) is str:
            media_type = str(block.get("mimeType") or block.get("media_type") or block.get("mime_type") or "")
            return Media(kind, media_type, "base64", data, None, block)
        return None
    media_type = str(source.get("media_type") or "")
    form = source.get("type")
    for key, name in (("data", "text" if form == "text" else "base64"), ("url", "url"), ("file_id", "file")):
        if type(value := source.get(key)) is str:
            return Media(kind, media_type, name, value, None, block)  # type: ignore[arg-type]  # kind was looked up above
    if form == "content":
        inner = source.get("content")
        if type(inner) is str:
            return Media(kind, "text/plain", "text", inner, None, block)
        if isinstance(inner, list) and all(isinstance(b, Mapping) and b.get("type") == "text" for b in inner):
            return Media(kind, "text/plain", "text", _inner_text(inner), None, block)
    return None


# Writing --------------------------------------------------------------------------------------------------------


def write_text(part: Text, kind: str, *, reuse: bool) -> Any:
    """The block of a Text: its own wire where that still says the same, a copy with the new text, or a new block."""
    wire = part.wire if reuse else None
    if isinstance(wire, Mapping):
        return wire if wire.get("text") == part.text else {**wire, "text": part.text}
    return {"type": kind, "text": part.text}


def data_url(media: Media) -> str:
    """The URL of base64 or remote media."""
    return media.data if media.source == "url" else f"data:{media.media_type or 'image/png'};base64,{media.data}"


def describe_media(media: Media) -> str:
    """One line of text for media that an API cannot take."""
    where = {
        "url": media.data,
        "file": f"file {media.data}",
        "text": "text",
        "base64": f"{len(media.data) * 3 // 4:,} bytes",
    }
    kind = f"{media.kind} {media.media_type}".strip()
    return f"[{kind}, {where[media.source]}: not available to this model]"


def same_blocks(parts: Sequence[Part], content: Any) -> bool:
    """Whether `parts` still are what the list or string `content` holds, so that it can be sent as it is."""
    if type(content) is str:
        return len(parts) == 1 and type(parts[0]) is Text and parts[0].text == content
    if content is None:
        return not parts
    if len(parts) != len(content):
        return False
    for part, block in zip(parts, content, strict=True):
        if type(part) is Text:
            if part.text != (block if type(block) is str else block.get("text")):
                return False
        elif part.wire is not block and part.wire != block:
            return False
    return True


def result_text(result: ToolResult) -> str:
    """The content of a result as one string, for APIs or fields that take nothing else."""
    if len(result.content) == 1 and type(result.content[0]) is Text:
        return result.content[0].text
    pieces: list[str] = []
    for part in result.content:
        if type(part) is Text:
            pieces.append(part.text)
        elif type(part) is Media:
            pieces.append(part.data if part.source == "text" else describe_media(part))
        elif type(part) is Opaque:
            pieces.append(json_text(part.wire, part.kind) if part.wire is not None else f"[{part.kind}]")
    return "\n".join(pieces)
