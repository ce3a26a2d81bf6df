"""One line for one wire message, and a `prepared` that checks what must hold of every prepared request."""

from __future__ import annotations

import copy
import json
from typing import Any

import brim
from brim.formats.dialects import violations

Body = dict[str, Any]
MODES = ("full", "compact", "auto")
API_OF = {"openai": "openai.chat", "openai-strict": "openai.chat", "gemini": "openai.chat", "mistral": "openai.chat"}
API_OF |= {"anthropic": "anthropic.messages", "openai-responses": "openai.responses"}
MODEL_OF = {"openai.chat": "gpt-4o", "openai.responses": "gpt-5", "anthropic.messages": "claude-sonnet-4-5"}


def said(role: str, content: Any) -> Body:
    """A message of any API that has role and content."""
    return {"role": role, "content": content}


def called(*ids: str, name: str = "read", arguments: str = "{}", text: str | None = None) -> Body:
    """A chat assistant message with one call for each id."""
    calls = [{"id": id, "type": "function", "function": {"name": name, "arguments": arguments}} for id in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def answered(id: str, content: Any) -> Body:
    """A chat tool message."""
    return {"role": "tool", "tool_call_id": id, "content": content}


def used(id: str, name: str = "read", input: Body | None = None) -> Body:
    """An Anthropic tool_use block."""
    return {"type": "tool_use", "id": id, "name": name, "input": input or {}}


def returned(id: str, content: Any, **more: Any) -> Body:
    """An Anthropic tool_result block."""
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def text_of(body: Any) -> str:
    """The whole of a body as JSON, to look for words in."""
    return json.dumps(body, ensure_ascii=False)


def prepared(
    messages: list[Body],
    *,
    window: int,
    max_output: int | None = None,
    mode: str = "full",
    dialect: str = "openai",
    tools: list[Body] | None = None,
    model: str | None = None,
    previous: Any = None,
    **settings: Any,
) -> Any:
    """A prepared request that fits, is valid in its dialect, and left the caller's messages alone."""
    api = API_OF[dialect]
    place = "input" if api == "openai.responses" else "messages"
    body: Body = {"model": model or MODEL_OF[api], place: messages}
    if tools is not None:
        body["tools"] = tools
    before = copy.deepcopy(body)
    result = brim.prepare(body, api, mode, window, max_output, previous, settings={"dialect": dialect, **settings})
    assert body == before
    assert violations(result.request, api, dialect) == []
    assert brim.count(result.request, api) == result.bill.used
    if max_output is not None:
        assert result.bill.used <= window - max_output
    return result
