"""Claude Code's session logs: JSON Lines in which one API message is spread over several lines, and turns form a tree.

A user who rewinds starts a new branch; the log keeps the old one. Parallel tool calls branch as well, and those belong
together. So the conversation is: the path from the last entry to the root, with what shares an API message with it or
answers its calls. Where a parent is missing (a damaged line) the path goes on with the line before it.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Turn(NamedTuple):
    """One API message; `created` in Unix seconds."""

    role: str
    content: Any
    created: float | None
    place: str


class Log(NamedTuple):
    """A log; `whole` is False where it begins with a summary of what it does not hold."""

    turns: list[Turn]
    title: str | None
    model: str | None
    whole: bool


def is_entry(value: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a line of such a log."""
    return isinstance(value.get("message"), Mapping) and value.get("type") in ("user", "assistant") and "uuid" in value


def read(values: Sequence[Any], places: Sequence[str]) -> Log:
    """The conversation in the lines of a log; `places` says where each line stands."""
    lines = [(_said(value), place) for value, place in zip(values, places, strict=True) if isinstance(value, Mapping)]
    title = next((str(v["summary"]) for v, _ in lines if v.get("type") == "summary" and v.get("summary")), None)
    main = _in_order([(v, place) for v, place in lines if v.get("uuid") and not v.get("isSidechain")])
    kept = _conversation([value for value, _ in main])
    turns: list[Turn] = []
    model: str | None = None
    at: dict[str, int] = {}  # API message id -> its turn
    whole = True
    for value, place in main:
        if value["uuid"] not in kept or not is_entry(value):
            continue
        message = value["message"]
        role, content = str(message.get("role") or value["type"]), message.get("content")
        if value.get("isCompactSummary"):
            if turns:
                continue  # what it sums up stands before it
            whole = False
        if not content:
            continue
        if role == "assistant":
            if message.get("model") == "<synthetic>":  # an error shown to the user, no answer of a model
                continue
            model = message.get("model") or model
            key = str(message.get("id") or value["uuid"])
            if key in at and isinstance(content, list):
                earlier = turns[at[key]]
                turns[at[key]] = earlier._replace(content=[*_blocks(earlier.content), *content])
                continue
            at[key] = len(turns)
        turns.append(Turn(role, content, seconds(value.get("timestamp")), place))
    return Log(_results_joined(turns), title, model, whole)


def seconds(stamp: Any) -> float | None:
    """Unix seconds of an ISO time; None where it is none. A time without a zone is UTC."""
    try:
        time = datetime.datetime.fromisoformat(str(stamp).replace("Z", "+00:00"))
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=datetime.UTC)).timestamp()


def _said(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The line itself; what the user typed while an answer was being made, which the log keeps as an attachment alone, as
    the user's line that it is."""
    attached = value.get("attachment")
    if value.get("type") != "attachment" or not isinstance(attached, Mapping):
        return value
    if attached.get("type") != "queued_command" or not isinstance(attached.get("prompt"), (str, list)):
        return value
    return {**value, "type": "user", "message": {"role": "user", "content": attached["prompt"]}}


def _in_order(lines: list[tuple[Mapping[str, Any], str]]) -> list[tuple[Mapping[str, Any], str]]:
    """The lines, each once (a log may be written again behind itself), a parent before its children even where two writers
    put it behind them."""
    by_id: dict[Any, tuple[Mapping[str, Any], str]] = {}
    once: list[tuple[Mapping[str, Any], str]] = []
    for line in lines:
        first = by_id.setdefault(line[0]["uuid"], line)
        if first is line or first[0].get("message") != line[0].get("message"):
            once.append(line)
    out: list[tuple[Mapping[str, Any], str]] = []
    done: set[int] = set()
    for line in once:
        chain, met = [line], {id(line)}
        while (above := by_id.get(chain[-1][0].get("parentUuid"))) is not None and id(above) not in done:
            if id(above) in met:
                chain = [line]  # they go round in a circle
                break
            chain.append(above)
            met.add(id(above))
        for each in reversed(chain):
            if id(each) not in done:
                done.add(id(each))
                out.append(each)
    return out


def _conversation(main: Sequence[Mapping[str, Any]]) -> set[str]:
    """The uuids of the entries that make up the conversation as it stood at the end."""
    place = {value["uuid"]: n for n, value in enumerate(main)}
    kept: set[str] = set()
    at = len(main) - 1
    while at >= 0:
        value = main[at]
        kept.add(value["uuid"])
        parent = value.get("parentUuid") or value.get("logicalParentUuid")
        following = place.get(parent, at - 1) if parent else -1
        at = following if following < at else at - 1
    # siblings of the path: blocks of the same API messages, then results of the calls in them
    ids = {_api_id(value) for value in main if value["uuid"] in kept} - {None}
    kept |= {value["uuid"] for value in main if _api_id(value) in ids}
    calls = {block.get("id") for value in main if value["uuid"] in kept for block in _content(value)} - {None}
    answers = (value for value in main if any(block.get("tool_use_id") in calls for block in _content(value)))
    kept |= {value["uuid"] for value in answers}
    return kept


def _api_id(value: Mapping[str, Any]) -> str | None:
    message = value.get("message")
    found = message.get("id") if isinstance(message, Mapping) and value.get("type") == "assistant" else None
    return str(found) if found else None


def _content(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    message = value.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": str(content)}]


def _results_joined(turns: list[Turn]) -> list[Turn]:
    """Results of parallel calls, which the log gives a line each, in one user message, as the API wants them."""
    out: list[Turn] = []
    for turn in turns:
        last = out[-1] if out else None
        if last is not None and last.role == turn.role == "user" and _only_results(last) and _only_results(turn):
            out[-1] = last._replace(content=[*last.content, *turn.content])
        else:
            out.append(turn)
    return out


def _only_results(turn: Turn) -> bool:
    return isinstance(turn.content, list) and all(
        isinstance(block, Mapping) and block.get("type") == "tool_result" for block in turn.content
    )
