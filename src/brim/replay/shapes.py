"""One JSON value that holds a whole conversation, in the shapes people keep them in, as messages of one API.

    {"messages": […]}                    OpenAI's fine-tuning form, request bodies of chat and Anthropic
    {"input": […]}                       request bodies of Responses
    {"body": {…}}                        a line of a batch file; {"request": {…}, "response": {…}}: what proxies log
    {"conversations": [{from, value}]}   ShareGPT
    […]                                  a bare list of messages

Chat messages that are as they should be are handed on untouched. What old or careless writers left is put into today's
form (`function_call`, arguments that are no string, calls without `function`), and a conversation that cannot be read so
is refused with the reason: one with a hole in it would be measured as another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Wire = Mapping[str, Any]
_SHAREGPT = {
    "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant",
    "model": "assistant", "bot": "assistant", "bing": "assistant", "bard": "assistant", "system": "system",
    "tool": "tool", "observation": "tool", "function_response": "tool", "ipython": "tool",
    "function_call": "call", "tool_call": "call",
}  # fmt: skip


class Unreadable(ValueError):
    """Why a value holds no conversation, as the end of a sentence: `it has no list of messages`."""


class Held(NamedTuple):
    """A conversation as it was held. `body`: the object whose keys say more (model, system, id)."""

    messages: list[Wire]
    body: Wire


def holds_conversation(value: Any) -> bool:
    """Whether this looks like a value with a conversation in it, readable or not."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, dict) and ("role" in each or "from" in each) for each in value)
    return isinstance(value, dict) and _listed(value) is not None


def held_in(value: Any) -> Held:
    """The conversation in a value. Raises Unreadable."""
    if isinstance(value, list):
        value = {"messages": value}
    found = _listed(value) if isinstance(value, dict) else None
    if found is None:
        raise Unreadable("it has no list of messages")
    messages, body = found
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        raise Unreadable("it has no list of messages")
    if messages and all("from" in each and "role" not in each for each in messages):
        messages = _from_sharegpt(messages)
    answer = _answer(value)
    merged = {**{key: each for key, each in value.items() if key in ("id", "model")}, **body}
    return Held([*messages, answer] if answer is not None else messages, merged)


def _listed(value: Wire) -> tuple[Any, Wire] | None:
    """(the list of messages, the object it stands in), looked for in the object and in what proxies wrap around it."""
    for inner in (value, *(value.get(key) for key in ("body", "request", "data", "kwargs", "input", "inputs"))):
        if isinstance(inner, dict):
            for key in ("messages", "conversations", "conversation"):
                if key in inner:
                    return inner[key], inner
            if isinstance(inner.get("input"), list):
                return inner["input"], inner
    return None


def _answer(value: Wire) -> Wire | None:
    """The chat message that a logged response adds to its request."""
    response = value.get("response")
    if isinstance(response, dict) and isinstance(response.get("body"), dict):
        response = response["body"]
    choices = response.get("choices") if isinstance(response, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return {"role": "assistant", **message} if isinstance(message, dict) else None


def _from_sharegpt(turns: Sequence[Wire]) -> list[Wire]:
    messages: list[Wire] = []
    open_call: str | None = None
    for number, turn in enumerate(turns):
        role, text = _SHAREGPT.get(str(turn["from"]).lower()), turn.get("value")
        if role is None:
            raise Unreadable(f"turn {number + 1} is from {str(turn['from'])[:40]!r}")
        text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        if role == "call":
            open_call = f"call_{number}"
            messages.append({"role": "assistant", "content": "", "tool_calls": [_spoken_call(text, open_call)]})
        elif role == "tool" and open_call is not None:
            messages.append({"role": "tool", "tool_call_id": open_call, "content": text})
            open_call = None
        else:  # a result without a call came to the model as text
            messages.append({"role": "user" if role == "tool" else role, "content": text})
    return messages


def _spoken_call(text: str, id: str) -> Wire:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    named = isinstance(said, dict) and isinstance(said.get("name"), str)
    name, arguments = (said["name"], said.get("arguments", {})) if named else ("call", {"text": text})
    return {"id": id, "type": "function", "function": {"name": name, "arguments": _text_of_arguments(arguments)}}


def chat_messages(messages: Sequence[Wire]) -> list[Wire]:
    """Messages of the chat API in the form that the rest of brim measures. Raises Unreadable."""
    made: list[Wire] = []
    called: list[str] = []  # calls of the old form, which had no ids, that wait for their result
    for number, message in enumerate(messages, 1):
        if not isinstance(message.get("role"), str) or not message["role"]:
            raise Unreadable(f"message {number} has no role")
        if isinstance(message.get("function_call"), dict) and not message.get("tool_calls"):
            called.append(f"call_{number}")
            message = {
                **{key: value for key, value in message.items() if key != "function_call"},
                "tool_calls": [_call({"id": called[-1], "function": message["function_call"]}, number)],
            }
        elif message["role"] == "function":
            if not called:
                raise Unreadable(f"message {number} is the result of no call")
            message = {**message, "role": "tool", "tool_call_id": called.pop(0)}
        made.append(_message(message, number))
    return made


def _message(message: Wire, number: int) -> Wire:
    content, calls = message.get("content"), message.get("tool_calls")
    fixed: dict[str, Any] = {}
    if isinstance(content, list):
        if not all(_is_part(part) for part in content):
            fixed["content"] = [_part(part) for part in content]
    elif content is not None and not isinstance(content, str):
        fixed["content"] = json.dumps(content, ensure_ascii=False)
    if calls and not (isinstance(calls, list) and all(_is_call(call) for call in calls)):
        if not isinstance(calls, list):
            raise Unreadable(f"the calls of message {number} are no list")
        fixed["tool_calls"] = [_call(call, number) for call in calls]
    return {**message, **fixed} if fixed else message


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and (part.get("type") != "text" or isinstance(part.get("text"), str))


def _part(part: Any) -> Wire:
    if _is_part(part):
        return dict(part)
    text = part.get("text") if isinstance(part, dict) else part
    return {"type": "text", "text": text if isinstance(text, str) else "" if text is None else json.dumps(text)}


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return (
        isinstance(function, dict)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), str)
        and isinstance(call.get("id"), str)
    )


def _call(call: Any, number: int) -> Wire:
    """A call in today's form, from one whose arguments are an object, that is not wrapped, or is a custom tool's."""
    if _is_call(call):
        return dict(call)
    inner = call.get("function", call.get("custom", call)) if isinstance(call, dict) else None
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        raise Unreadable(f"a call of message {number} names no tool")
    arguments = inner.get("arguments", inner.get("input", inner.get("args", {})))
    if "custom" in call and isinstance(arguments, str):
        arguments = {"input": arguments}
    id = call.get("id")
    return {
        "id": id if isinstance(id, str) else f"call_{number}" if id is None else str(id),
        "type": "function",
        "function": {"name": inner["name"], "arguments": _text_of_arguments(arguments)},
    }


def _text_of_arguments(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
