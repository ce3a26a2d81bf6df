"""How much of its output each tool may show, and how long and how much it may work.

Every number can be set in the config's [tools] table under its field name, and the caps by environment: the names
below as they stand, or with the prefix BRIM_, which wins.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import msgspec

from brim.errors import ConfigError


class Caps(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens unless a name says otherwise."""

    read: int = 8_000
    bash: int = 6_000
    bash_stderr: int = 2_000
    grep: int = 4_000
    grep_lines: int = 200
    glob: int = 2_000
    diff: int = 2_000
    """The diff that write and edit answer with."""
    other: int = 6_000
    """Any tool that has no cap of its own, those of MCP servers included."""
    grep_no_ignore: bool = False
    """Whether grep searches ignored files and noise folders where a call does not say."""
    line_chars: int = 400
    """A longer line of grep is shortened around its match to about this many characters."""

    blob_bytes: int = 64 * 1024 * 1024
    """How much of an output's original is stored."""
    bash_bytes: int = 4 * 1024 * 1024 * 1024
    """A command that prints more than this, stdout and stderr together, is ended."""
    bash_timeout: int = 120
    """Seconds, where a call names none."""
    bash_timeout_most: int = 3_600
    """Seconds; a call that asks for more gets this."""
    search_timeout: int = 30
    """Seconds a grep or glob may take."""
    search_memory: int = 512 * 1024 * 1024
    """Bytes that ripgrep may hold (Linux); past it the search is done again in a slower way that holds nothing."""
    read_bytes: int = 4 * 1024 * 1024 * 1024
    """How much of a file read looks at, to find a page and to count its lines."""
    edit_bytes: int = 64 * 1024 * 1024
    """A larger file is not edited."""
    parallel: int = 4
    """Read-only calls of one message that run at the same time."""


ENVIRONMENT: Mapping[str, str] = {
    "TOOL_READ_MAX_TOKENS": "read",
    "TOOL_BASH_MAX_TOKENS": "bash",
    "TOOL_BASH_STDERR_MAX_TOKENS": "bash_stderr",
    "TOOL_GREP_MAX_TOKENS": "grep",
    "TOOL_GREP_MAX_LINES": "grep_lines",
    "TOOL_GREP_NO_IGNORE": "grep_no_ignore",
    "TOOL_GLOB_MAX_TOKENS": "glob",
    "TOOL_DIFF_MAX_TOKENS": "diff",
    "TOOL_OTHER_MAX_TOKENS": "other",
    "TOOL_BLOB_MAX_BYTES": "blob_bytes",
    "TOOL_BASH_MAX_BYTES": "bash_bytes",
    "TOOL_READ_MAX_BYTES": "read_bytes",
    "TOOL_BASH_TIMEOUT": "bash_timeout",
    "TOOL_SEARCH_TIMEOUT": "search_timeout",
}


def load_caps(env: Mapping[str, str], config: Mapping[str, object] | None = None) -> Caps:
    """Caps from the environment, over a config table, over the defaults. Raises ConfigError that names the culprit."""
    values: dict[str, int | bool] = {}
    for name, given in (config or {}).items():
        if name not in Caps.__struct_fields__:
            near = difflib.get_close_matches(name, Caps.__struct_fields__, 1)
            raise ConfigError(
                f"unknown setting tools.{name}",
                hint=f"did you mean tools.{near[0]}?" if near else "known: " + ", ".join(Caps.__struct_fields__),
            )
        values[name] = _checked(name, f"tools.{name}", given)
    for name, field in ENVIRONMENT.items():
        for variable in (name, f"BRIM_{name}"):
            if env.get(variable, "").strip():
                values[field] = _checked(field, variable, env[variable])
    return msgspec.convert(values, Caps)


def _checked(field: str, name: str, given: object) -> int | bool:
    return _truth(name, given) if field == "grep_no_ignore" else _positive(name, given)


def _truth(name: str, given: object) -> bool:
    if isinstance(given, bool):
        return given
    told = str(given).strip().lower()
    if told in ("1", "true", "yes", "on"):
        return True
    if told in ("0", "false", "no", "off"):
        return False
    raise ConfigError(f"{name} is {given!r}", hint=f"set {name} to true or false")


def _positive(name: str, given: object) -> int:
    try:
        if isinstance(given, bool) or not isinstance(given, (str, int)):
            raise ValueError
        number = int(given.strip().replace("_", "").replace(",", "")) if isinstance(given, str) else given
    except ValueError:
        number = 0
    if number <= 0:
        raise ConfigError(f"{name} is {given!r}", hint=f"set {name} to a whole number above 0, or leave it out")
    return number
