"""`brim.prepare`: a request body in, the body to send out, with its plan, bill and report.

parse the body -> count -> budget -> plan (epochs, passes) -> render the view -> bill
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from brim.budget import Bill, Budget, Settings, budget_for, load_settings, relative_prices, reserve, window_of
from brim.context.account import make_account
from brim.context.draft import Draft
from brim.context.history import History
from brim.context.known import Known, new_entry
from brim.context.offer import RECALL_NAMES, offer_recall
from brim.context.plan import Plan, Sent, plan_from, plan_to_dict
from brim.context.planning import Planner, check_fit
from brim.context.rebase import rebase
from brim.context.relevance import Terms, make_terms
from brim.context.render import render
from brim.context.repair import AS_IT_IS
from brim.context.weighing import Weigher
from brim.conversation import Message, Thinking
from brim.errors import UsageError
from brim.formats import (
    BINDING_BETA,
    Request,
    ask_to_drop,
    binds_thinking,
    dialect_of,
    parse_message,
    parse_request,
    render_request,
    signs_thinking,
)
from brim.tokens import Calibration, Counter, counter_for, estimate_counter

DEFAULTS = Settings()
_END_OF_TIME = 1e12
"""Unix seconds beyond which `now` is no time but milliseconds, or not a number."""


class Prepared:
    """What one `prepare` gives. `request`: the body to send; `plan`: its plan as JSON-serialisable values, to be passed as
    `previous` next time; `bill`: the itemised account; `report`: what each pass did, with numbers; `changed`: False
    where the request is what came in; `used`: tokens of the request as the bill counts them."""

    def __init__(
        self, frame: Frame, history: History, plan: Plan, view: list[Message], report: list[dict[str, Any]]
    ) -> None:
        self._frame = frame
        self._history = history
        self._count = len(history)
        self._plan = plan
        self._view = view
        self.report = report
        self._request: dict[str, Any] | None = None
        self._plan_dict: dict[str, Any] | None = None
        self._bill: Bill | None = None

    @property
    def request(self) -> dict[str, Any]:
        if self._request is None:
            frame = self._frame
            body = render_request(frame.request, self._view, tools=frame.added_tools)
            self._request = ask_to_drop(body) if self.unbinds_thinking else body
        return self._request

    @property
    def unbinds_thinking(self) -> bool:
        """The model binds thinking to its prefix and the view changed that: the request asks the API to drop the blocks
        that no longer fit. It must then be sent with the headers of `headers`."""
        frame = self._frame
        return (
            frame.request.api == "anthropic.messages"
            and binds_thinking(frame.request.model)
            and self.changed
            and _thinks(self._view)
        )

    @property
    def headers(self) -> dict[str, str]:
        """HTTP headers this request needs beside the caller's own; brim's provider client sends them by itself."""
        return {"anthropic-beta": BINDING_BETA} if self.unbinds_thinking else {}

    @property
    def plan(self) -> dict[str, Any]:
        if self._plan_dict is None:
            self._plan_dict = plan_to_dict(self.as_plan())
        return self._plan_dict

    def as_plan(self) -> Plan:
        """The plan as a value, its `sent` hash filled in."""
        plan = self._plan
        if not plan.sent.hash:
            sent = msgspec.structs.replace(plan.sent, hash=self._history.hash_at(plan.sent.count))
            self._plan = plan = msgspec.structs.replace(plan, sent=sent)
        return plan

    @property
    def bill(self) -> Bill:
        if self._bill is None:
            self._bill = make_account(self._frame, self._history, self._plan, self._view)
        return self._bill

    @property
    def changed(self) -> bool:
        plan = self._plan
        return bool(
            plan.fates
            or plan.summary
            or plan.inserts
            or plan.repairs
            or self._frame.request.cleaned
            or self._frame.added_tools
        )

    @property
    def used(self) -> int:
        return int(self.bill["used"])

    @property
    def model(self) -> str | None:
        return self._frame.request.model


def _thinks(view: list[Message]) -> bool:
    return any(type(part) is Thinking for message in view for part in message.parts)


class Frame(msgspec.Struct):
    """What surrounds the messages of a request: its body, counter, budget, and what decides the line of its plans."""

    request: Request
    settings: Settings
    mode: str
    counter: Counter
    dialect: str
    window: int
    window_assumed: bool
    budget: Budget
    price_write: float
    price_read: float
    prices_known: bool
    recall: bool
    can_refetch: bool
    added_tools: list[Mapping[str, Any]] | None
    line: str


class ContextManager:
    """Settings, and the caches that make the next request cheap. One for a process, or one for each tenant."""

    def __init__(self, settings: Settings | Mapping[str, Any] | None = None) -> None:
        self.settings = load_settings(settings)
        self.terms = make_terms()
        self.calibration = Calibration()
        self._known = Known()

    def observe(self, prepared: Prepared, input_tokens: int) -> None:
        """What the provider counted for a prepared request, cached tokens included. Where the counter is not the model's
        own, later budgets hold back what its count has been short by."""
        self.calibration.add(prepared.model, prepared.used, input_tokens)

    def prepare(
        self,
        request: Mapping[str, Any],
        api: str = "openai.chat",
        mode: str = "auto",
        window: int | None = None,
        max_output: int | None = None,
        previous: Any = None,
        now: float | None = None,
        recall_tool: bool = False,
        settings: Settings | Mapping[str, Any] | None = None,
        counter: Counter | None = None,
    ) -> Prepared:
        """See `brim.prepare`."""
        before = plan_from(previous)
        if now is not None and (type(now) not in (int, float) or not abs(now) < _END_OF_TIME):
            raise UsageError(f"now is {now!r}", hint="give Unix seconds, or none to let nothing age")
        chosen = self.settings if settings is None else load_settings(settings)
        with self._known.lock:
            found = self._known.find(request, api) if isinstance(request, Mapping) and not recall_tool else None
            parsed = found[1] if found is not None else parse_request(request, api)
            frame = frame_of(
                parsed,
                settings=chosen,
                mode=mode,
                window=window,
                max_output=max_output,
                recall_tool=recall_tool,
                counter=counter,
                calibration=self.calibration,
            )
            entry = found[0] if found is not None else None
            if entry is not None and serves(entry.history, frame):
                history = entry.history
                history.extend(parsed.messages)
            else:
                if entry is not None:  # the same messages, for another counter or dialect: read them whole
                    frame.request = parse_request(request, api)
                history = history_of(frame, frame.request.messages)
                entry = new_entry(request, frame.request, history) if not recall_tool else None
            if entry is not None:
                self._known.keep(entry, request)
            return self.run(frame, history, before, now, trusted=before is previous)

    def run(
        self, frame: Frame, history: History, before: Plan | None, now: float | None, *, trusted: bool = True
    ) -> Prepared:
        """One request over a history that was built for it. `trusted`: the plan before never left the process."""
        if frame.request.held:
            return left_to_provider(frame, history, before)
        before, cause = rebase(before, history, frame.line, trusted=trusted)
        draft = draft_of(frame, history, before, now)
        planner = planner_of(frame, draft, self.terms)
        plan = planner.next(before, frame.line, cause)
        view = render(history, plan, recall=frame.recall)
        prepared = Prepared(frame, history, plan, view, planner.report)
        if draft.used > draft.budget:
            check_fit(draft, prepared.bill)
        return prepared


def history_of(frame: Frame, messages: Iterable[Message] = ()) -> History:
    """A history for this frame's counter and for what its model takes."""
    return History(frame.counter, frame.dialect, messages, signs=signs_thinking(frame.request.model))


def serves(history: History, frame: Frame) -> bool:
    """Whether a history was read for the same counter, dialect and kind of model."""
    signs = signs_thinking(frame.request.model)
    return history.counter is frame.counter and history.dialect == frame.dialect and history.signs == signs


def left_to_provider(frame: Frame, history: History, before: Plan | None) -> Prepared:
    """A request whose history the provider holds or edits itself: it goes out as it came, and is only counted."""
    held, count = frame.request.held, len(history)
    plan = Plan(frame.mode, frame.line, cause=f"{held}: left to the provider", sent=Sent(count))
    if before is not None and before.line == frame.line:
        plan = msgspec.structs.replace(plan, epoch=before.epoch, requests=before.requests)
    plan = msgspec.structs.replace(plan, requests=plan.requests + 1)
    report = [{"pass": "left to the provider", "notice": f"the request says {held}"}]
    return Prepared(frame, history, plan, list(history.messages), report)


def planner_of(frame: Frame, draft: Draft, terms: Terms) -> Planner:
    """A planner for this frame. Bytes are those of the body as `json.dumps` writes it: no client's is larger."""

    bound = binds_thinking(frame.request.model) and frame.request.api == "anthropic.messages"

    def body_bytes(view: list[Message]) -> int:
        body = render_request(frame.request, view, tools=frame.added_tools)
        if bound and _thinks(view):  # what is cut for its bytes has to ask for the blocks that no longer fit
            body = ask_to_drop(body)
        return len(json.dumps(body))

    return Planner(draft, frame.settings, terms, weigher_of(frame), body_bytes)


def weigher_of(frame: Frame) -> Weigher | None:
    """The economics of auto, None where the mode or the settings do not weigh prices."""
    if frame.mode != "auto" or not frame.settings.price_weighing:
        return None
    return Weigher(
        frame.price_write,
        frame.price_read,
        can_recall=frame.can_refetch,
        bound=frame.request.api == "anthropic.messages" and binds_thinking(frame.request.model),
    )


def draft_of(frame: Frame, history: History, before: Plan | None, now: float | None) -> Draft:
    """A draft that stands where the plan before left off."""
    draft = Draft(
        history,
        frame.settings,
        mode=frame.mode,
        window=frame.window,
        budget=frame.budget.messages,
        now=now,
        recall=frame.recall,
        fates=before.fates if before is not None else (),
        seen=before.seen if before is not None else (),
    )
    if before is not None and (before.summary is not None or before.inserts or draft.ranges):
        shown = render(history, before, recall=frame.recall)
        draft.extra = sum(history.counter.count_messages(shown)) - draft.total
    return draft


def frame_of(
    request: Request,
    *,
    settings: Settings,
    mode: str,
    window: int | None,
    max_output: int | None,
    recall_tool: bool,
    counter: Counter | None = None,
    calibration: Calibration | None = None,
) -> Frame:
    """Counter, window, budget and prices of a request. Raises ContextOverflow where the fixed parts alone exceed the window."""
    from brim.context.modes import table_of

    table_of(mode)
    model = request.model
    dialect = AS_IT_IS if request.held else settings.dialect or dialect_of(model, request.api)
    recall_tool = recall_tool and not request.held
    if counter is None:
        counter = (
            counter_for(model) if settings.estimate == "classes" else estimate_counter(settings.estimate, model=model)
        )
    explicit = _tokens("window", window, 1, "the model's own") or settings.max_context_tokens
    max_output = _tokens("max_output", max_output, 0, "what the body says")
    size, assumed = window_of(model, explicit)
    added: list[Mapping[str, Any]] | None = None
    if recall_tool:
        request, added = offer_recall(request)
    tools = added if added is not None else request.tools
    asked = max_output if max_output is not None else request.max_output
    if assumed and asked is not None and asked >= size:
        asked = size // 2  # a reply larger than the window shows that the assumption is wrong, not the request
    reserved = reserve(size, asked, settings.max_response_tokens)
    share = _margin(settings, counter, model, calibration)
    tool_tokens = counter.count_tools(tools) if tools else 0
    margin = int(size * share)
    named = _tool_sizes(tools, counter) if tool_tokens > size - reserved - margin else tool_tokens
    budget = budget_for(size, reserved, margin, named, counter.priming, settings.history_budget)
    write, read, known = _prices(model, settings)
    recall = recall_tool or settings.can_recall is True or (settings.can_recall is None and _has_recall(tools))
    can_refetch = (
        settings.can_recall if settings.can_recall is not None else recall or bool(tools) or "tools" not in request.body
    )
    line = _line(mode, model or "", size, reserved, dialect, request.api, settings, recall)
    return Frame(
        request,
        settings,
        mode,
        counter,
        dialect,
        size,
        assumed,
        budget,
        write,
        read,
        known,
        recall,
        can_refetch,
        added,
        line,
    )


def _tokens(name: str, value: Any, least: int, none: str) -> int | None:
    """A number of tokens a caller gave. Raises UsageError for what is none."""
    if value is None or (type(value) is int and value >= least):
        return value
    raise UsageError(f"{name} is {value!r}", hint=f"give tokens as a whole number from {least} on, or none for {none}")


UNCALIBRATED_MARGIN = 0.02
"""Held back where the counter is not the model's own and nothing is known yet of how far it is off."""


def _margin(settings: Settings, counter: Counter, model: str | None, calibration: Calibration | None) -> float:
    """The share of the window held back against counting errors."""
    if settings.margin is not None:
        return settings.margin
    if counter.exact:
        return 0.0
    if calibration is None or not calibration.samples(model):
        return UNCALIBRATED_MARGIN
    return max(0.0, 1 - 1 / max(1.0, calibration.upper(model)))


def _tool_sizes(tools: Sequence[Mapping[str, Any]], counter: Counter) -> dict[str, int]:
    """Tokens by tool name, for the error that says which are too large."""
    sizes: dict[str, int] = {}
    for tool in tools:
        name = tool_name(tool) or "unnamed"
        sizes[name] = sizes.get(name, 0) + counter.count_tools([tool])
    return sizes


def tool_name(tool: Mapping[str, Any]) -> str:
    """The name of a tool definition of any API, "" where it has none."""
    function = tool.get("function")
    name = function.get("name") if isinstance(function, Mapping) else tool.get("name")
    return name if isinstance(name, str) else ""


def _prices(model: str | None, settings: Settings) -> tuple[float, float, bool]:
    if settings.price_write is not None and settings.price_read is not None:
        return settings.price_write, settings.price_read, True
    write, read, known = relative_prices(model)
    return (
        settings.price_write if settings.price_write is not None else write,
        settings.price_read if settings.price_read is not None else read,
        known,
    )


def _has_recall(tools: Sequence[Mapping[str, Any]]) -> bool:
    return any(tool_name(tool) in RECALL_NAMES for tool in tools)


def _line(
    mode: str, model: str, window: int, reserved: int, dialect: str, api: str, settings: Settings, recall: bool
) -> str:
    key = f"{mode}|{model}|{window}|{reserved}|{dialect}|{api}|{recall}|{_settings_key(settings)}"
    return blake2b(key.encode(), digest_size=8).hexdigest()


def _settings_key(settings: Settings) -> str:
    return _default_key() if settings is DEFAULTS else _key_of(settings)


@lru_cache(maxsize=1)
def _default_key() -> str:
    return _key_of(DEFAULTS)


def _key_of(settings: Settings) -> str:
    values = {name: getattr(settings, name) for name in settings.__struct_fields__}
    for name in ("summarizer", "relevance"):
        values[name] = values[name] is not None
    return blake2b(msgspec.json.encode(values, order="deterministic"), digest_size=8).hexdigest()


_shared: ContextManager | None = None


def shared_manager() -> ContextManager:
    """The manager behind `brim.prepare`, made on first use. It holds caches alone; no result depends on them."""
    global _shared
    if _shared is None:
        _shared = ContextManager(DEFAULTS)
    return _shared


def prepare(
    request: Mapping[str, Any],
    api: str = "openai.chat",
    mode: str = "auto",
    window: int | None = None,
    max_output: int | None = None,
    previous: Any = None,
    now: float | None = None,
    recall_tool: bool = False,
    settings: Settings | Mapping[str, Any] | None = None,
) -> Prepared:
    """The request as it should be sent.

    `request`: a whole body of `api` ("openai.chat", "openai.responses", "anthropic.messages"); it is not altered.
    `mode`: full, compact or auto. `window`, `max_output`: tokens; None is the model's own, or what the body says.
    `previous`: the plan of the request before. `now`: Unix seconds; without it nothing ages. `recall_tool`: offer the
    model a tool that fetches originals, from the first request on. `settings`: a `Settings` or a mapping of its fields.

    A request whose history the provider holds or edits itself (`previous_response_id`, `conversation`, `thread`,
    `context_management`) comes back as it is, and is only counted.

    Raises UsageError (body, api, mode, numbers, `previous`), ConfigError (settings), ContextOverflow (what cannot go
    exceeds the budget), RequestTooLarge (or `max_request_bytes`).
    """
    return shared_manager().prepare(request, api, mode, window, max_output, previous, now, recall_tool, settings)


def count(request: Mapping[str, Any], api: str = "openai.chat", *, counter: Counter | None = None) -> int:
    """Tokens of a request body: its messages, tool definitions and reply priming, as `prepare` bills them."""
    parsed = parse_request(request, api)
    used = counter if counter is not None else counter_for(parsed.model)
    tools = used.count_tools(parsed.tools) if parsed.tools else 0
    return sum(used.count_messages(parsed.messages)) + tools + used.priming


__all__ = ["ContextManager", "Frame", "Prepared", "count", "frame_of", "parse_message", "prepare", "shared_manager"]
