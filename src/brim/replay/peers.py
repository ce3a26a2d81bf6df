"""The context policies of other packages, adapted: wherever one is installed, it runs in the same table."""

from __future__ import annotations

PEERS: dict[str, str] = {}


def installed() -> list[str]:
    return []
