"""The conversation at a terminal: a prompt, answers as they come, commands, `!shell` and `@files`.

Ctrl-C stops an answer and keeps what came; a second one within two seconds leaves; Ctrl-D leaves. The commands are in
`slash`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from brim.agent.config import Config, Value
from brim.agent.events import Event, Notice
from brim.agent.opening import Choice, Opened, open_agent
from brim.agent.permit import Answer, Question
from brim.budget.bill import columns, fit
from brim.cli.options import Options
from brim.cli.output import DIFF_COLOURS, TextOutput, brief_arguments, money, short_session, signs, width_of, wrap_words
from brim.cli.proposed import proposed_diff
from brim.cli.spinner import Spinner
from brim.errors import BrimError, SessionBusy

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

LEAVE_WITHIN_S = 2.0
"""A second Ctrl-C so soon after the first one leaves."""

YES = ("y", "yes", "j", "ja", "是", "好")
NO = ("n", "no", "nein", "否", "不")
ALWAYS = ("a", "always")
"""Whole words: what merely begins like one may be meant for the model."""


class Leave(Exception):
    """The conversation is over."""


def run_repl(options: Options, config: Config, workspace: Path, env: Mapping[str, str]) -> int:
    """Runs until the user leaves; returns the exit code."""
    from brim.cli.terminal import held

    with held():
        return asyncio.run(_run(options, config, workspace, env))


async def _run(options: Options, config: Config, workspace: Path, env: Mapping[str, str]) -> int:
    from brim.cli.run import choice_of

    repl = Repl(options, config, workspace, env)
    try:
        choice = choice_of(options)
        try:
            await repl.open(choice)
        except SessionBusy as busy:
            repl.output.fail(busy)
            if not await repl.confirm("go on in a copy of it?"):
                return busy.code
            await repl.open(msgspec.structs.replace(choice, fork=True))
        await repl.talk()
    finally:
        await repl.close()
    return 0


class Repl:
    """One conversation at a terminal. Commands work on its `opened` agent through `reopen` and `say`."""

    def __init__(self, options: Options, config: Config, workspace: Path, env: Mapping[str, str]) -> None:
        self.options = options
        self.config = config
        self.workspace = workspace
        self.env = env
        self.output = TextOutput(bill=options.bill, verbose=options.verbose, markdown=bool(config.get("markdown")))
        self.debug = options.debug
        self.context_share: float | None = None
        self.profile = options.profile or config.get("profile")
        self.draft = ""
        """What stands on the next line already."""
        self._opened: Opened | None = None
        self._line: PromptSession[str] | None = None
        self._pressed = 0.0
        self._stoppers = 0
        self._showing: set[asyncio.Future[None]] = set()

    # ---- the agent ---------------------------------------------------------------------------------------------

    @property
    def opened(self) -> Opened:
        assert self._opened is not None
        return self._opened

    async def open(self, choice: Choice) -> None:
        """Opens the agent, its store with it."""
        self._opened = await open_agent(
            self.config, self.workspace, self.env, self.show, choice=choice, ask=self.ask_user, debug=self.debug,
            ladder=self.options.ladder,
        )  # fmt: skip

    async def reopen(self, choice: Choice, config: Config | None = None, **flags: Any) -> None:
        """Another session, model or configuration in the same store. `flags`: dotted keys and their values. On an error all
        stays."""
        config = config or self.config
        values = {**config.values, **{key: Value(value, "flag") for key, value in flags.items()}}
        config = msgspec.structs.replace(config, values=values, warnings=[])
        old = self.opened
        known = old.agent.session.model.full_name

        def emit(event: Event) -> None:
            # what the model is was said when it was opened first
            if not (isinstance(event, Notice) and event.kind == "model" and event.text.startswith(known)):
                self.show(event)

        opened = await open_agent(
            config, self.workspace, self.env, emit, choice=choice, ask=self.ask_user, debug=self.debug,
            ladder=self.options.ladder, store=old.store, servers=old.servers,
        )  # fmt: skip
        self.config, self._opened = config, opened
        if opened.agent.permits is not None and old.agent.permits is not None:
            opened.agent.permits.allow = old.agent.permits.allow  # what the user allowed holds for the conversation
        if old.agent.session.id != opened.agent.session.id:
            old.agent.session.close()
        self.context_share = None
        await old.close_providers()
        old.debug.close()

    async def close(self) -> None:
        self.output.close()
        if self._opened is not None:
            await self._opened.close()

    # ---- talking -----------------------------------------------------------------------------------------------

    async def talk(self) -> None:
        """Reads lines and answers them until the user leaves."""
        session = self.opened.agent.session
        begun = (
            f"brim · {session.model.full_name} · {session.mode} · session {short_session(session.id)}"
            + (f" · {len(session.messages)} messages" if session.messages else "")
            + " · /help"
        )
        self.say("\n".join(wrap_words(begun, width_of(sys.stdout), "  ")), "2")
        self.say_last()
        prompt, self.options = self.options.prompt, msgspec.structs.replace(self.options, prompt=None)
        while True:
            try:
                line = prompt or await self.read_line()
                prompt = None
                await self.handle(line)
            except Leave:
                return
            except BrimError as error:
                self.output.fail(error)
            except BrokenPipeError:
                raise  # the terminal has gone
            except Exception as error:  # a defect must not take the conversation with it
                if os.environ.get("BRIM_TRACEBACK"):
                    raise
                where = f"{type(error).__name__}: {error}"
                self.output.fail(BrimError(where, hint="a defect in brim; BRIM_TRACEBACK=1 ai shows where"))

    async def read_line(self) -> str:
        """One input, several lines maybe. Raises Leave on Ctrl-D, and on Ctrl-C twice."""
        if self._line is None:
            from brim.cli.input import make_prompt

            self._line = make_prompt(self)
        while True:
            try:
                draft, self.draft = self.draft, ""
                line = await self._line.prompt_async(default=draft)
                self._pressed = 0.0
                return line
            except EOFError:
                raise Leave from None
            except KeyboardInterrupt:
                if self._pressed_again():
                    raise Leave from None
                self.say("(Ctrl-C again or Ctrl-D leaves)", "2")

    async def handle(self, line: str) -> None:
        """One input: a command, a shell command or a message. Raises Leave, BrimError."""
        text = line.strip()
        if not text:
            return
        if text.startswith("/") and not text.startswith("//"):
            from brim.cli.slash import run_command

            name, _, rest = text[1:].partition(" ")
            await self._stoppable(run_command(self, name, rest.strip()))
        elif text.startswith("!"):
            await self.shell(text[1:].strip())
        else:
            await self.ask(line.removeprefix("/") if text.startswith("//") else line)

    async def ask(self, text: str) -> None:
        """A message to the model, and its answer."""
        from brim.agent.attach import attach
        from brim.agent.modalities import takes_of

        files, self.options = self.options.files, msgspec.structs.replace(self.options, files=[])
        message = attach(text, files, self.workspace, takes=takes_of(self.opened.agent.session.model))
        for note in message.notes:
            self.output(Notice(note, "file"))
        with self._stopping():
            result = await self.opened.agent.ask(message.text, *message.media)
        self.context_share = result.context

    async def shell(self, command: str) -> None:
        """The user's own command: shown, and its bounded output joins the conversation."""
        from brim.cli.shell import ShellCommand
        from brim.conversation import user
        from brim.tools import ToolOutput

        if not command:
            self.tell("write a command after the !: !git status", "2")
            return
        agent = self.opened.agent
        assert agent.context is not None
        running = ShellCommand(command, agent.context, sys.stdout)
        with self._stopping(running.stop):
            shown = await running.run()
            told = "; of its output a part joins the conversation" if shown.cut else ""
            self.tell(f"[{shown.words}]{told}", "2", indent=" ")
            text = agent.masked(ToolOutput(shown.text)).text
            agent.session.append(user(f"I ran `{command}`:\n{text}"), meta={"ran": command})

    async def ask_user(self, question: Question) -> Answer:
        """The permission question. Only what is typed after it was shown answers it."""
        from prompt_toolkit import PromptSession

        from brim.cli.terminal import typed_ahead_kept

        self.output.close()
        changes = proposed_diff(question.tool, question.arguments, self.workspace)
        asked = {"path": question.arguments.get("path", "")} if changes else dict(question.arguments)
        self.say(f"? {question.tool}: {brief_arguments(json.dumps(asked, ensure_ascii=False))}", "33")
        for line in changes:
            self.say(f"  {line}", DIFF_COLOURS.get(line[:1], "2"))
        self.tell(f"  {question.why}", "2")
        always = f", [a]lways: {', '.join(question.rules)}" if question.rules else ""
        with typed_ahead_kept() as keys:
            while True:
                try:
                    given = await PromptSession[str](key_bindings=keys).prompt_async(
                        f"  allow it? [y]es, [n]o{always} > ", handle_sigint=not self._stoppers
                    )
                except EOFError:
                    return "no"
                except KeyboardInterrupt:  # as everywhere: it stops the answer
                    self._pressed_again()
                    self.opened.agent.stop()
                    raise asyncio.CancelledError from None
                word = given.strip().lower()
                if word in NO:
                    return "no"
                if word in YES or (word in ALWAYS and question.rules):
                    self.output.running(question.tool)
                    return "always" if word in ALWAYS else "once"

    async def question(self, text: str) -> str:
        """A line of the user's in answer to a question; "" where none came."""
        from prompt_toolkit import PromptSession

        try:
            return await PromptSession[str]().prompt_async(f"{text} > ", handle_sigint=not self._stoppers)
        except (EOFError, KeyboardInterrupt):
            return ""

    async def confirm(self, text: str) -> bool:
        """A yes; anything else is a no."""
        return (await self.question(f"{text} [y/N]")).strip().lower() in YES

    @contextlib.contextmanager
    def working(self, label: str) -> Iterator[None]:
        """Shows that something is going on, and for how long."""
        spinner = Spinner(sys.stderr, self.output.colour)
        spinner.start(label)
        try:
            yield
        finally:
            spinner.stop()

    # ---- showing -----------------------------------------------------------------------------------------------

    def show(self, event: Event) -> None:
        """An event; above the line that is being typed where one is, since servers start and end meanwhile."""
        if self._line is None or not self._line.app.is_running:
            self.output(event)
            return
        from prompt_toolkit.application import run_in_terminal

        showing = asyncio.ensure_future(run_in_terminal(lambda: self.output(event)))
        self._showing.add(showing)
        showing.add_done_callback(self._showing.discard)

    def say(self, text: str, colour: str = "") -> None:
        """Text that is no answer of the model's, though some of it may stand there: in a question what it wants to run."""
        text = signs(text)
        sys.stdout.write((f"\x1b[{colour}m{text}\x1b[0m" if self.output.colour and colour else text) + "\n")
        sys.stdout.flush()

    def tell(self, text: str, colour: str = "", indent: str = "    ") -> None:
        """Sentences, one a line, broken between words where they are longer than a line of the terminal."""
        width = width_of(sys.stdout)
        for line in text.split("\n"):
            lines = wrap_words(line, width, indent) if columns(line) > width else [line]
            self.say("\n".join(lines), colour)

    def say_last(self) -> None:
        """How a conversation that is gone on with had ended, in two lines."""
        for each in self.opened.agent.session.messages[-2:]:
            text = " ".join([each.text, *(f"{call.name} {call.arguments}" for call in each.calls)])
            self.say(fit(f"  {each.role}: {' '.join(text.split())}", width_of(sys.stderr)), "2")

    def status_line(self) -> str:
        """Model, mode, share of the window, cost, session: as many of them as a line has room for."""
        session = self.opened.agent.session
        parts = [session.model.full_name, session.mode]
        if self.context_share is not None:
            parts.append(f"context {self.context_share:.0%}")
        if (cost := session.cost) is not None:
            parts.append(money(cost))
        parts.append(short_session(session.id))
        while len(parts) > 1 and columns(" · ".join(parts)) + 2 > width_of(sys.stdout):
            parts.pop()
        return f" {' · '.join(parts)} "

    async def _stoppable(self, work: Coroutine[Any, Any, None]) -> None:
        """A command to its end, or until Ctrl-C."""
        task = asyncio.ensure_future(work)
        with self._stopping(task.cancel):
            try:
                await task
            except asyncio.CancelledError:
                self.output.close()
                self.say("interrupted", "33")

    # ---- interrupting ------------------------------------------------------------------------------------------

    def _pressed_again(self) -> bool:
        now = time.monotonic()
        again = now - self._pressed < LEAVE_WITHIN_S
        self._pressed = now
        return again

    @contextlib.contextmanager
    def _stopping(self, stop: Any = None) -> Iterator[None]:
        """Ctrl-C stops what is under way; a second one within two seconds leaves. What was typed ahead of it is not sent
        after all: it stands on the next line, to be looked at again.

        A question meanwhile must leave the signal alone: prompt_toolkit would take it over, and nobody has it afterwards."""
        from brim.cli.terminal import typed_ahead

        loop = asyncio.get_running_loop()
        leave = False

        def on_signal() -> None:
            nonlocal leave
            leave = leave or self._pressed_again()
            self.draft = self.draft or typed_ahead()
            (stop or self.opened.agent.stop)()

        with contextlib.suppress(
            NotImplementedError, RuntimeError
        ):  # Windows has none; nor has a loop beside the main thread
            loop.add_signal_handler(signal.SIGINT, on_signal)
        self._stoppers += 1
        try:
            yield
        finally:
            self._stoppers -= 1
            with contextlib.suppress(NotImplementedError, RuntimeError):  # as above
                loop.remove_signal_handler(signal.SIGINT)
        if leave:
            raise Leave
