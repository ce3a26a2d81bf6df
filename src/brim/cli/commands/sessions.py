"""`brim sessions`: what was said, kept under its id, by project folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from brim.store import Session, Stored

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, show, search, move and delete sessions.")

_ID = typer.Argument(help="A session's id, or the beginning of it.", metavar="ID")
_JSON = typer.Option("--json", help="As JSON.")
_ALL = typer.Option("--all", "-a", help="Of every project, not only of this folder.")
_PROJECT = typer.Option("--project", "-C", help="Of the project in this folder.", metavar="DIR")


@app.command("list")
def list_(
    every: Annotated[bool, _ALL] = False,
    project: Annotated[Path | None, _PROJECT] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Archived ones as well.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.", metavar="N")] = 50,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Sessions, the one used last first."""
    from brim.cli.commands.kept import open_kept, place_of
    from brim.cli.commands.shown import note, one_line, say, say_json, table, when

    place = place_of(project)
    with open_kept(place) as store:
        found = store.list_sessions(None if every else str(place.folder), limit, archived=archived)
        elsewhere = len(store.list_sessions(None, 1)) if not found and not every else 0
    if as_json:
        say_json([_facts(each) for each in found])
        return
    if not found:
        note(f"no sessions in {place.folder}" + ("; --all shows those of other folders" if elsewhere else ""))
        return
    rows = [
        (
            each.short,
            when(each.updated),
            f"{each.messages:,}",
            each.mode or "",
            *((str(each.project),) if every else ()),
            one_line(each.title or "", 60),
        )
        for each in found
    ]
    head = ("session", "used", "messages", "mode", *(("project",) if every else ()), "title")
    say(table(head, rows, right=("messages",)))


@app.command()
def show(
    session: Annotated[str, _ID],
    message: Annotated[
        int | None, typer.Option("--message", "-m", min=0, help="One message, whole.", metavar="N")
    ] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """A session's facts and its messages, a line each; --message N shows one of them whole."""
    from brim.cli.commands.kept import open_kept, place_of
    from brim.cli.commands.shown import say, say_json, when
    from brim.errors import UsageError

    with open_kept(place_of()) as store:
        found = store.find_session(session)
        messages = list(store.load(found.id))
        if message is not None:
            if message >= len(messages):
                raise UsageError(f"no message {message}", hint=f"{found.short} has messages 0 to {len(messages) - 1}")
            stored = messages[message]
            if as_json:
                say_json(_message(stored))
            else:
                say(_whole(stored))
            return
        if as_json:
            say_json({**_facts(found), "messages": [_message(each) for each in messages]})
            return
    facts = [
        f"session   {found.id}",
        f"project   {found.project}",
        f"title     {found.title or ''}",
        f"model     {found.model or ''}, mode {found.mode or ''}",
        f"begun     {when(found.created)}, used {when(found.updated)}",
    ]
    if found.parent:
        facts.append(f"copied    from {found.parent}, before message {found.parent_seq}")
    say("\n".join([*facts, "", *(_line(each) for each in messages)]))


@app.command()
def search(
    text: Annotated[str, typer.Argument(help="What to look for, in titles and messages.", metavar="TEXT")],
    every: Annotated[bool, _ALL] = False,
    project: Annotated[Path | None, _PROJECT] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.", metavar="N")] = 50,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Messages that contain a text, in either case. Exit code 1 where there are none."""
    from brim.cli.commands.kept import open_kept, place_of
    from brim.cli.commands.shown import note, one_line, say, say_json, table

    place = place_of(project)
    with open_kept(place) as store:
        hits = store.search(text, project=None if every else str(place.folder), limit=limit)
    if as_json:
        say_json(
            [{"session": hit.session.id, "message": hit.seq, "role": hit.role, "excerpt": hit.excerpt} for hit in hits]
        )
    elif hits:
        rows = [
            (
                hit.session.short,
                "title" if hit.seq is None else str(hit.seq),
                hit.role or "",
                one_line(hit.excerpt, 100),
            )
            for hit in hits
        ]
        say(table(("session", "message", "role", "text"), rows, right=("message",)))
    else:
        note("nothing found")
    if not hits:
        raise typer.Exit(1)


@app.command()
def export(
    session: Annotated[str, _ID],
    form: Annotated[
        str,
        typer.Option("--format", help="markdown is for reading and cannot be imported.", metavar="json|jsonl|markdown"),
    ] = "json",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file, not to stdout.", metavar="FILE")
    ] = None,
    originals: Annotated[bool, typer.Option("--originals", help="With the originals of cut tool output.")] = False,
    plainly: Annotated[bool, typer.Option("--json", help="--format json, which is the default.")] = False,
) -> None:
    """Write a session out, so that `brim sessions import` can take it in elsewhere."""
    from brim.cli.commands.kept import open_kept, place_of
    from brim.cli.commands.shown import as_json, note, say_data
    from brim.errors import UsageError

    if form not in ("json", "jsonl", "markdown"):
        raise UsageError(f"--format is {form!r}", hint="one of json, jsonl, markdown")
    if plainly and form != "json":
        raise UsageError(f"--json and --format {form} contradict each other", hint="give one of them")
    with open_kept(place_of()) as store:
        found = store.find_session(session)
        if form == "json":
            pieces = iter([as_json(store.export_session(found.id, originals=originals)) + "\n"])
        elif form == "jsonl":
            pieces = store.export_lines(found.id, originals=originals)
        else:
            pieces = iter([store.export_markdown(found.id)])
        if output is None:
            say_data(pieces)
            return
        try:
            with output.open("w", encoding="utf-8", errors="backslashreplace") as file:
                file.writelines(pieces)
        except OSError as error:
            raise UsageError(f"cannot write {output}: {error.strerror}", hint="choose another --output") from error
        note(f"{found.short}: {found.messages:,} messages in {output}")


@app.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="An export of brim's, a list of messages, a request body, a Claude Code log or the output of "
            "`llm logs --json`; - reads stdin.",
            metavar="FILE",
        ),
    ],
    project: Annotated[
        Path | None, typer.Option("--project", "-C", help="The folder it belongs to.", metavar="DIR")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Its title.", metavar="TEXT")] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Take in a conversation as a new session. Prints its id; what could not be read is told on stderr."""
    from brim.cli.commands.kept import open_kept, place_of
    from brim.cli.commands.shown import note, say, say_json
    from brim.context import lost_originals
    from brim.errors import UsageError

    place = place_of(project)
    source: Any = file
    if str(file) == "-":
        source = sys.stdin.buffer.read()
    elif file.is_dir() or not file.exists():
        what = f"{file} is a folder" if file.is_dir() else f"there is no file {file}"
        raise UsageError(what, hint="give an exported session, or - for stdin")
    elif not file.is_file():  # a pipe: it can be read once
        source = file.read_bytes()
    with open_kept(place) as store:
        imported = store.import_session(source, project=str(place.folder), name="stdin" if str(file) == "-" else None)
        if title is not None:
            store.rename(imported.session.id, title)
        made = store.get_session(imported.session.id)
        lost = lost_originals(list(store.load(made.id).messages))
    if lost:
        note(
            f"! {len(lost)} passages of it were imported as summaries or notices; their originals are not here "
            f"({', '.join(lost[:3])}{' …' if len(lost) > 3 else ''}), and the model is told so"
        )
    for warning in imported.warnings:
        note(f"! {warning}")
    if as_json:
        say_json({**_facts(made), "warnings": list(imported.warnings)})
        return
    note(f"{made.messages:,} messages; go on with: ai --resume {made.short}")
    say(made.id)


@app.command()
def fork(
    session: Annotated[str, _ID],
    at: Annotated[
        int | None, typer.Option("--at", min=0, help="Only what stands before this message.", metavar="N")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Its title.", metavar="TEXT")] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Copy a session, or its beginning. Prints the copy's id."""
    from brim.cli.commands.kept import open_kept, place_of
    from brim.cli.commands.shown import note, say, say_json

    with open_kept(place_of()) as store:
        made = store.fork(store.find_session(session).id, at, title=title)
    if as_json:
        say_json(_facts(made))
        return
    note(f"{made.messages:,} messages; go on with: ai --resume {made.short}")
    say(made.id)


@app.command()
def rewind(
    session: Annotated[str, _ID],
    at: Annotated[
        int | None, typer.Argument(help="The message to go back to before; without it they are listed.", metavar="[N]")
    ] = None,
    what: Annotated[
        str, typer.Option("--what", help="What goes back.", metavar="conversation|files|both")
    ] = "conversation",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would become of the files.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Put back files, too, that something else has changed since.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take the session's last rewind back.")] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Go back to before a message: the conversation goes on in a copy, files that write and edit changed are put back. Nothing
    is lost: the session keeps all of its messages, and --undo takes a rewind back."""
    from brim.agent.rewind import WHATS, look_back, turns_of
    from brim.agent.rewind import rewind as go_back
    from brim.agent.rewind import undo as go_forward
    from brim.cli.commands.kept import open_kept, place_of
    from brim.cli.commands.shown import note, one_line, say, say_json
    from brim.cli.rewinding import describe
    from brim.errors import UsageError
    from brim.store.values import short_id
    from brim.tools import ToolContext

    chosen = next((each for each in WHATS if each == what), None)
    if chosen is None:
        raise UsageError(f"--what is {what!r}", hint=f"one of {', '.join(WHATS)}")
    with open_kept(place_of()) as store:
        found = store.find_session(session)
        folder = Path(found.project)
        if at is None and not undo:
            turns = turns_of(store, found.id, folder)
            if as_json:
                say_json([{"message": each.seq, "text": each.text, "files": each.files} for each in turns])
                return
            for turn in turns:
                say(f"{turn.seq:>5}  {one_line(turn.text, 90)}")
                if turn.files:
                    say(f"       changed {one_line(', '.join(turn.files), 80)}")
            return
        context = ToolContext(workspace=folder, blobs=store.blobs(found.id), count=len)
        if dry_run and at is not None:
            outlook = look_back(store, found.id, at, folder)
            files = [
                {
                    "path": each.shown,
                    "does": "remove" if each.removes else "put back",
                    "not": each.barred or each.conflict,
                }
                for each in outlook.changes
            ]
            if as_json:
                say_json({"files": files, "untracked": outlook.untracked})
                return
            for each in files:
                say(f"{each['does']} {each['path']}" + (f" (not: {each['not']})" if each["not"] else ""))
            for command in outlook.untracked:
                note(f"what this changed is not tracked: {command}")
            return
        if undo:
            done = go_forward(store, found.id, context, force=force)
        else:
            assert at is not None
            done = go_back(store, found.id, at, chosen, context, force=force)
        made = store.get_session(done.session)
    if as_json:
        say_json(
            {
                **_facts(made), "restored": done.restored, "removed": done.removed,
                "left": [{"path": path, "why": why} for path, why in done.left], "untracked": done.untracked,
            }
        )  # fmt: skip
        return
    for line in describe(done):
        note(line.strip())
    note(f"{made.messages:,} messages; go on with: ai --resume {made.short}")
    if done.former != done.session:
        note(f"the session as it was: {short_id(done.former)}")
    say(made.id)


@app.command()
def rename(
    session: Annotated[str, _ID],
    title: Annotated[str, typer.Argument(help="Its new title.", metavar="TITLE")],
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Give a session another title."""
    from brim.cli.commands.kept import open_kept, place_of
    from brim.cli.commands.shown import say_json

    with open_kept(place_of()) as store:
        id = store.find_session(session).id
        store.rename(id, title)
        named = store.get_session(id)
    if as_json:
        say_json(_facts(named))


@app.command()
def delete(
    sessions: Annotated[list[str], typer.Argument(help="Ids, or beginnings of them.", metavar="ID…")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Delete sessions for good. Asks first; without a terminal it needs --yes."""
    from brim.cli.commands.kept import open_kept, place_of
    from brim.cli.commands.shown import note, say_json
    from brim.errors import UsageError

    with open_kept(place_of()) as store:
        found = list({each.id: each for each in (store.find_session(id) for id in sessions)}.values())
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError("nothing was deleted: nobody can be asked", hint="add --yes")
            names = ", ".join(f"{each.short} “{each.title or ''}”" for each in found)
            typer.confirm(f"delete {names}?", abort=True, err=True)
        for each in found:
            store.delete(each.id)
            note(f"deleted {each.short}")
    if as_json:
        say_json([_facts(each) for each in found])


def _facts(session: Session) -> dict[str, Any]:
    """A session as JSON values."""
    return {
        "id": session.id,
        "project": session.project,
        "title": session.title,
        "created": session.created,
        "updated": session.updated,
        "messages": session.messages,
        "mode": session.mode,
        "model": session.model,
        "parent": session.parent,
        "parent_seq": session.parent_seq,
        "archived": session.archived,
    }


def _message(stored: Stored) -> dict[str, Any]:
    message = stored.message
    return {
        "seq": stored.seq,
        "role": message.role,
        "created": stored.created,
        "incomplete": stored.incomplete,
        "text": message.text,
        "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.calls],
        **({"call_id": message.result.call_id} if message.role == "tool" else {}),
    }


def _line(stored: Stored) -> str:
    from brim.cli.commands.shown import one_line

    message = stored.message
    shown = " ".join([message.text, *(f"→ {call.name} {call.arguments}" for call in message.calls)]).strip()
    half = " (incomplete)" if stored.incomplete else ""
    return f"{stored.seq:>5}  {message.role:<9}  {one_line(shown, 100)}{half}"


def _whole(stored: Stored) -> str:
    message = stored.message
    calls = [f"→ {call.name} {call.arguments}" for call in message.calls]
    return "\n".join(piece for piece in (message.text, *calls) if piece)
