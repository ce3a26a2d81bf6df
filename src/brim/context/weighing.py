"""Placeholder wiring until the economics land."""

from __future__ import annotations

from brim.context.draft import Draft
from brim.context.plan import Fate, Plan


class Weigher:
    def choose(self, draft: Draft, plan: Plan) -> tuple[list[Fate], str] | None:
        return None
