"""auto below the trigger: what each result is worth at the model's prices, request by request.

`digest` says what a result's digest keeps, `economics` when an edit pays. This module keeps their books over one growing
draft: what stands in the view, which results may still be lowered, and what later messages used of them. The books
follow from the history and the plan, so they are built anew where they are missing.
"""

from __future__ import annotations

import msgspec

from brim.context.cut import join_spans
from brim.context.digest import Kind, Seen, barest, digest, kind_of, repeats, without
from brim.context.draft import FOLD, LEAST_SAVING, Draft
from brim.context.economics import Candidate, Choice, Held, Ledger, choose, expected_requests
from brim.context.failures import is_failed
from brim.context.notices import rest_of, stub
from brim.context.plan import Fate, Plan
from brim.conversation import Thinking, handle_of

Spans = tuple[tuple[int, int], ...]

REPEAT_REACH = 100
"""Requests back to which a repeat is looked for: what stands further up is likely to be let go first."""


class Weigher:
    """The books of auto over one draft. `write` and `read` are the prices relative to one uncached input token; `bound`
    says that the model binds its thinking to its prefix, so that nothing before a thinking block is edited."""

    def __init__(self, write: float, read: float, *, can_recall: bool, bound: bool = False) -> None:
        self.write, self.read = write, read
        self.can_recall, self.bound = can_recall, bound
        self.reset()

    def reset(self) -> None:
        """Forgets the books: fates were set by others, so they are built anew when next needed."""
        self._seen = Seen()
        self._ledger = Ledger()
        self._kinds: dict[int, Kind] = {}
        self._shown: dict[int, int] = {}
        self._at = 0
        self._request = 0
        self._thought = -1
        self._unjudged = 1 << 60  # the request that first shows a result not yet judged
        self._last_role = "system"

    def arrive(self, draft: Draft, plan: Plan, *, fresh: bool) -> list[Fate]:
        """Enters what the history has gained. Returns the fates of results that, in part, repeat what stands above: cut at
        their first appearance, which costs no cache. In a `fresh` plan nothing is cut."""
        fates: list[Fate] = []
        messages = draft.history.messages
        turn_of = draft.history.turn_of
        for index in range(self._at, len(messages)):
            message = messages[index]
            if message.role == "assistant" and self._last_role != "assistant":
                self._request += 1
            self._last_role = message.role
            if draft.rank[index] >= FOLD or draft.rank[index] == 2:
                continue  # not in the view: nothing there can be lowered or repeated
            self._shown[index] = self._request + 1
            text = message.text
            spans = draft.single[index].spans if index in draft.single else None
            result = message.role == "tool"
            if result:
                self._kinds[index] = kind_of(text)
                if not fresh and index >= plan.sent.count and spans is None:
                    fate = self._repeat(draft, index, text)
                    if fate is not None:
                        fates.append(fate)
                        spans = fate.spans
            for owner in self._seen.arrive(index, text, spans, result=result):
                self._ledger.touch(owner, self._request + 1, use=True, turn=turn_of(index))
            if result:
                tokens = fates[-1].tokens if fates and fates[-1].start == index else draft.tokens[index]
                self._hold(draft, index, tokens)
            elif self.bound and any(type(part) is Thinking for part in message.parts):
                self._thought = index
        self._at = len(messages)
        return fates

    def choose(self, draft: Draft, plan: Plan) -> tuple[list[Fate], str] | None:
        """The results whose lowering pays now, from the best place on, and the reason in words; None if none does."""
        request = self._request + 1
        cold = (
            draft.now is not None
            and plan.sent.at is not None
            and draft.now - plan.sent.at > draft.settings.cache_life_s
        )
        if self._unjudged >= request and not cold:
            return None  # nothing was read since the last look
        end = min(plan.sent.count, len(draft.rank))
        made: dict[int, tuple[Fate, Fate]] = {}

        def sizes(index: int) -> tuple[int, int]:
            made[index] = self._forms(draft, index)
            return made[index][0].tokens, made[index][1].tokens

        self._unjudged = max(
            (each.shown for each in self._ledger.held.values() if each.shown >= request), default=1 << 60
        )
        candidates = self._ledger.candidates(
            request,
            view=draft.total - sum(draft.tokens[end:]),
            missed=self._seen.missed,
            suffixes=self._suffixes(draft, end),
            sizes=sizes,
            write=self.write,
            read=self.read,
            can_recall=self.can_recall,
            turn=draft.history.last_user,
        )
        candidates = [each for each in candidates if each.index > self._thought]
        if not candidates:
            return None
        choice = choose(
            candidates, write=self.write, read=self.read, requests=expected_requests(request, self.write), cold=cold
        )
        if choice is None:
            return None
        fates = [
            fate for each in candidates if each.index >= choice.start and (fate := self._lowered(draft, each, choice))
        ]
        if not fates:
            return None
        return fates, ("cold cache: " if cold else "") + choice.sentence(self.write, self.read)

    # ---- one result --------------------------------------------------------------------------------------------

    def _hold(self, draft: Draft, index: int, tokens: int) -> None:
        if draft.protected(index) or draft.history.messages[index].result.is_error:
            return  # what a provider's format flags as an error stays whole; any other failure keeps its error text
        request = self._request + 1
        self._unjudged = min(self._unjudged, request)
        turn = draft.history.turn_of(index)
        self._ledger.add(Held(index, self._kinds[index], draft.history.tokens[index], tokens, request, request, turn))

    def _suffixes(self, draft: Draft, end: int) -> dict[int, int]:
        """For each held result the tokens of the previous view from it to its end."""
        suffixes: dict[int, int] = {}
        total, stop = 0, end
        for index in reversed(list(self._ledger.held)):
            total += sum(draft.tokens[index:stop])
            stop = min(stop, index)
            suffixes[index] = total
        return suffixes

    def _forms(self, draft: Draft, index: int) -> tuple[Fate, Fate]:
        """The digest of a result and its barest form, as fates with their tokens."""
        text = draft.history.messages[index].text
        spans = draft.single[index].spans if index in draft.single else None
        least = barest(text, self._kinds[index], failed=is_failed(draft.history.messages[index]), spans=spans)
        kept = digest(text, self._seen, spans=spans, stays=least)
        return self._fate(draft, index, tuple(kept), "digest"), self._fate(draft, index, tuple(least), "digest")

    def _fate(self, draft: Draft, index: int, spans: Spans, rule: str) -> Fate:
        message = draft.history.messages[index]
        handle = handle_of(message)
        why = {"characters": len(message.text)}
        if spans:
            fate = Fate(index, index + 1, "trim", rule, why, handle, spans=spans)
        else:
            rest = rest_of(message.result.content)
            line = stub(draft.history.tool_name(index), message.text, handle, recall=draft.recall, rest=rest)
            fate = Fate(index, index + 1, "stub", rule, why, handle, text=line)
        return draft.weigh([fate], least=-(10**9))[0]

    def _lowered(self, draft: Draft, candidate: Candidate, choice: Choice) -> Fate | None:
        index = candidate.index
        text = draft.history.messages[index].text
        before = draft.single[index].spans if index in draft.single else None
        forms = self._forms(draft, index)
        fate = forms[0] if candidate.to == "trim" else forms[1]
        if draft.tokens[index] - fate.tokens < LEAST_SAVING:
            return None
        self._seen.lower(index, text, before, fate.spans or ())
        self._ledger.lower(candidate, fate.tokens)
        return msgspec.structs.replace(fate, why=fate.why | choice.why(self.write, self.read))

    def _repeat(self, draft: Draft, index: int, text: str) -> Fate | None:
        """What an arriving result repeats word for word from a text that stands above need not be sent again."""
        if draft.protected(index) or draft.history.messages[index].result.is_error:
            return None
        recent = self._request + 1 - REPEAT_REACH
        found = [each for each in repeats(text, self._seen) if self._shown.get(each.source, 0) >= recent]
        if not found:
            return None
        spans = tuple(without(text, found, self._kinds[index]))
        handle = handle_of(draft.history.messages[index])
        why = {"repeats": sorted({each.source for each in found}), "lines": sum(each.lines for each in found)}
        if spans:
            fate = Fate(index, index + 1, "trim", "repeat", why, handle, spans=spans)
        else:
            line = join_spans(text, (), handle, recall=draft.recall, style="repeat")
            fate = Fate(index, index + 1, "stub", "repeat", why, handle, text=line)
        weighed = draft.weigh([fate])
        if not weighed:
            return None
        for each in found:
            self._ledger.touch(each.source, self._request + 1, use=False, turn=draft.history.turn_of(index))
        return weighed[0]
