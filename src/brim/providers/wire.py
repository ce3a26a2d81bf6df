"""The one client for every provider that is reached over HTTP, in any of the three APIs.

It sends a body, reads what comes back (an event stream, one JSON object, a web page, nothing, half of something) and
turns it into brim's events or an error that says what happened. It adds no retries and no text of its own, changes a
body only as its API demands, and keeps the key out of every message.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from brim.errors import InvalidRequest, ProviderError, StreamBroken, UsageError
from brim.formats import BINDING_BETA
from brim.providers.assemble import Assembler, Incomplete, Unreadable, UpstreamError, assembler_for, decode, is_error
from brim.providers.connection import Connection, Timeouts, timeouts_for
from brim.providers.error_body import mask
from brim.providers.events import Done, Event, Notice
from brim.providers.failures import Failures
from brim.providers.sse import EventReader

if TYPE_CHECKING:
    import aiohttp

Auth: TypeAlias = Literal["bearer", "x-api-key", "api-key", "none"]

_PATHS = {"openai.chat": "/chat/completions", "openai.responses": "/responses", "anthropic.messages": "/messages"}
_MOST_BYTES = 256 * 1024 * 1024  # of one answer that is not a stream: more is no answer
_SECRET = re.compile(r"auth|key|token|secret|cookie", re.I)  # header names whose values are never shown
ANTHROPIC_VERSION = "2023-06-01"
_REFUSED = (
    r"(?:extra inputs|not (?:be )?(?:supported|permitted|allowed|available)|unsupported|unknown|unrecognized|does not)"
)
_DISPENSABLE: Mapping[str, re.Pattern[str]] = {
    # what a server may not take, and the words of a 400 that say so (a message about a thinking block's signature does not)
    "temperature": re.compile(r"\btemperature\b"),
    "reasoning_effort": re.compile(rf"reasoning_effort|reasoning effort|{_REFUSED}.*\b(?:reasoning|thinking)\b"),
    "reasoning": re.compile(r"\breasoning(?:\.\w+)?\b"),
    "enable_thinking": re.compile(r"enable_thinking"),
    "thinking_budget": re.compile(r"thinking_budget"),
    "extra_body": re.compile(r"extra_body|thinking_config|thinking_budget|thinking budget"),
    # the last form: a turn that another model began has calls without thinking before them
    "thinking": re.compile(rf"thinking(?:\.\w+)*\b.*{_REFUSED}|{_REFUSED}.*\bthinking\b|expected .?thinking"),
    "output_config": re.compile(r"output_config|\beffort\b"),
    "response_format": re.compile(r"response_format|json_schema"),
    "text": re.compile(r"text\.format|json_schema"),
}


class WireProvider:
    """A provider reached over HTTP.

    `base_url` as vendors write it (".../v1"; for Anthropic with or without /v1); `key_env` names the variables that
    would hold the key, for the error where it is missing; `stream_usage`: the server takes `stream_options`.
    """

    def __init__(
        self,
        name: str,
        api: str,
        base_url: str,
        key: str | None = None,
        *,
        auth: Auth = "bearer",
        needs_key: bool = False,
        key_env: tuple[str, ...] = (),
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        stream_usage: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> None:
        if api not in _PATHS:
            raise UsageError(f"unknown api {api!r} of provider {name!r}", hint=f"one of {', '.join(_PATHS)}")
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"the base URL of {name} is no URL: {mask(base_url)!r}", hint="for example http://127.0.0.1:8080/v1"
            )
        self.name = name
        self.api = api
        self.url = endpoint(base_url, api)
        self.key_env = key_env
        self.needs_key = needs_key
        self._key = key or None
        self._auth = auth
        self._headers = dict(headers or {})
        self._stream_usage = stream_usage
        self._renamed_maximum = False
        self._left_out: set[str] = set()
        self._connection = Connection(self.url, os.environ if env is None else env, timeouts or timeouts_for(self.url))
        hidden = (self._key, parts.password, *(value for name, value in self._headers.items() if _SECRET.search(name)))
        secrets = tuple(value for value in hidden if value)
        self._failures = Failures(name, self.url, key_env, secrets, self._connection)

    def __repr__(self) -> str:
        return f"WireProvider({self.name!r}, {self.api!r}, {mask(self.url)!r})"

    async def stream(self, body: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        """Send `body` as a stream; yields events, the last one `Done`. Closing the generator closes the connection.

        A server that answers with one JSON object all the same is understood. Raises ProviderError; what text had
        arrived is in its `partial`.
        """
        async with aclosing(self._ask(body, stream=True)) as events:
            async for event in events:
                yield event

    async def complete(self, body: Mapping[str, Any]) -> Done:
        """Send `body` without streaming (a server that streams all the same is understood)."""
        done: Done | None = None
        async with aclosing(self._ask(body, stream=False)) as events:
            async for event in events:
                if isinstance(event, Done):
                    done = event
        if done is None:  # _ask ends with Done or raises
            raise StreamBroken(f"{self.name} gave no answer", provider=self.name)
        return done

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def __aenter__(self) -> WireProvider:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ------------------------------------------------------------------ one request

    async def _ask(self, body: Mapping[str, Any], *, stream: bool) -> AsyncGenerator[Event, None]:
        """Once, and once more where the server named a field it does not take: never unchanged."""
        if self.needs_key and not self._key:
            raise self._failures.no_key(body.get("model"))
        for _ in range(3 + len(_DISPENSABLE)):
            try:
                async with aclosing(self._send(body, stream=stream)) as events:
                    async for event in events:
                        yield event
                return
            except InvalidRequest as error:
                adapted = self._adapt(error, body, stream) if error.partial is None else None
                if adapted is None:
                    raise
                yield Notice(adapted, kind="adapted")
        raise ProviderError(f"{self.name} refuses the request in every form brim knows", provider=self.name)

    async def _send(self, body: Mapping[str, Any], *, stream: bool) -> AsyncGenerator[Event, None]:
        import aiohttp

        model = body.get("model") if isinstance(body.get("model"), str) else None
        assembler = assembler_for(self.api)
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._post(encode(self._payload(body, stream)), self._request_headers(body, stream))
            if response.status >= 300:
                raise await self._failures.refused(response, model)
            async for event in self._read(response, assembler, model):
                yield event
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._failures.broken(error, assembler.text, model, answered=response is not None) from error
        except ProviderError as error:
            error.partial = assembler.text or None
            raise
        finally:
            if response is not None:
                response.close()  # a stream that was left half-read must not go back to the pool

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        """The response's head. A connection that was kept open may have been closed by the server meanwhile (llama.cpp
        does so after each stream): that is no failure of the server's, so the next connection is tried."""
        import aiohttp

        for attempt in range(3):
            try:
                response = await self._connection.session().post(
                    self.url,
                    data=io.BytesIO(body),  # a large body is then sent in pieces
                    headers=headers,
                    proxy=self._connection.proxy,
                    allow_redirects=False,  # a redirect would carry the key to another host
                )
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                if not self._connection.kept or isinstance(error, aiohttp.ClientConnectorError) or attempt == 2:
                    raise
                continue
            self._connection.kept = True
            return response
        raise AssertionError("the last attempt returns or raises")

    async def _read(
        self, response: aiohttp.ClientResponse, assembler: Assembler, model: str | None
    ) -> AsyncGenerator[Event, None]:
        """The events of an answer with a good status. What it is, its first character says: headers lie."""
        reader = EventReader()
        head = b""
        streamed: bool | None = None
        whole = bytearray()
        try:
            async for chunk in _chunks(response, assembler):
                if streamed is None or len(head) < 4096:
                    head += chunk
                if streamed is None:
                    first = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
                    if not first:
                        continue
                    streamed = first not in b"{[<"
                    chunk = head
                if not streamed:
                    whole += chunk
                    if len(whole) > _MOST_BYTES:
                        raise Unreadable(f"more than {_MOST_BYTES:,} bytes")
                    continue
                for sent in reader.feed(chunk):
                    for event in assembler.read(sent):
                        yield event
            if streamed is False:
                for event in self._whole(bytes(whole), response, assembler):
                    yield event
            for sent in reader.end():
                for event in assembler.read(sent):
                    yield event
            if not assembler.started:
                raise self._failures.nothing(head, response, model)
            yield assembler.end()
        except UpstreamError as error:
            raise self._failures.classified(response.status, error.body, response.headers, model) from None
        except Unreadable as error:
            raise self._failures.unreadable(error, model) from None
        except Incomplete as error:
            raise self._failures.incomplete(error, assembler.text, model) from None

    def _whole(self, body: bytes, response: aiohttp.ClientResponse, assembler: Assembler) -> list[Event]:
        """An answer that is one JSON object. Raises UpstreamError, Unreadable."""
        try:
            value = decode(body)
        except ValueError:
            if body.lstrip()[:1] == b"<":
                raise self._failures.page(body, response.status) from None
            raise Unreadable(body[:2000].decode("utf-8", "replace")) from None
        if is_error(value) or not isinstance(value, dict):
            raise UpstreamError(value)
        return assembler.whole(value)

    # ------------------------------------------------------------------ what is sent

    def _payload(self, body: Mapping[str, Any], stream: bool) -> dict[str, Any]:
        payload = {
            key: value
            for key, value in body.items()
            if key not in ("stream", "stream_options", "betas", *self._left_out)
        }
        if self._renamed_maximum and "max_tokens" in payload:
            payload["max_completion_tokens"] = payload.pop("max_tokens")
        if stream:
            payload["stream"] = True
            options = body.get("stream_options")
            options = dict(options) if isinstance(options, Mapping) else {}
            if self.api == "openai.chat" and self._stream_usage:
                options.setdefault("include_usage", True)
            if options and (self._stream_usage or "stream_options" in body):
                payload["stream_options"] = options
        return payload

    def _adapt(self, error: InvalidRequest, body: Mapping[str, Any], stream: bool) -> str | None:
        """What to send differently after a 400 that names it; None where nothing would change."""
        text = error.message.lower()
        if stream and self._stream_usage and "stream_options" in text and self.api == "openai.chat":
            self._stream_usage = False
            return f"{self.name} does not take stream_options: asked again without it"
        if "max_completion_tokens" in text and "max_tokens" in body and not self._renamed_maximum:
            self._renamed_maximum = True
            return f"{self.name} wants max_completion_tokens instead of max_tokens: asked again with it"
        refused = [
            field
            for field, words in _DISPENSABLE.items()
            if field in body and field not in self._left_out and words.search(text)
        ]
        if refused:
            self._left_out.update(refused)
            model = f" ({body['model']})" if isinstance(body.get("model"), str) else ""
            return f"{self.name}{model} does not take {' and '.join(refused)}: asked again without"
        return None

    def _request_headers(self, body: Mapping[str, Any], stream: bool) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream" if stream else "application/json",
            "User-Agent": f"brim/{_version()}",
        }
        if self.api == "anthropic.messages":
            headers["anthropic-version"] = ANTHROPIC_VERSION
            if betas := _betas(body):
                headers["anthropic-beta"] = ",".join(betas)
        if self._key and self._auth == "bearer":
            headers["Authorization"] = f"Bearer {self._key}"
        elif self._key and self._auth != "none":
            headers[self._auth] = self._key
        return {**headers, **self._headers}


def endpoint(base_url: str, api: str) -> str:
    """The URL to post to. A base URL may already be one; Anthropic's is written with or without its /v1."""
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/")
    if not path.endswith(_PATHS[api]):
        if api == "anthropic.messages" and not re.search(r"/v\d+\w*$", path):
            path += "/v1"
        path += _PATHS[api]
    return parts._replace(path=path, fragment="").geturl()


def encode(body: Mapping[str, Any]) -> bytes:
    """A body as JSON bytes; lone surrogates, which no server takes, become U+FFFD."""
    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, TypeError, ValueError):
        text = json.dumps(body, ensure_ascii=False)
        return re.sub(r"[\ud800-\udfff]", "\ufffd", text).encode()


def _betas(body: Mapping[str, Any]) -> list[str]:
    """Values for `anthropic-beta`: those of the body's `betas` (as the SDK spells it), and what its fields need."""
    given = body.get("betas")
    betas = [str(value) for value in given] if isinstance(given, (list, tuple)) else []
    thinking = body.get("thinking")
    if isinstance(thinking, Mapping) and "block_binding" in thinking and BINDING_BETA not in betas:
        betas.append(BINDING_BETA)
    return betas


async def _chunks(response: aiohttp.ClientResponse, assembler: Assembler) -> AsyncGenerator[bytes, None]:
    """The body as it comes, until it ends or the answer does: some servers keep the connection open after the end
    mark, and some break it; neither makes a complete answer incomplete."""
    import asyncio

    import aiohttp

    try:
        async for chunk in response.content.iter_any():
            yield chunk
            if assembler.closed:
                with suppress(TimeoutError):  # an end that follows at once leaves the connection usable
                    async with asyncio.timeout(0.05):
                        await response.content.readany()
                return
    except (aiohttp.ClientError, TimeoutError, OSError):
        if not assembler.finish_reason and not assembler.closed:
            raise


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("brim")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0"
