"""The embedded model in process: streaming, cached tokens, overflow, cancellation, quiet ends, and the server apart."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from brim.errors import ConfigError, ModelMissing, ProviderOverflow
from brim.providers.events import Done, Provider, TextDelta
from brim.providers.local import LlamaServer, LocalProvider, open_local, threads_to_use
from brim.providers.wire import WireProvider
from shared_local_model import embedded_model

T = TypeVar("T")
pytestmark = pytest.mark.local_model
MODEL, WHY_NOT = embedded_model()
needs_model = pytest.mark.skipif(MODEL is None, reason=WHY_NOT)
WINDOW = 1024
SOME_TEXT = "one two three four five six seven eight nine ten " * 300


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end."""
    return asyncio.run(work)


def chat(text: str, **more: Any) -> dict[str, Any]:
    """A chat body with one question."""
    return {"messages": [{"role": "user", "content": text}], **more}


async def answer(provider: Provider, body: Mapping[str, Any]) -> tuple[list[str], Done]:
    """The pieces of text and the end of one answer."""
    texts: list[str] = []
    done: Done | None = None
    async with aclosing(provider.stream(body)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                texts.append(event.text)
            elif isinstance(event, Done):
                done = event
    assert done is not None
    return texts, done


@needs_model
def test_streams_greedily_and_reports_cached_tokens() -> None:
    """An answer streams, is the same twice, and the second time all but the last of its prompt comes from the cache."""

    async def work() -> list[tuple[list[str], Done]]:
        provider = LocalProvider(window=WINDOW)
        try:
            return [await answer(provider, chat("Say hello.", max_tokens=12)) for _ in range(2)]
        finally:
            await provider.close()

    (texts, first), (again, second) = run(work())
    assert len(texts) > 1 and texts == again
    assert isinstance(first.message, dict) and first.message["content"] == "".join(texts)
    assert first.usage.input == second.usage.input > 20
    assert (first.usage.cached_read, second.usage.cached_read) == (0, second.usage.input - 1)
    assert 0 < first.usage.output <= 12


@needs_model
def test_overflow_carries_both_figures() -> None:
    """A prompt over the window is a ProviderOverflow with the window and the tokens requested; the next one works."""

    async def work() -> tuple[ProviderOverflow, int, Done]:
        provider = LocalProvider(window=WINDOW)
        try:
            counted = provider.counter().count_request(chat(SOME_TEXT))
            with pytest.raises(ProviderOverflow) as caught:
                await answer(provider, chat(SOME_TEXT))
            _, done = await answer(provider, chat("hi", max_tokens=1))
            return caught.value, counted, done
        finally:
            await provider.close()

    error, counted, done = run(work())
    assert (error.window, error.requested) == (WINDOW, counted)
    assert counted > WINDOW and error.code == 3 and done.usage.output == 1


@needs_model
def test_closing_the_stream_stops_the_model() -> None:
    """A generator closed in the middle of an answer ends the generation, and the next request is served at once."""

    async def work() -> tuple[int, Done]:
        provider = LocalProvider(window=WINDOW)
        try:
            pieces = 0
            async with aclosing(provider.stream(chat("Count to one thousand.", max_tokens=900))) as events:
                async for _ in events:
                    pieces += 1
                    if pieces == 3:
                        break
            _, done = await answer(provider, chat("hi", max_tokens=1))
            return pieces, done
        finally:
            await provider.close()

    pieces, done = run(work())
    assert pieces == 3 and done.usage.output == 1


@needs_model
def test_founding_scene() -> None:
    """Asked in Chinese and in English, the 135M model searches for TODO and names lines that stand in the result."""
    from brim.tools import default_tools, tool_schemas

    tools = [
        {"type": "function", "function": {key: each[key] for key in ("name", "description", "parameters")}}
        for each in tool_schemas(default_tools())
    ]
    found = [f"src/shop/{name}.py:{n}:    # TODO: {name} {n}" for n, name in enumerate(["cart", "stock", "users"] * 2)]
    result = "\n".join([*found, "[6 matching lines in 3 files. 18 noise folders were not searched.]"])

    async def scene(provider: Provider, question: str) -> tuple[dict[str, Any], str]:
        body = {**chat(question, max_tokens=300), "tools": tools}
        _, done = await answer(provider, body)
        assert isinstance(done.message, dict)
        (call,) = done.message["tool_calls"]
        tool_message = {"role": "tool", "tool_call_id": call["id"], "content": result}
        texts, _ = await answer(provider, {**body, "messages": [*body["messages"], done.message, tool_message]})
        return call["function"], "".join(texts)

    async def both() -> list[tuple[dict[str, Any], str]]:
        provider = open_local()
        try:
            questions = ("搜索 TODO 关键词", "Search the project for the keyword TODO")
            return [await scene(provider, question) for question in questions]
        finally:
            await provider.close()

    for (function, said), word in zip(run(both()), ("结果", "result"), strict=True):
        assert (function["name"], function["arguments"]) == ("grep", '{"pattern": "TODO"}')
        opening, *picked = said.split("\n- ")
        assert len(picked) == len(set(picked)) == 5 and all(line.strip("`") in found for line in picked)
        assert word in opening and "6" in opening


SCRIPT = """
import asyncio, os, signal, sys, threading
from brim.providers.local import LocalProvider
async def work():
    provider = LocalProvider(window=1024)
    async for event in provider.stream({"messages": [{"role": "user", "content": "Count to 1000."}], "max_tokens": 900}):
        how = sys.argv[1]
        if how == "exit": print("streaming", flush=True); sys.exit(7)
        if how == "raise": raise RuntimeError("seven")
        if how == "kill": os.kill(os.getpid(), signal.SIGKILL)
        if how == "interrupt": os.kill(os.getpid(), signal.SIGINT); await asyncio.sleep(60)
asyncio.run(work())
"""


@needs_model
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(
    ("how", "code"), [("exit", 7), ("raise", 1), ("kill", -signal.SIGKILL), ("interrupt", -signal.SIGINT)]
)
def test_a_process_ends_however_it_ends(how: str, code: int) -> None:
    """A process that leaves in the middle of an answer ends at once, with its own code, and llama.cpp says nothing."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, timeout=120)
    assert done.returncode in (code, 128 + abs(code)), done.stderr
    assert not [line for line in done.stderr.splitlines() if "llama" in line.lower() and "File" not in line]
    assert done.stdout == ("streaming\n" if how == "exit" else "")


@contextmanager
def served(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """llama.cpp's HTTP server in another process, and its address."""
    command = [sys.executable, "-m", "brim.providers.local", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=60)


@needs_model
@pytest.mark.parametrize("api", ["openai.chat", "anthropic.messages", "openai.responses"])
def test_server_in_another_process(api: str) -> None:
    """The server apart answers over each API, streaming, and shows overflow with its figures in each."""
    bodies: dict[str, Any] = {
        "openai.chat": lambda text: chat(text, max_tokens=8),
        "anthropic.messages": lambda text: chat(text, max_tokens=8),
        "openai.responses": lambda text: {"input": text, "max_output_tokens": 8},
    }

    async def work(url: str) -> tuple[list[str], Done, ProviderOverflow]:
        provider = WireProvider("llamacpp", api, f"{url}/v1")
        try:
            texts, done = await answer(provider, {"model": "m", "temperature": 0, **bodies[api]("Say hello.")})
            with pytest.raises(ProviderOverflow) as caught:
                await answer(provider, {"model": "m", **bodies[api](SOME_TEXT)})
            return texts, done, caught.value
        finally:
            await provider.close()

    with served("--window", str(WINDOW)) as (process, url):
        texts, done, overflow = run(work(url))
        assert "".join(texts).strip() and done.usage.input > 20 and done.usage.output > 0
        assert overflow.window == WINDOW and (overflow.requested or 0) > WINDOW
        process.terminate()
        assert process.wait(timeout=30) == 0


@needs_model
def test_server_key_is_asked_for() -> None:
    """A server with a key refuses requests without it; the one in process always has one."""
    from brim.errors import AuthError

    async def work(server: LlamaServer) -> None:
        stranger = WireProvider("stranger", "openai.chat", f"{server.base_url}/v1", "wrong-key-of-mine")
        try:
            with pytest.raises(AuthError):
                await answer(stranger, {"model": "m", **chat("hi")})
        finally:
            await stranger.close()

    assert MODEL is not None
    with LlamaServer(MODEL, window=512) as server:
        assert len(server.api_key) > 20
        run(work(server))


def test_no_model_file() -> None:
    """A model that is not here is an error before anything is started."""
    with pytest.raises(ModelMissing, match="no model file"):
        open_local("/nowhere/model.gguf")


@needs_model
def test_broken_model_file(tmp_path: Path) -> None:
    """A file that is no whole model is an error that names it."""
    assert MODEL is not None
    broken = tmp_path / "broken.gguf"
    with MODEL.open("rb") as source:
        broken.write_bytes(source.read(1_000_000))
    with pytest.raises(ConfigError, match=r"broken\.gguf") as caught:
        LlamaServer(broken)
    assert "whole GGUF" in (caught.value.hint or "")


def test_without_the_extra(tmp_path: Path) -> None:
    """Where the extra is not installed the error names the three ways on."""
    script = (
        "import sys; sys.modules['xllamacpp'] = None\n"
        "from pathlib import Path; from brim.providers.local import LlamaServer\n"
        "try: LlamaServer(Path('m.gguf'))\n"
        "except Exception as error: print(type(error).__name__, error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("ModelMissing"), done.stderr
    for way in ("key", "Ollama", "pipx install 'brim[local]'"):
        assert way in done.stdout


def test_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads are at least one, at most the cores, and what the user says where the user says."""
    assert 1 <= threads_to_use() <= (os.cpu_count() or 1)
    monkeypatch.setenv("BRIM_LOCAL_THREADS", "3")
    assert threads_to_use() == 3


@needs_model
def test_loading_is_quick() -> None:
    """Importing the module loads neither llama.cpp nor aiohttp."""
    script = "import sys, brim.providers.local; print([n for n in ('xllamacpp', 'aiohttp') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
