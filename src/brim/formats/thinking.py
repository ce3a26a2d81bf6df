"""Models that bind thinking to its prefix, and how to ask them to drop what no longer fits.

On these models a thinking block is valid only while `system`, `tools` and every message before it are what they were
when it was written (vendor's page "Prefix checks on thinking blocks", November 2026). A request whose earlier part was
edited is refused with a 400, unless it asks for the blocks to be dropped. Asking takes a field of the body and a beta
header, in that request and in every later one of the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""The value for the `anthropic-beta` header without which `block_binding` is refused as an extra input."""

_BOUND = re.compile(
    r"claude-(?:(?:fable|mythos)-(?:5[-.][1-9]|[6-9])|(?:opus|sonnet|haiku)-(?:5[-.][5-9]|[6-9]))(?!\d)"
)


def binds_thinking(model: str | None) -> bool:
    """Whether `model` (as any vendor spells it) checks thinking blocks against what stands before them."""
    return bool(model and _BOUND.search(model.lower()))


def signs_thinking(model: object) -> bool:
    """Whether `model` wants its thinking back signed: Claude does, others behind the same API (DeepSeek, Kimi) hand it out
    without. Where no model is named it is taken for Claude."""
    name = model.lower() if isinstance(model, str) else ""
    return not name or "claude" in name or "anthropic" in name


def ask_to_drop(body: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of an Anthropic body that asks for blocks that no longer fit to be dropped; send it with `BINDING_BETA`.

    A body that turns thinking off is returned as it is: the field is not taken there, its thinking must go by hand.
    A choice the caller made already ("error" or "drop_block") stays.
    """
    thinking = body.get("thinking")
    if thinking is None:
        thinking = {"type": "adaptive"}  # what these models do anyway
    if not isinstance(thinking, Mapping) or thinking.get("type") == "disabled":
        return dict(body)
    binding = {"prefix_mismatch_behavior": "drop_block", **(thinking.get("block_binding") or {})}
    return {**body, "thinking": {**thinking, "block_binding": binding}}
