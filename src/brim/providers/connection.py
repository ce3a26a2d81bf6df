"""How brim reaches a server: proxy and certificate settings of the environment, time limits, one connection pool.

A loopback server is never asked through a proxy. `~/.netrc` is not read: a key goes only where it was given for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from brim.errors import ConfigError

if TYPE_CHECKING:
    import asyncio
    import ssl

    import aiohttp

_LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104 - compared with, never bound
_CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds. `connect`: to open a connection; `between`: between two pieces of an answer, the first one included."""

    connect: float = 10.0
    between: float = 300.0


BETWEEN_LOCAL = 1_800.0
"""`between` of a server on this machine: without a graphics card a model reads some 25 to 100 tokens a second, so a
prompt of 40,000 tokens takes half an hour before the first word, and nothing is wrong."""


def timeouts_for(url: str, between: float | None = None) -> Timeouts:
    """The timeouts for a server: `between` where the user has set it, else longer for one on this machine."""
    return Timeouts(between=between or (BETWEEN_LOCAL if is_loopback(url) else Timeouts().between))


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    host = (urlsplit(url).hostname or "").lower()
    return host in _LOOPBACK or host.startswith("127.") or host.endswith(".localhost")


def proxy_for(url: str, env: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for a URL (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY; NO_PROXY), None for none."""
    if is_loopback(url):
        return None
    named = {key.lower(): value.strip() for key, value in env.items() if key.lower().endswith("_proxy")}
    parts = urlsplit(url)
    host, port = (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)
    for entry in named.get("no_proxy", "").lower().split(","):
        name, _, wanted = entry.strip().partition(":")
        name = name.removeprefix("*").lstrip(".")
        if entry.strip() == "*" or (
            name and (not wanted or wanted == str(port)) and (host == name or host.endswith(f".{name}"))
        ):
            return None
    proxy = named.get(f"{parts.scheme}_proxy") or named.get("all_proxy")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy or None


def ssl_context_for(env: Mapping[str, str]) -> ssl.SSLContext:
    """Certificates from SSL_CERT_FILE, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE and SSL_CERT_DIR, else the system's.

    Raises ConfigError that names the variable whose file cannot be read.
    """
    import ssl

    name = next((name for name in _CA_VARIABLES if env.get(name)), None)
    folder = env.get("SSL_CERT_DIR") or None
    try:
        if name is None:
            context = ssl.create_default_context()
            if folder:
                context.load_verify_locations(capath=folder)
            return context
        path = env[name]
        if os.path.isdir(path):
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path, capath=folder)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"the certificates named by {name or 'SSL_CERT_DIR'} cannot be used: {env.get(name or 'SSL_CERT_DIR')} ({error})",
            hint="point it to a PEM file, or unset it",
        ) from error


class Connection:
    """One connection pool to one server, made on first use in the running event loop."""

    def __init__(self, url: str, env: Mapping[str, str], timeouts: Timeouts) -> None:
        self.url = url
        self.timeouts = timeouts
        self.proxy = proxy_for(url, env)
        self.kept = False  # an answer has come, so its connection may be in the pool
        self._env = env
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def session(self) -> aiohttp.ClientSession:
        """The pool; a new one where the event loop has changed."""
        import asyncio

        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            context: ssl.SSLContext | bool = ssl_context_for(self._env) if self.url.startswith("https:") else True
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=context, limit=0, ttl_dns_cache=60),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self.timeouts.connect, sock_read=self.timeouts.between
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            self._loop = loop
            self.kept = False
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None and not session.closed:
            await session.close()
