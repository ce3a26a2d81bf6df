"""One session as the agent works on it: its messages in the store and its history in the engine, kept in step.

A message is durable before it is used. The system prompt is no part of the stored history: it stands in front of it,
made anew in each process. Message `i` of the store is message `i + 1` of the conversation where there is one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from brim.agent.caching import mark_cache
from brim.agent.loaded import LoadedMessages
from brim.agent.structured import Form
from brim.budget import Bill, Prices, Settings, cost_of, learn_window, prices_of, reserve, window_of
from brim.context import Conversation, Prepared, explain
from brim.context.modes import table_of
from brim.context.plan import Offered, plan_to_dict
from brim.context.recall import recall_from
from brim.conversation import Message, Thinking, system
from brim.errors import ProviderError, ProviderOverflow, UsageError
from brim.providers import ModelRef
from brim.providers.endings import SilentCut
from brim.store.history import no_collection
from brim.tokens import Calibration, Counter, counter_for

if TYPE_CHECKING:
    from brim.budget import Usage
    from brim.store import Reply, Session, Store

_LEAST_WINDOW = 1_024
_BOUNDLESS = 1_000_000_000


class Request(msgspec.Struct):
    """What goes out: `body` for the provider, and what is known of it."""

    body: dict[str, Any]
    bill: Bill
    plan: Mapping[str, Any]
    report: list[dict[str, Any]]
    messages: int

    @property
    def epoch(self) -> int:
        return int(self.plan.get("epoch", 0))


class Offer(msgspec.Struct, kw_only=True):
    """What the model is given beside the history: system prompt, tool definitions in the model's wire form, and the
    other fields of the body. `needs_maximum`: the API insists on `max_tokens`, and the user named none; `room`: tokens of
    thinking that come on top of it then; `form`: the schema that answers keep to; `notes`: what the user should be told."""

    system: str = ""
    tools: Sequence[Mapping[str, Any]] = ()
    body: Mapping[str, Any] = {}
    needs_maximum: bool = False
    room: int = 0
    form: Form | None = None
    notes: Sequence[str] = ()


class Partner(msgspec.Struct, frozen=True, kw_only=True):
    """A model with what it is given: `counter` and `window` where it brings its own."""

    model: ModelRef
    offer: Offer
    counter: Counter | None = None
    window: int | None = None


class AgentSession:
    """An open session. Holds its lease until `close`.

    `ladder` False sends the history as it is, whatever its size: to see what a provider says to it.
    """

    def __init__(
        self,
        store: Store,
        session: Session,
        *,
        model: ModelRef,
        offer: Offer,
        settings: Settings | None = None,
        mode: str = "auto",
        counter: Counter | None = None,
        window: int | None = None,
        ladder: bool = True,
        prices: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.id = session.id
        self.model = model
        self.offer = offer
        self.settings = settings or Settings()
        self.mode = mode
        self.ladder = ladder
        self.own_prices = dict(prices or {})
        """The user's own, by model or pattern; they go before those that brim knows."""
        self.calibration = Calibration.from_dict(session.meta.get("calibration"))
        self.counter = counter if counter is not None else counter_for(model.model)
        self._own_counter = counter
        self._clock = clock
        self._meta = dict(session.meta)
        self._window = window if window is not None else model.window
        self._margin = self.settings.margin
        self._offered: tuple[Offered, ...] = ()
        store.acquire(self.id)
        stored = store.load(self.id)
        self._first = model.full_name
        self._messages = LoadedMessages(stored)
        self.incomplete = set(stored.incomplete)
        self._times = dict(enumerate(stored.times))
        self._makers: dict[int, str] = {}
        for seq, facts in stored.metas:
            if "at" in facts:
                self._times[seq] = float(facts["at"])
            if "model" in facts:
                self._makers[seq] = str(facts["model"])
        self._engaged: Conversation | None = None
        self.last: Prepared | None = None

    # ---- the history -------------------------------------------------------------------------------------------

    @property
    def messages(self) -> Sequence[Message]:
        """The stored history, without the system prompt."""
        return self._messages

    @property
    def conversation(self) -> Conversation:
        """The history in the engine. Made when it is first needed, since every message is decoded for it: a long session
        opens at once. Raises StoreUnusable where a message is damaged."""
        if self._engaged is None:
            self._engaged = self._build(self.store.last_plan(self.id))
        return self._engaged

    @property
    def lead(self) -> int:
        """How many messages of the conversation stand before the stored ones."""
        return 1 if self.offer.system else 0

    @property
    def pins(self) -> set[int]:
        """Seqs of pinned messages."""
        return {int(seq) for seq in self._meta.get("pins", [])}

    @property
    def focus(self) -> str:
        """What summaries are to keep, in the user's words; "" where nothing was said."""
        return str(self._meta.get("focus", ""))

    def append(self, *messages: Message, meta: Mapping[str, Any] | None = None, at: float | None = None) -> range:
        """Adds messages: durable when this returns. Returns their seqs. `at`: Unix seconds, where they were made earlier."""
        if at is not None:
            meta = {**(meta or {}), "at": at}
        _ = self.conversation  # what is damaged is told before anything is added
        seqs = self.store.append(self.id, messages, meta=meta)
        self._take(messages, seqs, at)
        return seqs

    def now(self) -> float:
        """Unix seconds."""
        return self._clock()

    def plan_now(self) -> Mapping[str, Any]:
        """The plan as it stands, empty before the first request."""
        plan = self.conversation.plan
        return plan_to_dict(plan) if plan is not None else {}

    def begin_reply(self) -> Reply:
        """An answer that is about to stream in."""
        return self.store.begin_reply(self.id)

    def finish_reply(self, reply: Reply, messages: Sequence[Message], meta: Mapping[str, Any] | None = None) -> None:
        """The whole answer, in the half one's place."""
        maker = self.model.full_name
        if maker != self._first:
            meta = {**(meta or {}), "model": maker}
        seqs = reply.finish(*messages, meta=meta)
        self._makers.update(dict.fromkeys(seqs, maker))
        self._take(messages, seqs)

    def keep_reply(self, reply: Reply, meta: Mapping[str, Any] | None = None) -> bool:
        """What came of an answer that broke off, marked incomplete; False where nothing had come."""
        seqs = reply.keep(meta=meta)
        if not len(seqs):
            return False
        stored = self.store.load(self.id, seqs.start)
        self._take([each.message for each in stored], seqs)
        self.incomplete.update(seqs)
        return True

    def _take(self, messages: Sequence[Message], seqs: range, at: float | None = None) -> None:
        # what a write found and settled (the half answer of a killed process) is loaded with the rest
        if seqs.start > len(self._messages):
            missed = self.store.load(self.id, len(self._messages))[: seqs.start - len(self._messages)]
            for each in missed:
                self._add(each.message, each.created)
        when = self._clock() if at is None else at
        for message in messages:
            self._add(message, when)

    def put_beside(self, *blocks: Offered) -> None:
        """Blocks that the requests to come show beside the newest user message; they never enter the history. They hold
        until the next user message."""
        self._offered = blocks
        self.conversation.offer(*blocks)

    def _add(self, message: Message, at: float) -> None:
        if message.role == "user":
            self._offered = ()
        self._times[len(self._messages)] = at
        self._messages.append(message)
        self.conversation.append(message, at=at)

    def must_have(self, seq: int) -> None:
        """Raises UsageError where there is no message of that number."""
        if not 0 <= seq < len(self._messages):
            raise UsageError(f"no message {seq}", hint=numbered(len(self._messages)))

    def pin(self, seq: int, on: bool = True) -> None:
        """Pins a stored message, or takes the pin off. Raises UsageError where there is none."""
        self.must_have(seq)
        (self.conversation.pin if on else self.conversation.unpin)(seq + self.lead)
        pins = self.pins | {seq} if on else self.pins - {seq}
        self.remember(pins=sorted(pins))

    def remember(self, **facts: Any) -> None:
        """Keeps facts about the session beside it; None takes one away."""
        self._meta = {key: value for key, value in {**self._meta, **facts}.items() if value is not None}
        self.store.change_session(self.id, meta=self._meta)

    def original(self, handle: str) -> str | None:
        """The text behind a handle, from the history; None where it is not there."""
        return recall_from(handle, list(self.conversation.messages))

    # ---- requests ----------------------------------------------------------------------------------------------

    def prepare(self, *, epoch: bool = False, passes: Sequence[str] = ()) -> Request:
        """The next request. `epoch` runs the mode's passes now, `passes` those named. Raises ContextOverflow with its bill."""
        now = self._clock()
        if not self.ladder:
            return self._as_it_is(now)
        prepared = self.conversation.prepare(
            mode=self.mode, window=self._limit, now=now, epoch=epoch, passes=passes, focus=self.focus
        )
        self.last = prepared
        body = prepared.request
        if self.model.api == "anthropic.messages":
            body = mark_cache(body)
        # numbered as users number messages: without the system prompt
        report = [{**line, "at": line["at"] - self.lead} if "at" in line else line for line in prepared.report]
        return Request(body, prepared.bill, prepared.plan, report, _count_messages(body))

    def _as_it_is(self, now: float) -> Request:
        settings = msgspec.structs.replace(self.settings, history_budget=None, max_context_tokens=None)
        whole = self._conversation(settings, None)
        prepared = whole.prepare(mode="full", window=_BOUNDLESS, now=now)
        self.last = prepared
        bill = Bill(prepared.bill)
        window, assumed = self.window
        bill["reserved"] = min(bill["reserved"], window // 4)
        bill["window"], bill["window_assumed"], bill["margin"], bill["held_back"] = window, assumed, 0, 0
        bill["free"] = window - bill["reserved"] - bill["used"]
        return Request(prepared.request, bill, prepared.plan, [], _count_messages(prepared.request))

    @property
    def window(self) -> tuple[int, bool]:
        """The window in tokens, and whether it is only assumed."""
        return window_of(self.model.model, self._limit)

    @property
    def _limit(self) -> int | None:
        """The smaller of what the server has (or was learned) and what the user set; None: the model's own."""
        return min((size for size in (self._window, self.settings.max_context_tokens) if size), default=None)

    def record(self, request: Request, usage: Usage | None, **facts: Any) -> float | None:
        """Records a request with its plan and bill; learns from its usage. Returns its cost, None where unknown."""
        prices = prices_for(self.model, self.own_prices)
        cost = cost_of(usage, prices) if usage is not None and usage.reported and prices is not None else None
        facts["meta"] = {
            **(facts.get("meta") or {}), "lead": self.lead, **({"pins": sorted(self.pins)} if self.pins else {})
        }  # fmt: skip
        self.store.record_request(
            self.id, mode=self.mode, model=self.model.full_name, plan=request.plan, bill=request.bill, usage=usage,
            cost=cost, **facts,
        )  # fmt: skip
        counted = request.bill["used"]
        learns = usage is not None and usage.reported and not request.bill["exact"]
        if learns and usage is not None and self.calibration.add(self.model.full_name, counted, usage.input):
            self._reckon()
        return cost

    @property
    def cost(self) -> float | None:
        """What the session has cost so far in US dollars; None where no request has a known price."""
        sums = self.store.usage("session", session=self.id)
        priced = [each for each in sums if each.requests - each.unpriced - each.failed > 0]
        return sum(each.cost for each in priced) if priced else None

    # ---- learning ----------------------------------------------------------------------------------------------

    def _reckon(self) -> None:
        """Holds back more where the provider counts more than brim does: in steps, since each one begins an epoch, and
        only where the usual ratio has left the margin behind."""
        name = self.model.full_name
        margin = self._margin if self._margin is not None else 0.02
        if self.calibration.factor(name) * (1 - margin) > 1:
            self._margin = min(0.5, math.ceil((1 - 1 / self.calibration.upper(name)) * 20) / 20)
            self._rebuild()
            self.remember(calibration=self.calibration.as_dict())

    def learn(self, error: ProviderOverflow, bill: Mapping[str, Any]) -> str:
        """Takes over what a refusal says about the window. Returns what was learned, in words."""
        before, used = int(bill["window"]), int(bill["used"])
        reserved = int(bill["reserved"])
        if error.window and error.window < before:
            learn_window(self.model.model, error.window)
            self._window = error.window
            said = f"the window is {error.window:,} tokens, not {before:,}"
        else:
            # It names no window, or the one we know: then it counts more than we do. Shrink by what it says, or by a fifth.
            said_size = error.requested if error.requested and error.requested > used else None
            share = min(0.95, (used + reserved) / said_size) if said_size else 0.8
            size = min(before, used + reserved)
            self._window = max(_LEAST_WINDOW, int(size * share * 0.98))
            counted = f" ({error.requested:,} by its count, {used:,} by brim's)" if error.requested else ""
            said = f"the provider refuses {used:,} tokens{counted}; brim goes on as if the window were {self._window:,}"
        self._rebuild()
        return said

    def learn_cut(self, cut: SilentCut, bill: Mapping[str, Any]) -> str:
        """A server that saw much less than was sent. Returns what that means, in words: it cut the prompt, and what it saw
        is its window; or it left the tool definitions out, whose model knows none."""
        tools = sum(line["tokens"] for line in bill["lines"] if line["kind"] == "tools")
        if tools and abs(cut.sent - tools - cut.seen) <= 0.1 * max(cut.seen, 64):
            return (
                f"the server saw {cut.seen:,} of about {cut.sent:,} tokens, as if the tool definitions ({tools:,}) were left "
                "out: its model seems to know no tool calls"
            )
        if cut.window >= _LEAST_WINDOW:
            self._window = cut.window
            self._rebuild()
        return cut.message

    # ---- changes -----------------------------------------------------------------------------------------------

    def switch_mode(self, mode: str) -> None:
        """Another context mode: the next view is built anew from the untouched history."""
        table_of(mode)
        self.mode = mode
        self.store.change_session(self.id, mode=mode)

    @property
    def partner(self) -> Partner:
        """The model that is asked, with what it is given."""
        return Partner(model=self.model, offer=self.offer, counter=self._own_counter, window=self._window)

    def switch_model(self, partner: Partner, *, stored: bool = True) -> None:
        """Another model; the history stays what it is, and what one model thought is not sent to another. `stored`: the
        session goes on with it in other processes, too."""
        self.model, self.offer, self._own_counter = partner.model, partner.offer, partner.counter
        self.counter = partner.counter if partner.counter is not None else counter_for(partner.model.model)
        self._window = partner.window if partner.window is not None else partner.model.window
        self._margin = self.settings.margin
        if stored:
            self.store.change_session(self.id, model=self.model.full_name)
        self._rebuild()

    def offer_tools(self, tools: Sequence[Mapping[str, Any]]) -> None:
        """Other tool definitions, in the model's wire form, for the requests to come."""
        self.offer = msgspec.structs.replace(self.offer, tools=tools)
        self._rebuild()

    def change_settings(self, settings: Settings) -> None:
        """Other settings for the requests to come."""
        self.settings, self._margin = settings, settings.margin
        self._rebuild()

    def _rebuild(self) -> None:
        if self._engaged is not None:
            self._engaged = self._build(self._engaged.plan)

    def _build(self, plan: Any, *, ask: bool = True) -> Conversation:
        settings = msgspec.structs.replace(self.settings, margin=self._margin)
        if not ask and settings.summarizer is not None:
            settings = msgspec.structs.replace(settings, summarizer=_not_asked)
        if settings.dialect is None and self.model.dialect is not None:
            settings = msgspec.structs.replace(settings, dialect=self.model.dialect)
        return self._conversation(settings, plan)

    def _conversation(self, settings: Settings, plan: Any) -> Conversation:
        body: dict[str, Any] = dict(self.offer.body)
        if self.offer.needs_maximum:
            room = min(self.offer.room, self.window[0] // 2)
            body["max_tokens"] = reserve(self.window[0], None, settings.max_response_tokens) + room
        if self.offer.tools:
            body["tools"] = list(self.offer.tools)
        made = Conversation(
            self.model.api, model=self.model.model, body=body, settings=settings, plan=plan, counter=self._own_counter
        )
        if self.offer.system:
            made.append(system(self.offer.system))
        with no_collection():
            messages = list(self._messages)
        for seq, message in enumerate(messages):
            if message.role == "assistant" and self._makers.get(seq, self._first) != self.model.full_name:
                message = without_thinking(message)
            made.append(message, at=self._times.get(seq))
        for seq in self.pins:
            if seq < len(messages):
                made.pin(seq + self.lead)
        made.offer(*self._offered)
        return made

    def preview(self) -> Prepared:
        """The request as it would go out now; nothing is changed by looking. Raises ContextOverflow."""
        return self._build(self.conversation.plan, ask=False).prepare(
            mode=self.mode, window=self._limit, now=self._clock(), focus=self.focus
        )

    def apart(self) -> Conversation:
        """The same history under no plan, to try something on; nothing of the session changes by it."""
        return self._build(None, ask=False)

    def explain(self) -> str:
        """The plan of the last request in words."""
        plan = self.last.as_plan() if self.last is not None else self.conversation.plan
        pins = {seq + self.lead for seq in self.pins}
        return explain(plan, self.conversation.messages, lead=self.lead, pins=pins)

    def close(self) -> None:
        """Lets others write the session."""
        self.store.release(self.id)


def numbered(count: int) -> str:
    """Which numbers the messages of a session of so many have."""
    return f"this session has messages 0 to {count - 1}" if count else "this session has no messages yet"


def prices_for(model: ModelRef, own: Mapping[str, Any]) -> Prices | None:
    """What a model costs, by the user's own prices first; None where it is not known."""
    return prices_of(model.full_name, own) or prices_of(model.model, own)


def without_thinking(message: Message) -> Message:
    """The message without what its model thought: signatures and hidden reasoning mean nothing to another model."""
    parts = tuple(part for part in message.parts if not isinstance(part, Thinking))
    return message if len(parts) == len(message.parts) else msgspec.structs.replace(message, parts=parts, edited=True)


def _not_asked(messages: list[dict[str, Any]]) -> str:
    """In a summarizer's place where nothing may be spent: the engine writes its own summary then."""
    raise ProviderError("no model is asked for a look ahead")


def _count_messages(body: Mapping[str, Any]) -> int:
    value = body.get("messages", body.get("input", ()))
    return len(value) if isinstance(value, list) else 1
