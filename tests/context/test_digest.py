"""The promises of digests and repeats: whole lines, verbatim, of what stands nowhere else; nothing else is lost."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.context.digest import (
    Seen,
    Span,
    barest,
    digest,
    error_spans,
    identifiers,
    kind_of,
    lines_of,
    repeats,
    units_of,
    without,
)

CODE = """import os
from pkg.store import open_store

def load_session(path):
    # a comment without names
    return open_store(path)

def close_all():
    pass
"""


def shown(text: str, spans: list[Span]) -> str:
    return "".join(text[a:b] for a, b in spans)


def seen_with(*texts: str) -> Seen:
    seen = Seen()
    for index, text in enumerate(texts):
        seen.arrive(index, text, result=True)
    return seen


def test_lines_with_new_identifiers_stay_whole_and_the_rest_goes() -> None:
    """A digest keeps, whole, each line that carries an identifier seen nowhere else."""
    text = CODE + "plain words here\n" * 5
    kept = shown(text, digest(text, seen_with(text)))
    assert "from pkg.store import open_store\n" in kept and "def load_session(path):\n" in kept
    assert "plain words here" not in kept


def test_nothing_new_leaves_nothing() -> None:
    """A result whose every identifier stands elsewhere in the view digests to a stub."""
    assert digest(CODE, seen_with(CODE, CODE)) == []


def test_what_the_only_other_place_loses_is_new_again() -> None:
    """Once the other holder is lowered, the same line carries something new again."""
    seen = seen_with(CODE, CODE)
    seen.lower(0, CODE, None, [])
    assert "load_session" in shown(CODE, digest(CODE, seen))


def test_an_identifier_on_two_lines_is_kept_once() -> None:
    """The first line that has an identifier is enough."""
    again = "again my_value is read" + " ;" * 40 + "\n"
    text = "first my_value is set\n" + again
    assert shown(text, digest(text, seen_with(text))) == text.split("\n")[0] + "\n"


def test_runs_no_longer_than_their_mark_stay() -> None:
    """Cutting a blank line would cost more than it saves, and read worse."""
    text = "alpha_one = 1\n\nbeta_two = 2\n"
    assert digest(text, seen_with(text)) == [(0, len(text))]


def test_of_a_long_line_the_surroundings_stay() -> None:
    """On a line over 240 characters 64 characters to either side of what is new are kept."""
    text = "; " * 300 + "needle_found_here" + " ;" * 300
    [(start, end)] = digest(text, seen_with(text))
    assert text[start:end].startswith("; ") and "needle_found_here" in text[start:end]
    assert end - start == len("needle_found_here") + 128


@given(st.lists(st.sampled_from([*CODE.split("\n"), "错误的值 没有", '{"名称": "故宫"}', "z" * 300, ""]), max_size=30))
def test_spans_are_whole_lines_in_order_and_inside(lines: list[str]) -> None:
    """Kept ranges are ordered, disjoint and inside; below 240 characters they begin and end at line ends."""
    text = "\n".join(lines)
    spans = digest(text, seen_with(text))
    at = 0
    edges = {edge for span in lines_of(text) for edge in span}
    for start, end in spans:
        assert at <= start < end <= len(text)
        at = end
        if all(len(line) <= 240 for line in lines):
            assert start in edges and end in edges


@given(st.lists(st.sampled_from(CODE.split("\n")), min_size=1, max_size=30))
def test_a_digest_of_a_digest_loses_nothing_more(lines: list[str]) -> None:
    """Lowering twice gives the same ranges: the plan applied again gives the same bytes."""
    text = "\n".join(lines)
    seen = seen_with(text)
    first = digest(text, seen)
    seen.lower(0, text, None, first)
    assert digest(text, seen, spans=first) == first


@given(st.lists(st.text(alphabet='ab_1/.中文\n" ', max_size=60), min_size=1, max_size=6))
def test_the_index_forgets_what_it_counted(texts: list[str]) -> None:
    """Counts follow from the view alone: adding and removing leaves no trace, so the index can be rebuilt."""
    seen = Seen()
    for text in texts:
        seen.add(text)
    for text in texts:
        seen.remove(text)
    assert not seen.count


def test_chinese_prose_is_kept_until_it_is_said_elsewhere() -> None:
    """A Chinese sentence is new by its clauses, not only by names in Latin letters."""
    text = "通州博物馆位于通州区中心，新华大街南侧。\n"
    assert digest(text, seen_with(text)) == [(0, len(text))]
    assert digest(text, seen_with(text, text)) == []


def test_english_prose_is_kept_until_it_is_said_elsewhere() -> None:
    """A sentence without a single identifier still says something."""
    text = "Refunds are only given when the booking was made within the last day.\nok\n"
    assert shown(text, digest(text, seen_with(text))).startswith("Refunds")
    assert digest(text, seen_with(text, text)) == []


def test_quoted_chinese_values_are_paired_from_their_own_quotes() -> None:
    """A long string before a value does not hide it."""
    line = '{"说明": "' + "很长的文字" * 10 + '", "名称": "故宫"}'
    assert "故宫" in {word for word, _, _ in identifiers(line)}


def test_a_block_that_stands_above_is_a_repeat() -> None:
    """A file read again arrives as a reference to the lines above, and only its new lines are sent."""
    body = "".join(f"    value_{k} = compute_{k}(argument)\n" for k in range(20))
    seen = seen_with("header of one\n" + body)
    again = "header of two\n" + body + "tail_is_new = 1\n"
    [found] = repeats(again, seen)
    assert (found.source, again[found.start : found.end], found.lines) == (0, body, 20)
    assert shown(again, without(again, [found], "code")) == "header of two\ntail_is_new = 1\n"


def test_short_or_scattered_lines_are_no_repeat() -> None:
    """Two lines in common, or many that do not stand together, are sent again."""
    seen = seen_with("a_first = 1\nshared_line_one = 2\nshared_line_two = 3\nb_last = 4\n")
    assert repeats("shared_line_one = 2\nshared_line_two = 3\nother = 1\n", seen) == []


def test_a_repeat_of_what_was_cut_is_no_repeat() -> None:
    """Only text that still stands in the view can be referred to."""
    body = "".join(f"    value_{k} = compute_{k}(argument)\n" for k in range(20))
    seen = seen_with(body)
    seen.lower(0, body, None, [])
    assert repeats(body, seen) == []


def test_rows_of_json_repeat_one_by_one_and_keep_their_heads() -> None:
    """A database row that stands above is left out, but for its first pairs, which name it."""
    rows = [
        {"名称": f"饭店{k}号", "地址": f"朝阳区第{k}大街", "电话": "010-1", "周边": ["景点甲", "景点乙"] * 20}
        for k in range(3)
    ]
    seen = seen_with(json.dumps(rows, ensure_ascii=False))
    text = json.dumps([rows[2], {"名称": "新店", "地址": "海淀区"}], ensure_ascii=False)
    [found] = repeats(text, seen)
    assert found.source == 0
    rest = shown(text, without(text, [found], "data"))
    assert "饭店2号" in rest and "新店" in rest and len(rest) < len(text) / 2


def test_a_later_use_names_the_result_that_alone_had_it() -> None:
    """What an assistant message says is a use of the one result that holds it; what two hold, of none."""
    seen = seen_with("only_here = 1\nin_both = 2\n", "in_both = 2\n")
    assert seen.arrive(2, "I will change only_here", result=False) == {0}
    assert seen.missed == 0


def test_use_of_what_was_cut_is_a_miss() -> None:
    """An assistant message that says what only a lowered result held is counted."""
    seen = seen_with("only_here = 1\n")
    seen.lower(0, "only_here = 1\n", None, [])
    seen.arrive(1, "I will change only_here", result=False)
    assert seen.missed == 1


def test_error_text_stays_whatever_happens() -> None:
    """The barest form of a failed result still holds its error lines, their neighbours and its end."""
    text = (
        "collecting\n" * 200
        + "tests/test_a.py:12: in test_x\nE   ValueError: bad shape\nafter\n"
        + "more\n" * 200
        + "1 failed in 0.1s\n"
    )
    kept = shown(text, barest(text, "run", failed=True))
    assert "ValueError: bad shape" in kept and "tests/test_a.py:12" in kept and "1 failed" in kept
    assert len(kept) < 300 and kept == shown(text, error_spans(text))
    assert "ValueError: bad shape" in shown(
        text, digest(text, seen_with(text, text), stays=barest(text, "run", failed=True))
    )


def test_the_barest_form_never_grows() -> None:
    """Nothing comes back that the view does not show any more."""
    text = json.dumps([{"名称": "甲" * 30, "地址": "乙" * 300}] * 3, ensure_ascii=False)
    spans: list[Span] = [(0, 20)]
    for start, end in barest(text, "data", failed=False, spans=spans):
        assert start >= 0 and end <= 20


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("   12\tdef load():\n   13\t    return 1\n", "code"),
        ("class A:\n    x = 1\n    y = 2\n", "code"),
        ("src/a.py:12:import os\nsrc/b.py:3:import os\n", "grep"),
        ("docs\nsrc\ntests\nsetup.py\n", "list"),
        ("=== test session starts ===\ncollected 3 items\n3 passed in 0.1s\n", "run"),
        ('[{"名称": "故宫"}]', "data"),
        ("通州博物馆位于通州区中心。\n", "text"),
        ("", "run"),
    ],
)
def test_kinds_are_told_by_the_lines(text: str, kind: str) -> None:
    """The kind of a result follows from its text, not from the name of the tool."""
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "a." * 100_000, "aA " * 60_000, '"' * 50_000, "} " * 50_000, "中" * 60_000]
)
def test_dense_texts_take_linear_time(text: str) -> None:
    """No input makes the index slow: work grows with the text, not with its square."""
    seen = seen_with(text)
    assert kind_of(text) in ("run", "list", "text", "data", "code", "grep")
    digest(text, seen)
    repeats(text, seen)
    assert units_of(text)[-1][1] == len(text)
