"""How long a provider asks to wait, and the figures of its rate limits: from headers, fields and words."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

_LIMIT = re.compile(
    r"\blimit(?: of|:| is|ed to)? ?:? ?(\d[\d,]*)|(\d[\d,]*) (?:input |output )?tokens? per (?:min|minute|day|hour)"
)
_REQUESTED = re.compile(
    r"\brequest(?:ed)?(?: of|:| about| contains| has| is)? ?:? ?(\d[\d,]*)|(\d[\d,]*) tokens? requested"
)
_UNITS = r"milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d"
_PAUSE = re.compile(
    r"(?:try again|retry|retry-after|wait|available|resets?)\b[^\d.;]{0,24}"
    rf"((?:\d+(?:\.\d+)? ?(?:{_UNITS})(?![a-z]) ?(?:and )?)+)"
)
_SPAN = re.compile(rf"(\d+(?:\.\d+)?) ?({_UNITS})(?![a-z])")
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}


def rate_figures(text: str) -> tuple[int | None, int | None]:
    """(limit, requested) in tokens, out of the words of a rate-limit error."""
    return _figure(_LIMIT.search(text)), _figure(_REQUESTED.search(text))


def seconds_in(text: str) -> float | None:
    """ "1m2.5s", "4s", "500ms", "26 seconds", "2 minutes and 3 s" as seconds; None where there is no span of time."""
    spans = _SPAN.findall(text)
    total = sum(
        float(figure) * (0.001 if unit.startswith(("ms", "mil")) else _SECONDS[unit[0]]) for figure, unit in spans
    )
    return total if spans else None


def wait_of(headers: Mapping[str, str] | None, field: float | None, text: str) -> float | None:
    """Seconds to wait before asking again: from the headers, else a field of the body, else its words in `text` (lower
    case), else the moment at which an exhausted limit starts anew; None where nothing says so."""
    lower = {str(key).lower(): str(value) for key, value in (headers or {}).items()}
    if (figure := _number(lower.get("retry-after-ms"))) is not None:
        return figure / 1000
    if value := lower.get("retry-after"):
        figure = _number(value)
        return figure if figure is not None else _until(value, lower.get("date"))
    if field is not None:
        return field
    match = _PAUSE.search(text.replace("retry after", "retry-after"))
    if match and (span := seconds_in(match[1])) is not None:
        return span
    resets = []
    for key, value in lower.items():
        if "ratelimit" not in key or "reset" not in key:
            continue
        left = _number(lower.get(key.replace("reset", "remaining")))
        if left is not None and left > 0:
            continue
        wait = _reset(value, lower.get("date"))
        if wait is not None and wait > 0:
            resets.append(wait)
    return max(resets, default=None)


def _reset(value: str, date: str | None) -> float | None:
    """A reset header: seconds, a span ("6m0s"), a moment in Unix seconds or milliseconds, or a date."""
    figure = _number(value)
    if figure is None:
        return seconds_in(value) if re.fullmatch(rf"(?:[\d.]+(?:{_UNITS}))+", value.strip()) else _until(value, date)
    if figure >= 1e11:
        return figure / 1000 - time.time()
    return figure - time.time() if figure > 1e9 else figure


def _figure(match: re.Match[str] | None) -> int | None:
    return int((match[1] or match[2]).replace(",", "")) if match else None


def _number(value: str | None) -> float | None:
    try:
        figure = float(value) if value is not None else None
    except ValueError:
        return None
    return figure if figure is not None and 0 <= figure < 1e15 else None


def _until(moment: str, date: str | None) -> float | None:
    """Seconds from the answer's own date (else from now) to an HTTP or RFC 3339 date."""
    then, now = _stamp(moment), _stamp(date) if date else None
    return None if then is None else max(0.0, then - (time.time() if now is None else now))


def _stamp(value: str) -> float | None:
    from datetime import datetime
    from email.utils import parsedate_to_datetime

    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            return read(value.strip()).timestamp()
        except (ValueError, TypeError, OverflowError):
            continue
    return None
