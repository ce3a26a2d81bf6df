"""Every error brim raises on purpose. Each says what happened, to what, with which numbers, and what to do next.

BrimError                        1
├── UsageError                   2     a wrong option, argument or request body
├── ConfigError                  78    a setting or config file that cannot be used
├── LimitError                   3     a limit of the user's own was hit
│   ├── ContextOverflow          3     what cannot go is larger than the budget
│   ├── StepLimit                3
│   └── SpendLimit               3
├── ProviderError                69    the provider refused, failed, or broke off
│   ├── ProviderOverflow         3     the provider says: more tokens than the window
│   ├── RequestTooLarge          3     more bytes (or images) than the provider takes
│   ├── AuthError                77    no key, a wrong key, no right to the model
│   ├── RateLimited              75    try later
│   ├── RequestOverRateLimit     3     one request larger than the per-minute allowance: waiting cannot help
│   ├── QuotaExceeded            75    no credit left
│   ├── InvalidRequest           1     a 400 that is none of the above
│   ├── Refused                  1     the model or its provider would not answer (a content filter, a refusal)
│   ├── ProviderUnavailable      69    5xx, overloaded, no connection
│   └── StreamBroken             69    a stream that ended early, empty, or with something unreadable
├── ModelMissing                 69    no such model here (not pulled, extra not installed, none configured)
├── SchemaUnmet                  1     an answer that does not keep to the schema it was asked to
├── PermissionDenied             77
├── ToolError                    1     a tool could not do what was asked; told to the model, too
├── StoreError                   1
│   ├── SessionNotFound          2
│   ├── SessionBusy              75    another process holds the session
│   └── StoreUnusable            78    damaged, newer than this brim, read-only, disk full
└── Interrupted                  130
"""

from __future__ import annotations

from typing import Any


class BrimError(Exception):
    """Base of all. `hint` is the next step, in one sentence; `code` the exit code of a process that ends with it."""

    code = 1
    kind = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def as_dict(self) -> dict[str, Any]:
        """JSON-serialisable form: kind, message, hint, and every figure the error carries that is not None."""
        extra = {k: v for k, v in vars(self).items() if v is not None and k not in ("message", "hint")}
        return {"kind": self.kind, "message": self.message, "hint": self.hint, **extra}


class UsageError(BrimError):
    code = 2
    kind = "usage"


class ConfigError(BrimError):
    code = 78
    kind = "config"


class LimitError(BrimError):
    code = 3
    kind = "limit"


class ContextOverflow(LimitError):
    """The part of a conversation that cannot go exceeds the budget.

    `irreducible`: tokens of system, pins, last user message and the newest step trimmed to its least;
    `budget`: tokens all messages may use; `bill`: the itemised account of the request as it would have been.
    """

    kind = "context_overflow"

    def __init__(
        self, message: str, *, irreducible: int, budget: int, bill: Any = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.irreducible = irreducible
        self.budget = budget
        self.bill = bill


class StepLimit(LimitError):
    kind = "step_limit"


class SpendLimit(LimitError):
    kind = "spend_limit"


class ProviderError(BrimError):
    """`provider` and `model` as brim names them; `status`: HTTP status or None; `retryable`: the same request may work later;
    `retry_after`: seconds, where the provider said so; `partial`: text that had arrived before the failure."""

    code = 69
    kind = "provider"
    retryable = False

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.provider = provider
        self.model = model
        self.status = status
        self.retry_after = retry_after
        self.partial: str | None = None


class ProviderOverflow(ProviderError):
    """`window` and `requested` in tokens, None where the provider did not say."""

    code = 3
    kind = "provider_overflow"

    def __init__(self, message: str, *, window: int | None = None, requested: int | None = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.window = window
        self.requested = requested


class RequestTooLarge(ProviderError):
    code = 3
    kind = "request_too_large"


class AuthError(ProviderError):
    code = 77
    kind = "auth"


class RateLimited(ProviderError):
    code = 75
    kind = "rate_limit"
    retryable = True


class RequestOverRateLimit(ProviderError):
    """One request over the tokens-per-minute allowance; `limit` and `requested` in tokens. Never retried unchanged."""

    code = 3
    kind = "request_over_rate_limit"

    def __init__(self, message: str, *, limit: int | None = None, requested: int | None = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.limit = limit
        self.requested = requested


class QuotaExceeded(ProviderError):
    code = 75
    kind = "quota"


class InvalidRequest(ProviderError):
    code = 1
    kind = "invalid_request"


class Refused(ProviderError):
    code = 1
    kind = "refused"


class ProviderUnavailable(ProviderError):
    code = 69
    kind = "unavailable"
    retryable = True


class StreamBroken(ProviderError):
    code = 69
    kind = "stream_broken"
    retryable = True


class ModelMissing(BrimError):
    code = 69
    kind = "model_missing"


class SchemaUnmet(BrimError):
    kind = "schema_unmet"


class PermissionDenied(BrimError):
    code = 77
    kind = "permission_denied"


class ToolError(BrimError):
    kind = "tool"


class StoreError(BrimError):
    kind = "store"


class SessionNotFound(StoreError):
    code = 2
    kind = "session_not_found"


class SessionBusy(StoreError):
    code = 75
    kind = "session_busy"


class StoreUnusable(StoreError):
    code = 78
    kind = "store_unusable"


class Interrupted(BrimError):
    code = 130
    kind = "interrupted"
