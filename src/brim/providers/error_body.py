"""Reading an error body, whatever its shape, into the few facts that tell what kind of error it is.

A body may be a JSON object or list, JSON inside a string inside JSON (a relay that wraps the upstream's answer), an
event stream, an HTML page, or plain text. Only fields that carry error text are read: what a model wrote in an
answer is never taken for an error. Secrets are masked here, before a text can reach a message or a log.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from brim.providers.sse import read_events

_TEXT_KEYS = (
    "message",
    "msg",
    "detail",
    "error_description",
    "error_message",
    "error_msg",
    "status_msg",
    "errorMessage",
    "Message",
    "raw",
    "title",
)
_CODE_KEYS = (
    "code", "type", "status", "reason", "error_type", "__type", "errorCode", "error_code", "finish_reason",
    "stop_reason", "native_finish_reason",
)  # fmt: skip
_NESTED_KEYS = (
    "error", "errors", "details", "metadata", "response", "body", "cause", "innererror", "inner_error", "detail",
    "choices", "incomplete_details", "data", "message", "upstream_error", "base_resp",
)  # fmt: skip
_WINDOW_KEYS = ("n_ctx", "max_context_length", "context_length", "max_model_len")
_REQUESTED_KEYS = ("n_prompt_tokens", "prompt_tokens", "requested_tokens", "input_tokens")
_VAGUE = ("provider returned error", "error", "bad request", "upstream error", "an error occurred", "unknown error")
_DEPTH = 24
_LONGEST = 8_000  # characters of error text that are read


class Facts(msgspec.Struct):
    """`texts`: the error texts, outermost first; `codes`: codes, types and finish reasons, lower case; `status`: an
    HTTP status that stands inside the body; `window`, `requested`: tokens, where a field says so; `wait`: seconds to
    wait, where a field says so; `markup`: the body was a web page; `found`: something in it calls itself an error."""

    texts: list[str] = []
    codes: list[str] = []
    status: int | None = None
    window: int | None = None
    requested: int | None = None
    wait: float | None = None
    markup: bool = False
    found: bool = False

    @property
    def text(self) -> str:
        """All error texts, joined."""
        return "\n".join(self.texts)

    @property
    def shown(self) -> str:
        """The texts for a reader: vague outer ones and repetitions left out, masked, at most 600 characters."""
        telling = [text for text in self.texts if text.strip(" .!").lower() not in _VAGUE] or self.texts
        kept: list[str] = []
        for text in telling:
            if not any(text in other for other in kept):
                kept = [other for other in kept if other not in text] + [text]
        return shorten(mask(" | ".join(kept)), 600)


def read_error(body: object) -> Facts:
    """The facts of an error body of any shape; an unreadable one gives its text as it stands."""
    facts = Facts()
    _read(body, facts, 0)
    return facts


def _read(value: object, facts: Facts, depth: int) -> None:
    if depth > _DEPTH or value is None:
        return
    if isinstance(value, (bytes, bytearray, memoryview)):
        _read_text(bytes(value).decode("utf-8", "replace"), facts, depth)
    elif isinstance(value, str):
        _read_text(value, facts, depth)
    elif isinstance(value, Mapping):
        _read_object(value, facts, depth)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _read(item, facts, depth + 1)


def _read_text(text: str, facts: Facts, depth: int) -> None:
    text = text.lstrip("\ufeff").strip()
    if not text:
        return
    if text[0] in "{[":
        try:
            _read(json.loads(text), facts, depth + 1)
            return
        except (ValueError, RecursionError):
            pass
    if len(text) > _LONGEST:  # what an error says stands at its beginning or at its end
        text = f"{text[: _LONGEST * 3 // 4]} … {text[-_LONGEST // 4 :]}"
    if re.match(r"(?:event|data|id|retry|:)[: ]", text) and re.search(r"^data:", text, re.M):
        for event in read_events(text.encode("utf-8", "replace")):
            if event.event == "error":
                facts.found = True
            if event.data and event.data != "[DONE]":
                _read_text(event.data, facts, depth + 1)
        return
    if re.search(r"<(?:!doctype|html|head|body|title|center|h1)\b", text[:2000], re.I):
        facts.markup = True
        _add(facts, _page_text(text))
        return
    brace = text.find("{")
    if brace > 0:
        try:
            inner, end = json.JSONDecoder().raw_decode(text, brace)
        except (ValueError, RecursionError):
            inner = None
        if isinstance(inner, Mapping) and inner:
            _add(facts, (text[:brace] + text[end:]).strip(" :-\n"))
            _read_object(inner, facts, depth + 1)
            return
    _add(facts, text)


def _read_object(value: Mapping[str, Any], facts: Facts, depth: int) -> None:
    seen_before = len(facts.texts) + len(facts.codes)
    if value.get("error") or value.get("errors") or value.get("type") == "error" or value.get("object") == "error":
        facts.found = True
    for key in _TEXT_KEYS:
        if isinstance(text := value.get(key), str):
            _read_text(text, facts, depth + 1)
    if isinstance(text := value.get("error"), str):
        _read_text(text, facts, depth + 1)
    for key in _CODE_KEYS:
        code = value.get(key)
        if isinstance(code, str) and code.isascii() and len(code) < 80 and key == "status" and code.isdigit():
            code = int(code)
        if isinstance(code, int) and not isinstance(code, bool):
            if 400 <= code < 600 and facts.status is None:
                facts.status = code
        elif isinstance(code, str) and code:
            facts.codes.append(code[:200].lower())
            if len(code) == 3 and code.isdigit() and 400 <= int(code) < 600 and facts.status is None:
                facts.status = int(code)
    for key in _WINDOW_KEYS:
        if facts.window is None and _is_count(figure := value.get(key)):
            facts.window = figure
    for key in _REQUESTED_KEYS:
        if facts.requested is None and _is_count(figure := value.get(key)) and "usage" not in value:
            facts.requested = figure
    delay = value.get("retryDelay") or value.get("retry_after") or value.get("retry_after_seconds")
    if facts.wait is None and delay is not None:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*s?\s*", str(delay))
        facts.wait = float(match[1]) if match else None
    for key in _NESTED_KEYS:
        inner = value.get(key)
        if isinstance(inner, Mapping):
            if "role" not in inner:  # an assistant message is an answer, not an error text
                _read(inner, facts, depth + 1)
        elif isinstance(inner, (list, tuple)):
            _read(inner, facts, depth + 1)
    an_answer = any(key in value for key in ("choices", "content", "output", "role", "message"))
    if len(facts.texts) + len(facts.codes) == seen_before and depth <= 1 and value and not an_answer:
        _add(facts, json.dumps(value, ensure_ascii=False, default=str)[:2000])


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 100_000_000


def _add(facts: Facts, text: str) -> None:
    text = text.strip()
    if text and text not in facts.texts and sum(map(len, facts.texts)) < _LONGEST:
        facts.texts.append(text)


def _page_text(page: str) -> str:
    """The title of a web page, or its first words."""
    title = re.search(r"<title[^>]*>(.*?)</title>", page, re.I | re.S)
    plain = re.sub(r"<(script|style)\b.*?</\1>|<[^>]+>", " ", page, flags=re.I | re.S)
    text = title[1] if title and title[1].strip() else plain
    return shorten(re.sub(r"\s+", " ", html.unescape(text)).strip(), 200)


def shorten(text: str, limit: int) -> str:
    """`text` on one line, at most `limit` characters, its end kept: the last words often say what to do."""
    text = re.sub(r"\s+", " ", text).strip()
    if len(text) <= limit:
        return text
    tail = limit // 4
    return f"{text[: limit - tail - 5].rstrip()} […] {text[-tail:].lstrip()}"


_SECRETS = (
    # keys by the prefixes their vendors give them; a word that others use, too, only where digits follow
    r"\b(?:sk|gsk|xai|hf|nvapi|pplx|glpat|ghp|gho|ghs|ghu|github_pat)[-_][A-Za-z0-9_*\-]{8,}",
    r"\b(?:pk|rk|fw|tgp|csk|key|api)[-_](?=[A-Za-z0-9_*\-]*\d)[A-Za-z0-9_*\-]{8,}",
    r"\bAIza[0-9A-Za-z_\-]{10,}",
    r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.]{8,}",
    r"(?i)(?<=\bbearer )[^\s\"',;]{6,}",
    r"(?i)(?<=\bbasic )[A-Za-z0-9+/=]{12,}",
    r"(?i)(?:(?<=api[-_ ]key=)|(?<=apikey=)|(?<=[?&]key=)|(?<=token=)|(?<=x-api-key: )|(?<=api-key: ))[^\s&\"',;]{6,}",
    r"(?i)(?<=://)[^/\s:@]+:[^/\s@]+(?=@)",
)
_SECRET = re.compile("|".join(f"(?i:{p[4:]})" if p.startswith("(?i)") else f"(?:{p})" for p in _SECRETS))


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without keys and tokens: those given, and whatever looks like one. Four characters stay, to tell keys apart."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "***")
    return _SECRET.sub(lambda found: f"{found[0][:4]}***" if len(found[0]) > 12 else "***", text)
