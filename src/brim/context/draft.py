"""A plan in the making: which fate each message has now, what the view counts, and what no pass may touch.

Passes read a draft and return fates; `apply` puts them on. The draft is thrown away once the plan is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import isfinite

import msgspec

from brim.budget.settings import Settings
from brim.context.cut import join_spans
from brim.context.edit import edited
from brim.context.history import History
from brim.context.plan import RANK, Fate, Kind
from brim.context.repair_order import SystemAsUser
from brim.conversation import Message, handle_of, range_handle

STUB, FOLD, DROP = RANK["stub"], RANK["fold"], RANK["drop"]
LEAST_SAVING = 10
"""Tokens an edit must save to be worth its notice (measured with the digest policy: below it, marks cost more)."""


class Draft:
    """Fates over a history, mutable while one request is planned.

    `rank[i]` is 0 for keep up to 4 for drop, `tokens[i]` what message i costs in the view now, `total` their sum.
    `budget` is what all messages may use together, `window` the model's window, `now` Unix seconds or None.
    """

    def __init__(
        self,
        history: History,
        settings: Settings,
        *,
        mode: str,
        window: int,
        budget: int,
        now: float | None,
        recall: bool,
        fates: Iterable[Fate] = (),
        seen: tuple[tuple[int, float], ...] = (),
    ) -> None:
        self.history = history
        self.settings = settings
        self.mode = mode
        self.window = window
        self.budget = budget
        self.now = now
        self.recall = recall
        self.seen = seen
        self.rank = bytearray(len(history))
        self.tokens = list(history.tokens)
        self.total = history.sums[-1]
        self.extra = 0
        self.single: dict[int, Fate] = {}
        self.ranges: list[Fate] = []
        self.reach = 0
        self.changes = 0
        self.troubles: list[str] = []
        self.held = self._held()
        self.apply(fates)
        history.changed_from = history.altered_from = len(history)

    # ---- reading -----------------------------------------------------------------------------------------------

    @property
    def used(self) -> int:
        """Tokens of the view's messages as they stand, the summary and inserts included."""
        return self.total + self.extra

    def relevance(self, question: str, messages: list[Message]) -> list[float] | None:
        """What the caller's relevance says of messages; None where there is none, or it failed, which the report will say."""
        judge = self.settings.relevance
        if judge is None:
            return None
        try:
            scores = [float(score) for score in judge(question, messages)]
        except Exception as error:  # a caller's model that is down must not break the request being prepared
            self.troubles.append(f"{type(error).__name__}: {error}"[:200])
            return None
        if len(scores) != len(messages) or not all(map(isfinite, scores)):
            self.troubles.append(f"{len(scores)} scores for {len(messages)} messages, or some that are no numbers")
            return None
        return scores

    def count(self, text: str) -> int:
        return self.history.counter.count_text(text)

    def protected(self, index: int) -> bool:
        """System messages, whole pins and the last user message: never touched by any pass."""
        history = self.history
        message = history.messages[index]
        return (
            message.role == "system"
            or index == history.last_user
            or index in history.marked
            or type(message) is SystemAsUser
        )

    def stays(self, index: int) -> bool:
        """What no pass takes out of the view: the protected, and what stands in one step with a message pinned whole, since
        a call and its results cannot part."""
        return index in self.held or self.protected(index)

    def _held(self) -> frozenset[int]:
        history = self.history
        steps = {history.step_of(index) for index in history.marked if index < len(history)}
        return frozenset(index for first in steps for index in range(first, history.step_end(first)))

    def results(self, start: int, end: int, *, below: int = STUB) -> Iterator[int]:
        """Tool messages of `[start, end)` whose fate is still above `below`."""
        messages, rank = self.history.messages, self.rank
        for index in range(max(start, self.reach), end):
            if rank[index] < below and messages[index].role == "tool" and not self.protected(index):
                yield index

    def live_steps(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """(start, end) of the steps in `[start, end)` of which something is still in the view, oldest first."""
        steps, rank = self.history.steps, self.rank
        for at, first in enumerate(steps):
            if first >= end:
                return
            stop = steps[at + 1] if at + 1 < len(steps) else len(rank)
            if first >= start and min(rank[first:stop]) < FOLD:
                yield first, stop

    def grow(self, now: float | None) -> bool:
        """Takes in what the history has gained. False where it did more than grow: the draft must be built anew."""
        history, known = self.history, len(self.rank)
        if history.changed_from < known:
            return False
        fresh = history.tokens[known:]
        self.rank.extend(bytes(len(fresh)))
        self.tokens.extend(fresh)
        self.total += sum(fresh)
        self.now = now
        self.reach = 0
        if history.marked:
            self.held = self._held()
        history.changed_from = history.altered_from = len(history)
        return True

    # ---- writing -----------------------------------------------------------------------------------------------

    def apply(self, fates: Iterable[Fate]) -> None:
        """Puts fates on; a fate never raises what stands already."""
        for fate in fates:
            self.changes += 1
            rank = RANK[fate.kind]
            if fate.kind in ("trim", "stub"):
                index = fate.start
                self.total += fate.tokens - self.tokens[index]
                self.tokens[index] = fate.tokens
                self.rank[index] = rank
                self.single[index] = fate
                continue
            self.total -= sum(self.tokens[fate.start : fate.end])
            width = fate.end - fate.start
            self.tokens[fate.start : fate.end] = [0] * width
            self.rank[fate.start : fate.end] = bytes((rank,)) * width
            self.ranges.append(fate)

    def fates(self) -> tuple[Fate, ...]:
        """All fates of the plan, in order of place; those that a lower one has replaced are gone."""
        kept = [fate for index, fate in self.single.items() if self.rank[index] == RANK[fate.kind]]
        return tuple(sorted([*kept, *self.ranges], key=lambda fate: (fate.start, fate.end)))

    # ---- making fates ------------------------------------------------------------------------------------------

    def weigh(self, fates: list[Fate], *, least: int = LEAST_SAVING) -> list[Fate]:
        """Single-message fates with their token counts (one batch); those that save under `least` tokens are left out."""
        unknown = [fate for fate in fates if not fate.tokens]
        messages = [edited(self.history.messages[fate.start], fate, recall=self.recall) for fate in unknown]
        counted = iter(self.history.counter.count_messages(messages))
        known = [fate if fate.tokens else msgspec.structs.replace(fate, tokens=next(counted)) for fate in fates]
        return [fate for fate in known if self.tokens[fate.start] - fate.tokens >= least]

    def remove(self, start: int, end: int, kind: Kind, rule: str, why: dict[str, object]) -> list[Fate]:
        """Fates that take `[start, end)` out of the view: whole runs, around what is protected; pinned paragraphs stay."""
        fates: list[Fate] = []
        run = start
        limit = RANK[kind]
        for index in range(start, end):
            pins = self.history.pins.get(index)
            if self.rank[index] >= FOLD or self.stays(index) or pins:
                if run < index:
                    fates.append(self._range(run, index, kind, rule, why))
                if pins and not self.stays(index) and self.rank[index] < min(limit, STUB):
                    fates.extend(self._pinned(index, tuple(pins), rule, why))
                run = index + 1
        if run < end:
            fates.append(self._range(run, end, kind, rule, why))
        return fates

    def _range(self, start: int, end: int, kind: Kind, rule: str, why: dict[str, object]) -> Fate:
        return Fate(start, end, kind, rule, why, range_handle(self.history.messages, start, end))

    def _pinned(self, index: int, pins: tuple[tuple[int, int], ...], rule: str, why: dict[str, object]) -> list[Fate]:
        message = self.history.messages[index]
        fate = Fate(
            index, index + 1, "trim", rule, why | {"pins": len(pins)}, handle_of(message), spans=pins, media=False
        )
        return self.weigh([fate])


def trimmed_text(message: Message, fate: Fate, *, recall: bool) -> str:
    """The text of a message under a trim, for passes that look at what would be sent."""
    return join_spans(message.text, fate.spans or (), fate.handle, recall=recall)


CountText = Callable[[str], int]
