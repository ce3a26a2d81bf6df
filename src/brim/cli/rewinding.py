"""Going back in a conversation at the terminal: where to, what of it, and what came of it, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brim.agent.opening import Choice
from brim.agent.rewind import WHATS, Outcome, Outlook, What, look_back, rewind, turns_of, undo
from brim.budget.bill import fit
from brim.cli.output import short_session, width_of
from brim.conversation.handed import typed_of
from brim.errors import UsageError

if TYPE_CHECKING:
    from brim.cli.repl import Repl

_TURNS = 20
_NAMED = 10


async def rewind_here(repl: Repl, rest: str) -> None:
    """`/rewind`: shows the messages; `/rewind N [conversation|files|both] [force]`; `/rewind undo [force]`."""
    words = rest.split()
    force = "force" in words
    words = [word for word in words if word != "force"]
    opened = repl.opened
    session, context = opened.agent.session, opened.agent.context
    assert context is not None
    if not words:
        _show_turns(repl)
        return
    if words[0] == "undo":
        outcome = undo(opened.store, session.id, context, force=force)
        _tell(repl, outcome)
        if outcome.left and not force and await repl.confirm("put these back as well? What is in them now is kept"):
            outcome = undo(opened.store, outcome.session, context, force=True)
            _tell(repl, outcome)
        await repl.reopen(Choice(id=outcome.session))
        if outcome.former != outcome.session:
            repl.tell(f"back in session {short_session(outcome.session)}; {short_session(outcome.former)} stays")
        return
    at = _number(words[0])
    outlook = look_back(opened.store, session.id, at, repl.workspace)
    what = _what(words[1]) if len(words) > 1 else await _asked(repl, outlook)
    if what is None:
        return
    if what != "conversation" and outlook.conflicts and not force:
        for each in outlook.conflicts:
            repl.say(f"  {each.shown}: {each.conflict}", "33")
        force = await repl.confirm("put these back as well? What is in them now is kept for /rewind undo")
    message = session.messages[at]
    outcome = rewind(
        opened.store, session.id, at, what, context, force=force,
        append=lambda message, meta: session.append(message, meta=meta),
    )  # fmt: skip
    await repl.reopen(Choice(id=outcome.session))
    _tell(repl, outcome)
    if what == "files":
        repl.tell("the conversation goes on, and the model is told; /rewind undo takes it back", "2")
        return
    repl.say(
        f"session {short_session(outcome.session)}: the conversation before message {at}; "
        f"{short_session(outcome.former)} keeps the whole of it, /rewind undo goes back to it"
    )
    if message.role == "user":
        repl.draft = typed_of(message.text)  # to be sent again, changed or not


def _show_turns(repl: Repl) -> None:
    session, width = repl.opened.agent.session, width_of(repl.output.err)
    turns = turns_of(repl.opened.store, session.id, repl.workspace)
    if not turns:
        repl.say("nothing was said yet")
        return
    if len(turns) > _TURNS:
        repl.say(f"  … {len(turns) - _TURNS} earlier ones", "2")
    for turn in turns[-_TURNS:]:
        repl.say(fit(f"  {turn.seq:>5}  {turn.text}", width))
        if turn.files:
            repl.say(fit(f"         changed {', '.join(turn.files)}", width), "2")
    repl.tell("/rewind N goes back to before message N; /rewind N files puts back only the files", "2")


async def _asked(repl: Repl, outlook: Outlook) -> What | None:
    """What is to go back; asked only where files are concerned at all."""
    if not outlook.changes:
        return "conversation"
    for each in outlook.changes[:_NAMED]:
        why = each.barred or each.conflict
        repl.say(f"  {'remove' if each.removes else 'put back'} {each.shown}" + (f" ({why})" if why else ""), "2")
    if len(outlook.changes) > _NAMED:
        repl.say(f"  … {len(outlook.changes) - _NAMED} more files", "2")
    given = await repl.question("go back with [c]onversation, [f]iles or [b]oth? Enter: not at all")
    word = given.strip().lower()
    return next((each for each in WHATS if word and each.startswith(word)), None)


def _tell(repl: Repl, outcome: Outcome) -> None:
    for line in describe(outcome):
        repl.tell(line)


def describe(outcome: Outcome) -> list[str]:
    """What became of the files, a line each."""
    lines = [f"  put back {path}" for path in outcome.restored]
    lines += [f"  removed {path}" for path in outcome.removed]
    lines += [f"  left {path}: {why}" for path, why in outcome.left]
    if outcome.untracked:
        shown = "; ".join(outcome.untracked[:5]) + (" …" if len(outcome.untracked) > 5 else "")
        lines.append(f"  what commands changed is not tracked: {shown}")
    return lines


def _what(word: str) -> What:
    found = [each for each in WHATS if each.startswith(word)]
    if len(found) != 1:
        raise UsageError(f"/rewind … {word} is not understood", hint="conversation, files or both")
    return found[0]


def _number(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise UsageError(f"{word!r} is no number of a message", hint="/rewind alone shows the numbers") from None
