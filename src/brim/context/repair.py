"""Makes a history valid for the provider it goes to: every call answered once, nothing empty, roles in an order it takes.

Pure: messages in, messages and what was done out. A valid history comes back as the same list. Repairs never throw
text away: a result that lost its call is the only thing removed, and the plan records it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

import msgspec

from brim.context.plan import Repair
from brim.context.repair_apis import (
    few_marks,
    item_in_place_of_result,
    may_wait,
    plain_ends,
    results_first,
    signed_thinking,
    whole_items,
    whole_server_tools,
)
from brim.context.repair_order import ALTERNATE, CONTINUES, GO_ON, USER_FIRST, in_order, stands_apart, user_first
from brim.conversation import Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from brim.formats.arguments import arguments_object_text, is_object_text
from brim.formats.rules_chat import MAX_TOOL_CALLS

INTERRUPTED = "[interrupted: this call has no recorded result; whether it took effect is unknown]"
NO_OUTPUT = "(no output)"
EMPTY = "(empty message)"
FILLED = frozenset({NO_OUTPUT, EMPTY, ""})
STAND_INS = frozenset({INTERRUPTED, CONTINUES})
AS_IT_IS = "as it is"
"""In place of a dialect: nothing is repaired, since the provider holds the calls that these results answer."""
NONEMPTY = frozenset({"anthropic", "gemini", "mistral", "openai-strict"})
"""Dialects that refuse empty content."""
CHAT = frozenset({"openai", "openai-strict", "mistral", "gemini"})
UNIQUE_IDS = frozenset({"anthropic", "mistral"})
"""Dialects that want each call id once in a request, in their own spelling: Anthropic answers "tool_use ids must be unique"
and "should match pattern", Mistral "must be a-z, A-Z, 0-9, with a length of 9"."""

_SPELLING = {"anthropic": re.compile(r"[A-Za-z0-9_-]+"), "mistral": re.compile(r"[A-Za-z0-9]{9}")}


def repair(
    messages: Sequence[Message], dialect: str, *, first: bool = True, signs: bool = True
) -> tuple[list[Message], tuple[Repair, ...]]:
    """The history as the provider takes it, and what was changed. Places are indices into the list that comes out.
    `first`: nothing but system messages stands before these. `signs`: the model wants its thinking back signed."""
    done: list[Repair] = []
    if dialect == AS_IT_IS:
        return list(messages), ()
    if dialect == "openai-responses":
        messages = whole_items(messages, done)
    elif dialect == "anthropic":
        messages = whole_server_tools(messages, done)
        messages = signed_thinking(messages, done) if signs else messages
        messages = results_first(messages, done)
    out = _pair(messages, done, _Ids(dialect) if dialect in UNIQUE_IDS else None, dialect)
    if dialect in CHAT:
        out = _few_calls(out, done)
    out = _fill_empty(out, done, is_blank if dialect in NONEMPTY else _is_void)
    if first and done and all(stands_apart(message) for message in out):
        done.append(Repair(len(out), "a user's line where nothing else of the conversation can be sent"))
        out = [*out, GO_ON]
    if first and dialect in USER_FIRST:
        out = user_first(out, done)
    if dialect == "anthropic":
        out = plain_ends(out, done)
        out = few_marks(out, done)
    if dialect in ALTERNATE:
        out = in_order(out, done)
    return out, tuple(done)


def is_blank(message: Message) -> bool:
    """The message has no content at all, or a text block with nothing but white space in it."""
    if _is_void(message):
        return True
    for part in message.parts:
        if type(part) is Text:
            if not part.text or part.text.isspace():
                return True
        elif type(part) is ToolResult and (not part.content or any(_is_blank_text(inner) for inner in part.content)):
            return True
    return False


def _is_void(message: Message) -> bool:
    """The message has no content at all; empty text is content to the APIs that take it."""
    parts = message.parts
    if not parts:
        return True
    first = type(parts[0])
    if first is ToolResult:
        return not message.result.content
    return first is Thinking and _only_thinks(message)


def _only_thinks(message: Message) -> bool:
    """A chat message with nothing but reasoning: its fields do not make up for the content ("content or tool_calls must be
    set")."""
    return message.api == "openai.chat" and all(type(part) is Thinking for part in message.parts)


def _is_blank_text(part: Part) -> bool:
    return type(part) is Text and (not part.text or part.text.isspace())


class _Step:
    """The calls of the step being read: which wait for a result, and how many items of it stand with the provider, so that
    a result may answer one of those."""

    def __init__(self) -> None:
        self.open: dict[str, ToolCall] = {}
        self.answered: set[str] = set()
        self.references = 0
        self.renamed: dict[str, list[str]] = {}


def _pair(messages: Sequence[Message], done: list[Repair], ids: _Ids | None, dialect: str) -> list[Message]:
    """Each call gets exactly one result, right behind its step; results without a call go."""
    out: list[Message] = []
    step = _Step()
    lost: dict[str, int] = {}  # call id -> place of the stand-in result given to it
    late: dict[str, list[str]] = {}  # the id a call came with -> those it was given, where no result has come yet

    def close() -> None:
        for id, call in step.open.items():
            if may_wait(call):
                continue
            lost[id] = len(out)
            done.append(Repair(len(out), f"call {id} had no result: a stand-in says so"))
            name = id.removeprefix("function:") if id.startswith("function:") else None
            own = item_in_place_of_result(call, id, INTERRUPTED)
            out.append(own or Message("tool", (ToolResult(id, (Text(INTERRUPTED),), None),), name=name))
        for id, given in step.renamed.items():
            if waiting := [each for each in given if each in step.open]:
                late[id] = waiting
        step.open = {}

    for message in messages:
        role = message.role
        if role == "tool":
            id = message.result.call_id
            if not id and step.open and not step.renamed.get(id):
                done.append(Repair(len(out), "a result without an id: it answers the first open call"))
                message = _answer_to(message, next(iter(step.open)))
                id = message.result.call_id
            if step.renamed.get(id):  # results come in the order of their calls
                message = _answer_to(message, step.renamed[id].pop(0))
                id = message.result.call_id
            elif id not in step.open and id not in lost and late.get(id):
                message = _answer_to(message, late[id].pop(0))
                id = message.result.call_id
            if id in step.open:
                del step.open[id]
                step.answered.add(id)
                out.append(message)
            elif step.references and id not in step.answered and id not in lost:
                step.references -= 1
                step.answered.add(id)
                out.append(message)
            elif id in lost:
                done.append(Repair(lost[id], f"result of call {id} moved to its call"))
                out[lost.pop(id)] = message
            else:
                again = "came twice" if id in step.answered else "has no call before it"
                done.append(Repair(len(out), f"result of call {id} {again}: left out"))
            continue
        starts_step = role != "assistant" or message.api != "openai.responses" or (out and out[-1].role == "tool")
        if step.open and starts_step:
            close()
        if role == "assistant":
            if not out or out[-1].role != "assistant":
                step = _Step()
            if message.api == "openai.responses" and _refers(message):
                step.references += 1
            if any(type(part) is ToolCall for part in message.parts):
                message = _unique_calls(message, step, len(out), done, ids, dialect)
            elif message.api == "openai.chat" and message.wire is not None and message.wire.get("tool_calls") == []:
                done.append(Repair(len(out), "an empty list of calls left out"))
                wire = {key: value for key, value in message.wire.items() if key != "tool_calls"}
                message = msgspec.structs.replace(message, wire=wire)
        out.append(message)
    if step.open:
        close()
    return out if done else list(messages)


def _few_calls(messages: list[Message], done: list[Repair]) -> list[Message]:
    """More calls in one message than the API takes back ("array too long") become several messages, each with its results."""
    if not any(len(message.parts) > MAX_TOOL_CALLS and len(message.calls) > MAX_TOOL_CALLS for message in messages):
        return messages
    out: list[Message] = []
    moved: dict[int, int] = {}
    at = 0
    while at < len(messages):
        message = messages[at]
        moved[at] = len(out)
        at += 1
        if len(message.calls) <= MAX_TOOL_CALLS:
            out.append(message)
            continue
        results: dict[str, Message] = {}
        while at < len(messages) and messages[at].role == "tool":
            moved[at] = len(out)
            results[messages[at].result.call_id] = messages[at]
            at += 1
        calls = message.calls
        done.append(
            Repair(
                moved[at - len(results) - 1], f"{len(calls)} calls in one message: split, {MAX_TOOL_CALLS} are taken"
            )
        )
        rest = tuple(part for part in message.parts if type(part) is not ToolCall)
        for start in range(0, len(calls), MAX_TOOL_CALLS):
            some = calls[start : start + MAX_TOOL_CALLS]
            if start == 0:
                out.append(msgspec.structs.replace(message, parts=(*rest, *some), edited=True))
            else:
                wire = {"role": "assistant", "content": None}
                out.append(Message("assistant", some, message.api, wire, edited=True))
            out.extend(results[call.id] for call in some if call.id in results)
    done[:-1] = [msgspec.structs.replace(each, at=moved.get(each.at, each.at)) for each in done[:-1]]
    return out


def _refers(message: Message) -> bool:
    """An item of Responses that stands for one the provider keeps: which, and so whether a call, only it knows."""
    part = message.parts[0] if len(message.parts) == 1 else None
    return type(part) is Opaque and part.kind == "item_reference"


def _unique_calls(
    message: Message, step: _Step, at: int, done: list[Repair], ids: _Ids | None, dialect: str
) -> Message:
    """Opens the message's calls. An exact duplicate is merged into one; another call under a used id gets its own, as does
    one without an id or with a longer one than the API takes. Arguments that are no JSON object become one.

    `ids` are those of the whole history so far, None where the provider takes an id again in a later step.
    """
    parts: list[Part] = []
    known: dict[str, ToolCall] = {}
    changed = False
    for part in message.parts:
        if not isinstance(part, ToolCall):
            parts.append(part)
            continue
        id = part.id
        twin = known.get(id)
        if id and twin is not None and (twin.name, twin.arguments) == (part.name, part.arguments):
            done.append(Repair(at, f"call {id} stood twice: merged into one"))
            changed = True
            continue
        fresh = id
        if id.startswith("function:") and part.wire is not None and "id" not in part.wire:
            pass  # a `function_call` of the old kind: its name is all it has for an id
        elif ids is not None:
            fresh = ids.take(id)
        else:
            fresh = base = id if 0 < len(id) <= LONGEST_ID.get(dialect, len(id)) else _short(id)
            n = 1
            while fresh in step.open:
                n += 1
                fresh = f"{base}-{n}"
        if _nameless(part):
            changed = True
            done.append(Repair(at, f"call {id} had no name: it got one"))
            part = msgspec.structs.replace(part, name=UNNAMED)
        if _bad_arguments(part, dialect):
            changed = True
            done.append(Repair(at, f"the arguments of call {id} are no JSON object: put into one"))
            part = msgspec.structs.replace(part, arguments=arguments_object_text(part.arguments))
        if fresh != id:
            changed = True
            done.append(Repair(at, f"the call id {id!r} cannot stand here: renamed to {fresh}"))
            step.renamed.setdefault(id, [id] if id in step.open else []).append(fresh)
            part = msgspec.structs.replace(part, id=fresh)
        known.setdefault(id, part)
        step.open[fresh] = part
        parts.append(part)
    return msgspec.structs.replace(message, parts=tuple(parts), edited=True) if changed else message


UNNAMED = "unnamed"
"""The tool of a call that came without a name, as models now and then stream one: every API wants a name back."""


def _nameless(call: ToolCall) -> bool:
    wire = call.wire
    if isinstance(wire, Mapping) and wire.get("type") in ("function_call", "custom_tool_call"):  # an item of Responses
        return not wire.get("name")
    return not call.name


LONGEST_ID = {"openai-responses": 64}
"""Characters of a call id that an API takes at most."""


def _short(id: str) -> str:
    return f"call_{blake2b(id.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}" if id else "call"


def _bad_arguments(call: ToolCall, dialect: str) -> bool:
    """Arguments the API refuses: broken JSON, or JSON that is no object. Nothing at all passes for an empty object at
    OpenAI; chat templates and Anthropic want the object."""
    text = call.arguments
    wire = call.wire
    if (
        dialect == "anthropic"
        and isinstance(wire, Mapping)
        and ("input" in wire or "tool_use" in str(wire.get("type")))
    ):
        return not isinstance(wire.get("input"), Mapping)
    if not text or text.isspace():
        return dialect in ALTERNATE or dialect == "gemini"
    return not is_object_text(text)


class _Ids:
    """Gives each call of a history an id of its own, in the spelling its provider takes; a fitting one stays."""

    def __init__(self, dialect: str) -> None:
        self._spelling = _SPELLING[dialect]
        self._short = dialect == "mistral"
        self._used: set[str] = set()

    def take(self, id: str) -> str:
        fresh, n = self._spelled(id), 1
        while fresh in self._used:
            n += 1
            fresh = self._spelled(f"{id}-{n}")
        self._used.add(fresh)
        return fresh

    def _spelled(self, id: str) -> str:
        if self._spelling.fullmatch(id):
            return id
        if self._short:
            return blake2b(id.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()[:9]
        return re.sub(r"[^A-Za-z0-9_-]", "_", id) or "call"


def _answer_to(message: Message, id: str) -> Message:
    if message.result.call_id == id:
        return message
    result = msgspec.structs.replace(message.result, call_id=id)
    return msgspec.structs.replace(message, parts=(result,), edited=True)


def _fill_empty(messages: list[Message], done: list[Repair], empty: Callable[[Message], bool]) -> list[Message]:
    if not any(empty(message) for message in messages):
        return messages
    out: list[Message] = []
    for at, message in enumerate(messages):
        if not empty(message) or (message.role == "system" and not isinstance(message.wire, Mapping)):
            out.append(message)
            continue
        parts = tuple(kept for part in message.parts if (kept := _filled(part)) is not None)
        if not parts or (all(type(part) is Thinking for part in parts) and message.role == "user"):
            parts = (Text(EMPTY),)
        elif _only_thinks(message):
            parts = (*parts, Text(EMPTY))
        done.append(Repair(at, f"empty {message.role} content filled"))
        out.append(msgspec.structs.replace(message, parts=parts, edited=True))
    return out


def _filled(part: Part) -> Part | None:
    if _is_blank_text(part):
        return None
    if isinstance(part, ToolResult):
        content = tuple(inner for inner in part.content if not _is_blank_text(inner))
        if len(content) != len(part.content) or not content:
            return msgspec.structs.replace(part, content=content or (Text(NO_OUTPUT),))
    return part
