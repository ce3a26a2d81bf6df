"""The history as the engine reads it: repaired, counted, and cut into turns and steps. It only ever grows.

A *step* here is the smallest thing that stands or falls together: one user or system message, or a run of assistant
messages with all the tool results that follow it. Building costs time by what is new; nothing is ever taken away.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from brim.context.edit import edited
from brim.context.pins import pinned_spans
from brim.context.plan import Fate, Repair
from brim.context.relevance import Counts, Terms
from brim.context.repair import UNIQUE_IDS, repair
from brim.context.repair_apis import LOOSE, item_id, marks_of
from brim.context.repair_order import ALTERNATE, GO_ON, SystemAsUser
from brim.context.summary import SummaryText
from brim.conversation import Message, ToolCall, chain, digest_of
from brim.formats.rules_anthropic import MAX_CACHE_MARKS
from brim.tokens import Counter


class History:
    """Messages in order, with `tokens[i]`, running sums, the starts of steps and turns, and the call behind each result."""

    def __init__(self, counter: Counter, dialect: str, messages: Iterable[Message] = (), *, signs: bool = True) -> None:
        self.counter = counter
        self.dialect = dialect
        self.signs = signs
        self.source: list[Message] = []
        self.times: dict[int, float] = {}
        self.summaries: dict[tuple[Any, ...], SummaryText] = {}
        self.marked: set[int] = set()
        self.led = 0
        self._items: set[str] = set()  # the ids of all items of `source`
        self._marks = 0  # the blocks of `source` with a cache mark
        self.changed_from = 0
        """The first message that a repair replaced since a draft last took the history in; its length where none was."""
        self.altered_from = 0
        """The same, of those that now say something else: a moved cache mark, say, alters nothing."""
        self._clear()
        self.extend(messages)

    def _clear(self) -> None:
        self.messages: list[Message] = []
        self.tokens: list[int] = []
        self.sums: list[int] = [0]
        self.steps: list[int] = []
        self.turns: list[int] = []
        self.systems: list[int] = []
        self.pins: dict[int, list[tuple[int, int]]] = {}
        self.calls: dict[int, ToolCall] = {}
        self.repairs: tuple[Repair, ...] = ()
        self._open: dict[str, ToolCall] = {}
        self._hashes: list[bytes] = [b""]
        self.fates: dict[tuple[object, ...], Fate] = {}
        self._terms: dict[int, Counts] = {}
        self._shown: dict[int, tuple[Fate, bool, Message]] = {}
        self._read = 0  # how much of `source` has been taken in
        self._resume = (0, 0)  # where the last step starts: in `source`, in `messages`

    def __len__(self) -> int:
        return len(self.messages)

    def lead(self, messages: Iterable[Message]) -> None:
        """Messages that stand before the conversation's own: the body's system prompt. `led` says how many."""
        self.extend(messages)
        self.led = len(self.source)

    def extend(self, messages: Iterable[Message]) -> None:
        """Takes in new messages. Costs what is new, unless they change how an earlier step is repaired."""
        self.source.extend(messages)
        if self._read == len(self.source):
            return
        whole = self.dialect in ALTERNATE or self._repeats_id() or self._marked_too_often()
        source_from, kept = (0, 0) if whole else self._resume
        first = not kept or self.systems[kept - 1 : kept] == [kept - 1]
        fixed, done = repair(self.source[source_from:], self.dialect, first=first, signs=self.signs)
        if source_from and any("has no call" in each.what or LOOSE in each.what for each in done):
            source_from, kept = 0, 0  # a late result: its call stands further back
            fixed, done = repair(self.source, self.dialect, signs=self.signs)
        same = 0
        limit = min(len(fixed), len(self.messages) - kept)
        while same < limit:
            new, old = fixed[same], self.messages[kept + same]
            if new is not old and new != old:  # a repair makes an equal message anew each time
                break
            same += 1
        if kept + same < len(self.messages):
            alike = same
            while alike < limit and digest_of(fixed[alike]) == digest_of(self.messages[kept + alike]):
                alike += 1
            self.altered_from = min(self.altered_from, kept + alike)
            self._cut(kept + same)
        earlier = tuple(each for each in self.repairs if each.at < kept)
        self.repairs = earlier + tuple(Repair(each.at + kept, each.what) for each in done)
        self._take(fixed[same:])
        self._read = len(self.source)
        self._mark_resume(source_from, kept, bool(done))

    def _repeats_id(self) -> bool:
        """A new call or item has an id that stands in the history already, and the provider wants each once."""
        if self.dialect == "openai-responses":
            fresh = [id for message in self.source[self._read :] if (id := item_id(message)) is not None]
            repeats = not self._items.isdisjoint(fresh)
            self._items.update(fresh)
            return repeats
        return self.dialect in UNIQUE_IDS and any(
            call.id in self._open for message in self.source[self._read :] for call in message.calls
        )

    def _marked_too_often(self) -> bool:
        """More blocks carry a cache mark than the provider takes: which of them stay depends on all."""
        if self.dialect == "anthropic":
            self._marks += sum(len(marks_of(message)) for message in self.source[self._read :])
        return self._marks > MAX_CACHE_MARKS

    def _mark_resume(self, source_from: int, kept: int, repaired: bool) -> None:
        """Where to start repairing next time: the last step, if nothing before it was repaired in this stretch."""
        if self.steps and not repaired:
            last = self.steps[-1]
            self._resume = (source_from + last - kept, last)
        else:
            self._resume = (source_from, kept)

    def _cut(self, length: int) -> None:
        """Forgets messages from `length` on: a repair at the end of the list came out otherwise this time."""
        self.changed_from = min(self.changed_from, length)
        kept, marked = self.messages[:length], self.marked
        repairs, read = self.repairs, self._read
        self._clear()
        self.marked, self.repairs, self._read = marked, repairs, read
        self._take(kept)

    def _take(self, fresh: list[Message]) -> None:
        at = len(self.messages)
        before = self.messages[-1].role if self.messages else "system"
        counted = self.counter.count_messages(fresh)
        self.messages.extend(fresh)
        self.tokens.extend(counted)
        total, sums, steps, pins = self.sums[-1], self.sums, self.steps, self.pins
        opened = self._open
        for message, tokens in zip(fresh, counted, strict=True):
            total += tokens
            sums.append(total)
            role = message.role
            if role == "tool":
                found = opened.get(message.parts[0].call_id)  # type: ignore[union-attr]  # a tool message is one result
                if found is not None:
                    self.calls[at] = found
                if before == "system" or before == "user":  # only in an unrepaired list of a foreign caller
                    steps.append(at)
            elif role == "assistant":
                if before != "assistant":
                    steps.append(at)
                for part in message.parts:
                    if type(part) is ToolCall:
                        opened[part.id] = part
            else:
                steps.append(at)
                if role == "system" or type(message) is SystemAsUser:
                    self.systems.append(at)
                elif message is not GO_ON:
                    self.turns.append(at)
                if spans := pinned_spans(message):
                    pins[at] = spans
            before = role
            at += 1

    def terms(self, index: int, terms: Terms) -> Counts:
        """The terms of a message, its calls included."""
        known = self._terms.get(index)
        if known is None:
            message = self.messages[index]
            calls = "".join(f"\n{call.name} {call.arguments}" for call in message.calls)
            known = self._terms[index] = terms(message.text + calls)
        return known

    def shown(self, fate: Fate, *, recall: bool) -> Message:
        """The message under a trim or stub, made once for each fate."""
        known = self._shown.get(fate.start)
        if known is not None and known[0] is fate and known[1] == recall:
            return known[2]
        message = edited(self.messages[fate.start], fate, recall=recall)
        self._shown[fate.start] = (fate, recall, message)
        return message

    def places_of(self, indices: Iterable[int]) -> dict[int, int]:
        """Where messages of `source` stand among the repaired ones; what a repair left out is missing. By the object they
        came as, and where that was made anew, by content at the nearest place."""
        wanted = list(indices)
        if not self.repairs:
            return {index: index for index in wanted}
        known: dict[object, int] = {}
        for at, message in enumerate(self.messages):
            known[id(message) if message.wire is None else (id(message.wire), message.span)] = at
        places: dict[int, int] = {}
        for index in wanted:
            message = self.source[index]
            key: object = id(message) if message.wire is None else (id(message.wire), message.span)
            place = known.get(key)
            if place is None:
                alike = digest_of(message)
                near = (at for at, each in enumerate(self.messages) if digest_of(each) == alike)
                place = min(near, key=lambda at: abs(at - index), default=None)
            if place is not None:
                places[index] = place
        return places

    # ---- places ------------------------------------------------------------------------------------------------

    def step_end(self, start: int) -> int:
        """The end (exclusive) of the step that starts at `start`."""
        at = bisect_right(self.steps, start)
        return self.steps[at] if at < len(self.steps) else len(self.messages)

    def step_of(self, index: int) -> int:
        """The start of the step that message `index` belongs to."""
        return self.steps[bisect_right(self.steps, index) - 1]

    def turn_of(self, index: int) -> int:
        """The start of the turn that message `index` belongs to; 0 for what stands before the first user message."""
        at = bisect_right(self.turns, index) - 1
        return self.turns[at] if at >= 0 else 0

    @property
    def last_user(self) -> int:
        """The index of the last user message, -1 where there is none."""
        return self.turns[-1] if self.turns else -1

    @property
    def newest_step(self) -> int:
        """The start of the newest assistant step with its results; the length of the history where a user message is last."""
        if not self.messages or self.messages[-1].role in ("user", "system"):
            return len(self.messages)
        return self.steps[-1]

    def tool_name(self, index: int) -> str:
        """The name of the tool whose result message `index` is."""
        found = self.calls.get(index)
        return found.name if found is not None else (self.messages[index].name or "tool")

    def hash_at(self, count: int) -> str:
        """The chained content hash of the first `count` messages, in hex; computed once for each message."""
        hashes = self._hashes
        for index in range(len(hashes) - 1, count):
            hashes.append(chain(hashes[index], self.messages[index]))
        return hashes[count].hex()
