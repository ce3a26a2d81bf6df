"""What one API alone refuses, beyond calls without results: repeated items and loose reasoning in Responses, empty blocks
and bad ends in Anthropic messages. Pure, like `repair`, which runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from brim.context.plan import Repair
from brim.conversation import Message, Part, Text, Thinking


def item_id(message: Message) -> str | None:
    """The id of the Responses item a message came as, None where it has none or only refers to another."""
    wire = message.wire
    if not isinstance(wire, Mapping) or wire.get("type") == "item_reference":
        return None
    found = wire.get("id")
    return found if type(found) is str else None


def whole_items(messages: Sequence[Message], done: list[Repair]) -> Sequence[Message]:
    """Items of Responses: each id once ("Duplicate item found with id" otherwise), and no reasoning without the item that
    has to follow it ("provided without its required following item")."""
    out: list[Message] = []
    seen: dict[str, Message] = {}
    changed = False
    for message in messages:
        id = item_id(message)
        twin = seen.get(id) if id is not None else None
        if id is not None and twin is None:
            seen[id] = message
        if twin is not None:
            changed = True
            if twin.wire == message.wire or _is_reasoning(message):
                done.append(Repair(len(out), f"item {id} stood twice: the second left out"))
                continue
            done.append(Repair(len(out), f"another item has the id {id}: sent without it"))
            message = msgspec.structs.replace(message, wire={k: v for k, v in message.wire.items() if k != "id"})
        if message.role != "assistant":
            changed = _drop_loose(out, done, seen) or changed
        out.append(message)
    changed = _drop_loose(out, done, seen) or changed
    return out if changed else messages


def _drop_loose(out: list[Message], done: list[Repair], seen: dict[str, Message]) -> bool:
    """Takes reasoning off the end that nothing of the model's follows."""
    before = len(out)
    while out and _is_reasoning(out[-1]):
        seen.pop(item_id(out.pop()) or "", None)
        done.append(Repair(len(out), "reasoning without the item that has to follow it: left out"))
    return len(out) != before


def _is_reasoning(message: Message) -> bool:
    return message.role == "assistant" and len(message.parts) == 1 and type(message.parts[0]) is Thinking


def plain_ends(messages: list[Message], done: list[Repair]) -> list[Message]:
    """Anthropic: no empty block in the system prompt ("text content blocks must be non-empty"), and, where the history ends
    with the assistant's words for the model to go on from, neither thinking nor white space at their end ("final
    assistant content cannot end with trailing whitespace")."""
    out = messages
    for at in {0, len(messages) - 1} if messages else ():
        message = messages[at]
        if message.role == "system" and isinstance(message.wire, list | tuple):
            parts = tuple(part for part in message.parts if not _is_blank(part))
        elif message.role == "assistant" and at == len(messages) - 1:
            parts = _unfinished(message.parts)
        else:
            continue
        if parts != message.parts:
            system = message.role == "system"
            what = "empty blocks of the system prompt" if system else "white space or thinking at the history's end"
            done.append(Repair(at, f"{what} left out: this API refuses them"))
            out = [*out[:at], msgspec.structs.replace(message, parts=parts, edited=True), *out[at + 1 :]]
    return out


def _is_blank(part: Part) -> bool:
    return type(part) is Text and not part.text.strip()


def _unfinished(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    while len(parts) > 1 and type(parts[-1]) is Thinking:
        parts = parts[:-1]
    last = parts[-1] if parts else None
    if type(last) is Text and last.text != last.text.rstrip():
        return (*parts[:-1], msgspec.structs.replace(last, text=last.text.rstrip()))
    return parts
