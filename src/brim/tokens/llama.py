"""Exact counts for a model behind llama.cpp: its own tokenizer and its own chat template, asked over plain callables.

A chat template writes a conversation as one text. Where it writes each message in a frame of its own, and where the
frames' borders are special tokens, the tokens of the whole are the sum of the tokens of the frames: then messages can
be counted one by one and kept. Both are found out by trying: the frames are read off the template with probes, and
the sum is compared with the whole. `count_request` never relies on it: it counts the request as the server would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from brim.conversation import Message, Text, Thinking, ToolCall, ToolResult
from brim.conversation.clean import clean_text, clean_value

Written: TypeAlias = "tuple[str, str]"
"""A message as the template gets it: role and content."""

_PROBE = "\x02probe\x03"
_NASTY = (
    "hi",
    "",
    "  leading and trailing \n\n",
    "搜索 TODO 关键词",
    "}\n\n{",
    "system\nuser\n",
    "\t\u00e9 x",
    "1234 5678",
)


class LlamaCounter:
    """A `Counter` over one llama.cpp model.

    `tokenize_counts` gives the tokens of each text, special tokens parsed, none added; `apply_template` gives the text
    of a chat body ({"messages": …, "add_generation_prompt": …}); `count_request_tokens` gives the prompt tokens of a
    whole chat body. Where what is sent is not what brim holds (the prompted protocol), `as_sent` says what a message is
    in the body (role and content), `tools_as_sent` which messages stand there for tool definitions, and
    `request_as_sent` what a whole body becomes.

    `exact` says that the sum over messages, tools and priming is what the server will report. A conversation that does
    not begin with a system message costs `default_system` more where the template puts one there by itself.
    """

    def __init__(
        self,
        name: str,
        *,
        tokenize_counts: Callable[[Sequence[str]], list[int]],
        apply_template: Callable[[Mapping[str, Any]], str],
        count_request_tokens: Callable[[Mapping[str, Any]], int],
        as_sent: Callable[[Message], Written] | None = None,
        tools_as_sent: Callable[[Sequence[Mapping[str, Any]]], list[Written]] | None = None,
        request_as_sent: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        cache_chars: int = 16_000_000,
    ) -> None:
        self.name = name
        self._tokenize_counts = tokenize_counts
        self._apply_template = apply_template
        self._count_request_tokens = count_request_tokens
        self._as_sent = as_sent or plain_message
        self._tools_as_sent = tools_as_sent
        self._request_as_sent = request_as_sent
        self._cache_chars = cache_chars
        self._cached_chars = 0
        self._cache: dict[str, int] = {}
        self._frames: dict[str, tuple[str, str]] = {}
        self.priming = 0
        self.default_system = 0
        self.exact = self._learn_template()

    def __repr__(self) -> str:
        return f"<LlamaCounter {self.name}{'' if self.exact else ', messages do not add up'}>"

    def count_text(self, text: str) -> int:
        """Tokens of one text, special tokens in it taken for what they are, as the server does."""
        return self.count_texts([text])[0]

    def count_texts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, in order; all that are new go to the tokenizer in one batch."""
        new = list(dict.fromkeys(text for text in texts if text not in self._cache))
        fresh: dict[str, int] = {}
        if new:
            fresh = dict(zip(new, self._tokenize_counts([clean_text(text) for text in new]), strict=True))
            size = sum(map(len, new)) + 64 * len(new)
            if self._cached_chars + size > self._cache_chars:
                fresh |= {text: self._cache[text] for text in texts if text in self._cache}
                self._cache, self._cached_chars = {}, 0
            if size <= self._cache_chars:
                self._cache.update(fresh)
                self._cached_chars += size
        return [fresh[text] if text in fresh else self._cache[text] for text in texts]

    def count_messages(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of each message in its frame, in order; without `priming`, tools and `default_system`."""
        return self.count_written([self._as_sent(message) for message in messages])

    def count_tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """Tokens of all that stands in a request for these tools; 0 for none."""
        if not tools:
            return 0
        if self._tools_as_sent is not None:
            return sum(self.count_written(self._tools_as_sent(tools)))
        plain = {"messages": [{"role": "user", "content": "x"}]}  # a template's own words for tools: what they add
        return max(0, self.count_request({**plain, "tools": list(tools)}) - self.count_request(plain))

    def count_written(self, written: Sequence[Written]) -> list[int]:
        """Tokens of messages given as role and content, each in its frame."""
        return self.count_texts([self._framed(role, content) for role, content in written])

    def count_request(self, body: Mapping[str, Any]) -> int:
        """Prompt tokens of a whole chat body, as the server will report them."""
        sent = self._request_as_sent(body) if self._request_as_sent else body
        return self._count_request_tokens(clean_value(sent)[0])

    def _framed(self, role: str, content: str) -> str:
        before, after = self._frames.get(role) or self._frames["user"]
        return f"{before}{content}{after}"

    def _learn_template(self) -> bool:
        """Read the frames off the template; whether the parts add up to the whole."""
        probe: list[Written] = [("system", _PROBE), ("user", _PROBE), ("assistant", _PROBE), ("user", _PROBE)]
        try:
            whole = self._written(probe, generate=False)
            primed = self._written(probe, generate=True)
            alone = self._written([("user", _PROBE)], generate=False)
            pieces = self._pieces(probe)
        except (ValueError, LookupError):
            pieces = []
        if not pieces or not primed.startswith(whole):
            self._frames = {role: (f"{role}\n", "\n") for role in ("system", "user", "assistant", "tool")}
            self.priming = 3
            return False
        for (role, _), piece in zip(probe, pieces, strict=True):
            before, _, after = piece.partition(_PROBE)
            self._frames.setdefault(role, (before, after))
        try:
            tool = self._written([*probe, ("tool", _PROBE)], generate=False)
            before, _, after = tool.removeprefix(whole).partition(_PROBE)
            self._frames["tool"] = (before, after)
        except ValueError:
            pass  # a template without a role for results: they are counted as a user's
        self.priming = self.count_text(primed.removeprefix(whole))
        if alone.endswith(pieces[1]):
            self.default_system = self.count_text(alone.removesuffix(pieces[1]))
        return self._adds_up()

    def _pieces(self, probe: Sequence[Written]) -> list[str]:
        """What each message adds to the text of those before it. Raises ValueError where it does more than add.

        The assistant's is read off from behind: as the last message it would be a reply to go on with, left open.
        """
        texts = [self._written(probe[:end], generate=False) for end in (1, 2, 4)]
        for text, before, count in zip(texts, ("", *texts), (1, 2, 4), strict=False):
            if not text.startswith(before) or text.count(_PROBE) != count:
                raise ValueError("the template rewrites earlier messages")
        system, user, both = texts[0], texts[1][len(texts[0]) :], texts[2][len(texts[1]) :]
        if not both.endswith(user):
            raise ValueError("the template frames a message by its place")
        return [system, user, both.removesuffix(user), user]

    def _adds_up(self) -> bool:
        """Whether messages and priming are what the server counts; a token it puts in front of all joins the priming."""
        short: list[Written] = [("system", "x"), ("user", "y")]
        roles = ("user", "assistant")
        long = [("system", _NASTY[2]), *((roles[i % 2], text) for i, text in enumerate(_NASTY)), ("user", "x")]
        missing = []
        for written in (short, long):
            body = {"messages": [{"role": role, "content": content} for role, content in written]}
            missing.append(self._count_request_tokens(body) - sum(self.count_written(written)) - self.priming)
        if missing in ([0, 0], [1, 1]):
            self.priming += missing[0]
            return True
        return False

    def _written(self, written: Sequence[Written], *, generate: bool) -> str:
        messages = [{"role": role, "content": content} for role, content in written]
        return self._apply_template({"messages": messages, "add_generation_prompt": generate})


def plain_message(message: Message) -> Written:
    """Role and content of a message as brim's own: texts joined with newlines, calls as their JSON."""
    return message.role, "\n".join(_part_text(part) for part in message.parts)


def _part_text(part: object) -> str:
    if isinstance(part, (Text, Thinking)):
        return part.text
    if isinstance(part, ToolResult):
        return "\n".join(_part_text(inner) for inner in part.content)
    if isinstance(part, ToolCall):
        return f'{{"name": "{part.name}", "arguments": {part.arguments}}}'
    return ""
