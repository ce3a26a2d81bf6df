"""A request is asked again only where that can help, and only before anything of the answer has arrived."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import aclosing
from typing import Any

import pytest

from brim.errors import (
    AuthError,
    InvalidRequest,
    ProviderError,
    ProviderOverflow,
    ProviderUnavailable,
    QuotaExceeded,
    RateLimited,
    RequestOverRateLimit,
    StreamBroken,
)
from brim.providers import Done, Notice, RetryingProvider, RetryPolicy, TextDelta, WireProvider, stream_with_retries
from brim.providers.events import Event
from brim.testing import ScriptedProvider, broken_stream, empty_stream, fault, reply, stream_error

BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
NO_WAIT = RetryPolicy(scale=0)


def ask(
    upstream: ScriptedProvider, policy: RetryPolicy = NO_WAIT, *, stream: bool = True
) -> tuple[list[Event], list[Notice]]:
    """Events and reported waits of one request."""
    notices: list[Notice] = []

    async def work() -> list[Event]:
        provider = RetryingProvider(
            WireProvider("test", "openai.chat", upstream.base_url, env={}), policy, notices.append
        )
        try:
            if not stream:
                return [await provider.complete(BODY)]
            async with aclosing(provider.stream(BODY)) as events:
                return [event async for event in events]
        finally:
            await provider.close()

    return asyncio.run(work()), notices


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "failing",
    [
        fault(500),
        fault(503, {"error": {"message": "Loading model"}}),
        fault(529),
        fault(429, retry_after=7),
        fault(502, "<html><title>Bad</title></html>"),
        stream_error("Overloaded"),
        empty_stream(),
        broken_stream("", how="close"),
        broken_stream("", how="reset"),
    ],
)
def test_passing_failures_are_asked_again(failing: Any, stream: bool) -> None:
    """What may pass is asked again and recovers; each wait is reported before it, with the provider's own figure."""
    with ScriptedProvider([failing, failing, reply("at last")]) as upstream:
        events, notices = ask(upstream, stream=stream)
    done = events[-1]
    assert isinstance(done, Done)
    assert done.message == {"role": "assistant", "content": "at last"}
    assert len(upstream.requests) == 3
    assert [notice.kind for notice in notices] == ["retry", "retry"]
    assert [notice.data["attempt"] for notice in notices] == [1, 2]
    if "Retry-After" in getattr(failing, "headers", {}):
        assert [notice.data["wait"] for notice in notices] == [7.0, 7.0]
    else:
        assert 1 <= notices[0].data["wait"] <= 1.25
        assert 2 <= notices[1].data["wait"] <= 2.5


@pytest.mark.parametrize(
    ("failing", "kind"),
    [
        (fault(400, "bad"), InvalidRequest),
        (fault(400, "tokens in request more than max tokens allowed"), ProviderOverflow),
        (fault(401), AuthError),
        (fault(402), QuotaExceeded),
        (
            fault(429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}),
            QuotaExceeded,
        ),
        (
            fault(
                413, {"error": {"message": "Request too large on tokens per minute (TPM): Limit 6000, Requested 9876"}}
            ),
            RequestOverRateLimit,
        ),
        (fault(429, retry_after=3600), RateLimited),
        (stream_error("boom", after="Some text"), ProviderError),
        (stream_error("Overloaded", after="Some text"), ProviderUnavailable),
        (broken_stream("Some text"), StreamBroken),
    ],
)
def test_what_is_never_asked_again(failing: Any, kind: type[ProviderError]) -> None:
    """A 400, a wrong key, no credit, an hour's wait, and anything after the first text are sent once."""
    with ScriptedProvider([failing], repeat_last=True) as upstream, pytest.raises(kind):
        ask(upstream)
    assert len(upstream.requests) == 1


def test_attempts_have_an_end() -> None:
    """After the attempts of the policy the last error is raised as it is; nothing is reported that is not waited for."""
    notices: list[Notice] = []
    with ScriptedProvider([fault(500, "still down")], repeat_last=True) as upstream:

        async def work() -> None:
            async with WireProvider("test", "openai.chat", upstream.base_url, env={}) as provider:
                async for _ in stream_with_retries(
                    provider, BODY, policy=RetryPolicy(attempts=3, scale=0), report=notices.append
                ):
                    pass

        with pytest.raises(ProviderUnavailable, match="still down"):
            asyncio.run(work())
    assert len(upstream.requests) == 3
    assert len(notices) == 2


def test_text_after_a_retry_is_shown_once() -> None:
    """The text of the answer that came through is streamed once."""
    with ScriptedProvider([empty_stream(), reply("one two three", piece=4)]) as upstream:
        events, _ = ask(upstream)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "one two three"


def test_leaving_early_ends_the_stream() -> None:
    """A consumer that leaves closes the connection through the retries."""
    with ScriptedProvider([fault(500), broken_stream("Half", how="hang")]) as upstream:

        async def work() -> bool:
            provider = RetryingProvider(WireProvider("test", "openai.chat", upstream.base_url, env={}), NO_WAIT)
            async with aclosing(provider.stream(BODY)) as events:
                async for _ in events:
                    break
            gone = await asyncio.to_thread(upstream.wait_for, lambda up: up.requests[-1].aborted)
            await provider.close()
            return gone

        assert asyncio.run(work())


def test_retries_write_nothing_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    """The retry library's own log line does not reach stderr where no logging is set up."""
    logger = logging.getLogger("stamina")
    propagate, logger.propagate = logger.propagate, False  # as in a process without logging handlers
    try:
        with ScriptedProvider([fault(500), reply("ok")]) as upstream:
            ask(upstream)
    finally:
        logger.propagate = propagate
    assert capfd.readouterr() == ("", "")


def test_a_server_of_this_machine_that_is_not_running_is_tried_once_more() -> None:
    """Nothing listens on loopback: one short second try, for a server that is starting, then the error with what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]  # bound, but nobody listens: a connection is refused
        notices: list[Notice] = []

        async def work() -> None:
            wire = WireProvider("mine", "openai.chat", f"http://127.0.0.1:{port}/v1", env={})
            provider = RetryingProvider(wire, NO_WAIT, notices.append)
            try:
                await provider.complete(BODY)
            finally:
                await provider.close()

        with pytest.raises(ProviderUnavailable) as refused:
            asyncio.run(work())
    assert [each.data["wait"] for each in notices] == [RetryPolicy().starting_wait]
    assert f"start the server at 127.0.0.1:{port}" in str(refused.value.hint)
