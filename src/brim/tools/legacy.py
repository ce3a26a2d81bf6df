"""Which of the older multi-byte encodings of Chinese, Japanese and Korean a text is in, from its bytes alone.

Each of them takes nearly any bytes, so a strict decoding proves little; what tells them apart is which characters come
out. Common hanzi lead with B0-D7 in GB 2312, common ones of Big5 with A4-C6, Korean text is nearly all Hangul
(B0-C8), and no Japanese is written without kana.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter

TOLD = {
    "gb18030": "GB18030 (GBK)",
    "big5": "Big5",
    "cp932": "Shift-JIS (CP932)",
    "euc_jp": "EUC-JP",
    "euc_kr": "EUC-KR",
}

# As ripgrep calls them, by what a pattern holds: where else to look for it once no UTF-8 file has it.
_ELSEWHERE = (
    (re.compile("[\u3041-\u30fe]"), ("shift_jis", "euc-jp")),
    (re.compile("[\uac00-\ud7a3]"), ("euc-kr",)),
    (re.compile("[\u3000-\u9fff\uff00-\uffef]"), ("gb18030", "big5")),
    (re.compile("[\xa1-\xff\u2010-\u20ac]"), ("windows-1252",)),
)

_RUNS = re.compile(rb"[\x80-\xff]+")
_BIG5 = re.compile(rb"([\xa1-\xf9])([\x40-\x7e\xa1-\xfe])")
# Fewer wide characters than this tell nothing.
_FEWEST = 3


def legacy_encoding(sample: bytes) -> str | None:
    """The codec's name, None where it is none of them (or too little to tell). The sample may end inside a character."""
    runs = _RUNS.findall(sample)
    high = sum(map(len, runs))
    if high < 2 * _FEWEST:
        return None
    pairs = [run for run in runs if len(run) % 2 == 0 and min(run) >= 0xA1]
    if sum(map(len, pairs)) >= 0.9 * high and (found := _euc(sample, pairs)):
        return found
    if _is_big5(sample):
        return "big5"
    if _kana(_decoded(sample, "cp932"), 0.25):
        return "cp932"
    hanzi = [char for char in _decoded(sample, "gb18030") if char > "\x7f"]
    if len(hanzi) >= _FEWEST and sum(map(_is_common_hanzi, hanzi)) >= 0.5 * len(hanzi):
        return "gb18030"
    return None


def encodings_elsewhere(pattern: str) -> tuple[str, ...]:
    """Encodings (ripgrep's names) in which files may hold what a pattern looks for; none for plain ASCII."""
    return next((names for letters, names in _ELSEWHERE if letters.search(pattern)), ())


def _euc(sample: bytes, runs: list[bytes]) -> str | None:
    leads = Counter(lead for run in runs for lead in run[::2])
    total = sum(leads.values())
    words = sum(count for lead, count in leads.items() if 0xB0 <= lead <= 0xF7)
    beyond_hangul = sum(count for lead, count in leads.items() if 0xC9 <= lead <= 0xFD)
    if leads[0xA4] + leads[0xA5] >= 0.25 * total:
        name = "euc_jp"
    elif words < 0.5 * total:
        return None
    elif len({run[at : at + 2] for run in runs for at in range(0, len(run), 2)}) >= 8 and beyond_hangul <= 0.05 * words:
        name = "euc_kr"
    elif sum(count for lead, count in leads.items() if 0xB0 <= lead <= 0xD7) >= 0.7 * words:
        name = "gb18030"
    else:
        return None
    return name if _decoded(sample, name) else None


def _is_big5(sample: bytes) -> bool:
    text = _decoded(sample, "big5")
    if sum(char > "\x7f" for char in text) < _FEWEST:
        return False
    found = _BIG5.findall(sample)
    common = sum(b"\xa4" <= lead <= b"\xc6" or lead == b"\xa1" for lead, _ in found)
    low = sum(trail < b"\x7f" for _, trail in found)
    return bool(found) and common >= 0.8 * len(found) and low >= 0.15 * len(found)


def _kana(text: str, share: float) -> bool:
    wide = [char for char in text if char > "\x7f"]
    return len(wide) >= _FEWEST and sum("\u3041" <= char <= "\u30fe" for char in wide) >= share * len(wide)


def _is_common_hanzi(char: str) -> bool:
    try:
        data = char.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return 0xB0 <= data[0] <= 0xD7 or 0xA1 <= data[0] <= 0xA3


def _decoded(sample: bytes, name: str) -> str:
    """The sample as text, "" where it is not valid; its last character may be cut."""
    try:
        return codecs.getincrementaldecoder(name)().decode(sample)
    except UnicodeDecodeError:
        return ""
