"""Checking a summary that a model wrote: nothing the deterministic one found may be lost, and it must be worth it.

Every pin, request of the goal, constraint, path and number of the deterministic summary has to be in the text, or the
line that holds it is put back under the heading it belongs to. The whole stays within the budget whatever the model
returned, so a summary of a history that holds summaries never grows; one that is no smaller than what it replaces is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from brim.context.summarizer import cut_to
from brim.context.summary import Fact, SummaryText
from brim.context.wording import MARK, WORDING, Wording

_LEAST_TEXT_SHARE = 0.4
"""What the model's own text gets at least, where so much is missing that both do not fit."""
_PUNCTUATION = ".。!！;；,，~～ "


def check_summary(
    text: str,
    found: SummaryText,
    *,
    budget_tokens: int,
    count: Callable[[str], int],
    replaced_tokens: int | None = None,
) -> str | None:
    """The summary as it may stand in a view: brim's header, the model's text, what was missing; None if refused.

    `found` is the deterministic summary of the same messages, made for the same budget. `replaced_tokens` is what the
    summarised messages count: a summary that is not smaller is refused, as is an empty one.
    """
    body = _without_header(text)
    if not body or not found.text:
        return None
    words = WORDING[found.language]
    header = found.text.split("\n", 1)[0]
    room = budget_tokens - count(header) - 4
    if room <= 0:
        return None
    missing = [fact for fact in found.facts if not _is_in(fact, body)]
    least = min(count(body), int(room * _LEAST_TEXT_SHARE))
    back = _put_back(missing, room - least, count, words)
    body = cut_to(body, room - (count(back) + 1 if back else 0), count, words.cut)
    # Cutting may have taken facts with it that the whole text had.
    if lost := [fact for fact in found.facts if not _is_in(fact, body) and fact not in missing]:
        back = _put_back([*missing, *lost], room - min(count(body), int(room * _LEAST_TEXT_SHARE)), count, words)
        body = cut_to(body, room - (count(back) + 1 if back else 0), count, words.cut)
    checked = "\n\n".join(part for part in (header, body, back) if part)
    tokens = count(checked)
    if tokens > budget_tokens or (replaced_tokens is not None and tokens >= replaced_tokens):
        return None
    return checked


def _without_header(text: str) -> str:
    """The text without a header of brim's that the model copied from material it was given."""
    lines = text.strip().splitlines()
    return "\n".join(line for line in lines if not line.startswith(MARK)).strip()


def _is_in(fact: Fact, text: str) -> bool:
    return all(value.rstrip(_PUNCTUATION) in text for value in fact.values)


def _put_back(missing: Sequence[Fact], room: int, count: Callable[[str], int], words: Wording) -> str:
    """The lines of `missing` that fit into `room`, pins and constraints first, each kind under its heading."""
    headings = {
        "pin": words.pins,
        "goal": words.goal,
        "constraint": words.rules,
        "given": words.facts,
        "path": words.put_back,
        "number": words.put_back,
    }
    groups: dict[str, list[str]] = {}
    left = room
    for kind, heading in headings.items():
        for fact in missing:
            if fact.kind != kind:
                continue
            cost = count(fact.line + "\n") + (0 if heading in groups else count(f"\n## {heading}\n") + 1)
            if cost > left:
                continue
            left -= cost
            groups.setdefault(heading, []).append(fact.line)
    return "\n\n".join(f"## {heading}\n" + "\n".join(lines) for heading, lines in groups.items())
