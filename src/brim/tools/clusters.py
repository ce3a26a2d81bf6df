"""Where a text may be cut so that no character a person sees is split.

A user-perceived character can be several code points: a base with combining marks, an emoji with a skin tone, a
family joined by zero-width joiners, a flag made of two regional indicators, a Hangul syllable made of jamo. The rules
are the parts of Unicode's UAX 29 that matter for a cut, without its tables: `unicodedata` knows the marks.
"""

from __future__ import annotations

import unicodedata

_ZWJ = "\u200d"
# A pile of combining marks longer than this (code points) is no character any more and may be cut.
_LONGEST = 64


def _joins(before: str, after: str) -> bool:
    """Whether `after` continues the character that `before` belongs to (flags apart)."""
    if after < "\u0300" or before < " ":
        # Nothing joins a control character, a line end above all.
        return before == "\r" and after == "\n"
    if (
        after == _ZWJ
        or before == _ZWJ
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\U000e0020" <= after <= "\U000e007f"
    ):
        return True
    if "\udc00" <= after <= "\udfff":
        return "\ud800" <= before <= "\udbff"
    if "\u1160" <= after <= "\u11ff":
        return "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"
    return unicodedata.category(after)[0] == "M"


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def is_boundary(text: str, at: int) -> bool:
    """Whether cutting `text` before index `at` leaves both sides with whole characters."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if _is_flag_half(before) and _is_flag_half(after):
        start = at - 1
        while start > 0 and at - start < _LONGEST and _is_flag_half(text[start - 1]):
            start -= 1
        return (at - start) % 2 == 0
    return not _joins(before, after)


def cut_before(text: str, at: int) -> int:
    """The largest index <= `at` where `text` may be cut."""
    at = min(max(at, 0), len(text))
    for back in range(at, max(at - _LONGEST, 0), -1):
        if is_boundary(text, back):
            return back
    return 0 if at <= _LONGEST else at


def cut_after(text: str, at: int) -> int:
    """The smallest index >= `at` where `text` may be cut."""
    at = min(max(at, 0), len(text))
    for ahead in range(at, min(at + _LONGEST, len(text))):
        if is_boundary(text, ahead):
            return ahead
    return len(text) if at + _LONGEST >= len(text) else at
