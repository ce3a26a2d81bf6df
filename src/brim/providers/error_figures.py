"""Reads the window and the size of a request out of an overflow message, in whatever order and words they stand.

Wordings differ without end ("8257 tokens > 8192 maximum", "limit is 8192 … current length is 8257"), so the limit is
found by the words around a number and the request by what remains: it is the larger one. What is left out on purpose:
rounded figures ("256K": 256,000 or 262,144?), and the excess ("exceeded by 918 tokens"), which is neither.
"""

from __future__ import annotations

import re

_OTHER_UNIT = (
    r" ?(?:messages|turns|characters|chars|bytes|images|items|words|pages|requests|seconds|minutes|[kmg]i?b)\b"
)
_N = rf"(?<![\w.#/-])(\d{{1,9}})(?![\w]|[.,]\d|-\d|{_OTHER_UNIT})"
_HUGE = 50_000_000

_SUM_OVER = re.compile(
    rf"{_N}[^\d.;+]{{0,20}}\+[^\d.;]{{0,30}}{_N}(?: ?\+ ?{_N})?[^\d.;]{{0,20}}?"
    rf"(?:>=?|exceeds?|is (?:greater|larger|more) than)[^\d.;]{{0,30}}{_N}"
)
_OF_ALL = re.compile(r"(?<![\w./])(\d{3,9}) ?(?:/|\bof\b) ?(\d{3,9})(?![\w/]|\.\d)")
_OVER_DIFFERENCE = re.compile(rf"{_N} (?:>|>=) {_N} ?- ?{_N}")
_AND = r"[^\d.;]{0,40}(?:\band\b|\bplus\b|\+)"
_PARTS = re.compile(
    rf"{_N} `?(?:inputs?|prompt|input text|message)`? ?tokens?{_AND}[^\d.;]{{0,40}}{_N}"
    rf"|{_N}{_AND}[^\d.;]{{0,20}}\b(?:max_\w+|max(?:imum)? (?:new|output|completion)|output|completion)\b[^\d.;]{{0,20}}{_N}"
)

_GAP = r"[^\d.;\n]"
_WINDOW = tuple(
    re.compile(pattern)
    for pattern in (
        rf"range of (?:input|prompt|context|message)[ _a-z]* (?:length|tokens)? ?should be \[ ?\d+ ?, ?{_N}",
        rf"\bcontext[ _-]?(?:length|window|size|limit)s?\b"
        rf"(?:(?!\bby\b|\brequest|\byou|\bgot\b|\binput|\bn_keep){_GAP}){{0,50}}{_N}",
        rf"\b(?:n_ctx|num_ctx|max_seq_len|max_model_len|max_context_length|max_position_embeddings)\b{_GAP}{{0,14}}{_N}",
        rf"{_N}[ -](?:tokens? )?(?:is the )?(?:max(?:imum)? )?(?:context|limit|maximum|max|most|allowed|window)\b",
        rf"\b(?:limit|maximum|max|allowed|capacity)\b(?:(?!\bby\b|\brequest|\byou|\bgot\b){_GAP}){{0,60}}{_N}",
        rf"\bmax_\w*(?:tokens|length)\b{_GAP}{{0,24}}(?:<=|≤|<){_GAP}{{0,4}}{_N}",
        rf"(?:<=|≤|<|\bless than|\bat most|\bno more than|\bup to|\bfewer than|\bonly|\bthan|\bover){_GAP}{{0,40}}{_N}",
        rf"> ?{_N}",
        rf"\bexceed(?:s|ed|ing)?{_GAP}{{0,40}}{_N}",
        rf"\bcontext\b(?: is| of|:|=)? ?\(?{_N}",
        rf"(?:最大|上限|限制|不超过|最多|窗口|长度为|超过|超出|大于)[^\d。;\n]{{0,16}}{_N}",
    )
)
_REQUESTED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\brequest(?:ed|s)?\b(?: \w+){{0,3}} ?\(?{_N}",
        rf"\b(?:prompt|input|messages?|conversation|tokens?|contains|resulted in|length|got|given|sent|passed|count|current)"
        rf"[^\d.,;\n]{{0,40}}{_N}",
        rf"{_N} tokens?\b",
    )
)


def read_figures(text: str) -> tuple[int | None, int | None]:
    """(window, requested) in tokens out of an overflow message; None for what it does not say."""
    text = _plain(text)
    if match := _SUM_OVER.search(text):
        return int(match[4]), sum(int(part) for part in match.groups()[:3] if part)
    if match := _OVER_DIFFERENCE.search(text):
        return int(match[2]), int(match[1]) + int(match[3])
    if match := _OF_ALL.search(text):
        used, whole = int(match[1]), int(match[2])
        return whole, used if used > whole else None
    window_match = next((match for pattern in _WINDOW if (match := pattern.search(text)) and _sane(match[1])), None)
    if window_match is None:
        requested_match = next((match for pattern in _REQUESTED if (match := pattern.search(text))), None)
        return None, int(requested_match[1]) if requested_match and _sane(requested_match[1]) else None
    figures = re.findall(_N, text)
    alone = len(figures) == 1 and "token" not in text
    if alone and text[window_match.start(1) - 1] == "(":  # "context window exceeds limit (2013)": an error's number
        return None, None
    window = int(window_match[1])
    parts = _PARTS.search(text)
    if parts and not any(parts.start(group) == window_match.start(1) for group in range(1, 5)):
        total = sum(int(part) for part in parts.groups() if part)
        if window < total < _HUGE:
            return window, total
    others = [int(match[1]) for match in re.finditer(_N, text) if match.start(1) != window_match.start(1)]
    over = next((figure for figure in others if window < figure < _HUGE), None)
    return window, over


def _sane(figure: str) -> bool:
    return 16 <= int(figure) < _HUGE


def _plain(text: str) -> str:
    """Lower case, without thousands separators, excess figures, ids and times."""
    text = text.lower().replace("\u202f", " ").replace("\xa0", " ").replace("’", "'")
    text = re.sub(r"(?<![\d.,])\d{1,3}(?:[,_'\u2009]\d{3})+(?![\d,_'])", lambda m: re.sub(r"\D", "", m[0]), text)
    text = re.sub(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+(?= tokens?\b)", lambda m: m[0].replace(".", ""), text)
    text = re.sub(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?= tokens?\b)", lambda m: m[0].replace(" ", ""), text)
    text = re.sub(r"\bby (?:about |approximately |over |more than )?\d+(?: tokens?)?", " ", text)
    text = re.sub(
        r"\b(?:request[ _-]?id|trace[ _-]?id|timestamp|http|status(?: code)?|error code|code)\W{1,4}\w+", " ", text
    )
    return re.sub(r"[`*\"]", "", text)
