"""How many tokens all messages of a request may use, and what takes the rest of the window."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from brim.errors import ContextOverflow

DEFAULT_RESPONSE = 4_096
SMALLEST_WINDOW = 1_024


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What a window is shared out to, in tokens. `messages` is for all messages together, the system prompt included;
    `held_back` is what the history budget leaves unused: messages + tools + overhead + reserved + margin + held_back
    is the window."""

    window: int
    reserved: int
    margin: int
    tools: int
    overhead: int
    held_back: int
    messages: int


def reserve(window: int, asked: int | None, default: int = DEFAULT_RESPONSE) -> int:
    """Tokens reserved for the reply: what the request asks for, else the default or a quarter of a small window."""
    return asked if asked is not None else min(default, window // 4)


def budget_for(
    window: int,
    reserved: int,
    margin: int = 0,
    tools: int | Mapping[str, int] = 0,
    overhead: int = 0,
    history_budget: int | None = None,
) -> Budget:
    """The smaller of the history budget and what the window leaves for messages.

    `tools`: tokens of all tool definitions, or tokens by tool name, which an error then lists (a name in parentheses
    belongs to no tool). Raises ContextOverflow where nothing is left for messages, saying what takes it.
    """
    sizes = dict(tools) if isinstance(tools, Mapping) else {}
    tool_tokens = sum(sizes.values()) if isinstance(tools, Mapping) else tools
    room = window - reserved - margin - tool_tokens - overhead
    if room <= 0:
        raise _overflow(window, reserved, margin, tool_tokens, overhead, sizes)
    messages = room if history_budget is None else min(room, history_budget)
    return Budget(
        window=window,
        reserved=reserved,
        margin=margin,
        tools=tool_tokens,
        overhead=overhead,
        held_back=room - messages,
        messages=messages,
    )


def _overflow(
    window: int, reserved: int, margin: int, tools: int, overhead: int, sizes: Mapping[str, int]
) -> ContextOverflow:
    room = window - reserved - margin
    if tools + overhead > room and tools > 0 and room > 0:
        named = sorted((item for item in sizes.items() if item[0][:1] != "("), key=lambda item: -item[1])
        listed = ", ".join(f"{name} {tokens:,}" for name, tokens in named[:8])
        more = f" and {len(named) - 8} more" if len(named) > 8 else ""
        which = f" ({listed}{more})" if listed else ""
        count = f"{len(named)} tool definitions" if named else "the tool definitions"
        return ContextOverflow(
            f"{count} take {tools:,} tokens{which}, more than the {room:,} that a window of {window:,} has "
            f"beside {reserved:,} reserved for the reply",
            irreducible=tools + overhead,
            budget=room,
            hint="send fewer tools, shorten the largest descriptions, or use a model with a larger window",
        )
    return ContextOverflow(
        f"a window of {window:,} tokens leaves nothing for messages: {reserved:,} reserved for the reply, "
        f"{margin:,} margin, {tools:,} tools, {overhead:,} overhead",
        irreducible=tools + overhead,
        budget=room,
        hint="lower the maximum of the response (max_response_tokens, max_tokens), or use a larger window",
    )
