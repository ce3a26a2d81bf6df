"""The three modes, each one short table: when an epoch starts, what it runs, and how far the ladder goes.

    arrival   a message enters a view for the first time
    epoch     fates of messages already sent may change
    rescue    the view would not fit: rungs are taken one by one until it does

The order is lossless before lossy and light before heavy. Every number is in `Settings`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from brim.budget.settings import Mode, Settings
from brim.errors import UsageError


class Table(msgspec.Struct, frozen=True):
    """`trigger`: the setting that holds the share of the budget at which an epoch starts. `weighs`: shorten below the
    trigger where an edit pays. `epoch` and `rescue`: names of passes, in order."""

    trigger: Literal["full_trigger_ratio", "compact_trigger_ratio", "auto_trigger_ratio"]
    weighs: bool
    epoch: tuple[str, ...]
    rescue: tuple[str, ...]


_LAST_RUNGS = ("keep_recent(6)", "keep_recent(2)", "drop_oldest", "trim_newest")
_LIGHT = ("supersede", "truncate", "expire", "compress")

TABLES: dict[str, Table] = {
    "full": Table(
        trigger="full_trigger_ratio",
        weighs=False,
        epoch=(),
        rescue=(*_LIGHT, "summarise_in_full", *_LAST_RUNGS),
    ),
    "compact": Table(
        trigger="compact_trigger_ratio",
        weighs=False,
        epoch=(*_LIGHT, "summarise"),
        rescue=_LAST_RUNGS,
    ),
    "auto": Table(
        trigger="auto_trigger_ratio",
        weighs=True,
        epoch=(*_LIGHT, "select", "summarise"),
        rescue=_LAST_RUNGS,
    ),
}


def table_of(mode: str) -> Table:
    """The table of a mode. Raises UsageError for a name that is none of the three."""
    table = TABLES.get(mode)
    if table is None:
        raise UsageError(f"no context mode {mode!r}", hint="full keeps everything, compact summarises, auto selects")
    return table


def trigger(mode: Mode | str, settings: Settings) -> float:
    """The share of the budget over which an epoch starts."""
    value: float = getattr(settings, table_of(mode).trigger)
    return value
