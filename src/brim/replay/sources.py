"""Transcripts from files, recognised by what is in them and streamed: one conversation in memory at a time.

    chat JSONL       one conversation a line: an object with `messages` (OpenAI's fine-tuning form, and anything beside)
    chat JSON        one object with `messages`, a list of such objects, or a list of messages
    message JSONL    one message a line
    Claude Code      a session log; its sub-agents are conversations of their own
    codex            a session log (`rollout-*.jsonl`)
    brim             exported sessions, and a store's database: each of its sessions

Folders are searched for such files. What cannot be read is skipped and named in a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from brim.errors import UsageError
from brim.replay.transcript import Transcript

Warn = Callable[[str], None]
LOOK = 200
"""Lines at the beginning of a file that decide what it is: session logs open with a few that are no messages."""


class Found(NamedTuple):
    """A transcript, the name of its file, and how many bytes of all files were read by then."""

    file: str
    transcript: Transcript
    bytes: int = 0


class Line(NamedTuple):
    """One JSON object of a file; `number` from 1, `end` the bytes of the file up to its end."""

    value: Mapping[str, Any]
    number: int
    end: int


def find_files(paths: Iterable[Path]) -> list[Path]:
    """The files named, and those below the folders named that may hold transcripts, sorted. Raises UsageError."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            for each in sorted(path.rglob("*")):
                if each.suffix in (".jsonl", ".json") and each.is_file():
                    found[each] = None
        elif path.is_file():
            found[path] = None
        else:
            raise UsageError(f"no file {path}", hint="name transcripts, or folders that hold some")
    return list(found)


def read_transcripts(files: Iterable[Path], warn: Warn | None = None) -> Iterator[Found]:
    """All conversations of these files, in order. `warn` is told of what had to be left out."""
    tell = warn or (lambda sentence: None)
    before = 0
    for path in files:
        for transcript, end in _of_file(path, tell):
            yield Found(path.name, transcript, before + end)
        before += path.stat().st_size


def _of_file(path: Path, warn: Warn) -> Iterator[tuple[Transcript, int]]:
    from brim.replay import logs, sessions

    with path.open("rb") as file:
        if file.read(16).startswith(b"SQLite format 3"):
            yield from ((transcript, 0) for transcript in sessions.of_store(path, warn))
            return
    first = _first(path)
    if first is None:
        yield from _of_json(path, warn)
    elif "messages" in first or "body" in first:
        yield from _of_lines(path, warn)
    else:
        lines = list(_lines(path, warn))
        end = lines[-1].end if lines else 0
        yield from ((transcript, end) for transcript in logs.of_log(path.stem, [line.value for line in lines], warn))


def _first(path: Path) -> Mapping[str, Any] | None:
    """The first line that is a JSON object of its own; None where the file is not made of lines."""
    with path.open("rb") as file:
        for number, line in enumerate(file):
            if number > LOOK:
                return None
            value = _decode(line)
            if isinstance(value, dict):
                return value
            if line.strip(b"\0 \r\n\t\xef\xbb\xbf") and not line.lstrip().startswith(b'{"'):
                return None
    return None


def _lines(path: Path, warn: Warn) -> Iterator[Line]:
    end = 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            end += len(raw)
            if not raw.strip(b"\0 \r\n\t"):
                continue
            value = _decode(raw)
            if isinstance(value, dict):
                yield Line(value, number, end)
            else:
                warn(f"{path.name}, line {number}: skipped, no JSON object")


def _of_lines(path: Path, warn: Warn) -> Iterator[tuple[Transcript, int]]:
    for line in _lines(path, warn):
        transcript = chat_transcript(line.value, f"{path.stem}:{line.number}", warn, f"{path.name}, line {line.number}")
        if transcript is not None:
            yield transcript, line.end


def _of_json(path: Path, warn: Warn) -> Iterator[tuple[Transcript, int]]:
    from brim.replay import logs

    whole = _decode(path.read_bytes())
    size = path.stat().st_size
    values = whole if isinstance(whole, list) else [whole]
    objects = [value for value in values if isinstance(value, dict)]
    if objects and all("messages" in value or "input" in value for value in objects):
        for number, value in enumerate(objects, 1):
            place = f"{path.name}, conversation {number}"
            transcript = chat_transcript(
                value, path.stem if len(objects) == 1 else f"{path.stem}:{number}", warn, place
            )
            if transcript is not None:
                yield transcript, size
    elif objects:
        yield from ((transcript, size) for transcript in logs.of_log(path.stem, objects, warn))
    else:
        warn(f"{path.name}: skipped, it holds no transcript")


def _decode(text: bytes) -> Any:
    """The JSON value, NUL bytes around it left away; None where it is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    import json

    try:
        return json.loads(text.strip(b"\0 \r\n\t").decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def chat_transcript(value: Mapping[str, Any], name: str, warn: Warn, place: str) -> Transcript | None:
    """The conversation in an object with `messages` (or a request body of any API). None where there is none."""
    from brim.replay import logs

    messages = value.get("messages", value.get("input"))
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        warn(f"{place}: skipped, it has no list of messages")
        return None
    id, model = value.get("id"), value.get("model")
    name = id if isinstance(id, str) and id else name
    if not logs.is_chat(value, messages):
        return logs.of_messages(
            name, messages, warn, system=value.get("system") or value.get("instructions"), model=model
        )
    usage = _recorded(value.get("recorded_usage"))
    return Transcript(name, messages, model if isinstance(model, str) else None, "chat", _times(messages), usage)


def _recorded(value: Any) -> dict[int, Mapping[str, Any]]:
    rows: Sequence[Any] = value if isinstance(value, list) else ()
    return {
        row["message_index"]: row for row in rows if isinstance(row, dict) and isinstance(row.get("message_index"), int)
    }


def _times(messages: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """When the messages were made, where they say so (`timestamp` or `created_at`, ISO or Unix seconds)."""
    from brim.replay.logs import seconds

    found = [seconds(message.get("timestamp", message.get("created_at"))) for message in messages]
    return found if any(each is not None for each in found) else []
