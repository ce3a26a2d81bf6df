"""Tells what kind of error a provider's answer is: one ordered table of rules over the words and codes in it.

The order matters. Rate-limit words come first, because "too many tokens" may mean a quota; an overflow comes before
the status, because it is seen with 400, 401, 413, 424, 429, 500, 503 and inside a 200; figures of a rate limit are
never taken for a window. There will always be another wording: what no rule knows becomes an error that is not
retried unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from brim.errors import (
    AuthError,
    InvalidRequest,
    ProviderError,
    ProviderOverflow,
    ProviderUnavailable,
    QuotaExceeded,
    RateLimited,
    RequestOverRateLimit,
    RequestTooLarge,
)
from brim.providers import error_words as words
from brim.providers.endings import OVERFLOW_HINT, Ending, SilentCut, classify_response, silently_cut
from brim.providers.error_body import Facts, mask, read_error
from brim.providers.error_figures import read_figures
from brim.providers.events import ended_of
from brim.providers.waits import rate_figures, wait_of

__all__ = ["Ending", "SilentCut", "classify_error", "classify_response", "silently_cut"]


class _Case(msgspec.Struct):
    """One answer under classification. `text`: its words and codes in lower case; `status`: the telling status."""

    status: int | None
    facts: Facts
    text: str
    codes: str
    wait: float | None
    more: dict[str, Any]


def classify_error(
    status: int | None,
    body: object,
    headers: Mapping[str, str] | None = None,
    *,
    provider: str | None = None,
    model: str | None = None,
    secrets: Iterable[str] = (),
) -> ProviderError:
    """The error that a provider's answer is, ready to raise.

    `status`: the HTTP status, None for an error that came some other way; `body`: dict, list, text or bytes (JSON,
    event stream, HTML). The message holds the provider's own words, shortened and without keys; `secrets` are
    strings that must not appear in it. A 200 whose body holds no error at all gives a plain ProviderError.
    """
    facts = read_error(body)
    telling = facts.status if status is None or status < 400 else status
    text = facts.text.lower().replace("’", "'")
    codes = " ".join(facts.codes)
    shown = mask(facts.shown, secrets) or ", ".join(dict.fromkeys(facts.codes))
    said = f": {shown}" if shown else " without a word"
    who = (provider or "the provider") + (f" ({model})" if model else "")
    if status is not None and status >= 400:
        message = f"{who} answered {status}{said}"
    elif facts.status is not None:
        message = f"{who} reported error {facts.status} inside an answer with status {status}{said}"
    else:
        message = f"{who} reported an error{said}"
    more = {"provider": provider, "model": model, "status": status}
    case = _Case(telling, facts, text, codes, wait_of(headers, facts.wait, text), more)
    for matches, build in _RULES:
        if matches(case):
            error = build(message, case)
            if error.retryable and error.retry_after is None:
                error.retry_after = case.wait
            return error
    return ProviderError(message, hint="see --debug FILE for the whole exchange", **case.more)


# ------------------------------------------------------------------ the rules


def _is_over_rate(case: _Case) -> bool:
    if not words.RATE.search(case.text + " " + case.codes):
        return False
    limit, requested = rate_figures(case.text)
    if limit is not None and requested is not None:
        return requested > limit
    return "request too large" in case.text or "request is too large" in case.text


def _is_quota(case: _Case) -> bool:
    if case.status == 402:
        return True
    if not words.QUOTA.search(case.text) and not words.QUOTA.search(case.codes):
        return False
    # Gemini words a per-minute limit as "your current quota", and says when to come back
    return case.wait is None or "insufficient" in case.codes


def _is_rate(case: _Case) -> bool:
    if words.RATE.search(case.text) or words.RATE.search(case.codes):
        return True
    return (case.status is None or case.status < 500) and bool(words.PAUSE.search(case.text))


def _is_overflow(case: _Case) -> bool:
    if words.OVERFLOW_CODES.search(case.codes) or (case.facts.window and case.facts.requested):
        return True
    if any(ended_of(code) == "overflow" for code in case.facts.codes):
        return True
    text = words.OTHER_TOKENS.sub(" ", case.text)
    if words.NEGATIVE_OUTPUT.search(text):
        return True
    if words.OUTPUT_ONLY.search(text) and not words.INPUT_WORDS.search(words.OUTPUT_ONLY.sub(" ", text)):
        return False
    if words.OVERFLOW_STRONG.search(text) or words.OVERFLOW_CODES.search(text):
        return True
    if words.OTHER_MEASURE.search(text) and not words.TOKENS.search(text):
        return False
    if words.OTHER_MEASURE.search(text) and words.TOO_LARGE.search(text) and not words.OVERFLOW_TOKENS.search(text):
        return False
    if case.status == 429 and not words.INPUT_WORDS.search(text):
        return False
    if words.OVERFLOW_TOKENS.search(text) or words.OVERFLOW_VAGUE.search(text):
        return True
    # Words nobody foresaw, but a limit in tokens and a larger figure beside it.
    return bool(words.TOKEN_LIMIT.search(text)) and None not in read_figures(text)


def _is_too_large(case: _Case) -> bool:
    return case.status == 413 or bool(words.TOO_LARGE.search(case.text) or words.TOO_LARGE.search(case.codes))


def _is_cut_by_server(case: _Case) -> bool:
    return "no user query found" in case.text


def _is_server(case: _Case) -> bool:
    if case.status is not None and case.status not in (408, 409, 424, 425) and case.status < 500:
        return False
    return (case.status is not None and case.status != 409) or bool(
        words.SERVER.search(case.text) or words.SERVER.search(case.codes)
    )


def _is_auth(case: _Case) -> bool:
    return case.status in (401, 403) or bool(words.AUTH.search(case.text) or words.AUTH.search(case.codes))


def _is_invalid(case: _Case) -> bool:
    return (case.status is not None and 400 <= case.status < 500) or bool(words.INVALID_CODES.search(case.codes))


# ------------------------------------------------------------------ the errors they give


def _over_rate(message: str, case: _Case) -> ProviderError:
    limit, requested = rate_figures(case.text)
    return RequestOverRateLimit(
        message,
        limit=limit,
        requested=requested,
        hint="one request is larger than the tokens-per-minute allowance: waiting cannot help; make the request or "
        "max_response_tokens smaller, or use a plan that allows more",
        **case.more,
    )


def _quota(message: str, case: _Case) -> ProviderError:
    if "context" in case.text and ("credit" in case.text or "usage" in case.text):
        hint = "the plan does not cover the long window: set the standard one (max_context_tokens = 200000) and compact"
    else:
        hint = "the account has no credit or quota left: add some, lower max_response_tokens, or choose another model"
    return QuotaExceeded(message, hint=hint, **case.more)


def _rate(message: str, case: _Case) -> ProviderError:
    wait = f"in {case.wait:.0f} s" if case.wait and case.wait >= 1 else "in a moment"
    return RateLimited(message, retry_after=case.wait, hint=f"try again {wait}", **case.more)


def _overflow(message: str, case: _Case) -> ProviderError:
    window, requested = case.facts.window, case.facts.requested
    if window is None:
        window, read = read_figures(case.facts.text)
        requested = read if requested is None or requested <= (window or 0) else requested
    return ProviderOverflow(
        message,
        window=window,
        requested=requested,
        hint=OVERFLOW_HINT,
        **case.more,
    )


def _too_large(message: str, case: _Case) -> ProviderError:
    if re.search(r"\bimages?\b|pixel|media|\bpdf\b|document", case.text):
        hint = "a picture or document is too large, or there are too many: remove or shrink it"
    else:
        hint = (
            "the limit is one of size, not of tokens: remove pictures or the largest text (setting max_request_bytes)"
        )
    return RequestTooLarge(message, hint=hint, **case.more)


def _cut_by_server(message: str, case: _Case) -> ProviderError:
    hint = "the server cut the conversation to its own window: raise num_ctx or OLLAMA_CONTEXT_LENGTH there"
    return InvalidRequest(message, hint=hint, **case.more)


def _server(message: str, case: _Case) -> ProviderError:
    return ProviderUnavailable(
        message, retry_after=case.wait, hint="the provider's side failed: try again, or use another model", **case.more
    )


def _auth(message: str, case: _Case) -> ProviderError:
    return AuthError(message, hint="check the key, and that it may use this model", **case.more)


def _invalid(message: str, case: _Case) -> ProviderError:
    hint = "the request itself is refused, so repeating it cannot help"
    if case.status in (404, 405):
        hint = "check the model's name and the base URL (most servers want it to end in /v1)"
        if "not found" in case.text and "pull" in case.text:
            hint = "pull the model on that server first, or name one it has"
    return InvalidRequest(message, hint=hint, **case.more)


_RULES: tuple[tuple[Callable[[_Case], bool], Callable[[str, _Case], ProviderError]], ...] = (
    (_is_over_rate, _over_rate),
    (_is_quota, _quota),
    (_is_rate, _rate),
    (_is_overflow, _overflow),
    (lambda case: case.status == 429, _rate),
    (_is_cut_by_server, _cut_by_server),
    (_is_too_large, _too_large),
    (_is_server, _server),
    (_is_auth, _auth),
    (_is_invalid, _invalid),
)
