"""The wire client over real HTTP: answers, failures and their words, keys, headers, cancellation."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, TypeVar

import pytest

from brim.errors import (
    AuthError,
    ConfigError,
    InvalidRequest,
    ProviderError,
    ProviderOverflow,
    ProviderUnavailable,
    RateLimited,
    StreamBroken,
    UsageError,
)
from brim.formats import BINDING_BETA, parse_message
from brim.providers import Done, Notice, TextDelta, WireProvider
from brim.providers.connection import Timeouts, proxy_for, ssl_context_for, timeouts_for
from brim.providers.events import Event, Provider
from brim.providers.presets import open_provider, own_providers, resolve_model
from brim.providers.wire import endpoint
from brim.testing import (
    ScriptedProvider,
    broken_stream,
    empty_stream,
    fault,
    html_page,
    raw,
    reply,
    stream_error,
)

T = TypeVar("T")
APIS = ("openai.chat", "openai.responses", "anthropic.messages")
KEY = "sk-test-verysecretkey123"


def run(work: Awaitable[T]) -> T:
    """Run one coroutine to its end."""

    async def main() -> T:
        return await work

    return asyncio.run(main())


def body_of(api: str, text: str = "hi") -> dict[str, Any]:
    """A small request of an API."""
    if api == "openai.responses":
        return {"model": "m", "input": text}
    return {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 100}


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@asynccontextmanager
async def served(handle: Handler) -> AsyncGenerator[str, None]:
    """A bare TCP server; gives its base URL, and waits for its handlers at the end."""
    tasks: list[asyncio.Task[None]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(answer(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
        await asyncio.gather(*tasks)


def client(upstream: ScriptedProvider, api: str = "openai.chat", **more: Any) -> WireProvider:
    """A client of the scripted provider."""
    base = upstream.url if api == "anthropic.messages" else upstream.base_url
    return WireProvider("test", api, base, more.pop("key", KEY), env={}, **more)


async def events_of(provider: Provider, body: Mapping[str, Any]) -> list[Event]:
    """All events of a stream."""
    async with aclosing(provider.stream(body)) as events:
        return [event async for event in events]


async def closing(provider: WireProvider) -> list[Event]:
    """The events of one request to a provider that is closed after it."""
    async with provider:
        return await events_of(provider, body_of(provider.api))


def ask(upstream: ScriptedProvider, api: str = "openai.chat", **more: Any) -> list[Event]:
    """The events of one streamed request."""

    async def work() -> list[Event]:
        async with client(upstream, api, **more) as provider:
            return await events_of(provider, body_of(api))

    return run(work())


def failure(upstream: ScriptedProvider, api: str = "openai.chat", **more: Any) -> tuple[ProviderError, str]:
    """The error of one streamed request, and the text that came before it."""
    said: list[str] = []

    async def work() -> None:
        async with client(upstream, api, **more) as provider, aclosing(provider.stream(body_of(api))) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    said.append(event.text)

    with pytest.raises(ProviderError) as caught:
        run(work())
    return caught.value, "".join(said)


@pytest.mark.parametrize("api", APIS)
def test_streamed_and_whole_answers_are_the_same(api: str) -> None:
    """Text, thinking and parallel calls arrive the same streamed and not, in each API, and parse into one conversation."""
    wanted: list[tuple[str, dict[str, Any]]] = [("grep", {"pattern": "搜索"}), ("read", {"path": "a"})]
    answer = reply("你好, a longer answer", thinking="let me see", calls=wanted)
    with ScriptedProvider([answer, answer]) as upstream:

        async def work() -> tuple[list[Event], Done]:
            async with client(upstream, api) as provider:
                return await events_of(provider, body_of(api)), await provider.complete(body_of(api))

        events, whole = run(work())
    done = events[-1]
    assert isinstance(done, Done)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "你好, a longer answer"
    for ending in (done, whole):
        messages = parse_message(ending.message, ending.api)
        assert "".join(message.text for message in messages) == "你好, a longer answer"
        calls = [called for message in messages for called in message.calls]
        assert [(called.name, json.loads(called.arguments)) for called in calls] == wanted
        assert ending.usage.reported
        assert ending.usage.input > 0
        assert ending.response_id
    assert upstream.requests[0].stream
    assert not upstream.requests[1].stream


@pytest.mark.parametrize(
    ("api", "path", "header", "value"),
    [
        ("openai.chat", "/v1/chat/completions", "Authorization", f"Bearer {KEY}"),
        ("openai.responses", "/v1/responses", "Authorization", f"Bearer {KEY}"),
        ("anthropic.messages", "/v1/messages", "x-api-key", KEY),
    ],
)
def test_what_is_sent(api: str, path: str, header: str, value: str) -> None:
    """The body goes out as it is, with `stream` and usage asked for, the key in the API's header and nowhere else."""
    auth: Any = "x-api-key" if api.startswith("anthropic") else "bearer"
    with ScriptedProvider([reply("ok")]) as upstream:
        ask(upstream, api, auth=auth, headers={"X-Own": "1"})
    (request,) = upstream.requests
    assert request.path == path
    assert request.headers[header] == value
    assert request.headers["X-Own"] == "1"
    assert KEY not in request.raw.decode()
    expected = {**body_of(api), "stream": True}
    if api == "openai.chat":
        expected["stream_options"] = {"include_usage": True}
    assert request.body == expected
    assert ("anthropic-version" in request.headers) == (api == "anthropic.messages")


def test_betas_become_a_header() -> None:
    """`betas` of an Anthropic body, and what its fields need, go into the header, not into the body."""
    body = {
        **body_of("anthropic.messages"),
        "betas": ["x-1"],
        "thinking": {"block_binding": {"prefix_mismatch_behavior": "drop_block"}},
    }
    with ScriptedProvider([reply("ok")]) as upstream:

        async def work() -> Done:
            async with client(upstream, "anthropic.messages") as provider:
                return await provider.complete(body)

        run(work())
    assert upstream.requests[0].headers["anthropic-beta"] == f"x-1,{BINDING_BETA}"
    assert "betas" not in upstream.requests[0].body


@pytest.mark.parametrize("api", APIS)
def test_error_in_a_stream_keeps_what_came(api: str) -> None:
    """An error inside a 200 stream raises with the upstream's message; the text before it was shown and is in `partial`."""
    with ScriptedProvider([stream_error(after="Partial"), stream_error()]) as upstream:
        error, said = failure(upstream, api)
        first, nothing = failure(upstream, api)
    assert isinstance(error, ProviderUnavailable)
    assert "Overloaded" in error.message
    assert (said, error.partial) == ("Partial", "Partial")
    assert "Overloaded" in first.message
    assert (nothing, first.partial) == ("", None)


@pytest.mark.parametrize(
    ("entry", "kind", "words"),
    [
        (
            raw('event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'),
            ProviderUnavailable,
            "Overloaded",
        ),
        (
            raw(
                'data: {"error":{"message":"This model\'s maximum context length is 8192 tokens. However, you requested '
                '9000 tokens","code":400}}\n\ndata: [DONE]\n\n'
            ),
            ProviderOverflow,
            "you requested 9000 tokens",
        ),
        (empty_stream(), StreamBroken, "stream ended without any event"),
        (raw("data: [DONE]\n\n"), StreamBroken, "stream ended without any event"),
        (raw(": keep-alive\n\n"), StreamBroken, "stream ended without any event"),
        (raw("upstream connect error or disconnect"), ProviderUnavailable, "upstream connect error"),
        (raw("just words"), StreamBroken, "just words"),
        (raw("data: <oops>\n\n"), StreamBroken, "<oops>"),
        (
            raw('{"error": {"message": "Provider returned error", "code": 429}}', content_type="application/json"),
            RateLimited,
            "429",
        ),
        (raw('{"hello": 1}', content_type="application/json"), StreamBroken, "hello"),
        (raw('{"choices": [{"mess', content_type="application/json"), StreamBroken, "mess"),
        (html_page("Welcome to nginx", status=200), StreamBroken, "Welcome to nginx"),
        (html_page("502 Bad Gateway"), ProviderUnavailable, "502 Bad Gateway"),
        (fault(404, "404 page not found"), InvalidRequest, "/v1/chat/completions"),
        (
            fault(307, "", headers={"Location": "http://127.0.0.1:1/other"}),
            ProviderError,
            "redirects to http://127.0.0.1:1/other",
        ),
        (fault(500), ProviderUnavailable, "answered 500: scripted fault 500"),
        (fault(429, retry_after=3), RateLimited, "429"),
        (fault(400, "bad thing"), InvalidRequest, "bad thing"),
    ],
)
def test_each_failure_has_its_words(entry: Any, kind: type[ProviderError], words: str) -> None:
    """Whatever a server sends instead of an answer becomes an error that shows it and names a next step."""
    with ScriptedProvider([entry]) as upstream:
        error, said = failure(upstream)
    assert type(error) is kind, error
    assert words in error.message
    assert said == ""
    assert error.partial is None
    assert error.provider == "test"
    if kind is RateLimited and error.status == 429:
        assert error.retry_after == 3


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("how", ["close", "reset"])
def test_stream_that_breaks_off(api: str, how: Any) -> None:
    """A stream that ends or is reset before its answer does is broken: what came is kept, never passed off as whole."""
    with ScriptedProvider([broken_stream("Half an ans", how=how)]) as upstream:
        error, said = failure(upstream, api)
    assert type(error) is StreamBroken
    assert (said, error.partial) == ("Half an ans", "Half an ans")
    assert "broke off after 11 characters" in error.message
    assert error.hint


@pytest.mark.parametrize("api", APIS)
def test_reset_without_an_answer(api: str) -> None:
    """A connection that is cut instead of an answer is an unavailable provider, not a broken stream."""
    with ScriptedProvider([broken_stream("", how="reset")]) as upstream:

        async def work() -> None:
            async with client(upstream, api) as provider:
                await provider.complete(body_of(api))

        with pytest.raises(ProviderUnavailable, match="closed the connection without an answer"):
            run(work())


def test_answer_without_end_mark_and_open_connections() -> None:
    """A finish reason without [DONE] is a complete answer; so is an end mark on a connection that stays open, or is reset."""
    chunk = 'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
    with ScriptedProvider([raw(chunk)]) as upstream:
        assert ask(upstream)[0] == TextDelta("hi")

    async def serve(hang: bool) -> list[Event]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\n"
            writer.write((head + chunk + ("data: [DONE]\n\n" if hang else "")).encode())
            await writer.drain()
            while hang and await reader.read(100_000):  # the request's body, then nothing until the client closes
                pass

        async with served(handle) as url, WireProvider("t", "openai.chat", url, env={}) as provider:
            return await events_of(provider, body_of("openai.chat"))

    for hang in (True, False):
        assert run(serve(hang))[0] == TextDelta("hi")


@pytest.mark.parametrize("api", APIS)
def test_json_for_a_stream_and_a_stream_for_json(api: str) -> None:
    """A server that answers a stream request with one object, or the other way about, is understood."""
    with ScriptedProvider([reply("whole")]) as upstream:
        whole = run(_whole_bytes(upstream, api))
    with ScriptedProvider([raw(whole, content_type="application/json")]) as upstream:
        events = ask(upstream, api)
    assert events[0] == TextDelta("whole")
    assert isinstance(events[-1], Done)


async def _whole_bytes(upstream: ScriptedProvider, api: str) -> bytes:
    import aiohttp

    path = {"openai.chat": "chat/completions", "openai.responses": "responses", "anthropic.messages": "messages"}[api]
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{upstream.base_url}/{path}", json=body_of(api)) as response,
    ):
        return await response.read()


def test_stream_for_a_whole_request() -> None:
    """A gateway that streams although it was not asked to is understood by `complete`."""
    chunks = 'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    with ScriptedProvider([raw(chunks)]) as upstream:

        async def work() -> Done:
            async with client(upstream) as provider:
                return await provider.complete(body_of("openai.chat"))

        assert run(work()).message == {"role": "assistant", "content": "hi"}


def test_no_key_names_the_variables() -> None:
    """A provider that needs a key and has none says which variables would hold it, and sends nothing."""
    with ScriptedProvider([reply("never")]) as upstream:
        error, _ = failure(upstream, key=None, needs_key=True, key_env=("DASHSCOPE_API_KEY", "OTHER_KEY"))
    assert isinstance(error, AuthError)
    assert "DASHSCOPE_API_KEY or OTHER_KEY is not set" in error.message
    assert "export DASHSCOPE_API_KEY" in (error.hint or "")
    assert upstream.requests == []


@pytest.mark.parametrize("api", APIS)
def test_wrong_key(api: str) -> None:
    """A wrong key is an auth error that names the variable to check and never the key, however the server quotes it."""
    body = {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}
    with ScriptedProvider([fault(401, body)], key=None) as upstream:
        error, _ = failure(upstream, api, key_env=("OPENAI_API_KEY",))
    assert type(error) is AuthError
    assert error.code == 77
    assert "OPENAI_API_KEY" in (error.hint or "")
    assert KEY not in f"{error.message}{error.hint}{error.as_dict()}{error!r}"
    with ScriptedProvider([reply("never")], key="another") as upstream:
        assert type(failure(upstream, api)[0]) is AuthError
        assert KEY not in repr(client(upstream, api))


def test_dead_port_names_host_port_and_next_step() -> None:
    """No server at all: the message names host and port, the hint what to start."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        provider = WireProvider("ollama", "openai.chat", f"http://127.0.0.1:{port}/v1", env={})
        with pytest.raises(ProviderUnavailable) as caught:
            run(closing(provider))
    assert f"127.0.0.1:{port}" in caught.value.message
    assert "refused" in caught.value.message.lower()
    assert f"start the server at 127.0.0.1:{port}" in (caught.value.hint or "")
    assert caught.value.retryable


def test_unknown_host_and_bad_urls() -> None:
    """A host that does not exist is named; a base URL that is none is a usage error."""
    provider = WireProvider("x", "openai.chat", "http://no-such-host.invalid/v1", env={})
    with pytest.raises(ProviderUnavailable, match=r"no-such-host\.invalid"):
        run(closing(provider))
    for bad in ("", "localhost:80", "ftp://x/v1", "http://"):
        with pytest.raises(UsageError):
            WireProvider("x", "openai.chat", bad, env={})
    with pytest.raises(UsageError, match="unknown api"):
        WireProvider("x", "soap", "http://x/v1", env={})


def test_silence_is_not_waited_out_for_ever() -> None:
    """A server that stops in the middle of its answer is given up after the time between chunks."""
    with ScriptedProvider([broken_stream("Half", how="hang")]) as upstream:
        error, said = failure(upstream, timeouts=Timeouts(between=0.05))
    assert type(error) is StreamBroken
    assert said == "Half"
    assert "nothing came for" in error.message


def test_a_server_on_this_machine_may_read_for_longer() -> None:
    """Silence is borne longer from a model on this machine, which may read slowly; a setting has the last word."""
    near, far = timeouts_for("http://127.0.0.1:11434/v1"), timeouts_for("https://api.openai.com/v1")
    assert near.between > far.between == Timeouts().between
    with ScriptedProvider([broken_stream("Half", how="hang")]) as upstream:
        config = {"providers": {"work": {"base_url": f"{upstream.url}/v1", "timeout": 0.05}}}

        async def work() -> None:
            provider = open_provider(resolve_model("work/m", {}, config), env={})
            try:
                async for _ in provider.stream(body_of("openai.chat")):
                    pass
            finally:
                await provider.close()

        with pytest.raises(StreamBroken, match="nothing came for"):
            run(work())


def test_a_timeout_that_is_none_is_refused() -> None:
    """A timeout of no time is a mistake in the config, named as one."""
    with pytest.raises(ConfigError, match="timeout is 0"):
        own_providers({"providers": {"work": {"base_url": "http://x/v1", "timeout": 0}}})


@pytest.mark.parametrize("api", APIS)
def test_leaving_a_stream_closes_the_connection(api: str) -> None:
    """Breaking off a stream, or cancelling its task, closes the connection, so that the server stops generating."""
    with ScriptedProvider([broken_stream("Half", how="hang"), broken_stream("Half", how="hang")]) as upstream:

        async def leave() -> None:
            async with client(upstream, api) as provider:
                async with aclosing(provider.stream(body_of(api))) as events:
                    async for _ in events:
                        break

                started = asyncio.Event()

                async def read() -> None:
                    async with aclosing(provider.stream(body_of(api))) as more:
                        async for _ in more:
                            started.set()

                task = asyncio.create_task(read())
                await started.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                gone = await asyncio.to_thread(
                    upstream.wait_for,
                    lambda up: len(up.requests) == 2 and all(request.aborted for request in up.requests),
                )
                assert gone

        run(leave())


def test_connections_are_used_again() -> None:
    """Complete answers leave the connection open for the next request, streamed or not; each loop gets its own pool."""
    ports: set[int] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports.add(writer.get_extra_info("peername")[1])
        chunk = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
        answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        while head := await _head(reader):
            lines = head.lower().split(b"\r\n")
            length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
            await reader.readexactly(length)
            writer.write(answer + b"%x\r\n%s\r\n0\r\n\r\n" % (len(chunk), chunk))
            await writer.drain()

    async def work() -> None:
        async with served(handle) as url, WireProvider("t", "openai.chat", url, env={}) as provider:
            for _ in range(3):
                assert isinstance((await events_of(provider, body_of("openai.chat")))[-1], Done)

    run(work())
    assert len(ports) == 1


def test_connection_that_the_server_closed_meanwhile() -> None:
    """A kept connection that turns out to be closed is not a failure: the request goes out on a new one."""
    connections = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        head = await _head(reader)
        length = next(
            int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
        )
        await reader.readexactly(length)
        whole = b'{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}'
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(whole), whole)
        )
        await writer.drain()
        await reader.read(1)  # the next request has begun: close without an answer

    async def work() -> None:
        async with served(handle) as url, WireProvider("t", "openai.chat", url, env={}) as provider:
            for _ in range(3):
                assert (await provider.complete(body_of("openai.chat"))).ended == "complete"

    run(work())
    assert connections == 3


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def test_a_client_serves_several_event_loops() -> None:
    """The same client may be used from one `asyncio.run` after another."""
    with ScriptedProvider([reply("a"), reply("b")]) as upstream:
        provider = client(upstream)

        async def once() -> list[Event]:
            try:
                return await events_of(provider, body_of("openai.chat"))
            finally:
                await provider.close()

        assert [run(once())[0], run(once())[0]] == [TextDelta("a"), TextDelta("b")]


@pytest.mark.parametrize(
    ("message", "gone", "there"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_tokens",
            "max_completion_tokens",
        ),
        ("stream_options: Extra inputs are not permitted", "stream_options", "stream"),
    ],
)
def test_a_refused_field_is_not_sent_again(message: str, gone: str, there: str) -> None:
    """A 400 that names a field of ours is answered with a changed request, said in a notice, and remembered."""
    with ScriptedProvider([fault(400, {"error": {"message": message}}), reply("ok"), reply("ok")]) as upstream:

        async def work() -> list[list[Event]]:
            async with client(upstream) as provider:
                return [await events_of(provider, body_of("openai.chat")) for _ in range(2)]

        first, second = run(work())
    assert isinstance(first[0], Notice)
    assert gone in first[0].text
    assert not any(isinstance(event, Notice) for event in second)
    assert gone in upstream.requests[0].body
    for request in upstream.requests[1:]:
        assert gone not in request.body
        assert there in request.body


def test_a_400_is_never_repeated() -> None:
    """Any other 400 is sent once."""
    with ScriptedProvider([fault(400, "max_tokens is bad")], repeat_last=True) as upstream:
        failure(upstream)
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("api", APIS)
def test_overflow_is_read_over_the_wire(api: str) -> None:
    """A request over the window is an overflow in each API, with the figures the API gives."""
    with ScriptedProvider([reply("never")], window=50, count=lambda body: 60) as upstream:
        error, _ = failure(upstream, api)
    assert isinstance(error, ProviderOverflow)
    if api == "openai.chat":
        assert (error.window, error.requested) == (50, 160)
    elif api == "anthropic.messages":
        assert (error.window, error.requested) == (50, 60)
    else:
        assert (error.window, error.requested) == (None, None)


def test_lone_surrogates_and_big_bodies_are_sent() -> None:
    """A body with half a surrogate pair is sent with U+FFFD in its place; one of megabytes goes through."""
    with ScriptedProvider([reply("ok")], repeat_last=True) as upstream:

        async def work() -> None:
            async with client(upstream) as provider:
                await provider.complete(body_of("openai.chat", "a\ud800b"))
                await provider.complete(body_of("openai.chat", "x" * 5_000_000))

        run(work())
    assert upstream.requests[0].messages[0]["content"] == "a\ufffdb"
    assert len(upstream.requests[1].messages[0]["content"]) == 5_000_000


@pytest.mark.parametrize(
    ("base", "api", "url"),
    [
        ("https://api.openai.com/v1", "openai.chat", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/", "openai.responses", "https://api.openai.com/v1/responses"),
        ("https://api.anthropic.com", "anthropic.messages", "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com/v1", "anthropic.messages", "https://api.anthropic.com/v1/messages"),
        ("https://h/anthropic", "anthropic.messages", "https://h/anthropic/v1/messages"),
        ("http://h/v1/chat/completions", "openai.chat", "http://h/v1/chat/completions"),
        (
            "http://h/openai/deployments/d?api-version=1",
            "openai.chat",
            "http://h/openai/deployments/d/chat/completions?api-version=1",
        ),
    ],
)
def test_endpoints(base: str, api: str, url: str) -> None:
    """A base URL as vendors write it, with or without /v1 for Anthropic, gives the URL to post to; its query stays."""
    assert endpoint(base, api) == url


@pytest.mark.parametrize(
    ("url", "env", "proxy"),
    [
        ("https://api.x.com/v1", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.x.com/v1", {"https_proxy": "p:1"}, "http://p:1"),
        ("https://api.x.com/v1", {"ALL_PROXY": "http://p:2"}, "http://p:2"),
        ("https://api.x.com/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://api.x.com/v1", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.x.com/v1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x.com"}, None),
        ("https://api.x.com/v1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "localhost, .x.com"}, None),
        ("https://api.x.com/v1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x.com:8443"}, "http://p:1"),
        ("https://api.notx.com/v1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x.com"}, "http://p:1"),
        ("https://api.x.com/v1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("http://127.0.0.1:8080/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://localhost:8080/v1", {"HTTP_PROXY": "http://p:1", "ALL_PROXY": "http://p:1"}, None),
    ],
)
def test_proxy_of_the_environment(url: str, env: dict[str, str], proxy: str | None) -> None:
    """Proxy variables are honoured in either case, NO_PROXY too; loopback is never asked through a proxy."""
    assert proxy_for(url, env) == proxy


def test_request_goes_through_the_proxy() -> None:
    """A request to another host is sent to the proxy that the environment names."""
    with ScriptedProvider([fault(407, "proxy says no")]) as upstream:

        async def work() -> None:
            async with WireProvider(
                "x",
                "openai.chat",
                "http://model.example/v1",
                KEY,
                env={"HTTP_PROXY": f"http://127.0.0.1:{upstream.url.rpartition(':')[2]}"},
            ) as provider:
                await events_of(provider, body_of("openai.chat"))

        with pytest.raises(InvalidRequest, match="proxy says no"):
            run(work())
    assert upstream.requests[0].headers["Host"] == "model.example"


def test_certificates_of_the_environment(tmp_path: Any) -> None:
    """A certificate file that cannot be read is named with its variable; the system's store is the default."""
    assert ssl_context_for({}).verify_mode == ssl.CERT_REQUIRED
    bad = tmp_path / "ca.pem"
    bad.write_text("no certificate")
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        with pytest.raises(ConfigError, match=name):
            ssl_context_for({name: str(bad)})
        with pytest.raises(ConfigError, match=name):
            ssl_context_for({name: str(tmp_path / "missing.pem")})


def test_client_is_a_provider() -> None:
    """The wire client fits the seam that the agent uses."""
    assert isinstance(WireProvider("x", "openai.chat", "http://127.0.0.1:1/v1", env={}), Provider)


def test_parallel_requests_do_not_mix() -> None:
    """Twenty streams at once each get their own answer."""

    def answer(received: Any) -> Any:
        return reply(f"echo {received.messages[-1]['content']}", piece=3)

    with ScriptedProvider([answer], repeat_last=True) as upstream:

        async def one(provider: WireProvider, number: int) -> str:
            events = await events_of(provider, body_of("openai.chat", str(number)))
            return "".join(event.text for event in events if isinstance(event, TextDelta))

        async def work() -> list[str]:
            async with client(upstream) as provider:
                return list(await asyncio.gather(*(one(provider, number) for number in range(20))))

        assert run(work()) == [f"echo {number}" for number in range(20)]
