"""Asks again where that can help: a failure that may pass, before anything of the answer has arrived.

A provider that says when to come back is waited for; a wait longer than `longest_wait` is left to the user. A 400 is
never repeated (it is not retryable), nor is anything once the first piece of the answer has been handed on.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from brim.errors import ProviderError
from brim.providers.events import Done, Event, Notice, Provider

Report = Callable[[Notice], None]


class RetryPolicy(msgspec.Struct, frozen=True):
    """`attempts` in all; waits in seconds: `first_wait`, doubled each time up to `most_wait`, with up to a quarter more
    at random; a provider's own figure is taken as it is, up to `longest_wait`. Where nothing listens at an address of this
    machine, one more try follows after `starting_wait`: a server may be just starting. `scale` stretches all of them (0
    in tests)."""

    attempts: int = 4
    first_wait: float = 1.0
    most_wait: float = 20.0
    longest_wait: float = 120.0
    starting_wait: float = 0.7
    scale: float = 1.0


class RetryingProvider:
    """A provider that asks again by a policy. `report` is told of each wait before it begins."""

    def __init__(self, provider: Provider, policy: RetryPolicy | None = None, report: Report | None = None) -> None:
        self.provider = provider
        self.policy = policy or RetryPolicy()
        self.report = report
        self.name = provider.name
        self.api = provider.api

    async def stream(self, body: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        """As the provider's own `stream`; retried until its first event."""
        async for event in stream_with_retries(self.provider, body, policy=self.policy, report=self.report):
            yield event

    async def complete(self, body: Mapping[str, Any]) -> Done:
        """As the provider's own `complete`, retried."""
        import stamina

        async for attempt in stamina.retry_context(**_stamina_settings(self.policy, self.report)):
            with attempt:
                return await self.provider.complete(body)
        raise AssertionError("stamina ends with a result or an error")

    async def close(self) -> None:
        await self.provider.close()


async def stream_with_retries(
    provider: Provider, body: Mapping[str, Any], *, policy: RetryPolicy | None = None, report: Report | None = None
) -> AsyncGenerator[Event, None]:
    """Stream `body`; a retryable ProviderError before the first event is retried by `policy`, each wait reported."""
    import stamina

    events: AsyncGenerator[Event, None] | None = None
    first: Event | None = None
    async for attempt in stamina.retry_context(**_stamina_settings(policy or RetryPolicy(), report)):
        with attempt:
            events = provider.stream(body)
            first = await anext(events)
    if events is None or first is None:
        raise AssertionError("stamina ends with a result or an error")
    async with aclosing(events):
        yield first
        async for event in events:
            yield event


def _stamina_settings(policy: RetryPolicy, report: Report | None) -> dict[str, Any]:
    """Arguments of `stamina.retry_context`; its hook decides, waits by our figures, and reports."""
    # stamina logs each retry as a warning, which without any handler would land on the user's terminal; the report says it
    logger = logging.getLogger("stamina")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    from brim.providers.failures import NothingListens

    failed = 0

    def wait_for(error: Exception) -> bool | float:
        nonlocal failed
        failed += 1
        if not isinstance(error, ProviderError) or not error.retryable or error.partial:
            return False
        starting = isinstance(error, NothingListens)
        most = min(policy.attempts, 2) if starting else policy.attempts
        if failed >= most:
            return False
        if starting:
            wait = policy.starting_wait
        elif error.retry_after is not None:
            wait = error.retry_after
            if wait > policy.longest_wait:
                return False
        else:
            wait = min(policy.most_wait, policy.first_wait * 2 ** (failed - 1)) * (1 + random.random() / 4)  # noqa: S311
        if report is not None:
            data = {"wait": wait, "attempt": failed, "attempts": most, "error": error.as_dict()}
            report(Notice(f"{error.message}; asking again in {wait:.1f} s ({failed} of {most - 1})", "retry", data))
        return wait * policy.scale

    return {"on": wait_for, "attempts": policy.attempts, "timeout": None}
