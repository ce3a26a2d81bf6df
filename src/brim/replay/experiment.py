"""The two-round experiment: one small project, two questions, all three modes, and the same agent as `ai`.

Each mode starts a session of its own in a fresh copy of the project. A round's tokens are those of its last request:
what the model was sent when it answered. The reference figures come from another implementation with another project,
system prompt and tools; the account of each request (its bill) says where the difference lies.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from brim.agent import events as ev
from brim.replay.project import QUESTIONS, Question, make_project

if TYPE_CHECKING:
    from brim.agent.agent import Agent
    from brim.agent.config import Config
    from brim.agent.surroundings import Surroundings
    from brim.providers import ModelRef, Provider
    from brim.store import Store

MODES = ("full", "compact", "auto")
REFERENCE: Mapping[str, tuple[int, int]] = {"full": (3_100, 8_400), "compact": (3_100, 3_900), "auto": (3_100, 4_200)}
"""Tokens of the first and the second round, as the requirement gives them."""
SCRIPTED = "scripted"
SCRIPTED_WINDOW = 128_000


class Round(msgspec.Struct):
    """One question in one mode. `tokens`: of the last request, as the provider counted them; `sent`: of all requests of
    the round; `right` of `facts` known facts are in the answer; `parts`: tokens of the last request by kind, from its
    bill; `passes`: what shortened it."""

    mode: str
    round: int
    window: int
    requests: int = 0
    tokens: int = 0
    sent: int = 0
    cached: int = 0
    output: int = 0
    seconds: float = 0.0
    right: int = 0
    facts: int = 0
    missed: list[str] = []
    answer: str = ""
    error: str | None = None
    parts: dict[str, int] = {}
    passes: list[str] = []
    trigger: int = 0
    reference: int = 0


class Record:
    """Listens to an agent and keeps what a round needs."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []

    def __call__(self, event: ev.Event) -> None:
        self.events.append(event)


async def run_experiment(
    config: Config,
    env: Mapping[str, str],
    *,
    model: str = SCRIPTED,
    modes: Sequence[str] = MODES,
    window: int | None = None,
) -> list[Round]:
    """Asks both questions in each mode. `model`: "scripted", or provider/model as `ai --model` takes it.

    Raises what a model or provider that cannot be opened raises; a failed answer is a round with an `error`.
    """
    rounds: list[Round] = []
    for mode in modes:
        with tempfile.TemporaryDirectory(prefix="brim-experiment-") as folder:
            project = make_project(Path(folder) / "tinyshop")
            rounds += await _in_mode(config, env, project, model, mode, window)
    return rounds


async def _in_mode(
    config: Config, env: Mapping[str, str], project: Path, model: str, mode: str, window: int | None
) -> list[Round]:
    from brim.store import TEMPORARY, open_store

    record = Record()
    with open_store(TEMPORARY) as store:
        chosen, provider = await _open(config, env, model)
        try:
            agent, surroundings = make_agent(config, env, project, store, chosen, provider, mode, record, window)
            rounds: list[Round] = []
            try:
                for number, question in enumerate(QUESTIONS, 1):
                    record.events.clear()
                    outcome = await agent.ask(question.text)
                    rounds.append(_round(agent, mode, number, question, outcome, record.events))
            finally:
                if surroundings is not None:
                    surroundings.close()
            agent.session.close()
            return rounds
        finally:
            await provider.close()


async def _open(config: Config, env: Mapping[str, str], model: str) -> tuple[ModelRef, Provider]:
    from brim.providers import ModelRef, open_provider, resolve_model
    from brim.replay.reader import Reader

    if model == SCRIPTED:
        return ModelRef(provider="scripted", model="reader", window=SCRIPTED_WINDOW), Reader(SCRIPTED_WINDOW)
    chosen = resolve_model(model, env, config.providers())
    return chosen, open_provider(chosen, env=env)


def make_agent(
    config: Config,
    env: Mapping[str, str],
    project: Path,
    store: Store,
    model: ModelRef,
    provider: Provider,
    mode: str,
    emit: ev.Emit,
    window: int | None = None,
) -> tuple[Agent, Surroundings | None]:
    """The agent as `ai` builds it, over a provider that is open already; it may read and change nothing. With it what
    puts parts of the project beside a question, to be closed in the end."""
    from brim.agent.agent import Agent
    from brim.agent.opening import find_surroundings, make_offer
    from brim.agent.permit import Permits
    from brim.agent.session import AgentSession
    from brim.tools import ToolContext, default_tools

    make = getattr(provider, "counter", None)
    counter = make() if callable(make) else getattr(provider, "model_counter", None)
    window = window or getattr(provider, "window", None) or model.window
    settings = config.settings()
    tools = default_tools()
    _, offer = make_offer(config, model, tools, project, window=window)
    stored = store.new_session(str(project), mode, model.full_name)
    session = AgentSession(
        store, stored, model=model, offer=offer, settings=settings, mode=mode, counter=counter, window=window
    )
    context = ToolContext(
        workspace=project, blobs=store.blobs(stored.id), count=session.counter.count_text,
        caps=config.caps(env, session.window[0]), env=dict(env), originals=session.original,
    )  # fmt: skip
    permits = Permits(project, mode="read-only")
    agent = Agent(session, provider, emit, tools=tools, context=context, permits=permits, max_steps=8)
    surroundings = find_surroundings(config, project, env, agent, tools, keep=False)
    if surroundings is not None:
        agent.get_ready = surroundings.put_beside_question
    return agent, surroundings


def _round(
    agent: Agent, mode: str, number: int, question: Question, outcome: ev.Result, events: Sequence[ev.Event]
) -> Round:
    asked = [event for event in events if isinstance(event, ev.Requested)]
    used = [event.usage for event in events if isinstance(event, ev.Used)]
    missed = missing_facts(question, outcome.text)
    made = Round(mode, number, agent.session.window[0], requests=len(asked), reference=REFERENCE[mode][number - 1])
    made.sent = sum(usage.input for usage in used)
    made.cached = sum(usage.cached_read for usage in used)
    made.output = sum(usage.output for usage in used)
    made.seconds = outcome.duration
    made.facts = len(question.facts)
    made.right = made.facts - len(missed)
    made.missed = missed
    made.answer = outcome.text
    made.error = str(outcome.error["message"]) if outcome.error else None
    if asked:
        bill = asked[-1].bill
        made.tokens = used[-1].input if used and used[-1].reported else int(bill["used"])
        for line in bill["lines"]:
            if line["kind"] not in ("reserved", "margin", "held back", "held_back", "free"):
                made.parts[line["kind"]] = made.parts.get(line["kind"], 0) + int(line["tokens"])
        made.trigger = _trigger(agent, mode, bill)
    for event in asked:
        for line in event.report:
            if line.get("pass") not in ("repair", "insert") and "before" in line:
                made.passes.append(f"{line['pass']} {line['before']:,} to {line['after']:,}")
    return made


def _trigger(agent: Agent, mode: str, bill: Mapping[str, Any]) -> int:
    from brim.context.modes import trigger

    budget = bill["window"] - bill["reserved"] - bill["margin"] - bill["held_back"]
    return int(trigger(mode, agent.session.settings) * budget)


def missing_facts(question: Question, answer: str) -> list[str]:
    """The known facts that an answer does not name."""
    return [what for what, patterns in question.facts if not any(re.search(p, answer, re.IGNORECASE) for p in patterns)]


def reason(each: Round) -> str:
    """Why a round took other tokens than the reference, from the account of its last request."""
    if each.error:
        return f"no answer: {each.error}"
    parts = ", ".join(
        f"{tokens:,} {kind}" for kind, tokens in sorted(each.parts.items(), key=lambda pair: -pair[1]) if tokens
    )
    made = f"made of {parts}"
    if each.passes:
        return f"{made}; shortened: {', '.join(each.passes)}"
    if each.mode == "full":
        return f"{made}; full keeps everything that fits"
    if each.mode == "compact":
        return f"{made}; under compact's trigger of {each.trigger:,}, so there was nothing to fold"
    return f"{made}; under auto's trigger of {each.trigger:,}, and no edit paid at the model's prices"


def render_experiment(rounds: Sequence[Round], model: str) -> str:
    """The table, and a reason for each figure."""
    window = rounds[0].window if rounds else 0
    lines = [f"two questions about a small Python project, {model}, window {window:,} tokens", ""]
    heads = ("mode", "round", "tokens", "reference", "requests", "sent in all", "cached", "time", "right")
    rows = [heads] + [
        (
            each.mode,
            str(each.round),
            f"{each.tokens:,}",
            f"{each.reference / 1_000:.1f}K",
            str(each.requests),
            f"{each.sent:,}",
            f"{each.cached / each.sent:.0%}" if each.sent else "-",
            f"{each.seconds:.1f} s",
            f"{each.right} of {each.facts}",
        )
        for each in rounds
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells))
    lines += ["", "Tokens are those of a round's last request. Why they are not the reference's:"]
    lines += [f"  {each.mode} {each.round}: {reason(each)}" for each in rounds]
    wrong = [f"  {each.mode} {each.round}: {', '.join(each.missed)}" for each in rounds if each.missed]
    return "\n".join([*lines, *(["", "What the answers did not name:", *wrong] if wrong else [])]) + "\n"
