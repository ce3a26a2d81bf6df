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
        texts.append(json.dumps(structured, ensure_ascii=False, indent=1))
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
    """Whether the texts hold the structured value already, as servers are told to for older clients."""
    plain = structured["result"] if isinstance(structured, dict) and set(structured) == {"result"} else None
    if isinstance(plain, str) and plain in texts:
        return True
    values = [structured] if plain is None else [structured, plain]
    if (
        isinstance(plain, list)
        and len(plain) == len(texts)
        and all(_same(text, each) for text, each in zip(texts, plain, strict=True))
    ):
        return True
    return any(_same(text, value) for text in texts for value in values)


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
