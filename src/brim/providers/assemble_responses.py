"""Puts an OpenAI Responses answer together: the output of `response.completed` where it has one, else the items as
they were streamed."""

from __future__ import annotations

import json
from typing import Any

from brim.providers.assemble import Assembler, Incomplete, Unreadable, UpstreamError
from brim.providers.events import Done, Event, ThinkingDelta, ToolCallDelta

_CALLS = ("function_call", "custom_tool_call")


class ResponsesAssembler(Assembler):
    """`message` is the list of output items, reasoning included, to append to the next request's `input`."""

    api = "openai.responses"

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[int, dict[str, Any]] = {}
        self._output: list[dict[str, Any]] = []
        self._calls: dict[int, int] = {}
        self._said: set[int] = set()  # items of which text deltas came
        self._ended = False

    def take(self, kind: str, value: dict[str, Any]) -> list[Event]:
        index = value.get("output_index")
        index = index if isinstance(index, int) else max(self._items, default=0)
        if kind in ("response.output_item.added", "response.output_item.done") and isinstance(
            item := value.get("item"), dict
        ):
            return self._item(index, item, kind.endswith("done"))
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            text = str(value.get("delta") or "")
            self._said.add(index)
            self._grow(index, "message", text, "refusal" if "refusal" in kind else "output_text")
            return self.say(text)
        if kind in ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta"):
            piece = str(value.get("delta") or "")
            item = self._items.setdefault(index, {"type": "function_call"})
            key = "input" if "custom" in kind else "arguments"
            item[key] = str(item.get(key) or "") + piece
            return [self._call(index, item, piece)]
        if kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            text = str(value.get("delta") or "")
            return [ThinkingDelta(text)] if text else []
        if kind in ("response.created", "response.in_progress", "response.queued"):
            self._note(value.get("response"))
        elif kind in ("response.completed", "response.incomplete", "response.done", "response.cancelled"):
            return self._finish(value.get("response"))
        elif kind == "response.failed":
            response = value.get("response")
            error = response.get("error") if isinstance(response, dict) else None
            raise UpstreamError({"error": error or {"message": "the provider reported that the response failed"}})
        elif value.get("object") == "response":
            return self.whole(value)
        return []

    def whole(self, value: dict[str, Any]) -> list[Event]:
        if not isinstance(value.get("output"), list):
            raise Unreadable(json.dumps(value, ensure_ascii=False))
        self.started = self.closed = True
        if value.get("status") == "failed":
            raise UpstreamError(
                {"error": value.get("error") or {"message": "the provider reported that the response failed"}}
            )
        return self._finish(value)

    def end(self) -> Done:
        if not self._ended:
            raise Incomplete("before response.completed")
        items = self._output or [self._items[index] for index in sorted(self._items)]
        return self.done(items)

    def _note(self, response: object) -> None:
        if not isinstance(response, dict):
            return
        self.response_id = response.get("id") if isinstance(response.get("id"), str) else self.response_id
        self.model = response.get("model") if isinstance(response.get("model"), str) else self.model
        self.note_usage(response.get("usage"))

    def _finish(self, response: object) -> list[Event]:
        self._ended = self.closed = True
        self._note(response)
        events: list[Event] = []
        response = response if isinstance(response, dict) else {}
        output = response.get("output")
        if isinstance(output, list) and output:
            self._output = [item for item in output if isinstance(item, dict)]
            for index, item in enumerate(self._output):
                events += self._item(index, item, True)
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        items = self._output or list(self._items.values())
        if isinstance(reason, str) and reason:
            self.finish_reason = reason
        elif any(item.get("type") in _CALLS for item in items):
            self.finish_reason = "tool_calls"
        else:
            self.finish_reason = str(response.get("status") or "completed")
        return events

    def _item(self, index: int, item: dict[str, Any], complete: bool) -> list[Event]:
        events: list[Event] = []
        new = index not in self._items
        before = self._items.get(index, {})
        self._items[index] = {**before, **item}
        kind = item.get("type")
        if kind in _CALLS:
            have = str(before.get("arguments") or before.get("input") or "")
            full = str(item.get("arguments") or item.get("input") or "")
            if not complete:  # the deltas follow
                self._items[index].pop("arguments", None)
                full = ""
            piece = full[len(have) :] if full.startswith(have) else ""
            if new or piece:
                events.append(self._call(index, item, piece))
        elif kind == "message" and complete and index not in self._said:
            for part in item.get("content") or ():
                if isinstance(part, dict):
                    events += self.say(str(part.get("text") or part.get("refusal") or ""))
            self._said.add(index)
        elif kind == "reasoning" and complete and new:
            texts = [*(item.get("summary") or ()), *(item.get("content") or ())]
            thought = "\n".join(str(part.get("text") or "") for part in texts if isinstance(part, dict))
            if thought:
                events.append(ThinkingDelta(thought))
        return events

    def _call(self, index: int, item: dict[str, Any], piece: str) -> ToolCallDelta:
        number = self._calls.setdefault(index, len(self._calls))
        item = self._items.get(index, item)
        return ToolCallDelta(
            number, str(item.get("call_id") or item.get("id") or ""), str(item.get("name") or ""), piece
        )

    def _grow(self, index: int, kind: str, text: str, part: str) -> None:
        item = self._items.setdefault(index, {"type": kind, "role": "assistant", "content": []})
        content = list(item.get("content") or [])
        key = "refusal" if part == "refusal" else "text"
        if content and content[-1].get("type") == part:
            content[-1] = {**content[-1], key: str(content[-1].get(key) or "") + text}
        else:
            content.append(
                {"type": part, key: text, "annotations": []} if part == "output_text" else {"type": part, key: text}
            )
        item["content"] = content
