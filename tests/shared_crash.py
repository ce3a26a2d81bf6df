"""Kills `ai` at random moments of real sessions and looks at what is left: the harness of the crash tests and the bench.

Each victim is a process of its own that answers a question with tool calls against a scripted upstream on loopback, all
on one database. What its events (or, in the REPL, its screen) told before the SIGKILL counts as acknowledged. The next
process of the session is the proof that it can go on: its request must be valid and its answer must come.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from brim.formats.dialects import violations
from brim.store import open_store
from brim.testing import ScriptedProvider, reply
from brim.testing.script import Entry, Received
from shared_ai import Home

LIFE = 25
"""Kills that one session takes before it is left."""
FLAGS = ("--permission-mode", "allow-all", "--sandbox", "off", "--output-format", "stream-json")
_TAG = re.compile(r"turn (\d+\.\d+\.\d+)")
_STEPS = 4


class Report(msgspec.Struct):
    """What came of it. Everything from `lost` on is a fault, each with a sentence in `faults`."""

    kills: int = 0
    repl_kills: int = 0
    completed: int = 0
    acknowledged: int = 0
    halves: int = 0
    requests: int = 0
    leftovers: int = 0
    lost: int = 0
    doubled: int = 0
    unusable: int = 0
    invalid: int = 0
    unmarked: int = 0
    torn: int = 0
    faults: list[str] = []

    def blame(self, kind: str, sentence: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        self.faults.append(f"{kind}: {sentence}")


# ---- what the model says: a function of the question and the step ----------------------------------------------------


def said(tag: str, step: int) -> str:
    """The text of the answer of that step."""
    if step < _STEPS - 1:
        return f"{tag} step {step}: " + "looking " * 12
    return f"{tag} answer: " + " ".join(f"word{n}" for n in range(60)) + f" end {tag}."


def whole_file(tag: str) -> str:
    return f"{tag}\n" * 60


def marked_file(tag: str) -> str:
    return f"mark: {tag}\n" + "a line that stays\n" * 400


def answer(received: Received) -> Entry:
    """write and bash, then read, then edit, then words."""
    messages = received.messages
    last = max(n for n, message in enumerate(messages) if message["role"] == "user")
    found = _TAG.search(json.dumps(messages[last]))
    assert found is not None, messages[last]
    tag = found[1]
    folder = tag.rpartition(".")[0]
    made_before = re.findall(rf"call_{re.escape(tag)}\.(\d)\.", json.dumps(messages[last:]))
    step = 1 + max(map(int, made_before), default=-1)
    calls: list[tuple[str, dict[str, str] | str | None]] = []
    match step:
        case 0:
            calls = [
                ("write", {"path": f"{folder}.whole.txt", "content": whole_file(tag)}),
                ("bash", {"command": f"echo {tag} >> {folder}.log; seq 1 4000"}),
            ]
        case 1:
            calls = [("read", {"path": f"{folder}.marked.txt", "limit": "3"}), ("grep", {"pattern": "mark: "})]
        case 2:
            old = re.search(r"mark: [\d.]+\d", json.dumps(messages[last:]))
            new = f"mark: {tag}"
            calls = [("edit", {"path": f"{folder}.marked.txt", "old": old[0] if old else "mark: ?", "new": new})]
        case _:
            pass
    from brim.testing.dialogue import Call

    made = [
        Call(name=name, arguments=json.dumps(given), id=f"call_{tag}.{step}.{n}")
        for n, (name, given) in enumerate(calls)
    ]
    return reply(said(tag, step), calls=made, piece=16, delay=0.003)


# ---- one victim ------------------------------------------------------------------------------------------------------


class Told(msgspec.Struct):
    """What a process acknowledged: the question, texts by step, and results by call id."""

    asked: bool = False
    texts: dict[int, str] = {}
    calls: list[str] = []
    results: dict[str, str] = {}
    failed: str | None = None
    ok: bool = False


def told_by(out: str) -> Told:
    """Reads stream-json as far as it came. An answer counts once its usage (or a call of it) was told: it is stored then."""
    told = Told()
    step, text = 0, ""
    for line in out.splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        event = json.loads(line)
        match event["type"]:
            case "request":
                told.asked = True
                step, text = event["step"] - 1, ""
            case "text":
                text += event["text"]
            case "usage":
                told.texts[step] = text
            case "tool_call":
                told.texts[step] = text
                told.calls.append(event["id"])
            case "tool_result":
                told.results[event["id"]] = event["text"]
            case "error":
                told.failed = json.dumps(event["error"])
            case "result":
                told.ok = bool(event["ok"])
            case _:
                pass
    return told


class Line:
    """One session after the other, killed again and again, and what it has acknowledged so far."""

    def __init__(self, home: Home, number: int, report: Report, lock: threading.Lock, seed: int) -> None:
        self._home = home
        self._number = number
        self._report = report
        self._lock = lock
        self._chance = random.Random(f"{seed}.{number}")
        self._life = 0
        self._turn = 0
        self._seconds = 1.5
        self._lines = 60
        self._begin()

    def _begin(self) -> None:
        self._life += 1
        self._kills = 0
        self._told: dict[str, Told] = {}
        (self._home.work / f"{self._number}.{self._life}.marked.txt").write_text(marked_file("0.0.0"))

    @property
    def session(self) -> str:
        return f"s{self._number}.{self._life}"

    def run(self, kills: int, repl: float) -> None:
        """`kills` SIGKILLs, a share `repl` of them to a conversation at a terminal."""
        done = 0
        while done < kills:
            by_terminal = self._chance.random() < repl
            killed = self._terminal() if by_terminal else self._headless(kill=True)
            done += killed
            with self._lock:
                self._report.kills += killed
                self._report.repl_kills += killed and by_terminal
                self._report.completed += not killed
            self._kills += killed
            self.check()
            if self._kills >= LIFE or done == kills:
                self._finish()
                self._begin()

    def _blame(self, kind: str, sentence: str) -> None:
        with self._lock:
            self._report.blame(kind, f"session {self.session}: {sentence}")

    def _next(self) -> str:
        self._turn += 1
        return f"{self._number}.{self._life}.{self._turn}"

    def _headless(self, *, kill: bool) -> bool:
        """One question; whether it was killed before it was done."""
        tag = self._next()
        out, err = self._home.root / f"{tag}.out", self._home.root / f"{tag}.err"
        with out.open("wb") as to, err.open("wb") as errors:
            began = time.monotonic()
            process = subprocess.Popen(
                [sys.executable, "-m", "brim.cli.ai", "--session", self.session, *FLAGS, f"turn {tag}"],
                cwd=self._home.work, env=self._home.env, stdin=subprocess.DEVNULL, stdout=to, stderr=errors,
            )  # fmt: skip
        if kill:
            # by the clock, or where things happen: a little after a line of its events
            by_clock = self._chance.random() < 0.25
            wait = self._chance.uniform(0, self._seconds) if by_clock else 120.0
            line = 1_000_000 if by_clock else self._chance.randint(1, self._lines)
            while process.poll() is None and time.monotonic() - began < wait:
                if not by_clock and out.read_bytes().count(b"\n") >= line:
                    time.sleep(self._chance.uniform(0, 0.015))
                    break
                time.sleep(0.003)
            process.send_signal(signal.SIGKILL)
        code = process.wait(timeout=120)
        self._told[tag] = told = told_by(out.read_text())
        killed = code == -signal.SIGKILL
        if told.failed or not (killed or (code == 0 and told.ok)):
            self._blame("unusable", f"{tag} ended with {code}: {told.failed} {err.read_text()[-2000:]}")
        if not killed:
            self._seconds = 0.7 * self._seconds + 0.3 * (time.monotonic() - began)
            self._lines = max(20, out.read_bytes().count(b"\n"))
        out.unlink()
        err.unlink()
        return killed

    def _terminal(self) -> bool:
        """A question typed in the REPL, which is killed at a moment of its answer, or after."""
        tag = self._next()
        screen = Terminal(self._home, "--session", self.session, *FLAGS[:4])
        try:
            if not screen.wait_for(lambda seen: "/help" in seen, 60):
                self._blame("unusable", f"no prompt came in the REPL: {screen.seen[-1500:]!r}")
                return False
            screen.type(f"turn {tag}\r")
            end = time.monotonic() + self._chance.uniform(0, self._seconds)
            screen.wait_for(lambda seen: time.monotonic() > end, self._seconds + 1)
        finally:
            screen.kill()
        told = self._told[tag] = Told()
        # the dim line under an answer comes when all of it is stored
        told.ok = re.search(rf"end {re.escape(tag)}\.[\s\S]*\d in.* out ", screen.seen) is not None
        if told.ok:
            told.asked, told.texts = True, {step: said(tag, step) for step in range(_STEPS)}
        elif "ai: " in screen.seen:
            self._blame("unusable", f"{tag} failed in the REPL: {screen.seen[-1500:]!r}")
        return True

    def _finish(self) -> None:
        """What is left of the session: it answers, and `brim sessions export` has what was acknowledged, once."""
        for _ in range(3):
            if not self._headless(kill=False):
                break
        self.check()
        with self._lock:
            self._report.acknowledged += self._acknowledged
            self._report.halves += self._halves
        shown = self._home.manage("sessions", "export", self.session, "--format", "json")
        if shown.code != 0:
            self._blame("unusable", f"export failed: {shown.err}")
            return
        exported = json.dumps(json.loads(shown.out)["messages"])
        for tag, told in self._told.items():
            count = len(re.findall(rf'"turn {re.escape(tag)}"', exported))
            if count > 1 or (told.asked and count != 1):
                self._blame("lost" if not count else "doubled", f"{tag} stands {count} times in the export")

    # ---- looking -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Everything acknowledged is there once, halves are marked, files are whole."""
        self._check_files()
        with open_store(self._home.root / "data" / "brim.db") as store:
            try:
                stored = list(store.load(self.session))
            except Exception as error:
                if any(told.asked for told in self._told.values()):
                    self._blame("unusable", f"cannot be loaded: {error}")
                return
        if [each.seq for each in stored] != list(range(len(stored))):
            self._blame("lost", "its messages are not numbered without a gap")
        asked: Counter[str] = Counter()
        whole: Counter[str] = Counter()
        halves: Counter[tuple[str, int]] = Counter()
        calls: Counter[str] = Counter()
        results: Counter[str] = Counter()
        texts: dict[str, str] = {}
        tag, step = "", 0
        for each in stored:
            message = each.message
            if message.role == "user":
                found = _TAG.search(message.text)
                tag, step = (found[1] if found else ""), 0
                asked[tag] += 1
            elif message.role == "assistant":
                expected = said(tag, step)
                calls.update(call.id for call in message.calls)
                if each.incomplete:
                    halves[tag, step] += 1
                    if not expected.startswith(message.text):
                        self._blame("torn", f"a half answer of {tag} is none: {message.text!r}")
                elif message.text != expected:
                    self._blame("unmarked", f"an answer of {tag} is not whole and not marked: {message.text!r}")
                else:
                    whole[message.text] += 1
                step += 1
            else:
                for part in message.parts:
                    id = str(getattr(part, "call_id", ""))
                    results[id] += 1
                    texts[id] = message.text
        for counted in (asked, whole, halves, calls, results):
            for what, count in counted.items():
                if count > 1:
                    self._blame("doubled", f"{str(what)[:60]!r} stands {count} times")
        count = 0
        for tag, told in self._told.items():
            if told.asked:
                count += 1
                if not asked[tag]:
                    self._blame("lost", f"the question {tag}")
            for step, text in told.texts.items():
                count += 1
                if not whole[text]:
                    self._blame("lost", f"answer {step} of {tag}: {text[:80]!r}")
            for id in told.calls:
                if not calls[id]:
                    self._blame("lost", f"the call {id}")
            for id, text in told.results.items():
                count += 1
                if results[id] and text not in texts[id]:
                    self._blame("torn", f"the result of {id} is another")
                elif not results[id]:
                    self._blame("lost", f"the result of {id}")
        self._acknowledged, self._halves = count, sum(halves.values())

    def _check_files(self) -> None:
        work = self._home.work
        mine = f"{self._number}.{self._life}"
        whole = work / f"{mine}.whole.txt"
        if whole.exists():
            text = whole.read_text()
            if text != whole_file(text.partition("\n")[0]):
                self._blame("torn", f"{whole.name} is neither old nor new")
        text = (work / f"{mine}.marked.txt").read_text()
        if text != marked_file(text.partition("\n")[0].removeprefix("mark: ")):
            self._blame("torn", f"{mine}.marked.txt is neither old nor new")

    _acknowledged = 0
    _halves = 0


class Terminal:
    """`ai` on a terminal of its own."""

    def __init__(self, home: Home, *arguments: str) -> None:
        self.seen = ""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "brim.cli.ai", *arguments],
            cwd=home.work, env={**home.env, "TERM": "xterm", "NO_COLOR": "1", "PROMPT_TOOLKIT_NO_CPR": "1"},
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, reached: Callable[[str], bool], seconds: float) -> bool:
        """Reads what is shown until `reached`; False where time is over or the process has ended."""
        end = time.monotonic() + seconds
        while not reached(self.seen):
            if time.monotonic() > end or not self._read(0.01):
                return False
        return True

    def _read(self, wait: float) -> bool:
        if select.select([self._master], [], [], wait)[0]:
            try:
                self.seen += os.read(self._master, 1 << 16).decode("utf-8", "replace")
            except OSError:  # how Linux says that nobody has the other end any more
                return False
        return True

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        while select.select([self._master], [], [], 0)[0] and self._read(0):
            pass
        os.close(self._master)


def kill_sessions(
    home_at: Callable[[str], Home], kills: int, *, lines: int = 4, repl: float = 0.2, seed: int = 1
) -> Report:
    """`kills` SIGKILLs on `lines` sessions at once, in one database. `home_at`: makes a home for the URL of an upstream."""
    report = Report()
    lock = threading.Lock()

    def checked(received: Received) -> Entry:
        wrong = violations(received.body, "openai.chat", "openai")
        prompts = Counter(
            found[0]
            for message in received.messages
            if message["role"] == "user" and (found := _TAG.search(str(message["content"])))
        )
        with lock:
            report.requests += 1
            for sentence in wrong:
                report.blame("invalid", sentence)
            for prompt, count in prompts.items():
                if count > 1:
                    report.blame("doubled", f"{prompt!r} is sent {count} times")
            upstream.requests.clear()
        return answer(received)

    with ScriptedProvider([checked], repeat_last=True, count=lambda body: len(str(body)) // 2) as upstream:
        home = home_at(upstream.base_url)
        home.env["BRIM_MODEL"] = "openai/scripted"  # no encoding of its own to load: starts twice as fast
        each = [kills // lines + (n < kills % lines) for n in range(lines)]
        running = [Line(home, n, report, lock, seed) for n in range(lines)]
        failures: list[BaseException] = []

        def run(line: Line, count: int) -> None:
            try:
                line.run(count, repl)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=given) for given in zip(running, each, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        report.leftovers = len(list(home.work.glob(".*.tmp")))
    return report


def as_dict(report: Report) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(report)
    return built


__all__ = ["Path", "Report", "as_dict", "kill_sessions"]
