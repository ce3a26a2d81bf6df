"""The deterministic summary: what a fold leaves in the view when no model writes it.

It is read from the original history, never from an earlier summary, and rendered in sections: pins, goal, the user's
constraints and facts, the user's messages, what was done and what not, decisions, files, commands, errors. Rules in
force stand apart from everything else the user said, so that a quoted or withdrawn order is never read as a rule.

Within its budget it degrades by priority. Each group of lines first gets at most its share of the budget, in the order
of `_SHARES`; what is left over is given out again in the same order. A line is in whole or not at all, except the two
requests of the goal, which are shortened in the middle. Same input, same text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from brim.context.constraints import Constraint, constraints_of, judged
from brim.context.pins import pinned_texts
from brim.context.record import Exchange, Record, first_line, record_of
from brim.context.relevance import counts_of, score
from brim.context.wording import MARK, WORDING, Language, Wording, is_injected, language_of
from brim.conversation import Message

Section: TypeAlias = Literal[
    "pins",
    "focus",
    "goal",
    "rules",
    "facts",
    "said",
    "open",
    "done",
    "answered",
    "decisions",
    "files",
    "commands",
    "errors",
]
_ORDER: tuple[Section, ...] = (
    "pins", "focus", "goal", "rules", "facts", "said", "done", "open", "answered", "decisions", "files", "commands", "errors",
)  # fmt: skip


class Fact(msgspec.Struct, frozen=True):
    """A line of the summary that must not be lost in another wording of it, and the values that show it is there."""

    kind: Literal["pin", "goal", "constraint", "given", "path", "number"]
    line: str
    values: tuple[str, ...]


class SummaryText(msgspec.Struct, frozen=True):
    """A summary and what it found.

    `text` is "" where not even its header fits. `tokens` is what the given counter says of `text`. `left_out` are pins
    that did not fit: their messages have to stay in the view.
    """

    text: str
    tokens: int
    language: Language
    facts: tuple[Fact, ...] = ()
    left_out: tuple[str, ...] = ()


class _Line(msgspec.Struct):
    """A candidate line: `group` ranks it for the budget, `order` places it in its section."""

    section: Section
    group: str
    order: float
    text: str
    fact: Fact | None = None


_SHARES: tuple[tuple[str, float], ...] = (
    ("pins", 1.0),
    ("focus", 0.4),
    ("goal", 0.3),
    ("explicit", 0.4),
    ("plain", 0.25),
    ("implicit", 0.2),
    ("source", 0.35),
    ("open", 0.08),
    ("done", 0.12),
    ("files", 0.1),
    ("failures", 0.06),
    ("tests", 0.05),
    ("said", 0.3),
    ("decisions", 0.05),
    ("commands", 0.08),
)
"""Groups in the order they are served, each with the largest share of the budget it takes before all were served."""

_FILLS = frozenset(group for group, _ in _SHARES) - {"commands", "decisions", "goal"}
"""Groups that may use what is left of the budget; the others would only make the summary longer."""
_GOAL_SHARE = 0.12
_GOAL_TOKENS = 800
"""Most tokens of one request in the goal."""
_WHOLE_MESSAGE_CHARS = 1_200
"""A user's message up to this length is quoted whole; of a longer one only its sentences are candidates."""
_COURTESY_CHARS = 15
"""Thanks and assent are no longer than this; a remainder as short is not worth a line."""
_FOCUS_LINES, _FOCUS_MOST = 20_000, 60
"""Lines that are searched for what the user wants kept, the newest first, and lines that are taken at most."""
_FOCUS_LEAST, _FOCUS_CHARS = 8, 400
"""A shorter line says nothing; a longer one is cut."""
_FOCUS_SPOKEN = 1.5
"""What somebody said counts this much more than what a tool printed."""
_MISSES = 25
"""After so many lines of a group that no longer fit, the rest of the group is not counted any more."""

_PATH = re.compile(r"(?:[\w.@~-]*/)+[\w.@-]+|\b[\w-]+\.[A-Za-z][A-Za-z0-9]{0,5}\b")
_NUMBER = re.compile(r"\d(?:[\d.,:/-]*\d)?")


def deterministic_summary(
    messages: Sequence[Message],
    *,
    budget_tokens: int,
    count: Callable[[str], int],
    later: Sequence[Message] = (),
    pinned: Collection[int] = (),
    with_pins: bool = True,
    handle: str = "",
    recall: bool = False,
    language: Language | None = None,
    focus: str = "",
) -> SummaryText:
    """Summarise `messages` in at most `budget_tokens` tokens, counted with `count`.

    `later` are the messages that follow them and stay in the view: they are read only for what they revise. `pinned`
    are indices of messages pinned whole; `with_pins=False` leaves pins out where they stay in the view anyway. System
    messages are never summarised: they are always in the view. `handle` names the originals, `recall` says that the
    model has a tool to fetch them. `focus`: the user's words on what is to be kept; the lines that match them come right
    after the pins, whoever wrote them, and take at most two fifths of the budget.
    """
    spoken = language or language_of(messages)
    words = WORDING[spoken]
    header = _header(len(messages), words, handle, recall)
    room = budget_tokens - count(header) - 1
    if room <= 0:
        return SummaryText("", 0, spoken)
    record = record_of(messages)
    lines: list[_Line] = []
    pins = [text for _, text in pinned_texts(messages, pinned)] if with_pins else []
    lines.extend(_Line("pins", "pins", i, text, Fact("pin", text, (text,))) for i, text in enumerate(pins))
    if focus:
        lines.extend(_focus_lines(messages, focus))
    lines.extend(_goal(messages, record, min(_GOAL_TOKENS, int(budget_tokens * _GOAL_SHARE)), count, words))
    lines.extend(_user_lines(messages, later, words))
    lines.extend(_exchange_lines(record, words, in_progress=bool(later) and later[0].role != "user"))
    lines.extend(_work_lines(record, words))
    chosen = _choose(lines, room, count, words)
    text = _render(header, chosen, words)
    # Counting lines one by one can be a few tokens off what the whole counts: the last chosen line goes first.
    while chosen and count(text) > budget_tokens:
        chosen.pop()
        text = _render(header, chosen, words)
    kept = {line.text for line in chosen if line.group == "pins"}
    facts = tuple(line.fact for line in chosen if line.fact is not None)
    return SummaryText(text, count(text), spoken, facts, tuple(pin for pin in pins if pin not in kept))


def shortened(text: str, tokens: int, count: Callable[[str], int], words: Wording) -> str:
    """`text` whole if it counts at most `tokens`, else its head and tail (70/30) around a mark with the size cut."""
    if len(text) <= tokens or count(text) <= tokens:
        return text
    keep = min(len(text), max(8, tokens * 4))
    while keep >= 8:
        head = int(keep * 0.7)
        tail = keep - head
        cut = text[:head].rstrip() + words.left_out.format(count=len(text) - keep) + text[len(text) - tail :].lstrip()
        if count(cut) <= tokens:
            return cut
        keep = int(keep * 0.8)
    return ""


def _header(messages: int, words: Wording, handle: str, recall: bool) -> str:
    sentence = words.header.format(count=messages)
    if handle:
        fetch = f'recall("{handle}")' if recall else handle
        sentence += (" " if sentence.endswith(".") else "") + words.originals.format(fetch=fetch)
    return f"{MARK} {sentence}]"


def _goal(
    messages: Sequence[Message], record: Record, tokens: int, count: Callable[[str], int], words: Wording
) -> Iterable[_Line]:
    if not record.exchanges:
        return
    asked = record.exchanges
    first = next((exchange for exchange in asked if _is_request(exchange.request)), asked[0])
    last = next((exchange for exchange in reversed(asked) if _is_request(exchange.request)), asked[-1])
    for order, (exchange, label) in enumerate(((first, words.first), (last, words.latest))):
        if order and last is first:
            break
        if text := shortened(exchange.request.strip(), tokens, count, words):
            line = f"- {label}: {_quote(text)}"
            yield _Line("goal", "goal", order, line, Fact("goal", line, _lines_of(text)))


def _focus_lines(messages: Sequence[Message], focus: str) -> list[_Line]:
    """Lines of the conversation that share words with what the user wants kept, the best first. A line is named by who
    wrote it: what a tool printed must not look like the user's word."""
    found: list[tuple[float, int, str]] = []
    seen: set[str] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "system" or is_injected(message.text):
            continue
        for at, line in enumerate(message.text.splitlines()):
            text = " ".join(line.split())
            if len(text) >= _FOCUS_LEAST and text not in seen and len(found) < _FOCUS_LINES:
                seen.add(text)
                text = text if len(text) <= _FOCUS_CHARS else text[: _FOCUS_CHARS - 1] + "…"
                found.append((index + at / 1e6, index, text))
    scores = score(focus, [counts_of(text) for _, _, text in found])
    ranked = sorted(
        (
            (value * (1.0 if messages[index].role == "tool" else _FOCUS_SPOKEN), order, index, text)
            for value, (order, index, text) in zip(scores, found, strict=True)
            if value > 0
        ),
        key=lambda each: (-each[0], -each[1]),
    )
    return [
        _Line("focus", "focus", order, f"- [{messages[index].role}] {text}")
        for _, order, index, text in ranked[:_FOCUS_MOST]
    ]


def _lines_of(text: str) -> tuple[str, ...]:
    return tuple(stripped for line in text.splitlines() if (stripped := line.strip()))


def _is_request(text: str) -> bool:
    return any(said.kind == "request" for said in judged(text[:4_000]))


def _user_lines(messages: Sequence[Message], later: Sequence[Message], words: Wording) -> Iterable[_Line]:
    """Rules, facts and whole messages of the user, best first within each group."""
    everything = [*messages, *later] if later else messages
    found = [c for c in constraints_of(everything) if c.message_index < len(messages)]
    found = [c for c in found if messages[c.message_index].role == "user"]
    ranked = sorted(found, key=lambda c: (-c.score, -c.message_index, c.start))
    seen: set[str] = set()
    for constraint in ranked:
        key = " ".join(constraint.text.split()).casefold()
        if constraint.superseded or key in seen:
            continue
        seen.add(key)
        section: Section = "facts" if constraint.strength == "implicit" else "rules"
        line = f"- {_one_line(constraint.text)}"
        order = constraint.message_index + constraint.start / 1e7
        fact = Fact("given" if section == "facts" else "constraint", line, (_one_line(constraint.text),))
        yield _Line(section, constraint.strength, order, line, fact)
    yield from _message_lines(messages, found, words)


def _is_new(text: str, found: Sequence[Constraint]) -> bool:
    """The message says more than the constraints already listed from it, courtesies apart."""
    return len(text) - sum(len(c.text) + 1 for c in found if not c.superseded) > _COURTESY_CHARS


def _message_lines(messages: Sequence[Message], found: list[Constraint], words: Wording) -> Iterable[_Line]:
    """Short messages whole: first those with a constraint (their other sentences hold its facts), then the newest."""
    best: dict[int, float] = {}
    bonus = {"explicit": 200.0, "plain": 100.0, "implicit": 0.0}
    superseded: dict[int, list[Constraint]] = {}
    by_message: dict[int, list[Constraint]] = {}
    for constraint in found:
        index = constraint.message_index
        by_message.setdefault(index, []).append(constraint)
        best[index] = max(best.get(index, 0.0), bonus[constraint.strength] + constraint.score)
        if constraint.superseded:
            superseded.setdefault(index, []).append(constraint)
    indices = [
        i
        for i, m in enumerate(messages)
        if m.role == "user" and 0 < len(m.text) <= _WHOLE_MESSAGE_CHARS and not is_injected(m.text)
    ]
    seen: set[str] = set()
    for index in sorted(indices, key=lambda i: (-best.get(i, -1.0), -i)):
        text = messages[index].text.strip()
        if not text or text in seen or not _is_new(text, by_message.get(index, ())):
            continue
        seen.add(text)
        for old in superseded.get(index, ()):
            text = text.replace(old.text, f"({words.revised}: {old.text})", 1)
        line = f"- {_quote(text)}"
        values = tuple(_PATH.findall(text)) + tuple(_NUMBER.findall(text))
        kind: Literal["path", "number"] = "path" if _PATH.search(text) else "number"
        group = "source" if index in best else "said"
        yield _Line("said", group, index, line, Fact(kind, line, values) if values and index in best else None)


def _exchange_lines(record: Record, words: Wording, *, in_progress: bool) -> Iterable[_Line]:
    """Requests with the reply that ended their turn, newest first: a request never stands without its outcome."""
    for place, exchange in enumerate(reversed(record.exchanges)):
        running = in_progress and place == 0
        if exchange.done is None and not running and place > 3:
            group, section = "commands", "answered"
        elif exchange.done and not running:
            group = section = "done"
        elif running or not exchange.reply or exchange.done is False:
            group = section = "open"
        else:
            group, section = "done", "answered"
        yield _Line(section, group, exchange.index, _exchange_line(exchange, words, running))  # type: ignore[arg-type]  # one of the sections named above


def _exchange_line(exchange: Exchange, words: Wording, running: bool) -> str:
    request = first_line(exchange.request, 100)
    reply = first_line(exchange.reply, 200) if exchange.reply else words.no_reply
    if running:
        reply = f"({words.in_progress}) {reply}" if exchange.reply else words.in_progress
    return f"- {_quote(request)} → {reply}"


_USE_RANK = {"deleted": 3, "wrote": 3, "edited": 3, "moved": 2, "read": 1}


def _work_lines(record: Record, words: Wording) -> Iterable[_Line]:
    """Files changed before files read, tests and failures before other commands, the newest first in each."""
    files = sorted(record.files, key=lambda f: (-max(_USE_RANK[use] for use in f.uses), -f.last))
    for file in files:
        uses = ", ".join(words.uses[use] + (f" ×{n}" if n > 1 else "") for use, n in file.uses.items())
        line = f"- {file.path}: {uses}"
        yield _Line("files", "files", file.last, line, Fact("path", line, (file.path,)))
    for failure in reversed(record.failures):
        times = f" ×{failure.times}" if failure.times > 1 else ""
        yield _Line("errors", "failures", failure.last, f"- {failure.tool}{times}: {_quote(failure.line)}")
    for run in reversed(record.runs):
        plain_success = run.outcome in ("ok", "exit 0")
        times = f" (×{run.times})" if run.times > 1 else ""
        group = "commands" if plain_success else "tests"
        yield _Line("commands", group, run.last, f"- `{run.command}`{times} → {run.outcome}")
    for index, decision in reversed(record.decisions):
        yield _Line("decisions", "decisions", index, f"- {_one_line(decision)}")
    if record.tools:
        used = ", ".join(
            f"{name} ×{n}" for name, n in sorted(record.tools.items(), key=lambda item: (-item[1], item[0]))[:12]
        )
        yield _Line("commands", "commands", -1, f"- {words.tools}: {used}")


def _choose(lines: list[_Line], room: int, count: Callable[[str], int], words: Wording) -> list[_Line]:
    """Lines that fit, in the order they were chosen: first within each group's share, then with what is left."""
    groups: dict[str, list[_Line]] = {}
    for line in lines:
        groups.setdefault(line.group, []).append(line)
    chosen: list[_Line] = []
    opened: set[Section] = set()
    costs: dict[int, int] = {}
    left = room
    for share_of_all in (False, True):
        for group, share in _SHARES:
            if share_of_all and group not in _FILLS:
                continue
            quota = left if share_of_all else min(left, int(room * share))
            misses = 0
            rest: list[_Line] = []
            waiting = groups.get(group, [])
            for place, line in enumerate(waiting):
                if misses >= _MISSES:
                    rest.extend(waiting[place:])
                    break
                heading = 0 if line.section in opened else count(f"\n## {getattr(words, line.section)}\n")
                # A line of n characters has at most n tokens, so short ones that surely fit are still counted,
                # but one that cannot fit by far is not.
                if len(line.text.encode()) > 12 * max(quota - heading, 0) + 64:
                    misses += 1
                    rest.append(line)
                    continue
                if id(line) not in costs:
                    costs[id(line)] = count(line.text + "\n")
                cost = costs[id(line)] + heading
                if cost > quota:
                    misses += 1
                    rest.append(line)
                    continue
                quota -= cost
                left -= cost
                opened.add(line.section)
                chosen.append(line)
            groups[group] = rest
    return chosen


def _render(header: str, chosen: list[_Line], words: Wording) -> str:
    parts = [header]
    for section in _ORDER:
        own = sorted((line for line in chosen if line.section == section), key=lambda line: line.order)
        if own:
            gap = "\n\n" if section == "pins" else "\n"
            body = gap.join(line.text for line in own)
            parts.append(f"\n## {getattr(words, section)}\n{body}" + ("\n" if section == "pins" else ""))
    return "\n".join(parts)


def _one_line(text: str) -> str:
    return text if "\n" not in text else " ".join(text.split())


def _quote(text: str) -> str:
    """Verbatim text between quotation marks; its lines are kept, indented below the first."""
    return "“" + text.replace("\n", "\n  ") + "”"
