"""Errors are told apart by kind whatever their shape and wording, and their messages say the provider's words without keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.errors import (
    AuthError,
    InvalidRequest,
    ProviderError,
    ProviderOverflow,
    QuotaExceeded,
    RateLimited,
    RequestOverRateLimit,
)
from brim.providers import classify_error, classify_response, silently_cut
from brim.providers.error_body import mask, read_error
from brim.providers.error_figures import read_figures

HERE = Path(__file__).parent
REPORTED: list[dict[str, Any]] = json.loads((HERE / "provider_errors.json").read_text())
VARIANTS: list[dict[str, Any]] = json.loads((HERE / "error_variants.json").read_text())


def _name(case: dict[str, Any]) -> str:
    return f"{case.get('what') or case['from']}-{case['status']}-{case['kind']}".replace(" ", "_")


def _check(case: dict[str, Any], error: ProviderError) -> None:
    assert error.kind == case["kind"], error.message
    for field in ("window", "requested", "limit", "retry_after"):
        if field in case:
            assert getattr(error, field) == case[field], field


@pytest.mark.parametrize("case", [case for case in REPORTED if case["kind"]], ids=_name)
def test_every_reported_error_is_of_its_kind(case: dict[str, Any]) -> None:
    """An error as users reported it is recognised, with window and request where they are given."""
    _check(case, classify_error(case["status"], case["body"], provider=case["from"], model="m"))


@pytest.mark.parametrize("case", VARIANTS, ids=_name)
def test_other_wordings_of_the_same_kinds(case: dict[str, Any]) -> None:
    """Wordings that no report held are recognised too, and look-alikes are not taken for an overflow."""
    _check(case, classify_error(case["status"], case["body"]))


@pytest.mark.parametrize(
    "case", [case for case in [*REPORTED, *VARIANTS] if case["kind"] and not isinstance(case["body"], str)], ids=_name
)
def test_form_of_the_body_does_not_matter(case: dict[str, Any]) -> None:
    """The same error as an object, as JSON text, as bytes, inside a string of a relay, and in an event stream is the same."""
    text = json.dumps(case["body"])
    forms: list[object] = [
        text,
        text.encode(),
        "\ufeff" + text,
        {"error": {"message": "Provider returned error", "metadata": {"raw": text}}},
        {"message": text, "type": "error"},
        f"data: {text}\n\n",
        f"event: error\r\ndata: {text}\r\n\r\n".encode(),
    ]
    for form in forms:
        _check(case, classify_error(case["status"], form))


@pytest.mark.parametrize("status", [400, 429])
@pytest.mark.parametrize(
    "body",
    [
        "Too many tokens per day, please wait before trying again.",
        "Tokens per minute limit exceeded - too many tokens processed",
        "ThrottlingException: Too many tokens, please wait before trying again.",
    ],
)
def test_rate_limit_words_come_first(body: str, status: int) -> None:
    """ "Too many tokens" of a quota is a rate limit to be retried, never an overflow to be compacted."""
    error = classify_error(status, body)
    assert type(error) is RateLimited
    assert error.retryable


def test_allowance_of_a_minute_teaches_no_window() -> None:
    """One request over the allowance of a minute is not retried, names both figures, and says what to make smaller."""
    body = {
        "error": {
            "message": "Request too large for model `llama-3.1-8b-instant` in organization `org_x` service "
            "tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 9876, please reduce "
            "your message size and try again.",
            "type": "tokens",
            "code": "rate_limit_exceeded",
        }
    }
    error = classify_error(413, body, provider="groq")
    assert isinstance(error, RequestOverRateLimit)
    assert (error.limit, error.requested, error.retryable) == (6000, 9876, False)
    assert not hasattr(error, "window")
    assert "max_response_tokens" in (error.hint or "")
    assert "Limit 6000, Requested 9876" in error.message


@pytest.mark.parametrize(
    ("body", "window", "requested"),
    [
        ("Input length 140001 exceeds the maximum allowed input length of 131040 tokens.", 131040, 140001),
        ("Input length (300123) exceeds model's maximum context length (262144).", 262144, 300123),
        ("The input (400321 tokens) is longer than the model's context length (262144 tokens).", 262144, 400321),
        ("tokens in request more than max tokens allowed", None, None),
    ],
)
def test_new_wordings_are_overflow(body: str, window: int | None, requested: int | None) -> None:
    """A wording seen for the first time is an overflow, its figures are read, and it is never retryable."""
    error = classify_error(400, body)
    assert isinstance(error, ProviderOverflow)
    assert (error.window, error.requested, error.retryable) == (window, requested, False)


_LIMIT_FIRST = (
    "maximum context length is {w} tokens, but the prompt has {r} tokens",
    "the limit is {w} tokens; current length is {r}",
    "context window of {w} tokens exceeded: {r} tokens requested",
    "max_model_len={w} is less than the prompt length {r}",
)
_REQUEST_FIRST = (
    "prompt of {r} tokens exceeds the context window of {w}",
    "prompt is too long: {r} > {w}",
    "input ({r} tokens) is longer than the context size ({w} tokens)",
    "You sent {r} tokens, which is over the limit of {w} tokens",
    "{r} tokens in your messages exceed the {w} token context limit",
)


@given(
    st.sampled_from(_LIMIT_FIRST + _REQUEST_FIRST),
    st.integers(512, 2_000_000),
    st.integers(1, 500_000),
    st.sampled_from(["{:d}", "{:,}", "{:_}"]),
)
def test_figures_in_any_order_and_form(wording: str, window: int, over: int, form: str) -> None:
    """Window and request are read in either order, with and without thousands separators."""
    text = wording.format(w=form.format(window), r=form.format(window + over))
    error = classify_error(400, text)
    assert isinstance(error, ProviderOverflow), text
    assert (error.window, error.requested) == (window, window + over), text


@given(st.text(max_size=300), st.sampled_from([None, 200, 302, 400, 404, 413, 429, 500, 599]))
def test_any_text_is_some_error(text: str, status: int | None) -> None:
    """No body whatever makes the classifier fail."""
    assert isinstance(classify_error(status, text), ProviderError)
    assert isinstance(
        classify_error(status, {"error": {"message": text, "code": text}, "errors": [text]}), ProviderError
    )
    read_figures(text)


def test_deep_and_huge_bodies() -> None:
    """Bodies nested without end or megabytes long are read in little time, and give a short message."""
    deep: Any = "prompt is too long: 9000 tokens > 8192 maximum"
    for _ in range(400):
        deep = {"error": deep}
    assert isinstance(classify_error(400, deep), ProviderError)
    error = classify_error(500, "x" * 3_000_000 + "the end")
    assert len(error.message) < 800
    assert error.message.endswith("the end")
    for hostile in (
        "{" * 100_000,
        '{"a":' * 100_000,
        "data: {}\n" * 100_000,
        "<html>" + "<a " * 500_000,
        "1,234 " * 300_000,
    ):
        assert len(classify_error(400, hostile).message) < 800


def test_an_answer_is_not_an_error() -> None:
    """What a model wrote is never read as an error text."""
    body = {
        "choices": [
            {
                "message": {"role": "assistant", "content": "prompt is too long: 9000 tokens > 8192 maximum"},
                "finish_reason": "stop",
            }
        ]
    }
    assert type(classify_error(200, body)) is ProviderError
    assert "too long" not in read_error(body).text


@pytest.mark.parametrize(
    ("headers", "body", "wait"),
    [
        ({"Retry-After": "7"}, "", 7.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, "", 1.5),
        ({"Retry-After": "Mon, 30 Nov 2026 12:00:30 GMT", "Date": "Mon, 30 Nov 2026 12:00:00 GMT"}, "", 30.0),
        ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "0"}, "", 360.0),
        (
            {
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-remaining-tokens": "10",
                "x-ratelimit-reset-requests": "17ms",
            },
            "",
            0.017,
        ),
        (
            {"anthropic-ratelimit-requests-reset": "2026-11-30T12:01:00Z", "Date": "Mon, 30 Nov 2026 12:00:00 GMT"},
            "",
            60.0,
        ),
        ({}, "Rate limit reached. Please try again in 1m2.5s.", 62.5),
        ({}, "Rate limit reached. Please try again in 500ms.", 0.5),
        ({}, "Too many requests. Please retry after 2 minutes", 120.0),
        ({}, {"error": {"message": "quota exceeded", "details": [{"retryDelay": "34s"}]}}, 34.0),
        ({}, "Too many requests", None),
        ({"Retry-After": "soon"}, "", None),
    ],
)
def test_when_to_come_back(headers: dict[str, str], body: object, wait: float | None) -> None:
    """The wait is read from headers, a field or the words, in each of the forms that providers use."""
    error = classify_error(429, body, headers)
    assert isinstance(error, RateLimited)
    assert error.retry_after == (None if wait is None else pytest.approx(wait))


def test_message_tells_and_hides() -> None:
    """The provider's own words are shown; the key is not, nor anything that looks like one."""
    body = {
        "error": {
            "message": "Incorrect API key provided: sk-proj-abcdefgh12345678. Authorization: Bearer tok_verysecret99 "
            "for org-1234"
        }
    }
    error = classify_error(401, body, provider="openai", model="gpt-5", secrets=["myownsecretvalue"])
    assert isinstance(error, AuthError)
    assert "openai (gpt-5) answered 401: Incorrect API key provided" in error.message
    assert "abcdefgh12345678" not in error.message
    assert "verysecret99" not in error.message
    assert "org-1234" in error.message
    assert (
        "myownsecretvalue"
        not in classify_error(400, "bad value myownsecretvalue", secrets=["myownsecretvalue"]).message
    )


@pytest.mark.parametrize(
    "text",
    [
        "sk-ant-api03-AbCdEfGhIjKlMnOp",
        "AIzaSyA1234567890abcdefgh",
        "gsk_abcdefghijklmnop",
        "hf_abcdefghijklmnopqr",
        "Authorization: Bearer abcdef123456789",
        "http://user:hunter2secret@proxy:8080",
        "https://x/?key=abcdef1234567",
        "eyJhbGciOiJI.eyJzdWIiOiIx.sig-part",
    ],
)
def test_keys_are_masked(text: str) -> None:
    """Whatever has the form of a key is masked beyond its first four characters."""
    masked = mask(f"error at {text} end")
    assert "***" in masked
    for part in (
        "AbCdEfGhIjKlMnOp",
        "SyA1234567890",
        "abcdefghijklmnop",
        "abcdef123456789",
        "hunter2secret",
        "abcdef1234567",
        "sig-part",
    ):
        assert part not in masked
    assert masked.startswith("error at ")
    assert masked.endswith(" end")


@pytest.mark.parametrize(
    "text",
    ["code api_key_invalid", "unknown field key_to_happiness", "a task-management tool", "sha e3b0c44298fc1c149afb"],
)
def test_words_are_not_masked(text: str) -> None:
    """Names of fields and error codes are no keys."""
    assert mask(text) == text


def test_long_context_credits_name_the_standard_window() -> None:
    """A plan that does not cover the long window says which window to set, and is not retried."""
    error = classify_error(
        429,
        {"type": "error", "error": {"type": "rate_limit_error", "message": "Usage credits required for 1M context"}},
    )
    assert isinstance(error, QuotaExceeded)
    assert "200000" in (error.hint or "")
    assert not error.retryable


def test_cut_conversation_names_num_ctx() -> None:
    """An error that follows from a cut on the server names the setting to raise."""
    error = classify_error(500, {"error": "no user query found in messages"}, provider="ollama")
    assert isinstance(error, InvalidRequest)
    assert "num_ctx" in (error.hint or "")


@pytest.mark.parametrize(
    ("finish", "usage", "content", "window", "kind"),
    [
        ("model_context_window_exceeded", {"prompt_tokens": 204800, "completion_tokens": 0}, "", None, "overflow"),
        ("length", {"prompt_tokens": 131072, "completion_tokens": 0}, "", 131072, "overflow"),
        ("stop", {"prompt_tokens": 140000, "completion_tokens": 5}, "ok", 131072, "overflow"),
        ("length", {"prompt_tokens": 1000, "completion_tokens": 4096}, "half an ans", 131072, "output_limit"),
        ("max_tokens", {"input_tokens": 1000, "output_tokens": 4096}, "half", 200000, "output_limit"),
        ("length", {"prompt_tokens": 1000, "completion_tokens": 4096}, "", 131072, "output_limit"),
        ("context-window-exceeded", None, "", None, "overflow"),
        ("length", {"prompt_tokens": 100, "completion_tokens": 0}, "", 131072, "output_limit"),
        ("length", {"prompt_tokens": 32768, "completion_tokens": 0}, "", 128000, "overflow"),
        ("max_new_tokens", None, "half", None, "output_limit"),
        ("guardrail_intervened", None, "", None, "refused"),
        ("stop", {"prompt_tokens": 131072, "completion_tokens": 5}, "ok", 131072, "complete"),
        ("tool_calls", None, "", None, "tool_calls"),
        ("something_new", None, "text", 10, "other"),
        (None, None, "text", 10, "complete"),
    ],
)
def test_overflow_that_is_no_error(
    finish: str | None, usage: dict[str, int] | None, content: str, window: int | None, kind: str
) -> None:
    """A finish reason, an answer of nothing and too much input are overflows; an output limit and unknown words are not."""
    ending = classify_response(finish, usage, content, window)
    assert ending.kind == kind
    assert (ending.overflow is not None) == (kind == "overflow")
    if ending.overflow is not None and usage:
        assert ending.overflow.requested == usage["prompt_tokens"]
        assert ending.overflow.window == window


def test_silent_cut_is_seen() -> None:
    """A server that read 30% less than was sent cut the prompt: the message gives both figures and the settings to raise."""
    cut = silently_cut(9000, 2048)
    assert cut is not None
    assert "2,048 of about 9,000" in cut.message
    assert "num_ctx" in cut.message
    assert "OLLAMA_CONTEXT_LENGTH" in cut.message
    assert cut.window == 2048
    for case in REPORTED:
        if "sent" in case:
            assert silently_cut(case["sent"], case["body"]["prompt_eval_count"]) is not None


@pytest.mark.parametrize(
    ("sent", "seen"), [(9000, 6400), (9000, 9000), (9000, 20000), (9000, 0), (9000, None), (100, 20)]
)
def test_no_cut_where_counting_may_err(sent: int, seen: int | None) -> None:
    """Under 30% difference, without a figure, or for a tiny prompt, nothing is claimed."""
    assert silently_cut(sent, seen) is None
