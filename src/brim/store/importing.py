"""A session read in: brim's own exports, message lists and request bodies, Claude Code logs, `llm logs --json`.

Files that others wrote are damaged more often than one thinks (a power loss leaves runs of NUL bytes, a full disk half
a line). What cannot be read is skipped and named with its file and line; everything else is kept.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from brim.conversation import Message, assistant, system, user
from brim.conversation.clean import clean_value
from brim.errors import BrimError, UsageError
from brim.store import claude_code
from brim.store import messages as rows_of_messages
from brim.store import sessions as rows_of_sessions
from brim.store.bodies import encode, pack
from brim.store.exporting import FORMAT, VERSION
from brim.store.messages import Facts
from brim.store.reading import Entry, read_entries
from brim.store.requests import Record, restore_request
from brim.store.values import Session

if TYPE_CHECKING:
    from brim.store.store import Store

Source: TypeAlias = "str | os.PathLike[str] | bytes | Mapping[str, Any] | Sequence[Any]"

_TAKEN = (
    "brim imports its own exports (.json, .jsonl; .md is for reading), message lists, request bodies, Claude Code logs"
    " and `llm logs --json`"
)
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_OTHER_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "bot": "assistant", "gpt": "assistant"}
"""What other programs call them."""


class Imported(msgspec.Struct, frozen=True):
    """The session that was made, what of the source was skipped or mended (one sentence each), and the source's kind."""

    session: Session
    warnings: list[str]
    kind: str


class Found(msgspec.Struct):
    """What a source turned out to hold, ready to be written."""

    kind: str
    messages: list[tuple[Message, Facts]] = []
    head: Mapping[str, Any] = {}
    title: str | None = None
    requests: list[Mapping[str, Any]] = []
    originals: list[bytes] = []
    recallable: bool = True
    """False: what the source's notices and stubs point to did not come with it."""


def import_session(store: Store, source: Source, project: str, name: str | None) -> Imported:
    """See `Store.import_session`."""
    warnings: list[str] = []
    entries, called = _read(source, name, warnings)
    found = _understand(entries, called, store.now(), warnings)
    if not found.messages and warnings:
        raise UsageError(f"{called} holds no message that could be read; {warnings[0]}", hint=_TAKEN)
    return Imported(_write(store, found, project, called), warnings, found.kind)


def _write(store: Store, found: Found, project: str, called: str) -> Session:
    head = found.head
    with store.writing() as work:
        wanted = head.get("id")
        free = isinstance(wanted, str) and wanted and not rows_of_sessions.exists(work, wanted)
        meta = dict(head.get("meta") or {})
        meta.pop("rewound", None)
        meta["imported"] = {"from": called, "kind": found.kind, "originals": found.recallable}
        made = rows_of_sessions.create(
            work,
            wanted if free else None,
            {
                "project": project, "title": head.get("title") or found.title, "mode": head.get("mode"),
                "model": head.get("model"), "parent": head.get("parent"), "parent_seq": head.get("parent_seq"),
                "meta": meta, "plan": encode(head["seed_plan"]) if head.get("seed_plan") else None,
            },
            head.get("created") or store.now(),
        )  # fmt: skip
        gate = store.gate(work, made.id)
        messages = [message for message, _ in found.messages]
        if messages:
            rows_of_messages.insert(work, gate, 0, pack(messages), messages, [facts for _, facts in found.messages])
        for request in found.requests:
            restore_request(work, made.n, request)
    for original in found.originals:
        store.blobs(made.id).put(original)
    store.release(made.id)
    return store.get_session(made.id)


# Reading: any source becomes JSON values with a place each


def _read(source: Source, name: str | None, warnings: list[str]) -> tuple[list[Entry], str]:
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}", hint="give the path of a session file") from error
        return read_entries(data, name or path.name, warnings), name or path.name
    called = name or "the source"
    if isinstance(source, (bytes, bytearray)):
        return read_entries(bytes(source), called, warnings), called
    values = source if isinstance(source, (list, tuple)) else [source]
    return [Entry(clean_value(value)[0], f"{called}, entry {n}") for n, value in enumerate(values, 1)], called


# Understanding: which kind of source it is


def _understand(entries: list[Entry], called: str, now: float, warnings: list[str]) -> Found:
    values = [entry.value for entry in entries if isinstance(entry.value, Mapping)]
    if any(value.get("format") == FORMAT or _is_exported(value) for value in values):
        return _from_brim(entries, warnings)
    if any(claude_code.is_entry(value) for value in values):
        return _from_claude_code(entries, now, warnings)
    if any("prompt" in value and "response" in value for value in values):
        return _from_llm(entries, now)
    if len(values) == 1 and ("messages" in values[0] or "input" in values[0]):
        return _from_body(values[0], called, now, warnings)
    if any("role" in value or "type" in value for value in values):
        return _from_messages(entries, _api_of(values), now, warnings)
    raise UsageError(f"{called} holds no conversation", hint=_TAKEN)


def _api_of(values: Iterable[Mapping[str, Any]]) -> str:
    """Which format a list of messages is in, by what only one of them has."""
    for value in values:
        if value.get("type") in ("message", "function_call", "function_call_output", "reasoning"):
            return "openai.responses"
        content = value.get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, Mapping) and (
                block.get("type") in ("tool_use", "tool_result", "thinking", "redacted_thinking") or "source" in block
            ):
                return "anthropic.messages"
    return "openai.chat"


def _from_messages(entries: Iterable[Entry], api: str, now: float, warnings: list[str]) -> Found:
    found = Found("messages")
    for entry in entries:
        if _foreign_role(entry.value):
            role = entry.value["role"]
            if role.lower() not in _OTHER_ROLES:
                warnings.append(f"{entry.place}: skipped, its role is {role!r}")
                continue
            entry = Entry({**entry.value, "role": _OTHER_ROLES[role.lower()]}, entry.place)
        found.messages += [(message, Facts(now)) for message in _parse_message(entry, api, warnings)]
    return found


def _foreign_role(value: Any) -> bool:
    role = value.get("role") if isinstance(value, Mapping) else None
    return isinstance(role, str) and role not in _ROLES


def _parse_message(entry: Entry, api: str, warnings: list[str]) -> list[Message]:
    from brim.formats import parse_message

    try:
        return parse_message(entry.value, api)
    except BrimError as error:
        warnings.append(f"{entry.place}: skipped, {error.message}")
        return []


def _from_body(body: Mapping[str, Any], called: str, now: float, warnings: list[str]) -> Found:
    from brim.formats import parse_request

    turns = body.get("messages", body.get("input"))
    listed = [each for each in turns if isinstance(each, Mapping)] if isinstance(turns, list) else []
    api = (
        "openai.responses" if "messages" not in body else "anthropic.messages" if "system" in body else _api_of(listed)
    )
    head = {"model": body["model"]} if isinstance(body.get("model"), str) else {}
    try:
        messages = parse_request(body, api).messages
    except BrimError:
        if not isinstance(turns, list):
            raise
        messages = None
    if messages is None or any(map(_foreign_role, listed)):  # one bad message must not cost the others
        assert isinstance(turns, list)
        found = _from_messages(
            [Entry(each, f"{called}, message {n}") for n, each in enumerate(turns)], api, now, warnings
        )
        found.head, found.kind = head, "request body"
        return found
    return Found("request body", [(message, Facts(now)) for message in messages], head)


def _is_exported(value: Mapping[str, Any]) -> bool:
    """Whether a value is a line of an export, whose first line may be lost."""
    return value.get("type") == "message" and "seq" in value and ("message" in value or "wire" in value)


def _is_exported_at(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("seq"), int) and value.get("type") != "request"


def _from_brim(entries: list[Entry], warnings: list[str]) -> Found:
    found = Found("brim export", recallable=False)
    lines: list[Entry] = []
    for entry in entries:
        value = entry.value if isinstance(entry.value, Mapping) else {}
        if value.get("format") != FORMAT:
            lines.append(entry)
            continue
        if value.get("version", 0) not in range(VERSION + 1):
            raise UsageError(f"{entry.place} was exported by a newer brim", hint="upgrade brim (pipx upgrade brim)")
        found.head = _head(value, warnings, entry.place)
        found.recallable = bool(value.get("recallable", True))
        for one, many in (("message", "messages"), ("request", "requests"), ("original", "originals")):
            for n, each in enumerate(value.get(many) or ()):
                exported = {"type": one, **each} if isinstance(each, Mapping) else each
                lines.append(Entry(exported, f"{entry.place}, {one} {n}"))
    count = found.head.get("count")
    if not found.head:
        warnings.append(f"{entries[0].place}: what the export says of the session itself is lost")
    wired: tuple[int, list[Message]] = (-1, [])
    for entry in lines:
        value = entry.value if isinstance(entry.value, Mapping) else {}
        kind = value.get("type")
        if kind == "request":
            _take_request(found, entry, warnings)
        elif kind == "original":
            _take_original(found, entry, warnings)
        elif kind == "message" or _is_exported({**value, "type": "message"}):
            if "wire" in value:
                wire = Entry(value["wire"], entry.place)
                wired = (value.get("seq", -1), _parse_message(wire, str(value.get("api", "")), warnings))
            message = _brim_message(value, value.get("piece", 0), wired)
            if message is None:
                warnings.append(f"{entry.place}: skipped, no message in it")
                continue
            # checkpoints are of files of another place: a rewind must write nothing that an import asks for
            meta = {key: each for key, each in _mapping(value, "meta").items() if key not in ("checkpoint", "rewind")}
            created = value.get("created")
            found.messages.append(
                (
                    message,
                    Facts(
                        float(created) if isinstance(created, (int, float)) else 0.0,
                        bool(value.get("incomplete")),
                        encode(meta) if meta else None,
                    ),
                )
            )
        else:
            warnings.append(f"{entry.place}: skipped, not a part of a session export")
    last = max((e.value["seq"] for e in lines if _is_exported_at(e.value)), default=-1)
    if (lost := max(count if isinstance(count, int) else 0, last + 1) - len(found.messages)) > 0:
        warnings.append(f"{entries[0].place}: {lost} of {lost + len(found.messages)} messages are lost")
    if warnings:
        # a plan is stored as changes against the one before it, and its places count messages: it is made anew
        found.head = {key: value for key, value in found.head.items() if key != "seed_plan"}
        found.requests = [{**request, "plan_change": None} for request in found.requests]
    return found


def _mapping(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = value.get(key)
    return inner if isinstance(inner, Mapping) else {}


def _head(value: Mapping[str, Any], warnings: list[str], place: str) -> Mapping[str, Any]:
    """What an export says of its session, as far as it can be so."""
    head: dict[str, Any] = {}
    kinds: tuple[tuple[str, type | tuple[type, ...]], ...] = (
        ("id", str), ("title", str), ("mode", str), ("model", str), ("parent", str), ("parent_seq", int),
        ("created", (int, float)), ("meta", Mapping), ("count", int),
    )  # fmt: skip
    for key, kind in kinds:
        given = _mapping(value, "session").get(key)
        if isinstance(given, kind) and (key != "id" or rows_of_sessions.fits(str(given))):
            head[key] = given
        elif given is not None:
            warnings.append(f"{place}: left out, no {key} of a session: {str(given)[:60]!r}")
    return {**head, "seed_plan": value.get("seed_plan")} if isinstance(value.get("seed_plan"), Mapping) else head


def _take_request(found: Found, entry: Entry, warnings: list[str]) -> None:
    try:
        msgspec.convert({"id": 0, **entry.value}, Record)
    except msgspec.ValidationError:
        warnings.append(f"{entry.place}: skipped, no record of a request")
        return
    found.requests.append(entry.value)


def _take_original(found: Found, entry: Entry, warnings: list[str]) -> None:
    try:
        data = base64.b64decode(entry.value["data"], validate=True)
        whole = entry.value.get("hash") in (None, hashlib.sha256(data).hexdigest())
    except (KeyError, TypeError, ValueError):
        whole = False
    if whole:
        found.originals.append(data)
    else:
        warnings.append(f"{entry.place}: skipped, a damaged original")


def _brim_message(value: Mapping[str, Any], piece: int, wired: tuple[int, list[Message]]) -> Message | None:
    if "message" in value:
        try:
            return msgspec.convert(value["message"], Message)
        except msgspec.ValidationError:
            return None
    start, parsed = wired
    if not isinstance(piece, int) or not isinstance(start, int) or value.get("seq") != start + piece:
        return None
    return parsed[piece] if 0 <= piece < len(parsed) else None


def _from_claude_code(entries: list[Entry], now: float, warnings: list[str]) -> Found:
    log = claude_code.read([entry.value for entry in entries], [entry.place for entry in entries])
    found = Found("Claude Code log", title=log.title, recallable=log.whole)
    if log.model:
        found.head = {"model": f"anthropic/{log.model}"}
    for turn in log.turns:
        entry = Entry({"role": turn.role, "content": turn.content}, turn.place)
        parsed = _parse_message(entry, "anthropic.messages", warnings)
        found.messages += [(message, Facts(turn.created or now)) for message in parsed]
    return found


def _from_llm(entries: Iterable[Entry], now: float) -> Found:
    """What `llm logs --json` prints: one object for each exchange. The system prompt is repeated in each."""
    found = Found("llm log")
    said: str | None = None
    exchanges: Iterable[Mapping[str, Any]] = (each.value for each in entries if isinstance(each.value, Mapping))
    for value in exchanges:
        facts = Facts(claude_code.seconds(value.get("datetime_utc")) or now)
        if value.get("system") and value["system"] != said:
            said = str(value["system"])
            found.messages.append((system(said), facts))
        found.messages.append((user(str(value.get("prompt") or "")), facts))
        if value.get("response"):
            found.messages.append((assistant(str(value["response"])), facts))
        if found.title is None and value.get("conversation_name"):
            found.title = str(value["conversation_name"])
        if value.get("model"):
            found.head = {"model": str(value["model"])}
    return found
