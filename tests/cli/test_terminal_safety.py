"""What a model says is shown and steers nothing: escape sequences of an answer do not reach a terminal as such."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from brim.agent import events as ev
from brim.cli.commands.shown import say
from brim.cli.output import TextOutput
from brim.errors import BrimError
from brim.testing import ScriptedProvider, reply, tool_call
from shared_ai import make_home
from shared_terminal import Terminal as Screen

STEERING = "\x1b]52;c;c3RvbGVu\x07before\x1b[2Jafter \x9b31m\x7f\ttab\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("markdown", [True, False])
def test_an_answer_steers_no_terminal(monkeypatch: pytest.MonkeyPatch, markdown: bool) -> None:
    """Clipboard, screen and colour sequences are seen as signs, in Markdown and plain; words stay."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    output = TextOutput(markdown=markdown, out=out, err=io.StringIO())
    output(ev.Text(STEERING))
    output.close()
    shown = out.getvalue()
    assert "\x1b]52" not in shown and "\x1b[2J" not in shown and "\x9b" not in shown and "\x07" not in shown
    assert "before␛[2Jafter" in shown


def test_what_stands_beside_an_answer_steers_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool's output, a refused call, a notice and a server's error come from outside, too."""
    monkeypatch.setenv("TERM", "dumb")
    err = Terminal()
    output = TextOutput(verbose=True, out=io.StringIO(), err=err)
    output(ev.ToolStarted(id="c", name="bash", arguments='{"command": "echo \\u001b[2J"}'))
    output(ev.ToolFinished(id="c", name="bash", text=STEERING, is_error=False, tokens=1, chars=9, seconds=0.0))
    output(ev.Notice(STEERING, "model"))
    output.fail(BrimError(STEERING + "hidden\rshown"))
    assert not {"\x1b", "\x07", "\x9b", "\x7f"} & set(err.getvalue())
    assert "before␛[2Jafter" in err.getvalue()


def test_a_question_shows_all_that_would_run(tmp_path: Path) -> None:
    """A command that hides its end from the one who is asked, by colours or by going back on the line, is seen whole."""
    command = "ls \x1b[8m; touch hidden\x1b[0m\x1b[2K"
    with ScriptedProvider([tool_call("bash", {"command": command}), reply("fine")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Screen(home) as terminal:
            terminal.wait("/help")
            terminal.enter("look")
            terminal.wait("? bash: ls ␛[8m; touch hidden␛[0m␛[2K", "allow it?")
            terminal.enter("n")
            terminal.wait("fine")
            terminal.enter("/tools last")
            terminal.wait("refused: the user said no")


def test_commands_of_brim_steer_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """`brim sessions show` at a terminal shows what tools returned as signs; into a file it is as it was."""
    for stream, expected in ((Terminal(), "before␛[2Jafter"), (io.StringIO(), "before\x1b[2Jafter")):
        monkeypatch.setattr("sys.stdout", stream)
        say(STEERING)
        assert expected in stream.getvalue()


def test_a_script_gets_the_bytes_as_they_are() -> None:
    """Where stdout is no terminal, the answer is the model's to the letter."""
    out = io.StringIO()
    output = TextOutput(out=out, err=io.StringIO())
    output(ev.Text(STEERING))
    output.close()
    assert out.getvalue() == STEERING
