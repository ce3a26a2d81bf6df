"""What one API alone refuses, beyond calls without results: repeated items and loose reasoning in Responses, empty blocks
and bad ends in Anthropic messages. Pure, like `repair`, which runs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from brim.context.plan import Repair
from brim.conversation import Message, Opaque, Part, Text, Thinking, ToolCall
from brim.formats import blank_picture, parse_message
from brim.formats.rules_anthropic import MAX_CACHE_MARKS

LOOSE = "without the other"
"""Of a repair that reading more of the history may make needless."""


def item_id(message: Message) -> str | None:
    """The id of the Responses item a message came as, None where it has none or only refers to another."""
    wire = message.wire
    if message.api != "openai.responses" or not isinstance(wire, Mapping) or wire.get("type") == "item_reference":
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
        formed = _formed(message)
        if formed is not message:
            changed = True
            done.append(Repair(len(out), "an item as this API does not take it: its id, a block's type or its output"))
            message = formed
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


_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_BLOCKS = {"user": "input_text", "system": "input_text", "assistant": "output_text"}


def _formed(message: Message) -> Message:
    """The item without an id that is too long or oddly spelled ("Expected a string with maximum length 64"), its text
    blocks of the type its role takes ("Invalid value: 'input_text'"), its output a string or a list."""
    wire = message.wire
    if message.api != "openai.responses" or not isinstance(wire, Mapping):
        return message
    changed: dict[str, Any] = {}
    id = wire.get("id")
    if type(id) is str and message.role != "tool" and not _ID.fullmatch(id) and not _is_reasoning(message):
        changed["id"] = None
    content = wire.get("content")
    if isinstance(content, list) and wire.get("role") is not None:
        kind = _BLOCKS[message.role]
        if any(_is_text(block) and block.get("type") != kind for block in content):
            changed["content"] = [
                {**block, "type": kind} if _is_text(block) and block.get("type") != kind else block for block in content
            ]
    output = wire.get("output")
    if isinstance(output, Mapping) and wire.get("type") in ("function_call_output", "custom_tool_call_output"):
        changed["output"] = msgspec.json.encode(output).decode()
    if not changed:
        return message
    new = {key: value for key, value in {**wire, **changed}.items() if key != "id" or value is not None}
    return parse_message(new, message.api)[0]


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") in ("text", "input_text", "output_text")


def may_wait(call: ToolCall) -> bool:
    """A question to the user, whether a server's tool may run, needs no answer."""
    return isinstance(call.wire, Mapping) and call.wire.get("type") == "mcp_approval_request"


def item_in_place_of_result(call: ToolCall, id: str, text: str) -> Message | None:
    """What answers a call of Responses that is no function's, and got no result: an item of the kind its call wants ("No tool
    output found for custom tool call"). None where a function's output serves."""
    kind = call.wire.get("type") if isinstance(call.wire, Mapping) else None
    item: dict[str, Any]
    if kind == "custom_tool_call":
        item = {"output": text}
    elif kind == "shell_call":
        outcome = {"type": "exit", "exit_code": 1}
        item = {"output": [{"stdout": "", "stderr": text, "outcome": outcome}]}
    elif kind == "apply_patch_call":
        item = {"status": "failed", "output": text}
    elif kind == "computer_call":
        item = {"output": blank_picture().wire}
    else:
        return None
    return parse_message({"type": f"{kind}_output", "call_id": id, **item}, "openai.responses")[0]


def _drop_loose(out: list[Message], done: list[Repair], seen: dict[str, Message]) -> bool:
    """Takes reasoning off the end that nothing of the model's follows."""
    before = len(out)
    while out and _is_reasoning(out[-1]):
        seen.pop(item_id(out.pop()) or "", None)
        done.append(Repair(len(out), "reasoning without the item that has to follow it: left out"))
    return len(out) != before


def _is_reasoning(message: Message) -> bool:
    return (
        message.api == "openai.responses"
        and message.role == "assistant"
        and len(message.parts) == 1
        and type(message.parts[0]) is Thinking
    )


def signed_thinking(messages: Sequence[Message], done: list[Repair]) -> Sequence[Message]:
    """Anthropic: thinking without its signature is refused ("thinking.signature: Field required"): an answer that was broken
    off has it. Such a message goes without any of its thinking, since none is removed singly."""
    out: list[Message] | None = None
    for at, message in enumerate(messages):
        if message.role != "assistant" or all(part.signed for part in message.parts if type(part) is Thinking):
            continue
        parts = tuple(part for part in message.parts if type(part) is not Thinking)
        out = list(messages) if out is None else out
        out[at] = msgspec.structs.replace(message, parts=parts, edited=True)
        done.append(Repair(at, "thinking without its signature: the message goes without its thinking"))
    return messages if out is None else out


def results_first(messages: Sequence[Message], done: list[Repair]) -> Sequence[Message]:
    """Anthropic: in a user message the results come first ("tool_use ids were found without tool_result blocks immediately
    after" otherwise); what the client put before or between them goes behind."""
    out: list[Message] | None = None
    for at in range(1, len(messages)):
        message, before = messages[at], messages[at - 1]
        if message.role != "user" or message.span is None or before.role != "tool" or before.span is None:
            continue
        if message.wire is before.wire and message.span[0] < before.span[0] and not message.edited:
            out = list(messages) if out is None else out
            out[at] = msgspec.structs.replace(message, edited=True)
            done.append(Repair(at, "text before a tool's result: put behind it"))
    return messages if out is None else out


def few_marks(messages: list[Message], done: list[Repair]) -> list[Message]:
    """Anthropic takes four cache marks ("A maximum of 4 blocks with cache_control"): of more, the last four stay, which
    lie where the history grows."""
    marked = [(at, place) for at, message in enumerate(messages) for place in marks_of(message)]
    if len(marked) <= MAX_CACHE_MARKS:
        return messages
    out = list(messages)
    for at, place in marked[:-MAX_CACHE_MARKS]:
        out[at] = _unmarked(out[at], place)
        done.append(Repair(at, f"a cache mark left out: {MAX_CACHE_MARKS} are taken, the last ones stay"))
    return out


def marks_of(message: Message) -> list[int]:
    """The places of a message's blocks that carry a cache mark."""
    if message.api != "anthropic.messages":
        return []
    return [
        place
        for place, part in enumerate(message.parts)
        if isinstance(wire := getattr(part, "wire", None), Mapping) and wire.get("cache_control") is not None
    ]


def _unmarked(message: Message, place: int) -> Message:
    """The message with one of its blocks free of its cache mark."""
    parts = list(message.parts)
    part = parts[place]
    block = {key: value for key, value in part.wire.items() if key != "cache_control"}
    parts[place] = msgspec.structs.replace(part, wire=block)
    wire = message.wire
    if message.span is not None or message.edited:
        return msgspec.structs.replace(message, parts=tuple(parts), edited=True)
    content = wire["content"] if isinstance(wire, Mapping) else wire
    blocks = [*content[:place], block, *content[place + 1 :]]
    wire = {**wire, "content": blocks} if isinstance(wire, Mapping) else blocks
    return msgspec.structs.replace(message, parts=tuple(parts), wire=wire)


def plain_ends(messages: list[Message], done: list[Repair]) -> list[Message]:
    """Anthropic: no empty block in the system prompt ("text content blocks must be non-empty"), and, where the history ends
    with the assistant's words for the model to go on from, neither thinking nor white space at their end ("final
    assistant content cannot end with trailing whitespace")."""
    out = messages
    for at in {0, len(messages) - 1} if messages else ():
        message = messages[at]
        if message.role == "system" and isinstance(message.wire, str | list | tuple):
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


def whole_server_tools(messages: Sequence[Message], done: list[Repair]) -> Sequence[Message]:
    """Anthropic: a call that the API ran itself stands with its result ("tool use was found without a corresponding
    web_search_tool_result block"). One that was interrupted goes, as does a result without its call. A call may wait
    at the end of the history, since the API goes on from there, and in the newest turn, where it is a program that called
    tools: its result comes with a later message."""
    messages = _once(messages, done)
    called: dict[str, int] = {}
    answered: dict[str, int] = {}
    programs: set[str] = set()
    for at, message in enumerate(messages):
        if message.role == "assistant":
            for part in message.parts:
                if type(part) is Opaque and isinstance(part.wire, Mapping):
                    if part.kind in ("server_tool_use", "mcp_tool_use"):
                        called[str(part.wire.get("id"))] = at
                    elif part.kind.endswith("_tool_result"):
                        answered[str(part.wire.get("tool_use_id"))] = at
                elif type(part) is ToolCall and isinstance(part.wire, Mapping):
                    caller = part.wire.get("caller")
                    if isinstance(caller, Mapping) and caller.get("tool_id"):
                        programs.add(str(caller["tool_id"]))
    if not called and not answered:
        return messages
    turn = max((at for at, message in enumerate(messages) if message.role == "user"), default=-1)
    loose = {
        id
        for id, at in called.items()
        if id not in answered and at != len(messages) - 1 and (at < turn or id not in programs)
    }
    loose |= {id for id, at in answered.items() if called.get(id, at + 1) > at}
    if not loose:
        return messages
    out = list(messages)
    for at in {*(called[id] for id in loose if id in called), *(answered[id] for id in loose if id in answered)}:
        parts = tuple(part for part in messages[at].parts if _server_id(part) not in loose)
        out[at] = msgspec.structs.replace(messages[at], parts=parts, edited=True)
        done.append(Repair(at, f"a call that the provider runs, or its result, {LOOSE}: left out"))
    return out


def _once(messages: Sequence[Message], done: list[Repair]) -> Sequence[Message]:
    """The second of two such blocks under one id goes: ids must be unique there, too."""
    seen: set[tuple[str, str]] = set()
    out: list[Message] | None = None
    for at, message in enumerate(messages):
        kept: list[Part] = []
        for part in message.parts if message.role == "assistant" else ():
            id = _server_id(part)
            if id is not None and isinstance(part, Opaque):
                if (part.kind, id) in seen:
                    continue
                seen.add((part.kind, id))
            kept.append(part)
        if message.role == "assistant" and len(kept) != len(message.parts):
            out = list(messages) if out is None else out
            out[at] = msgspec.structs.replace(message, parts=tuple(kept), edited=True)
            done.append(Repair(at, "a call that the provider runs, or its result, stood twice: the second left out"))
    return messages if out is None else out


def _server_id(part: Part) -> str | None:
    if type(part) is not Opaque or not isinstance(part.wire, Mapping):
        return None
    if part.kind in ("server_tool_use", "mcp_tool_use"):
        return str(part.wire.get("id"))
    return str(part.wire.get("tool_use_id")) if part.kind.endswith("_tool_result") else None
