"""The loop: ask the model, run the tools it calls, ask again.

    user text -> store -> view, plan, bill -> provider -> events -> store -> tools -> store -> again

A message is stored before it is used. Whatever happens is emitted, failures before any text included, and the last
event of a turn is its `Result`. Interrupted or broken, an answer keeps what had come, marked incomplete.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from contextvars import ContextVar
from typing import Any

import msgspec

from brim.agent import events as ev
from brim.agent.advice import advice_for
from brim.agent.debuglog import DebugLog
from brim.agent.fallback import Fallbacks
from brim.agent.kept import kept_of, storable
from brim.agent.permit import Permits
from brim.agent.session import AgentSession, Partner, Request
from brim.agent.summarizer import ModelSummarizer
from brim.budget.usage import NONE
from brim.conversation import Message, Part, ToolCall, result, user
from brim.errors import (
    BrimError,
    Interrupted,
    PermissionDenied,
    ProviderError,
    ProviderOverflow,
    ProviderUnavailable,
    RateLimited,
    Refused,
    SchemaUnmet,
    SpendLimit,
    StepLimit,
    StreamBroken,
)
from brim.formats import parse_message
from brim.providers import Done, Notice, Provider, RetryPolicy, TextDelta, ThinkingDelta, silently_cut
from brim.providers.retry import stream_with_retries
from brim.tools import Tool, ToolContext, ToolOutput, run_calls

MAX_STEPS = 50
MAX_CALLS = 128


class Agent:
    """Answers one user message after the other over one session. `emit` is told of everything, in order.

    `max_steps`: requests of one turn; `max_calls`: calls of one message that are run; `fallbacks`: models that are asked
    for the rest of a turn where a provider is down; `max_cost`: US dollars of the session (None: no limit);
    `redact` masks secrets in what tools return, before anything else sees it but the blob store.
    """

    def __init__(
        self,
        session: AgentSession,
        provider: Provider,
        emit: ev.Emit,
        *,
        tools: Sequence[Tool] = (),
        context: ToolContext | None = None,
        permits: Permits | None = None,
        max_steps: int = MAX_STEPS,
        max_calls: int = MAX_CALLS,
        fallbacks: Fallbacks | None = None,
        max_cost: float | None = None,
        policy: RetryPolicy | None = None,
        debug: DebugLog | None = None,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self.session = session
        self.provider = provider
        self.emit = emit
        self.tools = list(tools)
        self.context = context
        self.permits = permits
        self.max_steps = max_steps
        self.max_calls = max_calls
        self.fallbacks = fallbacks
        self.max_cost = max_cost
        self.policy = policy or RetryPolicy()
        self.debug = debug or DebugLog()
        self.redact = redact
        self.get_ready: Callable[[], Awaitable[object]] | None = None
        """Awaited before the first request of each turn: tools that take a while to start are there then."""
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._warned_of_cut = False
        self._first: tuple[Partner, Provider] | None = None
        self._begin()

    def _begin(self) -> None:
        self._text = ""
        self._steps = 0
        self._incomplete = False
        self._data: Any = None
        self._told_of_form = False
        self._usage = NONE
        self._cost: float | None = None
        self._request: Request | None = None
        self._refused_before = len(self.permits.refused) if self.permits is not None else 0

    # ---- a turn ------------------------------------------------------------------------------------------------

    async def ask(self, text: str, *more: Part) -> ev.Result:
        """One user message and all that follows. Never raises for what goes wrong: the result says it."""
        began = time.monotonic()
        self._begin()
        self._back_to_first()
        self._stopped = False
        session = self.session
        self.emit(ev.Started(session=session.id, model=session.model.full_name, mode=session.mode))
        error: BrimError | None = None
        self._task = asyncio.create_task(self._turn(user(text, *more)))
        try:
            await self._task
        except asyncio.CancelledError:
            if not self._stopped:
                raise
            error = Interrupted("interrupted", hint="what had come is kept; ask on")
        except BrimError as failure:
            error = failure
        except BrokenPipeError:
            raise  # nobody reads the events any more
        except Exception as failure:  # a defect must not take the session with it, nor pass in silence
            self.debug.write("defect", traceback=traceback.format_exc())
            error = BrimError(
                f"{type(failure).__name__}: {failure}", hint="a defect in brim; --debug FILE records where"
            )
        finally:
            self._task = None
        if error is not None:
            self._tell(error)
        outcome = self._result(error, time.monotonic() - began)
        self.emit(outcome)
        return outcome

    def stop(self) -> bool:
        """Ends the turn that is under way; what came is kept. False where there is none."""
        if self._task is None or self._task.done():
            return False
        self._stopped = True
        self._task.cancel()
        return True

    async def _turn(self, message: Message) -> None:
        self._check_cost()
        self.session.append(message)
        if self.get_ready is not None:
            await self.get_ready()
        for step in range(1, self.max_steps + 1):
            self._steps = step
            done, answer = await self._answer(step)
            calls = [call for each in answer for call in each.calls]
            if not calls:
                self._judge(done, answer)
                if self._keeps_to_form(answer):
                    return
                continue
            await self._run(calls, done.finish_reason)
            self._check_cost()
        raise StepLimit(
            f"the model was asked {self.max_steps} times and still calls tools",
            hint="go on with another message, or raise --max-steps",
        )

    # ---- one request -------------------------------------------------------------------------------------------

    async def _answer(self, step: int) -> tuple[Done, list[Message]]:
        """The model's answer, stored. A window that turns out smaller is learned, and the request made once more."""
        refused = False
        while True:
            request = self._request = await self.prepare()
            self._say_request(step, request)
            try:
                return await self._stream(request)
            except ProviderOverflow as error:
                if refused or error.partial or not self.session.ladder:
                    raise
                refused = True
                learned = self.session.learn(error, request.bill)
                self._note(f"{error.message}. Learned: {learned}; asking again", "overflow", error.as_dict())
            except (ProviderUnavailable, RateLimited, StreamBroken) as error:
                if not await self._fall_back(error):
                    raise
                refused = False

    async def prepare(self, *, epoch: bool = False) -> Request:
        """The next request (`epoch`: shortened now). A model may be asked for a summary meanwhile; cancelled, brim writes
        its own, and the preparation is done before anything else can begin one."""
        summarizer = self.session.settings.summarizer
        if not isinstance(summarizer, ModelSummarizer):
            return self.session.prepare(epoch=epoch)
        summarizer.begin()
        work = asyncio.ensure_future(asyncio.to_thread(self.session.prepare, epoch=epoch))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            summarizer.give_up()
            with suppress(BrimError):
                await work
            raise

    async def _stream(self, request: Request) -> tuple[Done, list[Message]]:
        began = time.monotonic()
        first: float | None = None
        reply = self.session.begin_reply()
        done: Done | None = None
        failure: BaseException | None = None
        said = ""
        try:
            retrying = stream_with_retries(self.provider, request.body, policy=self.policy, report=self._on_notice)
            async with aclosing(retrying) as stream:
                async for event in stream:
                    if isinstance(event, TextDelta):
                        first = first or time.monotonic()
                        reply.extend(event.text)
                        said += event.text
                        self._text = said
                        self.emit(ev.Text(event.text))
                    elif isinstance(event, ThinkingDelta):
                        first = first or time.monotonic()
                        self.emit(ev.Thinking(event.text))
                    elif isinstance(event, Notice):
                        self._on_notice(event)
                    elif isinstance(event, Done):
                        done = event
            if done is None:
                raise ProviderError(f"{self.provider.name} ended without an answer", provider=self.provider.name)
            if done.ended == "overflow" and not said:
                raise ProviderOverflow(
                    "the provider stopped: the context window is full", requested=done.usage.input or None
                )
            answer = parse_message(done.message, done.api)
            self.session.finish_reply(reply, [storable(each) for each in answer])
            return done, answer
        except BaseException as error:
            failure = error
            why = error.kind if isinstance(error, BrimError) else type(error).__name__
            self._incomplete = self.session.keep_reply(reply, {"why": why}) or self._incomplete
            raise
        finally:
            self._account(request, done, failure, began, first)

    def _account(
        self, request: Request, done: Done | None, failure: BaseException | None, began: float, first: float | None
    ) -> None:
        duration = time.monotonic() - began
        usage = done.usage if done is not None else None
        error = None
        if failure is not None:
            error = f"{failure.kind}: {failure.message}" if isinstance(failure, BrimError) else type(failure).__name__
        finish = done.finish_reason if done is not None else None
        ttft = first - began if first is not None else None
        cost = self.session.record(
            request, usage, duration=duration, ttft=ttft, finish=finish, error=error, meta={"step": self._steps}
        )
        self.debug.write(
            "answer", step=self._steps, usage=usage, finish=finish, seconds=round(duration, 3), error=error
        )
        if usage is None:
            return
        self._usage = self._usage + usage
        if cost is not None:
            self._cost = (self._cost or 0.0) + cost
        self.emit(ev.Used(usage=usage, cost=cost, ttft=ttft, duration=duration, finish=finish or ""))
        if not self._warned_of_cut and usage.reported and (cut := silently_cut(request.bill["used"], usage.input)):
            self._warned_of_cut = True
            said = self.session.learn_cut(cut, request.bill)
            self._note(said, "silent_cut", {"seen": cut.seen, "sent": cut.sent})

    def _judge(self, done: Done, answer: list[Message]) -> None:
        """How a last answer ended, where that is not simply well."""
        if done.ended == "output_limit":
            self._incomplete = True
            self._note("the answer was cut at the maximum of tokens (--max-tokens, max_response_tokens)", "cut")
        elif done.ended == "overflow":
            self._incomplete = True
            self._note("the answer was cut: the context window is full", "cut")
        elif done.ended == "refused":
            self._incomplete = True
            raise Refused(
                f"{self.session.model.full_name} refused to answer (it ended with {done.finish_reason!r})",
                provider=self.provider.name,
                model=self.session.model.model,
                hint="put the question differently, or ask another model with --model",
            )
        elif not any(each.text.strip() for each in answer):
            if self.permits is not None and (refused := self.permits.refused[self._refused_before :]):
                raise PermissionDenied(
                    f"no answer came; {refused[-1]}",
                    hint="allow what it needs with --allow, or ask for something else",
                )
            self._note("the model answered without a word", "empty")

    def _keeps_to_form(self, answer: list[Message]) -> bool:
        """Whether an answer keeps to the schema, where there is one. If not, the model is told why, once."""
        if (form := self.session.offer.form) is None:
            return True
        self._data, problem = form.read("\n".join(each.text for each in answer))
        if problem is None:
            return True
        if self._told_of_form:
            raise SchemaUnmet(
                f"the answer does not keep to the schema, asked twice: {problem}",
                hint="say in the prompt what is wanted, make the schema simpler, or ask another model",
            )
        self._told_of_form = True
        self._note(f"the answer does not keep to the schema ({problem}); asking once more", "schema")
        self._check_cost()
        self.session.append(user(form.again(problem)), meta={"purpose": "schema"})
        return False

    # ---- another model where a provider is down ------------------------------------------------------------------

    async def _fall_back(self, error: ProviderError) -> bool:
        """Goes on with the next fallback model that can be opened, until the turn ends. False where there is none."""
        if error.partial or self.fallbacks is None:
            return False
        before = self.session.model.full_name
        pair = await self.fallbacks.next(
            self.tools,
            lambda name, failure: self._note(
                f"the fallback {name} cannot be used: {failure.message}{_hinted(failure)}", "fallback"
            ),
        )
        if pair is None:
            return False
        if self._first is None:
            self._first = self.session.partner, self.provider
        partner, self.provider = pair
        self.session.switch_model(partner, stored=False)
        self._note(
            f"{error.message}; {before} is left for this turn, going on with {partner.model.full_name}",
            "fallback",
            {"from": before, "to": partner.model.full_name, "error": error.as_dict()},
        )
        for said in partner.offer.notes:
            self._note(said, "model")
        return True

    def _back_to_first(self) -> None:
        """The session's own model again, once a turn with another has ended."""
        if self.fallbacks is not None:
            self.fallbacks.begin_turn()
        if self._first is not None:
            partner, self.provider = self._first
            self._first = None
            self.session.switch_model(partner, stored=False)

    async def close(self) -> None:
        """Closes the providers of fallback models that were asked."""
        if self.fallbacks is not None:
            await self.fallbacks.close()

    # ---- tools -------------------------------------------------------------------------------------------------

    async def _run(self, calls: Sequence[ToolCall], finish_reason: str) -> None:
        """Runs the calls of one answer. Results are stored in the order of the calls, each as soon as those before it are, and
        told once they are stored."""
        assert self.context is not None
        began = time.monotonic()
        waiting: dict[str, tuple[ToolCall, ToolOutput, Message, float]] = {}
        pending = list(dict.fromkeys(call.id for call in calls))
        for call in calls:
            self.emit(ev.ToolStarted(id=call.id, name=call.name, arguments=call.arguments))
            self.debug.write("tool_call", step=self._steps, id=call.id, name=call.name, arguments=call.arguments)

        permits, started = self.permits, ContextVar[float | None]("started", default=None)

        async def permit(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> str | None:
            assert permits is not None
            context.changes.clear()
            refusal = await permits(tool, arguments, context)
            started.set(time.monotonic())  # the user's time to answer is none of the call's
            return refusal

        async def on_result(call: ToolCall, output: ToolOutput) -> None:
            seconds = time.monotonic() - (started.get() or began)
            started.set(time.monotonic())
            if self.context is not None:
                self.context.changes.clear()
            output = self.masked(output)
            message = result(call.id, output.text, is_error=output.is_error or None, media=output.media)
            if (
                call.id not in pending
            ):  # another call of an id that was used: a view gives it one of its own, and this answer
                keep(call, output, message, seconds)
                return
            waiting[call.id] = call, output, message, seconds
            while pending and pending[0] in waiting:
                keep(*waiting.pop(pending.pop(0)))

        def keep(call: ToolCall, output: ToolOutput, message: Message, seconds: float) -> None:
            self.session.append(message, meta=kept_of(output))
            self._say_result(call, output, message, seconds)

        try:
            await run_calls(
                calls[: self.max_calls], self.context, tools=self.tools, permit=None if permits is None else permit,
                finish_reason=finish_reason, on_result=on_result,
            )  # fmt: skip
            for call in calls[self.max_calls :]:
                if call.id in pending:
                    await on_result(call, ToolOutput(self._not_run(len(calls)), True))
        except asyncio.CancelledError:
            text = "Error: the user interrupted this call before it was done"
            changes = list(self.context.changes)
            for id in pending:
                if id in waiting:
                    keep(*waiting[id])
                    continue
                # a file was changed all the same: it can be put back
                kept = {"checkpoint": changes.pop()} if changes else None
                self.session.append(result(id, text, is_error=True), meta=kept)
            raise

    def _not_run(self, count: int) -> str:
        return (
            f"Error: not run. Your message made {count:,} calls, and the first {self.max_calls:,} of one message are run. "
            "Look at their results, then call again what is still needed"
        )

    def masked(self, output: ToolOutput) -> ToolOutput:
        """The output as the model may see it. Where a secret was masked, the blob store has the text as it was."""
        if self.redact is None or (text := self.redact(output.text)) == output.text:
            return output
        handle = output.handle
        if handle is None and self.context is not None:
            handle = self.context.blobs.put(output.text.encode("utf-8", "surrogateescape"))
        return msgspec.structs.replace(output, text=text, handle=handle)

    # ---- telling -----------------------------------------------------------------------------------------------

    def _say_request(self, step: int, request: Request) -> None:
        self.emit(
            ev.Requested(
                step=step, messages=request.messages, bill=request.bill, report=request.report, epoch=request.epoch
            )
        )
        if self.debug.on:
            last = next((each.text for each in reversed(self.session.messages) if each.role == "user"), "")
            self.debug.write(
                "request", step=step, model=self.session.model.full_name, mode=self.session.mode,
                messages=request.messages, last_user=last, tokens=request.bill["used"], passes=request.report,
            )  # fmt: skip

    def _say_result(self, call: ToolCall, output: ToolOutput, message: Message, seconds: float) -> None:
        # counted as the message it becomes: the count is kept, and a large text is not tokenised twice
        tokens = self.session.counter.count_messages([message])[0]
        self.emit(
            ev.ToolFinished(
                id=call.id, name=call.name, text=output.text, tokens=tokens, chars=len(output.text), seconds=seconds,
                is_error=output.is_error, handle=output.handle, meta=output.meta,
            )
        )  # fmt: skip
        self.debug.write(
            "tool_result", step=self._steps, id=call.id, name=call.name, chars=len(output.text), tokens=tokens,
            is_error=output.is_error, handle=output.handle, seconds=round(seconds, 3),
        )  # fmt: skip

    def _on_notice(self, notice: Notice) -> None:
        self._note(notice.text, notice.kind, notice.data)

    def _note(self, text: str, kind: str, data: Mapping[str, Any] | None = None) -> None:
        self.debug.write("notice", kind=kind, text=text)
        self.emit(ev.Notice(text, kind, data or {}))

    def _tell(self, error: BrimError) -> None:
        """The failure as an event, with the account of the request and what to do where it is about its size."""
        if isinstance(error, Interrupted):
            self.emit(ev.Failed(error=error.as_dict()))
            return
        bill = getattr(error, "bill", None) or (self._request.bill if self._request is not None else None)
        advice = advice_for(error, bill, self.session.messages, mode=self.session.mode, ladder=self.session.ladder)
        self.debug.write("error", kind=error.kind, message=error.message)
        self.emit(ev.Failed(error=plain(error), advice=advice, bill=bill if advice else None))

    def _result(self, error: BrimError | None, duration: float) -> ev.Result:
        session, request = self.session, self._request
        bill = request.bill if request is not None else None
        return ev.Result(
            ok=error is None, exit_code=0 if error is None else error.code, text=self._text,
            error=None if error is None else plain(error), incomplete=self._incomplete, session=session.id,
            model=session.model.full_name, mode=session.mode, steps=self._steps, usage=self._usage, cost=self._cost,
            session_cost=session.cost, context=bill["used"] / max(1, bill["window"]) if bill is not None else None,
            bill=bill, duration=duration, data=self._data if error is None else None,
        )  # fmt: skip

    def _check_cost(self) -> None:
        if self.max_cost is not None and (spent := self.session.cost) is not None and spent >= self.max_cost:
            raise SpendLimit(
                f"the session has cost ${spent:.4f}, and the limit is ${self.max_cost:.4f}",
                hint="raise max_cost in the config or by --max-cost, or start a new session",
            )


def _hinted(error: BrimError) -> str:
    return f" ({error.hint})" if error.hint else ""


def plain(error: BrimError) -> dict[str, Any]:
    """An error as JSON values, without the bill: that stands beside it."""
    return {key: value for key, value in error.as_dict().items() if key != "bill"}
