"""What only llama.cpp's own server can say: tokens of texts, the text of a chat template, tokens of a whole request.

Synchronous, over one kept connection: each call is a millisecond on loopback, and a counter is asked from ordinary
code.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from brim.conversation import Message
from brim.errors import ProviderError, ProviderUnavailable
from brim.providers.errors import classify_error
from brim.tokens.llama import LlamaCounter, Written

_SEPARATOR = 0  # a token between texts of one batch; its number does not matter as long as the texts do not hold it


class LlamaClient:
    """`base_url` without a path. Raises ProviderError."""

    def __init__(self, base_url: str, api_key: str | None = None, *, timeout: float = 60.0) -> None:
        parts = urlsplit(base_url)
        self._host, self._port, self._tls = parts.hostname or "127.0.0.1", parts.port, parts.scheme == "https"
        self._prefix = parts.path.rstrip("/").removesuffix("/v1")
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._timeout = timeout
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None
        self._counts_requests = True

    def tokenize_counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text; special tokens in it are parsed, as in a prompt. One request for all."""
        if not texts:
            return []
        content: list[str | int] = []
        for text in texts:
            content += [text, _SEPARATOR] if text else [_SEPARATOR]
        tokens = self._tokenize(content)
        if tokens.count(_SEPARATOR) == len(texts):
            counts, start = [], 0
            for _ in texts:
                end = tokens.index(_SEPARATOR, start)
                counts.append(end - start)
                start = end + 1
            return counts
        return [len(self._tokenize(text)) for text in texts]

    def apply_template(self, body: Mapping[str, Any]) -> str:
        """The prompt that a chat body becomes."""
        return str(self._post("/apply-template", body)["prompt"])

    def count_request(self, body: Mapping[str, Any]) -> int:
        """Prompt tokens of a chat body, as its answer would report them."""
        if self._counts_requests:
            try:
                return int(self._post("/v1/chat/completions/input_tokens", body)["input_tokens"])
            except (ProviderError, KeyError) as error:
                if isinstance(error, ProviderError) and error.status not in (404, 405, 501):
                    raise
                self._counts_requests = False  # a server from before 2026
        return len(self._tokenize(self.apply_template(body), add_special=True))

    def props(self) -> dict[str, Any]:
        """What the server says of itself: chat template and what it can do, window, slots."""
        return self._post("/props", None)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()

    def _tokenize(self, content: object, *, add_special: bool = False) -> list[int]:
        asked = {"content": content, "add_special": add_special, "parse_special": True}
        return [int(token) for token in self._post("/tokenize", asked)["tokens"]]

    def _post(self, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        data = None if body is None else msgspec.json.encode(body)
        method = "GET" if body is None else "POST"
        with self._lock:
            for attempt in (1, 2):  # a kept connection may have been closed meanwhile
                if self._connection is None:
                    kind = http.client.HTTPSConnection if self._tls else http.client.HTTPConnection
                    self._connection = kind(self._host, self._port, timeout=self._timeout)
                try:
                    self._connection.request(method, self._prefix + path, data, self._headers)
                    response = self._connection.getresponse()
                    answer = response.read()
                    break
                except (OSError, http.client.HTTPException) as error:
                    self._connection.close()
                    self._connection = None
                    if attempt == 2:
                        raise ProviderUnavailable(
                            f"llama.cpp's server at {self._host}:{self._port} does not answer: {error}"
                        ) from error
        if response.status != 200:
            raise classify_error(response.status, answer, dict(response.headers), provider="llama.cpp")
        value = msgspec.json.decode(answer)
        if not isinstance(value, dict):
            raise ProviderError(f"llama.cpp's {path} answered with {type(value).__name__}, not an object")
        return value


def llama_counter(
    name: str,
    base_url: str,
    api_key: str | None = None,
    *,
    as_sent: Callable[[Message], Written] | None = None,
    tools_as_sent: Callable[[Sequence[Mapping[str, Any]]], list[Written]] | None = None,
    request_as_sent: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
) -> LlamaCounter:
    """The exact counter of the model that a llama.cpp server runs. The callables say what is really sent."""
    client = LlamaClient(base_url, api_key)
    return LlamaCounter(
        name,
        tokenize_counts=client.tokenize_counts,
        apply_template=client.apply_template,
        count_request_tokens=client.count_request,
        as_sent=as_sent,
        tools_as_sent=tools_as_sent,
        request_as_sent=request_as_sent,
    )
