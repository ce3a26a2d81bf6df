"""`!command` is a shell's command: it is seen as it prints, reads from the terminal, and Ctrl-C ends it and loses nothing."""

from __future__ import annotations

import asyncio
import io
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from brim.cli.shell import ShellCommand, Shown
from brim.errors import UsageError
from brim.store import TEMPORARY, open_store
from brim.testing import ScriptedProvider, reply
from brim.tools import ToolContext
from shared_ai import make_home
from shared_terminal import Terminal


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ToolContext]:
    store = open_store(TEMPORARY)
    session = store.new_session(str(tmp_path))
    try:
        yield ToolContext(tmp_path, store.blobs(session.id), len)
    finally:
        store.close()


def run(command: str, context: ToolContext, *, interrupt_at: str | None = None, presses: int = 1) -> tuple[Shown, str]:
    """A command's result and all that was seen; `interrupt_at`: Ctrl-C as soon as that was printed."""
    printed = threading.Event()

    class Out(io.StringIO):
        def write(self, text: str, /) -> int:
            super().write(text)
            if interrupt_at is not None and interrupt_at in self.getvalue():
                printed.set()
            return len(text)

    out = Out()

    async def go() -> Shown:
        running = ShellCommand(command, context, out)

        async def press() -> None:
            await asyncio.to_thread(printed.wait)
            for _ in range(presses):
                running.stop()

        pressed = asyncio.ensure_future(press()) if interrupt_at is not None else None
        shown = await running.run()
        assert pressed is None or pressed.done()
        return shown

    return asyncio.run(go()), out.getvalue()


def test_what_a_command_prints_is_seen_and_kept(context: ToolContext) -> None:
    """Both streams in their order, the exit code; letters that arrive in two pieces stay letters."""
    shown, seen = run("printf '\\346\\227'; sleep 0.1; printf '\\245\\n'; echo no >&2; exit 3", context)
    assert seen == "日\nno\n"
    assert shown.text.startswith("日\nno\n[exit code 3; ") and not shown.cut


def test_ctrl_c_keeps_what_had_come(context: ToolContext) -> None:
    """An interrupted command joins the conversation with what it had printed, and says that it was interrupted."""
    shown, seen = run("echo begun; sleep 600; echo never", context, interrupt_at="begun")
    assert seen == "begun\n"
    assert shown.text.startswith("begun\n[interrupted by the user; ")


@pytest.mark.parametrize(
    "command",
    [
        "echo begun; sleep 600; echo never",
        "echo begun; while :; do /bin/true; done; echo never",
        "for n in $(seq 50); do /bin/true; done; echo begun; sleep 600 | cat; echo never",
        "bash -c 'echo begun; sleep 600; echo never'; echo never",
    ],
)
def test_ctrl_c_is_never_lost(context: ToolContext, command: str) -> None:
    """It ends the whole command at whatever moment it comes, that between a program's fork and its start too."""
    for _ in range(15):
        assert run(command, context, interrupt_at="begun")[1] == "begun\n"


def test_ctrl_c_leaves_cleaning_up_alone(context: ToolContext) -> None:
    """One Ctrl-C is one: neither what a command starts to clean up, nor a program that has heard it, gets another."""
    command = "trap 'sleep 0.5; echo cleaned; exit' INT; echo begun; sleep 600"
    assert run(command, context, interrupt_at="begun")[1] == "begun\ncleaned\n"
    graceful = (
        "import signal, time; signal.signal(2, lambda *a: signal.signal(2, signal.SIG_DFL)); time.sleep(1.2); "
        "print('begun', flush=True); signal.pause(); time.sleep(1); print('saved')"
    )
    assert run(f'{sys.executable} -SEc "{graceful}"', context, interrupt_at="begun")[1] == "begun\nsaved\n"


def test_a_second_ctrl_c_ends_what_ignores_the_first(context: ToolContext) -> None:
    """Nothing of what had come is lost by it."""
    shown, seen = run("trap '' INT; echo begun; sleep 600; echo never", context, interrupt_at="begun", presses=2)
    assert seen == "begun\n"
    assert shown.text == "begun\n[ended: it did not stop when it was interrupted]"


def test_folders_are_followed(context: ToolContext, tmp_path: Path) -> None:
    """`!cd` holds for the next command, by an exit in the middle too; outside the folder it does not."""
    (tmp_path / "sub dir").mkdir()
    shown, _ = run('cd "sub dir"; exit 0', context)
    assert context.cwd == tmp_path / "sub dir" and "working directory is now" in shown.text
    assert run("pwd", context)[1] == f"{tmp_path / 'sub dir'}\n"
    shown, _ = run("cd /", context)
    assert context.cwd is None and "outside the workspace" in shown.text


def test_the_users_environment_is_whole(context: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own command has the user's own keys; a model's never does."""
    monkeypatch.setenv("SOME_API_KEY", "sk-1234567890abcdef")
    assert run("echo $SOME_API_KEY", context)[1] == "sk-1234567890abcdef\n"


def test_much_output_is_bounded_for_the_model_only(context: ToolContext) -> None:
    """The user sees every line; the model a part, with a handle to the rest."""
    shown, seen = run("seq 1 100000", context)
    assert seen.count("\n") == 100_000
    assert shown.cut and len(shown.text) < 200_000 and "recall handle" in shown.text


def test_a_full_screen_program_leaves_no_rubbish(context: ToolContext) -> None:
    """Of an editor nothing joins but that it ran."""
    shown, _ = run("printf '\\033[?1049h\\033[2Jrubbish\\033[?1049l'", context)
    assert "rubbish" not in shown.text and "whole screen" in shown.text


def test_a_command_that_cannot_be_started_is_told(context: ToolContext) -> None:
    """One that is longer than the system takes is an error with a way out."""
    with pytest.raises(UsageError, match="the command cannot be run"):
        run("true " + "x" * 3_000_000, context)


def test_commands_at_a_terminal(tmp_path: Path) -> None:
    """A command reads what is typed; what it leaves unread, and what is typed ahead, is sent when it has ended; Ctrl-C and
    a question's answer reach the right one."""
    with ScriptedProvider([reply("Heard.")], repeat_last=True) as upstream:
        home = make_home(tmp_path, upstream.base_url)
        with Terminal(home) as terminal:
            terminal.wait("/help")
            terminal.enter("!echo begun; sleep 600")
            terminal.wait("\nbegun")
            terminal.key("C-c")
            terminal.wait("[interrupted by the user")
            terminal.enter("!read -p 'name? ' name; echo hello $name; echo more; sleep 1")
            terminal.wait("\nname?")
            terminal.enter("Anna")
            terminal.wait("\nhello Anna", "\nmore")
            terminal.enter("typed ahead")
            terminal.wait("Heard.")
        sent = upstream.requests[-1].messages
        assert [each["content"].partition("\n")[0] for each in sent if each["role"] == "user"][-3:-1] == [
            "I ran `echo begun; sleep 600`:",
            "I ran `read -p 'name? ' name; echo hello $name; echo more; sleep 1`:",
        ]
        assert sent[-1]["content"].endswith("typed ahead")


def test_secrets_of_the_environment_stay_out_of_the_conversation(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command has the whole environment, and the user sees what it prints; what is kept has a secret's name in its place,
    however the output was cut into pieces."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setenv("GH_TOKEN", "sk-test-0123456789abcdef-longer")
    monkeypatch.setenv("TOKEN", "short")
    in_pieces = 'for c in $(echo "$OPENAI_API_KEY" | fold -w 3); do printf %s "$c"; sleep 0.01; done; echo'
    shown, screen = run(f'{in_pieces}; echo "$GH_TOKEN $TOKEN"', context)
    assert "sk-test" not in shown.text
    assert shown.text.startswith("[OPENAI_API_KEY]\n[GH_TOKEN] short\n")
    assert "sk-test-0123456789abcdef\n" in screen and "-longer short" in screen
    shown, _ = run("seq 20000; env; seq 20000", context)
    assert shown.cut
    kept = b"".join(context.blobs.get(each) for each in re.findall(r"recall handle ([0-9a-f]{12})", shown.text))
    assert b"OPENAI_API_KEY=[OPENAI_API_KEY]" in kept and b"sk-test" not in kept
