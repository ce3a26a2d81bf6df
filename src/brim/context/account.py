"""The bill of a view: each of its messages on one line of the account, so that the lines sum to what the counter says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brim.budget import Bill, make_bill
from brim.context.history import History
from brim.context.plan import Plan
from brim.conversation import Message, ToolCall

if TYPE_CHECKING:
    from brim.context.prepare import Frame

_LABELS = {"history": "recalled text", "workspace": "snippets of the workspace", "tree": "directory tree"}
"""What an insert is called in the bill, by where it comes from."""


def make_account(frame: Frame, history: History, plan: Plan, view: list[Message]) -> Bill:
    """The itemised account of a view. Tool results are billed by tool, inserts by source, everything
    else by role."""
    counter, budget = frame.counter, frame.budget
    lines: list[dict[str, Any]] = [
        {"kind": "overhead", "label": "reply priming", "tokens": counter.priming, "count": 1}
    ]
    if budget.tools:
        tools = frame.added_tools if frame.added_tools is not None else frame.request.tools
        lines.append({"kind": "tools", "label": "tool definitions", "tokens": budget.tools, "count": len(tools)})
    names: dict[str, str] = {}
    summary = plan.summary.text if plan.summary is not None else None
    pinned = {id(history.messages[index].wire) for index in history.pins} - {id(None)}
    for message, tokens in zip(view, counter.count_messages(view), strict=True):
        for insert in plan.inserts if message.edited and message.role == "user" else ():
            if insert.text in message.text:
                own = min(insert.tokens, tokens)
                tokens -= own
                label = _LABELS.get(insert.source, f"inserted from {insert.source}")
                lines.append({"kind": "inserts", "label": label, "tokens": own})
        lines.append(_line(message, tokens, names, summary, pinned))
    return make_bill(
        window=frame.window,
        window_assumed=frame.window_assumed,
        reserved=budget.reserved,
        margin=budget.margin,
        held_back=budget.held_back,
        lines=lines,
        counter=counter.name,
        exact=counter.exact,
    )


def _line(
    message: Message, tokens: int, names: dict[str, str], summary: str | None, pinned: set[int]
) -> dict[str, Any]:
    role = message.role
    if role == "assistant":
        for part in message.parts:
            if type(part) is ToolCall:
                names[part.id] = part.name
    if role == "tool":
        name = names.get(message.result.call_id) or message.name or "tool"
        return {"kind": "tool", "label": f"result of {name}", "tokens": tokens}
    if summary is not None and not message.api and message.text == summary:
        return {"kind": "summary", "label": "summary", "tokens": tokens}
    if id(message.wire) in pinned and role in ("user", "system"):
        return {"kind": "pins", "label": "pinned", "tokens": tokens}
    labels = {"system": "system prompt", "user": "user messages", "assistant": "assistant messages"}
    return {"kind": role, "label": labels[role], "tokens": tokens}
