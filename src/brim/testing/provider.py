"""A scripted provider: a real HTTP server on loopback that speaks OpenAI chat, Responses and Anthropic Messages.

    async with ScriptedProvider([reply("hi"), tool_call("grep", {"pattern": "TODO"}), fault(500)]) as upstream:
        ...  # point a client at upstream.base_url (OpenAI) or upstream.url (Anthropic)
    assert upstream.requests[0].body["messages"][-1]["content"] == "hello"

Each request takes the next entry of the script, whichever API it speaks, streamed or not as it asks. Entries are
answers (`reply`, `tool_call`, `tool_calls`), faults (`fault`, `stream_error`, `empty_stream`, `broken_stream`,
`html_page`, `raw`) or functions of the request that return one. A script that has run out answers 500 and says so.

It can count and enforce a window with the real providers' errors, cut silently like an Ollama server, and report
cached prefixes. It runs in a thread of its own, so it serves synchronous and asynchronous clients alike, and other
processes; `with` and `async with` both work. Every wait in it is one that the script asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from brim.testing.dialogue import Reply, stream_of, whole_answer
from brim.testing.script import Cut, Entry, Fault, Received, error_body, error_event, fault, overflow_error, reply

if TYPE_CHECKING:
    from aiohttp import web


def estimate_prompt(body: Mapping[str, Any]) -> int:
    """The prompt tokens of a body where no counter is given: a quarter of the characters of what a model reads."""
    parts = [body.get(key) for key in ("system", "instructions", "tools", "messages", "input")]
    return max(1, sum(len(json.dumps(part, ensure_ascii=False)) for part in parts if part) // 4)


class ScriptedProvider:
    """The server. `base_url` ends in /v1 (OpenAI clients), `url` does not (Anthropic clients).

    `window`: tokens; a request of more is refused the way `overflow` says: "api" (as OpenAI and Anthropic word it),
    "llama.cpp", "vllm", or a function of (received, window) that returns an entry. `cut_at`: prompts are silently cut
    to so many tokens, as their usage shows. `count`: prompt tokens of a body. `key`: what clients must bring.
    `cache`: report the tokens of the longest prefix that an earlier request shares. `models`: what /v1/models lists.
    `repeat_last`: the last entry answers all further requests.
    """

    def __init__(
        self,
        script: Iterable[Entry] = (),
        *,
        window: int | None = None,
        overflow: str | Callable[[Received, int], Entry] = "api",
        count: Callable[[dict[str, Any]], int] = estimate_prompt,
        cut_at: int | None = None,
        cache: bool = False,
        key: str | None = None,
        models: Sequence[str] = ("scripted",),
        repeat_last: bool = False,
        port: int = 0,
    ) -> None:
        self.script = list(script)
        self.requests: list[Received] = []
        self.window = window
        self.cut_at = cut_at
        self.key = key
        self.models = list(models)
        self._overflow = overflow
        self._count = count
        self._cache = cache
        self._prefixes: list[list[str]] = []
        self._repeat_last = repeat_last
        self._served = 0
        self._port = port
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._changed = threading.Condition()

    # ------------------------------------------------------------------ running

    @property
    def url(self) -> str:
        """http://127.0.0.1:PORT"""
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """The same with /v1, as OpenAI clients want it."""
        return f"{self.url}/v1"

    def start(self) -> ScriptedProvider:
        """Begin to serve; returns when the port is open."""
        self._thread = threading.Thread(target=self._run, name="scripted-provider", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def close(self) -> None:
        """Stop serving; open connections are cut."""
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def __enter__(self) -> ScriptedProvider:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> ScriptedProvider:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def wait_for(self, condition: Callable[[ScriptedProvider], bool], seconds: float = 10.0) -> bool:
        """Wait until the requests meet a condition (from another thread than the event loop's); false after `seconds`."""
        with self._changed:
            return self._changed.wait_for(lambda: condition(self), seconds)

    def add(self, *entries: Entry) -> None:
        """More script."""
        self.script.extend(entries)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # handed to the thread that waits in start
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        from aiohttp import web

        app = web.Application(client_max_size=256 * 1024 * 1024)
        for path, api in (
            ("/chat/completions", "openai.chat"),
            ("/responses", "openai.responses"),
            ("/messages", "anthropic.messages"),
        ):
            for prefix in ("/v1", ""):
                app.router.add_post(prefix + path, self._handler(api))
        for prefix in ("/v1", ""):
            app.router.add_get(f"{prefix}/models", self._list_models)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", self._port)
            await site.start()
            self._port = runner.addresses[0][1]
            self._loop = asyncio.get_running_loop()
            self._stop = asyncio.Event()
            self._ready.set()
            await self._stop.wait()
        finally:
            await runner.cleanup()

    # ------------------------------------------------------------------ answering

    def _note(self, received: Received | None = None) -> None:
        with self._changed:
            if received is not None:
                self.requests.append(received)
            self._changed.notify_all()

    def _handler(self, api: str) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.StreamResponse:
            raw_body = await request.read()
            try:
                body = json.loads(raw_body)
            except ValueError as error:
                return await self._send(
                    request,
                    _received(api, request, {}, raw_body),
                    fault(400, error_body(api, f"The request body is not valid JSON: {error}")),
                )
            received = _received(api, request, body if isinstance(body, dict) else {}, raw_body)
            received.prompt_tokens = self._count(received.body)
            if self._cache:
                received.cached_tokens = self._cached(received)
            self._note(received)
            try:
                response = await self._send(request, received, self._entry_for(received))
                received.finished = True
                return response
            except (asyncio.CancelledError, ConnectionError):
                received.aborted = True
                raise
            finally:
                self._note()

        return handle

    def _entry_for(self, received: Received) -> Entry:
        if self.key is not None and not _has_key(received.headers, self.key):
            return fault(
                401,
                error_body(
                    received.api,
                    "invalid x-api-key" if received.api == "anthropic.messages" else "Incorrect API key provided.",
                    "authentication_error",
                    "invalid_api_key",
                ),
            )
        reserved = next(
            (
                value
                for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")
                if isinstance(value := received.body.get(name), int)
            ),
            0,
        )
        if self.window is not None and self.cut_at is None and received.prompt_tokens + reserved > self.window:
            if callable(self._overflow):
                return self._overflow(received, self.window)
            return overflow_error(received.api, received.prompt_tokens, reserved, self.window, self._overflow)
        if self._served < len(self.script):
            entry: Entry = self.script[self._served]
            self._served += 1
        elif self._repeat_last and self.script:
            entry = self.script[-1]
        else:
            return fault(
                500,
                error_body(received.api, f"the script has no entry for request {len(self.requests)}", "server_error"),
            )
        while callable(entry):
            entry = entry(received)
        return entry

    async def _send(self, request: web.Request, received: Received, entry: Entry) -> web.StreamResponse:
        from aiohttp import web

        if isinstance(entry, str):
            entry = reply(entry)
        if isinstance(entry, Fault):
            headers = {"Content-Type": "text/plain; charset=utf-8", **entry.headers}
            return web.Response(status=entry.status, body=entry.body, headers=headers)
        assert isinstance(entry, (Reply, Cut))
        answer = entry.answer if isinstance(entry, Cut) else entry
        number = len(self.requests)
        seen = received.prompt_tokens if self.cut_at is None else min(received.prompt_tokens, self.cut_at)
        if not received.stream:
            if isinstance(entry, Cut):
                if entry.error is None:
                    return _drop(request)
                return web.json_response({"error": dict(entry.error)})
            if answer.delay:
                await asyncio.sleep(answer.delay)
            return web.json_response(
                whole_answer(received.api, answer, received.body, seen, received.cached_tokens, number)
            )
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(request)
        for event, ends in stream_of(received.api, answer, received.body, seen, received.cached_tokens, number):
            if ends and isinstance(entry, Cut):
                break
            if answer.delay:
                await asyncio.sleep(answer.delay)
            await response.write(event)
        if isinstance(entry, Cut):
            if entry.error is not None:
                await response.write(error_event(received.api, entry.error))
            elif entry.how == "reset":
                _drop(request)
            elif entry.how == "hang":
                await asyncio.Event().wait()  # until the client goes, or the server stops
        await response.write_eof()
        return response

    async def _list_models(self, request: web.Request) -> web.Response:
        from aiohttp import web

        if self.key is not None and not _has_key(dict(request.headers), self.key):
            return web.json_response(error_body("openai.chat", "Incorrect API key provided."), status=401)
        return web.json_response(
            {
                "object": "list",
                "data": [{"id": name, "object": "model", "owned_by": "scripted"} for name in self.models],
            }
        )

    def _cached(self, received: Received) -> int:
        """Tokens of the longest run of whole messages, tools and system first, that an earlier request began with."""
        body = received.body
        blocks = [
            json.dumps(_without_marks(body.get(key)), sort_keys=True)
            for key in ("model", "tools", "system", "instructions")
        ]
        blocks += [json.dumps(_without_marks(message), sort_keys=True) for message in received.messages]
        longest = 0
        for earlier in self._prefixes:
            shared = 0
            while shared < min(len(earlier), len(blocks)) and earlier[shared] == blocks[shared]:
                shared += 1
            longest = max(longest, shared)
        self._prefixes.append(blocks)
        if longest < 4:  # model, tools or system differ
            return 0
        partial = {**body, ("messages" if "messages" in body else "input"): received.messages[: longest - 4]}
        return min(self._count(partial), max(0, received.prompt_tokens - 1)) if longest > 4 else 0


# ------------------------------------------------------------------ errors in the providers' own words


def _received(api: str, request: web.Request, body: dict[str, Any], raw_body: bytes) -> Received:
    return Received(api=api, path=request.path_qs, headers=dict(request.headers), body=body, raw=raw_body)


def _has_key(headers: Mapping[str, str], key: str) -> bool:
    sent = {name.lower(): value for name, value in headers.items()}
    return key in (sent.get("authorization", "").removeprefix("Bearer "), sent.get("x-api-key"), sent.get("api-key"))


def _without_marks(value: Any) -> Any:
    """A value without cache markers, which move from request to request and are no part of the prefix."""
    if isinstance(value, dict):
        return {key: _without_marks(inner) for key, inner in value.items() if key != "cache_control"}
    return [_without_marks(item) for item in value] if isinstance(value, list) else value


def _drop(request: web.Request) -> web.StreamResponse:
    """Reset the connection under the answer."""
    if request.transport is not None:
        request.transport.abort()
    raise asyncio.CancelledError  # as the server itself ends a handler whose client has gone
