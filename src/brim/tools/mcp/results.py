"""What a server answered, as an output like that of any other tool: bounded text, its original under a handle, images for
models that see them."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from brim.conversation import Media
from brim.errors import StoreError
from brim.tools.bounded import BoundedOutput, Limits
from brim.tools.context import ToolContext, ToolOutput

_SHOWN_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MOST_IMAGES = 8
_LONG = 100


def read_result(result: Any, ctx: ToolContext, *, server: str, tool: str, media_bytes: int) -> ToolOutput:
    """A `CallToolResult` as an output. What is no text is kept in the blob store, and named with its handle."""
    texts: list[str] = []
    media: list[Media] = []
    for block in result.content:
        if block.type == "text":
            texts.append(block.text)
        elif block.type == "image":
            texts.append(_image(block.data, block.mime_type, ctx, media, media_bytes))
        elif block.type == "audio":
            texts.append(_kept(block.data, f"audio {block.mime_type}", ctx)[0])
        elif block.type == "resource":
            texts.append(_resource(block.resource, ctx, media, media_bytes))
        elif block.type == "resource_link":
            about = f": {block.description}" if block.description else ""
            texts.append(f"[resource {block.uri}, {block.name}{about}]")
    structured = result.structured_content
    if structured is not None and not _says(texts, structured):
        known = _shown_strings(result.content)
        if not _only(structured, known):
            texts.append(json.dumps(_shortened(structured, known), ensure_ascii=False, indent=1))
    text = "\n".join(texts)
    if not text.strip():
        text = f"({tool} answered without any content)"
    bounded = BoundedOutput(
        Limits(ctx.caps.other), ctx.count, blobs=ctx.blobs, blob_bytes=ctx.caps.blob_bytes, collapse=False
    )
    bounded.feed(text.encode("utf-8", "replace"))
    done = bounded.finish()
    meta = {"server": server, "tool": tool, **done.facts()}
    return ToolOutput(done.text, bool(result.is_error), meta, done.handle, tuple(media))


def _says(texts: Sequence[str], structured: Any) -> bool:
    """Whether one of the texts is the structured value as JSON, which servers are told to send for older clients."""
    inner = structured["result"] if isinstance(structured, dict) and set(structured) == {"result"} else structured
    return any(_same(text, value) for text in texts for value in (structured, inner))


def _shown_strings(blocks: Sequence[Any]) -> set[str]:
    """Every string of the content: some servers send it all a second time as structured content."""
    found = {"text", "image", "audio", "resource", "resource_link"}
    for block in blocks:
        for part in (block, getattr(block, "resource", None)):
            for name in ("text", "data", "mime_type", "uri", "blob", "name", "description"):
                value = getattr(part, name, None)
                if value is not None:
                    found.add(str(value))
    return found


def _only(value: Any, known: set[str]) -> bool:
    """Whether a value is made of known strings alone."""
    if isinstance(value, dict):
        return all(_only(each, known) for each in value.values())
    if isinstance(value, list):
        return all(_only(each, known) for each in value)
    return isinstance(value, str) and value in known


def _shortened(value: Any, known: set[str]) -> Any:
    """The value with long strings that stand in the content already left out."""
    if isinstance(value, dict):
        return {key: _shortened(each, known) for key, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each, known) for each in value]
    return "(as above)" if isinstance(value, str) and len(value) > _LONG and value in known else value


def _same(text: str, value: Any) -> bool:
    if text == value:
        return True
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def _resource(resource: Any, ctx: ToolContext, media: list[Media], most: int) -> str:
    kind = resource.mime_type or ""
    named = f"resource {resource.uri}" + (f" ({kind})" if kind else "")
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return f"[{named}]\n{text}"
    if kind in _SHOWN_IMAGES:
        return f"[{named}] " + _image(resource.blob, kind, ctx, media, most)
    return _kept(resource.blob, named, ctx)[0]


def _image(data: str, kind: str, ctx: ToolContext, media: list[Media], most: int) -> str:
    said, size = _kept(data, f"image {kind}", ctx)
    if size is None:
        return said
    if not ctx.sees_images:
        return f"{said[:-1]}; this model cannot be shown images of tools]"
    if kind not in _SHOWN_IMAGES or size > most or len(media) >= _MOST_IMAGES:
        too = "too many" if kind in _SHOWN_IMAGES else "of a kind that models do not see"
        return f"{said[:-1]}; not shown: {'too large' if size > most else too}]"
    media.append(Media("image", kind, "base64", data))
    return said


def _kept(data: str, what: str, ctx: ToolContext) -> tuple[str, int | None]:
    """Base64 data put into the blob store: what to say of it, and its size in bytes; None where it is no base64."""
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        return f"[{what}: its data cannot be decoded: {error}]", None
    if len(raw) > ctx.caps.blob_bytes:
        return f"[{what}, {len(raw):,} bytes, too large to be kept]", len(raw)
    try:
        return f"[{what}, {len(raw):,} bytes, kept as {ctx.blobs.put(raw)}]", len(raw)
    except (StoreError, OSError) as error:
        return f"[{what}, {len(raw):,} bytes; it could not be kept: {str(error)[:200]}]", len(raw)
