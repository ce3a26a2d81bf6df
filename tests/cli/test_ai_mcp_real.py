"""A server that others wrote, as it comes from PyPI: mcp-server-git, in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brim.testing import ScriptedProvider, reply, tool_call
from brim.tokens import counter_for
from shared_ai import make_home
from shared_mcp import toml

PACKAGE = "mcp-server-git==2026.10.19"


@pytest.fixture(scope="module")
def git_server(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The installed program; skipped where no registry can be reached."""
    folder = tmp_path_factory.mktemp("git-server")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]
    ran = subprocess.run(pip, capture_output=True, text=True)
    if ran.returncode:
        pytest.skip(f"{PACKAGE} cannot be installed here: {ran.stderr.strip().splitlines()[-1:]}")
    return str(folder / "bin" / "mcp-server-git")


def make_repository(folder: Path) -> str:
    """A repository whose only commit adds a file of 5 MB; returns the commit's hash."""

    def git(*arguments: str) -> str:
        ran = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
        return ran.stdout.strip()

    git("init", "-q")
    rows = (
        f"row {number:06} of the table, with a checksum {number * 7919 % 100_003:06}\n" for number in range(110_000)
    )
    (folder / "table.txt").write_text("".join(rows), encoding="utf-8")
    assert (folder / "table.txt").stat().st_size >= 5_000_000
    git("add", ".")
    git("commit", "-q", "-m", "a large table")
    return git("rev-parse", "HEAD")


@pytest.mark.slow
def test_a_diff_of_5_mb_from_a_real_server(tmp_path: Path, git_server: str) -> None:
    """mcp-server-git shows a commit of 5 MB through `ai`: bounded in the next request, and whole under its handle."""

    def read_on(received: Any) -> Any:
        shown = received.body["messages"][-1]["content"]
        handle = shown.split("recall handle ")[1].split(",")[0]
        return tool_call("recall", {"handle": handle, "pattern": "row 054321 "})

    with ScriptedProvider() as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        commit = make_repository(home.work)
        shown = tool_call("mcp__git__git_show", {"repo_path": str(home.work), "revision": commit})
        upstream.script = [shown, read_on, reply("done")]
        (home.root / "config.toml").write_text(f"[mcp.servers.git]\ncommand = {toml(git_server)}\n", encoding="utf-8")
        ran = home.run("show it", "--allow", "mcp__git__git_show", "--output-format", "stream-json", timeout=180)
        bodies = [received.body for received in upstream.requests]
    assert ran.code == 0 and ran.result["text"] == "done", ran
    results = [message["content"] for message in bodies[2]["messages"] if message["role"] == "tool"]
    assert "a large table" in results[0] and "left out: " in results[0]
    assert counter_for("gpt-4o").count_text(results[0]) <= 6_000
    assert "row 054321 of the table" in results[1]
