"""A request body read into messages, and a view of them written back.

Reading keeps every wire object; writing puts those objects, not copies, into a new body. So a view in which nothing was
touched is the body that came in, and whatever brim does not know passes through. The body itself is never altered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from brim.conversation import Message
from brim.conversation.clean import clean_value
from brim.errors import UsageError
from brim.formats import anthropic_messages, openai_chat, openai_responses
from brim.formats.blocks import wrong
from brim.formats.convert import convert

APIS = ("openai.chat", "openai.responses", "anthropic.messages")
_CONVERSATION = frozenset({"messages", "input", "instructions", "system"})
_MAX_OUTPUT = {
    "openai.chat": ("max_completion_tokens", "max_tokens"),
    "openai.responses": ("max_output_tokens",),
    "anthropic.messages": ("max_tokens",),
}


class Request(msgspec.Struct):
    """A parsed body. `messages`: all of it in order, system first (`system` and `instructions` are system messages).

    `max_output` is in tokens, None where the body does not say. `cleaned` counts the strings in which lone surrogates
    were replaced: where it is 0 a rendering of `messages` equals `body`. `body` is as it came, except that a string
    cleaned outside the messages (a tool description) is clean in it, on a copy. `held` is the field by which the body says
    that the provider holds the history, or edits it itself; "" where it does not.
    """

    api: str
    body: Mapping[str, Any]
    messages: list[Message]
    tools: list[Mapping[str, Any]] = []
    model: str | None = None
    max_output: int | None = None
    cleaned: int = 0
    held: str = ""


def parse_request(body: Mapping[str, Any], api: str) -> Request:
    """Read a request body of `api`. Raises UsageError that names the place and what is wrong there."""
    _known(api)
    if not isinstance(body, Mapping):
        raise wrong("body", "an object", body)
    messages: list[Message]
    if api == "openai.chat":
        messages, cleaned = openai_chat.parse(_required(body, "messages"))
    elif api == "anthropic.messages":
        messages, cleaned = anthropic_messages.parse_system(body.get("system"))
        more, changed = anthropic_messages.parse(_required(body, "messages"))
        messages += more
        cleaned += changed
    else:
        messages, cleaned = openai_responses.parse_instructions(body.get("instructions"))
        more, changed = openai_responses.parse(body.get("input"))
        messages += more
        cleaned += changed
    rest, changed = clean_value({key: value for key, value in body.items() if key not in _CONVERSATION})
    if changed:
        body = {key: rest.get(key, value) for key, value in body.items()}
    model = body.get("model")
    return Request(
        api=api,
        body=body,
        messages=messages,
        tools=_tools(body),
        model=model if type(model) is str else None,
        max_output=next((body[k] for k in _MAX_OUTPUT[api] if type(body.get(k)) is int and body[k] >= 0), None),
        cleaned=cleaned + changed,
        held=_held(body, api),
    )


def _held(body: Mapping[str, Any], api: str) -> str:
    """The field that leaves the history to the provider: an earlier response or conversation the messages only add to, or
    compaction and editing by the server. Clearing thinking of which all is kept edits nothing."""
    fields = {"openai.responses": ("previous_response_id", "conversation"), "anthropic.messages": ("thread",)}
    for field in fields.get(api, ()):
        if body.get(field):
            return field
    asked = body.get("context_management")
    edits = asked.get("edits") if isinstance(asked, Mapping) else asked
    if api == "openai.chat" or not isinstance(edits, list | tuple):
        return ""
    return "context_management" if any(not _keeps_all(edit) for edit in edits) else ""


def _keeps_all(edit: Any) -> bool:
    return (
        isinstance(edit, Mapping)
        and str(edit.get("type", "")).startswith("clear_thinking")
        and (edit.get("keep") or "all") == "all"
    )


def _known(api: str) -> None:
    if api not in APIS:
        raise UsageError(f"unknown api {api!r}", hint=f"one of {', '.join(APIS)}")


def _required(body: Mapping[str, Any], field: str) -> Any:
    if field not in body:
        raise UsageError(
            f"{field}: missing from the request body",
            hint="give the whole body as the provider takes it; `api` says which provider's it is read as",
        )
    return body[field]


def _tools(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    field = "tools" if body.get("tools") is not None else "functions"
    tools = body.get(field)
    if tools is None:
        return []
    if not isinstance(tools, list | tuple):
        raise wrong(field, "a list", tools)
    for i, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            raise wrong(f"{field}[{i}]", "an object", tool)
    return list(tools)


def render_request(
    request: Request, view: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """A new body of `request.api` that sends `view`. Untouched messages go out as the wire objects they came as.

    `tools` replaces the tool list (an empty one removes it, and the fields that need it); None leaves it as it came.
    """
    body = dict(request.body)
    messages = convert(view, request.api)
    if request.api == "openai.chat":
        body["messages"] = openai_chat.render(messages)
    elif request.api == "anthropic.messages":
        system, body["messages"] = anthropic_messages.render(messages, body.get("system"))
        _set(body, "system", system)
    else:
        instructions, items = openai_responses.render(messages, body.get("input"))
        _set(body, "instructions", instructions)
        if items or "input" in body:
            body["input"] = items if items or body["input"] is not None else None
    if tools is not None:
        if tools:
            body["tools"] = list(tools)
        else:
            for field in ("tools", "tool_choice", "parallel_tool_calls"):
                body.pop(field, None)
    return body


def _set(body: dict[str, Any], field: str, value: Any) -> None:
    if value is not None:
        body[field] = value
    elif body.get(field) is not None:
        del body[field]


def parse_message(wire: Any, api: str) -> list[Message]:
    """The messages in one wire object of `api` (Responses: an item, or the list of items of one output).

    An Anthropic response as a whole is taken too; of it, role and content become the message.
    """
    _known(api)
    if api == "openai.chat":
        return openai_chat.parse([wire], "message")[0]
    if api == "anthropic.messages":
        if isinstance(wire, Mapping) and wire.get("type") == "message":  # a whole response: only this much goes back
            wire = {"role": wire.get("role"), "content": wire.get("content")}
        return anthropic_messages.parse([wire], "message")[0]
    return openai_responses.parse(wire if isinstance(wire, list | tuple) else [wire], "item")[0]


def render_messages(messages: Sequence[Message], api: str) -> list[Any]:
    """The wire objects of several messages, in `messages` or `input` form; those of another API are converted.

    For Anthropic, system messages at the front are left out: their place is the body's `system` field.
    """
    _known(api)
    converted = convert(messages, api)
    if api == "openai.chat":
        return openai_chat.render(converted)
    if api == "anthropic.messages":
        return anthropic_messages.render(converted, None)[1]
    items: list[Any] = openai_responses.render(converted, None)[1]
    return items


def render_message(message: Message, api: str) -> Any:
    """The wire object of one message for `api`, converted where it came from another.

    A message that is several items of Responses (text and calls made elsewhere) comes back as the list of them, one
    that has nothing to say there (only another API's thinking) as an empty list.
    """
    wires = render_messages([message], api)
    return wires[0] if len(wires) == 1 else wires


def render_tool(name: str, description: str, parameters: Mapping[str, Any], api: str) -> dict[str, Any]:
    """A tool definition in the shape of `api`; `parameters` is a JSON schema of an object."""
    _known(api)
    if api == "anthropic.messages":
        return {"name": name, "description": description, "input_schema": parameters}
    function = {"name": name, "description": description, "parameters": parameters}
    if api == "openai.responses":
        return {"type": "function", **function}
    return {"type": "function", "function": function}
