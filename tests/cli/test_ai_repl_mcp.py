"""MCP servers in a conversation at a terminal: what is shown, what is asked, and that they go with it."""

from __future__ import annotations

from pathlib import Path

from brim.testing import ScriptedProvider, reply, tool_call
from shared_ai import make_home
from shared_mcp import alive, server_table, write_server
from shared_terminal import Terminal


def test_mcp_in_a_conversation(tmp_path: Path) -> None:
    """/mcp shows each server with its tools and their tokens and starts one again; a call is asked about with its rule;
    another session keeps the servers; leaving ends them."""
    script, pids = write_server(tmp_path), tmp_path / "pids"
    calls = [
        tool_call("mcp__t__greet", {"name": "Ada"}),
        reply("greeted"),
        tool_call("mcp__t__greet", {"name": "Bob"}),
        reply("greeted once more"),
    ]
    with ScriptedProvider(calls) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        tables = (
            "[mcp]\nwait = 60\n" + server_table("t", script, "--pid", str(pids)) + server_table("bad", script, "--die")
        )
        (home.root / "config.toml").write_text(tables, encoding="utf-8")
        with Terminal(home) as terminal:
            terminal.wait("/help")
            terminal.wait("bad did not start: it ended with exit code 3")
            terminal.enter("greet Ada")
            terminal.wait("? mcp__t__greet", "[a]lways: mcp__t__greet", seconds=60)
            terminal.enter("a")
            terminal.wait("greeted")
            terminal.enter("/mcp")
            terminal.wait("t  ready: 7 tools", "all in every request", "bad  failed: it ended with exit code 3")
            terminal.enter("/mcp t")
            terminal.wait("mcp__t__picture")
            terminal.enter("/new")
            terminal.enter("greet Bob")
            terminal.wait("greeted once more")
            assert len(pids.read_text().split()) == 1
            terminal.enter("/mcp restart t")
            terminal.wait("ready: 7 tools")
            terminal.enter("/mcp nothing")
            terminal.wait("/mcp nothing is not understood")
            terminal.key("C-d")
            terminal.wait("left with 0")
        known = [int(each) for each in pids.read_text().split()]
        assert len(known) == 2 and not any(alive(pid) for pid in known)
    assert upstream.requests[2].body["tools"] == upstream.requests[0].body["tools"]
