"""The bill always adds up, and reads well on a terminal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from brim.budget import KINDS, Bill, largest, make_bill, render_bill
from brim.budget.bill import columns, fit, pad

LINES = [
    {"kind": "assistant", "label": "assistant messages", "tokens": 2_000, "count": 11},
    {"kind": "system", "label": "system prompt", "tokens": 310, "count": 1},
    {"kind": "tool", "label": "result of grep", "tokens": 30_000, "count": 7},
    {"kind": "tool", "label": "result of 读取文件", "tokens": 9_000, "count": 3},
    {"kind": "tool", "label": "result of grep", "tokens": 20_000, "count": 5},
    {"kind": "overhead", "label": "reply priming", "tokens": 3, "count": 1},
    {"kind": "tools", "label": "tool definitions", "tokens": 1_500, "count": 6},
]


def bill(**changes: Any) -> Bill:
    given: dict[str, Any] = {
        "window": 128_000, "window_assumed": False, "reserved": 4_096, "margin": 2_560, "held_back": 0,
        "lines": LINES, "counter": "o200k_base", "exact": True,
    }  # fmt: skip
    return make_bill(**{**given, **changes})


TOKENS = st.integers(0, 300_000)
LINE = st.fixed_dictionaries(
    {"kind": st.sampled_from(list(KINDS)), "label": st.text(max_size=40), "tokens": TOKENS, "count": st.integers(0, 99)}
)


@given(st.integers(1, 2_000_000), TOKENS, TOKENS, TOKENS, st.lists(LINE, max_size=12), st.integers(1, 200))
def test_the_parts_are_the_window(
    window: int, reserved: int, margin: int, held: int, lines: list[dict[str, Any]], width: int
) -> None:
    """used + reserved + margin + held_back + free is the window, used is the sum of the lines, and no row is too wide."""
    made = make_bill(
        window=window, window_assumed=True, reserved=reserved, margin=margin, held_back=held, lines=lines,
        counter="c", exact=False,
    )  # fmt: skip
    assert made.used + made.reserved + made.margin + made.held_back + made.free == made.window
    assert made.used == sum(line["tokens"] for line in made.lines) == sum(line["tokens"] for line in lines)
    assert json.loads(json.dumps(made)) == made
    for row in render_bill(made, width).splitlines():
        assert columns(row) <= max(40, width) + 12


def test_lines_of_one_kind_and_label_become_one() -> None:
    """Results are billed by tool, largest first, in a fixed order of kinds; a bill is a dict and has attributes."""
    made = bill()
    assert [(line["label"], line["tokens"], line["count"]) for line in made.lines] == [
        ("system prompt", 310, 1),
        ("tool definitions", 1_500, 6),
        ("reply priming", 3, 1),
        ("assistant messages", 2_000, 11),
        ("result of grep", 50_000, 12),
        ("result of 读取文件", 9_000, 3),
    ]
    assert isinstance(made, dict) and made["free"] == made.free == 128_000 - 4_096 - 2_560 - 62_813
    with pytest.raises(AttributeError):
        _ = made.nothing_of_the_kind
    with pytest.raises(ValueError, match="no bill line of kind 'sundry'"):
        bill(lines=[{"kind": "sundry", "tokens": 1}])


def test_the_largest_line_is_named() -> None:
    """What takes most is found; frames that nobody can shorten are not it."""
    line = largest(bill())
    assert line is not None and line["label"] == "result of grep"
    assert largest(bill(lines=[])) is None


def test_the_table_shows_bar_rows_and_counter() -> None:
    """A bar of the window, one row an item with its share, and who counted."""
    assert render_bill(bill(), 72) == snapshot("""\
62,813 of 128,000 tokens used (49%)
[taoooooooooooooooooooooooooooooooorrr-................................]
s system prompt                                              310   0.2%
t tool definitions                                    x6   1,500   1.2%
+ reply priming                                                3   0.0%
a assistant messages                                 x11   2,000   1.6%
o result of grep                                     x12  50,000  39.1%
o result of 读取文件                                  x3   9,000   7.0%
r reserved for the reply                                   4,096   3.2%
- margin for counting errors                               2,560   2.0%
. free                                                    58,531  45.7%
counted with o200k_base\
""")


def test_a_guess_is_called_a_guess() -> None:
    """An assumed window and a foreign counter are said; a bill that does not fit shows what is missing as below zero."""
    text = render_bill(bill(window=32_000, window_assumed=True, exact=False, counter="cl100k_base (fallback)"))
    assert (
        "~62,813 of 32,000 tokens used (196%), window assumed" in text
        and "assumed" in text
        and "not the model's own" in text
    )
    assert "-37,469" in text


def test_wide_characters_take_two_columns() -> None:
    """Chinese labels neither break the columns nor the cut, and control characters cannot draw on the terminal."""
    assert columns("读a") == 3
    assert fit("读取文件", 5) == "读取…" and columns(fit("读取文件", 4)) <= 4
    assert pad("读", 4) == "读  "
    assert "\x1b" not in fit("\x1b[31mred\n", 40)
