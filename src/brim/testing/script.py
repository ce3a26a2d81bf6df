"""What a script of `ScriptedProvider` may hold: answers, faults, streams that break, errors in the form of each API."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from brim.testing.dialogue import Call, Reply

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}

Api: TypeAlias = Literal["openai.chat", "openai.responses", "anthropic.messages"]


class Received(msgspec.Struct):
    """A request as it came. `api` is "" for one outside the three endpoints; `finished`: the answer was sent whole;
    `aborted`: the client went away before that."""

    api: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes
    prompt_tokens: int = 0
    cached_tokens: int = 0
    finished: bool = False
    aborted: bool = False

    @property
    def messages(self) -> list[dict[str, Any]]:
        """`messages`, or `input` of a Responses request."""
        value = self.body.get("messages", self.body.get("input", []))
        return value if isinstance(value, list) else [{"role": "user", "content": value}]

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP answer sent as it stands: status, body and headers."""

    status: int = 500
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A stream that begins like `answer` and then goes wrong: after `after` characters of text it sends `error` as the
    API's error event, or just ends (`how`: "close" ends the body properly, "reset" resets the connection, "hang" waits
    until the client goes)."""

    answer: Reply
    error: Mapping[str, Any] | None = None
    how: Literal["close", "reset", "hang"] = "close"


CallLike: TypeAlias = "Call | tuple[str, Mapping[str, Any] | str | None]"
Entry: TypeAlias = "Reply | Fault | Cut | str | Callable[[Received], Entry]"


def reply(
    text: str = "",
    *,
    calls: Sequence[CallLike] = (),
    thinking: str | None = None,
    finish: str | None = None,
    usage: Mapping[str, Any] | None = None,
    piece: int = 12,
    delay: float = 0.0,
) -> Reply:
    """An answer. `piece`: characters of one streamed delta; `delay`: seconds before each; `finish`: the finish reason,
    in the API's own word; `usage` replaces figures of the usage object."""
    return Reply(
        text=text,
        calls=tuple(_call(given) for given in calls),
        thinking=thinking,
        finish=finish,
        usage=dict(usage or {}),
        piece=piece,
        delay=delay,
    )


def tool_call(
    name: str, arguments: Mapping[str, Any] | str | None = None, *, id: str | None = None, text: str = ""
) -> Reply:
    """An answer that makes one tool call."""
    return reply(text, calls=[_call((name, arguments), id)])


def tool_calls(*calls: CallLike, text: str = "") -> Reply:
    """An answer that makes several calls in parallel: `tool_calls(("grep", {"pattern": "TODO"}), ("glob", {}))`."""
    return reply(text, calls=calls)


def _call(given: CallLike, id: str | None = None) -> Call:
    """Arguments given as text are sent as they stand, valid or not."""
    if isinstance(given, Call):
        return given
    name, arguments = given
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return Call(name=name, arguments=text, id=id)


def fault(
    status: int, body: object = None, *, headers: Mapping[str, str] | None = None, retry_after: float | None = None
) -> Fault:
    """An HTTP error. `body`: an object (sent as JSON), text or bytes; None gives a plausible one for the status."""
    if body is None:
        kind = _ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
        body = {"error": {"message": f"scripted fault {status}", "type": kind, "param": None, "code": None}}
    more = dict(headers or {})
    if retry_after is not None:
        more["Retry-After"] = f"{retry_after:g}"
    if isinstance(body, (bytes, str)):
        sent = body if isinstance(body, bytes) else body.encode()
    else:
        sent = json.dumps(body, ensure_ascii=False).encode()
        more.setdefault("Content-Type", "application/json")
    return Fault(status=status, body=sent, headers=more)


def raw(body: bytes | str, *, content_type: str = "text/event-stream", status: int = 200) -> Fault:
    """Any bytes as the answer."""
    return Fault(
        status=status, body=body.encode() if isinstance(body, str) else body, headers={"Content-Type": content_type}
    )


def html_page(title: str = "502 Bad Gateway", *, status: int = 502) -> Fault:
    """A web page where an answer should be, as a proxy sends it."""
    page = f"<!doctype html><html><head><title>{title}</title></head><body><h1>{title}</h1><hr>nginx</body></html>"
    return raw(page, content_type="text/html", status=status)


def empty_stream() -> Fault:
    """A 200 whose event stream ends without any event."""
    return raw(b"")


def stream_error(
    message: str = "Overloaded", *, kind: str = "overloaded_error", code: str | None = None, after: str = ""
) -> Cut:
    """A stream with status 200 that sends the text `after`, then the API's error event."""
    return Cut(answer=reply(after), error={"type": kind, "message": message, "code": code})


def broken_stream(after: str = "Half an ans", *, how: Literal["close", "reset", "hang"] = "close") -> Cut:
    """A stream that sends the text `after` and breaks off without a finish reason."""
    return Cut(answer=reply(after), how=how)


def overflow_error(api: str, prompt: int, reserved: int, window: int, wording: str = "api") -> Fault:
    """The error of a request of `prompt` input tokens and `reserved` output tokens over a window."""
    chat = (
        f"This model's maximum context length is {window} tokens. However, you requested {prompt + reserved} tokens "
        f"({prompt} in the messages, {reserved} in the completion). Please reduce the length of the messages or completion."
    )
    if wording == "llama.cpp":
        text = f"request ({prompt} tokens) exceeds the available context size ({window} tokens), try increasing it"
        figures = {"n_prompt_tokens": prompt, "n_ctx": window}
        return fault(400, {"error": {"code": 400, "message": text, "type": "exceed_context_size_error", **figures}})
    if wording == "vllm":
        return fault(400, {"object": "error", "message": chat, "type": "BadRequestError", "param": None, "code": 400})
    if api == "anthropic.messages":
        text = f"prompt is too long: {prompt} tokens > {window} maximum"
        if prompt <= window:
            text = (
                f"input length and `max_tokens` exceed context limit: {prompt} + {reserved} > {window}, decrease input "
                "length or `max_tokens` and try again"
            )
        return fault(400, error_body(api, text))
    if api == "openai.responses":
        chat = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return fault(400, error_body(api, chat, code="context_length_exceeded"))


def error_body(api: str, message: str, kind: str = "invalid_request_error", code: str | None = None) -> dict[str, Any]:
    if api == "anthropic.messages":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def error_event(api: str, error: Mapping[str, Any]) -> bytes:
    """An error inside a stream, in the API's own form."""
    kind, message, code = error.get("type"), error.get("message"), error.get("code")
    if api == "anthropic.messages":
        return _sse({"type": "error", "error": {"type": kind, "message": message}}, "error")
    if api == "openai.responses":
        return _sse({"type": "error", "code": code or kind, "message": message, "param": None}, "error")
    return _sse({"error": {"message": message, "type": kind, "code": code}}) + b"data: [DONE]\n\n"


def _sse(value: object, event: str | None = None) -> bytes:
    return (f"event: {event}\n" if event else "").encode() + b"data: " + json.dumps(value).encode() + b"\n\n"
