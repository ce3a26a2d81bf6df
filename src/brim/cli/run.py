"""One prompt, one answer: opens what is needed, asks, shows, and returns the exit code. Without a prompt: the REPL."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from brim.agent.config import Config, load_config, load_dotenv
from brim.agent.events import Notice
from brim.cli.options import Options
from brim.cli.output import Output, Unwritable, output_for
from brim.errors import BrimError, Interrupted, UsageError

if TYPE_CHECKING:
    from brim.agent.opening import Choice


IDLE = "stdin is open but nothing comes: going on without it (ai - … waits for it)"


def run(options: Options) -> int:
    """Does what the command line asked for. Never raises for what a user can meet."""
    if options.output not in ("text", "json", "stream-json"):
        return usage_failed(f"--output-format is {options.output!r}", "text", hint="one of text, json, stream-json")
    output = output_for(options.output, bill=options.bill, verbose=options.verbose)
    try:
        return _told(options, output)
    except BrokenPipeError as error:
        # whoever read the answer has gone, or its disk is full; nothing more can be told there
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, Unwritable):
            sys.stderr.write(f"ai: the answer cannot be written: {error.strerror}\n    free some space there\n")
            return 1
        return 141
    finally:
        with contextlib.suppress(BrokenPipeError):
            output.close()


def _told(options: Options, output: Output) -> int:
    """Does it, and tells whatever fails through the output: there the last event is a result, however it ends."""
    try:
        return _run(options, output)
    except BrimError as error:
        return output.fail(error)
    except KeyboardInterrupt:
        return output.fail(Interrupted("interrupted before anything was asked", hint="ask again"))
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get("BRIM_TRACEBACK"):
            raise
        where = f"{type(error).__name__}: {error}"
        return output.fail(BrimError(where, hint="a defect in brim; BRIM_TRACEBACK=1 shows where"))


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM while things are opened or stdin is read ends like Ctrl-C: told, with a result."""

    def on_signal(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, on_signal)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def usage_failed(message: str, output: str, hint: str | None = "ai --help shows the options") -> int:
    """Tells of a command line that cannot be used; returns the exit code."""
    return output_for(output if output in ("json", "stream-json") else "text").fail(UsageError(message, hint=hint))


def _run(options: Options, output: Output) -> int:
    from brim.cli.stdin import join_prompt, read_piped

    workspace = workspace_of(options)
    env = load_dotenv(workspace, os.environ)
    config = load_config(workspace, env, flags=options.flags, profile=options.profile)
    check_session_options(options)
    if options.output == "text":
        output = output_for(
            "text", bill=options.bill, verbose=options.verbose, markdown=bool(config.get("markdown")),
            structured=config.get("schema") is not None,
        )  # fmt: skip
    prompt = options.prompt if (options.prompt or "").strip() else None
    with _terminated_as_interrupted():
        piped = read_piped(
            required=options.waits,
            idle=lambda: output(Notice(IDLE, "stdin")),
            other=lambda name: output(Notice(f"stdin was read as {name}", "stdin")),
        )
    text = join_prompt(prompt, piped)
    if text is None and not options.files:
        if options.waits or not (sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError(
                "no prompt", hint='ai "…", or pipe text into it; at a terminal, ai alone begins a conversation'
            )
        if options.output != "text":
            raise UsageError(f"--output-format {options.output} needs a prompt", hint='ai --output-format json "…"')
        from brim.cli.repl import run_repl

        return run_repl(options, config, workspace, env)
    with _terminated_as_interrupted():
        return asyncio.run(_ask(options, config, workspace, env, text or "", output, mentions=prompt is not None))


async def _ask(
    options: Options, config: Config, workspace: Path, env: dict[str, str], text: str, output: Output, *, mentions: bool
) -> int:
    from brim.agent.attach import attach, must_exist
    from brim.agent.modalities import takes_of
    from brim.agent.opening import open_agent

    must_exist(options.files)
    opened = await open_agent(
        config, workspace, env, output, choice=choice_of(options), debug=options.debug, ladder=options.ladder
    )
    try:
        session = opened.agent.session
        try:
            message = attach(text, options.files, workspace, takes=takes_of(session.model), mentions=mentions)
        except BaseException:
            if not session.messages:
                opened.store.delete(session.id)  # nothing was said: no session is left of it
            raise
        for note in message.notes:
            output(Notice(note, "file"))
        last = Interrupted("interrupted twice", hint="what had come is kept; ask on")
        with stopping(opened.agent.stop, lambda: output.fail(last)):
            result = await opened.agent.ask(message.text, *message.media)
        return result.exit_code
    finally:
        await opened.close()


@contextlib.contextmanager
def stopping(stop: Callable[[], bool], last: Callable[[], object] = lambda: None) -> Iterator[None]:
    """SIGINT and SIGTERM end the answer and keep what came; a second one says its `last` and ends the process."""
    from brim.tools.processes import end_all

    loop = asyncio.get_running_loop()
    pressed = False

    def on_signal() -> None:
        nonlocal pressed
        if pressed or not stop():
            with contextlib.suppress(Exception):
                last()
            end_all()
            os._exit(130)
        pressed = True

    handled = []
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, RuntimeError):  # Windows
            loop.add_signal_handler(number, on_signal)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def workspace_of(options: Options) -> Path:
    """The folder to work in. Raises UsageError where it is none."""
    folder = (options.directory or Path.cwd()).expanduser()
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint="give an existing folder with -C")
    return folder.resolve()


def check_session_options(options: Options) -> None:
    """Raises UsageError where two options contradict each other."""
    chosen = [
        name
        for name, given in (
            ("--continue", options.latest),
            ("--resume", options.resume is not None),
            ("--session", options.session is not None),
            ("--new-session", options.new),
            ("--no-session", not options.keep),
        )
        if given
    ]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} contradict each other", hint="give one of them")


def choice_of(options: Options) -> Choice:
    """Which session the command line means."""
    from brim.agent.opening import Choice

    return Choice(id=options.resume, latest=options.latest, name=options.session, fork=options.fork, keep=options.keep)
