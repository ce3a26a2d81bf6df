"""Puts an OpenAI chat completion together. Its many speakers differ most in tool calls and in how a stream ends."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from brim.providers.assemble import Assembler, Incomplete, Unreadable, UpstreamError, clean, merge_delta
from brim.providers.events import Done, Event, ThinkingDelta, ToolCallDelta

# Fields that name something: a repetition is the same name again, not more of it.
_FIXED = frozenset({"role", "id", "type", "name", "object", "model", "signature", "format", "status"})
_THINKING = ("reasoning_content", "reasoning", "thinking")


class ChatAssembler(Assembler):
    """`message` fields nobody knows are merged by their shape. The first choice is the answer."""

    api = "openai.chat"

    def __init__(self) -> None:
        super().__init__()
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[dict[str, Any]] = []
        self._by_index: dict[int, int] = {}
        self._thought = ""

    def take(self, kind: str, value: dict[str, Any]) -> list[Event]:
        self._note(value)
        events: list[Event] = []
        for choice in value.get("choices") or ():
            if not isinstance(choice, dict) or choice.get("index") not in (0, None):
                continue
            self._note_choice(choice)
            for delta in (choice.get("delta"), choice.get("message")):
                if isinstance(delta, dict):
                    events += self._delta(delta)
                    break
            if isinstance(text := choice.get("text"), str):  # legacy completions
                events += self._delta({"content": text})
        return events

    def whole(self, value: dict[str, Any]) -> list[Event]:
        choices = value.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise Unreadable(json.dumps(value, ensure_ascii=False))
        self.started = self.closed = True
        return self.take("", value)

    def end(self) -> Done:
        if not self.finish_reason and not self.closed:
            raise Incomplete("without a finish reason")
        if not self.finish_reason and not self.text and not self._calls and not self._thought:
            raise Incomplete("without an answer")
        if self._half:
            self._half, rest = "", clean(self._half)
            self.text += rest
        message = dict(self._message)
        if isinstance(message.get("content"), str):
            message["content"] = clean(message["content"])
        if self._calls:
            message["content"] = message["content"] or None
            message["tool_calls"] = [self._finished(call, place) for place, call in enumerate(self._calls)]
        return self.done(message)

    def _note(self, value: dict[str, Any]) -> None:
        if isinstance(identity := value.get("id"), str) and identity:
            self.response_id = identity
        if isinstance(model := value.get("model"), str) and model:
            self.model = model
        self.note_usage(value.get("usage"))
        if not self.raw_usage and isinstance(groq := value.get("x_groq"), dict):
            self.note_usage(groq.get("usage"))
        if not self.raw_usage and isinstance(value.get("timings"), dict):  # llama.cpp, where no usage was asked for
            self.note_usage({"timings": value["timings"]})
        elif "prompt_tokens" in self.raw_usage:
            self.raw_usage.pop("timings", None)

    def _note_choice(self, choice: dict[str, Any]) -> None:
        self.note_usage(choice.get("usage"))  # Moonshot
        if choice.get("error"):
            raise UpstreamError({"error": choice["error"]})
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            if reason == "error":
                raise UpstreamError({"error": {"message": "the provider ended the answer with an error"}})
            self.finish_reason = reason

    def _delta(self, delta: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        rest = {key: value for key, value in delta.items() if key not in ("content", "tool_calls", "function_call")}
        for key in _THINKING:
            if isinstance(text := rest.get(key), str) and text:
                self._thought += text
                events.append(ThinkingDelta(clean(text)))
                break
        merge_delta(self._message, rest, _FIXED)
        content = delta.get("content")
        if isinstance(content, str):
            if content or (self._message["content"] is None and delta.get("content") is not None):
                self._append_text(content)
            events += self.say(content)
        elif isinstance(content, list):  # Mistral's reasoning models
            events += self._parts(content)
        for piece in delta.get("tool_calls") or ():
            if isinstance(piece, dict):
                events.append(self._call_piece(piece))
        if isinstance(old_style := delta.get("function_call"), dict):
            events.append(self._call_piece({"index": 0, "function": old_style}))
        return events

    def _append_text(self, text: str) -> None:
        content = self._message["content"]
        if isinstance(content, list):
            self._parts_merge([{"type": "text", "text": text}])
        else:
            self._message["content"] = (content or "") + text

    def _parts(self, parts: list[Any]) -> list[Event]:
        events: list[Event] = []
        self._parts_merge([part for part in parts if isinstance(part, dict)])
        for part in parts:
            if isinstance(part, dict) and isinstance(text := part.get("text"), str):
                events += self.say(text)
            elif isinstance(part, dict) and part.get("type") == "thinking":
                inner = part.get("thinking")
                pieces = inner if isinstance(inner, list) else [{"text": inner}]
                thought = "".join(str(piece.get("text") or "") for piece in pieces if isinstance(piece, dict))
                self._thought += thought
                if thought:
                    events.append(ThinkingDelta(thought))
        return events

    def _parts_merge(self, parts: list[dict[str, Any]]) -> None:
        content = self._message["content"]
        have = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
        have = list(have)
        for part in parts:
            if have and have[-1].get("type") == part.get("type") == "text":
                have[-1] = {**have[-1], "text": str(have[-1].get("text", "")) + str(part.get("text", ""))}
            else:
                have.append(part)
        self._message["content"] = have

    def _call_piece(self, piece: dict[str, Any]) -> ToolCallDelta:
        function = piece.get("function")
        function = dict(function) if isinstance(function, dict) else {}
        arguments = function.get("arguments")
        if isinstance(arguments, (dict, list)):
            arguments = msgspec.json.encode(arguments).decode()
        arguments = arguments if isinstance(arguments, str) else ""
        name = function.get("name") if isinstance(function.get("name"), str) else ""
        identity = piece.get("id") if isinstance(piece.get("id"), str) else ""
        place = self._place(piece.get("index"), str(identity), str(name), arguments)
        call = self._calls[place]
        have = call["function"]
        if identity:
            call["id"] = identity
        if name and name != have["name"]:
            have["name"] += name
        have["arguments"] += arguments
        merge_delta(have, {key: value for key, value in function.items() if key not in ("name", "arguments")}, _FIXED)
        extra = {key: value for key, value in piece.items() if key not in ("index", "id", "function")}
        merge_delta(call, extra, _FIXED)
        return ToolCallDelta(place, call["id"], have["name"], arguments)

    def _place(self, index: object, identity: str, name: str, arguments: str) -> int:
        """Which call a piece belongs to. Some servers leave the index out, or give every parallel call the index 0."""
        numbered = isinstance(index, int) and not isinstance(index, bool)
        known = self._by_index.get(index) if isinstance(index, int) and numbered else None
        if known is None and not numbered:
            if identity:
                known = next((i for i, call in enumerate(self._calls) if call["id"] == identity), None)
            elif self._calls:
                known = len(self._calls) - 1
        if known is not None:
            call = self._calls[known]
            other = bool(identity and call["id"] and identity != call["id"])
            again = bool(
                name
                and arguments
                and not (identity and identity == call["id"])
                and _is_object(call["function"]["arguments"])
            )
            if not other and not again:
                return known
        self._calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        place = len(self._calls) - 1
        if isinstance(index, int) and numbered:
            self._by_index[index] = place
        return place

    def _finished(self, call: dict[str, Any], place: int) -> dict[str, Any]:
        """A call without an id gets one, for its result must name it: stable for this answer, and unlike any other's."""
        if call["id"]:
            return call
        stem = "".join(char for char in (self.response_id or "") if char.isalnum())[-12:] or "answer"
        return {**call, "id": f"call_{stem}_{place}"}


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except msgspec.DecodeError:
        return False
