"""The line a user writes on: history, several lines, completion of commands, files and sessions, a status line below."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from brim.budget.bill import fit
from brim.store import data_dir

if TYPE_CHECKING:
    from brim.cli.repl import Repl
    from brim.store import Session

_MOST_FILES = 40
_META_WIDTH = 50
_MENTION = re.compile(r"(?<![\w@/.])@(\"[^\"\n]*|'[^'\n]*|[^\s\"']*)$")
_ENDS_MENTION = re.compile(r"[\s,;:!?，。；：！？、)\]}\"']")
"""What ends a mention that stands without quotes."""


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

    @keys.add("c-o")
    def _expand(event: KeyPressEvent) -> None:
        event.current_buffer.text = "/tools last"
        event.current_buffer.validate_and_handle()

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
        enable_suspend=True,
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
                    about = fit(" ".join(str(meta).split()), _META_WIDTH)
                    yield Completion(each, start_position=-len(rest), display_meta=about)
            return
        if found := _MENTION.search(text):
            yield from self._files(found[1])

    def _arguments(self, name: str) -> Iterable[tuple[str, Any]]:
        repl = self._repl
        if name == "mode":
            return [(mode, "") for mode in ("full", "compact", "auto")]
        if name == "model":
            return self._models()
        if name == "profile":
            from brim.agent.tables import PROFILES

            return [(each, "") for each in sorted({*PROFILES, *repl.config.table("profiles")})]
        if name == "resume":
            return [(each.short, each.title or "") for each in self._sessions()]
        if name == "sessions":
            deleted = [(f"delete {each.short}", each.title or "") for each in self._sessions()]
            return [("search ", ""), ("rename ", ""), *deleted]
        session = repl.opened.agent.session
        if name in ("rewind", "fork", "pin"):
            turns = [(str(seq), each.text) for seq, each in enumerate(session.messages) if each.role == "user"]
            return [*([("undo", "")] if name == "rewind" else []), *reversed(turns[-_MOST_FILES:])]
        if name == "unpin":
            return [(str(seq), session.messages[seq].text) for seq in sorted(session.pins)]
        words = {"context": "system", "tools": "last", "debug": "off", "sim": "start", "permissions": "allow deny"}
        return [(each, "") for each in words.get(name, "").split()]

    def _sessions(self) -> list[Session]:
        return self._repl.opened.store.list_sessions(str(self._repl.workspace), 20)

    def _models(self) -> list[tuple[str, str]]:
        """Models that are here, those that sessions used, and the default of each provider that has a key."""
        from brim.errors import BrimError
        from brim.providers.models import list_models
        from brim.providers.presets import default_of, providers_with_key

        repl = self._repl
        own = repl.config.providers()
        found: dict[str, str] = {f"local/{each.name}": "on this machine" for each in list_models() if each.path}
        with contextlib.suppress(BrimError):
            for provider in providers_with_key(repl.env, own):
                if (ref := default_of(provider, repl.env, own)) is not None:
                    found[ref.full_name] = "its key is set"
        for each in repl.opened.store.list_sessions(None, 50):
            if each.model:
                found.setdefault(each.model, "used before")
        return list(found.items())

    def _files(self, given: str) -> Iterable[Completion]:
        """Paths that go on from what stands after the `@`; in quotes where a mention would end within their names."""
        quote = given[:1] if given[:1] in ("'", '"') else ""
        folder, _, start = given.removeprefix(quote).rpartition("/")
        if given.startswith("/") and not folder:
            folder = "/"
        try:
            entries = sorted((self._repl.workspace / Path(folder).expanduser()).iterdir())[:2_000]
        except (OSError, ValueError, RuntimeError):
            return
        shown = 0
        for entry in entries:
            if not entry.name.startswith(start) or (entry.name.startswith(".") and not start.startswith(".")):
                continue
            name = f"{folder.rstrip('/')}/{entry.name}" if folder else entry.name
            mark = quote or ('"' if _ENDS_MENTION.search(name) else "")
            is_folder = entry.is_dir()
            yield Completion(
                f"{mark}{name}/" if is_folder else f"{mark}{name}{mark}",
                start_position=-len(given),
                display=entry.name + ("/" if is_folder else ""),
            )
            shown += 1
            if shown >= _MOST_FILES:
                return
