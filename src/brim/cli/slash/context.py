"""Commands about the window: what the next request holds and why, pins, originals, what it costs."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from brim.budget import render_bill
from brim.budget.bill import fit
from brim.cli.output import paid, width_of
from brim.cli.slash.table import command, number_of
from brim.errors import UsageError

if TYPE_CHECKING:
    from brim.cli.repl import Repl

_LARGEST = 8
_RECALL_LINES = 40
_NARROW = 90
"""Columns below which an account is broken between words."""
_NOTE_CHARS = 2_000
_ROOMY = 128_000
"""A window in which a history of some thousand tokens is under no pressure: what the defences do there is by age alone."""


@command("mode", "[full|compact|auto]", "the context mode; without a word, which it is")
async def _mode(repl: Repl, rest: str) -> None:
    session = repl.opened.agent.session
    if rest:
        session.switch_mode(rest)
        repl.tell(f"mode {rest}: the next view is built anew from the whole history")
    else:
        repl.tell(f"mode {session.mode}; full keeps everything, compact summarises, auto selects")


@command(
    "context", "[system]", "what the next request holds, and what was left out; system: the system prompt by section"
)
async def _context(repl: Repl, rest: str) -> None:
    session, count = repl.opened.agent.session, repl.opened.agent.session.counter.count_text
    if rest not in ("", "system"):
        raise UsageError(f"/context {rest} is not understood", hint="/context, or /context system")
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
        number = at - session.lead if at >= session.lead else "sys"
        repl.say(fit(f"  {number:>5} {messages[at].role:<9} {tokens[at]:>9,}  {what}  {text}", width))


@command("status", "", "messages and tokens of the session")
async def _status(repl: Repl, rest: str) -> None:
    from brim.agent.defences import estimate

    session = repl.opened.agent.session
    messages = session.messages
    counted = sum(session.counter.count_messages(messages))
    window, assumed = session.window
    repl.tell(
        f"{len(messages)} messages, {estimate(messages):,} tokens by characters / 4 x 1.2, "
        f"{counted:,} by {session.counter.name}"
    )
    repl.tell(f"window {window:,}{' (assumed)' if assumed else ''}, mode {session.mode}, {len(session.pins)} pinned")


@command("explain", "[N]", "what the last request did to each message, or to message N, and why")
async def _explain(repl: Repl, rest: str) -> None:
    lines = repl.opened.agent.session.explain().splitlines()
    if rest:
        seq = number_of(rest, "message")
        repl.opened.agent.session.must_have(seq)
        lines = [line for line in lines if _tells_of(line, seq)] or [f"message {seq} was in no request yet"]
    account = "\n".join(lines)
    if width_of(repl.output.err) < _NARROW:
        repl.tell(account, indent=" " * 9)
    else:
        repl.say(account)  # as `brim explain` gives it, to be searched and copied line by line


@command("sim", "[start]", "add a simulated history of 20 messages with many tool results")
async def _sim(repl: Repl, rest: str) -> None:
    from brim.agent.defences import inject

    added = inject(repl.opened.agent.session, rest or "sim")
    repl.say(f"{added} simulated messages added")
    await _status(repl, "")


@command("defend", "", "run the instant defences: truncate, age")
async def _defend(repl: Repl, rest: str) -> None:
    from brim.agent.defences import Defended, defend, defend_in

    session = repl.opened.agent.session

    def tell(done: Defended) -> None:
        repl.tell(
            f"truncated {done.truncated}, budget-cleared {done.cleared}, soft {done.soft}, hard {done.hard}; "
            "no model call"
        )
        repl.tell(
            f"{done.before:,} -> {done.after:,} tokens ({done.saved:.0%} saved) by characters / 4 x 1.2; "
            f"{done.counted_before:,} -> {done.counted_after:,} by {session.counter.name}"
        )

    roomy = defend_in(session, _ROOMY) if session.window[0] < _ROOMY else None
    tell(defend(session))
    if roomy is not None:
        repl.tell(f"in a window of {_ROOMY:,}, where age alone counts:")
        tell(roomy)


@command("compact", "[NOTE]", "shorten the context now; a note says what summaries must keep (-: no note)")
async def _compact(repl: Repl, rest: str) -> None:
    from brim.cli.output import describe_pass

    session = repl.opened.agent.session
    if session.mode == "full":
        raise UsageError("the mode full keeps the whole history", hint="/mode compact or /mode auto, then /compact")
    if rest:
        session.remember(focus=None if rest == "-" else rest[:_NOTE_CHARS])
    before = (await asyncio.to_thread(session.preview)).used
    with repl.working("shortening"):
        request = await repl.opened.agent.prepare(epoch=True)
    for line in request.report:
        repl.tell(f"  {describe_pass(line)}", "2")
    if (after := request.bill["used"]) >= before:
        repl.tell(
            f"nothing shortened: of {before:,} tokens none can be saved; the newest turns and pins stay as they are"
        )
    else:
        repl.tell(f"{before:,} -> {after:,} tokens; the history keeps everything")
    if session.focus:
        repl.tell(f"summaries keep: {session.focus}", "2")


def _tells_of(line: str, seq: int) -> bool:
    """Whether a line of an account begins with this message's number, or with a run that it is in."""
    found = re.match(r"\s*(\d+)(?:-(\d+))?\s", line)
    return found is not None and int(found[1]) <= seq <= int(found[2] or found[1])


@command("pin", "[N]", "keep message N verbatim (without N: your last one)")
async def _pin(repl: Repl, rest: str) -> None:
    session = repl.opened.agent.session
    last = max((seq for seq, each in enumerate(session.messages) if each.role == "user"), default=-1)
    if not rest and last < 0:
        raise UsageError("nothing was said yet", hint="/pin N pins message N")
    seq = number_of(rest, "message") if rest else last
    session.pin(seq)
    repl.say(f"pinned message {seq}")


@command("unpin", "N", "take a pin off")
async def _unpin(repl: Repl, rest: str) -> None:
    session = repl.opened.agent.session
    pinned = ", ".join(map(str, sorted(session.pins))) or "none"
    if not rest:
        raise UsageError("/unpin needs the number of a message", hint=f"pinned: {pinned}")
    seq = number_of(rest, "message")
    session.must_have(seq)
    if seq not in session.pins:
        raise UsageError(f"message {seq} is not pinned", hint=f"pinned: {pinned}")
    session.pin(seq, on=False)
    repl.say(f"message {seq} is no longer pinned")


@command("pins", "", "what is pinned")
async def _pins(repl: Repl, rest: str) -> None:
    from brim.context.pins import pinned_texts

    session = repl.opened.agent.session
    found = pinned_texts(session.messages, session.pins)
    for seq, text in found:
        repl.say(fit(f"  {seq:>5}  {' '.join(text.split())}", width_of(repl.output.err)))
    if not found:
        repl.tell("nothing is pinned: /pin N, or begin a paragraph with [PIN]")


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
        repl.tell(
            f"  {each.key or '?'}: {each.requests} request{'s' if each.requests != 1 else ''}, {each.input:,} in "
            f"({each.cached_read:,} cached, {each.cached_write:,} written), {each.output:,} out, "
            + paid(each.cost, each.requests - each.failed, each.unpriced)
        )
    today = list(store.usage("day", since=datetime.date.today().isoformat()))
    answered, unpriced = sum(each.requests - each.failed for each in today), sum(each.unpriced for each in today)
    repl.tell(f"  today, all sessions: {paid(sum(each.cost for each in today), answered, unpriced)}")
