"""Rules for tools of MCP servers: by server, by tool, by what stands among a call's arguments."""

from __future__ import annotations

from typing import Any

import pytest

from brim.permissions import check
from brim.permissions.rules import parse_rule

FETCH = "mcp__web-docs__fetch"
HERE: dict[str, Any] = {"url": "https://docs.python.org/3/", "raw": True}


@pytest.mark.parametrize(
    "rule", [FETCH, "mcp__web-docs", "mcp__web-docs__*", "mcp__*", f"{FETCH}(https://docs.python.org/*)"]
)
def test_what_allows_a_tool(rule: str) -> None:
    """A tool, a whole server, a pattern of names, a pattern of arguments: each allows, and each denies."""
    assert parse_rule(rule, "allow").tool.startswith("mcp__")
    assert check(FETCH, HERE, allow=[rule]).decision == "allow"
    assert check(FETCH, HERE, allow=[FETCH], deny=[rule]).decision == "deny"


@pytest.mark.parametrize(
    "rule",
    [
        "mcp__web",
        "mcp__web-doc",
        "mcp__web-docs__fetch_all",
        "fetch",
        "bash",
        "read",
        f"{FETCH}(https://docs.python.org)",
    ],
)
def test_what_allows_another_tool_only(rule: str) -> None:
    """A server's name is a whole name, and rules for brim's own tools say nothing of a server's."""
    assert check(FETCH, HERE, allow=[rule]).decision == "ask"


def test_nothing_runs_without_a_rule() -> None:
    """No word of the server's, and no mode but allow-all, lets a call run; the rule that would is named."""
    verdict = check(FETCH, HERE, read_only=True)
    assert verdict.decision == "ask" and verdict.needs == (FETCH,) and verdict.flags() == f"--allow {FETCH}"
    assert check(FETCH, HERE, mode="accept-edits", read_only=True).decision == "ask"
    assert check(FETCH, HERE, mode="read-only", read_only=True).decision == "deny"
    assert check(FETCH, HERE, mode="allow-all").decision == "allow"
    assert check("find_tool", {"query": "x"}, mode="read-only").decision == "allow"


@pytest.mark.parametrize(
    ("arguments", "allowed", "denied"),
    [
        ({"path": "/srv/app/a"}, True, True),
        ({"path": "/srv/app/a", "to": "/etc/passwd"}, False, True),
        ({"path": "/etc/passwd"}, False, False),
        ({"path": "/srv/app/../../etc/passwd"}, False, True),
        ({"path": "/srv/app/..\\..\\etc"}, False, True),
        ({"paths": ["/srv/app/a", "/srv/app/b"], "deep": {"to": "/srv/app/c"}}, True, True),
        ({"paths": ["/srv/app/a", "/etc/shadow"]}, False, True),
        ({"deep": [{"to": "/etc/shadow"}], "count": 3}, False, False),
        ({"count": 3}, False, False),
        ({}, False, False),
    ],
)
def test_a_pattern_allows_narrowly_and_denies_broadly(arguments: dict[str, Any], allowed: bool, denied: bool) -> None:
    """A pattern allows where every text of the call fits and none climbs; it denies where any does."""
    rule = "mcp__fs__move(/srv/app/*)"
    assert (check("mcp__fs__move", arguments, allow=[rule]).decision == "allow") is allowed
    assert (check("mcp__fs__move", arguments, allow=["mcp__fs"], deny=[rule]).decision == "deny") is denied
