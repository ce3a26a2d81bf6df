"""Counts the tokens of texts, messages and tool definitions, with the model's own encoding where one is here.

A message costs 3 tokens (its frame), its role, its parts and, where it has one, its name and 1 (OpenAI's published
formula for chat models); a request costs 3 more, with which the reply is primed. A tool call costs its name, its
arguments and `CALL_OVERHEAD`; its id costs nothing, as no provider shows ids to the model. Thinking counts by its text,
media by formula, an unknown block by its JSON text.

Counts are kept by text: what is new in a call is counted in one batch, which lets the tokenizer use every core and
spares its cost per call. So a history counted before costs a lookup for each part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias

from brim.conversation import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from brim.conversation.clean import clean_text
from brim.tokens.encodings import FALLBACK, batch_count, encoding_of
from brim.tokens.estimate import estimate_batch
from brim.tokens.media import MediaRates, count_media, media_rates, media_text
from brim.tokens.opaque import json_text, opaque_parts, sealed_tokens

Estimate: TypeAlias = Literal["classes", "chars"]

MESSAGE_OVERHEAD = 3
PRIMING = 3
NAME_OVERHEAD = 1
CALL_OVERHEAD = 8
"""Tokens around one call. OpenAI does not publish how a call is written for the model; billed requests that differ by
one call and its result show 8 or 9 beside name, arguments and result."""
TOOL_OVERHEAD = 7
TOOLS_OVERHEAD = 12
"""For each tool and once for all: the frame of OpenAI's function definitions (its cookbook's func_init and func_end).
The rest of that formula prices a schema a little below its JSON text, which is counted here."""
SHARED = "(around all tools)"
CLAUDE_TOOLS_OVERHEAD = 346
"""The system prompt Anthropic adds where a request has tools (its tool use page, Claude 4)."""


class Counter(Protocol):
    """Counts tokens; never raises on any text. `exact` says that the encoding is the model's own."""

    @property
    def name(self) -> str: ...
    @property
    def exact(self) -> bool: ...
    @property
    def priming(self) -> int: ...
    def count_text(self, text: str) -> int: ...
    def count_texts(self, texts: Sequence[str]) -> list[int]: ...
    def count_messages(self, messages: Sequence[Message]) -> list[int]: ...
    def count_tools(self, tools: Sequence[Mapping[str, Any]]) -> int: ...


class TokenCounter:
    """A `Counter` over any function that counts a batch of texts, with a cache of bounded size.

    The cache holds at most `cache_chars` characters of text, in two generations: when the young one is full it becomes
    the old one, and what is asked for again is taken over. Safe to use from several threads.
    """

    priming = PRIMING

    def __init__(
        self,
        name: str,
        exact: bool,
        count_batch: Callable[[list[str]], list[int]],
        rates: MediaRates,
        *,
        tools_overhead: int = TOOLS_OVERHEAD,
        cache_chars: int = 64_000_000,
    ) -> None:
        self.name = name
        self.exact = exact
        self._count_batch = count_batch
        self._rates = rates
        self._tools_overhead = tools_overhead
        self._generation_chars = cache_chars // 2
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._young_chars = 0
        self._frames: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<TokenCounter {self.name}{'' if self.exact else ', not exact'}>"

    def count_text(self, text: str) -> int:
        """Tokens of one text, as ordinary text: markers such as <|endoftext|> have no special meaning."""
        count = self._young.get(text)
        return count if count is not None else self._count([text])[text]

    def count_texts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, in order; all that are new are counted in one batch."""
        counted = self._count(texts)
        return [counted[text] for text in texts]

    def count_messages(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of each message, in order, without the priming of the request."""
        known, frames = self._young, self._frames or self._count_frames()
        counts: list[int] = []
        add = counts.append
        new: list[int] = []
        for message in messages:
            count = frames[message.role]
            try:
                for part in message.parts:
                    kind = type(part)
                    if kind is Text:
                        count += known[part.text]  # type: ignore[union-attr]
                    elif kind is ToolResult:
                        (only,) = part.content  # type: ignore[union-attr]
                        count += known[only.text]  # type: ignore[union-attr]
                    elif kind is ToolCall:
                        count += known[part.name] + known[part.arguments] + CALL_OVERHEAD  # type: ignore[union-attr]
                    else:
                        raise LookupError
                if message.name is not None:
                    count += known[message.name] + NAME_OVERHEAD
            except (LookupError, ValueError, AttributeError):  # a new text, several parts in a result, media …
                new.append(len(counts))
            add(count)
        if new:
            pieces = [self._pieces(messages[index]) for index in new]
            counted = self._count(text for _, texts in pieces for text in texts)
            for index, (fixed, texts) in zip(new, pieces, strict=True):
                counts[index] = fixed + sum(counted[text] for text in texts)
        return counts

    def count_tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """Tokens of all tool definitions: their JSON and the frame around them; 0 for none."""
        if not tools:
            return 0
        return sum(self.count_each_tool(tools).values())

    def count_each_tool(self, tools: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Tokens of each tool by its name, and of what all share under `SHARED`: they sum to `count_tools`.

        Tools of one name are added up.
        """
        if not tools:
            return {}
        named = [tool_text(tool) for tool in tools]
        counted = self._count(text for _, text in named)
        sizes = {SHARED: self._tools_overhead}
        for name, text in named:
            sizes[name] = sizes.get(name, 0) + counted[text] + TOOL_OVERHEAD
        return sizes

    def _count_frames(self) -> dict[str, int]:
        counted = self._count(("system", "user", "assistant", "tool"))
        self._frames = {role: MESSAGE_OVERHEAD + counted[role] for role in ("system", "user", "assistant", "tool")}
        return self._frames

    def _pieces(self, message: Message) -> tuple[int, list[str]]:
        """What a message costs: a fixed number, and texts to be counted."""
        fixed, texts = self._frames[message.role], []
        if message.name is not None:
            fixed += NAME_OVERHEAD
            texts.append(message.name)
        waiting: list[Part] = list(message.parts)
        while waiting:
            part = waiting.pop()
            if isinstance(part, Text):
                texts.append(part.text)
            elif isinstance(part, Thinking):
                sealed = sealed_tokens(part)
                if sealed:
                    fixed += sealed
                else:
                    texts.append(part.text)
            elif isinstance(part, ToolResult):
                waiting.extend(part.content)
            elif isinstance(part, ToolCall):
                fixed += CALL_OVERHEAD
                texts += (part.name, part.arguments)
            elif isinstance(part, Media):
                text = media_text(part)
                if text is None:
                    fixed += count_media(part, self._rates)
                else:
                    texts.append(text)
            elif isinstance(part, Opaque):
                text, media, tokens = opaque_parts(part.wire if part.wire is not None else part.kind)
                texts.append(text)
                fixed += tokens
                waiting.extend(media)
        return fixed, texts

    def _count(self, texts: Iterable[str]) -> dict[str, int]:
        """Counts by text, from the cache or anew. The answer holds whatever happens to the cache meanwhile."""
        young, old = self._young, self._old
        counted: dict[str, int] = {}
        new: dict[str, None] = {}
        taken: dict[str, int] = {}
        for text in texts:
            count = young.get(text)
            if count is None:
                count = old.get(text)
                if count is None:
                    new[text] = None
                    continue
                taken[text] = count
            counted[text] = count
        if new:
            batch = list(new)
            fresh = dict(zip(batch, self._count_clean(batch), strict=True))
            counted.update(fresh)
            taken.update(fresh)
        if taken:
            self._keep(taken)
        return counted

    def _count_clean(self, batch: list[str]) -> list[int]:
        try:
            return self._count_batch(batch)
        except UnicodeEncodeError:
            return self._count_batch([clean_text(text) for text in batch])

    def _keep(self, counts: dict[str, int]) -> None:
        size = sum(map(len, counts)) + 64 * len(counts)  # 64: an entry's own weight, so that empty texts are bounded
        if size > self._generation_chars:
            return
        if self._young_chars + size > self._generation_chars:
            self._old, self._young, self._young_chars = self._young, {}, 0
        self._young.update(counts)
        self._young_chars += size


def tool_text(tool: Mapping[str, Any]) -> tuple[str, str]:
    """Name and JSON text of a tool definition in any of the formats; a built-in tool goes by its type."""
    inner = tool.get("function")
    body: Mapping[str, Any] = inner if isinstance(inner, Mapping) else tool
    name = body.get("name") or tool.get("type") or "tool"
    return str(name), json_text(body)


def counter_for(model: str | None = None, *, estimate: Estimate = "classes") -> TokenCounter:
    """The counter of a model: exact where its encoding is here, else cl100k_base; without a tokenizer, the estimate.

    Never raises and never touches the network. One counter for each model is kept for the life of the process, and
    models that share an encoding and rates for media share their counter.
    """
    return _shared(*encoding_of(model), media_rates(model), _tools_overhead(model), estimate)


def estimate_counter(estimate: Estimate = "classes", *, model: str | None = None) -> TokenCounter:
    """A counter that needs no tokenizer: byte classes, or characters / 4 x 1.2."""
    return _shared("", False, media_rates(model), _tools_overhead(model), estimate)


def _tools_overhead(model: str | None) -> int:
    return CLAUDE_TOOLS_OVERHEAD if model and "claude" in model.lower() else TOOLS_OVERHEAD


@lru_cache(maxsize=64)
def _shared(encoding: str, exact: bool, rates: MediaRates, tools_overhead: int, estimate: Estimate) -> TokenCounter:
    name, count = encoding if exact else f"{encoding} (fallback)", batch_count(encoding) if encoding else None
    if count is None and encoding not in ("", FALLBACK):
        name, exact, count = f"{FALLBACK} (fallback)", False, batch_count(FALLBACK)
    if count is None:
        name, exact, count = f"estimate ({estimate})", False, estimate_batch(estimate)
    return TokenCounter(name, exact, count, rates, tools_overhead=tools_overhead)
