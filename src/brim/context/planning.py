"""From a draft and the plan before it to the next plan: the one place where epochs begin and passes run.

carry on       fates of the plan before stand; new messages are kept (or capped on arrival)
epoch          under pressure, or in auto where an edit pays: the mode's passes, until its target is met
rescue         while the view is over the budget: the rest of the ladder
overflow       what cannot go is larger than the budget: ContextOverflow, with the figure
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from brim.budget.settings import Settings
from brim.context import passes
from brim.context.draft import Draft
from brim.context.inserts import Gone, index_of, recall_for
from brim.context.modes import table_of, trigger
from brim.context.plan import Fate, Insert, Offered, Plan, Sent, Summary
from brim.context.relevance import Terms
from brim.context.render import render
from brim.context.summarise import smaller, summarise, summary_room
from brim.context.weighing import Weigher
from brim.conversation import Message
from brim.errors import ContextOverflow, RequestTooLarge

_SMALL = 20
"""An epoch that was asked for leaves this part of the budget alone: to shorten less would lose more than it saves."""
_DUE = 10
"""An epoch that ends above its trigger, since what stays is that large, is followed by the next one only once this part of
the budget has come: at every request it would rewrite the prefix for nothing."""
Line = dict[str, Any]
"""One line of the report: what a pass did, with its numbers."""


class Planner:
    """Plans one request after the other over one growing draft. Holds what may be kept between requests: the draft's
    place in the plan, the terms of texts, the index of what stands in the view."""

    def __init__(
        self,
        draft: Draft,
        settings: Settings,
        terms: Terms,
        weigher: Weigher | None,
        body_bytes: Callable[[list[Message]], int],
    ) -> None:
        self.draft = draft
        self.body_bytes = body_bytes
        self.settings = settings
        self.terms = terms
        self.weigher = weigher
        self.report: list[Line] = []
        self.summary: Summary | None = None
        self.inserts: tuple[Insert, ...] = ()
        self.offered: Sequence[Offered] = ()
        self._gone: Gone | None = None
        self.before: Plan | None = None
        self.focus = ""
        self._anew = False

    # ---- one request -------------------------------------------------------------------------------------------

    def next(
        self,
        before: Plan | None,
        line: str,
        cause: str,
        *,
        force: bool = False,
        passes: tuple[str, ...] = (),
        focus: str = "",
    ) -> Plan:
        """The plan of this request. `before` is the plan it continues, None to begin an epoch for `cause`; `force` runs
        the passes of an epoch below the trigger, too, until half of what is there is left, or a twentieth of the budget;
        `passes` are run first, to their ends, whatever the pressure; `focus` is what the user wants a summary to keep."""
        draft, settings = self.draft, self.settings
        table = table_of(draft.mode)
        self.report = [{"pass": "repair", "at": each.at, "did": each.what} for each in draft.history.repairs]
        self.before = before
        self.focus, self._anew = focus, force and bool(focus)
        plan = before if before is not None else Plan(draft.mode, line, cause=cause)
        self.summary, self.inserts = plan.summary, plan.inserts
        n, seen = len(draft.history), plan.seen
        if draft.now is not None and n > plan.sent.count:
            seen = (*seen, (plan.sent.count, draft.now))
        draft.seen = seen  # what is new was first seen now
        changes = draft.changes
        lowered = self._arrive(plan)
        started = None
        failures, refused = plan.summary_failures, plan.summary_refused
        if passes:
            started = f"asked for: {', '.join(passes)}"
            failures, refused = self._run(passes, 0, failures, refused)
        limit = min(trigger(draft.mode, settings), 1.0) * draft.budget
        floor = plan.floor
        if floor:  # the epoch before could not get below the trigger: the next is due once a tenth has come since
            limit = max(limit, min(draft.budget, floor + draft.budget // _DUE))
        if draft.used > limit:
            check_pins(draft)
        if force or draft.used > limit:
            started = f"{'asked for' if force else 'pressure'}: {draft.used:,} of {draft.budget:,} tokens"
            goal = int(settings.compact_target * draft.budget)
            if self.weigher is not None:
                self.weigher.reset()
            names = table.epoch
            if force:
                goal = min(goal, max(draft.used // 2, draft.budget // _SMALL))
                refused = 0
                if focus and "summarise" in names:
                    # a note is about what a summary keeps: it is made before results are taken down by size alone
                    draft.reach = self._reach(goal - summary_room(draft, goal))
                    self._lower("supersede", self._pass("supersede", goal))
                    failures, refused = self._summarise(goal, failures, refused)
                    names = tuple(name for name in names if name not in ("supersede", "summarise"))
            if names:
                draft.reach = self._reach(goal - summary_room(draft, goal))
                failures, refused = self._run(names, goal, failures, refused)
            if draft.used > draft.budget:
                goal = int(settings.rescue_target * draft.budget)
                draft.reach = self._reach(draft.budget)
                failures, refused = self._run(table.rescue, goal, failures, refused)
                self._give_up_summary()
            floor = draft.used if draft.used > min(trigger(draft.mode, settings), 1.0) * draft.budget else 0
        elif not passes and table.weighs and settings.price_weighing and self.weigher is not None:
            started, arrived = self._weigh(plan)
            lowered = lowered or arrived
        if settings.max_request_bytes is not None and self._fit_bytes(settings.max_request_bytes):
            started = started or f"over {settings.max_request_bytes:,} bytes"
        lowered = lowered or draft.changes != changes or self.summary is not plan.summary
        if started is not None and before is not None and not lowered:
            started = None  # the passes found nothing to lower: the epoch goes on
        pressed = started is not None and not started.startswith("pays")
        self._bring_back(plan, pressed)
        self._take_offered(plan, pressed)
        if settings.max_request_bytes is not None and len(self.inserts) > len(plan.inserts):
            self._fit_inserts(plan.inserts, settings.max_request_bytes)
        for trouble in dict.fromkeys(draft.troubles):
            self.report.append({"pass": "relevance", "failed": f"{trouble}; judged by words instead"})
        draft.troubles.clear()
        return msgspec.structs.replace(
            plan,
            epoch=plan.epoch + (1 if started is not None and before is not None else 0),
            cause=started if started is not None and before is not None else plan.cause,
            fates=draft.fates() if lowered or before is None else plan.fates,
            summary=self.summary,
            inserts=self.inserts,
            repairs=draft.history.repairs,
            seen=seen,
            sent=Sent(n, "", plan.sent.count, draft.now),
            requests=plan.requests + 1,
            summary_failures=failures,
            summary_refused=refused,
            floor=floor,
        )

    def _bring_back(self, plan: Plan, pressed: bool) -> None:
        """In auto: what was let go and matters to a question that has just come stands beside it from now on."""
        draft = self.draft
        if pressed:
            self._gone = None
        if pressed and self.inserts:
            self.inserts = ()  # what an insert held has its own fate again: select has just judged it
            self.measure()
        question = draft.history.last_user
        if draft.mode != "auto" or pressed or self.before is None or not draft.ranges or question < plan.sent.count:
            return
        if self._gone is None:
            self._gone = index_of(draft, question, self.terms)
        insert = recall_for(draft, question, self._gone)
        room = int(trigger(draft.mode, self.settings) * draft.budget) - draft.used
        if insert is not None and insert.tokens <= room:
            self.inserts = (*self.inserts, insert)
            before = draft.used
            self.measure()
            self.report.append({"pass": "insert", **insert.why, "before": before, "after": draft.used})

    def _fit_inserts(self, before: tuple[Insert, ...], limit: int) -> None:
        """What was to stand beside the question is left out where it would take the body over its limit in bytes."""
        if self._bytes() > limit:
            used, self.inserts = self.draft.used, before
            self.measure()
            refused = f"what was to stand beside the question would take the body over {limit:,} bytes"
            self.report.append({"pass": "fit_bytes", "before": used, "after": self.draft.used, "refused": refused})

    def _take_offered(self, plan: Plan, pressed: bool) -> None:
        """What was found outside for the newest question stands beside it from now on, where there is room. A question that
        was sent without it stays as it was sent, until an epoch begins under pressure."""
        draft = self.draft
        question = draft.history.last_user
        if not self.offered or question < 0 or not (pressed or self.before is None or question >= plan.sent.count):
            return
        for each in self.offered:
            if any(have.source == each.source and (each.lasting or have.anchor == question) for have in self.inserts):
                continue
            tokens = draft.count(each.text)
            room = int(trigger(draft.mode, self.settings) * draft.budget) - draft.used
            if tokens > room:
                self.report.append({"pass": "insert", "source": each.source, "left_out": tokens, "room": room})
                continue
            self.inserts = (*self.inserts, Insert(question, each.text, each.source, each.why, tokens))
            before = draft.used
            self.measure()
            self.report.append(
                {"pass": "insert", "source": each.source, **each.why, "before": before, "after": draft.used}
            )

    # ---- arrival -----------------------------------------------------------------------------------------------

    def _arrive(self, plan: Plan) -> bool:
        """Caps new results where that was asked for."""
        if not self.settings.cap_results:
            return False
        fates = passes.cap(self.draft, plan.sent.count)
        return self._lower("cap", fates)

    # ---- epochs ------------------------------------------------------------------------------------------------

    def _weigh(self, plan: Plan) -> tuple[str | None, bool]:
        """In auto, below the trigger: what repeats is cut at its first appearance, and digests are made where that pays.
        The cause of a new epoch, if one begins, and whether anything was lowered on arrival."""
        if self.weigher is None:
            return None, False
        arrived = self._lower("repeat", self.weigher.arrive(self.draft, plan, fresh=self.before is None))
        chosen = self.weigher.choose(self.draft, plan) if self.before is not None else None
        if chosen is None:
            return None, arrived
        fates, why = chosen
        return (f"pays: {why}" if self._lower("digest", fates) else None), arrived

    def _run(self, names: tuple[str, ...], goal: int, failures: int, refused: int) -> tuple[int, int]:
        for name in names:
            if self.draft.used <= (self.draft.budget if name == "trim_newest" else goal):
                break
            if name in ("summarise", "summarise_in_full"):
                if name == "summarise" or self.settings.summarise_in_full:
                    failures, refused = self._summarise(goal, failures, refused)
                continue
            if name == "select":
                chosen = passes.select(self.draft, goal, self.terms)
                if chosen:
                    failures, refused = self._summarise(goal, failures, refused, chosen)
                continue
            self._lower(name, self._pass(name, goal))
        return failures, refused

    def _fit_bytes(self, limit: int) -> bool:
        """Brings the body under `limit` bytes: pictures first, then the last rungs of the ladder. Raises RequestTooLarge
        where what cannot go is larger."""
        draft = self.draft
        size = self._bytes()
        if size <= limit:
            return False
        lowered = self._lower("fit_bytes", passes.fit_bytes(draft, limit, lambda: size))
        for name in table_of(draft.mode).rescue:
            if (size := self._bytes()) <= limit:
                break
            if name != "summarise_in_full":  # tokens stand for bytes: text has a steady rate of one to the other
                lowered = self._lower(name, self._pass(name, int(draft.used * limit / size * 0.95))) or lowered
        if (size := self._bytes()) > limit:
            raise RequestTooLarge(
                f"the request is {size:,} bytes of JSON with all taken out that can go, and max_request_bytes is {limit:,}",
                hint="send fewer or smaller pictures and documents, shorten the last message, or raise max_request_bytes",
            )
        return lowered

    def _bytes(self) -> int:
        return self.body_bytes(self._view())

    def _pass(self, name: str, goal: int) -> list[Fate]:
        draft = self.draft
        simple: dict[str, Callable[[Draft, int], list[Fate]]] = {
            "supersede": passes.supersede,
            "truncate": passes.truncate,
            "expire": passes.expire,
            "compress": passes.compress,
            "drop_oldest": passes.drop_oldest,
            "trim_newest": passes.trim_newest,
        }
        if name == "supersede" and not self.settings.supersede:
            return []
        if name.startswith("keep_recent"):
            kept = self.settings.recent_rounds_kept if name == "keep_recent(6)" else 2
            return passes.keep_recent(draft, goal, kept)
        if name == "trim_newest":
            goal = max(goal, draft.budget) if draft.used > draft.budget else goal
        return simple[name](draft, goal)

    def _lower(self, name: str, fates: list[Fate]) -> bool:
        if not fates:
            return False
        before = self.draft.used
        self.draft.apply(fates)
        self.measure()
        kinds: dict[str, int] = {}
        for fate in fates:
            kinds[fate.kind] = kinds.get(fate.kind, 0) + fate.end - fate.start
        self.report.append({"pass": name, **kinds, "before": before, "after": self.draft.used})
        return True

    def _summarise(self, goal: int, failures: int, refused: int, chosen: list[Fate] | None = None) -> tuple[int, int]:
        outcome = summarise(
            self.draft, goal, self.summary, failures=failures, refused=refused, chosen=chosen,
            focus=self.focus,
            anew=self._anew,
        )  # fmt: skip
        if outcome.fates or outcome.summary is not self.summary:
            before = self.draft.used
            self.draft.apply(outcome.fates)
            self.summary = outcome.summary
            self.measure()
            folded = sum(fate.end - fate.start for fate in outcome.fates)
            self.report.append(
                {
                    "pass": "select" if chosen else "summarise",
                    "fold": folded,
                    "before": before,
                    "after": self.draft.used,
                    **outcome.report,
                }
            )
        elif outcome.report:
            self.report.append({"pass": "summarise", **outcome.report})
        return outcome.failures, outcome.refused

    def _give_up_summary(self) -> None:
        """The last rung: a request that fits without its summary is sent without it, or with a smaller one."""
        draft = self.draft
        while draft.used > draft.budget and self.summary is not None:
            before, was = draft.used, self.summary
            self.summary = smaller(draft, was, draft.used - draft.budget)
            self.measure()
            self.report.append(
                {
                    "pass": "shorten_summary",
                    "summary": self.summary.tokens if self.summary is not None else 0,
                    "of": was.tokens,
                    "before": before,
                    "after": draft.used,
                }
            )

    def measure(self) -> None:
        """Counts what the view holds beside the history's messages: summary, inserts, lines at seams."""
        draft = self.draft
        if self.summary is None and not draft.ranges and not self.inserts:
            draft.extra = 0
            return
        draft.extra = sum(draft.history.counter.count_messages(self._view())) - draft.total

    def _view(self) -> list[Message]:
        """The view as the draft stands."""
        plan = Plan(self.draft.mode, "", fates=self.draft.fates(), summary=self.summary, inserts=self.inserts)
        return render(self.draft.history, plan, recall=self.draft.recall)

    def _reach(self, room: int) -> int:
        """The first message that can still be in a view of `room` tokens once every result is a stub. What stands before it
        will go under any plan, so that no pass on single messages needs to look at it. Short histories are read whole."""
        draft = self.draft
        if draft.total <= 4 * draft.budget:
            return 0
        messages, tokens, index = draft.history.messages, draft.tokens, len(draft.rank)
        while index > 0 and room > 0:
            index -= 1
            room -= min(tokens[index], STUB_LEAST) if messages[index].role == "tool" else tokens[index]
        return draft.history.step_of(index) if index else 0


STUB_LEAST = 16
"""Tokens that the shortest stub costs with its message; lower than any, so that `reach` never cuts off too much."""


def check_pins(draft: Draft) -> None:
    """Raises ContextOverflow where something has to go and pins hold more than their share of the budget."""
    history, most = draft.history, int(draft.settings.pin_share * draft.budget)
    sizes = {index: history.tokens[index] for index in history.marked if index < len(history)}
    for index, spans in history.pins.items():
        message = history.messages[index]
        if index not in sizes and message.role != "system":
            sizes[index] = sum(draft.count(message.text[start:end]) for start, end in spans)
    pinned = sum(sizes.values())
    if pinned <= most:
        return
    raise ContextOverflow(
        f"the pins take {pinned:,} tokens ({len(sizes)} messages, the largest {max(sizes.values()):,}), and may take "
        f"{most:,}: {draft.settings.pin_share:.0%} of a budget of {draft.budget:,}",
        irreducible=pinned,
        budget=most,
        hint="unpin what is no longer needed, pin the sentence that matters instead of a whole text, raise pin_share, or use "
        "a larger window",
    )


def check_fit(draft: Draft, bill: Any) -> None:
    """Raises ContextOverflow where what is left after every pass is over the budget."""
    if draft.used <= draft.budget:
        return
    history = draft.history
    last = history.last_user
    largest = max(range(len(draft.rank)), key=lambda index: draft.tokens[index], default=-1)
    role = history.messages[largest].role if largest >= 0 else "system"
    what = "the last user message" if largest == last else f"{'an' if role == 'assistant' else 'a'} {role} message"
    raise ContextOverflow(
        f"the request needs {draft.used:,} tokens that cannot go (system, pins, last user message, newest step), "
        f"and {draft.budget:,} are available; {what} alone is {draft.tokens[largest] if largest >= 0 else 0:,}",
        irreducible=draft.used,
        budget=draft.budget,
        bill=bill,
        hint="shorten that message, or leave what is long in a file and name it, so that it is read in parts; unpin, lower "
        "max_response_tokens, or use a larger window",
    )
