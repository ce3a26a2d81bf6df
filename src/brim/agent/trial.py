"""Modes compared in use: `[experiment]` gives each mode a share of the new sessions, by session id.

The same id always gets the same mode, on any machine and after any restart: the modes lie one after the other on a line
from 0 to 1, and the id's hash is a place on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from brim.errors import ConfigError


class Shares(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table [experiment]: of each mode the share of new sessions; what is left over gets the configured mode."""

    full: float = 0.0
    compact: float = 0.0
    auto: float = 0.0


ORDER = Shares.__struct_fields__


def check_shares(shares: Mapping[str, object]) -> dict[str, float]:
    """Shares as numbers from 0 to 1. Raises ConfigError for other modes, other values, or a sum over 1."""
    checked: dict[str, float] = {}
    for mode, share in shares.items():
        if mode not in ORDER:
            raise ConfigError(f"experiment.{mode} is no mode", hint=f"[experiment] takes {', '.join(ORDER)}")
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
            raise ConfigError(f"experiment.{mode} is {share!r}", hint="a share of the sessions, from 0 to 1")
        checked[mode] = float(share)
    if (whole := sum(checked.values())) > 1 + 1e-9:
        raise ConfigError(f"the shares in [experiment] are {whole:g} together", hint="at most 1; the rest gets `mode`")
    return checked


def assigned_mode(session: str, shares: Mapping[str, float]) -> str | None:
    """The mode that a session id is assigned; None where it falls into no share, so that the configured mode holds."""
    place = int.from_bytes(hashlib.blake2b(session.encode("utf-8", "replace"), digest_size=8).digest()) / 2**64
    edge = 0.0
    for mode in ORDER:
        edge += shares.get(mode, 0.0)
        if place < edge:
            return mode
    return None
