"""The terminal, held for a whole conversation: what is typed meanwhile waits, and a paste stays one.

Between two lines nothing may fall back to the shell's ways, not even for a moment: a paste that arrives then would come in
as thousands of lines, each taken for a message of its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
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
        with _back_as_it_was(fd):
            yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            termios.tcsetattr(fd, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _back_as_it_was(fd: int) -> Iterator[None]:
    """Ctrl-Z gives the terminal to the shell as the shell knows it, and `fg` takes it back as it was at that moment: what
    is typed while the answer goes on does not show in between, and a paste stays one."""
    import termios

    marks = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"

    def mark(pastes: bytes) -> None:
        if marks:
            with contextlib.suppress(OSError):
                os.write(sys.stdout.fileno(), pastes)  # not through the stream: it may be in the middle of a write

    def on_stop(number: int, frame: object) -> None:
        held = termios.tcgetattr(fd)
        mark(b"\x1b[?2004l")
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)  # here it stands still until fg
        signal.signal(signal.SIGTSTP, on_stop)
        with contextlib.suppress(OSError, termios.error):
            if os.tcgetpgrp(fd) == os.getpgrp():
                termios.tcsetattr(fd, termios.TCSADRAIN, held)
                mark(b"\x1b[?2004h")

    before = signal.getsignal(signal.SIGTSTP)
    if before != signal.SIG_DFL or threading.current_thread() is not threading.main_thread():
        yield  # nobody could bring it back, or it is none of ours
        return
    signal.signal(signal.SIGTSTP, on_stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)


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
