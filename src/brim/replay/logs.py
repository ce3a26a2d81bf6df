"""The objects of one log or message file as transcripts: which kind it is, and messages of any API by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from brim.replay import claude_logs, codex_logs
from brim.replay.chat import Chat, Warn, seconds
from brim.replay.shapes import Unreadable, chat_messages
from brim.replay.transcript import Transcript

_RESPONSES = (
    "message", "function_call", "function_call_output", "reasoning", "custom_tool_call", "custom_tool_call_output",
    "local_shell_call", "local_shell_call_output",
)  # fmt: skip
_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking")


def is_log_line(value: Mapping[str, Any]) -> bool:
    """Whether an object is a line of a session log or a message by itself, and not a whole conversation."""
    return (
        value.get("format") == "brim.session"
        or claude_logs.is_line(value)
        or codex_logs.is_line(value)
        or isinstance(value.get("role"), str)
        or value.get("type") in _RESPONSES
    )


def of_log(name: str, values: Sequence[Mapping[str, Any]], warn: Warn) -> Iterator[Transcript]:
    """The conversations in the objects of one log, recognised by what only one kind of log has."""
    if any(value.get("format") == "brim.session" for value in values):
        from brim.replay.sessions import of_export

        yield from of_export(name, values, warn)
    elif any(map(claude_logs.is_line, values)):
        yield from claude_logs.of_claude(name, values, warn)
    elif any(map(codex_logs.is_line, values)):
        yield codex_logs.of_codex(name, values, warn)
    elif any(value.get("type") in _RESPONSES for value in values) and "instructions" in values[0]:
        yield codex_logs.of_codex(name, codex_logs.in_todays_form(values), warn)
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
        item = codex_logs.item_of(message) if api == "openai.responses" else message
        if item is not None:
            built.add(item, api, seconds(message.get("timestamp")))
    return built.transcript(model if isinstance(model, str) else None, api)
