"""`brim cost` and `brim report`: what the requests cost, and how the modes compare in use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from brim.store import Record, Store, Sum

AXES = ("day", "model", "session", "mode")
_SINCE = typer.Option("--since", help="From this day on.", metavar="YYYY-MM-DD")
_PROJECT = typer.Option("--project", "-C", help="Only the project in this folder.", metavar="DIR")
_NONE = "no requests are recorded here yet; `brim audit` reads the logs of other agents"
_JSON = typer.Option("--json", help="As JSON.")


def cost(
    by: Annotated[str, typer.Option("--by", help="What to sum by.", metavar="day|model|session|mode")] = "day",
    since: Annotated[str | None, _SINCE] = None,
    project: Annotated[Path | None, _PROJECT] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """What requests cost, cached tokens included: US dollars at the prices that held when they were made."""
    from brim.cli.commands.kept import folder_of, open_kept, place_of
    from brim.cli.commands.shown import note, say, say_json, table
    from brim.cli.output import paid
    from brim.store.values import short_id

    axis = _axis(by)
    with open_kept(place_of()) as store:
        sums = store.usage(axis, since=_day(since), project=str(folder_of(project)) if project else None)
    if as_json:
        say_json(sums)
        return
    rows = [
        (
            short_id(each.key) if axis == "session" and each.key else each.key or "unknown",
            *_figures(each),
            paid(each.cost, each.requests - each.failed, each.unpriced),
        )
        for each in sums
    ]
    if not sums:
        note(_NONE)
        return
    answered, unpriced = sum(each.requests - each.failed for each in sums), sum(each.unpriced for each in sums)
    head = (axis, "requests", "in", "of it read from cache", "written to cache", "out", "cost")
    say(table(head, rows, right=head[1:-1]))
    total = paid(sum(each.cost for each in sums), answered, unpriced)
    say(f"in all {total}" if total.startswith("$") else "of none of them is the price known")


def report(
    by: Annotated[str, typer.Option("--by", help="What to compare.", metavar="mode|model|day|session")] = "mode",
    since: Annotated[str | None, _SINCE] = None,
    project: Annotated[Path | None, _PROJECT] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Modes (or models) compared in use, on three axes: completeness, token cost, response time.

    Completeness is how many turns ended with a whole answer, and how many calls fetched something a second time: a
    recall, or a call that the session had made before.
    """
    from brim.cli.commands.kept import folder_of, open_kept, place_of
    from brim.cli.commands.shown import note, say, say_json, table
    from brim.cli.output import money

    axis = _axis(by)
    day = _day(since)
    with open_kept(place_of()) as store:
        groups = measured(store, axis, day, str(folder_of(project)) if project else None)
    if as_json:
        say_json([{"key": key, **group.as_dict()} for key, group in groups.items()])
        return
    if not groups:
        note(_NONE)
        return
    rows = []
    for key, group in groups.items():
        facts = group.as_dict()
        rows.append(
            (
                key,
                str(group.sessions),
                str(group.turns),
                _share(facts["answered"]),
                str(facts["errors"]),
                _share(facts["refetched"]),
                _number(facts["input_per_turn"]),
                _share(facts["cached"]),
                _number(facts["output_per_turn"]),
                money(facts["cost_per_turn"]) if facts["cost_per_turn"] is not None else "",
                _seconds(facts["seconds_per_turn"]),
                _seconds(facts["ttft"]),
            )
        )
    head = (axis, "sessions", "turns", "answered", "errors", "refetched", "in/turn", "cached", "out/turn", "cost/turn",
            "time/turn", "first text")  # fmt: skip
    say(table(head, rows, right=head[1:]))


class Group:
    """What is added up for one mode, model, day or session."""

    def __init__(self) -> None:
        self.sessions = self.turns = self.whole = self.requests = 0
        self.errors = self.calls = self.recalls = self.refetches = 0
        self.input = self.cached = self.output = 0
        self.cost = 0.0
        self.priced = 0
        self.seconds = 0.0
        self.waits: list[float] = []

    def add(self, record: Record) -> None:
        """One request's tokens and time."""
        self.requests += 1
        self.errors += record.error is not None
        self.input += record.input or 0
        self.cached += record.cached_read or 0
        self.output += record.output or 0
        self.seconds += record.duration or 0.0
        if record.ttft is not None:
            self.waits.append(record.ttft)

    def as_dict(self) -> dict[str, Any]:
        """The figures; shares from 0 to 1, seconds, US dollars; None where nothing was measured."""
        turns = self.turns or None
        return {
            "sessions": self.sessions,
            "turns": self.turns,
            "requests": self.requests,
            "answered": self.whole / turns if turns else None,
            "errors": self.errors,
            "calls": self.calls,
            "recalls": self.recalls,
            "refetched": self.refetches / self.calls if self.calls else None,
            "input_per_turn": self.input / turns if turns else None,
            "cached": self.cached / self.input if self.input else None,
            "output_per_turn": self.output / turns if turns else None,
            "cost_per_turn": self.cost / self.priced if self.priced else None,
            "seconds_per_turn": self.seconds / turns if turns else None,
            "ttft": sum(self.waits) / len(self.waits) if self.waits else None,
        }


def measured(store: Store, axis: str, since: str | None, project: str | None) -> dict[str, Group]:
    """The groups, from every request and message of the sessions."""
    groups: dict[str, Group] = {}
    for session in store.list_sessions(project, 1_000_000, archived=True):
        records = store.requests(session.id)
        if not records:
            continue
        messages = [each.message for each in store.load(session.id)]
        made: set[tuple[str, str]] = set()
        touched: set[str] = set()
        turn: list[tuple[Group, Record]] = []
        at = 0
        for place, record in enumerate(records):
            fresh = messages[at : record.seq]
            at = max(at, record.seq)
            calls = [(call.name, call.arguments) for message in fresh for call in message.calls]
            recalls = sum(name == "recall" for name, _ in calls)
            again = sum(call in made for call in calls if call[0] != "recall")
            made.update(calls)
            if since is not None and _date(record.created) < since:
                continue
            key = _key(axis, session.id, record)
            group = groups.setdefault(key, Group())
            group.sessions += key not in touched
            touched.add(key)
            group.add(record)
            group.calls += len(calls)
            group.recalls += recalls
            group.refetches += recalls + again
            turn.append((group, record))
            if _ends_a_turn(records, place):
                group.turns += 1
                group.whole += record.error is None and record.finish not in ("length", "max_tokens", "incomplete")
                _add_cost(turn)
                turn.clear()
    return dict(sorted(groups.items()))


def _add_cost(turn: list[tuple[Group, Record]]) -> None:
    """A turn's cost, where the price of each of its requests is known. One that is not would make a turn look cheap, so
    such turns are left out of cost per turn. A request without usage was refused and cost nothing."""
    if any(record.cost is None and record.input for _, record in turn) or not any(record.input for _, record in turn):
        return
    for group, record in turn:
        group.cost += record.cost or 0.0
    turn[-1][0].priced += 1


def _ends_a_turn(records: list[Record], place: int) -> bool:
    """The last request of a session ends a turn, and one that is followed by the first step of another. (A request that
    was refused and made again is followed by one over the same messages.)"""
    if place + 1 == len(records):
        return True
    following = records[place + 1]
    return following.meta.get("step", 1) == 1 and following.seq > records[place].seq


def _key(axis: str, session: str, record: Record) -> str:
    from brim.store.values import short_id

    if axis == "session":
        return short_id(session)
    if axis == "day":
        return _date(record.created)
    return (record.model if axis == "model" else record.mode) or "unknown"


def _date(seconds: float) -> str:
    import datetime

    return datetime.datetime.fromtimestamp(seconds).date().isoformat()


def _axis(by: str) -> Any:
    from brim.errors import UsageError

    if by not in AXES:
        raise UsageError(f"--by is {by!r}", hint=f"one of {', '.join(AXES)}")
    return by


def _day(since: str | None) -> str | None:
    import datetime

    from brim.errors import UsageError

    if since is None:
        return None
    try:
        return datetime.date.fromisoformat(since).isoformat()
    except ValueError as error:
        raise UsageError(f"--since is {since!r}", hint="a day, as 2026-11-30") from error


def _figures(each: Sum) -> tuple[str, ...]:
    return tuple(f"{n:,}" for n in (each.requests, each.input, each.cached_read, each.cached_write, each.output))


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"
