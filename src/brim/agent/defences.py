"""The instant defences on request, and a simulated history to try them on: `/sim`, `/status`, `/defend`.

They run truncate and expire, the two passes that need neither a model nor pressure; over the trigger the mode's own
passes follow, as before any request. Sizes are given by the common estimate, characters / 4 x 1.2 over content, tool
names and arguments, beside the count of the session's own counter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from brim.conversation import Message
from brim.errors import UsageError
from brim.formats import parse_message, parse_request

if TYPE_CHECKING:
    from brim.agent.session import AgentSession

PASSES = ("truncate", "expire")


class Defended(msgspec.Struct, frozen=True, kw_only=True):
    """What one run did: results cut (`truncated`), made stubs for room (`cleared`), aged to their ends (`soft`) or to a
    stub (`hard`); `before` and `after` by the common estimate, `counted_before` and `counted_after` by the counter."""

    messages: int
    truncated: int
    cleared: int
    soft: int
    hard: int
    before: int
    after: int
    counted_before: int
    counted_after: int

    @property
    def saved(self) -> float:
        """The share of `before` that is gone, 0 to 1."""
        return 1 - self.after / self.before if self.before else 0.0


def estimate(messages: Iterable[Message]) -> int:
    """Characters / 4 x 1.2 over content, tool names and arguments."""
    characters = sum(
        len(message.text) + sum(len(call.name) + len(call.arguments) for call in message.calls) for message in messages
    )
    return round(characters / 4 * 1.2)


def load_simulated(name: str = "sim") -> list[tuple[Message, float]]:
    """A simulated history: each message with its age in seconds. `sim` has 20 messages, `start` 12."""
    histories: dict[str, Any] = msgspec.json.decode(files("brim.agent").joinpath("sim_histories.json").read_bytes())
    if name not in ("sim", "start"):
        raise UsageError(f"no simulated history {name!r}", hint="sim or start")
    made: list[tuple[Message, float]] = []
    for wire in histories[name]["messages"]:
        age = float(wire.pop("age_s"))
        made += [(message, age) for message in parse_message(wire, "openai.chat")]
    return made


def inject(session: AgentSession, name: str = "sim") -> int:
    """Adds a simulated history to a session, as if it had been going on for a while; returns how many messages."""
    now = session.now()
    aged = load_simulated(name)
    for message, age in aged:
        session.append(message, at=now - age)
    return len(aged)


def defend(session: AgentSession) -> Defended:
    """Runs the defences now. What they lower stays lowered: an epoch begins."""
    before = session.plan_now()
    request = session.prepare(passes=PASSES)
    return _compared(session, before, request.plan, request.body)


def defend_in(session: AgentSession, window: int) -> Defended:
    """What the defences would do in a window of so many tokens; the session is left as it is."""
    apart = session.apart()
    prepared = apart.prepare(mode=session.mode, window=window, now=session.now(), passes=PASSES)
    return _compared(session, {}, prepared.plan, prepared.request)


def _compared(
    session: AgentSession, before: Mapping[str, Any], plan: Mapping[str, Any], body: Mapping[str, Any]
) -> Defended:
    done = {(fate["start"], fate["kind"], fate["rule"]) for fate in plan.get("fates", ())}
    done -= {(fate["start"], fate["kind"], fate["rule"]) for fate in before.get("fates", ())}
    history, view = list(session.messages), _without_system(body, session.model.api)

    def count(rule: str, kind: str) -> int:
        return sum(each[1:] == (kind, rule) for each in done)

    return Defended(
        messages=len(history), truncated=count("truncate", "trim"), cleared=count("truncate", "stub"),
        soft=count("expire", "trim"), hard=count("expire", "stub"), before=estimate(history), after=estimate(view),
        counted_before=sum(session.counter.count_messages(history)),
        counted_after=sum(session.counter.count_messages(view)),
    )  # fmt: skip


def _without_system(body: Any, api: str) -> Sequence[Message]:
    return [message for message in parse_request(body, api).messages if message.role != "system"]
