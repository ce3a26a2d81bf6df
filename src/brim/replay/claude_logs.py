"""Claude Code's session logs, and what its `stream-json` prints: the session, and each sub-agent by itself.

Every request counts once, with the usage that stood on its last line; those of branches that the user left, and of
answers that are no message, are kept beside the conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from brim.replay.chat import Chat, Warn
from brim.replay.transcript import Transcript, printable
from brim.store import claude_code


def is_line(value: Mapping[str, Any]) -> bool:
    """Whether an object is a message of such a log, or of such a stream."""
    return claude_code.is_entry(value) or _is_streamed(value)


def of_claude(name: str, values: Sequence[Mapping[str, Any]], warn: Warn) -> Iterator[Transcript]:
    """The session, then each sub-agent's conversation, which the log keeps as lines of the same file."""
    if any(map(_is_streamed, values)):
        values = _as_logged(values)
    main = [value for value in values if not value.get("isSidechain") and value.get("type") != "result"]
    session = next((str(value["sessionId"]) for value in values if value.get("sessionId")), name)
    if any(claude_code.is_entry(value) for value in main):
        yield _claude_chat(session, main, warn)
    for root, lines in _sidechains(values).items():
        agent = next((str(value["agentId"]) for value in lines if value.get("agentId")), root[:8])
        yield _claude_chat(f"{session}-sub-{agent}", [{**value, "isSidechain": False} for value in lines], warn)


def _is_streamed(value: Mapping[str, Any]) -> bool:
    """A message as `claude -p --output-format stream-json` prints it: a log's line without a parent."""
    return (
        isinstance(value.get("message"), dict) and "session_id" in value and value.get("type") in ("user", "assistant")
    )


def _as_logged(values: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What was streamed in the form of a log: each line follows the one before, of a sub-agent that of the sub-agent."""
    found: list[Mapping[str, Any]] = []
    before: dict[Any, str] = {}
    for number, value in enumerate(values):
        agent = value.get("parent_tool_use_id")
        uuid = str(value.get("uuid") or f"line-{number}")
        more = {"uuid": uuid, "parentUuid": before.get(agent), "sessionId": value.get("session_id")}
        found.append({**value, **more, "isSidechain": agent is not None, "agentId": agent})
        if _is_streamed(value):
            before[agent] = uuid
    return found


def _sidechains(values: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The entries of each sub-agent, told apart by its id, or by the first entry of its chain where it has none."""
    roots: dict[str, str] = {}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for value in values:
        if not value.get("isSidechain") or not value.get("uuid"):
            continue
        uuid = str(value["uuid"])
        root = roots[uuid] = str(value.get("agentId") or roots.get(str(value.get("parentUuid")), uuid))
        found.setdefault(root, []).append(value)
    return found


def _claude_chat(name: str, values: Sequence[Mapping[str, Any]], warn: Warn) -> Transcript:
    log = claude_code.read(values, [str(index) for index in range(len(values))])
    usage = _claude_usage(values)
    boundaries = [
        n
        for n, value in enumerate(values)
        if value.get("subtype") == "compact_boundary" or value.get("isCompactSummary")
    ]
    chat = Chat(name, warn)
    for turn in log.turns:
        line = int(turn.place)
        while boundaries and line > boundaries[0]:
            chat.compactions.append(len(chat.messages))
            del boundaries[0]
        chat.close()
        before = len(chat.messages)
        chat.add({"role": turn.role, "content": turn.content}, "anthropic.messages", turn.created, f"entry {line + 1}")
        entry = values[line]
        if turn.role == "assistant" and (row := usage.pop(_claude_id(entry), None)) is not None:
            # An answer of thinking alone is no message of the transcript; its request was made all the same.
            chat.used(row, before if len(chat.messages) > before else -1)
    for row in usage.values():  # branches that the user left
        chat.used(row, -1)
    return chat.transcript(log.model, "Claude Code")


def _claude_id(entry: Mapping[str, Any]) -> str:
    return str(entry["message"].get("id") or entry.get("uuid"))


def _claude_usage(values: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """By API message, its usage. It stands on each line of an answer, as far as it was known when the line was written,
    so of several the one with most output counts. An error that is shown as an answer was no request."""
    found: dict[str, Mapping[str, Any]] = {}
    for value in values:
        message = value.get("message")
        if value.get("type") != "assistant" or not isinstance(message, dict) or message.get("model") == "<synthetic>":
            continue
        usage = message.get("usage")
        if not isinstance(usage, dict):
            continue
        id = _claude_id(value)
        model = message.get("model")
        named = {"model": printable(model)} if isinstance(model, str) and model else {}
        if id not in found or _output(usage) >= _output(found[id]):
            found[id] = {**usage, **named, "message_id": id}
    return found


def _output(usage: Mapping[str, Any]) -> float:
    count = usage.get("output_tokens")
    return count if isinstance(count, (int, float)) else 0
