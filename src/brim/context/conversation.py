"""`brim.Conversation`: an append-only history that prepares one request after another, each at the cost of what is new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from brim.budget import Settings, load_settings
from brim.context.history import History
from brim.context.plan import Offered, Plan, plan_from
from brim.context.planning import Planner, check_fit
from brim.context.prepare import (
    ContextManager,
    Frame,
    Prepared,
    draft_of,
    frame_of,
    history_of,
    left_to_provider,
    planner_of,
    shared_manager,
)
from brim.context.rebase import rebase
from brim.context.render import render
from brim.conversation import Message
from brim.errors import UsageError
from brim.formats import Request, parse_message
from brim.tokens import Counter


class Conversation:
    """A growing history of one API's messages.

    `body` holds every other field of the requests (tools, temperature …). `plan` continues where an earlier process
    stopped. `append` takes a wire message of `api` or a `brim.conversation` value; `prepare` gives the next request.
    """

    def __init__(
        self,
        api: str = "openai.chat",
        *,
        model: str | None = None,
        body: Mapping[str, Any] | None = None,
        messages: Iterable[Mapping[str, Any] | Message] = (),
        settings: Settings | Mapping[str, Any] | None = None,
        plan: Any = None,
        counter: Counter | None = None,
        manager: ContextManager | None = None,
    ) -> None:
        self.api = api
        self.manager = manager if manager is not None else shared_manager()
        self.settings = self.manager.settings if settings is None else load_settings(settings)
        self.body = {**(body or {}), **({"model": model} if model is not None else {})}
        self.plan: Plan | None = plan_from(plan)
        self._given = self.plan
        self._counter = counter
        self._messages: list[Message] = []
        self._history: History | None = None
        self._frame: Frame | None = None
        self._key: tuple[Any, ...] | None = None
        self._planner: Planner | None = None
        self._view: list[Message] = []
        self._times: dict[int, float] = {}
        self._marked: set[int] = set()
        self._offered: tuple[Offered, ...] = ()
        self.extend(messages)

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def messages(self) -> Sequence[Message]:
        """The whole history, as it was appended."""
        return tuple(self._messages)

    def append(self, message: Mapping[str, Any] | Message, *, at: float | None = None) -> int:
        """Adds one message (made at Unix second `at`, where known) and returns its index. Nothing is ever taken away.

        A wire message that carries several results counts as several; the index is that of the first.
        """
        new = [message] if isinstance(message, Message) else parse_message(message, self.api)
        index = len(self._messages)
        self._messages.extend(new)
        if any(each.role == "user" for each in new):
            self._offered = ()
        if at is not None:
            self._times.update({index + offset: at for offset in range(len(new))})
        return index

    def extend(self, messages: Iterable[Mapping[str, Any] | Message]) -> None:
        """Adds messages in order."""
        for message in messages:
            self.append(message)

    def offer(self, *blocks: Offered) -> None:
        """Blocks to put beside the newest user message, as inserts of the plan: none of them becomes part of the history.
        They hold until the next user message; one for which there is no room is left out, and the report says so."""
        self._offered = blocks

    def pin(self, index: int) -> None:
        """Pins a whole message: it stays verbatim in every view. Raises UsageError for an index that does not exist."""
        self._check(index)
        self._marked.add(index)
        self._restart()

    def unpin(self, index: int) -> None:
        """Takes a pin off again."""
        self._check(index)
        self._marked.discard(index)
        self._restart()

    @property
    def pinned(self) -> frozenset[int]:
        return frozenset(self._marked)

    def _check(self, index: int) -> None:
        if not 0 <= index < len(self._messages):
            raise UsageError(
                f"no message {index}", hint=f"this conversation has messages 0 to {len(self._messages) - 1}"
            )

    def _restart(self) -> None:
        self._history = self._planner = None

    def prepare(
        self,
        *,
        mode: str = "auto",
        window: int | None = None,
        max_output: int | None = None,
        now: float | None = None,
        recall_tool: bool = False,
        epoch: bool = False,
        passes: Sequence[str] = (),
        focus: str = "",
    ) -> Prepared:
        """The next request, as `brim.prepare` gives it. `epoch` runs the mode's passes now, whatever the pressure;
        `passes` runs these ("truncate", "expire"), to their ends. `focus`: the user's words on what a summary has to
        keep, for this request and, given again, for those to come."""
        frame = self._framed((mode, window, max_output, recall_tool))
        history = self._grown(frame)
        before = self.plan
        if frame.request.held:
            prepared = left_to_provider(frame, history, before)
            self.plan = prepared.as_plan()
            return prepared
        planner = self._planner
        changed = False
        carried = planner is not None and before is not None and before.line == frame.line
        if carried and planner is not None and before is not None:
            known = len(planner.draft.rank)
            changed = history.altered_from < before.sent.count  # by a repair: a late result in place of a stand-in, say
            carried = planner.draft.grow(now)
        if not carried or planner is None:
            before, cause = rebase(before, history, frame.line, trusted=before is not self._given, changed=changed)
            draft = draft_of(frame, history, before, now)
            planner = self._planner = planner_of(frame, draft, self.manager.terms)
            known = -1
        else:
            cause = ""
        planner.offered = self._offered
        plan = planner.next(before, frame.line, cause, force=epoch, passes=tuple(passes), focus=focus)
        if known >= 0 and before is not None and self._same_view(before, plan, known):
            self._view = [*self._view, *history.messages[known:]]
        else:
            self._view = render(history, plan, recall=frame.recall)
        prepared = Prepared(frame, history, plan, self._view, planner.report)
        if planner.draft.used > planner.draft.budget:
            self._planner = None  # the fates of a request that was never sent are not kept
            check_fit(planner.draft, prepared.bill)
        self.plan = plan
        return prepared

    def _same_view(self, before: Plan, plan: Plan, known: int) -> bool:
        return (
            plan.fates is before.fates
            and plan.summary is before.summary
            and plan.inserts == before.inserts
            and before.sent.count == known
        )

    def _framed(self, key: tuple[Any, ...]) -> Frame:
        if self._frame is None or self._key != key:
            mode, window, max_output, recall_tool = key
            request = _request(self.api, self.body)
            self._frame = frame_of(
                request,
                settings=self.settings,
                mode=mode,
                window=window,
                max_output=max_output,
                recall_tool=recall_tool,
                counter=self._counter,
                calibration=self.manager.calibration,
            )
            self._key = key
            self._restart()
        return self._frame

    def _grown(self, frame: Frame) -> History:
        history = self._history
        if history is None:
            history = self._history = history_of(frame)
            history.lead(frame.request.messages)
        fresh = self._messages[len(history.source) - history.led :]
        start = len(history.source)
        for offset in range(len(fresh)):
            at = self._times.get(start - history.led + offset)
            if at is not None:
                history.times[start + offset] = at
        history.extend(fresh)
        led = history.led
        history.marked = (
            set(history.places_of(index + led for index in self._marked).values()) if self._marked else set()
        )
        if history.repairs and self._times:  # a repair moves the places that times and pins belong to
            places = history.places_of(index + led for index in self._times)
            history.times = {places[index + led]: at for index, at in self._times.items() if index + led in places}
        return history


def _request(api: str, body: Mapping[str, Any]) -> Request:
    """A request of this API without any message yet."""
    from brim.formats import parse_request

    empty: dict[str, Any] = {"input": []} if api == "openai.responses" else {"messages": []}
    return parse_request({**body, **empty}, api)


__all__ = ["Conversation"]
