"""Going back in a session: the conversation, the files that its tools changed, or both; and forward again.

The history is only ever appended to, so nothing is taken out of it. To rewind the conversation is to go on in a copy of
what stands before a message; the session that was left keeps everything. A name that somebody chose goes with the
conversation, and what was left is NAME~1 from then on. To rewind files is to put back what stood in
them before their first change since that message; that is itself a change, recorded with checkpoints in one more
message of the session (the model has to know, too), so it can be undone in the same way.

Only what write and edit did is known. A file that something else has changed since, too, is left alone unless that is
asked for by name, and what a command did is only told.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from brim.agent.session import numbered
from brim.conversation import Message, user
from brim.conversation.handed import typed_of
from brim.errors import SessionBusy, StoreError, ToolError, UsageError
from brim.store.values import short_id
from brim.tools import ToolContext, checkpoint, resolve_path, restore

if TYPE_CHECKING:
    from brim.store import Session, Store, Stored

What: TypeAlias = Literal["conversation", "files", "both"]
Append: TypeAlias = Callable[[Message, Mapping[str, Any]], range]
WHATS: tuple[What, ...] = ("conversation", "files", "both")
MOST_NAMED = 20
_WITHOUT_EFFECT = frozenset({"read", "grep", "glob", "recall", "write", "edit"})
"""Tools that change no file, or whose changes have checkpoints."""


class Change(msgspec.Struct, frozen=True):
    """A file that was changed since a message, as it could be put back.

    `saved` is the checkpoint of its first change since. `conflict` says why it is left alone unless asked for, `barred`
    why it cannot be put back at all.
    """

    path: str
    shown: str
    saved: Mapping[str, Any]
    removes: bool
    conflict: str = ""
    barred: str = ""


class Outlook(msgspec.Struct, frozen=True):
    """What rewinding files to before message `at` would do. `untracked`: commands since, whose effects nobody knows."""

    at: int
    changes: tuple[Change, ...]
    untracked: tuple[str, ...]

    @property
    def conflicts(self) -> list[Change]:
        return [each for each in self.changes if each.conflict and not each.barred]


class Outcome(msgspec.Struct, frozen=True):
    """What was done. `marker` is the seq of the message that records it, None where no file was touched; `left`: paths
    and why they were left; `session` is the one to go on in, `former` the id by which the one that was left is found."""

    session: str
    former: str = ""
    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    untracked: tuple[str, ...] = ()
    marker: int | None = None


class Turn(msgspec.Struct, frozen=True):
    """A message of the user's that can be gone back to, and the files that were changed from it up to the next."""

    seq: int
    text: str
    files: tuple[str, ...]


# ---- looking ---------------------------------------------------------------------------------------------------------


def turns_of(store: Store, session: str, workspace: Path) -> list[Turn]:
    """The user's messages, each with the files that were changed in answer to it."""
    turns: list[Turn] = []
    for stored in store.load(session):
        if stored.role == "user":
            turns.append(Turn(stored.seq, " ".join(typed_of(stored.message.text).split()), ()))
        if saved := _checkpoints(stored):
            files = [_shown(str(each["path"]), workspace) for each in saved]
            if turns:
                known = turns[-1].files
                new = tuple(each for each in dict.fromkeys(files) if each not in known)
                turns[-1] = msgspec.structs.replace(turns[-1], files=(*known, *new))
    return turns


def look_back(store: Store, session: str, at: int, workspace: Path) -> Outlook:
    """What rewinding files to before message `at` would do. Raises UsageError for a message that is not there."""
    count = store.get_session(session).messages
    if not 0 <= at < max(count, 1):
        raise UsageError(f"no message {at}", hint=numbered(count))
    by_path: dict[str, list[Mapping[str, Any]]] = {}
    commands: list[str] = []
    for stored in store.load(session, at):
        for saved in _checkpoints(stored):
            by_path.setdefault(str(saved["path"]), []).append(saved)
        commands += _commands(stored)
    workspace = Path(os.path.realpath(workspace))
    changes = [_judged(path, chain, workspace) for path, chain in by_path.items()]
    return Outlook(at, tuple(each for each in changes if each is not None), tuple(dict.fromkeys(commands)))


def _checkpoints(stored: Stored) -> list[Mapping[str, Any]]:
    if not stored.has_meta:
        return []
    meta = stored.meta
    one = meta.get("checkpoint")
    return [*([one] if one else []), *meta.get("rewind", {}).get("checkpoints", [])]


def _commands(stored: Stored) -> list[str]:
    """What ran that may have changed files unseen."""
    if stored.has_meta and (ran := stored.meta.get("ran")):
        return [f"!{ran}"]
    if stored.role != "assistant":
        return []
    return [
        f"{call.name}: {_brief(call.arguments)}" for call in stored.message.calls if call.name not in _WITHOUT_EFFECT
    ]


def _brief(arguments: str) -> str:
    """A call's arguments in a few words: the command, where there is one."""
    try:
        values = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        values = None
    text = str(values.get("command", arguments)) if isinstance(values, dict) else arguments
    return " ".join(text.split())[:100]


def _judged(path: str, chain: Sequence[Mapping[str, Any]], workspace: Path) -> Change | None:
    """A file with the checkpoints of its changes, oldest first; None where it already is as it was."""
    first, last = chain[0], chain[-1]
    shown = _shown(path, workspace)
    change = Change(path, shown, first, removes=first["handle"] is None)
    barred = _why_barred(path, first, workspace)
    if barred:
        return msgspec.structs.replace(change, barred=barred)
    now = _digest(path)
    if _is_state(now, first["handle"]):
        return None
    if "after" not in last:
        return msgspec.structs.replace(change, conflict="nobody knows whether it was changed since")
    if now is None:
        return change  # gone: putting it back takes nothing from anybody
    if now != last["after"]:
        return msgspec.structs.replace(change, conflict="something else has changed it since")
    for before, after in itertools.pairwise(chain):
        if not _is_state(before.get("after"), after["handle"]) and after["handle"] is not None:
            return msgspec.structs.replace(change, conflict="something else has changed it in between")
    return change


def _why_barred(path: str, saved: Mapping[str, Any], workspace: Path) -> str:
    if os.path.realpath(path) != path:
        return "there is a link in its place now"
    if not resolve_path(workspace, path).inside:
        return "it lies outside the workspace"
    if os.path.isdir(path):
        return "there is a folder in its place now"
    if saved["handle"] == "":
        return "its former content was not kept (originals are not stored)"
    return ""


def _digest(path: str) -> str | None:
    """The sha256 of a file; None where there is none."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"unreadable: {error}"


def _is_state(digest: str | None, handle: str | None) -> bool:
    """Whether a file of this digest (None: no file) is what a checkpoint's handle (None: no file) names."""
    return digest is None if handle is None else bool(handle) and digest is not None and digest.startswith(handle)


def _shown(path: str, workspace: Path) -> str:
    with contextlib.suppress(ValueError):
        return str(Path(path).relative_to(os.path.realpath(workspace)))
    return path


# ---- doing -----------------------------------------------------------------------------------------------------------


def put_back(
    store: Store, session: str, outlook: Outlook, context: ToolContext, *, force: bool = False, append: Append
) -> Outcome:
    """Puts files back as `outlook` says; those in conflict only with `force`. What stood there until now is kept.

    `append` adds to the session's history. The record is durable before a file is touched: killed half-way, what was done
    can be undone, and done again.
    """
    left = [(each.shown, each.barred) for each in outlook.changes if each.barred]
    left += [] if force else [(each.shown, each.conflict) for each in outlook.conflicts]
    chosen = [each for each in outlook.changes if not each.barred and (force or not each.conflict)]
    ready: list[tuple[Change, dict[str, Any]]] = []
    for each in chosen:
        try:
            ready.append((each, _checkpoint_now(each, context)))
        except (OSError, ToolError, StoreError) as error:
            left.append((each.shown, str(error)))
    if not ready:
        return Outcome(session, left=tuple(left), untracked=outlook.untracked)
    text = _told(outlook.at, [each for each, _ in ready], left)
    meta = {"rewind": {"at": outlook.at, "checkpoints": [saved for _, saved in ready]}}
    marker = append(user(text), meta).start
    restored: list[str] = []
    removed: list[str] = []
    for each, _ in ready:
        try:
            restore(context, dict(each.saved))
        except (OSError, ToolError, StoreError) as error:
            left.append((each.shown, str(error)))
        else:
            (removed if each.removes else restored).append(each.shown)
    return Outcome(
        session, session, restored=tuple(restored), removed=tuple(removed), left=tuple(left),
        untracked=outlook.untracked, marker=marker,
    )  # fmt: skip


def _checkpoint_now(change: Change, context: ToolContext) -> dict[str, Any]:
    """A checkpoint of the file as it stands, before it is put back. Raises where its former content is not to be had."""
    handle = change.saved["handle"]
    former = None if handle is None else context.blobs.get(handle)
    path = Path(change.path)
    present = path.read_bytes() if path.exists() else None
    return checkpoint(context, path, present, former)


def _told(at: int, changes: Sequence[Change], left: Sequence[tuple[str, str]]) -> str:
    """What the model is told: its picture of these files is out of date."""
    back = _named([each.shown for each in changes if not each.removes])
    gone = _named([each.shown for each in changes if each.removes])
    lines = [f"I undid file changes made since message {at} of this conversation."]
    lines += [f"Put back to what they were before: {back}."] if back else []
    lines += [f"Removed again: {gone}."] if gone else []
    lines += [f"Left as they are: {_named([path for path, _ in left])}."] if left else []
    return " ".join([*lines, "Read a file again before you rely on its content."])


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return ", ".join(paths[:MOST_NAMED]) + more


def rewind(
    store: Store,
    session: str,
    at: int,
    what: What,
    context: ToolContext,
    *,
    force: bool = False,
    append: Append | None = None,
) -> Outcome:
    """Goes back to before message `at`. The outcome names the session to go on in: a copy, where the conversation goes back.

    Raises UsageError, and SessionBusy where another terminal writes the session.
    """
    outlook = look_back(store, session, at, context.workspace)

    def plainly(message: Message, meta: Mapping[str, Any]) -> range:
        return store.append(session, [message], meta=meta)

    outcome = Outcome(session)
    if what != "conversation":
        outcome = put_back(store, session, outlook, context, force=force, append=append or plainly)
    target = session
    if what != "files":
        target = store.fork(session, at).id
    if target != session or outcome.marker is not None:
        _remember(store, target, {"from": session, "marker": outcome.marker, "at": at})
    former = session
    if target != session and _chosen(session):
        with contextlib.suppress(SessionBusy):  # whoever writes it goes on under its name
            former, target = store.pass_name(session, target), session
    return msgspec.structs.replace(outcome, session=target, former=former)


def _chosen(session: str) -> bool:
    """Whether an id is a name that somebody chose; `NAME~1` is none, it was left by a rewind."""
    return short_id(session) == session and not re.search(r"~\d+$", session)


def undo(store: Store, session: str, context: ToolContext, *, force: bool = False) -> Outcome:
    """Takes the last rewind of a session back: its files, and the session it came from. Raises UsageError where there is
    none. Undone twice, the files are as the rewind left them."""
    last = store.get_session(session).meta.get("rewound")
    if not last:
        raise UsageError("nothing was rewound here", hint="/rewind shows where one can go back to")
    origin: Session = store.get_session(str(last["from"]))
    outcome = Outcome(origin.id)
    if last["marker"] is not None:
        outcome = rewind(store, origin.id, int(last["marker"]), "files", context, force=force)
        if outcome.left:
            _remember(store, origin.id, {**last, "from": origin.id})  # so that what was left can still be asked for
    former, target = session, origin.id
    if origin.id.rpartition("~")[0] == session:
        with contextlib.suppress(SessionBusy):
            former, target = store.pass_name(session, origin.id), session
    return msgspec.structs.replace(outcome, session=target, former=former, untracked=())


def _remember(store: Store, session: str, fact: Mapping[str, Any]) -> None:
    meta = {**store.get_session(session).meta, "rewound": dict(fact)}
    store.change_session(session, meta=meta)
