"""The line a user writes on: history, several lines, completion of commands, files and sessions, a status line below."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from brim.store import data_dir

if TYPE_CHECKING:
    from brim.cli.repl import Repl

_MOST_FILES = 40


def make_prompt(repl: Repl) -> PromptSession[str]:
    """Enter sends; Alt-Enter or a backslash at the end begin another line."""
    keys = KeyBindings()

    # c-j is what Enter typed ahead of the prompt arrives as
    @keys.add("enter")
    @keys.add("c-j")
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor(1)
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return PromptSession(
        "> ",
        history=_history(),
        multiline=True,
        key_bindings=keys,
        completer=InputCompleter(repl),
        complete_while_typing=False,
        prompt_continuation=lambda width, line, soft: "" if soft else "· ",
        bottom_toolbar=None if plain else repl.status_line,
        enable_history_search=True,
    )


def _history() -> History:
    folder = data_dir()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / "history"
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


class InputCompleter(Completer):
    """Commands after `/`, their arguments (modes, sessions), files after `@`."""

    def __init__(self, repl: Repl) -> None:
        self._repl = repl

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.startswith("/") and " " not in text:
            from brim.cli.slash import COMMANDS

            for name, command in COMMANDS.items():
                if name.startswith(text[1:]):
                    yield Completion(name, start_position=1 - len(text), display_meta=command.about)
            return
        if text.startswith("/"):
            name, _, rest = text[1:].partition(" ")
            for each, meta in self._arguments(name):
                if each.startswith(rest):
                    yield Completion(each, start_position=-len(rest), display_meta=meta)
            return
        word = document.get_word_before_cursor(WORD=True)
        if word.startswith("@"):
            yield from self._files(word[1:])

    def _arguments(self, name: str) -> Iterable[tuple[str, Any]]:
        if name == "mode":
            return [(mode, "") for mode in ("full", "compact", "auto")]
        if name in ("resume", "fork"):
            store = self._repl.opened.store
            return [(each.short, each.title or "") for each in store.list_sessions(str(self._repl.workspace), 20)]
        return []

    def _files(self, given: str) -> Iterable[Completion]:
        folder, _, start = given.rpartition("/")
        try:
            entries = sorted((self._repl.workspace / folder).iterdir())[:2_000]
        except OSError:
            return
        shown = 0
        for entry in entries:
            if not entry.name.startswith(start) or (entry.name.startswith(".") and not start.startswith(".")):
                continue
            name = f"{folder}/{entry.name}" if folder else entry.name
            yield Completion(name + ("/" if entry.is_dir() else ""), start_position=-len(given))
            shown += 1
            if shown >= _MOST_FILES:
                return
