"""Commands about the model, and about sessions: which one, from where on, and where it is written to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from brim.agent.opening import Choice
from brim.budget.bill import fit
from brim.cli.output import width_of
from brim.cli.slash.table import command, number_of, path_of, write_new
from brim.errors import SessionBusy, UsageError

if TYPE_CHECKING:
    from brim.cli.repl import Repl


@command("model", "[NAME]", "the model; provider/model changes it")
async def _model(repl: Repl, rest: str) -> None:
    session = repl.opened.agent.session
    if rest:
        await repl.reopen(Choice(id=session.id), model=rest)
        session = repl.opened.agent.session
    window, assumed = session.window
    repl.tell(f"model {session.model.full_name}, window {window:,}{' (assumed)' if assumed else ''}")


@command("sessions", "[search|rename|delete …]", "the sessions of this folder; rename TITLE is about this one")
async def _sessions(repl: Repl, rest: str) -> None:
    store, session, width = repl.opened.store, repl.opened.agent.session, width_of(repl.output.err)
    word, _, about = rest.partition(" ")
    about = about.strip()
    if word == "search" and about:
        hits = await asyncio.to_thread(store.search, about, project=str(repl.workspace), limit=20)
        for hit in hits:
            place = "title" if hit.seq is None else str(hit.seq)
            repl.say(fit(f"  {hit.session.short:<10} {place:>6}  {' '.join(hit.excerpt.split())}", width))
        if not hits:
            repl.say("nothing found")
    elif word == "rename" and about:
        store.rename(session.id, about)
        repl.tell(f"this session is called {about}")
    elif word == "delete" and about:
        found = store.find_session(about)
        if found.id == session.id:
            raise UsageError("this is the session you are in", hint="/new first, then delete it")
        if await repl.confirm(f"delete {found.short} “{found.title or ''}”, {found.messages} messages, for good?"):
            store.delete(found.id)
            repl.say(f"deleted {found.short}")
    elif rest:
        needs = {"search": "a text", "rename": "a title", "delete": "the id of a session"}.get(word)
        lacking = f"/sessions {word} needs {needs}" if needs else f"/sessions {rest} is not understood"
        raise UsageError(lacking, hint="/sessions, search TEXT, rename TITLE or delete ID")
    else:
        for each in store.list_sessions(str(repl.workspace), 20):
            mark = "*" if each.id == session.id else " "
            line = f"{mark} {each.short:<10} {each.messages:>5} messages  {each.mode or '':<8} {each.title or ''}"
            repl.say(fit(line, width))


@command("new", "", "begin a new session")
async def _new(repl: Repl, rest: str) -> None:
    await repl.reopen(Choice())
    repl.say(f"session {repl.opened.agent.session.id[:7]}")


@command("resume", "ID", "go on in another session")
async def _resume(repl: Repl, rest: str) -> None:
    if not rest:
        await _sessions(repl, "")
        repl.tell("/resume ID goes on in one of them", "2")
        return
    choice = Choice(id=rest)
    try:
        await repl.reopen(choice)
    except SessionBusy as busy:
        repl.output.fail(busy)
        if not await repl.confirm("go on in a copy of it?"):
            return
        await repl.reopen(msgspec.structs.replace(choice, fork=True))
    session = repl.opened.agent.session
    repl.tell(f"session {session.id[:7]}: {len(session.messages)} messages, mode {session.mode}")
    repl.say_last()


@command("fork", "[N]", "go on in a copy of this session, from before message N")
async def _fork(repl: Repl, rest: str) -> None:
    parent = repl.opened.agent.session.id
    made = repl.opened.store.fork(parent, number_of(rest, "message") if rest else None)
    await repl.reopen(Choice(id=made.id))
    repl.tell(f"session {made.short}, a copy of {parent[:7]} with {made.messages} messages")


@command("copy", "[N]", "the last answer to the clipboard; N: its code block N")
async def _copy(repl: Repl, rest: str) -> None:
    import sys

    from brim.cli.clipboard import chosen_text, copy

    answers = (each for each in reversed(repl.opened.agent.session.messages) if each.role == "assistant")
    answer = next((each.text for each in answers if each.text.strip()), None)
    if answer is None:
        raise UsageError("there is no answer yet", hint="ask something first")
    text = chosen_text(answer, number_of(rest, "code block") if rest else None)
    for way in copy(text, sys.stdout, repl.env):
        repl.tell(f"{len(text):,} characters to {way}" if not way.startswith("not ") else way)


@command("rewind", "[N [files]|undo]", "go back to before message N: conversation, files or both")
async def _rewind(repl: Repl, rest: str) -> None:
    from brim.cli.rewinding import rewind_here

    await rewind_here(repl, rest)


@command("export", "[FILE]", "write the session to a file: .md, .json or .jsonl")
async def _export(repl: Repl, rest: str) -> None:
    import json

    store, session = repl.opened.store, repl.opened.agent.session
    path = path_of(repl, rest or f"session-{session.id[:7]}.md")
    if path.suffix == ".json":
        text = json.dumps(store.export_session(session.id, originals=True), ensure_ascii=False, indent=1)
    elif path.suffix == ".jsonl":
        text = "\n".join(store.export_lines(session.id, originals=True)) + "\n"
    else:
        text = store.export_markdown(session.id)
    write_new(path, text)
    repl.say(f"written: {path}")  # a path is not broken at its blanks
