"""supersede: a result that a later one makes useless becomes a stub that names its successor. Loses nothing in force."""

from __future__ import annotations

from brim.context.draft import Draft
from brim.context.failures import is_failed
from brim.context.passes.shorten import to_stub
from brim.context.plan import Fate
from brim.conversation import ToolCall

LEAST_CHARS = 200
"""Shorter results cost hardly more than the stub that would stand for them."""

_WRITES = ("write", "create", "save", "put")
_PATHS = ("file_path", "path", "filename", "file", "target_file", "notebook_path")


def supersede(draft: Draft, goal: int) -> list[Fate]:
    """Three kinds: the same call made again, a file written anew after it was read, and output that comes again word for
    word. The later result must not have failed; the newest step is never a predecessor."""
    history = draft.history
    newest = history.newest_step
    calls: dict[tuple[str, str], int] = {}
    outputs: dict[str, int] = {}
    written: dict[str, int] = {}
    fates = []
    for index in range(len(draft.rank) - 1, draft.reach - 1, -1):
        message = history.messages[index]
        if message.role != "tool":
            continue
        call = history.calls.get(index)
        text = message.text
        by = (
            _successor(call, text, calls, outputs, written)
            if len(text) >= LEAST_CHARS and draft.rank[index] < 2
            else None
        )
        if by is not None and index < newest and not is_failed(message) and not draft.protected(index):
            later, reason = by
            why: dict[str, object] = {"by": later, "because": reason}
            fates.append(to_stub(draft, index, "supersede", why, because=f"{reason}, see {_place(draft, later)}"))
            continue
        if is_failed(message):
            continue
        if len(text) >= LEAST_CHARS:
            outputs.setdefault(text, index)
        if call is not None:
            calls.setdefault((call.name, call.arguments), index)
            if call.name.lower().startswith(_WRITES) and (path := path_of(call)):
                written.setdefault(path, index)
    return draft.weigh(fates)


def _successor(
    call: ToolCall | None,
    text: str,
    calls: dict[tuple[str, str], int],
    outputs: dict[str, int],
    written: dict[str, int],
) -> tuple[int, str] | None:
    if (later := outputs.get(text)) is not None:
        return later, "the same output came again"
    if call is None:
        return None
    if (later := calls.get((call.name, call.arguments))) is not None:
        return later, "the same call was made again"
    if written and not call.name.lower().startswith(_WRITES) and (path := path_of(call)) and path in written:
        return written[path], "the file was written anew"
    return None


def path_of(call: ToolCall) -> str | None:
    """The file a call is about, from the argument names that tools commonly use."""
    raw = call.arguments
    if not any(f'"{key}"' in raw for key in _PATHS):
        return None
    import msgspec

    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):  # nested beyond reading
        return None
    if not isinstance(value, dict):
        return None
    return next((value[key] for key in _PATHS if isinstance(value.get(key), str)), None)


def _place(draft: Draft, index: int) -> str:
    call = draft.history.calls.get(index)
    return f"the later {call.name if call else 'tool'} result"
