"""How an answer looks on the wire in each of the three APIs, streamed and whole: the scripted provider's side of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call of an answer; without an id the answer's number makes one."""

    name: str
    arguments: str
    id: str | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to send (see `brim.testing.reply`)."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str | None = None
    finish: str | None = None
    usage: Mapping[str, Any] = {}
    piece: int = 12
    delay: float = 0.0

    @property
    def output_tokens(self) -> int:
        said = (
            len(self.text) + len(self.thinking or "") + sum(len(call.arguments) + len(call.name) for call in self.calls)
        )
        return max(1, said // 4)


def whole_answer(
    api: str, answer: Reply, body: Mapping[str, Any], prompt: int, cached: int, number: int
) -> dict[str, Any]:
    """The answer as one JSON object. `prompt` and `cached` in tokens; `number` makes ids unlike those of other answers."""
    model = body.get("model") or "scripted"
    finish = _finish(api, answer)
    usage = _usage(api, answer, prompt, cached)
    if api == "anthropic.messages":
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": _blocks(answer, number),
            "stop_reason": finish,
            "stop_sequence": None,
            "usage": usage,
        }
    if api == "openai.responses":
        return _response(model, answer, number, usage, finish)
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": _id(call, number, place),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for place, call in enumerate(answer.calls)
        ]
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    }


def stream_of(
    api: str, answer: Reply, body: Mapping[str, Any], prompt: int, cached: int, number: int
) -> Iterator[tuple[bytes, bool]]:
    """The answer as server-sent events; the flag marks those that end it."""
    model = str(body.get("model") or "scripted")
    if api == "anthropic.messages":
        return _stream_anthropic(answer, model, prompt, cached, number)
    if api == "openai.responses":
        return _stream_responses(answer, model, prompt, cached, number)
    options = body.get("stream_options")
    with_usage = isinstance(options, Mapping) and bool(options.get("include_usage"))
    return _stream_chat(answer, model, prompt, cached, number, with_usage)


def _stream_chat(
    answer: Reply, model: str, prompt: int, cached: int, number: int, with_usage: bool
) -> Iterator[tuple[bytes, bool]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        value = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        return _data(value)

    yield chunk({"role": "assistant", "content": ""}), False
    for piece in _pieces(answer.thinking or "", answer.piece):
        yield chunk({"reasoning_content": piece}), False
    for piece in _pieces(answer.text, answer.piece):
        yield chunk({"content": piece}), False
    for place, call in enumerate(answer.calls):
        yield (
            chunk(
                {
                    "tool_calls": [
                        {
                            "index": place,
                            "id": _id(call, number, place),
                            "type": "function",
                            "function": {"name": call.name, "arguments": ""},
                        }
                    ]
                }
            ),
            False,
        )
        for piece in _pieces(call.arguments, answer.piece):
            yield chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]}), False
    yield chunk({}, _finish("openai.chat", answer)), True
    if with_usage:
        yield (
            _data(
                {
                    "id": f"chatcmpl-{number}",
                    "object": "chat.completion.chunk",
                    "created": 0,
                    "model": model,
                    "choices": [],
                    "usage": _usage("openai.chat", answer, prompt, cached),
                }
            ),
            True,
        )
    yield b"data: [DONE]\n\n", True


def _stream_anthropic(answer: Reply, model: str, prompt: int, cached: int, number: int) -> Iterator[tuple[bytes, bool]]:
    usage = _usage("anthropic.messages", answer, prompt, cached)
    start: dict[str, Any] = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    yield _named({"type": "message_start", "message": start}), False
    blocks = _blocks(answer, number)
    for index, block in enumerate(blocks):
        kind = block["type"]
        empty: dict[str, Any] = {
            "text": {"type": "text", "text": ""},
            "thinking": {"type": "thinking", "thinking": "", "signature": ""},
            "tool_use": {**block, "input": {}},
        }[kind]
        yield _named({"type": "content_block_start", "index": index, "content_block": empty}), False
        if kind == "tool_use":
            arguments = answer.calls[index - len(blocks)].arguments  # the calls come last
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(arguments, answer.piece)]
        elif kind == "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"], answer.piece)
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        else:
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"], answer.piece)]
        for delta in deltas:
            yield _named({"type": "content_block_delta", "index": index, "delta": delta}), False
        yield _named({"type": "content_block_stop", "index": index}), False
    finish = _finish("anthropic.messages", answer)
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": finish, "stop_sequence": None},
        "usage": {"output_tokens": usage["output_tokens"]},
    }
    yield _named(end), True
    yield _named({"type": "message_stop"}), True


def _stream_responses(answer: Reply, model: str, prompt: int, cached: int, number: int) -> Iterator[tuple[bytes, bool]]:
    usage = _usage("openai.responses", answer, prompt, cached)
    complete = _response(model, answer, number, usage, _finish("openai.responses", answer))
    begun = {**complete, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield _named({"type": "response.created", "response": begun}), False
    for index, item in enumerate(complete["output"]):
        kind = item["type"]
        bare = (
            {**item, "content": []}
            if kind == "message"
            else {**item, "arguments": ""}
            if kind == "function_call"
            else {**item, "summary": []}
        )
        yield _named({"type": "response.output_item.added", "output_index": index, "item": bare}), False
        if kind == "message":
            for piece in _pieces(answer.text, answer.piece):
                yield (
                    _named(
                        {
                            "type": "response.output_text.delta",
                            "item_id": item["id"],
                            "output_index": index,
                            "content_index": 0,
                            "delta": piece,
                        }
                    ),
                    False,
                )
        elif kind == "function_call":
            for piece in _pieces(item["arguments"], answer.piece):
                yield (
                    _named(
                        {
                            "type": "response.function_call_arguments.delta",
                            "item_id": item["id"],
                            "output_index": index,
                            "delta": piece,
                        }
                    ),
                    False,
                )
        else:
            for piece in _pieces(answer.thinking or "", answer.piece):
                yield (
                    _named(
                        {
                            "type": "response.reasoning_summary_text.delta",
                            "item_id": item["id"],
                            "output_index": index,
                            "summary_index": 0,
                            "delta": piece,
                        }
                    ),
                    False,
                )
        yield _named({"type": "response.output_item.done", "output_index": index, "item": item}), False
    yield _named({"type": f"response.{complete['status']}", "response": complete}), True


def _response(model: object, answer: Reply, number: int, usage: dict[str, Any], finish: str) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if answer.thinking:
        output.append(
            {"type": "reasoning", "id": f"rs_{number}", "summary": [{"type": "summary_text", "text": answer.thinking}]}
        )
    if answer.text or not answer.calls:
        output.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": answer.text, "annotations": []}],
            }
        )
    for place, call in enumerate(answer.calls):
        output.append(
            {
                "type": "function_call",
                "id": f"fc_{number}_{place}",
                "call_id": _id(call, number, place),
                "name": call.name,
                "arguments": call.arguments,
                "status": "completed",
            }
        )
    complete = finish == "completed"
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "model": model,
        "status": "completed" if complete else "incomplete",
        "incomplete_details": None if complete else {"reason": finish},
        "error": None,
        "output": output,
        "usage": usage,
    }


def _blocks(answer: Reply, number: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answer.thinking:
        blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": f"sig{number}"})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    for place, call in enumerate(answer.calls):
        try:
            value = json.loads(call.arguments or "{}")
        except ValueError:
            value = {}
        blocks.append({"type": "tool_use", "id": _id(call, number, place), "name": call.name, "input": value})
    return blocks


def _finish(api: str, answer: Reply) -> str:
    if answer.finish is not None:
        return answer.finish
    if api == "anthropic.messages":
        return "tool_use" if answer.calls else "end_turn"
    if api == "openai.responses":
        return "completed"
    return "tool_calls" if answer.calls else "stop"


def _usage(api: str, answer: Reply, prompt: int, cached: int) -> dict[str, Any]:
    output = answer.output_tokens
    usage: dict[str, Any]
    if api == "anthropic.messages":
        usage = {
            "input_tokens": prompt - cached,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": output,
        }
    elif api == "openai.responses":
        usage = {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + output,
        }
    else:
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
    return {**usage, **answer.usage}


def _id(call: Call, number: int, place: int) -> str:
    return call.id if call.id is not None else f"call_{number}_{place}"


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), max(1, size))]


def _data(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _named(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\n".encode() + _data(value)
