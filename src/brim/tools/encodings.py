"""What kind of text a file holds, from its first bytes; and what it is, where it is no text."""

from __future__ import annotations

import codecs

import msgspec

from brim.tools.legacy import TOLD, legacy_encoding

SAMPLE = 64 * 1024

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"BM", "a BMP image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"\0\0\1\0", "an icon image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\3\4", "a ZIP archive (or an Office document, jar or wheel)"),
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\xfd7zXZ\0", "xz-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\7", "a RAR archive"),
    (b"\x7fELF", "an ELF executable or library"),
    (b"\xca\xfe\xba\xbe", "a Java class or Mach-O file"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O executable"),
    (b"MZ", "a Windows executable"),
    (b"\0asm", "a WebAssembly module"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"OggS", "an Ogg audio or video file"),
    (b"ID3", "an MP3 audio file"),
    (b"fLaC", "a FLAC audio file"),
    (b"wOF2", "a WOFF2 font"),
    (b"wOFF", "a WOFF font"),
    (b"GGUF", "a GGUF model"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document"),
)
# Short magics that plain text can begin with need a sign that this is none.
_ALSO_TEXT = (b"BM", b"MZ", b"BZh", b"ID3", b"GGUF", b"OggS", b"PK\3\4")

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r\f\v\x1b\b") + b"\x7f"


class Encoding(msgspec.Struct, frozen=True):
    """A Python codec name and the byte order mark that stands before the text ("" bytes: none)."""

    name: str
    bom: bytes = b""

    @property
    def told(self) -> str:
        """For people: "UTF-16", "UTF-8 with BOM" and so on."""
        plain = {"utf-16-le": "UTF-16 (LE)", "utf-16-be": "UTF-16 (BE)", "cp1252": "Windows-1252 (Latin-1)"} | TOLD
        name = plain.get(self.name, self.name.upper())
        return f"{name} with BOM" if self.bom and self.name == "utf-8" else name


def detect(sample: bytes, *, all_of_it: bool) -> Encoding | str:
    """The encoding of a text, from its first bytes (up to `SAMPLE`), or what the file is where it is no text."""
    for bom, name in _BOMS:
        if sample.startswith(bom):
            return Encoding(name, bom)
    valid = _is_utf8(sample, all_of_it)
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    for magic, told in _MAGIC:
        if sample.startswith(magic) and (magic not in _ALSO_TEXT or not valid or controls):
            return told
    if sample[:4] == b"RIFF" and sample[8:12] in (b"WEBP", b"WAVE", b"AVI "):
        return {b"WEBP": "a WebP image", b"WAVE": "a WAV audio file", b"AVI ": "an AVI video"}[sample[8:12]]
    if sample[4:8] == b"ftyp":
        return "an MP4, HEIC or AVIF file"
    if valid and controls <= len(sample) * 0.3:
        wide = _utf16_without_bom(sample)
        return Encoding(wide) if wide else Encoding("utf-8")
    wide = _utf16_without_bom(sample)
    if wide:
        return Encoding(wide)
    if valid or 0 in sample or controls > len(sample) * 0.02:
        return "a binary file"
    if is_mostly_utf8(sample):
        return Encoding("utf-8")
    if legacy := legacy_encoding(sample):
        return Encoding(legacy)
    return Encoding("cp1252" if _is_cp1252(sample) else "latin-1")


def first_wide(data: bytes) -> int:
    """Where the first byte beyond ASCII stands, or the length."""
    at = 0
    while at < len(data) and data[at : at + SAMPLE].isascii():
        at += SAMPLE
    return next((at + place for place, byte in enumerate(data[at : at + SAMPLE]) if byte > 0x7F), len(data))


def is_mostly_utf8(sample: bytes) -> bool:
    """Whether the wide characters that are valid UTF-8 are many more than the bytes that are not: text with an accident."""
    text = sample.decode("utf-8", "replace")
    strays = text.count("\ufffd") - sample.count(b"\xef\xbf\xbd")
    wide = sum(char > "\x7f" for char in text) - text.count("\ufffd")
    return wide > 4 * strays


def _is_utf8(sample: bytes, all_of_it: bool) -> bool:
    try:
        codecs.utf_8_decode(sample, "strict", all_of_it)
    except UnicodeDecodeError:
        return False
    return True


def _is_cp1252(sample: bytes) -> bool:
    try:
        sample.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return True


def _utf16_without_bom(sample: bytes) -> str | None:
    """UTF-16 text has a NUL in nearly every second byte where its letters are Latin."""
    pairs = len(sample) // 2
    if pairs < 2:
        return None
    even, odd = sample[0 : pairs * 2 : 2].count(0), sample[1 : pairs * 2 : 2].count(0)
    if odd > pairs * 0.6 and even < pairs * 0.05:
        return "utf-16-le"
    if even > pairs * 0.6 and odd < pairs * 0.05:
        return "utf-16-be"
    return None
