"""Media cost what the providers' formulas say, from the first bytes of the picture."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.conversation import Media
from brim.tokens.media import count_media, image_size, inline_base64, media_rates, media_text


def png(width: int, height: int) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk)) + b"\0" * 5_000


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0" * 100


def bmp(width: int, height: int) -> bytes:
    return b"BM" + b"\0" * 16 + struct.pack("<ii", width, -height) + b"\0" * 100


def jpeg(width: int, height: int, before: int = 0, marker: int = 0xC0) -> bytes:
    head = b"\xff\xd8"
    while before > 0:
        size = min(before, 65_000)
        head += b"\xff\xe1" + struct.pack(">H", size + 2) + b"\xff\xc0" * (size // 2) + b"\0" * (size % 2)
        before -= size
    return head + b"\xff" + bytes([marker]) + struct.pack(">HBHH", 17, 8, height, width) + b"\0" * 100


def webp(kind: bytes, width: int, height: int) -> bytes:
    if kind == b"VP8X":
        body = b"\0" * 4 + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    elif kind == b"VP8L":
        body = b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little")
    else:
        body = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    return b"RIFF\0\0\0\0WEBP" + kind + struct.pack("<I", len(body)) + body + b"\0" * 40


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def image(data: bytes, detail: str | None = None) -> Media:
    return Media("image", "image/png", "base64", encoded(data), detail)


@pytest.mark.parametrize(
    "data",
    [
        png(1_024, 768), gif(1_024, 768), bmp(1_024, 768), jpeg(1_024, 768), jpeg(1_024, 768, before=40_000),
        jpeg(1_024, 768, before=200_000, marker=0xC2), webp(b"VP8X", 1_024, 768), webp(b"VP8L", 1_024, 768),
        webp(b"VP8 ", 1_024, 768),
    ],
    ids=["png", "gif", "bmp", "jpeg", "jpeg+exif", "progressive", "webp", "webp lossless", "webp lossy"],
)  # fmt: skip
def test_sizes_are_read_from_the_first_bytes(data: bytes) -> None:
    """Width and height of the common formats, previews and profiles before the frame header notwithstanding."""
    assert image_size(encoded(data)) == (1_024, 768)


@given(st.binary(max_size=300), st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"RIFF", b"GIF89a", b"BM"]))
def test_broken_pictures_have_no_size_and_a_cost(rest: bytes, head: bytes) -> None:
    """Whatever the bytes, counting gives a number above 0 and no error."""
    for model in ("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "gpt-5-mini", "qwen3-vl-plus", None):
        assert count_media(image(head + rest), media_rates(model)) > 0
    assert count_media(Media("image", "", "base64", "not base64! \ud83d"), media_rates(None)) > 0


@pytest.mark.parametrize(
    ("model", "size", "detail", "tokens"),
    [
        ("gpt-4o", (1_024, 1_024), None, 765),  # OpenAI's own examples
        ("gpt-4o", (2_048, 4_096), "high", 1_105),
        ("gpt-4o", (4_096, 8_192), "low", 85),
        ("gpt-4.1", (2_050, 513), None, 765),
        ("gpt-4o-mini", (512, 512), "low", 2_833),
        ("gpt-5", (512, 512), "high", 210),
        ("o1", (512, 512), "high", 225),
        ("gpt-4.1-mini", (1_024, 1_024), None, 1_659),
        ("gpt-4.1-mini", (4_000, 1_474), None, 2_489),  # 1,536 patches at most
        ("o4-mini", (1_024, 1_024), None, 1_762),
        ("claude-sonnet-4-5", (1_000, 1_000), None, 1_334),  # Anthropic's examples
        ("claude-sonnet-4-5", (200, 200), None, 54),
        ("claude-sonnet-4-5", (8_000, 8_000), None, 1_600),
        ("gemini-2.5-flash", (384, 384), None, 258),
        ("gemini-2.5-flash", (768, 768), None, 1_032),
        ("gemini-3-pro-preview", (3_000, 2_000), None, 1_120),
        ("some-model", (1_000, 1_000), None, 1_334),
    ],
)
def test_pictures_cost_what_the_provider_says(
    model: str, size: tuple[int, int], detail: str | None, tokens: int
) -> None:
    """Tiles, patches, area: each family of models by its published formula."""
    assert count_media(image(png(*size), detail), media_rates(model)) == tokens


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "gemini-3-pro-preview", "llama-4", None])
def test_pictures_of_unknown_size_cost_a_plausible_number(model: str | None) -> None:
    """A URL, a file id and unreadable bytes get a default between 900 and 2,000 tokens."""
    for part in (
        Media("image", "image/png", "url", "https://example.org/cat.png"),
        Media("image", "", "file", "file-abc"),
        Media("image", "image/png", "base64", encoded(bytes(range(256)) * 50)),
    ):
        assert 900 <= count_media(part, media_rates(model)) <= 2_000


def test_documents_and_sound_cost_by_their_size() -> None:
    """A PDF costs by pages reckoned from its bytes, sound by its seconds; neither by the text of its base64."""
    rates = media_rates("claude-sonnet-4-5")
    small = Media("document", "application/pdf", "base64", encoded(b"%PDF-1.7" + b"\0" * 1_000))
    large = Media("document", "application/pdf", "base64", encoded(b"%PDF-1.7" + b"\0" * 600_000))
    assert count_media(small, rates) == 3_000
    assert count_media(large, rates) == 11 * 3_000
    assert count_media(Media("document", "application/pdf", "file", "file-1"), rates) == 3_000
    minute = Media("audio", "audio/wav", "base64", encoded(b"RIFF" + b"\0" * (48_000 * 60 - 4)))
    assert 1_900 <= count_media(minute, media_rates("gemini-2.5-flash")) <= 1_930


def test_data_urls_are_taken_apart() -> None:
    """A data URL counts by what stands behind its comma, in parts marked as URLs, too."""
    url = "data:image/png;base64," + encoded(png(1_024, 1_024))
    assert count_media(Media("image", "image/png", "url", url), media_rates("gpt-4o")) == 765
    assert inline_base64(Media("image", "image/png", "url", "https://x/y")) is None
    assert inline_base64(Media("image", "image/png", "url", "data:")) is None
    assert media_text(Media("document", "text/plain", "text", "words")) == "words"
    assert media_text(Media("document", "application/pdf", "base64", "JVBERi0=")) is None
