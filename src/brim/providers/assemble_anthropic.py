"""Puts an Anthropic message together: content blocks by index, each grown by its deltas; blocks and deltas nobody
knows are kept by their shape."""

from __future__ import annotations

import json
from typing import Any

from brim.providers.assemble import Assembler, Incomplete, Unreadable, clean, decode, merge_delta
from brim.providers.events import Done, Event, ThinkingDelta, ToolCallDelta

_FIXED = frozenset({"type", "id", "name", "signature", "tool_use_id"})
_BLOCK_OF = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}


class AnthropicAssembler(Assembler):
    """`message` is `{"role": "assistant", "content": [...]}`: the part of the answer that is sent back."""

    api = "anthropic.messages"

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}  # the JSON text of tool inputs, as it comes
        self._calls: dict[int, int] = {}  # block index -> number of the call

    def take(self, kind: str, value: dict[str, Any]) -> list[Event]:
        if kind == "message_start" and isinstance(message := value.get("message"), dict):
            self._note(message)
            return []
        if kind == "content_block_start":
            return self._start(_index(value), value.get("content_block"))
        if kind == "content_block_delta":
            delta = value.get("delta")
            return self._delta(_index(value), delta) if isinstance(delta, dict) else []
        if kind == "message_delta":
            self.note_usage(value.get("usage"))
            delta = value.get("delta")
            if isinstance(delta, dict) and isinstance(reason := delta.get("stop_reason"), str):
                self.finish_reason = reason
        elif kind == "message_stop":
            self.closed = True
        elif kind == "message":
            return self.whole(value)
        return []

    def whole(self, value: dict[str, Any]) -> list[Event]:
        content = value.get("content")
        if not isinstance(content, list):
            raise Unreadable(json.dumps(value, ensure_ascii=False))
        self.started = self.closed = True
        self._note(value)
        events: list[Event] = []
        for index, block in enumerate(content):
            if not isinstance(block, dict):
                continue
            self._blocks[index] = block
            if block.get("type") == "text":
                events += self.say(str(block.get("text") or ""))
            elif block.get("type") == "thinking" and block.get("thinking"):
                events.append(ThinkingDelta(str(block["thinking"])))
            elif block.get("type") == "tool_use":
                arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
                events.append(
                    ToolCallDelta(
                        self._number(index), str(block.get("id") or ""), str(block.get("name") or ""), arguments
                    )
                )
        return events

    def end(self) -> Done:
        if not self.closed and not self.finish_reason:
            raise Incomplete("before message_stop")
        for index, text in self._inputs.items():
            block = self._blocks[index]
            if text.strip():
                try:
                    block["input"] = decode(text)
                except ValueError:
                    # Cut or malformed: the text itself is kept, so that nobody runs the tool with empty arguments.
                    block["input"] = text
        content = [self._blocks[index] for index in sorted(self._blocks)]
        for block in content:
            if isinstance(block.get("text"), str):
                block["text"] = clean(block["text"])
        # An empty text block would be refused when the message is sent back.
        content = [block for block in content if block.get("type") != "text" or block.get("text")]
        return self.done({"role": "assistant", "content": content})

    def _note(self, message: dict[str, Any]) -> None:
        self.response_id = message.get("id") if isinstance(message.get("id"), str) else self.response_id
        self.model = message.get("model") if isinstance(message.get("model"), str) else self.model
        self.note_usage(message.get("usage"))
        if isinstance(reason := message.get("stop_reason"), str):
            self.finish_reason = reason

    def _number(self, index: int) -> int:
        return self._calls.setdefault(index, len(self._calls))

    def _start(self, index: int, block: object) -> list[Event]:
        if not isinstance(block, dict):
            return []
        self._blocks[index] = dict(block)
        if block.get("type") == "text":
            return self.say(str(block.get("text") or ""))
        if block.get("type") == "thinking" and block.get("thinking"):
            return [ThinkingDelta(str(block["thinking"]))]
        if "input" in block or block.get("type") == "tool_use":
            self._inputs[index] = ""
        if block.get("type") == "tool_use":
            return [ToolCallDelta(self._number(index), str(block.get("id") or ""), str(block.get("name") or ""), "")]
        return []

    def _delta(self, index: int, delta: dict[str, Any]) -> list[Event]:
        kind = str(delta.get("type") or "")
        if index not in self._blocks:  # a delta without its start: the block is made from the delta
            self._start(index, {"type": _BLOCK_OF.get(kind, kind.removesuffix("_delta") or "text")})
        block = self._blocks[index]
        if kind == "text_delta":
            text = str(delta.get("text") or "")
            block["text"] = str(block.get("text") or "") + text
            return self.say(text)
        if kind == "input_json_delta":
            piece = str(delta.get("partial_json") or "")
            self._inputs[index] = self._inputs.get(index, "") + piece
            if block.get("type") == "tool_use" and piece:
                return [
                    ToolCallDelta(self._number(index), str(block.get("id") or ""), str(block.get("name") or ""), piece)
                ]
            return []
        if kind == "thinking_delta":
            text = str(delta.get("thinking") or "")
            block["thinking"] = str(block.get("thinking") or "") + text
            return [ThinkingDelta(clean(text))] if text else []
        if kind == "signature_delta":
            block["signature"] = str(block.get("signature") or "") + str(delta.get("signature") or "")
        elif kind == "citations_delta" and "citation" in delta:
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        else:
            merge_delta(block, {key: value for key, value in delta.items() if key != "type"}, _FIXED)
        return []


def _index(value: dict[str, Any]) -> int:
    index = value.get("index")
    return index if isinstance(index, int) else 0
