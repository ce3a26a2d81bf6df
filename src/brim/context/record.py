"""What happened in a history, read off its tool calls and replies: files, commands, errors, decisions, exchanges.

Tools have any names and arguments; what a call did is judged by the verb in its name, by path-like arguments and, for
shells, by the command line. Only the first and last characters of a result are looked at: outcomes stand at the edges,
and the reading stays linear in the number of messages, whatever their size.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from brim.context.memo import ByText
from brim.context.wording import is_injected
from brim.conversation import Message

Use: TypeAlias = Literal["read", "wrote", "edited", "deleted", "moved"]

_EDGE_CHARS = 1_600
_LOOKED_AT = 200
"""Of so many of the newest commands and decisions the details are read: a summary has room for fewer."""
_COMMAND_CHARS = 4_000


class FileUse(msgspec.Struct):
    """A path and how often it was used in which way; `last` is the message index of the last use."""

    path: str
    uses: dict[Use, int]
    last: int


class Run(msgspec.Struct):
    """A command (its first line), how its last run ended and how often it ran; `edges` is what that run printed."""

    command: str
    outcome: str
    failed: bool
    last: int
    edges: str
    times: int = 1


class Failure(msgspec.Struct):
    """A failed call: the tool and the line of its output that says why."""

    tool: str
    line: str
    last: int
    times: int = 1


class Exchange(msgspec.Struct):
    """A request of the user and the reply that ended its turn; `done` is None where the reply does not say."""

    index: int
    request: str
    reply: str
    done: bool | None


class Record(msgspec.Struct):
    """Everything that `record_of` found, each list in order of first appearance."""

    files: list[FileUse]
    runs: list[Run]
    failures: list[Failure]
    decisions: list[tuple[int, str]]
    exchanges: list[Exchange]
    tools: dict[str, int]


_VERBS: tuple[tuple[Use, re.Pattern[str]], ...] = (
    ("deleted", re.compile(r"delete|remove|unlink|(?:^|_)rm(?:$|_)", re.I)),
    ("moved", re.compile(r"move|rename|(?:^|_)mv(?:$|_)|copy", re.I)),
    ("edited", re.compile(r"edit|replace|patch|update|insert|append|modify", re.I)),
    ("wrote", re.compile(r"write|create|save|put_file|new_file|add_file", re.I)),
    ("read", re.compile(r"read|view|open|cat|get_?file|show|load|fetch_file", re.I)),
)
_PATH_KEYS = frozenset(
    """
    path file file_path filepath filename file_name notebook_path target_file source destination src dst dest
    absolute_path relative_path abs_path rel_path target paths files new_path old_path relative_workspace_path
    """.split()  # noqa: SIM905 - a word list reads better as prose
)
_SHELL_KEYS = ("command", "cmd", "script", "bash", "shell", "commands")
_SHELL_NAME = re.compile(r"bash|shell|terminal|exec|command|run|powershell|console", re.I)
_PATH_SHAPE = re.compile(r"(?:~|\.{1,2})?/?(?:[\w@.+\u4e00-\u9fff-]+/)*[\w@.+\u4e00-\u9fff-]*\.?[\w\u4e00-\u9fff-]+")
_REDIRECT = re.compile(r"(?<![0-9&<>=-])(>{1,2})\s*(['\"]?)([\w@~./+-]+)\2")
_SHELL_USES: tuple[tuple[Use, re.Pattern[str]], ...] = (
    ("edited", re.compile(r"\bsed\s+(?:-[a-zA-Z]*i|--in-place)|\bpatch\b|\bgit apply\b|\bperl\s+-\w*i")),
    ("deleted", re.compile(r"\b(?:rm|unlink|git rm)\b")),
    ("moved", re.compile(r"\b(?:mv|cp|git mv)\b")),
    ("wrote", re.compile(r"\b(?:tee|touch)\b")),
    ("read", re.compile(r"\b(?:cat|head|tail|less|more|nl|bat|sed\s+-n|awk|wc)\b")),
)
_SHELL_WORD = re.compile(
    r"[\w@~./+\u4e00-\u9fff-]*[\w\u4e00-\u9fff]\.[A-Za-z]\w{0,9}\b|(?:\.{0,2}/)?(?:[\w@.+-]+/)+[\w@.+-]+"
)
_PATCH_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$|^\+\+\+ (?:b/)?(\S+)", re.M)

_EXIT = re.compile(
    r"<returncode>\s*(-?\d+)|\b(?:exit(?:ed)?(?: with)?(?: code| status)?|return ?code|status)\s*[:=]?\s*(-?\d+)\b|"
    r"\"exit_?code\"\s*:\s*(-?\d+)|退出(?:码|状态)\s*[:：]?\s*(-?\d+)",
    re.I,
)
_EXIT_LINE = re.compile(r"^\s*<returncode>.*$|^\s*</?output>\s*$", re.M)
_TESTS = re.compile(
    r"=+ .*\b\d+ (?:passed|failed|error)[^\n=]*=+|\b\d+ (?:passed|failed)\b[^\n]{0,60}|Ran \d+ tests?[^\n]{0,40}|"
    r"^(?:OK|FAILED)(?: \([^)\n]+\))?$|Tests?:\s+\d+[^\n]{0,60}|test result: [^\n]{0,80}|^(?:PASS|FAIL)\b[^\n]{0,60}",
    re.M,
)
_ERROR_LINE = re.compile(
    r"^.*(?:\b(?:\w*Error|\w*Exception)\b\s*[:(]|\b(?:error|fatal|panic|failed|failure|cannot|denied|not found|"
    r"no such file|"
    r"refused|timed? ?out|unable to|undefined|unexpected)\b|错误|失败|异常|拒绝|超时|找不到|不存在).*$",
    re.I | re.M,
)
_TEST_WORD = re.compile(r"passed|failed|Ran \d|OK|FAIL|PASS|[Tt]ests?:|test result")
_ERROR_NAME = re.compile(r"\b[A-Z]\w*(?:Error|Exception)\b")
_COMPLETED = re.compile(
    r"\b(?:done|fixed|completed?|finished|implemented|resolved|added|updated|created|removed|renamed|changed|deleted|"
    r"replaced|saved|merged|deployed|installed|booked|cancell?ed|succe(?:ss|eded|ssful)\w*|passe[sd]|all set|"
    r"set to|sent|ported|moved|(?:is|are|it's) ready|i(?:'ve| have) \w+ed)\b"
    r"|已(?:经)?|完成|搞定|修好|改好|写好|做好|加好|处理好|成功|通过",
    re.I,
)
_NOT_DONE = re.compile(
    r"\b(?:couldn't|could not|can't|cannot|unable|failed|haven't|have not|not yet|hasn't|won't|didn't|did not|"
    r"remaining|"
    r"blocked|still (?:need|fail|to)|todo|next (?:step|i)|not (?:done|finished|complete)|i(?:'ll| will) (?:need|"
    r"now|next)|"
    r"sorry|unfortunately)\b"
    r"|没(?:有)?(?:完成|成功|找到|做)|未能|未完成|无法|失败|不能|还没|还需|尚未|待(?:办|处理|定)|抱歉|不好意思|"
    r"对不起",
    re.I,
)
_DECISION = re.compile(
    r"\b(?:i(?:'ll| will) (?:use|go with|keep|avoid|skip|stick)|(?:i|we)(?:'ve| have)? (?:decided|chose|opted|"
    r"settled|agreed)|"
    r"decided to|instead of|the (?:best|right|simplest|safest|cleanest) (?:fix|approach|way|option|solution) (?:is|"
    r"would be)|"
    r"root cause|the (?:problem|issue|bug|cause) (?:is|was)|turns out|so i (?:left|kept|used|added|went))\b"
    r"|决定|选用|改用|采用|原因是|问题(?:在于|出在|是)|根因|方案是|最后(?:用|选)",
    re.I,
)
_DECISION_WORDS = (
    "decided", "chose", "opted", "settled", "agreed", "instead of", "the best", "the right", "the simplest",
    "the safest", "the cleanest", "root cause", "the problem", "the issue", "the bug", "the cause", "turns out",
    "so i ", "ll use", "will use", "go with", "ll keep", "will keep", "avoid", "skip", "stick", "决定", "选用", "改用",
    "采用", "原因是", "问题", "根因", "方案是", "最后",
)  # fmt: skip
_DECISION_CHARS = 3_000
_SENTENCE_STOP = re.compile(r"(?<=[.!?])\s|\n|(?<=[。！？])")


_WORK_MESSAGES = 4_000
"""Of a longer history, files, commands, errors and decisions are read in the newest messages alone: there is no room in a
summary for more, and reading all of 20,000 messages took half of a first call. What users said is read whole."""


def record_of(messages: Sequence[Message]) -> Record:
    """Read a history once, in order."""
    record = Record([], [], [], [], [], {})
    files: dict[str, FileUse] = {}
    runs: dict[str, Run] = {}
    failures: dict[str, Failure] = {}
    replies: list[tuple[int, str]] = []
    calls: dict[str, tuple[str, str | None]] = {}  # call id -> tool, its command line
    work_from = len(messages) - _WORK_MESSAGES
    for index, message in enumerate(messages):
        if index < work_from and message.role != "user":
            if message.role == "assistant" and (text := message.text):
                _note_reply(record, text)
        elif message.role == "assistant":
            for made in message.calls:
                command, touched = _call_of(f"{made.name}\n{made.arguments}")
                calls[made.id] = made.name, command
                record.tools[made.name] = record.tools.get(made.name, 0) + 1
                for path, use in touched:
                    seen = files.setdefault(path, FileUse(path, {}, index))
                    seen.uses[use] = seen.uses.get(use, 0) + 1
                    seen.last = index
            text = message.text
            if text:
                _note_reply(record, text)
                replies.append((index, text))
        elif message.role == "tool":
            answered = message.result
            name, command = calls.get(answered.call_id, ("tool", None))
            _note_result(runs, failures, name, command, answered.text, answered.is_error, index)
        elif message.role == "user" and (text := message.text) and not is_injected(text):
            record.exchanges.append(Exchange(index, text, "", None))
    record.files = list(files.values())
    record.runs = list(runs.values())
    for run in record.runs[-_LOOKED_AT:]:
        run.outcome = (_outcome_of_failed if run.failed else _outcome_of)(run.edges)
    record.decisions = _decisions(replies)
    record.failures = list(failures.values())
    for exchange in record.exchanges:
        exchange.done = _is_done(exchange.reply)
    return record


def first_line(text: str, limit: int) -> str:
    """The first line with anything on it, cut at `limit` characters with an ellipsis."""
    line = next((line.strip() for line in text[: limit * 8].splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _note_reply(record: Record, text: str) -> None:
    """The last text of a turn is its outcome: what the assistant says before its calls is overwritten."""
    if record.exchanges:
        record.exchanges[-1].reply = text


def _is_done(reply: str) -> bool | None:
    head = reply[:400]
    if not head:
        return False
    if _NOT_DONE.search(head):
        return False
    return True if _COMPLETED.search(head) else None


def _decisions(replies: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The newest decisions in the assistant's texts, in order."""
    found: list[tuple[int, str]] = []
    for index, text in reversed(replies):
        if decision := _decision_of(text):
            found.append((index, decision))
            if len(found) >= _LOOKED_AT:
                break
    return found[::-1]


def _decision_in(text: str) -> str | None:
    head = text[:_DECISION_CHARS]
    lower = head.lower()
    if not any(word in lower for word in _DECISION_WORDS):  # a plain search for words is far cheaper than the pattern
        return None
    match = _DECISION.search(head)
    if match is None:
        return None
    start, end = 0, len(text)
    for stop in _SENTENCE_STOP.finditer(text, 0, min(len(text), match.end() + 400)):
        if stop.end() <= match.start():
            start = stop.end()
        elif stop.start() >= match.end():
            end = stop.start()
            break
    sentence = text[start:end].strip(" -*#>\t")
    return sentence if 20 <= len(sentence) <= 320 else None


_decision_of = ByText(_decision_in)


def _read_call(call: str) -> tuple[str | None, list[tuple[str, Use]]]:
    """The command line of a call (`name`, newline, JSON arguments) if it has one, and the files it names."""
    name, _, raw = call.partition("\n")
    try:
        value = msgspec.json.decode(raw or "{}")
    except (msgspec.DecodeError, RecursionError):  # nested beyond reading
        value = {}
    arguments: dict[str, Any] = value if isinstance(value, dict) else {}
    command = _command_of(name, arguments)
    return command, _touched(name, arguments) if command is None else _touched_by_shell(command)


_call_of = ByText(_read_call)


def _command_of(name: str, arguments: dict[str, Any]) -> str | None:
    for key in _SHELL_KEYS:
        value = arguments.get(key)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            value = value[-1] if len(value) == 3 and value[1:2] in (["-lc"], ["-c"]) else " ".join(value)
        if isinstance(value, str) and value and (" " in value or _SHELL_NAME.search(name)):
            return value
    return None


def _touched(name: str, arguments: dict[str, Any]) -> list[tuple[str, Use]]:
    """Paths one call names, each with what the call does to it."""
    found: list[tuple[str, Use]] = []
    verb = arguments.get("command") or arguments.get("action") or arguments.get("operation")
    use = _use_of(f"{name} {verb}" if isinstance(verb, str) and len(verb) < 30 else name)
    if isinstance(verb, str) and len(verb) < 30 and (closer := _use_of(verb)):
        use = closer
    for key, value in arguments.items():
        if key in _PATH_KEYS:
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str) and 0 < len(item) < 300 and use and _PATH_SHAPE.fullmatch(item):
                    found.append((item, use))
        elif isinstance(value, str) and "*** " in value[:200]:
            found.extend(_touched_by_patch(value))
    return found


def _use_of(words: str) -> Use | None:
    return next((use for use, pattern in _VERBS if pattern.search(words)), None)


def _touched_by_patch(patch: str) -> list[tuple[str, Use]]:
    uses: dict[str, Use] = {"Add": "wrote", "Update": "edited", "Delete": "deleted"}
    return [
        (match[2].strip(), uses[match[1]]) if match[1] else (match[3], "edited")
        for match in _PATCH_FILE.finditer(patch)
    ]


def _touched_by_shell(command: str) -> list[tuple[str, Use]]:
    found: list[tuple[str, Use]] = []
    if "*** " in command[:200]:
        return _touched_by_patch(command)
    written = set()
    for match in _REDIRECT.finditer(command[:_COMMAND_CHARS]):
        path = match[3]
        if path not in written and not path.startswith("/dev/") and ("." in path or "/" in path):
            written.add(path)
            found.append((path, "wrote" if match[1] == ">" else "edited"))
    line = command[:_COMMAND_CHARS].split("\n", 1)[0]
    for part in re.split(r"&&|\|\||;|\|", line):
        use = next((use for use, pattern in _SHELL_USES if pattern.search(part)), None)
        if use is None:
            continue
        script = re.sub(r"'[^']*'|\"[^\"]*\"", " ", part) if use in ("edited", "read") else part
        for path in _SHELL_WORD.findall(script)[:4]:
            if path not in written and not path.startswith("/dev/"):
                found.append((path, use))
    return found


def _note_result(
    runs: dict[str, Run],
    failures: dict[str, Failure],
    name: str,
    command: str | None,
    text: str,
    is_error: bool | None,
    index: int,
) -> None:
    edges, exit_code = _ends_of(text)
    failed = bool(is_error) or (exit_code is not None and exit_code != 0)
    if command is not None:
        line = first_line(command, 140)
        if line in runs:
            run = runs.pop(line)  # the last run stands at its own place in the order
            run.times, run.last, run.edges, run.failed = run.times + 1, index, edges, failed
            runs[line] = run
        elif line:
            runs[line] = Run(line, "error" if failed else "ok", failed, index, edges)
    if failed:
        why = _error_line(edges) or first_line(_EXIT_LINE.sub("", edges), 160)
        if why:
            known = failures.setdefault(why, Failure(name, why, index, 0))
            known.times += 1
            known.last = index


def _read_ends(text: str) -> tuple[str, int | None]:
    """Both ends of a result, where its outcome stands, and the exit code there."""
    edges = text if len(text) <= 2 * _EDGE_CHARS else f"{text[:_EDGE_CHARS]}\n{text[-_EDGE_CHARS:]}"
    return edges, _exit_code(edges)


_ends_of = ByText(_read_ends)


def _exit_code(edges: str) -> int | None:
    lower = edges.lower()
    if not any(word in lower for word in ("exit", "return", "status", "退出")):
        return None
    match = _EXIT.search(edges)
    if match is None:
        return None
    return int(next(group for group in match.groups() if group is not None))


def _outcome(edges: str, failed: bool) -> str:
    exit_code = _exit_code(edges)
    tests = [match.strip(" =") for match in _TESTS.findall(edges)] if _TEST_WORD.search(edges) else []
    parts = []
    if exit_code is not None:
        parts.append(f"exit {exit_code}")
    elif failed:
        parts.append("error")
    if tests:
        parts.append(first_line(tests[-1], 80))
    return ", ".join(parts) or "ok"


_outcome_of = ByText(lambda edges: _outcome(edges, False))
_outcome_of_failed = ByText(lambda edges: _outcome(edges, True))


def _error_line(edges: str) -> str | None:
    """The last line that names an error type (a traceback ends with its cause), else the last with an error word."""
    lines = [line for line in _ERROR_LINE.findall(edges) if not _EXIT.fullmatch(line.strip())]
    named = [line for line in lines if _ERROR_NAME.search(line)]
    told = named or [line for line in lines if not _TESTS.search(line)] or lines
    return first_line(told[-1], 160) if told else None
