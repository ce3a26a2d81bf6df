"""The one client for every provider that is reached over HTTP, in any of the three APIs.

It sends a body, reads what comes back (an event stream, one JSON object, a web page, nothing, half of something) and
turns it into brim's events or an error that says what happened. It adds no retries and no text of its own, changes a
body only as its API demands, and keeps the key out of every message.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from brim.errors import AuthError, InvalidRequest, ProviderError, ProviderUnavailable, StreamBroken, UsageError
from brim.providers.assemble import Assembler, Incomplete, Unreadable, UpstreamError, assembler_for, decode, is_error
from brim.providers.connection import Connection, Timeouts, is_loopback
from brim.providers.error_body import mask, read_error, shorten
from brim.providers.errors import classify_error
from brim.providers.events import Done, Event, Notice
from brim.providers.sse import EventReader

if TYPE_CHECKING:
    import aiohttp

Auth: TypeAlias = Literal["bearer", "x-api-key", "api-key", "none"]

_PATHS = {"openai.chat": "/chat/completions", "openai.responses": "/responses", "anthropic.messages": "/messages"}
_MOST_BYTES = 256 * 1024 * 1024  # of one answer that is not a stream: more is no answer
_MOST_ERROR_BYTES = 1024 * 1024
ANTHROPIC_VERSION = "2023-06-01"


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
        self._secrets = tuple(
            value for value in (self._key, parts.password, *self._headers.values()) if value and len(value) > 7
        )
        self._connection = Connection(self.url, os.environ if env is None else env, timeouts or Timeouts())

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
            raise self._no_key(body.get("model"))
        for _ in range(3):
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
            response = await self._connection.session().post(
                self.url,
                data=encode(self._payload(body, stream)),
                headers=self._request_headers(stream),
                proxy=self._connection.proxy,
                allow_redirects=False,  # a redirect would carry the key to another host
            )
            if response.status >= 300:
                raise await self._refused(response, model)
            async for event in self._read(response, assembler, model):
                yield event
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._broken(error, assembler, model, answered=response is not None) from error
        except ProviderError as error:
            error.partial = assembler.text or None
            raise
        finally:
            if response is not None:
                response.close()  # a stream that was left half-read must not go back to the pool

    async def _read(
        self, response: aiohttp.ClientResponse, assembler: Assembler, model: str | None
    ) -> AsyncGenerator[Event, None]:
        """The events of an answer with a good status. What it is, its first character says: headers lie."""
        reader = EventReader()
        head = b""
        streamed: bool | None = None
        whole = bytearray()
        try:
            async for chunk in response.content.iter_any():
                if streamed is None:
                    head += chunk
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
                if len(head) < 4096:
                    head += chunk
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
                raise self._nothing(head, response, model)
            yield assembler.end()
        except UpstreamError as error:
            raise self._classified(response.status, error.body, response.headers, model) from None
        except Unreadable as error:
            said = shorten(mask(str(error), self._secrets), 300)
            raise StreamBroken(
                f"{self._who(model)} sent something that is no answer: {said}", **self._about(model)
            ) from None
        except Incomplete as error:
            came = f" after {len(assembler.text):,} characters" if assembler.text else ""
            raise StreamBroken(
                f"the stream from {self._who(model)} broke off{came}, {error}",
                hint="the answer is incomplete: ask again",
                **self._about(model),
            ) from None

    def _whole(self, body: bytes, response: aiohttp.ClientResponse, assembler: Assembler) -> list[Event]:
        """An answer that is one JSON object. Raises UpstreamError, Unreadable."""
        try:
            value = decode(body)
        except ValueError:
            if body.lstrip()[:1] == b"<":
                raise self._page(body, response.status) from None
            raise Unreadable(body[:2000].decode("utf-8", "replace")) from None
        if is_error(value) or not isinstance(value, dict):
            raise UpstreamError(value)
        return assembler.whole(value)

    # ------------------------------------------------------------------ what is sent

    def _payload(self, body: Mapping[str, Any], stream: bool) -> dict[str, Any]:
        payload = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
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
        return None

    def _request_headers(self, stream: bool) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream" if stream else "application/json",
            "User-Agent": f"brim/{_version()}",
        }
        if self.api == "anthropic.messages":
            headers["anthropic-version"] = ANTHROPIC_VERSION
        if self._key and self._auth == "bearer":
            headers["Authorization"] = f"Bearer {self._key}"
        elif self._key and self._auth != "none":
            headers[self._auth] = self._key
        return {**headers, **self._headers}

    # ------------------------------------------------------------------ what went wrong

    def _about(self, model: str | None) -> dict[str, Any]:
        return {"provider": self.name, "model": model}

    def _who(self, model: str | None) -> str:
        return f"{self.name} ({model})" if model else self.name

    def _classified(
        self, status: int | None, body: object, headers: Mapping[str, str] | None, model: str | None
    ) -> ProviderError:
        error = classify_error(status, body, headers, provider=self.name, model=model, secrets=self._secrets)
        if isinstance(error, AuthError):
            where = f" in {' or '.join(self.key_env)}" if self.key_env else ""
            error.hint = f"check the key{where}, and that it may use this model"
        elif isinstance(error, ProviderUnavailable) and is_loopback(self.url):
            error.hint = (
                f"look at the log of the server at {urlsplit(self.url).netloc.rpartition('@')[2]}, then try again"
            )
        return error

    async def _refused(self, response: aiohttp.ClientResponse, model: str | None) -> ProviderError:
        """The error that a status of 300 or more is."""
        body = await response.content.read(_MOST_ERROR_BYTES)
        while not response.content.at_eof() and len(body) < _MOST_ERROR_BYTES:
            more = await response.content.read(_MOST_ERROR_BYTES - len(body))
            if not more:
                break
            body += more
        if response.status < 400:
            target = mask(response.headers.get("Location", "nowhere"), self._secrets)
            return ProviderError(
                f"{self.name} redirects to {target}",
                status=response.status,
                hint="set the base URL to where it points",
                **self._about(model),
            )
        error = self._classified(response.status, body, response.headers, model)
        if response.status in (404, 405) and not read_error(body).found:
            error.message = f"{error.message.rstrip('.')} (asked: POST {mask(self.url, self._secrets)})"
            error.args = (error.message,)
        return error

    def _no_key(self, model: object) -> AuthError:
        named = " or ".join(self.key_env) or "its key"
        return AuthError(
            f"no key for {self.name}: {named} is not set",
            hint=f"export {self.key_env[0] if self.key_env else 'the key'}=…, or put it into .env, or choose another model with --model",
            provider=self.name,
            model=model if isinstance(model, str) else None,
        )

    def _page(self, body: bytes, status: int) -> StreamBroken:
        title = read_error(body).shown
        error = StreamBroken(
            f"{self.name} answered {status} with a web page, not with an API's answer: {title}",
            hint=f"check the base URL (asked: {mask(self.url, self._secrets)}; most servers want it to end in /v1) and the proxy",
            provider=self.name,
            status=status,
        )
        error.retryable = False
        return error

    def _nothing(self, head: bytes, response: aiohttp.ClientResponse, model: str | None) -> ProviderError:
        """A good status and no event of the API."""
        text = head.decode("utf-8", "replace").strip()
        if text and not re.match(r"(?:data|event|id|retry|:)", text):
            error = self._classified(response.status, text, response.headers, model)
            if type(error) is not ProviderError:
                return error
            said = shorten(mask(text, self._secrets), 300)
            return StreamBroken(f"{self._who(model)} sent something that is no answer: {said}", **self._about(model))
        return StreamBroken(
            f"{self._who(model)} answered {response.status} but the stream ended without any event",
            hint="try again; if it stays so, look for a proxy or gateway in between",
            **self._about(model),
        )

    def _broken(self, error: Exception, assembler: Assembler, model: str | None, *, answered: bool) -> ProviderError:
        """A connection that failed: before the answer began, or within it."""
        import ssl

        import aiohttp

        parts = urlsplit(self.url)
        where = f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
        if self._connection.proxy:
            where += f" (through the proxy {mask(self._connection.proxy)})"
        why = mask(shorten(_reason(error), 200), self._secrets)
        if answered:
            came = f" after {len(assembler.text):,} characters" if assembler.text else ""
            if isinstance(error, TimeoutError):
                why = f"nothing came for {self._connection.timeouts.between:.0f} s"
            broken = StreamBroken(
                f"the stream from {self._who(model)} at {where} broke off{came}: {why}",
                hint="the answer is incomplete: ask again",
                **self._about(model),
            )
            broken.partial = assembler.text or None
            return broken
        hint = "check the network, the base URL and the proxy settings, then try again"
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            message = f"no connection to {self.name} at {where} within {self._connection.timeouts.connect:.0f} s"
        elif isinstance(error, TimeoutError):
            message = f"{self.name} at {where} sent nothing for {self._connection.timeouts.between:.0f} s"
            hint = "the server is busy or stuck: try again, or raise the time limit"
        elif isinstance(error, (aiohttp.ClientConnectorCertificateError, ssl.SSLError, aiohttp.ClientSSLError)):
            message = f"no secure connection to {self.name} at {where}: {why}"
            hint = "behind a company proxy, point SSL_CERT_FILE to its certificate"
        elif isinstance(error, aiohttp.ClientConnectorDNSError):
            message = f"{self.name}: the host {parts.hostname} is not known here"
        elif isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, ConnectionResetError)):
            message = f"{self.name} at {where} closed the connection without an answer"
        elif isinstance(error, aiohttp.InvalidURL):
            return InvalidRequest(
                f"the URL of {self.name} cannot be used: {mask(self.url)}",
                hint="check the base URL",
                **self._about(model),
            )
        else:
            message = f"no connection to {self.name} at {where}: {why}"
            if is_loopback(self.url):
                hint = f"start the server at {where}, or choose another model with --model"
        return ProviderUnavailable(message, hint=hint, **self._about(model))


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


def _reason(error: Exception) -> str:
    """What a failed connection says, without the client library's own words around it."""
    import aiohttp

    if isinstance(error, (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, ConnectionResetError)):
        return "the connection was closed"
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientConnectorSSLError):
        number = error.os_error.errno
        return os.strerror(number) if number is not None and number > 0 else str(error.os_error)
    return str(error) or type(error).__name__


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("brim")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0"
