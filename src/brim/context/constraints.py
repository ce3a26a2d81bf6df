"""What the user (or the system) said that binds later work.

Every sentence of a user or system message is judged by form: who gives the order (frames), whether it carries a
marker word (explicit), a wish or a standing convention (plain), or states a fact that later work must respect
(implicit). Text of tools and of the model is never looked at, so it cannot become a rule. A later revision marks the
earlier wording as superseded. No model, no lists of subjects: markers, sentence form and specificity only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from brim.context.frames import Frame, frame_of, is_question
from brim.context.markers import (
    BINDING,
    CLAUSE,
    EXPLICIT,
    INABILITY,
    OUR_RULE,
    PLAIN,
    SPECIFIC,
    STANDING,
    SUPPORTING,
    TASK,
    TASK_ZH,
)
from brim.context.memo import ByText
from brim.context.phrases import Spoken
from brim.context.revisions import replaced_by, revises
from brim.context.sentences import split_sentences
from brim.context.wording import is_injected
from brim.conversation import Message

Strength: TypeAlias = Literal["explicit", "plain", "implicit"]
_STRENGTHS: tuple[Strength, ...] = ("explicit", "plain", "implicit")
Kind: TypeAlias = Literal["explicit", "plain", "implicit", "request", "aside", "courtesy", "quoted"]


class Constraint(msgspec.Struct, frozen=True):
    """One sentence that binds. `text` is `messages[message_index].text[start:start + len(text)]`, verbatim.

    `score` ranks constraints of one strength by how specific they are (higher is kept first); `superseded` says that
    a later wording replaced it.
    """

    message_index: int
    text: str
    strength: Strength
    superseded: bool = False
    start: int = 0
    score: float = 0.0


class Said(msgspec.Struct, frozen=True):
    """One sentence of a message, judged: `quoted` covers all that is not given as the speaker's own word."""

    start: int
    end: int
    kind: Kind
    score: float
    superseded: bool = False


def constraints_of(messages: Sequence[Message]) -> list[Constraint]:
    """Constraints of a history, in order, superseded ones included and marked.

    Only user and system messages are read; text that brim injected is not. Linear in the length of those messages.
    """
    found: list[Constraint] = []
    for index, message in enumerate(messages):
        if message.role not in ("user", "system"):
            continue
        text = message.text
        if not text or is_injected(text):
            continue
        own: list[Constraint] = []
        for said in judged(text):
            sentence = text[said.start : said.end]
            strength = said.kind if said.kind in ("explicit", "plain", "implicit") else None
            replaced = None if said.superseded or said.kind == "quoted" else _replaced_earlier(found, sentence)
            if replaced is not None:
                old = found[replaced]
                found[replaced] = msgspec.structs.replace(old, superseded=True)
                # What replaces a rule is a rule, however casually it is put: "make it 50 instead".
                strength = min(old.strength, strength or "implicit", key=_STRENGTHS.index)
            if strength is not None:
                own.append(Constraint(index, sentence, strength, said.superseded, said.start, said.score))
        found.extend(own)
    return found


def judge(text: str) -> list[Said]:
    """Every sentence of one message with what it is. Pasted blocks come out as `quoted`."""
    spans = split_sentences(text)
    places = [place for place, span in enumerate(spans) if not span.pasted]
    own = [Spoken(text[spans[place].start : spans[place].end]) for place in places]
    kinds = [_kind_of(spoken, frame_of(own, order, EXPLICIT)) for order, spoken in enumerate(own)]
    weight = _length_weight(len(text))
    if any(kind == "quoted" and EXPLICIT.found_in(spoken.unquoted) for kind, spoken in zip(kinds, own, strict=True)):
        # What is told beside a quoted or imagined order explains that order; it is no fact of the work at hand.
        kinds = ["aside" if kind == "implicit" else kind for kind in kinds]
    replaced = _replaced_within(own, kinds)
    result = [Said(span.start, span.end, "quoted", 0.0) for span in spans]
    for order, place in enumerate(places):
        kind, old = kinds[order], order in replaced
        if old and kind in ("request", "aside"):
            kind = "plain"  # what is revised was a wish, however it was put
        elif order in replaced.values() and kind in ("request", "aside", "implicit"):
            kind = "plain"  # the wording that replaces another is what holds now
        span = spans[place]
        score = _score(own[order], kind) * weight if kind in _STRENGTHS else 0.0
        result[place] = Said(span.start, span.end, kind, score, old)
    return result


judged = ByText(judge)
"""The same with a cache: a history is read again at each epoch, and the same reminder often comes many times."""


def _kind_of(spoken: Spoken, frame: Frame) -> Kind:
    if frame == "courtesy":
        return "courtesy"
    if frame == "asked":
        # A question can rest on a rule that it states: "given that we count … as active, how many …?"
        return "plain" if SUPPORTING.found_in(spoken) and SPECIFIC.search(spoken.bare) else "aside"
    if frame != "given":
        return "quoted"
    if EXPLICIT.found_in(spoken) and not _only_inability(spoken):
        return "explicit"
    if spoken.quotes and OUR_RULE.found_in(spoken):
        return "explicit" if EXPLICIT.found_in(spoken.unquoted) else "plain"
    if _is_task(spoken.lower, spoken.bare) and not SUPPORTING.found_in(spoken):
        if STANDING.found_in(spoken):
            return "plain"
        return "implicit" if _states_a_fact_beside(spoken.bare) else "request"
    if is_question(spoken.text):
        return "plain" if SUPPORTING.found_in(spoken) else "request"
    if spoken.text.endswith((":", "：")):
        return "aside"  # it only introduces a list
    if PLAIN.found_in(spoken):
        return "plain"
    if BINDING.found_in(spoken) or SPECIFIC.search(spoken.text):
        return "implicit"
    return "implicit" if _is_statement(spoken) else "aside"


def _is_statement(spoken: Spoken) -> bool:
    """Long enough to tell something: four words, or six Chinese characters."""
    return len(spoken.words) >= 4 or (spoken.han and len(spoken.bare) >= 6)


def _is_task(lower: str, bare: str) -> bool:
    return bool(TASK.match(lower) or TASK_ZH.match(bare))


def _only_inability(spoken: Spoken) -> bool:
    """ "I can't see why" and "I don't know" are no orders."""
    if "can't" not in spoken.words and "don't" not in spoken.words and "cannot" not in spoken.words:
        return False
    rest = INABILITY.sub(" ", spoken.lower)
    return rest != spoken.lower and not EXPLICIT.found_in(Spoken(rest))


def _states_a_fact_beside(bare: str) -> bool:
    """A clause after the request's own states a fact: "set up X; the site hangs off a satellite link"."""
    for clause in CLAUSE.split(bare)[1:]:
        part = Spoken(clause.strip())
        if BINDING.found_in(part) and not _is_task(part.lower, part.bare):
            return True
    return False


def _score(spoken: Spoken, kind: Kind) -> float:
    """How much of a sentence is specific: names, numbers, paths and a predicate that binds."""
    points = 4.0 * min(len(SPECIFIC.findall(spoken.text)), 4)
    points += 6.0 if BINDING.found_in(spoken) else 0.0
    if kind == "plain":
        points += 4.0 if PLAIN.found_in(spoken) else 0.0
    length = len(spoken.text)
    if length > 400:
        points *= 400 / length
    return points + 1.0


def _length_weight(chars: int) -> float:
    """What a person typed by hand counts for more than a sentence somewhere in a long document."""
    return 1.0 if chars <= 1_000 else max(0.2, 1_000 / chars)


def _replaced_within(sentences: list[Spoken], kinds: list[Kind]) -> dict[int, int]:
    """For one message: order of each replaced sentence -> order of the one that replaces it."""
    replaced: dict[int, int] = {}
    for order in range(1, len(sentences)):
        if not revises(sentences[order]) or kinds[order] == "quoted" or is_question(sentences[order].text):
            continue
        candidates = [
            i for i in range(max(0, order - 3), order) if i not in replaced and kinds[i] not in ("quoted", "courtesy")
        ]
        candidates = [i for i in candidates if not is_question(sentences[i].text)]
        hit = replaced_by(sentences[order].text, [sentences[i].text for i in candidates], same_message=True)
        if hit is not None:
            replaced[candidates[hit]] = order
    return replaced


_LOOK_BACK = 60
"""Constraints before the current message that a revision is compared with: what people correct is recent."""


def _replaced_earlier(found: list[Constraint], sentence: str) -> int | None:
    """Index in `found` of the constraint of an earlier message that `sentence` replaces."""
    if not revises(sentence):
        return None
    recent = [i for i in range(max(0, len(found) - _LOOK_BACK), len(found)) if not found[i].superseded]
    hit = replaced_by(sentence, [found[i].text for i in recent], same_message=False)
    return None if hit is None else recent[hit]
