"""What a model says is shown and steers nothing: escape sequences of an answer do not reach a terminal as such."""

from __future__ import annotations

import io

import pytest

from brim.agent import events as ev
from brim.cli.output import TextOutput

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


def test_a_script_gets_the_bytes_as_they_are() -> None:
    """Where stdout is no terminal, the answer is the model's to the letter."""
    out = io.StringIO()
    output = TextOutput(out=out, err=io.StringIO())
    output(ev.Text(STEERING))
    output.close()
    assert out.getvalue() == STEERING
