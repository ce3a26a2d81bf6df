"""Tool calls for models that have none: told in plain messages, held to a form by a JSON schema.

`prompted_request` turns a chat body with tools into one without: the tools become messages at the front that never
change (so the prefix stays cached), calls become the JSON they were, results become user messages, and the reply's
schema allows exactly a call or an answer. Each message is turned by itself, whatever stands around it: so a counter can
count messages one by one (`written`, `tools_written`). `read_reply` turns what the model wrote into text or a call.

There are two forms. The full one gives every tool with its schema. The small one is for models of some hundred million
parameters, measured by `bench/small_model_tools.py`: only tools with one required text argument, named by what they do,
the argument first and picked from offered words, an example of each tool in English and Chinese as earlier turns, and
answers that pick lines of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from brim.conversation import Media, Message, Opaque, Text, ToolCall, ToolResult
from brim.formats import parse_request
from brim.providers.offered import is_chinese, line_groups, lines_of, paths_of, sentences, words_of

RESULT = "Result:\n"
TALK = "talk"
_NO_ARGUMENT = "-"
_LABELS = {"grep": "search text", "glob": "list files", "read": "read file", "bash": "run command"}
"""How a small model is told of brim's tools: by what they do (28 of 38 requests right; by their names 15)."""
_EXAMPLES: tuple[tuple[str, str, str], ...] = (
    ("Search for the word ERROR", "grep", "ERROR"), ("搜索 ERROR", "grep", "ERROR"),
    ("List the files *.txt", "glob", "*.txt"), ("列出 *.txt 文件", "glob", "*.txt"),
    ("Read notes.txt", "read", "notes.txt"), ("读一下 notes.txt", "read", "notes.txt"),
    ("Run npm install", "bash", "npm install"), ("运行 npm install", "bash", "npm install"),
)  # fmt: skip
_TALKS = (("Good morning", "Good morning! What can I do for you?"), ("早上好", "早上好！有什么可以帮你？"))
_ANSWERS: tuple[tuple[str, str, str, str, str], ...] = (
    ("Search WARN", "grep", "WARN", "a.txt:3:WARN disk full\nb.txt:9:WARN no net", "This is the result:"),
    ("搜索 WARN", "grep", "WARN", "a.txt:3:WARN disk full\nb.txt:9:WARN no net", "结果如下："),
)
_CUE = "\nAnswer:"
"""Ends a result for a small model: with it, 8 of 8 kinds of results were answered, whatever the examples."""
_NOT_FOR_SMALL = frozenset({"recall"})  # its handle is never a word of the user's
_LONGEST_TALK = 200
_UNUSED_KEYWORDS = frozenset({"pattern", "format", "default", "title", "$schema", "examples", "description"})


class Reply(msgspec.Struct, frozen=True):
    """What a model wrote, understood: a call (`name`, `arguments` as JSON text) or an answer (`text`)."""

    text: str = ""
    name: str = ""
    arguments: str = ""

    def message(self, call_id: str) -> dict[str, Any]:
        """The assistant message in the openai.chat format."""
        if not self.name:
            return {"role": "assistant", "content": self.text}
        function = {"name": self.name, "arguments": self.arguments}
        call = {"id": call_id, "type": "function", "function": function}
        return {"role": "assistant", "content": self.text or None, "tool_calls": [call]}


def prompted_request(body: Mapping[str, Any], *, small: bool) -> dict[str, Any]:
    """A chat body without tools that asks for the same. Never changes `body`; raises UsageError on one that is none."""
    request = parse_request(body, "openai.chat")
    left_out = ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "messages")
    prompted = {key: value for key, value in body.items() if key not in left_out}
    front = next((i for i, message in enumerate(request.messages) if message.role != "system"), len(request.messages))
    section = tools_written(request.tools, small=small)
    turned = [written(message, small=small) for message in request.messages]
    prompted["messages"] = [
        {"role": role, "content": content} for role, content in (*turned[:front], *section, *turned[front:])
    ]
    if request.tools and "response_format" not in body:
        choice = body.get("tool_choice")
        schema = (
            _small_schema(request.messages, request.tools, choice) if small else _full_schema(request.tools, choice)
        )
        form = {"name": "reply", "strict": True, "schema": schema}
        prompted["response_format"] = {"type": "json_schema", "json_schema": form}
    return prompted


def written(message: Message, *, small: bool) -> tuple[str, str]:
    """Role and content of a message as it is sent: a pure function of the message alone."""
    if message.role == "tool":
        return "user", RESULT + _text(message.result.content) + (_CUE if small else "")
    text = _text(message.parts)
    if message.role != "assistant":
        return message.role, text
    lines = [_call_json(call, small) for call in message.calls]
    if not lines and small:
        said, picked = _picked(text)
        if picked:
            return "assistant", _json({"text": said, "lines": picked})
        return "assistant", _json({"argument": _NO_ARGUMENT, "tool": TALK, "text": text})
    if not lines:
        return "assistant", _json({"answer": text})
    return "assistant", "\n".join([text, *lines] if text else lines)


def tools_written(tools: Sequence[Mapping[str, Any]], *, small: bool) -> list[tuple[str, str]]:
    """The messages that tell of the tools, as role and content; the same for the same tools. None for no tools."""
    if not tools:
        return []
    return list(_small_section(tools)) if small else [("system", _full_section(tools))]


def read_reply(content: str, tools: Sequence[Mapping[str, Any]], *, small: bool) -> Reply:
    """What the model wrote. What is no JSON of the protocol (it was cut off, or there was no schema) is text."""
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError):
        value = None
    if not isinstance(value, dict):
        return Reply(text=AnswerReader().feed(content) or content)
    tool = value.get("tool")
    if isinstance(value.get("answer"), str):
        return Reply(text=value["answer"])
    if isinstance(value.get("text"), str):
        lines = value.get("lines")
        return Reply(text=value["text"] + "".join(map(_item, lines if isinstance(lines, list) else [])))
    if small and isinstance(tool, str) and isinstance(value.get("argument"), str):
        for offered, label, argument in _small_tools(tools):
            if label == tool:
                return Reply(name=offered, arguments=_json({argument: value["argument"]}))
    if not small and isinstance(tool, str) and isinstance(value.get("arguments"), dict):
        return Reply(name=tool, arguments=_json(value["arguments"]))
    return Reply(text=content)


class AnswerReader:
    """The text of an answer while its JSON is still being written: feed pieces, get what can be shown.

    A call shows nothing. Quotes inside JSON strings are always escaped, so the name of a field followed by a colon can
    only be that field.
    """

    def __init__(self) -> None:
        self._raw = ""
        self._at = 0
        self._in: str = ""

    def feed(self, piece: str) -> str:
        """The text that this piece adds to the answer."""
        self._raw += piece
        shown = ""
        while True:
            before = (self._at, self._in)
            shown += self._step()
            if (self._at, self._in) == before:
                return shown

    def _step(self) -> str:
        if self._in == "text":
            return self._string()
        if self._in == "lines":
            return self._line()
        for field, inside in (('"text"', "text"), ('"answer"', "text"), ('"lines"', "lines")):
            found = self._raw.find(field, self._at)
            rest = self._raw[found + len(field) :].lstrip() if found >= 0 else ""
            opening = rest[1:].lstrip()[:1] if rest[:1] == ":" else ""
            if opening and opening == ('"' if inside == "text" else "["):
                self._at = self._raw.index(opening, self._raw.index(":", found + len(field))) + 1
                self._in = inside
                break
        return ""

    def _string(self) -> str:
        """Complete characters of the string that `_at` stands in; half an escape waits."""
        start = at = self._at
        raw = self._raw
        while at < len(raw) and raw[at] != '"':
            if raw[at] == "\\":
                length = 6 if raw[at + 1 : at + 2] == "u" else 2
                if length == 6 and raw[at + 2 : at + 4].lower() in ("d8", "d9", "da", "db"):
                    length = 12  # both halves of a surrogate pair
                if at + length > len(raw):
                    break
                at += length
            else:
                at += 1
        self._at = at
        if at < len(raw) and raw[at] == '"':
            self._at, self._in = at + 1, "done"
        try:
            return str(msgspec.json.decode(f'"{raw[start:at]}"'))
        except (msgspec.DecodeError, UnicodeError):
            return ""

    def _line(self) -> str:
        """The next complete string of the list that `_at` stands in."""
        start = self._raw.find('"', self._at)
        if start < 0:
            return ""
        at = start + 1
        while at < len(self._raw) and self._raw[at] != '"':
            at += 2 if self._raw[at] == "\\" else 1
        if at >= len(self._raw):
            return ""
        self._at = at + 1
        try:
            return _item(msgspec.json.decode(self._raw[start : at + 1]))
        except (msgspec.DecodeError, UnicodeError):
            return ""


def _item(line: object) -> str:
    return f"\n- {line}" if "`" in str(line) else f"\n- `{line}`"


def _picked(text: str) -> tuple[str, list[str]]:
    """An answer that picked lines, taken apart again: so it stands in the history as the model wrote it."""
    said, *lines = text.split("\n- ")
    return said, [line[1:-1] if line[:1] == line[-1:] == "`" and len(line) > 1 else line for line in lines]


# ---------------------------------------------------------------------- the small form


def _small_tools(tools: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Name, label and argument of each tool that takes one required text: what a small model can call."""
    fit = []
    for name, _, schema in _described(tools):
        properties = schema.get("properties")
        required = schema.get("required") or (list(properties)[:1] if isinstance(properties, Mapping) else [])
        if name in _NOT_FOR_SMALL or not isinstance(properties, Mapping) or len(required) != 1:
            continue
        argument = properties.get(required[0])
        if isinstance(argument, Mapping) and argument.get("type") in ("string", None):
            fit.append((name, _LABELS.get(name, name), str(required[0])))
    return fit


def _small_section(tools: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    offered = {name: label for name, label, _ in _small_tools(tools)}
    others = [f"{name}: {about}" for name, about, _ in _described(tools) if name in offered and name not in _LABELS]
    yield "system", "\n".join([*others, "Reply with JSON."])
    for asked, name, argument in _EXAMPLES:
        if name in offered:
            yield "user", asked
            yield "assistant", _json({"argument": argument, "tool": offered[name]})
    for asked, answer in _TALKS:
        yield "user", asked
        yield "assistant", _json({"argument": _NO_ARGUMENT, "tool": TALK, "text": answer})
    for asked, name, argument, result, sentence in _ANSWERS:
        if name in offered:
            yield "user", asked
            yield "assistant", _json({"argument": argument, "tool": offered[name]})
            yield "user", RESULT + result + _CUE
            yield "assistant", _json({"text": sentence, "lines": result.split("\n")})


def _small_schema(
    messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], choice: object = None
) -> dict[str, Any]:
    """What the model may reply now: a call with an offered word, talk, or, after a result, an answer from its lines."""
    asked = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "user"), None)
    question = messages[asked].text if asked is not None else ""
    since = messages[asked + 1 :] if asked is not None else messages
    results = [message.result.text for message in since if message.role == "tool"]
    words = words_of(question)
    paths = [path for path in (paths_of(results[-1]) if results else []) if path not in words]
    # What was looked up since the question is not offered again: a model this small would go in circles.
    made = {_main_argument(call.arguments) for message in since for call in message.calls}
    calls = []
    named = _named(choice)
    for name, label, argument in _small_tools(tools) if choice != "none" else ():
        left = [word for word in [*words, *(paths if argument == "path" else ())] if word not in made]
        if left and named in (None, name):
            calls.append(_object(argument={"enum": left}, tool={"const": label}))
    answers: list[dict[str, Any]] = []
    lines = lines_of(results[-1]) if results else []
    if lines:
        groups = line_groups(lines)
        said = sentences(is_chinese(question), len(groups), len(lines))
        picks = {"type": "array", "prefixItems": [{"enum": group} for group in groups], "minItems": len(groups)}
        answers.append(_object(text={"enum": list(said)}, lines=picks))
    else:
        talk = {"type": "string", "maxLength": _LONGEST_TALK}
        answers.append(_object(argument={"const": _NO_ARGUMENT}, tool={"const": TALK}, text=talk))
    must_call = choice == "required" or named is not None
    offers = calls if must_call and calls else [*calls, *answers]
    return offers[0] if len(offers) == 1 else {"anyOf": offers}


def _main_argument(arguments: str) -> str:
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError):
        return arguments
    texts = [item for item in value.values() if isinstance(item, str)] if isinstance(value, dict) else []
    return texts[0] if texts else ""


# ---------------------------------------------------------------------- the full form


def _full_section(tools: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "You can use these tools. Reply with one JSON object, either a call",
        '{"tool": NAME, "arguments": {...}}',
        "or, when you know enough, the answer to the user",
        '{"answer": TEXT}',
        f"What a tool returned comes back as a message that begins with {RESULT.strip()}",
        "",
    ]
    for name, about, schema in _described(tools):
        lines.append(f"{name}: {about} Arguments: {_json(_plain(schema, keep=('description', 'default')))}")
    return "\n".join(lines)


def _full_schema(tools: Sequence[Mapping[str, Any]], choice: object = None) -> dict[str, Any]:
    named = _named(choice)
    calls = [
        _object(tool={"const": name}, arguments=_plain(schema) or {"type": "object"})
        for name, _, schema in _described(tools)
        if choice != "none" and named in (None, name)
    ]
    answer = _object(answer={"type": "string"})
    offers = calls if calls and (choice == "required" or named is not None) else [*calls, answer]
    return offers[0] if len(offers) == 1 else {"anyOf": offers}


# ---------------------------------------------------------------------- shared


def _described(tools: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Name, first sentence of the description, and schema of each function tool."""
    for tool in tools:
        inner = tool.get("function", tool)
        if isinstance(inner, Mapping) and isinstance(inner.get("name"), str):
            about = str(inner.get("description") or "").strip()
            schema = inner.get("parameters")
            yield inner["name"], about.split(". ")[0].split("\n")[0].rstrip(".") + ".", schema or {}


def _plain(schema: Any, keep: Sequence[str] = ()) -> Any:
    """A schema without the keywords that llama.cpp's grammars cannot hold to (or that only cost tokens)."""
    if isinstance(schema, Mapping):
        plain: dict[str, Any] = {}
        for key, value in schema.items():
            if key == "properties" and isinstance(value, Mapping):
                plain[key] = {name: _plain(inner, keep) for name, inner in value.items()}
            elif key not in _UNUSED_KEYWORDS or key in keep:
                plain[key] = _plain(value, keep)
        return plain
    return [_plain(item, keep) for item in schema] if isinstance(schema, list) else schema


def _named(choice: object) -> str | None:
    """The one function that `tool_choice` asks for."""
    inner = choice.get("function") if isinstance(choice, Mapping) else None
    name = inner.get("name") if isinstance(inner, Mapping) else None
    return name if isinstance(name, str) else None


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _call_json(call: ToolCall, small: bool) -> str:
    if small:
        return _json({"argument": _main_argument(call.arguments), "tool": _LABELS.get(call.name, call.name)})
    try:
        arguments = msgspec.json.decode(call.arguments or "{}")
    except (msgspec.DecodeError, UnicodeError):
        arguments = call.arguments
    return _json({"tool": call.name, "arguments": arguments})


def _text(parts: Sequence[object]) -> str:
    texts = []
    for part in parts:
        if isinstance(part, Text):
            texts.append(part.text)
        elif isinstance(part, ToolResult):
            texts.append(_text(part.content))
        elif isinstance(part, (Media, Opaque)):
            texts.append(f"[{part.kind}]")
    return "\n".join(texts)


def _json(value: object) -> str:
    """JSON with a space after commas and colons, as models write it."""
    import json

    return json.dumps(value, ensure_ascii=False)
