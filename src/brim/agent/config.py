"""Configuration: flag > environment > project > user > default, each value with where it comes from.

TOML files at `$XDG_CONFIG_HOME/brim/config.toml` (the user's) and `.brim/config.toml` (a project's, in the workspace or
a folder above it up to the repository's root). A project's file comes with the project, so it may narrow what tools may
do, never widen it, and may not say where requests and keys go.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from brim.agent.effort import EFFORTS
from brim.agent.misfits import place_of, plain_type_error
from brim.agent.permit import MODES
from brim.agent.tables import PROFILES, RETRIEVAL_CHOICES, General, PermissionRules, Profile, Retrieval
from brim.agent.trial import Shares, check_shares
from brim.budget.settings import Settings, load_settings
from brim.errors import BrimError, ConfigError, UsageError
from brim.permissions.sandbox import SANDBOX_MODES
from brim.tools.caps import ENVIRONMENT as CAP_VARIABLES
from brim.tools.caps import Caps, load_caps
from brim.tools.mcp.settings import McpSettings, check_servers

S = TypeVar("S")

_PLAIN_SETTINGS = tuple(name for name in Settings.__struct_fields__ if name not in ("summarizer", "relevance"))
_TABLES: Mapping[str, tuple[str, ...]] = {
    "": General.__struct_fields__,
    "context": _PLAIN_SETTINGS,
    "tools": Caps.__struct_fields__,
    "permissions": PermissionRules.__struct_fields__,
    "retrieval": Retrieval.__struct_fields__,
    "experiment": Shares.__struct_fields__,
}
CONTEXT_MODES = ("full", "compact", "auto")
_FREE = ("providers", "profiles", "prices", "mcp")
"""Tables whose keys are names the user chose."""
_NOT_OF_A_PROJECT = ("providers", "mcp", "store", "max_age", "max_size", "permissions.allow", "max_cost", "prices")
_NARROWER: Mapping[str, tuple[Any, ...]] = {
    "permissions.mode": ("ask", "read-only"),
    "permissions.sandbox": ("required",),
    "permissions.network": (False,),
    "redact": (True,),
}
_ENV_ALIASES = {
    "BRIM_CONTEXT_MODE": "mode",
    "BRIM_PERMISSION_MODE": "permissions.mode",
    "BRIM_SANDBOX": "permissions.sandbox",
    "BRIM_STORE_URL": "store",
}
_ENV_OF_OTHERS = ("BRIM_DATA_DIR", "BRIM_CONFIG", "BRIM_LOOPBACK", "BRIM_ALLOW", "BRIM_DENY")


_LEAST: Mapping[str, int] = {
    "temperature": 0, "thinking_budget": 0, "max_tokens": 1, "max_steps": 1, "max_calls": 1, "max_cost": 0, "attempts": 1
}  # fmt: skip
_FLAGS = {"mode": "--context-mode", "permissions.mode": "--permission-mode", "permissions.sandbox": "--sandbox"}
"""Options of `ai` whose names are not those of their settings."""


class Value(msgspec.Struct, frozen=True):
    """A setting and where it was set: "default", a file, "environment BRIM_MODE", "flag --model", "profile log"."""

    value: Any
    origin: str


class Config(msgspec.Struct):
    """All settings by dotted key. `warnings`: what was left out, and why, for the user to see."""

    values: dict[str, Value]
    warnings: list[str]
    files: list[Path]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a dotted key."""
        found = self.values.get(key)
        return default if found is None else found.value

    def origin(self, key: str) -> str:
        """Where the value of a key was set."""
        found = self.values.get(key)
        return "default" if found is None else found.origin

    def table(self, name: str) -> dict[str, Any]:
        """What was set of a table ("context", "tools", "providers" …), without defaults."""
        prefix = f"{name}."
        return {key[len(prefix) :]: value.value for key, value in self.values.items() if key.startswith(prefix)}

    def general(self) -> General:
        """The top-level keys, checked. Raises ConfigError."""
        given = {name: self.values[name].value for name in General.__struct_fields__ if name in self.values}
        made = _convert(given, General, self)
        if made.mode not in CONTEXT_MODES:
            raise self._none_of("mode", made.mode, CONTEXT_MODES)
        if made.effort is not None and made.effort not in EFFORTS:
            raise self._none_of("effort", made.effort, EFFORTS)
        for name, least in _LEAST.items():
            if (number := getattr(made, name)) is not None and not number >= least:  # a NaN is not either
                raise self._wrong(name, f"is {number}", f"at least {least}")
        if made.temperature == math.inf:
            raise self._wrong("temperature", f"is {made.temperature}", "a number such as 0.7")
        return made

    def _none_of(self, key: str, value: object, choices: Sequence[str]) -> BrimError:
        """What is wrong with a value that is none of its choices: the command line, or a setting."""
        return self._wrong(key, f"is {value!r}", f"one of {', '.join(choices)}")

    def _wrong(self, key: str, what: str, hint: str) -> BrimError:
        if self.origin(key) == "flag":
            return UsageError(f"{_FLAGS.get(key, '--' + key.replace('_', '-'))} {what}", hint=hint)
        return ConfigError(f"{key} {what} ({self.origin(key)})", hint=hint)

    def schema_path(self, workspace: Path) -> Path | None:
        """The file of `schema`: a flag's is relative to the current folder, a setting's to its file, else the workspace."""
        if (named := self.general().schema) is None:
            return None
        path = Path(named).expanduser()
        if path.is_absolute() or self.origin("schema") == "flag":
            return path
        beside = [file.parent / path for file in reversed(self.files)]
        return next((each for each in beside if each.is_file()), workspace / path)

    def settings(self) -> Settings:
        """The table [context], checked. Raises ConfigError."""
        types = {field.name: field.type for field in msgspec.structs.fields(Settings)}
        given = {
            name: None if isinstance(value, str) and value in _NONE and _takes_none(types[name]) else value
            for name, value in self.table("context").items()
        }
        return load_settings(given)

    def caps(self, env: Mapping[str, str], window: int | None = None) -> Caps:
        """The table [tools] and the TOOL_ variables. Where neither names a cap, a small window (tokens) lowers it: one
        result takes at most an eighth of the window."""
        scaled: dict[str, object] = {}
        if window is not None:
            most = max(256, window // 8)
            scaled = {
                name: min(getattr(Caps(), name), most)
                for name in ("read", "bash", "bash_stderr", "grep", "glob", "diff", "other")
            }
        return load_caps(env, {**scaled, **self.table("tools")})

    def experiment(self) -> dict[str, float]:
        """The table [experiment], checked: the share of new sessions for each mode. Raises ConfigError."""
        return check_shares(self.table("experiment"))

    def permissions(self) -> PermissionRules:
        """The table [permissions], checked. Raises ConfigError."""
        made = _convert(self.table("permissions"), PermissionRules, self, "permissions.")
        if made.mode not in MODES:
            raise self._none_of("permissions.mode", made.mode, MODES)
        if made.sandbox not in SANDBOX_MODES:
            raise self._none_of("permissions.sandbox", made.sandbox, SANDBOX_MODES)
        return made

    def mcp(self) -> McpSettings:
        """The table [mcp], checked. Raises ConfigError."""
        return check_servers(_convert(self.table("mcp"), McpSettings, self, "mcp."))

    def retrieval(self) -> Retrieval:
        """The table [retrieval], checked. Raises ConfigError."""
        made = _convert(self.table("retrieval"), Retrieval, self, "retrieval.")
        for name in ("seconds", "most_files", "most_bytes"):
            if not (number := getattr(made, name)) >= 0:
                raise self._wrong(f"retrieval.{name}", f"is {number}", "at least 0")
        for name in ("snippets", "tree"):
            if getattr(made, name) not in RETRIEVAL_CHOICES:
                raise ConfigError(
                    f"retrieval.{name} is {getattr(made, name)!r} ({self.origin(f'retrieval.{name}')})",
                    hint=f"one of {', '.join(RETRIEVAL_CHOICES)}",
                )
        return made

    def profile(self, name: str) -> Profile:
        """A profile by name. Raises ConfigError naming those there are."""
        own = self.table("profiles")
        if name not in own and name not in PROFILES:
            known = sorted({*own, *PROFILES})
            near = nearest(name, known)
            raise ConfigError(
                f"there is no profile {name!r}",
                hint=(f"did you mean {near!r}? " if near else "") + f"profiles: {', '.join(known)}",
            )
        base = msgspec.to_builtins(PROFILES.get(name, Profile()))
        given = own.get(name, {})
        if not isinstance(given, Mapping):
            raise ConfigError(f"profiles.{name} is no table", hint=f"write [profiles.{name}]")
        made = _convert({**base, **given}, Profile, self, f"profiles.{name}.")
        for key, choices in (("mode", CONTEXT_MODES), ("effort", EFFORTS)):
            if (value := getattr(made, key)) is not None and value not in choices:
                where = _nearest_origin(self, f"profiles.{name}")
                raise ConfigError(f"profiles.{name}.{key} is {value!r} ({where})", hint=f"one of {', '.join(choices)}")
        return made

    def prices(self) -> dict[str, Any]:
        """The table [prices]: the user's own prices, by model or pattern. Raises ConfigError."""
        from brim.budget import prices_of

        given = self.table("prices")
        for pattern in given:
            with _in_plain_words():
                prices_of(pattern, {pattern: given[pattern]})
        return given

    def providers(self) -> dict[str, Any]:
        """What `brim.providers.resolve_model` takes."""
        return {"providers": self.table("providers")}


def load_config(
    workspace: Path,
    env: Mapping[str, str],
    *,
    flags: Mapping[str, Any] | None = None,
    profile: str | None = None,
    user_file: Path | None = None,
) -> Config:
    """Everything that was configured. `flags`: dotted keys given on the command line (None: not given).

    Raises ConfigError: a file that is no TOML, an unknown key (with the nearest right one), a value of the wrong type.
    """
    config = Config({}, [], [])
    for struct, prefix in ((General, ""), (PermissionRules, "permissions."), (Retrieval, "retrieval.")):
        for field in msgspec.structs.fields(struct):
            default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
            config.values[prefix + field.name] = Value(default, "default")
    user = user_file or user_config_path(env)
    _read_file(config, user, project=False)
    found = project_config_path(workspace)
    if found is not None and found.resolve() != user.resolve():
        _read_file(config, found, project=True)
    _read_environment(config, env)
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    chosen = profile or config.get("profile")
    if chosen:
        for name, value in msgspec.to_builtins(config.profile(chosen)).items():
            from_flag = profile is not None or config.origin(name) in ("default", str(user))
            if value is not None and from_flag:
                config.values[name] = Value(value, f"profile {chosen}")
    for key, value in given.items():
        if key in ("permissions.allow", "permissions.deny"):
            value = [*config.get(key, []), *value]
        config.values[key] = Value(value, "flag")
    if given.get("effort") is not None and given.get("thinking_budget") is None:
        config.values["thinking_budget"] = Value(None, "flag")  # a flag of the one kind wins over a file's of the other
    config.general()
    config.settings()
    config.permissions()
    config.retrieval()
    config.experiment()
    config.mcp()
    config.prices()
    for name in config.table("profiles"):  # what is wrong with one is told before it is used
        config.profile(name)
    if config.table("providers"):
        from brim.providers.presets import own_providers

        with _in_plain_words():
            own_providers(config.providers())
    return config


def user_config_path(env: Mapping[str, str]) -> Path:
    """BRIM_CONFIG, else `brim/config.toml` in the user's config folder."""
    if named := env.get("BRIM_CONFIG", "").strip():
        return Path(named).expanduser()
    if base := env.get("XDG_CONFIG_HOME", "").strip():
        return Path(base) / "brim" / "config.toml"
    import platformdirs

    return Path(platformdirs.user_config_dir("brim")) / "config.toml"


def project_config_path(workspace: Path) -> Path | None:
    """`.brim/config.toml` of the workspace or of a folder above it, up to the one that holds `.git`."""
    for folder in (workspace, *workspace.parents):
        path = folder / ".brim" / "config.toml"
        if path.is_file():
            return path
        if (folder / ".git").exists():
            break
    return None


def load_dotenv(workspace: Path, env: Mapping[str, str]) -> dict[str, str]:
    """The environment with what `.env` of the workspace adds: keys, models and tool caps, nothing that is set already.

    A base URL counts only where the key that goes there stands in the same file: a project must not send the user's key
    elsewhere.
    """
    merged = dict(env)
    path = workspace / ".env"
    if not path.is_file():
        return merged
    from dotenv import dotenv_values

    from brim.providers.presets import PRESETS

    given = {name: value for name, value in dotenv_values(path, interpolate=False).items() if value}
    wanted = {name for name in given if name.endswith("_API_KEY") or name.removeprefix("BRIM_") in CAP_VARIABLES}
    for preset in PRESETS.values():
        wanted.update(preset.key_env)
        wanted.update(preset.model_env)
        if any(name in given and not env.get(name) for name in preset.key_env):
            wanted.update(preset.base_env)
    for name in wanted & given.keys():
        merged.setdefault(name, given[name])
    return merged


def _read_file(config: Config, path: Path, *, project: bool) -> None:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", hint="fix the file or its permissions") from error
    try:
        parsed = msgspec.toml.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is no TOML: {error}", hint="fix that line") from error
    config.files.append(path)
    for key, value in _flatten(parsed, path):
        if project and (why := _widens(key, value, config.get(key))):
            config.warnings.append(f"{path}: {key} is left out: {why}")
            continue
        if key in ("permissions.deny", "permissions.ask", "permissions.allow") and isinstance(value, list):
            value = [*config.get(key, []), *value]
        config.values[key] = Value(value, str(path))


def _flatten(parsed: Mapping[str, Any], path: Path) -> Iterable[tuple[str, Any]]:
    for name, value in parsed.items():
        if name in _FREE:
            if not isinstance(value, Mapping):
                raise ConfigError(f"{path}: {name} is no table", hint=f"write [{name}.NAME]")
            for inner, given in value.items():
                yield f"{name}.{inner}", given
        elif name in _TABLES and name:
            if not isinstance(value, Mapping):
                raise ConfigError(f"{path}: {name} is no table", hint=f"write [{name}]")
            for inner, given in value.items():
                if inner not in _TABLES[name]:
                    raise _unknown(f"{name}.{inner}", path)
                yield f"{name}.{inner}", given
        elif name in _TABLES[""]:
            yield name, value
        elif name in _PLAIN_SETTINGS:  # B6 names them bare; both spellings are taken
            yield f"context.{name}", value
        else:
            raise _unknown(name, path)


def known_keys() -> list[str]:
    """Every dotted key there is, but for the user's own names."""
    return [f"{table}.{name}" if table else name for table, names in _TABLES.items() for name in names]


def _unknown(key: str, where: object) -> ConfigError:
    table, _, name = key.rpartition(".")
    if table:  # by its own name: that of its table would make all of them alike
        beside = nearest(name, _TABLES[table])
        near = f"{table}.{beside}" if beside is not None else None
    else:
        near = nearest(key, [*known_keys(), *(each for each in (*_TABLES, *_FREE) if each)])
    if near is None:
        tails = {known.rpartition(".")[2]: known for known in known_keys()}
        tail = nearest(name, tails)
        near = tails[tail] if tail is not None else None
    hint = f"did you mean {near!r}?" if near else "`brim config show` lists all"
    return ConfigError(f"{where}: unknown key {key!r}", hint=hint)


def nearest(word: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """The name that was probably meant: one that goes on from the word, one of the same letters, or the most alike (at
    least so much, 0 to 1)."""

    def likeness(name: str) -> tuple[bool, bool, float]:
        same = sorted(name) == sorted(word)
        return name.startswith(word), same, difflib.SequenceMatcher(None, word, name).ratio()

    best = max(known, key=likeness, default=None)
    return best if best is not None and (any(likeness(best)[:2]) or likeness(best)[2] >= least) else None


def _widens(key: str, value: Any, before: Any) -> str | None:
    if key.split(".")[0] in _NOT_OF_A_PROJECT or key in _NOT_OF_A_PROJECT:
        return "a project may not set it; put it into your own config"
    if key in _NARROWER and value not in _NARROWER[key]:
        return f"a project may only narrow it ({' or '.join(_toml(each) for each in _NARROWER[key])})"
    if key == "permissions.mode" and before == "read-only" and value != before:
        return "a project may only narrow it, and yours is read-only"
    return None


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_environment(config: Config, env: Mapping[str, str]) -> None:
    by_variable = {f"BRIM_{key.replace('.', '_').upper()}": key for key in known_keys()}
    by_variable |= {f"BRIM_{name.upper()}": f"context.{name}" for name in _PLAIN_SETTINGS}
    by_variable |= _ENV_ALIASES
    for variable, given in sorted(env.items()):
        if not variable.startswith("BRIM_") or not given.strip():
            continue
        key = by_variable.get(variable)
        if key is not None:
            config.values[key] = Value(_from_text(key, given.strip(), variable), f"environment {variable}")
        elif variable in _ENV_OF_OTHERS or variable.removeprefix("BRIM_") in CAP_VARIABLES:
            continue
        elif near := nearest(variable, by_variable, 0.85):
            config.warnings.append(f"environment: {variable} is unknown; did you mean {near}?")
    for variable, key in (("BRIM_ALLOW", "permissions.allow"), ("BRIM_DENY", "permissions.deny")):
        if env.get(variable, "").strip():
            rules = [rule.strip() for rule in env[variable].split(",") if rule.strip()]
            config.values[key] = Value([*config.get(key, []), *rules], f"environment {variable}")


def _from_text(key: str, given: str, variable: str) -> Any:
    """A value written as text: what the field's type makes of it."""
    table, _, name = key.rpartition(".")
    struct: Any = {
        "": General,
        "context": Settings,
        "tools": Caps,
        "permissions": PermissionRules,
        "retrieval": Retrieval,
        "experiment": Shares,
    }[table]
    field = next(each for each in msgspec.structs.fields(struct) if each.name == name)
    if given.lower() in _NONE and _takes_none(field.type):
        return None
    try:
        decoded = msgspec.json.decode(given.encode())
    except msgspec.DecodeError:
        decoded = given
    listed = [each.strip() for each in given.split(",") if each.strip()]  # a list of texts, as for BRIM_ALLOW
    wrong = ""
    for value in (decoded, given, listed):
        try:
            return msgspec.convert(value, field.type, strict=False)
        except msgspec.ValidationError as failure:
            wrong = wrong or plain_type_error(str(failure).partition(", got ")[0])
    raise ConfigError(f"{variable} is {given!r}: {wrong}", hint=f"give it a value for {key}")


_NONE = ("none", "off", "null")
"""How a setting is switched off where TOML and the environment have no word for it."""


def _takes_none(kind: Any) -> bool:
    try:
        msgspec.convert(None, kind)
    except msgspec.ValidationError:
        return False
    return True


def _convert(given: Mapping[str, Any], struct: type[S], config: Config, prefix: str = "") -> S:
    try:
        return msgspec.convert(dict(given), struct, strict=False)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at ")
        unknown = re.search(r"unknown field `(.+?)`", said)
        key, known = place_of(given, struct, place.strip("`").removeprefix("$"), unknown[1] if unknown else None)
        key = f"{prefix}{key}".rstrip(".")
        where = _nearest_origin(config, key)
        if unknown:
            near = nearest(unknown[1], known)
            raise ConfigError(
                f"{where}: unknown key {f'{key}.{unknown[1]}'.lstrip('.')!r}",
                hint=f"did you mean {f'{key}.{near}'.lstrip('.')!r}?" if near else f"keys: {', '.join(known)}",
            ) from error
        raise ConfigError(
            f"{key or 'the configuration'}: {plain_type_error(said)} ({where})",
            hint="`brim config show --origin` lists every value",
        ) from error


@contextlib.contextmanager
def _in_plain_words() -> Iterator[None]:
    """What a decoder below said of a value, as `_convert` says it."""
    try:
        yield
    except ConfigError as error:
        what, _, said = error.message.partition(": ")
        said, _, place = said.partition(" - at ")
        if not isinstance(error.__cause__, msgspec.ValidationError) or not said:
            raise
        key = place.strip("`").removeprefix("$.")
        raise ConfigError(f"{what}: {f'{key}: ' if key else ''}{plain_type_error(said)}", hint=error.hint) from error


def _nearest_origin(config: Config, key: str) -> str:
    """Where a key was set, or what it stands in, or anything below it."""
    outer = key
    while outer:
        if outer in config.values:
            return config.origin(outer)
        outer = outer.rpartition(".")[0]
    below = (each for each in config.values if each.startswith(f"{key}."))
    return next((where for each in below if (where := config.origin(each)) != "default"), "default")
