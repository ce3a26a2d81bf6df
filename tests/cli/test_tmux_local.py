"""A day with `ai` on the embedded model, in a real terminal: no key, no server, nothing scripted.

Screens in `screens/` were looked at; `BRIM_SCREENS=write` writes them anew. What the model itself says is hidden there, since
another processor may round another way.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shared_ai import Home, make_home
from shared_local_model import embedded_model
from shared_terminal import Terminal, assert_screen

MODEL, WHY_NOT = embedded_model()
pytestmark = pytest.mark.skipif(MODEL is None, reason=WHY_NOT)
PATIENCE_S = 240
ANSWER = {r"(?<= s\n).*?(?=\n#?[\d,]+ in )": "<answer>"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A project of two files, and a home that has the model but no key."""
    made = make_home(tmp_path / "home", None, key=None)
    assert MODEL is not None
    (made.root / "data").mkdir()
    (made.root / "data" / "models").symlink_to(MODEL.parent)
    (made.work / "app.py").write_text('print("hello from app")\n')
    (made.work / "notes.md").write_text("TODO: write the notes\n")
    return made


def brim(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "brim.cli.manage", *arguments],
        cwd=home.work, env=home.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_day_on_the_embedded_model(home: Home) -> None:
    """First start, a tool call with its permission, the window, modes, an interrupt, a second terminal, fork and rewind, export
    and import."""
    with Terminal(home, "--session", "day") as terminal:
        screen = terminal.wait(
            "the embedded 135M model", "session day", "/help", "smollm2 · auto · day", seconds=PATIENCE_S
        )
        assert_screen("local-1-first-start", screen)

        terminal.enter("Run python app.py")
        terminal.wait("? bash: python app.py", "allow it?", "bash(python *)", seconds=PATIENCE_S)
        terminal.enter("y")
        screen = terminal.wait("· bash python app.py", " out · context ", seconds=PATIENCE_S)
        assert_screen("local-2-tool-call", screen, hide=ANSWER)

        terminal.clear()
        terminal.enter("/context")
        screen = terminal.wait("largest messages:", "result of bash", "Run python app.py")
        assert_screen(
            "local-3-context", screen, since="> /context", hide={r"assistant +\d+  keep  [^\n]*": "assistant  <answer>"}
        )

        terminal.clear()
        for mode in ("compact", "full", "auto"):
            terminal.enter(f"/mode {mode}")
            screen = terminal.wait(f"mode {mode}: the next view is built anew", f"smollm2 · {mode} · ")
        assert_screen("local-4-modes", screen, since="> /mode compact")

        terminal.clear()
        terminal.enter("Write a very long story about the sea")
        terminal.wait("thinking")
        terminal.key("C-c")
        terminal.wait("interrupted", "what had come is kept")

        # a second terminal on the same session is told so, and offered a copy
        second_home = Home(home.root / "second", {**home.env})
        second_home.root.mkdir()
        (second_home.root / "work").symlink_to(home.work)
        with Terminal(second_home, "--session", "day") as second:
            second.wait("go on in a copy of it? [y/N]", seconds=PATIENCE_S)
            screen = second.screen
            second.enter("y")
            second.wait("messages · /help", seconds=PATIENCE_S)
            second.enter("/exit")
            second.wait("left with 0")
        assert_screen(
            "local-5-second-terminal", screen, hide={r"process \d+": "process #", r"on \S+ since": "on <host> since"}
        )

        terminal.clear()
        terminal.enter("/fork 2")
        terminal.wait("a copy of day with 2 messages")
        terminal.enter("/resume day")
        terminal.wait("session day: ")
        terminal.enter("/rewind")
        terminal.wait("/rewind N goes back")
        terminal.enter("/rewind 0")
        screen = terminal.wait("day~1 keeps the whole of it", "> Run python app.py")
        assert_screen("local-6-fork-and-rewind", screen, since="> /fork 2")
        terminal.key("C-c")
        terminal.enter("/rewind undo")
        terminal.wait("back in session day")
        terminal.enter("/export day.json")
        terminal.wait("written:")
        terminal.key("C-d")
        terminal.wait("left with 0")

    exported = json.loads((home.work / "day.json").read_text())
    assert [each["role"] for each in exported["messages"]][:4] == ["user", "assistant", "tool", "assistant"]
    imported = brim(home, "sessions", "import", "day.json")
    assert imported.returncode == 0, imported.stderr
    with Terminal(home, "--resume", imported.stdout.strip()) as again:
        again.wait(f"{len(exported['messages'])} messages", seconds=PATIENCE_S)
        again.enter("/pins")
        again.wait("nothing is pinned")
        again.enter("Run git status")
        again.wait(" out · context ", seconds=PATIENCE_S)


def test_the_simulated_history_on_the_embedded_model(home: Home) -> None:
    """/sim adds 20 messages, /status counts them, /defend shows the reference's counts exactly and its tokens within 5%, and no
    model is called."""
    with Terminal(home, "--session", "sim") as terminal:
        terminal.wait("/help", "smollm2 · auto · sim", seconds=PATIENCE_S)
        terminal.clear()
        terminal.enter("/sim")
        terminal.wait("20 simulated messages added")
        terminal.enter("/status")
        terminal.wait("window 8,192")
        terminal.enter("/defend")
        # the fixture is larger than this model's window, so room has to be made; the reference is about age alone
        screen = terminal.wait(
            "where age alone counts:",
            "truncated 0, budget-cleared 0, soft 1, hard 3; no model call",
            "-> 5,364 by local",
        )
        assert_screen("local-7-sim-and-defend", screen, since="> /sim", exact=True)
        terminal.enter("/cost")
        screen = terminal.wait("today, all sessions: $0")
        assert "requests" not in screen
    after = int(screen.split("11,781 -> ")[-1].split()[0].replace(",", ""))
    assert abs(after - 3_353) <= 0.05 * 3_353
