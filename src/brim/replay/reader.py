"""A scripted model for the two-round experiment: it answers from what stands in its request, and from nothing else.

It looks for what a question needs in the messages it was sent. What is not there it reads with a tool, as a model
would; what is there it does not read again. So how much it is sent, how often it asks, and whether its answer is right
are the doing of the context mode, and come out the same at every run.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from brim.budget import Usage
from brim.formats import parse_request
from brim.providers import Done, Event, TextDelta
from brim.tokens import Counter as TokenCounter
from brim.tokens import counter_for

_SCRIPT = re.compile(r'^\s*(?:\d+[:\t|→ ]+)?\w+ = "([\w.]+:main)"', re.MULTILINE)
_IMPORTS = re.compile(r"from tinyshop\.(\w+) import ([^\n]+)")
_CALLS = re.compile(r"(?:=|\breturn|^)\s*\(?(\w+)\(", re.MULTILINE)


PATIENCE = 2
"""How often it reads the same thing for one question; then it answers with what it has, as models do."""


class Reader:
    """A `brim.providers.Provider`. `window`: tokens a request may have; usage is counted with `counter`, what stands
    unchanged since the request before as cached."""

    name = "scripted"
    api = "openai.chat"

    def __init__(self, window: int = 128_000, counter: TokenCounter | None = None) -> None:
        self.window = window
        self.model_counter = counter or counter_for("gpt-4o")
        self._before: list[Any] = []
        self._calls = 0
        self._asked: Counter[tuple[str, str]] = Counter()

    async def stream(self, body: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        """One answer: calls for what is missing, or text."""
        done = self._answer(body)
        text = done.message["content"] if isinstance(done.message, dict) else ""
        if text:
            yield TextDelta(str(text))
        yield done

    async def complete(self, body: Mapping[str, Any]) -> Done:
        """The same in one piece."""
        return self._answer(body)

    async def close(self) -> None:
        """Nothing to let go of."""

    def _answer(self, body: Mapping[str, Any]) -> Done:
        messages: list[Mapping[str, Any]] = body["messages"]
        question = next((str(m["content"]) for m in reversed(messages) if m["role"] == "user"), "")
        shown = "\n".join(str(message.get("content") or "") for message in messages if message["role"] != "user")
        wanted, answer = self._think(question, shown)
        tried = {call["function"]["arguments"] for m in _since(messages) for call in m.get("tool_calls") or ()}
        calls = [
            (name, text)
            for name, arguments in wanted
            if (text := json.dumps(arguments)) not in tried and self._asked[question, text] < PATIENCE
        ]
        self._asked.update((question, text) for _, text in calls)
        message: dict[str, Any] = {"role": "assistant", "content": answer if not calls else None}
        if calls:
            message["tool_calls"] = [self._call(name, text) for name, text in calls]
        usage = self._usage(body, len(answer) if not calls else 20 * len(calls))
        return Done(message=message, api=self.api, finish_reason="tool_calls" if calls else "stop", usage=usage)

    def _think(self, question: str, shown: str) -> tuple[list[tuple[str, dict[str, Any]]], str]:
        """(calls that would show what is missing, the answer as far as it can be given)."""
        if "entry point" in question:
            return _entry_point(shown)
        return _what_main_does(shown)

    def _call(self, name: str, arguments: str) -> dict[str, Any]:
        self._calls += 1
        return {"id": f"call_{self._calls}", "type": "function", "function": {"name": name, "arguments": arguments}}

    def _usage(self, body: Mapping[str, Any], characters: int) -> Usage:
        request = parse_request(body, self.api)
        sizes = self.model_counter.count_messages(request.messages)
        same = 0
        for old, new in zip(self._before, body["messages"], strict=False):
            if old != new:
                break
            same += 1
        self._before = [dict(message) for message in body["messages"]]
        tools = self.model_counter.count_tools(request.tools)
        cached = sum(sizes[:same]) + (tools if same else 0)
        return Usage(
            input=sum(sizes) + tools + self.model_counter.priming, cached_read=cached, output=max(1, characters // 4)
        )


def _since(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What came after the last question: what was tried for it."""
    last = max((n for n, message in enumerate(messages) if message["role"] == "user"), default=0)
    return list(messages[last:])


def _entry_point(shown: str) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    if "pyproject.toml" not in shown:
        return [("glob", {"pattern": "**/*"})], ""
    script = _SCRIPT.search(shown)
    if script is None:
        files = ("pyproject.toml", "README.md")
        return [("read", {"path": name}) for name in files], "I could not find an entry point."
    module = script[1].partition(":")[0]
    path = f"src/{module.replace('.', '/')}.py"
    tool = "uv, which keeps uv.lock" if "[tool.uv]" in shown or "uv sync" in shown else "a tool I could not find"
    answer = (
        f"The entry point is {script[1]} in {path}. Dependencies stand in pyproject.toml and are managed by {tool}."
    )
    # a careful answer has seen the file it names
    return ([] if "def main(" in shown else [("read", {"path": path})]), answer


def _what_main_does(shown: str) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    at = shown.find("def main(")
    if at < 0:
        return [("read", {"path": "src/tinyshop/main.py"})], "I could not find main."
    body = shown[at : at + 1_600].partition("if __name__")[0]
    names = list(dict.fromkeys(_CALLS.findall(re.sub(r"^\s*\d+[:\t|→ ]+", "    ", body, flags=re.MULTILINE))))
    homes = {
        name.strip(): module
        for module, listed in _IMPORTS.findall(shown)
        for name in listed.split(",")
        if name.strip() in names
    }
    missing = [module for name, module in homes.items() if f"def {name}(" not in shown]
    calls = [("read", {"path": f"src/tinyshop/{module}.py"}) for module in dict.fromkeys(missing)]
    steps = [_step(name, shown) for name in names if name in homes]
    codes = " It returns an exit code." if "EXIT_" in body else ""
    return (
        calls,
        f"main parses its options and then: {'; '.join(steps)}.{codes}" if steps else "main does nothing I can see.",
    )


def _step(name: str, shown: str) -> str:
    """What a function is for, from its docstring where that is in view."""
    found = re.search(rf'def {name}\([^"]*"""([^"\n]+)', shown)
    return f"{name} {found[1].rstrip('.')}" if found else name
