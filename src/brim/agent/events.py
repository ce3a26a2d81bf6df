"""Everything that happens while the agent works, as values: what a terminal, a web page or a script is shown.

Nothing is swallowed: whatever goes wrong is an event as well, whether text had arrived or not. The last event of a
turn is always a `Result`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from brim.budget import Usage


class Started(msgspec.Struct, frozen=True, tag_field="type", kw_only=True, tag="started"):
    """A turn begins. `session` is the id to name it by."""

    session: str
    model: str
    mode: str


class Requested(msgspec.Struct, frozen=True, tag_field="type", kw_only=True, tag="request"):
    """A request goes out: its number in this turn, messages in it, the bill, and what the passes did (one entry each,
    with numbers; empty where the history went out as it is)."""

    step: int
    messages: int
    bill: Mapping[str, Any]
    report: list[dict[str, Any]]
    epoch: int = 0


class Text(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """A piece of the answer."""

    text: str


class Thinking(msgspec.Struct, frozen=True, tag_field="type", tag="thinking"):
    """A piece of the model's reasoning, for display."""

    text: str


class ToolStarted(msgspec.Struct, frozen=True, tag_field="type", kw_only=True, tag="tool_call"):
    """A tool is about to run. `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


class ToolFinished(msgspec.Struct, frozen=True, tag_field="type", kw_only=True, tag="tool_result"):
    """What the model sees of a call. `tokens` and `chars` of `text`; `seconds` it took; `meta` as the tool gave it."""

    id: str
    name: str
    text: str
    tokens: int
    chars: int
    seconds: float
    is_error: bool = False
    handle: str | None = None
    meta: Mapping[str, Any] = {}


class Notice(msgspec.Struct, frozen=True, tag_field="type", tag="notice"):
    """Something the user should know that is neither answer nor failure: a retry, a rung of the ladder, a learned window."""

    text: str
    kind: str = "notice"
    data: Mapping[str, Any] = {}


class Failed(msgspec.Struct, frozen=True, tag_field="type", kw_only=True, tag="error"):
    """A failure that ends the turn. `error` is `BrimError.as_dict()`; `advice`: what to do, a line each; `bill`: the
    account of the request that failed, where it is about its size."""

    error: Mapping[str, Any]
    advice: list[str] = []
    bill: Mapping[str, Any] | None = None


class Used(msgspec.Struct, frozen=True, tag_field="type", kw_only=True, tag="usage"):
    """What one request used and cost: US dollars, None where no price is known; seconds to the first piece, and in all."""

    usage: Usage
    cost: float | None
    ttft: float | None
    duration: float
    finish: str = ""


class Result(msgspec.Struct, frozen=True, tag_field="type", kw_only=True, tag="result"):
    """The end of a turn, always the last event.

    `exit_code` as in the error table (0 ok, 130 interrupted …); `error` is None where all went well; `text` is the whole
    answer, or what came of it (`incomplete`). Usage and cost are of this turn; `session_cost` of the session so far, None
    where no request of it has a known price. `context` is the share of the window that the last request used, 0 to 1.
    `data` is the answer as a JSON value, where a schema was asked for and the answer keeps to it.
    """

    ok: bool
    exit_code: int
    text: str = ""
    error: Mapping[str, Any] | None = None
    incomplete: bool = False
    session: str | None = None
    model: str | None = None
    mode: str | None = None
    steps: int = 0
    usage: Usage | None = None
    cost: float | None = None
    session_cost: float | None = None
    context: float | None = None
    bill: Mapping[str, Any] | None = None
    duration: float = 0.0
    data: Any = None


Event: TypeAlias = Started | Requested | Text | Thinking | ToolStarted | ToolFinished | Notice | Failed | Used | Result
Emit: TypeAlias = Callable[[Event], None]


def as_json(event: Event) -> bytes:
    """One line of JSON, without the newline; `type` names the event."""
    try:
        return msgspec.json.encode(event, enc_hook=str)
    except UnicodeEncodeError:  # a lone surrogate, which an answer by a schema can hold as an escape
        return json.dumps(msgspec.to_builtins(event, enc_hook=str)).encode()
