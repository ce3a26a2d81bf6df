"""Ctrl-C wherever a conversation is, and commands that were not understood: nothing is lost, and the conversation goes on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from brim.cli.repl import Repl
from brim.testing import Received, ScriptedProvider, reply, tool_call
from brim.testing.script import Entry
from shared_ai import make_home
from shared_terminal import Terminal

SLOW = reply("".join(f"Sentence number {n} of it.\n\n" for n in range(100)), delay=0.1)


def test_what_was_typed_ahead_of_ctrl_c_is_not_sent_and_not_lost(tmp_path: Path) -> None:
    """Ctrl-C means that something is to be done differently: what was typed meanwhile stands on the next line."""
    with ScriptedProvider([SLOW, reply("Well.")]) as upstream:
        home = make_home(tmp_path, upstream.base_url)
        with Terminal(home) as terminal:
            terminal.wait("/help")
            terminal.enter("tell me")
            terminal.wait("Sentence number 1")
            terminal.enter("and then this")
            terminal.key("C-c")
            terminal.wait("ai: interrupted", "> and then this")
            assert len(upstream.requests) == 1
            terminal.key("Enter")
            terminal.wait("Well.")
        assert upstream.requests[-1].messages[-1]["content"].endswith("and then this")


def test_after_ctrl_z_and_fg_the_terminal_is_held_as_before(tmp_path: Path) -> None:
    """Stopped in the middle of an answer and brought back, ai shows nothing of what is typed ahead until its turn comes,
    and the shell had the terminal as it knows it meanwhile."""
    long = reply("".join(f"Sentence number {n} of it.\n\n" for n in range(2_000)), delay=0.1)
    with ScriptedProvider([long, reply("Well.")]) as upstream:
        home = make_home(tmp_path, upstream.base_url)
        with Terminal(home, in_shell=True) as terminal:
            terminal.wait("/help")
            terminal.enter("tell me")
            terminal.wait("Sentence number 1")
            terminal.key("C-z")
            stopped = terminal.wait("Stopped")
            terminal.enter("stty -a | grep -o '.icanon'; echo shell again")
            assert "-icanon" not in terminal.wait("\nshell again")
            terminal.enter("fg")
            last = max(int(number) for number in re.findall(r"Sentence number (\d+)", stopped))
            terminal.wait(f"Sentence number {last + 3}")
            terminal.send("typed meanwhile")
            terminal.wait(f"Sentence number {last + 20}")
            assert "typed meanwhile" not in terminal.screen
            terminal.key("C-c")
            terminal.wait("ai: interrupted", "> typed meanwhile")
            terminal.key("Enter")
            terminal.wait("Well.")
        assert upstream.requests[-1].messages[-1]["content"].endswith("typed meanwhile")


def test_ctrl_c_while_a_summary_is_written(tmp_path: Path) -> None:
    """/compact with a model that takes its time ends at Ctrl-C, and so does an answer that waits for a summary; the next
    request has brim's own summary."""

    def answers(received: Received) -> Entry:
        return reply("Fine. " + "word " * 2_000) if received.stream else reply("A summary.", delay=600)

    with ScriptedProvider([answers], repeat_last=True) as upstream:
        home = make_home(tmp_path, upstream.base_url)
        (tmp_path / "config.toml").write_text('mode = "compact"\nsummary_model = "same"\n')
        with Terminal(home) as terminal:
            terminal.wait("/help")
            for turn in range(9):
                terminal.enter(f"turn {turn}")
                terminal.wait("out · context", f"> turn {turn}")

                def answered(server: ScriptedProvider, turn: int = turn) -> bool:
                    return len(server.requests) > turn

                assert upstream.wait_for(answered)
            terminal.wait("> turn 8")
            terminal.enter("/compact")
            terminal.wait("summarising with")
            terminal.key("C-c")
            terminal.wait("\ninterrupted")
            terminal.enter("go on")
            assert upstream.wait_for(lambda server: any("go on" in str(each.messages[-1]) for each in server.requests))
            terminal.enter("/status")
            terminal.wait("mode compact")


def test_arguments_that_are_none_are_told(tmp_path: Path) -> None:
    """A command says what it did not understand instead of doing something else."""
    with ScriptedProvider([reply("Yes.")]) as upstream:
        home = make_home(tmp_path, upstream.base_url)
        with Terminal(home) as terminal:
            terminal.wait("/help")
            terminal.enter("/pin 3")
            terminal.wait("this session has no messages yet")
            terminal.enter("/rewind 4")
            terminal.wait("ai: no message 4")
            terminal.enter("hello")
            terminal.wait("Yes.")
            for line, said in (
                ("/status now", "/status takes nothing after it: 'now'"),
                ("/context sytem", "/context sytem is not understood"),
                ("/unpin", "/unpin needs the number of a message"),
                ("/unpin 0", "message 0 is not pinned"),
                ("/sessions search", "/sessions search needs a text"),
                ("/permissions deny", "/permissions deny needs a rule"),
                ("/explain 7", "no message 7"),
            ):
                terminal.enter(line)
                terminal.wait(said)
            terminal.clear()
            terminal.enter("/explain 0")
            screen = terminal.wait("keep user “hello”")
            assert "sys" not in screen


def test_a_defect_does_not_end_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What nobody foresaw in one line is told, and the next line is read."""
    import asyncio

    from brim.agent.config import load_config
    from brim.cli.options import Options
    from brim.cli.repl import Leave

    monkeypatch.delenv("BRIM_TRACEBACK", raising=False)
    for name, value in make_home(tmp_path, "http://127.0.0.1:9/v1").env.items():
        monkeypatch.setenv(name, value)
    lines = iter(["first", "second"])

    class Odd(Repl):
        async def read_line(self) -> str:
            try:
                return next(lines)
            except StopIteration:
                raise Leave from None

        async def handle(self, line: str) -> None:
            if line == "first":
                raise ZeroDivisionError("odd")
            self.say(f"handled {line}")

    async def converse() -> None:
        import os

        from brim.cli.run import choice_of

        repl = Odd(Options(), load_config(tmp_path, dict(os.environ)), tmp_path, dict(os.environ))
        try:
            await repl.open(choice_of(repl.options))
            await repl.talk()
        finally:
            await repl.close()

    asyncio.run(converse())
    told = capsys.readouterr()
    assert "ZeroDivisionError: odd" in told.err and "handled second" in told.out


def test_ctrl_c_after_a_question_was_answered(tmp_path: Path) -> None:
    """A question does not take Ctrl-C with it: it ends the command that was allowed, and the answer after the next one."""
    waits = tool_call("bash", {"command": "echo begun > begun; sleep 600"})
    script = [waits, tool_call("bash", {"command": "touch made"}), SLOW, reply("Well.")]
    with ScriptedProvider(script) as upstream:
        home = make_home(tmp_path, upstream.base_url)
        with Terminal(home) as terminal:
            terminal.wait("/help")
            terminal.enter("wait for it")
            terminal.wait("allow it?")
            terminal.enter("y")
            while not (home.work / "begun").exists():
                terminal.wait("allow it?")
            terminal.key("C-c")
            terminal.wait("interrupted", "what had come is kept")
            terminal.clear()
            terminal.enter("make it")
            terminal.wait("allow it?")
            terminal.enter("y")
            terminal.wait("Sentence number 1")
            terminal.key("C-c")
            terminal.wait("ai: interrupted")
            terminal.enter("go on")
            terminal.wait("Well.")
        assert (home.work / "made").exists()
