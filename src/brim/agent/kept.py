"""What of an answer and of a result goes into the store, so that later requests and a rewind can use it."""

from __future__ import annotations

from typing import Any

import msgspec

from brim.conversation import Message, Part, ToolCall
from brim.tools import ToolOutput, storable_arguments, storable_name


def kept_of(output: ToolOutput) -> dict[str, Any] | None:
    """What is kept beside a result: the checkpoint of a file it changed, so that a rewind can put it back."""
    saved = output.meta.get("checkpoint")
    return None if saved is None else {"checkpoint": saved}


def storable(message: Message) -> Message:
    """The message with call arguments that are no JSON object made one, and names of tools that no provider takes made plain,
    so that no later request is refused for them."""
    parts: list[Part] = []
    changed = False
    for part in message.parts:
        if isinstance(part, ToolCall):
            name, arguments = storable_name(part.name), storable_arguments(part.arguments)
            if (name, arguments) != (part.name, part.arguments):
                part, changed = msgspec.structs.replace(part, name=name, arguments=arguments, wire=None), True
        parts.append(part)
    return msgspec.structs.replace(message, parts=tuple(parts), edited=True) if changed else message
