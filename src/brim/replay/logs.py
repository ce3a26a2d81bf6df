"""Session logs of agents, and messages in any API's form, as transcripts.

What an agent shows its model as one assistant message is often several lines of its log (a block each, or an item each):
they are put together again. Thinking is left out, since no other request than its own could send it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from brim.conversation import Message
from brim.errors import BrimError
from brim.replay.shapes import Unreadable, chat_messages
from brim.replay.transcript import Transcript, printable
from brim.replay.yardstick import text_of
from brim.store import claude_code

Warn = Callable[[str], None]
_RESPONSES = (
    "message", "function_call", "function_call_output", "reasoning", "custom_tool_call", "custom_tool_call_output",
    "local_shell_call", "local_shell_call_output",
)  # fmt: skip
_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking")


def is_log_line(value: Mapping[str, Any]) -> bool:
    """Whether an object is a line of a session log or a message by itself, and not a whole conversation."""
    return (
        value.get("format") == "brim.session"
        or claude_code.is_entry(value)
        or _is_streamed(value)
        or _is_codex(value)
        or isinstance(value.get("role"), str)
        or value.get("type") in _RESPONSES
    )


def _is_codex(value: Mapping[str, Any]) -> bool:
    return value.get("type") in ("session_meta", "response_item") and isinstance(value.get("payload"), dict)


def of_log(name: str, values: Sequence[Mapping[str, Any]], warn: Warn) -> Iterator[Transcript]:
    """The conversations in the objects of one log, recognised by what only one kind of log has."""
    if any(value.get("format") == "brim.session" for value in values):
        from brim.replay.sessions import of_export

        yield from of_export(name, values, warn)
    elif any(map(_is_streamed, values)):
        yield from _claude(name, _as_logged(values), warn)
    elif any(claude_code.is_entry(value) for value in values):
        yield from _claude(name, values, warn)
    elif any(map(_is_codex, values)):
        yield _codex(name, values, warn)
    elif any(value.get("type") in _RESPONSES for value in values) and "instructions" in values[0]:
        yield _codex(name, _in_todays_form(values), warn)
    else:
        messages = [value for value in values if "role" in value or value.get("type") in _RESPONSES]
        if not is_chat({}, messages):
            yield of_messages(name, messages, warn)
            return
        times = [seconds(message.get("timestamp")) for message in messages]
        try:
            wires = chat_messages(messages)
        except Unreadable as error:
            warn(f"{name}: skipped, {error}")
            return
        yield Transcript(name, wires, None, "messages", times if any(times) else [])


def _in_todays_form(values: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The lines of codex' first logs, which were the items themselves behind one line about the session."""
    at = values[0].get("timestamp")
    return [
        {"type": "session_meta", "timestamp": at, "payload": values[0]},
        *({"type": "response_item", "timestamp": each.get("timestamp", at), "payload": each} for each in values[1:]),
    ]


def is_chat(body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether messages are in chat form, judged by what only the other APIs have."""
    return "input" not in body and "system" not in body and _api(messages) == "openai.chat"


def _api(messages: Sequence[Mapping[str, Any]]) -> str:
    for message in messages:
        if message.get("type") in _RESPONSES:
            return "openai.responses"
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and (block.get("type") in _BLOCKS or "source" in block):
                return "anthropic.messages"
    return "openai.chat"


_LAST_SECOND = 253_402_300_800  # the year 10000


def seconds(value: Any) -> float | None:
    """Unix seconds from an ISO time or a number of seconds or milliseconds; None from anything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        found: float | None = float(value) / 1_000 if value > 1e11 else float(value)
    else:
        found = claude_code.seconds(value)
    # What lies outside the calendar is no time, and no clock can be set to it.
    return found if found is not None and 0 <= found < _LAST_SECOND else None


def of_messages(
    name: str, messages: Sequence[Mapping[str, Any]], warn: Warn, *, system: Any = None, model: Any = None
) -> Transcript:
    """Messages or items of any API as a transcript."""
    api = _api(messages)
    built = Chat(name, warn)
    if isinstance(system, list):
        system = "\n\n".join(str(block.get("text", "")) for block in system if isinstance(block, dict))
    if system:
        built.add({"role": "system", "content": str(system)}, "openai.chat")
    for message in messages:
        item = _item(message) if api == "openai.responses" else message
        if item is not None:
            built.add(item, api, seconds(message.get("timestamp")))
    return built.transcript(model if isinstance(model, str) else None, api)


class Chat:
    """A transcript in the making: wire objects of any API in, chat messages out, one for each request's answer."""

    def __init__(self, name: str, warn: Warn) -> None:
        self.name = name
        self.warn = warn
        self.messages: list[dict[str, Any]] = []
        self.times: list[float | None] = []
        self.usage: dict[int, Mapping[str, Any]] = {}
        self.compactions: list[int] = []
        self.aside: list[Mapping[str, Any]] = []
        self._tools: dict[str, str] = {}
        self._closed = False

    def add(self, wire: Mapping[str, Any], api: str, at: float | None = None, place: str = "") -> None:
        """Adds what one wire object holds. What follows an assistant message without anything in between joins it."""
        from brim.formats import parse_message

        try:
            parsed = parse_message(wire, api)
        except BrimError as error:
            self.warn(f"{self.name}{', ' if place else ''}{place}: skipped, {error.message}")
            return
        for message in parsed:
            self.add_message(message, at)

    def add_message(self, message: Message, at: float | None = None) -> None:
        """Adds one message of brim's."""
        from brim.formats import render_messages

        wires = render_messages([Message(message.role, message.parts, name=message.name)], "openai.chat")
        if not wires:  # thinking alone
            return
        wire = dict(wires[0])
        last = self.messages[-1] if self.messages else None
        for call in wire.get("tool_calls") or ():
            self._tools[str(call["id"])] = str(call["function"]["name"])
        if message.role == "tool" and not message.result.text.strip() and isinstance(wire["content"], str):
            wire["content"] = message.result.text  # a log is not mended
        if wire["role"] == "tool" and (tool := self._tools.get(str(wire.get("tool_call_id")))):
            wire["name"] = tool
        if last is not None and last["role"] == wire["role"] == "assistant" and not self._closed:
            _join(last, wire)
            return
        self._closed = False
        self.messages.append(wire)
        self.times.append(at)

    def close(self) -> None:
        """The answer of one request is complete: what an assistant says next is another one's."""
        self._closed = True

    def used(self, usage: Mapping[str, Any], index: int | None = None) -> None:
        """Notes what the provider said of a request: of the one that message `index` (the newest one of the assistant, if
        None) answers. Where that one has its usage, or there is none, it was a request beside the conversation."""
        if index is None:
            index = next(
                (n for n in reversed(range(len(self.messages))) if self.messages[n]["role"] == "assistant"), -1
            )
        if index in self.usage or index < 0 or self.messages[index]["role"] != "assistant":
            self.aside.append(usage)
        else:
            self.usage[index] = usage

    def rewind(self, index: int) -> None:
        """Takes back the messages from `index` on, as a user did; the requests that led to them were made all the same."""
        self.aside += [self.usage.pop(n) for n in sorted(self.usage) if n >= index]
        self.compactions = [n for n in self.compactions if n <= index]
        del self.messages[index:], self.times[index:]
        self.close()

    def transcript(self, model: str | None, kind: str) -> Transcript:
        times = self.times if any(time is not None for time in self.times) else []
        name, model = printable(self.name), printable(model) if model else None
        return Transcript(name, self.messages, model, kind, times, self.usage, self.compactions, self.aside)


def _join(last: dict[str, Any], wire: Mapping[str, Any]) -> None:
    texts = [each for each in (last.get("content"), wire.get("content")) if each]
    if texts:
        last["content"] = "\n".join(str(text) for text in texts)
    calls = [*(last.get("tool_calls") or ()), *(wire.get("tool_calls") or ())]
    if calls:
        last["tool_calls"] = calls


# ---- Claude Code ----------------------------------------------------------------------------------------------------


def _claude(name: str, values: Sequence[Mapping[str, Any]], warn: Warn) -> Iterator[Transcript]:
    """The session, then each sub-agent's conversation, which the log keeps as lines of the same file."""
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


# ---- codex ----------------------------------------------------------------------------------------------------------


def _codex(name: str, values: Sequence[Mapping[str, Any]], warn: Warn) -> Transcript:
    """One session: `response_item` lines are the conversation, `token_count` events end a request and say what it used."""
    chat = Chat(name, warn)
    model: str | None = None
    total: Any = None
    named = False
    for value in values:
        payload = value.get("payload")
        if not isinstance(payload, dict):
            continue
        kind, at = value.get("type"), seconds(value.get("timestamp"))
        if kind == "session_meta":
            # A fork begins with a copy of the log it came from, that log's own first line included.
            chat.name, named = chat.name if named else str(payload.get("id") or name), True
            told = payload.get("base_instructions") or payload.get("instructions")
            text = told.get("text") if isinstance(told, dict) else told
            if text and not chat.messages:
                chat.add({"role": "system", "content": str(text)}, "openai.chat", at)
        elif kind == "turn_context" and payload.get("model"):
            model = printable(str(payload["model"]))
        elif kind == "compacted":
            chat.compactions.append(len(chat.messages))
        elif kind == "response_item" and (item := _item(payload)) is not None:
            chat.add(item, "openai.responses", at)
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            turns = payload.get("num_turns")
            asked = [n for n, message in enumerate(chat.messages) if _is_asked(message)]
            if type(turns) is int and turns > 0 and asked:
                chat.rewind(asked[max(0, len(asked) - turns)])
        elif kind == "event_msg" and payload.get("type") == "token_count":
            info = payload.get("info")
            if isinstance(info, dict) and info.get("total_token_usage") != total:  # repeated when limits change
                total = info.get("total_token_usage")
                if isinstance(last := info.get("last_token_usage"), dict):
                    chat.used(_codex_usage(last, model, _answer_id(chat, total)))
                chat.close()
    return chat.transcript(model, "codex")


_TOLD = ("<environment_context", "<user_instructions", "<turn_aborted", "# AGENTS.md")
"""How messages begin that codex writes in the user's name: they open no turn."""


def _is_asked(message: Mapping[str, Any]) -> bool:
    return message["role"] == "user" and not text_of(message).lstrip().startswith(_TOLD)


def _item(item: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """An item in the form of the Responses API's functions; None for what is no part of a conversation."""
    kind = item.get("type")
    call_id = item.get("call_id") or item.get("id")
    if kind == "custom_tool_call":
        arguments = json.dumps({"input": item.get("input", "")}, ensure_ascii=False)
        return {"type": "function_call", "call_id": call_id, "name": item.get("name"), "arguments": arguments}
    if kind == "local_shell_call":
        arguments = json.dumps(item.get("action") or {}, ensure_ascii=False)
        return {"type": "function_call", "call_id": call_id, "name": "local_shell", "arguments": arguments}
    if kind in ("custom_tool_call_output", "local_shell_call_output", "function_call_output"):
        output = item.get("output")
        if not isinstance(output, (str, list)):
            output = json.dumps(output, ensure_ascii=False)
        return {"type": "function_call_output", "call_id": call_id, "output": output}
    return item if kind in ("message", "function_call") else None


def _answer_id(chat: Chat, total: Any) -> str:
    """What tells an answer from all others, since codex names none: what was said, and all tokens used by then."""
    said = next((message for message in reversed(chat.messages) if message["role"] == "assistant"), None)
    return blake2b(json.dumps([said, total], sort_keys=True).encode(), digest_size=12).hexdigest()


def _codex_usage(last: Mapping[str, Any], model: str | None, id: str) -> dict[str, Any]:
    return {
        "prompt_tokens": last.get("input_tokens", 0),
        "completion_tokens": last.get("output_tokens", 0),
        "cached_tokens": last.get("cached_input_tokens", 0),
        "completion_tokens_details": {"reasoning_tokens": last.get("reasoning_output_tokens", 0)},
        "message_id": id,
        **({"model": model} if model else {}),
    }
