"""The commands of a conversation: a table of names, each one function that gets the REPL and the rest of the line."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from brim.agent.opening import Choice
from brim.budget import render_bill
from brim.budget.bill import fit
from brim.cli.output import money, width_of
from brim.errors import UsageError

if TYPE_CHECKING:
    from brim.cli.repl import Repl

Do = Callable[["Repl", str], Awaitable[None]]
_LARGEST = 8
_RECALL_LINES = 40


class Command(msgspec.Struct, frozen=True):
    """`usage`: what may follow the name; `about`: what it does, in a few words."""

    do: Do
    usage: str
    about: str


COMMANDS: dict[str, Command] = {}


def command(name: str, usage: str, about: str) -> Callable[[Do], Do]:
    """Enters a function into the table."""

    def enter(do: Do) -> Do:
        COMMANDS[name] = Command(do, usage, about)
        return do

    return enter


async def run_command(repl: Repl, name: str, rest: str) -> None:
    """Runs the command of that name; a beginning that fits one alone will do. Raises UsageError, Leave."""
    found = COMMANDS.get(name)
    if found is None:
        fitting = [each for each in COMMANDS if each.startswith(name)] if name else []
        if len(fitting) != 1:
            near = fitting or difflib.get_close_matches(name, COMMANDS, 3, 0.5)
            hint = f"did you mean {', '.join('/' + each for each in near)}?" if near else "/help lists all"
            raise UsageError(f"there is no command /{name}", hint=hint)
        found = COMMANDS[fitting[0]]
    await found.do(repl, rest)


@command("help", "", "this list")
async def _help(repl: Repl, rest: str) -> None:
    width = width_of(repl.output.err)
    rows = [(f"/{name} {each.usage}", each.about) for name, each in COMMANDS.items()]
    rows += [
        ("!command", "run it here; what it prints joins the conversation"),
        ("@path", "in a message: hand over a file"),
        ("Alt-Enter, \\ at the end", "another line"),
        ("Ctrl-C", "stop the answer, what came is kept; twice: leave (Ctrl-D)"),
    ]
    for left, right in rows:
        repl.say(fit(f"  {left:<31} {right}", width))


# ---- the context ---------------------------------------------------------------------------------------------------


@command("mode", "[full|compact|auto]", "the context mode; without a word, which it is")
async def _mode(repl: Repl, rest: str) -> None:
    session = repl.opened.agent.session
    if rest:
        session.switch_mode(rest)
        repl.say(f"mode {rest}: the next view is built anew from the whole history")
    else:
        repl.say(f"mode {session.mode}; full keeps everything, compact summarises, auto selects")


@command(
    "context", "[system]", "what the next request holds, and what was left out; system: the system prompt by section"
)
async def _context(repl: Repl, rest: str) -> None:
    session, count = repl.opened.agent.session, repl.opened.agent.session.counter.count_text
    if rest == "system":
        for section in repl.opened.sections:
            repl.say(f"[{section.name}] {count(section.text):,} tokens", "36")
            repl.say(section.text)
        return
    prepared = await asyncio.to_thread(session.preview)
    width = min(100, width_of(repl.output.err))
    repl.say(render_bill(prepared.bill, width))
    messages = session.conversation.messages
    tokens = session.counter.count_messages(messages)
    fates = {at: fate for fate in prepared.as_plan().fates for at in range(fate.start, fate.end)}
    repl.say("largest messages:", "2")
    for at in sorted(range(len(messages)), key=lambda each: -tokens[each])[:_LARGEST]:
        fate = fates.get(at)
        what = f"{fate.kind} by {fate.rule}, now {fate.tokens:,}" if fate is not None else "keep"
        text = " ".join(messages[at].text.split())
        repl.say(fit(f"  {at - session.lead:>5} {messages[at].role:<9} {tokens[at]:>9,}  {what}  {text}", width))


@command("status", "", "messages and tokens of the session")
async def _status(repl: Repl, rest: str) -> None:
    from brim.agent.defences import estimate

    session = repl.opened.agent.session
    messages = session.messages
    counted = sum(session.counter.count_messages(messages))
    window, assumed = session.window
    repl.say(
        f"{len(messages)} messages, {estimate(messages):,} tokens by characters / 4 x 1.2, "
        f"{counted:,} by {session.counter.name}"
    )
    repl.say(f"window {window:,}{' (assumed)' if assumed else ''}, mode {session.mode}, {len(session.pins)} pinned")


@command("explain", "", "what the last request did to each message, and why")
async def _explain(repl: Repl, rest: str) -> None:
    repl.say(repl.opened.agent.session.explain())


@command("sim", "[start]", "add a simulated history of 20 messages with many tool results")
async def _sim(repl: Repl, rest: str) -> None:
    from brim.agent.defences import inject

    added = inject(repl.opened.agent.session, rest or "sim")
    repl.say(f"{added} simulated messages added")
    await _status(repl, "")


@command("defend", "", "run the instant defences: truncate, age")
async def _defend(repl: Repl, rest: str) -> None:
    from brim.agent.defences import defend

    done = defend(repl.opened.agent.session)
    repl.say(
        f"truncated {done.truncated}, budget-cleared {done.cleared}, soft {done.soft}, hard {done.hard}; no model call"
    )
    repl.say(
        f"{done.before:,} -> {done.after:,} tokens ({done.saved:.0%} saved) by characters / 4 x 1.2; "
        f"{done.counted_before:,} -> {done.counted_after:,} by {repl.opened.agent.session.counter.name}"
    )


@command("compact", "", "run the mode's passes now")
async def _compact(repl: Repl, rest: str) -> None:
    from brim.cli.output import describe_pass

    session = repl.opened.agent.session
    before = (await asyncio.to_thread(session.preview)).used
    request = await asyncio.to_thread(session.prepare, epoch=True)  # a model may be asked for a summary meanwhile
    for line in request.report:
        repl.say(f"  {describe_pass(line)}", "2")
    repl.say(f"{before:,} -> {request.bill['used']:,} tokens")


@command("pin", "N", "keep message N verbatim (without N: your last one)")
async def _pin(repl: Repl, rest: str) -> None:
    session = repl.opened.agent.session
    last = max((seq for seq, each in enumerate(session.messages) if each.role == "user"), default=-1)
    seq = _number(rest, "message") if rest else last
    session.pin(seq)
    repl.say(f"pinned message {seq}")


@command("unpin", "N", "take a pin off")
async def _unpin(repl: Repl, rest: str) -> None:
    seq = _number(rest, "message")
    repl.opened.agent.session.pin(seq, on=False)
    repl.say(f"message {seq} is no longer pinned")


@command("pins", "", "what is pinned")
async def _pins(repl: Repl, rest: str) -> None:
    from brim.context.pins import pinned_texts

    session = repl.opened.agent.session
    found = pinned_texts(session.messages, session.pins)
    for seq, text in found:
        repl.say(fit(f"  {seq:>5}  {' '.join(text.split())}", width_of(repl.output.err)))
    if not found:
        repl.say("nothing is pinned: /pin N, or begin a paragraph with [PIN]")


@command("recall", "HANDLE", "show the original behind a handle")
async def _recall(repl: Repl, rest: str) -> None:
    handle = rest.strip("[]\"' ")
    if not handle:
        raise UsageError("/recall needs a handle", hint="/explain and the notices name them")
    session = repl.opened.agent.session
    text = session.original(handle)
    if text is None:
        text = repl.opened.store.blobs(session.id).get_text(handle)
    lines = text.splitlines()
    repl.say("\n".join(lines[:_RECALL_LINES]))
    if len(lines) > _RECALL_LINES:
        repl.say(f"[{_RECALL_LINES} of {len(lines):,} lines, {len(text):,} characters]", "2")


@command("cost", "", "tokens and money of this session and of today")
async def _cost(repl: Repl, rest: str) -> None:
    import datetime

    store, session = repl.opened.store, repl.opened.agent.session
    for each in store.usage("model", session=session.id):
        repl.say(
            f"  {each.key or '?'}: {each.requests} requests, {each.input:,} in ({each.cached_read:,} cached, "
            f"{each.cached_write:,} written), {each.output:,} out, {money(each.cost)}"
            + (f", {each.unpriced} without a known price" if each.unpriced else "")
        )
    today = datetime.date.today().isoformat()
    spent = sum(each.cost for each in store.usage("day", since=today))
    repl.say(f"  today, all sessions: {money(spent)}")


# ---- model and sessions --------------------------------------------------------------------------------------------


@command("model", "[NAME]", "the model; provider/model changes it")
async def _model(repl: Repl, rest: str) -> None:
    session = repl.opened.agent.session
    if rest:
        await repl.reopen(Choice(id=session.id), model=rest)
        session = repl.opened.agent.session
    window, assumed = session.window
    repl.say(f"model {session.model.full_name}, window {window:,}{' (assumed)' if assumed else ''}")


@command("sessions", "", "the sessions of this folder")
async def _sessions(repl: Repl, rest: str) -> None:
    current = repl.opened.agent.session.id
    for each in repl.opened.store.list_sessions(str(repl.workspace), 20):
        mark = "*" if each.id == current else " "
        line = f"{mark} {each.short:<10} {each.messages:>5} messages  {each.mode or '':<8} {each.title or ''}"
        repl.say(fit(line, width_of(repl.output.err)))


@command("new", "", "begin a new session")
async def _new(repl: Repl, rest: str) -> None:
    await repl.reopen(Choice())
    repl.say(f"session {repl.opened.agent.session.id[:7]}")


@command("resume", "ID", "go on in another session")
async def _resume(repl: Repl, rest: str) -> None:
    await repl.reopen(Choice(id=rest) if rest else Choice(latest=True))
    session = repl.opened.agent.session
    repl.say(f"session {session.id[:7]}: {len(session.messages)} messages, mode {session.mode}")
    for each in session.messages[-2:]:
        repl.say(fit(f"  {each.role}: {' '.join(each.text.split())}", width_of(repl.output.err)), "2")


@command("fork", "[N]", "go on in a copy of this session, from before message N")
async def _fork(repl: Repl, rest: str) -> None:
    parent = repl.opened.agent.session.id
    made = repl.opened.store.fork(parent, _number(rest, "message") if rest else None)
    await repl.reopen(Choice(id=made.id))
    repl.say(f"session {made.short}, a copy of {parent[:7]} with {made.messages} messages")


@command("rewind", "[N [files]|undo]", "go back to before message N: conversation, files or both")
async def _rewind(repl: Repl, rest: str) -> None:
    from brim.cli.rewinding import rewind_here

    await rewind_here(repl, rest)


@command("export", "[FILE]", "write the session to a file: .md, .json or .jsonl")
async def _export(repl: Repl, rest: str) -> None:
    import json

    store, session = repl.opened.store, repl.opened.agent.session
    path = _path(repl, rest or f"session-{session.id[:7]}.md")
    if path.suffix == ".json":
        text = json.dumps(store.export_session(session.id, originals=True), ensure_ascii=False, indent=1)
    elif path.suffix == ".jsonl":
        text = "\n".join(store.export_lines(session.id, originals=True)) + "\n"
    else:
        text = store.export_markdown(session.id)
    _write_new(path, text)
    repl.say(f"written: {path}")


# ---- the rest ------------------------------------------------------------------------------------------------------


@command("tools", "", "the tools, and which of them run without asking")
async def _tools(repl: Repl, rest: str) -> None:
    agent = repl.opened.agent
    for tool in agent.tools:
        repl.say(f"  {tool.name:<8} {'reads' if tool.read_only else 'acts '}  {tool.description.split('. ')[0]}")
    permits = agent.permits
    if permits is not None:
        repl.say(f"permission mode {permits.mode}; allowed: {', '.join(permits.allow) or 'nothing more'}", "2")


@command("permissions", "[allow|deny RULE]", "the rules; add one for this conversation")
async def _permissions(repl: Repl, rest: str) -> None:
    from brim.permissions import parse_rules

    permits = repl.opened.agent.permits
    assert permits is not None
    word, _, rule = rest.partition(" ")
    if word in ("allow", "deny") and rule.strip():
        parse_rules([rule.strip()], "allow" if word == "allow" else "deny")
        (permits.allow if word == "allow" else permits.deny).append(rule.strip())
    elif rest:
        raise UsageError(f"/permissions {rest} is not understood", hint="/permissions allow 'bash(git *)'")
    repl.say(f"mode {permits.mode}")
    for name, rules in (("allow", permits.allow), ("deny", permits.deny), ("ask", permits.ask_rules)):
        for each in rules:
            repl.say(f"  {name} {each}")


@command("debug", "[FILE|off]", "write requests, calls and results to a file")
async def _debug(repl: Repl, rest: str) -> None:
    from brim.agent.debuglog import DebugLog

    agent = repl.opened.agent
    if rest:
        repl.debug = None if rest == "off" else _path(repl, rest)
        log = DebugLog(repl.debug, (agent.session.model.key or "",))
        repl.opened.debug.close()
        repl.opened.debug = agent.debug = log
    repl.say(f"debug log: {repl.debug or 'off'}")


@command("exit", "", "leave (Ctrl-D)")
async def _exit(repl: Repl, rest: str) -> None:
    from brim.cli.repl import Leave

    raise Leave


def _path(repl: Repl, text: str) -> Path:
    """A path as the user wrote it: `~` is home, relative to the workspace."""
    return repl.workspace / Path(text).expanduser()


def _write_new(path: Path, text: str) -> None:
    """Writes a file that is not there yet. Raises UsageError."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} is there already", hint="name another file: /export FILE") from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="name another file: /export FILE") from error


def _number(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{text!r} is no number of a {what}", hint="/explain shows the numbers") from None
