"""Random request bodies for the laws: what real agent traffic looks like, and what breaks context managers."""

from __future__ import annotations

import base64
import random
from typing import Any

from hypothesis import strategies as st

Body = dict[str, Any]

WORDS = [
    "alpha",
    "beta",
    "grep",
    "src/app/main.py",
    "def handler(x):",
    "中文内容",
    "你好",
    "🦊",
    "👩‍👩‍👧",
    "é",
    "42",
    "1099",
    "a\tb",
    "TODO",
]
PNG = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x00\x00\x00\x01\x00\x08\x02\x00\x00\x00"
).decode()


class _Traffic:
    """Draws one conversation from a seed: Hypothesis chooses the seed and the shape, a plain generator the many texts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one_in(self, n: int) -> bool:
        return self.random.randrange(n) == 0

    def text(self, most: int) -> str:
        """Words, lines, CJK and emoji; now and then a very long text, now and then an error report."""
        words = self.random.choices(WORDS, k=self.random.randint(1, 8))
        times = self.random.choice([1, 1, 2, 5, 20, most])
        text = self.random.choice([" ", "\n", ", "]).join(words * times)
        if self.one_in(10):
            text += "\nTraceback (most recent call last):\nValueError: bad thing\nexit code 1"
        return text

    def step(self, number: int) -> Body:
        """An assistant message with calls and their results; ids come again in later steps."""
        calls: list[Body] = []
        for place in range(self.random.choice([1, 1, 1, 2, 3, 6])):
            id = f"c{place}" if self.one_in(8) else f"c{number}_{place}"
            argument = self.random.choice(["a.py", "b.py", "x" * 6_000])
            name = self.random.choice(["read", "bash", "grep", "write"])
            calls.append({"id": id, "name": name, "arguments": {"path": argument}, "result": self.text(300)})
        return {
            "kind": "step",
            "text": self.random.choice(["", "Looking.", "我来看看。"]),
            "thinking": self.one_in(2),
            "calls": calls,
            "error": self.one_in(6),
            "image": self.one_in(10),
            "empty": self.one_in(10),
        }


class Conversation:
    """Abstract turns from a seed and a shape (steps of each turn): users, pins, steps, replies, system messages between."""

    def __init__(self, seed: int, shape: list[int]) -> None:
        self.seed, self.shape = seed, shape

    def __repr__(self) -> str:
        return f"Conversation({self.seed}, {self.shape})"

    def entries(self) -> list[Body]:
        traffic = _Traffic(self.seed)
        out: list[Body] = []
        number = 0
        for turn, many in enumerate(self.shape):
            text = traffic.text(60)
            if traffic.one_in(10):
                text = f"[PIN] never touch file {turn}\n\n{text}"
            out.append({"kind": "user", "text": text, "image": traffic.one_in(12)})
            for _ in range(many):
                number += 1
                out.append(traffic.step(number))
            if traffic.one_in(12):
                out.append({"kind": "system", "text": f"mid-conversation rule {turn}"})
            if traffic.one_in(2):
                out.append({"kind": "assistant", "text": traffic.text(60)})
        if out[-1]["kind"] == "assistant":
            out.append({"kind": "user", "text": traffic.text(10), "image": False})
        return out


def conversations() -> st.SearchStrategy[Conversation]:
    """Conversations of one to seven turns of up to hundreds of steps."""
    usual = st.sampled_from([0, 0, 0, 0, 1, 1, 1, 2, 2, 4, 12])
    shapes = st.lists(usual, min_size=1, max_size=7)
    # one in twenty has a turn of very many steps: each costs as much as all of the others
    long = st.integers(0, 19).flatmap(lambda pick: st.just([120, 1]) if pick == 0 else shapes)
    shapes = st.one_of(shapes, long)
    return st.builds(Conversation, st.integers(0, 2**32), shapes)


def chat_body(conversation: Conversation, system: str | None = "You are careful.") -> Body:
    """The conversation as an OpenAI chat body."""
    messages: list[Body] = [{"role": "system", "content": system}] if system else []
    for entry in conversation.entries():
        if entry["kind"] == "step":
            calls = [
                {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": _json(c["arguments"])}}
                for c in entry["calls"]
            ]
            messages.append(
                {"role": "assistant", "content": entry["text"] or None, "tool_calls": calls, "x_unknown": 1}
            )
            for call in entry["calls"]:
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": _result(entry, call)})
        elif entry["kind"] == "user" and entry["image"]:
            parts = [
                {"type": "text", "text": entry["text"]},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            ]
            messages.append({"role": "user", "content": parts})
        else:
            messages.append({"role": entry["kind"], "content": entry["text"]})
    return {"model": "gpt-4o", "messages": messages, "temperature": 0.5, "x_field": {"kept": True}}


def responses_body(conversation: Conversation, system: str | None = "You are careful.") -> Body:
    """The conversation as an OpenAI Responses body."""
    items: list[Body] = []
    for at, entry in enumerate(conversation.entries()):
        if entry["kind"] == "step":
            if entry["thinking"]:
                items.append({"type": "reasoning", "id": f"rs_{at}", "summary": [], "encrypted_content": "abc" * 10})
            elif entry["text"]:
                items.append(
                    {
                        "type": "message",
                        "id": f"msg_{at}",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": entry["text"], "annotations": []}],
                    }
                )
            for call in entry["calls"]:
                items.append(
                    {
                        "type": "function_call",
                        "id": f"fc_{at}_{call['id']}",
                        "call_id": call["id"],
                        "name": call["name"],
                        "arguments": _json(call["arguments"]),
                    }
                )
            for call in entry["calls"]:
                items.append({"type": "function_call_output", "call_id": call["id"], "output": _result(entry, call)})
        elif entry["kind"] == "assistant":
            items.append(
                {
                    "type": "message",
                    "id": f"msg_{at}",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": entry["text"], "annotations": []}],
                }
            )
        elif entry["kind"] == "user" and entry["image"]:
            items.append(
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": entry["text"]},
                        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
                    ],
                }
            )
        else:
            items.append(
                {
                    "type": "message",
                    "role": "developer" if entry["kind"] == "system" else "user",
                    "content": entry["text"],
                }
            )
    return {"model": "gpt-5", "input": items, "store": False, **({"instructions": system} if system else {})}


def anthropic_body(conversation: Conversation, system: str | None = "You are careful.") -> Body:
    """The conversation as an Anthropic Messages body; a user text right behind results shares their message."""
    messages: list[Body] = []
    for at, entry in enumerate(conversation.entries()):
        if entry["kind"] == "step":
            blocks: list[Body] = []
            if entry["thinking"]:
                blocks.append({"type": "thinking", "thinking": f"I should look at {at}", "signature": f"sig{at}"})
            if entry["text"]:
                blocks.append({"type": "text", "text": entry["text"]})
            blocks += [
                {"type": "tool_use", "id": c["id"], "name": c["name"], "input": c["arguments"]} for c in entry["calls"]
            ]
            results = []
            for call in entry["calls"]:
                result: Body = {"type": "tool_result", "tool_use_id": call["id"], "content": _result(entry, call)}
                if entry["error"]:
                    result["is_error"] = True
                if entry["image"]:
                    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
                    result["content"] = [{"type": "text", "text": result["content"] or "shot"}, image]
                results.append(result)
            messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
        elif entry["kind"] == "user":
            content: Any = entry["text"]
            if entry["image"]:
                image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
                content = [{"type": "text", "text": entry["text"]}, image, {"type": "future_block", "x": 1}]
            if messages and messages[-1]["role"] == "user" and isinstance(messages[-1]["content"], list):
                more = content if isinstance(content, list) else [{"type": "text", "text": content}]
                messages[-1] = {"role": "user", "content": [*messages[-1]["content"], *more]}
            else:
                messages.append({"role": "user", "content": content})
        elif entry["kind"] == "assistant":
            messages.append({"role": "assistant", "content": entry["text"]})
        # a mid-conversation system message exists for few models only; it is left out here
    if isinstance(messages[-1]["content"], list):  # where clients put the moving cache marker
        messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    body: Body = {"model": "claude-sonnet-4-5", "max_tokens": 200, "messages": messages}
    return (
        {**body, "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]}
        if system
        else body
    )


BODIES = {"openai.chat": chat_body, "openai.responses": responses_body, "anthropic.messages": anthropic_body}
DIALECTS = {"openai.chat": "openai", "openai.responses": "openai-responses", "anthropic.messages": "anthropic"}


def place_of(api: str) -> str:
    """The field that holds the conversation."""
    return "input" if api == "openai.responses" else "messages"


def _result(entry: Body, call: Body) -> str:
    return "" if entry["empty"] else str(call["result"])


def _json(value: Any) -> str:
    import json

    return json.dumps(value)
