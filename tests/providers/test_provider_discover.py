"""Where no model is named, one is found: by key, on loopback, embedded, or an error names the ways on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from brim.errors import ModelMissing
from brim.providers import default_model, find_loopback_server, open_provider
from brim.providers.discover import LoopbackServer, loopback_servers, with_served_window
from brim.providers.presets import PRESETS, ModelRef, resolve_model
from brim.testing import ScriptedProvider, reply


@asynccontextmanager
async def serving(routes: dict[str, Any]) -> AsyncGenerator[str, None]:
    """A server that answers GET paths with JSON; gives its root URL."""
    app = web.Application()
    for path, value in routes.items():

        async def answer(request: web.Request, value: Any = value) -> web.Response:
            return web.json_response(value)

        app.router.add_get(path, answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def probe(preset: str, routes: dict[str, Any]) -> ModelRef | None:
    """What is found on one server."""

    async def work() -> ModelRef | None:
        async with serving(routes) as root:
            return await find_loopback_server({}, servers=[LoopbackServer(preset, f"{root}/v1")])

    return asyncio.run(work())


def models(*names: str) -> dict[str, Any]:
    """A /v1/models answer."""
    return {"object": "list", "data": [{"id": name} for name in names]}


def test_ollama_prefers_what_is_loaded() -> None:
    """Ollama's embedding models are passed over, and a model that is loaded comes first."""
    tags = {
        "models": [
            {"name": "a-embed", "details": {"family": "llama"}},
            {"name": "nomic", "details": {"family": "nomic-bert"}},
            {"name": "qwen3:8b", "details": {"family": "qwen3"}},
            {"name": "llama3:8b", "details": {"family": "llama"}},
        ]
    }
    routes: dict[str, Any] = {"/v1/models": models("a-embed", "nomic", "qwen3:8b", "llama3:8b"), "/api/tags": tags}
    ref = probe("ollama", routes)
    assert ref is not None
    assert (ref.provider, ref.model) == ("ollama", "qwen3:8b")
    ref = probe("ollama", routes | {"/api/ps": {"models": [{"name": "llama3:8b"}]}})
    assert ref is not None
    assert ref.model == "llama3:8b"


def test_lm_studio_tells_kind_and_window() -> None:
    """LM Studio's own list says which models talk, which is loaded, and with what window."""
    listed = [
        {"id": "nomic", "type": "embeddings", "state": "loaded"},
        {"id": "big", "type": "llm", "state": "not-loaded"},
        {"id": "small", "type": "vlm", "state": "loaded", "loaded_context_length": 8192},
    ]
    ref = probe("lmstudio", {"/v1/models": models("nomic", "big", "small"), "/api/v0/models": {"data": listed}})
    assert ref is not None
    assert (ref.model, ref.window) == ("small", 8192)


def test_llama_cpp_tells_its_window() -> None:
    """llama.cpp's properties give the window it really runs with."""
    ref = probe(
        "llamacpp", {"/v1/models": models("m.gguf"), "/props": {"default_generation_settings": {"n_ctx": 4096}}}
    )
    assert ref is not None
    assert (ref.model, ref.window) == ("m.gguf", 4096)


@pytest.mark.parametrize(
    ("name", "routes", "window"),
    [
        ("llamacpp/m", {"/v1/models": models("m"), "/props": {"default_generation_settings": {"n_ctx": 4096}}}, 4096),
        ("openai/m", {"/v1/models": models("m"), "/props": {"default_generation_settings": {"n_ctx": 4096}}}, 4096),
        ("openai/m", {"/v1/models": {"data": [{"id": "m", "max_model_len": 16_384}]}}, 16_384),
        ("lmstudio/m", {"/api/v0/models": {"data": [{"id": "m", "loaded_context_length": 8192}]}}, 8192),
        ("lmstudio/m", {"/api/v0/models": {"data": [{"id": "m", "state": "not-loaded"}]}}, None),
        ("openai/m", {"/v1/models": models("m")}, None),
        ("openai/m", {}, None),
        ("openai/gpt-4o", {"/v1/models": {"data": [{"id": "gpt-4o", "max_model_len": 5}]}}, None),
        ("set/m", {"/v1/models": models("m"), "/props": {"default_generation_settings": {"n_ctx": 4096}}}, 32_768),
    ],
)
def test_a_named_model_has_the_window_that_its_server_runs_it_with(
    name: str, routes: dict[str, Any], window: int | None
) -> None:
    """Named or of a session that goes on, as when it was found: the same window in every request. A configured one stays, a
    model that tables know is not asked about, and no answer is none."""

    async def work() -> ModelRef:
        async with serving(routes) as root:
            env = {"OPENAI_BASE_URL": f"{root}/v1", "BRIM_LOOPBACK": f"{root}/v1", "LMSTUDIO_BASE_URL": f"{root}/v1"}
            own = {"providers": {"set": {"base_url": f"{root}/v1", "window": 32_768}}}
            ref = resolve_model(name, env, own)
            return await with_served_window(msgspec.structs.replace(ref, base_url=f"{root}/v1"))

    assert asyncio.run(work()).window == window


@pytest.mark.parametrize(
    "routes",
    [
        {},
        {"/v1/models": models()},
        {"/v1/models": models("text-embed-3", "bge-m3")},
        {"/v1/models": [1]},
        {"/v1/models": "hello"},
    ],
)
def test_servers_without_a_chat_model(routes: dict[str, Any]) -> None:
    """A server that is something else, lists nothing, or only embeds is not taken."""
    assert probe("llamacpp", routes) is None


def test_first_that_answers_is_taken_and_can_be_asked() -> None:
    """Dead ports are passed over; the reference that is found opens and answers."""
    with ScriptedProvider([reply("hello")], models=["bge-small", "chatty"]) as upstream:
        servers = [LoopbackServer("ollama", "http://127.0.0.1:1/v1"), LoopbackServer("llamacpp", upstream.base_url)]

        async def work() -> Any:
            ref = await find_loopback_server({}, servers=servers)
            assert ref is not None
            provider = open_provider(ref, env={})
            done = await provider.complete({"model": ref.model, "messages": [{"role": "user", "content": "hi"}]})
            await provider.close()
            return ref, done

        ref, done = asyncio.run(work())
    assert ref.model == "chatty"
    assert done.message["content"] == "hello"
    assert asyncio.run(find_loopback_server({}, servers=[])) is None


def test_where_is_looked() -> None:
    """OLLAMA_HOST moves the first probe, but never off this machine; BRIM_LOOPBACK names other servers or none."""
    assert [server.base_url for server in loopback_servers({})] == [
        "http://127.0.0.1:11434/v1",
        "http://127.0.0.1:1234/v1",
        "http://127.0.0.1:8080/v1",
    ]
    assert loopback_servers({"OLLAMA_HOST": "127.0.0.1:9"})[0].base_url == "http://127.0.0.1:9/v1"
    assert loopback_servers({"OLLAMA_HOST": "10.0.0.9"})[0].base_url == "http://127.0.0.1:11434/v1"
    assert loopback_servers({"BRIM_LOOPBACK": "off"}) == []
    assert [server.base_url for server in loopback_servers({"BRIM_LOOPBACK": "http://127.0.0.1:5/v1/"})] == [
        "http://127.0.0.1:5/v1"
    ]
    moved = {
        "BRIM_LOOPBACK": "http://127.0.0.1:5/v1/"
    }  # a session of that server goes on there, though none is looked for
    assert resolve_model("llamacpp/qwen3", moved, {}).base_url == "http://127.0.0.1:5/v1"
    assert resolve_model("llamacpp/qwen3", {"BRIM_LOOPBACK": "off"}, {}).base_url == "http://127.0.0.1:8080/v1"
    assert (
        resolve_model("llamacpp/q", moved | {"LLAMACPP_BASE_URL": "http://127.0.0.1:6/v1"}, {}).base_url[-4:] == "6/v1"
    )


def test_order_of_the_default_model() -> None:
    """BRIM_MODEL, then a key's provider, then loopback; what was chosen without being named is said."""
    with ScriptedProvider([], models=["chatty"]) as upstream:
        env = {"BRIM_LOOPBACK": upstream.base_url}
        ref = asyncio.run(default_model(env))
        assert (ref.model, ref.base_url) == ("chatty", upstream.base_url)
        assert "no key" in (ref.note or "")
        ref = asyncio.run(default_model(env | {"ANTHROPIC_API_KEY": "k"}))
        assert ref.provider == "anthropic"
        assert "anthropic" in (ref.note or "")
        ref = asyncio.run(default_model(env | {"ANTHROPIC_API_KEY": "k", "BRIM_MODEL": "deepseek/x"}))
        assert (ref.full_name, ref.note) == ("deepseek/x", None)


def test_a_base_url_of_ones_own_is_asked_what_it_has() -> None:
    """Where OPENAI_BASE_URL is set and no model named, with a key or without, the first chat model that server lists is taken;
    the vendor's default where it is among them; where nothing is listed, that is said with the way to name one."""
    with ScriptedProvider([], models=["text-embedding-3", "chatty"]) as upstream:
        for key in ({}, {"OPENAI_API_KEY": "k"}):
            ref = asyncio.run(default_model({"OPENAI_BASE_URL": upstream.base_url, "BRIM_LOOPBACK": "off", **key}))
            assert (ref.full_name, ref.base_url) == ("openai/chatty", upstream.base_url)
            assert "OPENAI_BASE_URL" in (ref.note or "")
        ref = asyncio.run(
            default_model({"OPENAI_BASE_URL": upstream.base_url, "OPENAI_MODEL": "mine", "OPENAI_API_KEY": "k"})
        )
        assert ref.full_name == "openai/mine"
        ref = asyncio.run(default_model({"LLAMACPP_BASE_URL": upstream.base_url}))
        assert ref.full_name == "llamacpp/chatty"
        own = {
            "providers": {
                "work": {"base_url": upstream.base_url},
                "other": {"base_url": upstream.base_url, "key_env": "K"},
            }
        }
        ref = asyncio.run(default_model({"BRIM_LOOPBACK": "off"}, own))
        assert ref.full_name == "work/chatty" and "[providers.work]" in (ref.note or "")
    vendor = PRESETS["openai"].default_model or ""
    with ScriptedProvider([], models=["chatty", vendor]) as upstream:
        ref = asyncio.run(default_model({"OPENAI_BASE_URL": upstream.base_url, "OPENAI_API_KEY": "k"}))
        assert ref.model == vendor
    with ScriptedProvider([], models=["chatty"]) as upstream:
        env = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "BRIM_LOOPBACK": upstream.base_url}
        note = asyncio.run(default_model(env)).note or ""
        assert "OPENAI_BASE_URL is set, but no model is listed there: name one with --model openai/NAME" in note


def test_embedded_model_says_what_it_is() -> None:
    """Without key and server the embedded model answers, and says that it is for a first look."""
    pytest.importorskip("xllamacpp")
    ref = asyncio.run(default_model({"BRIM_LOOPBACK": "off"}))
    assert ref.full_name == "local/smollm2"
    assert "first look" in (ref.note or "")


def test_three_ways_on() -> None:
    """Without key, server and engine the error names the three ways on."""
    script = """
        import asyncio, sys
        sys.modules["xllamacpp"] = None
        from brim.errors import ModelMissing
        from brim.providers import default_model
        try:
            asyncio.run(default_model({"BRIM_LOOPBACK": "off"}))
        except ModelMissing as error:
            print(error.message, error.hint, error.code)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    for words in ("OPENAI_API_KEY", "Ollama", "pipx install 'brim[local]'", "69"):
        assert words in done.stdout
    assert issubclass(ModelMissing, Exception)


def test_importing_is_cheap() -> None:
    """Importing the providers loads neither aiohttp nor llama.cpp nor ssl."""
    script = """
        import sys
        from brim.providers import *
        print([name for name in ("aiohttp", "xllamacpp", "ssl", "stamina", "asyncio") if name in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
