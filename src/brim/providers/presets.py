"""Which provider a model name means: the presets, the user's own providers, and what the environment says of both.

A model is named `provider/model`. A bare name is looked up: in the user's own providers, then by the prefix that
vendors give their models. Nothing here opens a connection.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from brim.errors import ConfigError, UsageError
from brim.providers.error_body import mask

if TYPE_CHECKING:
    from brim.providers.events import Provider
    from brim.providers.wire import Auth

LOCAL = "local"


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A provider brim knows. `base_env`: variables that replace the base URL, first one set; `model_env`: variables
    that name a model; `model_prefixes`: bare names that mean this provider; `default_model`: what is asked where a
    key is set and no model is named (None: the first one the server lists)."""

    name: str
    base_url: str
    api: str = "openai.chat"
    auth: Auth = "bearer"
    key_env: tuple[str, ...] = ()
    base_env: tuple[str, ...] = ()
    model_env: tuple[str, ...] = ()
    needs_key: bool = True
    dialect: str | None = None
    stream_usage: bool = True
    default_model: str | None = None
    model_prefixes: tuple[str, ...] = ()


# Default models: the vendors' own model and deprecation pages, read in November 2026; aliases that the vendors keep moving
# where there are any. Names go stale: the `model_env` variables and BRIM_MODEL set another without a new release.
PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="openai", base_url="https://api.openai.com/v1", key_env=("OPENAI_API_KEY",),
            base_env=("OPENAI_BASE_URL", "OPENAI_API_BASE"), model_env=("OPENAI_MODEL",), dialect="openai",
            default_model="gpt-6.1-terra", model_prefixes=("gpt-", "chatgpt-", "o1", "o3", "o4", "codex-"),
        ),
        Preset(
            name="anthropic", base_url="https://api.anthropic.com", api="anthropic.messages", auth="x-api-key",
            key_env=("ANTHROPIC_API_KEY",), base_env=("ANTHROPIC_BASE_URL",), model_env=("ANTHROPIC_MODEL",),
            dialect="anthropic", default_model="claude-sonnet-5-5", model_prefixes=("claude-",),
        ),
        Preset(
            name="azure", base_url="", auth="api-key", key_env=("AZURE_OPENAI_API_KEY",), base_env=("AZURE_OPENAI_ENDPOINT",),
            model_env=("AZURE_OPENAI_DEPLOYMENT", "AZURE_OPENAI_DEPLOYMENT_NAME"), dialect="openai",
        ),
        Preset(
            name="dashscope", base_url="https://dashscope.aliyuncs.com/compatible-mode/v1", key_env=("DASHSCOPE_API_KEY",),
            base_env=("DASHSCOPE_BASE_URL",), model_env=("DASHSCOPE_MODEL",), dialect="openai", default_model="qwen-plus",
            model_prefixes=("qwen-", "qwen3-", "qwq-", "qwen2.5-"),
        ),
        Preset(
            name="deepseek", base_url="https://api.deepseek.com", key_env=("DEEPSEEK_API_KEY",),
            base_env=("DEEPSEEK_BASE_URL",), model_env=("DEEPSEEK_MODEL",), dialect="openai", default_model="deepseek-flash",
            model_prefixes=("deepseek-",),
        ),
        Preset(
            name="openrouter", base_url="https://openrouter.ai/api/v1", key_env=("OPENROUTER_API_KEY",),
            base_env=("OPENROUTER_BASE_URL",), model_env=("OPENROUTER_MODEL",), dialect="openai",
            default_model="openrouter/auto",
        ),
        Preset(
            name="gemini", base_url="https://generativelanguage.googleapis.com/v1beta/openai",
            key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"), base_env=("GEMINI_BASE_URL",), model_env=("GEMINI_MODEL",),
            dialect="gemini", default_model="gemini-3.8-flash", model_prefixes=("gemini-", "gemma-"),
        ),
        Preset(
            name="mistral", base_url="https://api.mistral.ai/v1", key_env=("MISTRAL_API_KEY",), base_env=("MISTRAL_BASE_URL",),
            model_env=("MISTRAL_MODEL",), dialect="mistral", stream_usage=False, default_model="mistral-medium-latest",
            model_prefixes=("mistral-", "ministral-", "codestral-", "magistral-", "devstral-", "pixtral-"),
        ),
        Preset(
            name="groq", base_url="https://api.groq.com/openai/v1", key_env=("GROQ_API_KEY",), base_env=("GROQ_BASE_URL",),
            model_env=("GROQ_MODEL",), dialect="openai", default_model="openai/gpt-oss-120b",
        ),
        Preset(
            name="ollama", base_url="http://127.0.0.1:11434/v1", key_env=("OLLAMA_API_KEY",),
            base_env=("OLLAMA_BASE_URL", "OLLAMA_HOST"), model_env=("OLLAMA_MODEL",), needs_key=False, dialect="openai",
        ),
        Preset(
            name="vllm", base_url="http://127.0.0.1:8000/v1", key_env=("VLLM_API_KEY",), base_env=("VLLM_BASE_URL",),
            model_env=("VLLM_MODEL",), needs_key=False, dialect="openai",
        ),
        Preset(
            name="lmstudio", base_url="http://127.0.0.1:1234/v1", key_env=("LMSTUDIO_API_KEY", "LM_API_TOKEN"),
            base_env=("LMSTUDIO_BASE_URL",), model_env=("LMSTUDIO_MODEL",), needs_key=False, dialect="openai",
        ),
        Preset(
            name="llamacpp", base_url="http://127.0.0.1:8080/v1", key_env=("LLAMA_API_KEY",),
            base_env=("LLAMACPP_BASE_URL",), model_env=("LLAMACPP_MODEL",), needs_key=False, dialect="openai",
        ),
    )
}  # fmt: skip


class ModelRef(msgspec.Struct, frozen=True, kw_only=True):
    """A model with all that is needed to ask it. `key` never shows in its repr. `window` in tokens where the user or
    the server says so; `timeout`: seconds without a word before it is given up; `note`: what the user should be told
    about the choice."""

    provider: str
    model: str
    api: str = "openai.chat"
    base_url: str = ""
    key: str | None = None
    auth: Auth = "bearer"
    needs_key: bool = False
    key_env: tuple[str, ...] = ()
    headers: Mapping[str, str] = {}
    dialect: str | None = None
    window: int | None = None
    stream_usage: bool = True
    timeout: float | None = None
    note: str | None = None

    @property
    def full_name(self) -> str:
        """`provider/model`."""
        return f"{self.provider}/{self.model}"

    def __repr__(self) -> str:
        return (
            f"ModelRef({self.full_name!r}, {self.api!r}, {mask(self.base_url)!r}, key={'set' if self.key else 'none'})"
        )


class OwnProvider(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A provider of the user's config, `[providers.NAME]`. `preset` fills what is left out (a name of PRESETS)."""

    base_url: str | None = None
    api: str | None = None
    preset: str | None = None
    key_env: str | list[str] | None = None
    key: str | None = None
    headers: dict[str, str] = {}
    dialect: str | None = None
    auth: str | None = None
    window: int | None = None
    stream_usage: bool | None = None
    timeout: float | None = None
    models: list[str] | dict[str, dict[str, Any]] = []
    default_model: str | None = None


_APIS = ("openai.chat", "openai.responses", "anthropic.messages")
_AUTHS = ("bearer", "x-api-key", "api-key", "none")


def own_providers(config: Mapping[str, Any] | None) -> dict[str, OwnProvider]:
    """The providers of a config mapping (the whole config, or its `providers` table).

    Raises ConfigError naming the provider, the field and what is allowed.
    """
    table = (config or {}).get("providers", config or {})
    own: dict[str, OwnProvider] = {}
    for name, values in table.items() if isinstance(table, Mapping) else ():
        if not isinstance(values, Mapping):
            if "providers" in (config or {}):
                raise ConfigError(f"provider {name!r} is no table", hint=f'write [providers.{name}] and base_url = "…"')
            continue
        try:
            provider = msgspec.convert(dict(values), OwnProvider)
        except msgspec.ValidationError as error:
            fields = OwnProvider.__struct_fields__
            unknown = re.search(r"unknown field `(.+?)`", str(error))
            near = difflib.get_close_matches(unknown[1], fields, 1) if unknown else []
            raise ConfigError(
                f"provider {name!r}: {f'unknown key {unknown[1]!r}' if unknown else error}",
                hint=(f"did you mean {near[0]!r}? " if near else "") + f"keys: {', '.join(fields)}",
            ) from error
        for field, value, allowed in (
            ("api", provider.api, _APIS),
            ("auth", provider.auth, _AUTHS),
            ("preset", provider.preset, (*PRESETS,)),
        ):
            if value is not None and value not in allowed:
                raise ConfigError(f"provider {name!r}: {field} is {value!r}", hint=f"one of {', '.join(allowed)}")
        if provider.timeout is not None and provider.timeout <= 0:
            raise ConfigError(f"provider {name!r}: timeout is {provider.timeout:g}", hint="give seconds over 0")
        if provider.base_url is None and provider.preset is None and name not in PRESETS:
            raise ConfigError(
                f"provider {name!r} has no base_url", hint='for example base_url = "http://127.0.0.1:8000/v1"'
            )
        own[name] = provider
    return own


def resolve_model(name: str, env: Mapping[str, str], config: Mapping[str, Any] | None = None) -> ModelRef:
    """The model that `provider/model` or a bare model name means.

    Raises UsageError for a name nobody knows, ConfigError for a provider that cannot be used. A missing key is no
    error here: the request that needs it says so.
    """
    name = name.strip()
    own = own_providers(config)
    provider, slash, model = name.partition("/")
    if slash and provider in (*own, *PRESETS, LOCAL):
        if not model:
            raise UsageError(f"no model named in {name!r}", hint=f"write {provider}/MODEL")
        return _reference(provider, model, env, own)
    for own_name, values in own.items():
        if name in values.models:
            return _reference(own_name, name, env, own)
    if name in own or (name in PRESETS and not _by_prefix(name)):
        raise UsageError(f"{name} is a provider, not a model", hint=f"write {name}/MODEL")
    if not name:
        raise UsageError("the model's name is empty", hint="write provider/model, for example openai/gpt-6.1-terra")
    # A base URL of the user's own may serve any model, names with a slash included (Qwen/Qwen3-8B on vLLM).
    if _first(env, PRESETS["openai"].base_env) and (slash or not _by_prefix(name)):
        return _reference("openai", name, env, own)
    if not slash and (found := _by_prefix(name)):
        return _reference(found, name, env, own)
    known = [*own, *PRESETS, LOCAL]
    near = difflib.get_close_matches(provider, known, 1) if slash else []
    hint = f"did you mean {near[0]}/{model}?" if near else f"write provider/model; providers: {', '.join(known)}"
    what = f"unknown provider {provider!r}" if slash else f"no provider is known for the model {name!r}"
    raise UsageError(what, hint=hint)


def default_of(provider: str, env: Mapping[str, str], config: Mapping[str, Any] | None = None) -> ModelRef | None:
    """The model that is asked where only a provider is chosen; None where it has no default."""
    own = own_providers(config)
    values = own.get(provider)
    preset = PRESETS.get(values.preset or provider if values else provider)
    model = (values.default_model or next(iter(values.models), None)) if values else None
    model = model or (_first(env, preset.model_env) or preset.default_model if preset else None)
    return _reference(provider, model, env, own) if model else None


def providers_with_key(env: Mapping[str, str], config: Mapping[str, Any] | None = None) -> list[str]:
    """Providers whose key is set, the user's own first; those without a need for one count where a base URL is set."""
    own = own_providers(config)
    found = [
        name for name, values in own.items() if values.key or _first(env, _own_key_env(name, values)) or values.models
    ]
    for name, preset in PRESETS.items():
        if name in found:
            continue
        if _first(env, preset.key_env) if preset.needs_key else _first(env, preset.base_env[:1]):
            found.append(name)
    return found


def open_provider(ref: ModelRef, *, env: Mapping[str, str] | None = None) -> Provider:
    """The provider behind a model, ready to be asked; `close` it when done."""
    if ref.provider == LOCAL:
        from brim.providers.local import DEFAULT_WINDOW, open_local

        return open_local(ref.model, window=ref.window or DEFAULT_WINDOW)
    from brim.providers.connection import timeouts_for
    from brim.providers.wire import WireProvider

    if not ref.base_url:
        preset = PRESETS.get(ref.provider)
        named = " or ".join(preset.base_env) if preset else "base_url"
        raise ConfigError(f"no base URL for {ref.provider}: {named} is not set", hint=f"export {named}=https://…")
    return WireProvider(
        ref.provider, ref.api, ref.base_url, ref.key, auth=ref.auth, needs_key=ref.needs_key, key_env=ref.key_env,
        headers=ref.headers, stream_usage=ref.stream_usage, timeouts=timeouts_for(ref.base_url, ref.timeout), env=env,
    )  # fmt: skip


def _reference(provider: str, model: str, env: Mapping[str, str], own: Mapping[str, OwnProvider]) -> ModelRef:
    if provider == LOCAL:
        return ModelRef(provider=LOCAL, model=model, auth="none")
    values = own.get(provider)
    preset = PRESETS.get((values.preset if values else None) or provider)
    if values is None:
        assert preset is not None
        return _of_preset(preset, model, env)
    base = _of_preset(preset, model, env) if preset else ModelRef(provider=provider, model=model)
    key_env = _own_key_env(provider, values)
    key = values.key or _first(env, key_env) or base.key
    window = values.window
    if isinstance(values.models, Mapping):
        window = values.models.get(model, {}).get("window", window)
    api = values.api or base.api
    if values.auth is not None:
        auth = msgspec.convert(values.auth, type=_auth_type())
    elif api == base.api and preset:
        auth = base.auth
    else:
        auth = "x-api-key" if api == "anthropic.messages" else "bearer"
    return ModelRef(
        provider=provider, model=model, api=api, base_url=_expand(values.base_url, env) or base.base_url, key=key, auth=auth,
        needs_key=bool(key_env) or (base.needs_key and not values.base_url), key_env=key_env or base.key_env,
        headers={name: _expand(value, env) or "" for name, value in values.headers.items()},
        dialect=values.dialect or base.dialect, window=window,
        stream_usage=base.stream_usage if values.stream_usage is None else values.stream_usage, timeout=values.timeout,
    )  # fmt: skip


def _of_preset(preset: Preset, model: str, env: Mapping[str, str]) -> ModelRef:
    variable = next((name for name in preset.base_env if env.get(name, "").strip()), None)
    base_url = env[variable].strip() if variable else preset.base_url
    if preset.name == "azure" and base_url and "/openai" not in base_url:
        base_url = base_url.rstrip("/") + "/openai/v1"
    if variable == "OLLAMA_HOST":
        base_url = ollama_url(base_url)
    if preset.name == "llamacpp" and not variable and (moved := loopback_urls(env)):
        base_url = moved[0]  # a session that began there goes on there
    key = _first(env, preset.key_env)
    return ModelRef(
        provider=preset.name, model=model, api=preset.api, base_url=base_url, key=key, auth=preset.auth,
        # a base URL of the user's own may need none
        needs_key=preset.needs_key and not (variable and preset.name != "azure" and _is_plain(base_url)),
        key_env=preset.key_env, dialect=preset.dialect, stream_usage=preset.stream_usage,
    )  # fmt: skip


def loopback_urls(env: Mapping[str, str]) -> list[str] | None:
    """The servers that BRIM_LOOPBACK=URL[,URL] names; none for BRIM_LOOPBACK=off; None where it says nothing."""
    chosen = env.get("BRIM_LOOPBACK", "").strip()
    if not chosen:
        return None
    off = chosen.lower() in ("off", "0", "no", "none", "false")
    return [] if off else [url.strip().rstrip("/") for url in chosen.split(",") if url.strip()]


def ollama_url(host: str) -> str:
    """OLLAMA_HOST as a base URL: it may lack scheme and port, and 0.0.0.0 is what the server binds."""
    host = host.strip().rstrip("/")
    scheme, _, rest = host.rpartition("://")
    rest = rest.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - read, not bound
    if rest.startswith(":"):
        rest = f"127.0.0.1{rest}"
    if "/" not in rest and not re.search(r":\d+$", rest):
        rest += ":443" if scheme == "https" else ":80" if scheme == "http" else ":11434"
    return f"{scheme or 'http'}://{rest}" + ("" if rest.endswith("/v1") else "/v1")


def _is_plain(url: str) -> bool:
    from brim.providers.connection import is_loopback

    return is_loopback(url)


def _own_key_env(name: str, values: OwnProvider) -> tuple[str, ...]:
    if values.key_env is None:
        preset = PRESETS.get(values.preset or name)
        return preset.key_env if preset and preset.needs_key and not values.base_url else ()
    return (values.key_env,) if isinstance(values.key_env, str) else tuple(values.key_env)


def _by_prefix(model: str) -> str | None:
    name = model.lower()
    return next((preset.name for preset in PRESETS.values() if name.startswith(preset.model_prefixes)), None)


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := env.get(name, "").strip())), None)


def _expand(value: str | None, env: Mapping[str, str]) -> str | None:
    """`${NAME}` in a config value is that variable."""
    return re.sub(r"\$\{(\w+)\}", lambda match: env.get(match[1], ""), value) if value else value


def _auth_type() -> Any:
    from brim.providers.wire import Auth

    return Auth
