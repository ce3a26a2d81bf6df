"""Every number of the context engine that a user may want to change, with where its default comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from brim.conversation import Message
from brim.errors import ConfigError

Mode: TypeAlias = Literal["full", "compact", "auto"]
Summarizer: TypeAlias = Callable[[list[dict[str, Any]]], str]
Relevance: TypeAlias = Callable[[str, list[Message]], list[float]]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of `brim.prepare`. Token figures come from the counter the bill names; shares are of the budget."""

    # The window and what is held back of it
    max_context_tokens: int | None = None
    """Window in tokens, where no `window` is given: None is the model's own (128,000 where unknown)."""
    max_response_tokens: int = 4_096
    """Reserved for the reply where the request names no maximum (REQUIREMENTS B6)."""
    history_budget: int | None = 150_000
    """Upper limit for all messages together (A7); None is off."""
    margin: float | None = None
    """Share of the window held back against counting errors. None: 0 where the counter is the model's own,
    0.02 where it is a fallback or an estimate; calibration lowers the need for it."""
    max_request_bytes: int | None = None
    """Upper limit of the JSON body in bytes; None is off."""

    # Triggers and targets, as shares of the budget (DESIGN, "When passes run")
    full_trigger_ratio: float = 1.0
    compact_trigger_ratio: float = 0.6
    auto_trigger_ratio: float = 0.75
    compact_target: float = 0.4
    """What an epoch that the trigger starts leaves at most, summary included."""
    rescue_target: float = 0.9
    """What the ladder aims at once a view would not fit: a tenth is left free, so that the next request need not cut again."""
    recent_rounds_kept: int = 6
    """Turns that stay verbatim (A7, B3)."""
    recent_share: float = 0.5
    """What the protection of recent turns may protect at most; beyond it works by step."""
    pin_share: float = 0.25
    """What pins may take; more is an error."""

    # Passes
    cap_results: bool = False
    """Cap tool results of a foreign request on arrival, as brim's own tools do."""
    cap_tokens: Mapping[str, int] = msgspec.field(
        default_factory=lambda: {"read": 8_000, "bash": 6_000, "grep": 4_000, "glob": 2_000, "": 6_000}
    )
    """Cap of a tool result by tool name; "" is any other tool (A2)."""
    supersede: bool = True
    result_share: float = 0.5
    """One result is at most this share of the window (C3)."""
    context_share: float = 0.75
    """Over this share of the budget the oldest results become stubs (C3)."""
    head_share: float = 0.6
    """Of a cut text, the share that its head gets; the tail gets the rest (C3)."""
    expire_soft_s: float = 300
    """Age in seconds after which a tool result keeps `expire_keep_chars` at each end (C4)."""
    expire_hard_s: float = 600
    """Age in seconds after which a tool result becomes a stub (C4)."""
    expire_keep_chars: int = 1_500
    compress_over_chars: int = 5_000
    """Tool results longer than this, in characters, become stubs under pressure (A7)."""
    error_keep_tokens: int = 2_000
    """No pass takes a failed result below this much of its error text (law 3)."""
    arguments_over_chars: int = 5_000
    """Call arguments longer than this, in characters, may be cut under pressure, staying valid JSON."""

    # Summaries (B3)
    summary_share: float = 0.2
    summarise_in_full: bool = False
    summarizer: Summarizer | None = None
    """Writes summaries: takes chat messages, returns text. None: the deterministic one."""
    summarizer_window: int | None = None
    """Window of the summarizer's model in tokens; None: the window of the request."""
    summary_failures: int = 3
    """After so many failures in a row the summarizer is not asked again."""

    # Relevance (B4, B5)
    retrieval_top_k: int = 5
    relevance: Relevance | None = None
    """Scores messages against a question; None: BM25 over words and CJK bigrams, recency, files and symbols."""

    # Prices (relative to one uncached input token) and cache
    price_weighing: bool = True
    """In auto: shorten below the trigger where an edit pays at the model's prices."""
    price_write: float | None = None
    price_read: float | None = None
    cache_life_s: float = 300
    """How long a provider keeps a prefix after its last use (Anthropic: 5 minutes; OpenAI: 5 to 10)."""

    dialect: str | None = None
    """What the receiving API insists on: openai, openai-strict, anthropic, mistral, gemini, openai-responses."""
    can_recall: bool | None = None
    """Something can fetch an original again: a recall tool, or the tools whose results these are. None: yes, where the
    request offers tools or says nothing of them. Where it is False, auto cuts far less (docs/economics.md)."""

    # The fast estimate of rows C2 and C7
    estimate: Literal["classes", "chars"] = "classes"
    """`chars` is the common characters / 4 x 1.2, which sees 57% of Chinese; `classes` counts byte classes."""

    def __post_init__(self) -> None:
        """Raises ConfigError for a number out of its range, however the settings are made."""
        _check(self)


def load_settings(values: Settings | Mapping[str, Any] | None) -> Settings:
    """Settings from a mapping of their fields. Raises ConfigError: the field, what was given and what is allowed."""
    if values is None:
        return Settings()
    if isinstance(values, Settings):
        return values
    if not isinstance(values, Mapping):
        raise ConfigError(
            f"settings are {type(values).__name__}", hint="give a brim.Settings, or a mapping of its fields"
        )
    unknown = [key for key in values if key not in Settings.__struct_fields__]
    if unknown:
        import difflib

        near = difflib.get_close_matches(str(unknown[0]), Settings.__struct_fields__, 1)
        raise ConfigError(
            f"unknown setting {unknown[0]!r}",
            hint=f"did you mean {near[0]!r}?" if near else "brim.Settings lists them all",
        )
    calls = {k: values[k] for k in ("summarizer", "relevance") if values.get(k) is not None}
    for name, call in calls.items():
        if not callable(call):
            raise ConfigError(f"setting {name} is {call!r}", hint="give a function, or none for brim's own")
    plain = {k: v for k, v in values.items() if k not in calls}
    try:
        settings = msgspec.convert(plain, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"bad setting: {error}", hint="see the field's description in brim.Settings") from error
    return msgspec.structs.replace(settings, **calls) if calls else settings


_SHARES = (
    "full_trigger_ratio", "compact_trigger_ratio", "auto_trigger_ratio", "compact_target", "rescue_target",
    "recent_share", "pin_share",
    "result_share", "context_share", "head_share", "summary_share",
)  # fmt: skip


_ABOVE_ZERO = ("max_context_tokens", "history_budget", "max_response_tokens", "max_request_bytes", "summarizer_window")
_AT_LEAST_ZERO = (
    "recent_rounds_kept", "expire_soft_s", "expire_hard_s", "expire_keep_chars", "compress_over_chars", "error_keep_tokens",
    "arguments_over_chars", "summary_failures", "retrieval_top_k", "price_write", "price_read", "cache_life_s",
)  # fmt: skip
DIALECTS = ("openai", "openai-strict", "mistral", "gemini", "anthropic", "openai-responses")
"""As `brim.formats` knows them; a test holds the two together."""


def _check(settings: Settings) -> None:
    for name in _SHARES:
        value = getattr(settings, name)
        if not 0 < value <= 1:
            raise ConfigError(f"setting {name} is {value}", hint="a share must be above 0 and at most 1")
    for name in _ABOVE_ZERO:
        value = getattr(settings, name)
        if value is not None and value <= 0:
            raise ConfigError(f"setting {name} is {value}", hint="give a number above 0, or leave the setting out")
    for name in _AT_LEAST_ZERO:
        value = getattr(settings, name)
        if value is not None and not value >= 0:
            raise ConfigError(f"setting {name} is {value}", hint="give a number, 0 or more")
    if settings.margin is not None and not 0 <= settings.margin < 1:
        raise ConfigError(f"setting margin is {settings.margin}", hint="a share of the window, from 0 to below 1")
    if settings.dialect is not None and settings.dialect not in DIALECTS:
        raise ConfigError(f"setting dialect is {settings.dialect!r}", hint=f"one of {', '.join(DIALECTS)}")
    for tool, cap in settings.cap_tokens.items():
        if cap < 1:
            raise ConfigError(f"setting cap_tokens has {cap} for {tool!r}", hint="give a number of tokens above 0")
