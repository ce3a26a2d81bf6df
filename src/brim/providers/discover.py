"""Which model is asked where none is named: a key's, else a server on loopback, else the embedded one, else an error.

The probes go to 127.0.0.1 only, all at once, and wait a short time: a port that is closed answers at once.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import msgspec

from brim.errors import ModelMissing
from brim.providers.presets import (
    LOCAL,
    PRESETS,
    ModelRef,
    default_of,
    loopback_urls,
    ollama_url,
    own_providers,
    providers_with_key,
    resolve_model,
)

if TYPE_CHECKING:
    import aiohttp

PROBE_SECONDS = 1.0
EMBEDDED = "smollm2"
_NO_CHAT = re.compile(
    r"embed|rerank|whisper|\btts\b|bge-|e5-|minilm|clip|moderation|guard|ocr|transcribe|stable-diffusion", re.I
)


_WINDOW_KEYS = ("loaded_context_length", "max_model_len")
"""Where a list of models says what each runs with: LM Studio's own, and vLLM's."""


class LoopbackServer(msgspec.Struct, frozen=True):
    """A kind of server that is looked for: the preset it is, and its base URL (ending in /v1)."""

    preset: str
    base_url: str


def loopback_servers(env: Mapping[str, str]) -> list[LoopbackServer]:
    """The servers to look for, in order of preference. OLLAMA_HOST moves the first where it names this machine;
    BRIM_LOOPBACK=off looks for none, BRIM_LOOPBACK=URL[,URL] for those alone."""
    chosen = loopback_urls(env)
    if chosen is not None:
        return [LoopbackServer("llamacpp", url) for url in chosen]
    from brim.providers.connection import is_loopback

    ollama = ollama_url(env["OLLAMA_HOST"]) if env.get("OLLAMA_HOST", "").strip() else PRESETS["ollama"].base_url
    if not is_loopback(ollama):
        ollama = PRESETS["ollama"].base_url
    return [
        LoopbackServer("ollama", ollama),
        LoopbackServer("lmstudio", PRESETS["lmstudio"].base_url),
        LoopbackServer("llamacpp", PRESETS["llamacpp"].base_url),
    ]


async def find_loopback_server(
    env: Mapping[str, str], *, servers: Sequence[LoopbackServer] | None = None, seconds: float = PROBE_SECONDS
) -> ModelRef | None:
    """The first server on loopback that lists a chat model, with that model (a loaded one first); None if none answers."""
    wanted = loopback_servers(env) if servers is None else list(servers)
    if not wanted:
        return None
    import asyncio

    import aiohttp

    timeout = aiohttp.ClientTimeout(total=seconds)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
        found = await asyncio.gather(*(_probe(session, server, env) for server in wanted))
    return next((ref for ref in found if ref is not None), None)


async def default_model(env: Mapping[str, str], config: Mapping[str, Any] | None = None) -> ModelRef:
    """The model that is asked where none is named.

    In order: BRIM_MODEL; the user's own providers and then the presets whose key is set, with their documented
    default; what a server lists whose base URL is set in the environment or the config; a server on loopback; the
    embedded model. A base URL of one's own comes before the vendor's default, which that server will hardly have.
    Raises ModelMissing that names the three ways on.
    """
    if named := env.get("BRIM_MODEL", "").strip():
        return resolve_model(named, env, config)
    moved = {**_unnamed(env, config), **_moved(env)}
    unlisted = ""
    own = own_providers(config)
    chosen = dict.fromkeys([*providers_with_key(env, config), *moved])
    for provider in sorted(chosen, key=lambda name: name not in own):
        if variable := moved.get(provider):
            served = await _served(provider, env, config)
            if served is not None:
                where = served.base_url
                note = f"no model named: {served.full_name}, which the server at {where} ({variable}) lists first"
                return msgspec.structs.replace(served, note=note)
            unlisted = f"{variable} is set, but no model is listed there: name one with --model {provider}/NAME. "
        if provider not in providers_with_key(env, config):
            continue
        ref = default_of(provider, env, config)
        if ref is not None and ref.base_url:
            return msgspec.structs.replace(
                ref, note=f"no model named: {ref.full_name}, the default where a key for {provider} is set"
            )
    found = await find_loopback_server(env)
    if found is not None:
        return msgspec.structs.replace(found, note=unlisted + (found.note or ""))
    if _has_engine():
        return ModelRef(
            provider=LOCAL, model=EMBEDDED, auth="none",
            note=f"{unlisted}no key and no server on this machine: the embedded 135M model answers. It is for a first "
            "look and for tests; set a key or start Ollama, LM Studio or llama.cpp for real work",
        )  # fmt: skip
    keys = ", ".join(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DASHSCOPE_API_KEY"))
    raise ModelMissing(
        "no model to ask: no key is set, no server answers on this machine, and the embedded model is not installed",
        hint=f"set a key ({keys} …), start a local server (Ollama, LM Studio or llama.cpp), or install the embedded model "
        "with pipx install 'brim[local]'",
    )


def _moved(env: Mapping[str, str]) -> dict[str, str]:
    """Presets with an OpenAI-compatible API whose base URL the environment sets and whose model it does not, with the
    variable. Of Ollama, which is looked for anyway, none."""
    found: dict[str, str] = {}
    for name, preset in PRESETS.items():
        variable = next((each for each in preset.base_env if env.get(each, "").strip()), None)
        named = any(env.get(each, "").strip() for each in preset.model_env)
        if variable and not named and preset.api.startswith("openai.") and name != "ollama":
            found[name] = variable
    return found


def _unnamed(env: Mapping[str, str], config: Mapping[str, Any] | None) -> dict[str, str]:
    """The user's own providers that can be asked and for which no model is named, with the table they stand in."""
    found: dict[str, str] = {}
    for name in own_providers(config):
        ref = resolve_model(f"{name}/_", env, config)
        askable = ref.base_url and ref.api.startswith("openai.") and (ref.key or not ref.needs_key)
        if askable and default_of(name, env, config) is None:
            found[name] = f"[providers.{name}]"
    return found


async def _served(provider: str, env: Mapping[str, str], config: Mapping[str, Any] | None) -> ModelRef | None:
    """The first chat model that a provider's server lists, its default where that is among them; None without a list."""
    import aiohttp

    ref = resolve_model(f"{provider}/_", env, config)
    headers = {"Authorization": f"Bearer {ref.key}"} if ref.key else {}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PROBE_SECONDS), trust_env=True) as session:
        listed = _entries(await _get(session, f"{ref.base_url}/models", headers), "data")
    models = [str(each["id"]) for each in listed if each.get("id") and not _NO_CHAT.search(str(each["id"]))]
    default = default_of(provider, env, config)
    if default is not None and default.model in models:
        return default
    return resolve_model(f"{provider}/{models[0]}", env, config) if models else None


def _has_engine() -> bool:
    """Whether llama.cpp can be imported, without importing it."""
    try:
        return importlib.util.find_spec("xllamacpp") is not None
    except ValueError:  # the module was blocked in sys.modules
        return False


async def _probe(session: aiohttp.ClientSession, server: LoopbackServer, env: Mapping[str, str]) -> ModelRef | None:
    root = server.base_url.removesuffix("/v1")
    preset = PRESETS[server.preset]
    key = next((env[name] for name in preset.key_env if env.get(name)), None)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    window: int | None = None
    listed = await _get(session, f"{server.base_url}/models", headers)
    models = [str(entry.get("id")) for entry in _entries(listed, "data") if entry.get("id")]
    if server.preset == "ollama":
        details = await _get(session, f"{root}/api/tags", headers)
        families = {str(entry.get("name")): entry.get("details") for entry in _entries(details, "models")}
        models = [name for name in models if not _is_bert(families.get(name))]
        running = [
            str(entry.get("name")) for entry in _entries(await _get(session, f"{root}/api/ps", headers), "models")
        ]
        models = [name for name in running if name in models] + [name for name in models if name not in running]
    elif server.preset == "lmstudio":
        details = _entries(await _get(session, f"{root}/api/v0/models", headers), "data")
        talking = [entry for entry in details if entry.get("type") in ("llm", "vlm")]
        talking.sort(key=lambda entry: entry.get("state") != "loaded")
        if talking:
            models = [str(entry.get("id")) for entry in talking]
            loaded = talking[0].get("loaded_context_length")
            window = loaded if _is_size(loaded) else None
    elif models:
        window = await _window_by_props(session, root, headers)
    model = next((name for name in models if not _NO_CHAT.search(name)), None)
    if model is None:
        return None
    return ModelRef(
        provider=server.preset, model=model, api=preset.api, base_url=server.base_url, key=key, auth=preset.auth,
        key_env=preset.key_env, dialect=preset.dialect, window=window,
        note=f"no key set: {model} on the server at {root}",
    )  # fmt: skip


async def with_served_window(ref: ModelRef) -> ModelRef:
    """The model with the window that its server on this machine runs it with, which is less than what its makers promise as
    often as not. Asked of llama.cpp and LM Studio, and of any other server where no table knows the model; what the user
    configured stays."""
    from brim.budget import window_of
    from brim.providers.connection import is_loopback

    asked = ref.window is None and ref.provider not in (LOCAL, "ollama") and ref.api.startswith("openai.")
    if not asked or not ref.base_url or not is_loopback(ref.base_url):
        return ref
    if ref.provider not in ("llamacpp", "lmstudio") and not window_of(ref.model)[1]:
        return ref
    import aiohttp

    root = ref.base_url.removesuffix("/v1")
    headers = {"Authorization": f"Bearer {ref.key}"} if ref.key else {}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PROBE_SECONDS), trust_env=False) as session:
        where = f"{root}/api/v0/models" if ref.provider == "lmstudio" else f"{ref.base_url}/models"
        listed = _entries(await _get(session, where, headers), "data")
        entry = next((each for each in listed if each.get("id") == ref.model), {})
        window = next((entry[key] for key in _WINDOW_KEYS if _is_size(entry.get(key))), None)
        if window is None and listed and ref.provider != "lmstudio":
            window = await _window_by_props(session, root, headers)
    return ref if window is None else msgspec.structs.replace(ref, window=window)


async def _window_by_props(session: aiohttp.ClientSession, root: str, headers: Mapping[str, str]) -> int | None:
    """What llama.cpp's server says it runs with."""
    props = await _get(session, f"{root}/props", headers)
    settings = props.get("default_generation_settings") if isinstance(props, dict) else None
    n_ctx = settings.get("n_ctx") if isinstance(settings, dict) else None
    return n_ctx if _is_size(n_ctx) else None


def _is_size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


async def _get(session: aiohttp.ClientSession, url: str, headers: Mapping[str, str]) -> Any:
    """JSON of a GET on loopback, None for anything else: a probe that fails means there is no such server."""
    import aiohttp

    try:
        async with session.get(url, headers=headers, allow_redirects=False) as response:
            if response.status != 200:
                return None
            return msgspec.json.decode(await response.content.read(4_000_000))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return None


def _entries(value: Any, key: str) -> list[dict[str, Any]]:
    items = value.get(key) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _is_bert(details: object) -> bool:
    return isinstance(details, dict) and "bert" in str(details.get("family", "")).lower()
