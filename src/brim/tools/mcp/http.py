"""A server behind a URL: the SDK's streamable HTTP transport, with the same repairs as the other one, room for large results,
and the status of its answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from brim.tools.mcp.repair import repair_result


@asynccontextmanager
async def http_transport(
    url: str, headers: Mapping[str, str], message_bytes: int, on_status: Callable[[int], object]
) -> AsyncIterator[Any]:
    """Streams of messages for `mcp.Client`. `on_status` is told the HTTP status of every answer."""
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async def look(response: Any) -> None:
        on_status(response.status_code)

    async with create_mcp_http_client(headers=dict(headers)) as http:
        http.event_hooks = {"response": [look]}
        async with streamable_http_client(url, http_client=http, max_sse_event_size=message_bytes) as (read, write):
            yield _Repairing(read), write


class _Repairing:
    """A stream of messages that repairs results on their way."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def receive(self) -> Any:
        return _with_repairs(await self._inner.receive())

    def __aiter__(self) -> _Repairing:
        return self

    async def __anext__(self) -> Any:
        return _with_repairs(await self._inner.__anext__())

    async def __aenter__(self) -> _Repairing:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *how: Any) -> bool | None:
        ended: bool | None = await self._inner.__aexit__(*how)
        return ended


def _with_repairs(item: Any) -> Any:
    result = getattr(getattr(item, "message", None), "result", None)
    if isinstance(result, dict):
        repair_result(result)
    return item
