"""llama.cpp in this process: a model file becomes an HTTP server on loopback that the wire client talks to.

`xllamacpp` brings llama.cpp's whole server as a library. Starting it here, on a port that only this machine can reach
and under a key that only this process knows, gives the embedded model the very code path of every other provider:
streaming, cached tokens, overflow errors, cancellation by closing the connection. Its threads are llama.cpp's own and
end with the process, however that ends; there is no child process to be left behind.

`python -m brim.providers.local --port 8080` runs the same server by itself, for any client.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from brim.errors import ConfigError, ModelMissing
from brim.providers.events import Done, Event
from brim.providers.models import PUBLISHED, model_path

if TYPE_CHECKING:
    from brim.providers.prompted_provider import PromptedProvider
    from brim.providers.wire import WireProvider
    from brim.tokens.llama import LlamaCounter

DEFAULT_WINDOW = 8_192
"""Tokens: what SmolLM2 was trained with (`n_ctx_train` in its file), and what a small machine can hold of others."""
SMALL_BYTES = 700_000_000
"""Model files below this get the small form of the prompted protocol: about 0.5 to 1 billion parameters at 4 to 8 bits."""


class LlamaServer:
    """A running llama.cpp server in this process; `base_url` is its address without a path, `api_key` its only key.

    Starting takes about 0.3 s for the 135M model. `close` stops it, a generation under way included; a process that
    exits without it ends just as cleanly.
    """

    def __init__(
        self,
        path: Path,
        *,
        window: int = DEFAULT_WINDOW,
        threads: int | None = None,
        port: int = 0,
        api_key: str | None = None,
        quiet: bool = True,
    ) -> None:
        try:
            import xllamacpp
        except ImportError as error:
            raise ModelMissing(
                f"llama.cpp is not installed here ({error})",
                hint="set a provider's key, start a local server (Ollama, LM Studio, llama.cpp), "
                "or install the embedded model's engine: pipx install 'brim[local]'",
            ) from error
        self.path = path
        self.window = window
        self.api_key = secrets.token_urlsafe(24) if api_key is None else api_key
        params = _params(xllamacpp, path, window, threads or threads_to_use(), port, self.api_key, quiet)
        try:
            self._server: Any = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ConfigError(
                f"llama.cpp could not load {path} with a window of {window:,} tokens: {error}",
                hint="check that the file is a whole GGUF model and that the port, if one was given, is free",
            ) from error
        self.base_url = str(self._server.listening_address)

    def close(self) -> None:
        """Stop the server and free the model."""
        self._server = None

    def __enter__(self) -> LlamaServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _params(xllamacpp: Any, path: Path, window: int, threads: int, port: int, api_key: str, quiet: bool) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = window
    params.n_parallel = 1
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.sampling.temp = 0.0  # greedy unless a request says otherwise: a first look should look the same twice
    params.port = port
    params.n_threads_http = 4
    if api_key:
        params.api_keys = [api_key]
    params.ui = False
    params.warmup = False  # the first request is the warm-up: it saves a third of the start
    params.fit_params = False  # measuring the memory takes a second, and the window was chosen
    params.cache_ram_mib = 0  # one conversation at a time: its cache is the slot's own
    if quiet:
        params.verbosity = -1
    return params


def threads_to_use() -> int:
    """`BRIM_LOCAL_THREADS`, else the cores that are free now, at least one.

    llama.cpp's threads wait for each other at every layer: where they must share cores with other work, fewer are
    faster (on two busy cores one thread read 109 tokens a second, two read 74).
    """
    given = os.environ.get("BRIM_LOCAL_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        busy = os.getloadavg()[0]
    except (AttributeError, OSError):
        busy = 0.0
    return max(1, min(cores, round(cores - busy)))


class LocalProvider:
    """A model in process as a `Provider` of the openai.chat format. Tools only where its template knows them: `open_local`.

    The model is loaded at the first request. Errors of llama.cpp come out as those of any server do: a prompt longer
    than the window is a ProviderOverflow with both figures.
    """

    api = "openai.chat"

    def __init__(self, model: str = "smollm2", *, window: int = DEFAULT_WINDOW, threads: int | None = None) -> None:
        self.name = "local"
        self.model = model
        self.path = model_path(model)
        self.window = window
        self.is_small = self.path.stat().st_size < SMALL_BYTES
        self.note = PUBLISHED[model].about if model in PUBLISHED else None
        self._threads = threads
        self._lock = threading.Lock()
        self._running: LlamaServer | None = None
        self._wire: WireProvider | None = None

    def server(self) -> LlamaServer:
        """The running server; starts it on the first call."""
        with self._lock:
            if self._running is None:
                self._running = LlamaServer(self.path, window=self.window, threads=self._threads)
            return self._running

    def has_tools(self) -> bool:
        """Whether the model's chat template knows tools and calls; starts the server."""
        from brim.providers.llama_client import LlamaClient

        server = self.server()
        client = LlamaClient(server.base_url, server.api_key)
        try:
            able = client.props().get("chat_template_caps") or {}
        finally:
            client.close()
        return bool(able.get("supports_tools") and able.get("supports_tool_calls"))

    async def stream(self, body: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        """Send a chat body and yield events. Greedy unless it names a temperature. Closing the generator stops it."""
        wire = await self._wire_client()
        async with aclosing(wire.stream(self._body(body))) as events:
            async for event in events:
                yield event

    async def complete(self, body: Mapping[str, Any]) -> Done:
        """Send a chat body without streaming."""
        wire = await self._wire_client()
        return await wire.complete(self._body(body))

    async def close(self) -> None:
        """Close the connection and stop the model."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            await asyncio.to_thread(running.close)

    def counter(self) -> LlamaCounter:
        """The counter of this model: its own tokenizer and chat template; exact for plain messages."""
        from brim.providers.llama_client import llama_counter

        server = self.server()
        counter = llama_counter(f"local/{self.model}", server.base_url, server.api_key)
        if counter.exact and self.has_tools():
            counter.exact = False  # how its template writes calls and results is not what is counted for them
        return counter

    async def _wire_client(self) -> WireProvider:
        if self._wire is None:
            from brim.providers.wire import WireProvider

            server = await asyncio.to_thread(self.server)
            # llama.cpp closes a connection after a stream, whatever it says of keeping it: no request may go out on one.
            self._wire = WireProvider(
                self.name, self.api, f"{server.base_url}/v1", server.api_key, headers={"Connection": "close"}
            )
        return self._wire

    def _body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"temperature": 0, **body, "model": self.model}


def open_local(
    model: str = "smollm2", *, window: int = DEFAULT_WINDOW, threads: int | None = None
) -> PromptedProvider | LocalProvider:
    """A local model that can be given tools: natively where its chat template knows tools, else by the prompted protocol.

    A file of the user's own is loaded here, to ask its template. Raises ModelMissing where the model is not here.
    """
    from brim.providers.prompted_provider import PromptedProvider

    inner = LocalProvider(model, window=window, threads=threads)
    if model not in PUBLISHED and inner.has_tools():
        return inner
    return PromptedProvider(inner, small=inner.is_small)


def serve(model: str, port: int, *, window: int = DEFAULT_WINDOW, api_key: str = "") -> None:
    """Run llama.cpp's server on loopback until interrupted; prints its address as the first line of stdout.

    It speaks OpenAI chat and Responses (`/v1/...`) and Anthropic Messages (`/v1/messages`). `port` 0 takes a free one.
    """
    import signal
    import sys

    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with LlamaServer(model_path(model), window=window, port=port, api_key=api_key) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        while not stopped.wait(1):  # with a limit: Windows cannot interrupt a wait without one
            pass


def main(arguments: list[str] | None = None) -> None:
    """The command line of `python -m brim.providers.local`."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m brim.providers.local", description=serve.__doc__)
    parser.add_argument("--model", default="smollm2", help="a pulled model or the path of a GGUF file")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port; the address is printed")
    parser.add_argument("--window", type=int, default=DEFAULT_WINDOW, help="context in tokens")
    parser.add_argument(
        "--api-key", default="", help="the key that requests must bring; none: everyone on loopback may"
    )
    given = parser.parse_args(arguments)
    serve(given.model, given.port, window=given.window, api_key=given.api_key)


if __name__ == "__main__":
    main()
