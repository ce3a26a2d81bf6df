"""The terminal, held for a whole conversation: what is typed meanwhile waits, and a paste stays one.

Between two lines nothing may fall back to the shell's ways, not even for a moment: a paste that arrives then would come in
as thousands of lines, each taken for a message of its own.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from prompt_toolkit.application.current import create_app_session, get_app_session
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output


class _Marking(Vt100_Output):
    """Pastes stay marked from the first line to the last: prompt_toolkit alone ends that with each line."""

    def disable_bracketed_paste(self) -> None:
        """Not before the conversation ends."""

    @contextlib.contextmanager
    def marked(self) -> Iterator[None]:
        self.enable_bracketed_paste()
        self.flush()
        try:
            yield
        finally:
            with contextlib.suppress(OSError, ValueError):  # the terminal has gone
                super().disable_bracketed_paste()
                self.flush()


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Holds the terminal: keys do not show outside the line that is written on, and each paste is marked as one."""
    term = os.environ.get("TERM")
    if sys.platform == "win32" or term == "dumb" or not sys.stdout.isatty():
        with _unseen():
            yield
        return
    output = _Marking.from_pty(sys.stdout, term=term, default_color_depth=ColorDepth.from_env())
    assert isinstance(output, _Marking)
    with _unseen(), create_app_session(output=output), output.marked():
        yield


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    try:
        import termios

        fd = sys.stdin.fileno()
        before = termios.tcgetattr(fd)
    except (ImportError, OSError, ValueError):
        yield
        return
    quiet = list(before)
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    quiet[3] |= termios.NOFLSH  # Ctrl-C stops an answer; what was typed meanwhile stays
    termios.tcsetattr(fd, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            termios.tcsetattr(fd, termios.TCSADRAIN, before)


def typed_ahead() -> str:
    """Takes what was typed ahead, as text: keys that write, and lines' ends."""
    terminal = get_app_session().input
    keys = get_typeahead(terminal)
    while more := terminal.read_keys():
        keys += more
    text = "".join("\n" if key.key in (Keys.ControlM, Keys.ControlJ) else key.data for key in keys if _writes(key))
    return text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")


def _writes(key: KeyPress) -> bool:
    """Whether a key puts something on the line: a character, a paste, Enter."""
    return key.key in (Keys.ControlM, Keys.ControlJ, Keys.BracketedPaste) or len(key.key) == 1


@contextlib.contextmanager
def typed_ahead_kept() -> Iterator[KeyBindings]:
    """For a question that no key may answer that was pressed before it was seen: what was typed ahead is put aside, as are
    pastes meanwhile, and is there again afterwards. Gives the bindings for the question."""
    terminal = get_app_session().input
    aside = get_typeahead(terminal)
    while keys := terminal.read_keys():
        aside += keys
    bindings = KeyBindings()

    @bindings.add(Keys.BracketedPaste)
    def _paste(event: KeyPressEvent) -> None:
        aside.append(KeyPress(Keys.BracketedPaste, event.data))

    try:
        yield bindings
    finally:
        store_typeahead(terminal, aside + get_typeahead(terminal))
