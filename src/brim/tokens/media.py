"""Tokens of images, documents and audio by the providers' published formulas; never by the text of their base64.

Sizes come from the first bytes of a picture (PNG, JPEG, GIF, WebP, BMP): only so much of the base64 is decoded. Where
size or length cannot be told (a URL, a file id, an unknown format), a documented default stands in.

Sources, as of 2026: OpenAI's "Images and vision" guide (512-pixel tiles; 32-pixel patches with a multiplier by model),
Anthropic's "Vision" guide (width x height / 750 after scaling to its limit), Google's "Understand and count tokens"
(258 a tile; 1,120 a picture from Gemini 3 on; 32 a second of audio), Qwen-VL (28-pixel patches).
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from brim.conversation import Media
from brim.tokens.encodings import bare_name

Size: TypeAlias = tuple[int, int]
"""Width and height in pixels."""


class MediaRates(msgspec.Struct, frozen=True):
    """What media cost one kind of model, in tokens.

    `image`: from the size in pixels and the `detail` asked for; `unknown_image`: where the size is not known;
    `page`: one page of a PDF, its text and its picture; `second`: one second of audio.
    """

    image: Callable[[Size, str | None], int]
    unknown_image: int
    page: int
    second: float


def count_media(part: Media, rates: MediaRates) -> int:
    """Tokens of one image, document or audio part that is not plain text."""
    data = inline_base64(part)
    if part.kind == "image":
        if part.detail == "low":
            return rates.image((512, 512), "low")
        size = image_size(data) if data is not None else None
        return rates.image(size, part.detail) if size else rates.unknown_image
    size_bytes = len(data) * 3 // 4 if data is not None else None
    if part.kind == "audio":
        return max(1, math.ceil(_seconds(size_bytes, part.media_type) * rates.second))
    return _pages(size_bytes) * rates.page


def media_text(part: Media) -> str | None:
    """The text of a document that is text, plain or in base64; None for anything else."""
    if part.source == "text":
        return part.data
    data = inline_base64(part)
    if data is None or part.kind != "document" or not re.match(r"text/|application/(json|xml)", part.media_type):
        return None
    try:
        return base64.b64decode(data, validate=False).decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return None


def inline_base64(part: Media) -> str | None:
    """The base64 characters of a part that carries its bytes, with the head of a data URL taken off; else None."""
    data = part.data
    if data.startswith("data:"):
        head, comma, rest = data[:200].partition(",")
        if not comma:
            return None
        return data[len(head) + 1 :] if "base64" in head else rest
    return data if part.source == "base64" else None


def image_size(data: str) -> Size | None:
    """Width and height from base64 of a picture, decoding its first bytes only; None if it is no known picture."""
    head = _decode(data, 96)
    size = _png(head) or _gif(head) or _webp(head) or _bmp(head)
    if size is None and head[:2] == b"\xff\xd8":
        # A camera's preview and colour profile can stand before the frame header of a JPEG.
        size = _jpeg(_decode(data, 8_192)) or _jpeg(_decode(data, 524_288))
    return size if size and 0 < size[0] <= 1_000_000 and 0 < size[1] <= 1_000_000 else None


def _decode(data: str, count: int) -> bytes:
    piece = data[: count * 4 // 3 // 4 * 4 + 4]
    try:
        return base64.b64decode(piece + "=" * (-len(piece) % 4), validate=False)
    except (ValueError, binascii.Error):
        return b""


def _png(head: bytes) -> Size | None:
    if head[:8] == b"\x89PNG\r\n\x1a\n" and head[12:16] == b"IHDR" and len(head) >= 24:
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    return None


def _gif(head: bytes) -> Size | None:
    if head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10:
        return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
    return None


def _bmp(head: bytes) -> Size | None:
    if head[:2] == b"BM" and len(head) >= 26:
        width, height = (int.from_bytes(head[at : at + 4], "little", signed=True) for at in (18, 22))
        return abs(width), abs(height)
    return None


def _webp(head: bytes) -> Size | None:
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP" or len(head) < 30:
        return None
    kind = head[12:16]
    if kind == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
    return None


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def _jpeg(data: bytes) -> Size | None:
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF or marker == 0x01 or 0xD0 <= marker <= 0xD8:  # padding, or a marker without a length
            at += 1 if marker == 0xFF else 2
            continue
        if marker in _FRAMES:
            return int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")
        at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return None


_PAGE_BYTES = 60_000
"""A page of a PDF with text and a figure now and then; scans are larger and so overestimated."""


def _pages(size: int | None) -> int:
    return 1 if size is None else min(100, max(1, math.ceil(size / _PAGE_BYTES)))


def _seconds(size: int | None, media_type: str) -> float:
    if size is None:
        return 30
    return size / (48_000 if "wav" in media_type or "pcm" in media_type else 16_000)  # 24 kHz of 16 bits; 128 kbit/s


# The formulas. Each takes the size in pixels and the detail asked for.


def _tiles(base: int, tile: int) -> Callable[[Size, str | None], int]:
    """OpenAI: fit into 2,048 x 2,048, then the shorter side to 768; so much for each 512-pixel tile and a base."""

    def count(size: Size, detail: str | None) -> int:
        if detail == "low":
            return base
        scale = min(1.0, 2_048 / max(size))
        width, height = size[0] * scale, size[1] * scale
        scale = min(1.0, 768 / min(width, height))
        return base + tile * math.ceil(round(width * scale) / 512) * math.ceil(round(height * scale) / 512)

    return count


def _patches(multiplier: float, limit: int = 1_536, side: int = 32) -> Callable[[Size, str | None], int]:
    """OpenAI's newer models: patches of 32 pixels, scaled down to at most `limit` of them, times the multiplier."""

    def count(size: Size, detail: str | None) -> int:
        most = 256 if detail == "low" else limit
        patches = min(most, math.ceil(size[0] / side) * math.ceil(size[1] / side))
        return math.ceil(patches * multiplier)

    return count


def _area(long_edge: int, most: int) -> Callable[[Size, str | None], int]:
    """Anthropic: scaled down to its longest edge, then one token for 750 pixels, up to a limit."""

    def count(size: Size, detail: str | None) -> int:
        scale = min(1.0, long_edge / max(size))
        return min(most, max(1, math.ceil(size[0] * scale * size[1] * scale / 750)))

    return count


def _gemini_tiles(size: Size, detail: str | None) -> int:
    """Gemini 2: 258 up to 384 x 384, else 258 a tile; a tile is 256 to 768 pixels, the shorter side / 1.5."""
    if max(size) <= 384:
        return 258
    tile = min(768, max(256, int(min(size) / 1.5)))
    return 258 * math.ceil(size[0] / tile) * math.ceil(size[1] / tile)


def _flat(tokens: int, low: int) -> Callable[[Size, str | None], int]:
    return lambda size, detail: low if detail == "low" else tokens


_PATCH_28 = _patches(1.0, limit=16_384, side=28)

_RATES: tuple[tuple[re.Pattern[str], MediaRates], ...] = tuple(
    (re.compile(pattern), rates)
    for pattern, rates in (
        (r"claude-(opus-4-[7-9]|(opus|sonnet)-[5-9])", MediaRates(_area(2_576, 4_784), 1_600, 3_000, 25)),
        (r"claude", MediaRates(_area(1_568, 1_600), 1_600, 3_000, 25)),
        (r"gemini-([3-9]|flash-latest|pro-latest)", MediaRates(_flat(1_120, 280), 1_120, 560, 32)),
        (r"gemini|gemma", MediaRates(_gemini_tiles, 1_032, 258, 32)),
        (r"^gpt-4o-mini", MediaRates(_tiles(2_833, 5_667), 25_501, 26_000, 10)),
        (r"^(gpt-4\.1-mini|gpt-5-mini)", MediaRates(_patches(1.62), 1_600, 2_500, 10)),
        (r"^(gpt-4\.1-nano|gpt-5-nano)", MediaRates(_patches(2.46), 1_600, 2_500, 10)),
        (r"^o4-mini", MediaRates(_patches(1.72), 1_600, 2_500, 10)),
        (r"^gpt-5\.[1-3]", MediaRates(_patches(1.2), 1_600, 2_500, 10)),
        (r"^gpt-(5\.[4-9]|[6-9])", MediaRates(_patches(1.2, limit=2_500), 1_600, 2_500, 10)),
        (r"^gpt-5|^chat-?gpt-5", MediaRates(_tiles(70, 140), 910, 2_000, 10)),
        (r"^o[1-9]", MediaRates(_tiles(75, 150), 975, 2_000, 10)),
        (r"^(gpt|chatgpt)", MediaRates(_tiles(85, 170), 1_105, 2_000, 10)),
        (r"^(qwen|qvq)", MediaRates(_PATCH_28, 1_280, 2_000, 25)),
    )
)  # fmt: skip
_OTHER = MediaRates(_area(1_568, 1_600), 1_600, 2_500, 25)


def media_rates(model: str | None) -> MediaRates:
    """What media cost a model; for an unknown one Anthropic's formula, whose defaults are the highest of the common."""
    name = bare_name(model)
    return next((rates for pattern, rates in _RATES if pattern.search(name)), _OTHER)
