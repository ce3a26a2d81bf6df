"""The order of roles: what providers want first, alternating, or once, and brim's own lines where a history has it otherwise.
Pure, like `repair`, which runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from brim.context.plan import Repair
from brim.conversation import Message, Part, Text

CONTINUES = "[the conversation continues]"
GO_ON = Message("user", (Text(CONTINUES),))
"""Brim's own line in the user's place. It is no user's message: it begins no turn, and protects nothing."""

ALTERNATE = frozenset({"openai-strict", "mistral"})
"""Dialects whose template wants user and assistant in strict alternation, and one system message, first."""
USER_FIRST = frozenset({"anthropic", "gemini"})
"""Dialects that refuse a history which begins with the assistant: a greeting, or what a client's own trimming left."""


def user_first(messages: list[Message], done: list[Repair]) -> list[Message]:
    """Puts a line in the user's place before a history that begins otherwise."""
    at = next((at for at, message in enumerate(messages) if not stands_apart(message)), len(messages))
    if at == len(messages) or messages[at].role == "user":
        return messages
    done[:] = [msgspec.structs.replace(each, at=each.at + (each.at >= at)) for each in done]
    done.append(Repair(at, f"a user's line before the first {messages[at].role} message, which this API wants there"))
    return [*messages[:at], GO_ON, *messages[at:]]


def stands_apart(message: Message) -> bool:
    """A system message that is none of the turns: an entry of Anthropic's `messages` is one."""
    return message.role == "system" and not (message.api == "anthropic.messages" and isinstance(message.wire, Mapping))


def in_order(messages: list[Message], done: list[Repair]) -> list[Message]:
    """Puts a line of brim's own between neighbours the template refuses."""
    out: list[Message] = []
    for message in messages:
        before = out[-1].role if out else "system"
        if message.role == "system" and len(out) == 1 and before == "system":
            done.append(Repair(0, "a second system message joined to the first: only one is taken"))
            out[0] = _joined(out[0], message)
            continue
        if message.role == "system" and out:
            done.append(Repair(len(out), "a later system message is sent as a user message: only one is taken"))
            message = _as_user(message)
        role = message.role
        filler = _between(before, role)
        if filler is not None:
            done.append(Repair(len(out), f"a line between a {before} and a {role} message, which this API wants apart"))
            out.append(GO_ON if filler == "user" else Message(filler, (Text(CONTINUES),)))
        out.append(message)
    return out if len(out) != len(messages) or any(a is not b for a, b in zip(out, messages, strict=True)) else messages


def _between(before: str, role: str) -> Literal["user", "assistant"] | None:
    if role == "user" and before in ("user", "tool"):
        return "assistant"
    if role == "assistant" and before in ("assistant", "system"):
        return "user"
    return None


class SystemAsUser(Message, frozen=True):
    """A system message sent in the user's place, since the template takes one only, at the front. It stays in every view
    like any other system message."""


def _as_user(message: Message) -> Message:
    return SystemAsUser("user", (_one_text(message.parts),))


def _joined(first: Message, second: Message) -> Message:
    """The first system message with the second behind it: as blocks where it came as blocks, else as one string."""
    blocks = isinstance(first.wire, Mapping) and isinstance(first.wire.get("content"), list | tuple)
    both = (*first.parts, *second.parts)
    return msgspec.structs.replace(first, parts=both if blocks else (_one_text(both),), edited=True)


def _one_text(parts: Sequence[Part]) -> Text:
    return Text("\n\n".join(part.text for part in parts if isinstance(part, Text)))
