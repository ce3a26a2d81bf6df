"""llama.cpp in this process: a model file becomes an HTTP server on loopback that the wire client talks to.

`xllamacpp` brings llama.cpp's whole server as a library. Starting it here, on a port that only this machine can reach
and under a key that only this process knows, gives the embedded model the very code path of every other provider:
streaming, cached tokens, overflow errors, cancellation by closing the connection. Its threads are llama.cpp's own and
end with the process, however that ends; there is no child process to be left behind.

`python -m brim.providers.local --port 8080` runs the same server by itself, for any client.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import Any

from brim.errors import ConfigError, ModelMissing
from brim.providers.models import model_path

DEFAULT_WINDOW = 8_192
"""Tokens: what SmolLM2 was trained with (`n_ctx_train` in its file), and what a small machine can hold of others."""


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
        params = _params(xllamacpp, path, window, threads or _cores(), port, self.api_key, quiet)
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


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def serve(model: str, port: int, *, window: int = DEFAULT_WINDOW, api_key: str = "") -> None:
    """Run llama.cpp's server on loopback until interrupted; prints its address as the first line of stdout.

    It speaks OpenAI chat and Responses (`/v1/...`) and Anthropic Messages (`/v1/messages`). `port` 0 takes a free one.
    """
    import signal
    import sys

    with LlamaServer(model_path(model), window=window, port=port, api_key=api_key) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


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
