"""Caps: every number by config and environment, and a wrong one named."""

from __future__ import annotations

import pytest

from brim.errors import ConfigError
from brim.tools import Caps, load_caps


def test_defaults() -> None:
    """read 8,000; bash 6,000 and 2,000 for stderr; grep 4,000 and 200 lines; glob 2,000; originals 64 MB."""
    caps = load_caps({})
    assert (caps.read, caps.bash, caps.bash_stderr, caps.grep, caps.grep_lines, caps.glob) == (
        8000,
        6000,
        2000,
        4000,
        200,
        2000,
    )
    assert caps == Caps() and caps.blob_bytes == 64 * 1024 * 1024


@pytest.mark.parametrize(
    ("variable", "field"),
    [
        ("TOOL_READ_MAX_TOKENS", "read"), ("TOOL_BASH_MAX_TOKENS", "bash"), ("TOOL_BASH_STDERR_MAX_TOKENS", "bash_stderr"),
        ("TOOL_GREP_MAX_TOKENS", "grep"), ("TOOL_GREP_MAX_LINES", "grep_lines"), ("TOOL_GLOB_MAX_TOKENS", "glob"),
    ],
)  # fmt: skip
def test_environment(variable: str, field: str) -> None:
    """Each name is honoured as it stands and with BRIM_, which wins; environment over config; bad values are named."""
    assert getattr(load_caps({variable: "123"}), field) == 123
    assert getattr(load_caps({f"BRIM_{variable}": "45", variable: "123"}), field) == 45
    assert getattr(load_caps({variable: "123"}, {field: 7}), field) == 123
    assert getattr(load_caps({variable: ""}, {field: 7}), field) == 7
    assert getattr(load_caps({variable: "10_000"}), field) == 10_000
    for bad in ("many", "0", "-3", "1.5", "1e4"):
        with pytest.raises(ConfigError, match=f"BRIM_{variable} is '{bad}'"):
            load_caps({f"BRIM_{variable}": bad})


def test_config() -> None:
    """A config table takes the fields' names; an unknown or wrong one is an error that names it."""
    assert load_caps({}, {"grep": 10, "bash_timeout": "30"}).bash_timeout == 30
    with pytest.raises(ConfigError, match=r"unknown setting tools\.grep_line") as caught:
        load_caps({}, {"grep_line": 10})
    assert caught.value.hint == "did you mean tools.grep_lines?"
    for bad in (0, True, None, [1], 2.5):
        with pytest.raises(ConfigError, match=r"tools\.read is"):
            load_caps({}, {"read": bad})


def test_grep_can_search_ignored_files_by_setting() -> None:
    """TOOL_GREP_NO_IGNORE and tools.grep_no_ignore set what grep does where a call does not say; bad values are named."""
    assert load_caps({}).grep_no_ignore is False
    assert load_caps({"TOOL_GREP_NO_IGNORE": "true"}).grep_no_ignore is True
    assert load_caps({"BRIM_TOOL_GREP_NO_IGNORE": "0", "TOOL_GREP_NO_IGNORE": "1"}).grep_no_ignore is False
    assert load_caps({}, {"grep_no_ignore": True}).grep_no_ignore is True
    with pytest.raises(ConfigError, match="TOOL_GREP_NO_IGNORE is 'maybe'"):
        load_caps({"TOOL_GREP_NO_IGNORE": "maybe"})
