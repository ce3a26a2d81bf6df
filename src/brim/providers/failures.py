"""What went wrong with a request, in words for the user: what happened, to whom, and the next step."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from brim.errors import AuthError, InvalidRequest, ProviderError, ProviderUnavailable, StreamBroken
from brim.providers.assemble import Incomplete, Unreadable
from brim.providers.connection import Connection, is_loopback
from brim.providers.error_body import mask, read_error, shorten

if TYPE_CHECKING:
    import aiohttp

_MOST_BYTES = 1024 * 1024  # of an error's body


class Failures:
    """Builds the errors of one provider. None of them ever holds one of `secrets`."""

    def __init__(
        self, name: str, url: str, key_env: tuple[str, ...], secrets: tuple[str, ...], connection: Connection
    ) -> None:
        self.name = name
        self.url = url
        self.key_env = key_env
        self.secrets = secrets
        self.connection = connection

    def about(self, model: str | None) -> dict[str, Any]:
        return {"provider": self.name, "model": model}

    def _who(self, model: str | None) -> str:
        return f"{self.name} ({model})" if model else self.name

    def classified(
        self, status: int | None, body: object, headers: Mapping[str, str] | None, model: str | None
    ) -> ProviderError:
        from brim.providers.errors import classify_error

        error = classify_error(status, body, headers, provider=self.name, model=model, secrets=self.secrets)
        if isinstance(error, AuthError):
            where = f" in {' or '.join(self.key_env)}" if self.key_env else ""
            error.hint = f"check the key{where}, and that it may use this model"
        elif isinstance(error, ProviderUnavailable) and is_loopback(self.url):
            error.hint = (
                f"look at the log of the server at {urlsplit(self.url).netloc.rpartition('@')[2]}, then try again"
            )
        return error

    async def refused(self, response: aiohttp.ClientResponse, model: str | None) -> ProviderError:
        """The error that a status of 300 or more is."""
        body = await response.content.read(_MOST_BYTES)
        while not response.content.at_eof() and len(body) < _MOST_BYTES:
            more = await response.content.read(_MOST_BYTES - len(body))
            if not more:
                break
            body += more
        if response.status < 400:
            target = mask(response.headers.get("Location", "nowhere"), self.secrets)
            return ProviderError(
                f"{self.name} redirects to {target}",
                status=response.status,
                hint="set the base URL to where it points",
                **self.about(model),
            )
        error = self.classified(response.status, body, response.headers, model)
        if response.status in (404, 405) and not read_error(body).found:
            error.message = f"{error.message.rstrip('.')} (asked: POST {mask(self.url, self.secrets)})"
            error.args = (error.message,)
        return error

    def no_key(self, model: object) -> AuthError:
        """A request that was not sent, for want of a key."""
        named = " or ".join(self.key_env) or "its key"
        first = self.key_env[0] if self.key_env else "the key"
        return AuthError(
            f"no key for {self.name}: {named} is not set",
            hint=f"export {first}=…, or put it into .env, or choose another model with --model",
            provider=self.name,
            model=model if isinstance(model, str) else None,
        )

    def page(self, body: bytes, status: int) -> StreamBroken:
        """A web page with a good status: something else than the API answers there."""
        title, asked = read_error(body).shown, mask(self.url, self.secrets)
        error = StreamBroken(
            f"{self.name} answered {status} with a web page, not with an API's answer: {title}",
            hint=f"check the proxy and the base URL (asked: {asked}; most servers want it to end in /v1)",
            provider=self.name,
            status=status,
        )
        error.retryable = False
        return error

    def nothing(self, head: bytes, response: aiohttp.ClientResponse, model: str | None) -> ProviderError:
        """A good status and no event of the API."""
        text = head.decode("utf-8", "replace").strip()
        if text and not re.match(r"(?:data|event|id|retry|:)", text):
            error = self.classified(response.status, text, response.headers, model)
            if type(error) is not ProviderError:
                return error
            said = shorten(mask(text, self.secrets), 300)
            return StreamBroken(f"{self._who(model)} sent something that is no answer: {said}", **self.about(model))
        return StreamBroken(
            f"{self._who(model)} answered {response.status} but the stream ended without any event",
            hint="try again; if it stays so, look for a proxy or gateway in between",
            **self.about(model),
        )

    def broken(self, error: Exception, said: str, model: str | None, *, answered: bool) -> ProviderError:
        """A connection that failed: before the answer began, or within it."""
        import ssl

        import aiohttp

        parts = urlsplit(self.url)
        where = f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
        if self.connection.proxy:
            where += f" (through the proxy {mask(self.connection.proxy)})"
        why = mask(shorten(_reason(error), 200), self.secrets)
        if answered:
            came = f" after {len(said):,} characters" if said else ""
            if isinstance(error, TimeoutError):
                why = f"nothing came for {self.connection.timeouts.between:.0f} s"
            broken = StreamBroken(
                f"the stream from {self._who(model)} at {where} broke off{came}: {why}",
                hint="the answer is incomplete: ask again",
                **self.about(model),
            )
            broken.partial = said or None
            return broken
        hint = "check the network, the base URL and the proxy settings, then try again"
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            message = f"no connection to {self.name} at {where} within {self.connection.timeouts.connect:.0f} s"
        elif isinstance(error, TimeoutError):
            message = f"{self.name} at {where} sent nothing for {self.connection.timeouts.between:.0f} s"
            hint = "the server is busy or stuck: try again, or raise the time limit"
        elif isinstance(error, (aiohttp.ClientConnectorCertificateError, ssl.SSLError, aiohttp.ClientSSLError)):
            message = f"no secure connection to {self.name} at {where}: {why}"
            hint = "behind a company proxy, point SSL_CERT_FILE to its certificate"
        elif isinstance(error, aiohttp.ClientConnectorDNSError):
            message = f"{self.name}: the host {parts.hostname} is not known here"
        elif isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, ConnectionResetError)) or (
            isinstance(error, aiohttp.ClientOSError) and not isinstance(error, aiohttp.ClientConnectorError)
        ):
            message = f"{self.name} at {where} closed the connection without an answer"
        elif isinstance(error, aiohttp.InvalidURL):
            return InvalidRequest(
                f"the URL of {self.name} cannot be used: {mask(self.url)}",
                hint="check the base URL",
                **self.about(model),
            )
        else:
            message = f"no connection to {self.name} at {where}: {why}"
            if is_loopback(self.url):
                hint = f"start the server at {where}, or choose another model with --model"
                if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno == errno.ECONNREFUSED:
                    return NothingListens(message, hint=hint, **self.about(model))
        return ProviderUnavailable(message, hint=hint, **self.about(model))

    def unreadable(self, error: Unreadable, model: str | None) -> StreamBroken:
        """JSON or an event where neither is, or something else than an answer."""
        said = shorten(mask(str(error), self.secrets), 300)
        return StreamBroken(f"{self._who(model)} sent something that is no answer: {said}", **self.about(model))

    def incomplete(self, error: Incomplete, said: str, model: str | None) -> StreamBroken:
        """A stream that ended in good order before the answer did."""
        came = f" after {len(said):,} characters" if said else ""
        return StreamBroken(
            f"the stream from {self._who(model)} broke off{came}, {error}",
            hint="the answer is incomplete: ask again",
            **self.about(model),
        )


class NothingListens(ProviderUnavailable):
    """No server runs at an address of this machine: waiting long for one that nobody started would help nobody."""


def _reason(error: Exception) -> str:
    """What a failed connection says, without the client library's own words around it."""
    import aiohttp

    if isinstance(error, (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, ConnectionResetError)):
        return "the connection was closed"
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientConnectorSSLError):
        number = error.os_error.errno
        return os.strerror(number) if number is not None and number > 0 else str(error.os_error)
    return str(error) or type(error).__name__
