"""Tells what kind of error a provider's answer is: one ordered table of rules over the words and codes in it.

The order matters. Rate-limit words come first, because "too many tokens" may mean a quota; an overflow comes before
the status, because it is seen with 400, 401, 413, 424, 429, 500, 503 and inside a 200; figures of a rate limit are
never taken for a window. There will always be another wording: what no rule knows becomes an error that is not
retried unchanged.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from brim.budget.usage import Usage, parse_usage
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
from brim.providers.error_body import Facts, mask, read_error
from brim.providers.error_figures import read_figures
from brim.providers.events import Ended, ended_of


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
    shown = mask(facts.shown, secrets)
    who = (provider or "the provider") + (f" ({model})" if model else "")
    said = (
        f": {shown}" if shown else (f": {', '.join(dict.fromkeys(facts.codes))}" if facts.codes else " without a word")
    )
    case = _Case(
        telling,
        facts,
        text,
        codes,
        _wait_of(headers, facts, text),
        {"provider": provider, "model": model, "status": status},
    )
    message = f"{who} answered {status}{said}" if status and status >= 400 else f"{who} reported an error{said}"
    if facts.status and facts.status != status and status and status < 400:
        message = f"{who} reported error {facts.status} inside an answer with status {status}{said}"
    for matches, build in _RULES:
        if matches(case):
            error = build(message, case)
            if error.retryable and error.retry_after is None:
                error.retry_after = case.wait
            return error
    return ProviderError(message, hint="see --debug FILE for the whole exchange", **case.more)


# ------------------------------------------------------------------ the rules' words

_TOKENS = r"\btokens?\b"
_RATE = re.compile(
    r"\brate[ _-]?limit|\btoo many requests\b|\b(?:tokens?|requests?|images?)[ _-](?:used[ _-])?per[ _-]"
    r"(?:second|sec|minute|min|hour|day|week|month)|\b[io]?[tr]p[mdh]\b|throttl|\btokens? quota|token_quota"
    r"|\bquota\b.{0,40}\bexceeded|exceeded.{0,40}\bquota\b|resource_?exhausted|\b(?:wait|retry|try again)\b[a-z ]{0,12}"
    r" \d+(?:\.\d+)? ?(?:m?s|sec|min|hour|h)\w*\b|\bwait before (?:trying|retrying|sending)|concurren\w+ (?:limit|requests?)"
    r"|\bper[ -](?:minute|day|hour)\b.{0,30}\blimit|\blimit.{0,30}\bper[ -](?:minute|day|hour)\b"
    r"|requests? (?:rate )?(?:increased|is) too (?:quickly|frequent|fast)|请求过于频繁|速率限制|频率限制|限流|并发(?:数|限制)|每分钟"
)
_QUOTA = re.compile(
    r"insufficient[ _-](?:quota|balance|credits?|funds)|current quota|credit balance|requires more credits|credits? required"
    r"|out of credits?|no credits?|can only afford|billing[ _](?:hard[ _]limit|not[ _]active)|payment required|arrearage|overdue"
    r"|usage is required for long context|usage limits?\. you will regain|spend(?:ing)? limit|余额不足|欠费|额度不足"
)
_OVERFLOW_CODES = re.compile(
    r"context_?(?:length|window|size|limit)_?exceeded|exceed_context_size|max_prompt_tokens_exceeded|tokens_limit_reached"
    r"|(?:context_window|prompt|input)_too_(?:long|large)|context_overflow|contextwindowexceeded|max_context_length"
    r"|model_context_window"
)
# Words of another limit: characters, bytes, pictures, fields. They outweigh a vague "too long".
_OTHER_MEASURE = re.compile(
    r"\bcharacters?\b|\bchars\b|\bbytes?\b|\b\d+(?:\.\d+)? ?[kmg]i?b\b|\bpixels?\b|\bimages?\b|\barray\b|\bstring\b|\bfield\b"
    r"|\bheaders?\b|\bentity\b|\bfile(?:name)?\b|\burl\b|\bpages?\b|字符|字节"
)
_CONTEXT = r"(?:context[ _-]?(?:length|window|size|limit)s?|max_seq_len|max_model_len|n_ctx|num_ctx|上下文)"
_OVER = (
    r"(?:exceed\w*|overflow\w*|too (?:long|large|big|many|small)|(?:larg|long|great|bigg)er than|more than|over\b|beyond|reached|ran out"
    r"|not enough|insufficient|doesn't fit|does not fit|to fit|>=?|maximum|limited? (?:to|of)|but (?:got|the)|超过|超出|过长|太长|大于)"
)
_OVERFLOW_STRONG = re.compile(
    rf"{_CONTEXT}.{{0,120}}{_OVER}|{_OVER}.{{0,120}}{_CONTEXT}|\bcontext overflow|\bn_keep\b.{{0,20}}>="
    rf"|(?:supports?|limited to|has)\b.{{0,30}}\b\d[\d.,]*\s?[km]?(?: tokens?)?(?: of)? context\b"
    r"|\bmaximum (?:prompt|input|sequence) (?:length|tokens?)\b.{0,60}\b(?:but|request|contains|got|exceed|tokens)"
    r"|\brange of (?:input|prompt|message)\w*[ _](?:length|tokens?)",
    re.S,
)
_OVERFLOW_TOKENS = re.compile(
    rf"(?:{_TOKENS}|\btoken (?:count|limit|length|budget)).{{0,100}}"
    r"(?:exceed\w*|(?:larg|long|great|bigg|high)er than|more than|above|beyond|over the|must be (?:<=|less|at most|no more|below)|> ?\d|超过|超出)"
    rf"|(?:exceed\w*|(?:larg|long|great)er than|more than|above|beyond|over the|too (?:long|large|big)|too many|超过|超出).{{0,100}}{_TOKENS}"
    r"|(?:prompt|input|messages?|history|conversation).{0,40}\bexceed\w*.{0,40}\b(?:max\w*|limit|allowed|capacity)",
    re.S,
)
_OVERFLOW_VAGUE = re.compile(
    r"\b(?:prompt|input|messages?|conversation|history|chat|transcript)\b(?: \([^)]*\))?(?: (?:is|are|was|were|text))*(?: far| much| way)? too (?:long|large|big)\b"
    r"|\btoo long (?:a )?(?:prompt|input)\b"
    r"|\breduc\w+ (?:the |your )?(?:length|size|number)? ?(?:of )?(?:the |your )?(?:messages|prompt|input|conversation|history)\b"
    r"|\bshorten\w* (?:the |your )?(?:prompt|input|conversation|messages|chat)\b|(?:输入|提示词|对话)(?:内容)?(?:过长|太长|超长)"
    r"|(?:输入|提示词|对话)[^。\n]{0,12}(?:超过|超出)[^。\n]{0,12}(?:长度|限制|上限)"
)
_NEGATIVE_OUTPUT = re.compile(r"max\w*tokens\b.{0,60}(?:got|was|received|given|:|=) ?-\d", re.S)
# An output limit of its own ("supports at most 16384 completion tokens") says nothing about the window.
_OUTPUT_ONLY = re.compile(
    r"\bmax_\w*tokens\b|\bmax(?:imum)?(?: allowed)?(?: number of)? (?:output|completion|response|new) tokens|\bbudget_tokens\b"
)
_INPUT_WORDS = re.compile(
    r"\b(?:context|prompt|inputs?|messages?|conversation|history|total|n_ctx|requested token count)\b|\bmaximum context|max_model_len"
)
_TOO_LARGE = re.compile(
    r"\b(?:entity|payload|body|request|content|message)\b.{0,20} too large|request_too_large|payload_too_large|content_too_large"
    r"|(?:exceed\w*|over|larger than|maximum|limit|max|too large).{0,60}\b(?:bytes?|\d+(?:\.\d+)? ?[kmg]i?b)\b"
    r"|\b(?:bytes?|\d+(?:\.\d+)? ?[kmg]i?b)\b.{0,40}(?:exceed|limit|maximum|>)"
    r"|\bimages?\b.{0,80}(?:exceed|too (?:large|big|many)|maximum|at most|limit)|too (?:many|much) (?:images?|media|documents?|files|pages)"
    r"|at most \d+ (?:images?|image\(s\)|documents?|pdf)|\bpixels?\b|maximum of \d+ (?:pdf pages|images)|string_above_max_length|string too long"
    r"|request exceeds the maximum size",
    re.S,
)
_AUTH = re.compile(
    r"invalid_?api_?key|api_key_invalid|authentication|unauthori[sz]ed|permission_?(?:denied|error)|access_?denied|forbidden"
    r"|\bapi[ _-]?key\b.{0,60}(?:invalid|incorrect|missing|not valid|expired|required|provided|revoked|wrong)"
    r"|(?:invalid|incorrect|missing|no|expired|wrong) (?:x-)?api[ _-]?key|invalid (?:bearer )?token|无效的(?:令牌|api)|鉴权|认证失败",
    re.S,
)
_SERVER = re.compile(
    r"overload|server_?error|\bapi_error\b|internal_?error|internal (?:server )?error|service_?unavailable|service (?:is )?unavailable"
    r"|temporarily unavailable|at capacity|bad gateway|gateway time-?out|\btime(?:d )?[ -]?out\b|timeout_error|\bserver (?:is )?busy"
    r"|model runner|loading model|model is (?:still )?loading|upstream (?:connect|error|request)|no healthy upstream|engine .{0,20}(?:died|dead)|unavailable|系统繁忙|服务繁忙"
)


def _is_over_rate(case: _Case) -> bool:
    if not _RATE.search(case.text + " " + case.codes):
        return False
    limit, requested = _rate_figures(case.text)
    if limit is not None and requested is not None:
        return requested > limit
    return "request too large" in case.text or "request is too large" in case.text


def _is_quota(case: _Case) -> bool:
    if case.status == 402:
        return True
    if not _QUOTA.search(case.text) and not _QUOTA.search(case.codes):
        return False
    # Gemini words a per-minute limit as "your current quota", and says when to come back
    return case.wait is None or "insufficient" in case.codes


def _is_rate(case: _Case) -> bool:
    return bool(_RATE.search(case.text) or _RATE.search(case.codes))


def _is_overflow(case: _Case) -> bool:
    if _OVERFLOW_CODES.search(case.codes) or (case.facts.window and case.facts.requested):
        return True
    if any(ended_of(code) == "overflow" for code in case.facts.codes):
        return True
    text = case.text
    if _NEGATIVE_OUTPUT.search(text):
        return True
    if _OUTPUT_ONLY.search(text) and not _INPUT_WORDS.search(_OUTPUT_ONLY.sub(" ", text)):
        return False
    if _OVERFLOW_STRONG.search(text) or _OVERFLOW_CODES.search(text):
        return True
    if _OTHER_MEASURE.search(text) and not re.search(_TOKENS, text):
        return False
    if _OTHER_MEASURE.search(text) and _TOO_LARGE.search(text) and not _OVERFLOW_TOKENS.search(text):
        return False
    return bool(_OVERFLOW_TOKENS.search(text) or _OVERFLOW_VAGUE.search(text))


def _is_too_large(case: _Case) -> bool:
    return case.status == 413 or bool(_TOO_LARGE.search(case.text) or _TOO_LARGE.search(case.codes))


def _is_cut_by_server(case: _Case) -> bool:
    return "no user query found" in case.text


def _is_server(case: _Case) -> bool:
    if case.status is not None and case.status not in (408, 409, 424, 425) and case.status < 500:
        return False
    return (
        (case.status is not None and case.status != 409) or bool(_SERVER.search(case.text) or _SERVER.search(case.codes))
    )


def _is_auth(case: _Case) -> bool:
    return case.status in (401, 403) or bool(_AUTH.search(case.text) or _AUTH.search(case.codes))


def _is_invalid(case: _Case) -> bool:
    return (case.status is not None and 400 <= case.status < 500) or bool(
        re.search(r"invalid_?request|bad_?request|invalid_argument|not_found|validation|unprocessable", case.codes)
    )


# ------------------------------------------------------------------ the errors they give


def _over_rate(message: str, case: _Case) -> ProviderError:
    limit, requested = _rate_figures(case.text)
    return RequestOverRateLimit(
        message, limit=limit, requested=requested, hint="one request is larger than the tokens-per-minute allowance: waiting cannot help; make the request or "
        "max_response_tokens smaller, or use a plan that allows more", **case.more
    )  # fmt: skip


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
        hint="compact sooner (compact_trigger_ratio), lower max_response_tokens, or use a model with a larger window",
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


# ------------------------------------------------------------------ figures of rate limits

_RATE_LIMIT = re.compile(
    r"\blimit(?: of|:| is|ed to)? ?:? ?(\d[\d,]*)|(\d[\d,]*) (?:input |output )?tokens? per (?:min|minute|day|hour)"
)
_RATE_REQUESTED = re.compile(
    r"\brequest(?:ed)?(?: of|:| about| contains| has| is)? ?:? ?(\d[\d,]*)|(\d[\d,]*) tokens? requested"
)
_PAUSE = re.compile(
    r"(?:try again|retry|retry-after|wait|available|resets?)\b[^\d.;]{0,24}"
    r"((?:\d+(?:\.\d+)? ?(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)\b ?(?:and )?)+)"
)
_SPAN = re.compile(
    r"(\d+(?:\.\d+)?) ?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])"
)
_GLUED = re.compile(r"(\d+(?:\.\d+)?)(ms|d|h|m|s)")
_UNIT = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}


def _rate_figures(text: str) -> tuple[int | None, int | None]:
    limit, requested = _RATE_LIMIT.search(text), _RATE_REQUESTED.search(text)
    return (_figure(limit), _figure(requested))


def _figure(match: re.Match[str] | None) -> int | None:
    return int((match[1] or match[2]).replace(",", "")) if match else None


def _seconds(text: str) -> float | None:
    """ "1m2.5s", "4s", "500ms", "26 seconds", "2 minutes" as seconds."""
    spans = _GLUED.findall(text) if " " not in text.strip() else _SPAN.findall(text)
    spans = spans or _SPAN.findall(text)
    total = 0.0
    for figure, unit in spans:
        total += float(figure) * (0.001 if unit.startswith(("ms", "milli")) else _UNIT[unit[0]])
    return total if spans else None


def _wait_of(headers: Mapping[str, str] | None, facts: Facts, text: str) -> float | None:
    """Seconds to wait: from the headers, else from a field of the body, else from its words."""
    lower = {str(key).lower(): str(value) for key, value in (headers or {}).items()}
    if (figure := _number(lower.get("retry-after-ms"))) is not None:
        return figure / 1000
    if value := lower.get("retry-after"):
        if (figure := _number(value)) is not None:
            return figure
        return _until(value, lower.get("date"))
    if facts.wait is not None:
        return facts.wait
    match = _PAUSE.search(text.replace("retry after", "retry-after"))
    if match and (seconds := _seconds(match[1])) is not None:
        return seconds
    waits = []
    for key, value in lower.items():
        if "ratelimit" not in key or "reset" not in key:
            continue
        left = lower.get(key.replace("reset", "remaining"))
        if left is not None and left.strip() not in ("0", "0.0"):
            continue
        if (figure := _number(value)) is not None:  # seconds, or a moment in Unix seconds or milliseconds
            figure = (
                figure - time.time()
                if 1e9 < figure < 1e11
                else figure / 1000 - time.time()
                if figure >= 1e11
                else figure
            )
        else:
            figure = (
                _seconds(value)
                if re.fullmatch(r"(?:[\d.]+(?:ms|[dhms]))+", value)
                else _until(value, lower.get("date"))
            )
        if figure is not None and figure > 0:
            waits.append(figure)
    return max(waits, default=None)


def _number(value: str | None) -> float | None:
    try:
        figure = float(value) if value is not None else None
    except ValueError:
        return None
    return figure if figure is not None and 0 <= figure < 1e15 else None


def _until(moment: str, date: str | None) -> float | None:
    """Seconds from the answer's own date (else from now) to an HTTP or RFC 3339 date."""
    from datetime import datetime

    def parse(value: str) -> float | None:
        for read in (parsedate_to_datetime, datetime.fromisoformat):
            try:
                return read(value.strip()).timestamp()
            except (ValueError, TypeError, OverflowError):
                continue
        return None

    then = parse(moment)
    now = parse(date) if date else None
    return None if then is None else max(0.0, then - (now if now is not None else time.time()))


# ------------------------------------------------------------------ answers that are no errors


class Ending(msgspec.Struct, frozen=True):
    """How an answer ended: `kind`, and the overflow where it is one."""

    kind: Ended
    overflow: ProviderOverflow | None = None


def classify_response(
    finish_reason: str | None,
    usage: Usage | Mapping[str, Any] | None = None,
    content: str | None = None,
    window: int | None = None,
    *,
    provider: str | None = None,
    model: str | None = None,
) -> Ending:
    """What a complete answer says about the window: not every overflow is an error.

    An overflow is a finish reason that names the context, an answer of no tokens that "reached the length", and an
    answer to more input than the window takes. `usage`: brim's or the provider's own; `window` in tokens.
    """
    kind = ended_of(finish_reason)
    counted = usage if isinstance(usage, Usage) else parse_usage(usage)
    sent = counted.input if counted.reported else None
    hint = "compact sooner (compact_trigger_ratio), lower max_response_tokens, or use a model with a larger window"
    why = None
    if kind == "overflow":
        why = f"the provider stopped: the context window is full ({finish_reason})"
    elif kind == "output_limit" and sent and not counted.output and not (content or "").strip():
        why = "the provider stopped at once without a word: the input filled the window"
    elif window and sent and sent > window:
        why = (
            f"the provider took {sent:,} input tokens, more than the window of {window:,}: something was cut or wrapped"
        )
    if why is None:
        return Ending(kind)
    error = ProviderOverflow(why, window=window, requested=sent, hint=hint, provider=provider, model=model)
    return Ending("overflow", error)


class SilentCut(msgspec.Struct, frozen=True):
    """A server that cut the prompt and said nothing: it saw `seen` tokens of about `sent`."""

    seen: int
    sent: int

    @property
    def window(self) -> int:
        """What the server's window seems to be, in tokens."""
        return self.seen

    @property
    def message(self) -> str:
        return (
            f"the server saw {self.seen:,} of about {self.sent:,} tokens: it cut the prompt without saying so. Raise its "
            "context size (num_ctx, or OLLAMA_CONTEXT_LENGTH for the server), or lower max_context_tokens here"
        )


def silently_cut(sent_estimate: int, prompt_tokens: int | None) -> SilentCut | None:
    """Whether a server read much less than was sent: 30% or more is missing (less than that is counting error).

    Prompts under 256 tokens, and servers that report nothing or 0, are not judged.
    """
    if not prompt_tokens or sent_estimate < 256 or prompt_tokens > 0.7 * sent_estimate:
        return None
    return SilentCut(prompt_tokens, sent_estimate)
