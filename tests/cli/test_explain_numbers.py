"""`explain` speaks of messages as every other command does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from brim.store import open_store
from brim.testing import ScriptedProvider, reply
from shared_ai import make_home
from shared_terminal import Terminal


def test_messages_have_one_number_everywhere_and_pins_are_named(tmp_path: Path) -> None:
    """The first message is 0 in /explain and `brim explain`, as for /pin, and the system prompt is called sys; what /pin
    pinned is said to be kept for that."""
    with ScriptedProvider([reply("noted")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Terminal(home, "--session", "s") as terminal:
            terminal.wait("/help", "gpt-4o · auto · s")
            terminal.enter("never touch the database")
            terminal.wait("noted", "out · context")
            terminal.enter("/pin 0")
            terminal.wait("pinned message 0")
            terminal.enter("go on")
            terminal.enter("/explain")
            screen = terminal.wait("sys  keep system", "0  keep user “never touch the database”: pinned")
            assert "2  keep user “go on”: the last user message" in screen
            terminal.enter("/exit")
            terminal.wait("left with 0")
        told = subprocess.run(
            [sys.executable, "-m", "brim.cli.manage", "explain", "s"],
            cwd=home.work, env=home.env, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert "0  keep user “never touch the database”: pinned" in told and "  sys  keep system" in told
        with open_store(home.root / "data" / "brim.db") as store:
            assert store.requests("s")[-1].meta["lead"] == 1 and store.requests("s")[-1].meta["pins"] == [0]
