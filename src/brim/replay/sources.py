"""Transcripts from files, recognised by what is in them and streamed: one conversation in memory at a time.

    lines of conversations   a conversation a line, in any of the shapes of `shapes`
    JSON                     one such value, or a list of them, over as many lines as it takes
    message JSONL            one message a line
    Claude Code              a session log; its sub-agents are conversations of their own
    codex                    a session log (`rollout-*.jsonl`, and the forms before it)
    brim                     exported sessions, and a store's database: each of its sessions

Folders are searched for such files. What cannot be read is skipped and named in a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from brim.errors import BrimError
from brim.replay.files import Broken, find_files, name_of, on_disk, read_lines, read_whole, size_of, stem_of
from brim.replay.shapes import Unreadable, chat_messages, held_in, holds_conversation
from brim.replay.transcript import Transcript, printable

__all__ = ["Found", "find_files", "read_transcripts"]

Warn = Callable[[str], None]
LOOK = 2_000
LOOK_BYTES = 32 << 20
"""Lines (and bytes) at the beginning of a file that decide what it is: session logs open with some that are no messages."""
TOLD = 5
"""Warnings about one file that are told one by one; of the rest the number is."""


class Found(NamedTuple):
    """A transcript, the name of its file, and how many bytes of all files were read by then."""

    file: str
    transcript: Transcript
    bytes: int = 0


class Line(NamedTuple):
    """One JSON object or list of a file; `number` from 1, `end` the bytes of the file up to its end."""

    value: Any
    number: int
    end: int


class _Told:
    """Passes on the first warnings of a kind; `finish` says how many `more` there were."""

    def __init__(self, more: str, warn: Warn) -> None:
        self._more, self._warn, self._count = more, warn, 0

    def __call__(self, sentence: str) -> None:
        self._count += 1
        if self._count <= TOLD:
            self._warn(sentence)

    def finish(self) -> None:
        if self._count > TOLD:
            self._warn(self._more.format(f"{self._count - TOLD:,} more"))


def read_transcripts(files: Iterable[Path], warn: Warn | None = None) -> Iterator[Found]:
    """All conversations of these files, in order. `warn` is told of what had to be left out.

    Files of the same name are told apart by the folders they lie in.
    """
    paths = list(files)
    names = _names(paths)
    before = 0
    said = warn or (lambda sentence: None)
    without = _Told("{} files without a transcript", said)
    for path in paths:
        tell = _Told(names[path].replace("{", "{{").replace("}", "}}") + ": {} like these", said)
        try:
            with on_disk(path) as there:
                for transcript, end in _of_file(there, names[path], stem_of(path), tell, without):
                    yield Found(names[path], transcript, before + end)
        except Broken as error:
            tell(f"{names[path]}: cannot be read, {error}")
        tell.finish()
        before += size_of(path)
    without.finish()


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    """For each file its name, with as many folders before it as it takes to tell it from the others."""
    names = {path: name_of(path) for path in paths}
    taken: dict[str, list[Path]] = {}
    for path, name in names.items():
        taken.setdefault(name, []).append(path)
    for same in taken.values():
        depth = 1
        while len({path.parts[-depth:] for path in same}) < len(same) and depth < max(len(p.parts) for p in same):
            depth += 1
        if len(same) > 1:
            names |= {path: name_of(Path("/".join(path.parts[-depth:])), whole=True) for path in same}
    return names


def _of_file(path: Path, name: str, stem: str, warn: Warn, without: Warn) -> Iterator[tuple[Transcript, int]]:
    from brim.replay import logs, sessions

    with path.open("rb") as file:
        if file.read(16).startswith(b"SQLite format 3"):
            try:
                yield from ((transcript, 0) for transcript in sessions.of_store(path, warn))
            except BrimError as error:
                warn(f"{name}: skipped, {error.message}")
            return
    shape = _shape(path)
    if shape == "json":
        yield from _of_json(path, name, stem, warn, without)
    elif shape == "lines":
        for line in _lines(path, name, warn):
            place = f"{name}, line {line.number}"
            transcript = conversation(line.value, f"{stem}:{line.number}", warn, place)
            if transcript is not None:
                yield transcript, line.end
    elif shape == "log":
        lines = [line for line in _lines(path, name, warn) if isinstance(line.value, dict)]
        end = lines[-1].end if lines else 0
        yield from ((transcript, end) for transcript in logs.of_log(stem, [line.value for line in lines], warn))
    else:
        without(f"{name}: skipped, it {'is empty' if shape == 'empty' else 'holds no transcript'}")


def _shape(path: Path) -> str:
    """What a file is, from its first lines: `lines` of conversations, the `log` of one session, `json`, `empty`, `none`."""
    from brim.replay.logs import is_log_line

    values = lists = 0
    whole = True
    for line in read_lines(path):
        if not line.text.strip(_BLANK):
            continue
        value = _decode(line.text)
        if isinstance(value, dict):
            if is_log_line(value):
                return "log"
            if holds_conversation(value):
                return "lines"
        elif isinstance(value, list):
            lists += holds_conversation(value)
            if lists > 1:
                return "lines"
        elif value is None and (not line.text.strip(_BLANK).startswith(b'{"') or (not values and _is_json(path))):
            return "json"  # one value over many lines; what begins like an object may be a damaged line instead
        values += 1
        if line.number >= LOOK or line.end >= LOOK_BYTES:
            whole = False
            break
    if not values:
        return "empty"
    return "json" if values == 1 and whole else "none"


def _is_json(path: Path) -> bool:
    return size_of(path) <= LOOK_BYTES and _decode(read_whole(path)) is not None


_BLANK = b"\0 \r\n\t\xef\xbb\xbf"


def _lines(path: Path, name: str, warn: Warn) -> Iterator[Line]:
    try:
        for raw in read_lines(path):
            if not raw.text.strip(_BLANK):
                continue
            value = _decode(raw.text)
            if isinstance(value, (dict, list)):
                yield Line(value, raw.number, raw.end)
            else:
                warn(f"{name}, line {raw.number}: skipped, no JSON object")
    except Broken as error:
        warn(f"{name}: read as far as it goes, {error}")


def _of_json(path: Path, name: str, stem: str, warn: Warn, without: Warn) -> Iterator[tuple[Transcript, int]]:
    from brim.replay import logs

    size = size_of(path)
    whole = _decode(read_whole(path))
    if isinstance(whole, dict) and isinstance(whole.get("items"), list) and isinstance(whole.get("session"), dict):
        whole = [whole["session"], *whole["items"]]  # codex before it wrote lines
    values = whole if isinstance(whole, list) and not holds_conversation(whole) else [whole]
    found = [value for value in values if holds_conversation(value)]
    objects = [value for value in (whole if isinstance(whole, list) else values) if isinstance(value, dict)]
    if any(logs.is_log_line(value) for value in objects):
        yield from ((transcript, size) for transcript in logs.of_log(stem, objects, warn))
    elif found:
        for number, value in enumerate(found, 1):
            place = name if len(found) == 1 else f"{name}, conversation {number}"
            transcript = conversation(value, stem if len(found) == 1 else f"{stem}:{number}", warn, place)
            if transcript is not None:
                yield transcript, size
    else:
        without(f"{name}: skipped, it holds no transcript")


def _decode(text: bytes) -> Any:
    """The JSON value, NUL bytes around it left away; None where it is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    import json

    try:
        return json.loads(text.strip(_BLANK).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def conversation(value: Any, name: str, warn: Warn, place: str) -> Transcript | None:
    """The conversation in a value of any of the shapes of `shapes`. None where there is none, which `warn` is told."""
    from brim.replay import logs

    try:
        messages, body = held_in(value)
        id, model = body.get("id"), body.get("model")
        name = printable(id) if isinstance(id, str) and id else name
        model = printable(model) if isinstance(model, str) and model else None
        if not logs.is_chat(body, messages):
            system = body.get("system") or body.get("instructions")
            return logs.of_messages(name, messages, warn, system=system, model=model)
        usage = _recorded(body.get("recorded_usage"), messages)
        return Transcript(name, chat_messages(messages), model, "chat", _times(messages), usage)
    except Unreadable as error:
        warn(f"{place}: skipped, {error}")
        return None


def _recorded(value: Any, messages: Sequence[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """By message, what the data says of the requests that led to assistant messages; the rest belongs to none."""
    rows: Sequence[Any] = value if isinstance(value, list) else ()
    found: dict[int, Mapping[str, Any]] = {}
    for row in rows:
        index = row.get("message_index") if isinstance(row, dict) else None
        if type(index) is int and 0 <= index < len(messages) and messages[index].get("role") == "assistant":
            found[index] = row
    return found


def _times(messages: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """When the messages were made, where they say so (`timestamp` or `created_at`, ISO or Unix seconds)."""
    from brim.replay.chat import seconds

    found = [seconds(message.get("timestamp", message.get("created_at"))) for message in messages]
    return found if any(each is not None for each in found) else []
