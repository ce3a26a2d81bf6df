"""The conversation at a terminal, driven in a real one: commands, questions, interrupts, sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from brim.store import open_store
from brim.testing import ScriptedProvider, fault, reply, tool_call
from shared_ai import make_home
from shared_terminal import Terminal

SLOW = reply(" ".join(f"word{n}" for n in range(2_000)), piece=8, delay=0.02)


def test_a_conversation_with_a_tool_a_question_and_a_diff(tmp_path: Path) -> None:
    """Markdown is rendered, a command is asked about with its exact rule, and the answer may hold from now on."""
    script = [
        reply("It is **bold**\n\n- one\n- two\n"),
        tool_call("bash", {"command": "touch made.txt"}),
        reply("made it"),
        tool_call("bash", {"command": "touch more.txt"}),
        reply("made more"),
    ]
    with ScriptedProvider(script) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Terminal(home) as terminal:
            terminal.wait("brim · openai/gpt-4o · auto", "/help")
            terminal.enter("hello")
            screen = terminal.wait("It is bold", "• two", "context 1%")
            assert "**" not in screen
            terminal.enter("make a file")
            terminal.wait("? bash: touch made.txt", "[a]lways: bash(touch *)")
            terminal.enter("a")
            terminal.wait("made it")
            terminal.enter("another one")
            terminal.wait("made more")
            terminal.key("C-d")
            terminal.wait("left with 0")
        assert (home.work / "made.txt").exists() and (home.work / "more.txt").exists()


def test_the_simulated_history_and_its_defences(tmp_path: Path) -> None:
    """/sim adds 20 messages, /status counts them, /defend shows the reference figures and asks no model."""
    with ScriptedProvider([]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Terminal(home) as terminal:
            terminal.wait("/help")
            terminal.enter("/sim")
            terminal.wait("20 messages, 11,781 tokens")
            terminal.enter("/defend")
            terminal.wait("truncated 0, budget-cleared 0, soft 1, hard 3", "no model call")
            terminal.enter("/explain")
            terminal.wait("expire", "hard True")
            terminal.enter("/context")
            terminal.wait("largest messages:", "stub by expire")
        assert upstream.requests == []


def test_ctrl_c_keeps_what_came_and_twice_leaves(tmp_path: Path) -> None:
    """An interrupted answer stays, marked incomplete, and the conversation goes on; two Ctrl-C leave."""
    with ScriptedProvider([SLOW, reply("fine")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Terminal(home, "--session", "s") as terminal:
            terminal.wait("/help")
            terminal.enter("tell me a lot")
            terminal.wait("word20")
            terminal.key("C-c")
            terminal.wait("interrupted")
            terminal.enter("and now?")
            terminal.wait("fine", "out · context")
            terminal.key("C-c")
            terminal.wait("leaves")
            terminal.key("C-c")
            terminal.wait("left with")
        with open_store(home.root / "data" / "brim.db") as store:
            messages = store.load("s")
        assert [each.incomplete for each in messages] == [False, True, False, False]
        assert messages[1].message.text.startswith("word0 word1 ")


def test_errors_are_shown_and_the_conversation_goes_on(tmp_path: Path) -> None:
    """A failure before any text stands on the screen with its next step; an unknown command names near ones."""
    with ScriptedProvider([fault(401), reply("works again")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Terminal(home) as terminal:
            terminal.wait("/help")
            terminal.enter("hello")
            terminal.wait("ai: openai (gpt-4o) answered 401", "check the key")
            terminal.enter("/statsu")
            terminal.wait("there is no command /statsu", "/status")
            terminal.enter("once more")
            terminal.wait("works again")


def test_sessions_modes_pins_and_exports(tmp_path: Path) -> None:
    """/mode, /pin, /new, /resume, /fork, /export and !cmd do what they say, in one store."""
    with ScriptedProvider([reply("noted")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Terminal(home, "--session", "first") as terminal:
            terminal.wait("/help")
            terminal.enter("never touch the database")
            terminal.wait("noted")
            terminal.enter("/pin")
            terminal.wait("pinned message 0")
            terminal.enter("/mode compact")
            terminal.wait("mode compact")
            terminal.enter("!echo from-the-shell")
            terminal.wait("exit code 0")
            terminal.enter("/fork 2")
            terminal.wait("a copy of first with 2 messages")
            terminal.enter("/new")
            terminal.wait("session ")
            terminal.enter("/resume first")
            terminal.wait("session first: 3 messages, mode compact")
            terminal.enter("/export out.json")
            terminal.wait("written:")
            terminal.enter('/export "a copy.json"')
            terminal.wait("/work/a copy.json")
            terminal.enter("/exit")
            terminal.wait("left with 0")
        assert (home.work / "a copy.json").read_text() == (home.work / "out.json").read_text()
        exported = json.loads((home.work / "out.json").read_text())
        assert "from-the-shell" in json.dumps(exported)


def test_sentences_break_between_words_on_a_narrow_terminal(tmp_path: Path) -> None:
    """In forty columns what commands say is broken between words, and the line below names whole things only."""
    with ScriptedProvider([reply("noted")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Terminal(home, "--session", "narrow", width=40) as terminal:
            terminal.wait("/help")
            terminal.enter("remember it")
            terminal.wait("noted")
            for line, said in (
                ("/pins", "nothing is pinned: /pin N, or begin a\n    paragraph with [PIN]"),
                ("/mode", "mode auto; full keeps everything,\n    compact summarises, auto selects"),
                ("/explain", "mode auto, epoch 0 (first request),\n         request 1, "),
                ("/mcp", "no MCP server is configured:\n    [mcp.servers.NAME] in `brim config\n    edit`"),
            ):
                terminal.enter(line)
                terminal.wait(said)
            status = terminal.wait("edit`\n>", "\n openai/gpt-4o · auto").rpartition("\n openai")[2]
            assert status.strip() == "/gpt-4o · auto · context 1%"


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_plain_terminals_get_plain_text(tmp_path: Path, env: dict[str, str]) -> None:
    """NO_COLOR and dumb terminals get the text as it is, on a narrow screen, with wide characters."""
    with ScriptedProvider([reply("**宽** 字符 and `code`")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Terminal(home, width=44, env=env) as terminal:
            terminal.wait("/help")
            terminal.enter("搜索关键词")
            terminal.wait("**宽** 字符 and `code`")
