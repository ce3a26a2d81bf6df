"""A conversation recorded over one API, continued on another.

Messages that are already the target's own pass through. The others are reduced to what every API knows: text, media,
calls and results. Another API's thinking goes, and so do its opaque blocks (they mean nothing elsewhere), except inside
a tool result, where they become their JSON text, and refusals, which are text. Call ids are kept where the target
allows them. A run of Responses items that one answer produced becomes one assistant message, since chat and Anthropic
want parallel calls in one.

Chat takes pictures only from the user: those of a tool result are named in its text and follow, after the last result
of the step, in one user message.

A system message in the middle of a conversation has no place in Anthropic's format for most models; it becomes a user
message, verbatim, between `<system>` tags.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from brim.conversation import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from brim.formats.blocks import json_text

CHAT, RESPONSES, ANTHROPIC = "openai.chat", "openai.responses", "anthropic.messages"

NO_OUTPUT = "(no output)"
"""What stands for an empty result: `mkdir` says nothing, and not every API takes nothing for an answer."""
_BAD_ID = {ANTHROPIC: re.compile(r"[^a-zA-Z0-9_-]"), CHAT: None, RESPONSES: None}
_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")
_ID_LIMIT = {ANTHROPIC: 64, CHAT: 40, RESPONSES: 64}
"""Characters. OpenAI answers "string too long" above 40 (chat) and 64 (Responses); Anthropic takes [a-zA-Z0-9_-]."""


def portable_id(call_id: str, api: str, dialect: str | None = None) -> str:
    """`call_id` where `api` (and the dialect "mistral") takes it, else a name made from it, always the same one."""
    if dialect == "mistral":
        if _MISTRAL_ID.fullmatch(call_id):
            return call_id
        return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:9]
    bad = _BAD_ID[api]
    if len(call_id) <= _ID_LIMIT[api] and not (bad and bad.search(call_id)):
        return call_id
    mark = hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{re.sub(r'[^a-zA-Z0-9_-]', '_', call_id)[:28]}_{mark}"


def convert(messages: Sequence[Message], api: str) -> Sequence[Message]:
    """The messages as `api` can take them: its own unchanged (the same sequence, if all are), others without wire."""
    if all(message.api == api for message in messages):
        return messages
    own_ids = {call.id for m in messages if m.api == api and m.role == "assistant" for call in m.calls}
    out: list[Message] = []
    pictures: list[Media] = []
    talk = False  # whether anything but leading system messages has come
    for at, message in enumerate(messages):
        if pictures and message.role != "tool":
            out.append(_picture_message(pictures))
            pictures = []
        if message.api == api:
            out.append(message)
            talk = talk or message.role != "system"
            continue
        if message.role == "tool":
            result, found = _result(message.result, api, own_ids)
            pictures.extend(found)
            out.append(Message("tool", (result,)))
            talk = True
            continue
        parts = tuple(_parts(message.parts, api, own_ids, foreign=message.api != ""))
        if not parts:
            continue
        if message.role == "system" and talk and api == ANTHROPIC:
            text = "\n\n".join(part.text for part in parts if type(part) is Text)
            out.append(Message("user", (Text(f"<system>\n{text}\n</system>"),)))
            continue
        talk = talk or message.role != "system"
        previous = messages[at - 1] if at else None
        if (
            out
            and message.role == "assistant"
            and message.api == RESPONSES
            and previous is not None
            and previous.api == RESPONSES
            and previous.role == "assistant"
            and out[-1].role == "assistant"
            and out[-1].api == ""
        ):
            out[-1] = Message("assistant", _texts_first((*out[-1].parts, *parts)))
        else:
            out.append(Message(message.role, parts, name=message.name))
    if pictures:
        out.append(_picture_message(pictures))
    return out


def _texts_first(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    calls = tuple(part for part in parts if type(part) is ToolCall)
    return (*(part for part in parts if type(part) is not ToolCall), *calls)


def _parts(parts: Iterable[Part], api: str, own_ids: set[str], *, foreign: bool) -> Iterable[Part]:
    for part in parts:
        if type(part) is Text:
            if part.text and not (foreign and part.text.isspace()):
                yield Text(part.text)
        elif type(part) is ToolCall:
            yield ToolCall(_id(part.id, api, own_ids), part.name, part.arguments)
        elif type(part) is Media:
            yield part
        elif type(part) is Opaque and part.kind == "refusal" and part.wire and part.wire.get("refusal"):
            yield Text(str(part.wire["refusal"]))
        elif type(part) is Thinking:
            continue


def _id(call_id: str, api: str, own_ids: set[str]) -> str:
    return call_id if call_id in own_ids else portable_id(call_id, api)


def _result(result: ToolResult, api: str, own_ids: set[str]) -> tuple[ToolResult, list[Media]]:
    content: list[Text | Media | Opaque] = []
    pictures: list[Media] = []
    for part in result.content:
        if type(part) is Text:
            content.append(Text(part.text))
        elif type(part) is Opaque:
            if part.wire is not None:
                content.append(Text(json_text(part.wire, part.kind)))
        elif type(part) is Media:
            if api == CHAT and part.kind == "image" and part.source in ("base64", "url"):
                pictures.append(part)
                content.append(Text("[image: shown in the next user message]"))
            else:
                content.append(part)
    if all(type(part) is Text and not part.text.strip() for part in content):
        content = [Text(NO_OUTPUT)]
    return ToolResult(_id(result.call_id, api, own_ids), tuple(content), result.is_error), pictures


def _picture_message(pictures: Sequence[Media]) -> Message:
    note = (
        "Image from the tool result above:" if len(pictures) == 1 else "Images from the tool results above, in order:"
    )
    return Message("user", (Text(note), *pictures))
