"""A model name, the environment and the config say which provider is asked, where, and with which key."""

from __future__ import annotations

from typing import Any

import pytest

from brim.errors import ConfigError, UsageError
from brim.formats import DIALECTS
from brim.providers import PRESETS, WireProvider, open_provider, resolve_model
from brim.providers.presets import ModelRef, default_of, ollama_url, own_providers, providers_with_key


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_opens(name: str) -> None:
    """Each preset resolves with its vendor's key variable, has a dialect that exists, and opens."""
    preset = PRESETS[name]
    env = {preset.key_env[0]: "key-12345678"} | (
        {"AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/"} if name == "azure" else {}
    )
    ref = resolve_model(f"{name}/some-model", env)
    assert (ref.provider, ref.model, ref.key) == (name, "some-model", "key-12345678")
    assert ref.dialect is None or ref.dialect in DIALECTS
    assert ref.full_name == f"{name}/some-model"
    assert "key-12345678" not in repr(ref)
    provider = open_provider(ref, env=env)
    assert isinstance(provider, WireProvider)
    assert provider.url.startswith(("https://", "http://127.0.0.1:"))


@pytest.mark.parametrize(
    ("name", "env", "provider", "model", "base"),
    [
        ("openai/gpt-5", {}, "openai", "gpt-5", "https://api.openai.com/v1"),
        ("openai/gpt-5", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "openai", "gpt-5", "http://127.0.0.1:9/v1"),
        ("gpt-5", {}, "openai", "gpt-5", "https://api.openai.com/v1"),
        ("o3-mini", {}, "openai", "o3-mini", "https://api.openai.com/v1"),
        (
            "claude-sonnet-4-5",
            {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"},
            "anthropic",
            "claude-sonnet-4-5",
            "http://127.0.0.1:9",
        ),
        ("deepseek-chat", {}, "deepseek", "deepseek-chat", "https://api.deepseek.com"),
        ("qwen-plus", {}, "dashscope", "qwen-plus", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
        ("openrouter/anthropic/claude-x", {}, "openrouter", "anthropic/claude-x", "https://openrouter.ai/api/v1"),
        (
            "Qwen/Qwen3-8B",
            {"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"},
            "openai",
            "Qwen/Qwen3-8B",
            "http://127.0.0.1:8000/v1",
        ),
        ("anything", {"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"}, "openai", "anything", "http://127.0.0.1:8000/v1"),
        ("ollama/llama3:8b", {"OLLAMA_HOST": "192.168.1.5"}, "ollama", "llama3:8b", "http://192.168.1.5:11434/v1"),
        (
            "azure/dep",
            {"AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/"},
            "azure",
            "dep",
            "https://r.openai.azure.com/openai/v1",
        ),
        ("local/smollm2", {}, "local", "smollm2", ""),
        ("local//tmp/m.gguf", {}, "local", "/tmp/m.gguf", ""),
    ],
)
def test_names_and_variables(name: str, env: dict[str, str], provider: str, model: str, base: str) -> None:
    """Full and bare names, names with slashes, and the vendors' own variables for base URLs."""
    ref = resolve_model(name, env)
    assert (ref.provider, ref.model, ref.base_url) == (provider, model, base)


@pytest.mark.parametrize("name", ["nonsense", "opnai/gpt-5", "openai/", "", "Qwen/Qwen3-8B"])
def test_names_nobody_knows(name: str) -> None:
    """A name that means no provider is a usage error that says how to write it."""
    with pytest.raises(UsageError) as caught:
        resolve_model(name, {})
    assert caught.value.hint
    if name.startswith("opnai"):
        assert "openai/gpt-5" in (caught.value.hint or "")


CONFIG: dict[str, Any] = {
    "providers": {
        "work": {
            "base_url": "https://llm.work/${TEAM}/v1",
            "key_env": "WORK_KEY",
            "headers": {"X-Team": "${TEAM}"},
            "dialect": "mistral",
            "models": {"big": {"window": 64_000}, "small": {}},
            "window": 32_000,
            "default_model": "big",
        },
        "claudish": {"base_url": "http://127.0.0.1:7/anthropic", "api": "anthropic.messages", "models": ["c1"]},
        "openai": {"base_url": "http://127.0.0.1:8/v1"},
        "fast": {"preset": "groq", "key": "gsk-inline-key"},
    }
}


def test_own_providers() -> None:
    """A provider of the config has its base URL, key, headers, dialect and windows; variables in them are filled in."""
    env = {"WORK_KEY": "wk", "TEAM": "blue"}
    ref = resolve_model("work/big", env, CONFIG)
    assert (ref.base_url, ref.key, ref.headers, ref.window) == (
        "https://llm.work/blue/v1",
        "wk",
        {"X-Team": "blue"},
        64_000,
    )
    assert (ref.dialect, ref.needs_key, ref.key_env, ref.auth) == ("mistral", True, ("WORK_KEY",), "bearer")
    assert resolve_model("work/other", env, CONFIG).window == 32_000
    assert resolve_model("small", env, CONFIG).provider == "work"
    ref = resolve_model("c1", env, CONFIG)
    assert (ref.provider, ref.api, ref.auth, ref.needs_key) == ("claudish", "anthropic.messages", "x-api-key", False)
    ref = resolve_model("fast/m", env, CONFIG)
    assert (ref.base_url, ref.key) == ("https://api.groq.com/openai/v1", "gsk-inline-key")
    ref = resolve_model("openai/x", {"OPENAI_API_KEY": "ok"}, CONFIG)
    assert (ref.base_url, ref.key, ref.needs_key) == ("http://127.0.0.1:8/v1", "ok", False)


def test_providers_table_alone() -> None:
    """The table of providers may be given without the config around it."""
    assert (
        own_providers(CONFIG["providers"]).keys()
        == own_providers(CONFIG).keys()
        == {"work", "claudish", "openai", "fast"}
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"base_url": 3}, "base_url"),
        ({"base_ulr": "http://x"}, "base_ulr"),
        ({}, "no base_url"),
        ({"base_url": "http://x", "api": "soap"}, "api"),
        ({"base_url": "http://x", "auth": "magic"}, "auth"),
        ({"preset": "nope"}, "preset"),
    ],
)
def test_bad_providers_are_named(values: dict[str, Any], words: str) -> None:
    """A provider that cannot be used is a config error naming provider, field and what is allowed."""
    with pytest.raises(ConfigError, match="mine") as caught:
        resolve_model("mine/x", {}, {"providers": {"mine": values}})
    assert words in caught.value.message
    assert caught.value.hint


def test_missing_base_url() -> None:
    """Azure without its endpoint says which variable is missing."""
    with pytest.raises(ConfigError, match="AZURE_OPENAI_ENDPOINT"):
        open_provider(resolve_model("azure/dep", {}))


def test_keys_are_needed_where_vendors_need_them() -> None:
    """Vendors need a key, servers on this machine do not, a base URL of the user's own on loopback does not."""
    assert resolve_model("openai/x", {}).needs_key
    assert resolve_model("anthropic/x", {}).needs_key
    assert not resolve_model("ollama/x", {}).needs_key
    assert not resolve_model("openai/x", {"OPENAI_BASE_URL": "http://localhost:1/v1"}).needs_key
    assert resolve_model("openai/x", {"OPENAI_BASE_URL": "https://elsewhere.com/v1"}).needs_key


def test_defaults() -> None:
    """The providers with a key come in order, the user's own first; each has its default model."""
    env = {"ANTHROPIC_API_KEY": "a", "DASHSCOPE_API_KEY": "d"}
    assert providers_with_key(env) == ["anthropic", "dashscope"]
    assert providers_with_key({}) == []
    assert providers_with_key({"OPENAI_API_KEY": " "}) == []
    assert providers_with_key(env | {"WORK_KEY": "w"}, CONFIG)[0] == "work"
    for name, preset in PRESETS.items():
        ref = default_of(name, {})
        assert (ref.model if ref else None) == preset.default_model
    ref = default_of("work", {"WORK_KEY": "w"}, CONFIG)
    assert ref is not None
    assert ref.full_name == "work/big"
    ref = default_of("dashscope", {"DASHSCOPE_MODEL": "qwen-max"})
    assert ref is not None
    assert ref.model == "qwen-max"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:11500", "http://127.0.0.1:11500/v1"),
        (":11500", "http://127.0.0.1:11500/v1"),
        ("https://ollama.example", "https://ollama.example:443/v1"),
        ("http://h:1/", "http://h:1/v1"),
        ("http://h:1/v1", "http://h:1/v1"),
    ],
)
def test_ollama_host(host: str, url: str) -> None:
    """OLLAMA_HOST is read as Ollama reads it: without scheme, without port, or as the address the server binds."""
    assert ollama_url(host) == url


def test_key_never_shows() -> None:
    """A reference with a key shows neither the key nor a password in its URL."""
    ref = ModelRef(provider="x", model="m", base_url="https://me:secretword@h/v1", key="sk-secretkey99")
    assert "secret" not in repr(ref)
    assert "secret" not in str(ref)


def test_exported_names() -> None:
    """The public names of the package are these, and each can be had."""
    import brim.providers as providers

    assert sorted(providers.__all__) == sorted(name for names in providers._HOMES.values() for name in names)
    for name in providers.__all__:
        assert getattr(providers, name) is not None
    with pytest.raises(AttributeError):
        _ = providers.nothing_of_the_kind
