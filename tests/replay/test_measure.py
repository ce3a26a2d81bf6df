"""The measure: what a view costs and what it no longer shows, against the reference and against figures made by hand."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brim.replay.measure import Measure, Recording, Row
from brim.replay.policies import FIXED, parse_policy
from brim.replay.regimes import DEFAULT
from brim.replay.transcript import Transcript
from brim.replay.yardstick import places, text_of, weight
from shared_replay import REFERENCE, conversations, small_run, step

NAMES = {
    "mask-10": "mask, keep 10", "mask-3": "mask, keep 3", "last-20": "last 20 steps", "cut-1500": "cut on arrival 1500+1500",
    "cut-750": "cut on arrival 750+750", "mask-20k-keep-10": "mask by 20K, keep 10", "mask-10k-keep-5": "mask by 10K, keep 5",
}  # fmt: skip


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    path = REFERENCE / "cost.py"
    if not path.exists():
        pytest.skip(f"needs the reference measure: {path} (set BRIM_DATA)")
    spec = importlib.util.spec_from_file_location("reference_cost", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(messages: Sequence[Any], policy: str, pause_every: int = 0) -> list[Row]:
    recording = Recording(messages)
    measure = Measure(recording)
    session = parse_policy(policy).start(Transcript("t", messages), DEFAULT[0])
    return [
        measure.request(index, session.view(messages[:index], None), bool(pause_every and count % pause_every == 0))
        for count, index in enumerate(recording.requests, 1)
    ]


@pytest.mark.parametrize("file", ["coding_swe_agent_demos", "chat_kdconv_zh", "service_tau_airline"])
@pytest.mark.parametrize("pause_every", [0, 8])
def test_same_rows_as_the_reference(reference: ModuleType, file: str, pause_every: int) -> None:
    """Read, written and refetched tokens of every request equal the reference's, for every fixed policy."""
    for conversation in conversations(file)[:4]:
        for policy in ("everything", *FIXED):
            theirs = reference.everything if policy == "everything" else reference.ANCHORS[NAMES[policy]]
            expected = list(reference.replay(conversation, theirs, pause_every))
            got = [
                (row.read, row.written, row.refetched)
                for row in measured(conversation["messages"], policy, pause_every)
            ]
            assert got == expected, (conversation["id"], policy)


def test_prefix_is_read_and_the_rest_written() -> None:
    """An append-only view reads all of the view before; a changed message makes everything from it on be written."""
    messages = small_run(4)
    rows = measured(messages, "everything")
    sizes = [weight(text_of(message)) for message in messages]
    assert [row.message for row in rows] == [2, 4, 6, 8, 10]
    assert rows[0].read == 0 and rows[0].written == sum(sizes[:2])
    for before, row in itertools.pairwise(rows):
        assert row.read == before.tokens
        assert row.written == sum(sizes[before.message : row.message])
    masked = measured(messages, "mask-1")
    assert masked[2].broke == 3 and masked[2].read == sum(sizes[:3])
    assert masked[2].lost == sizes[3]


def test_pause_writes_everything() -> None:
    """A request after the cache's life reads nothing, and what it could have read is counted as lost."""
    rows = measured(small_run(6), "everything", pause_every=3)
    assert [row.read == 0 for row in rows] == [True, False, True, False, False, True, False]
    assert rows[2].lost == rows[1].tokens


def test_needs_and_refetch_by_hand() -> None:
    """A name that stands nowhere in view is missing, and its message is charged, at least 800 and at most 8,000 tokens."""
    big = "\n".join(f"value_{n} = compute_{n}(alpha_{n})" for n in range(2_000))
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        *step(1, "read", {"path": "one.py"}, "def first_thing(): ..."),
        *step(2, "read", {"path": "two.py"}, big),
        *step(3, "read", {"path": "x"}, "nothing here"),
        {"role": "assistant", "content": "first_thing"},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": "compute_1999"},
    ]
    rows = measured(messages, "mask-1")
    assert [(row.needs, row.missing, row.refetched) for row in rows[-2:]] == [(1, 1, 800), (1, 1, 8_000)]
    assert all(row.missing == 0 for row in measured(messages, "everything"))


def test_a_list_of_words_shows_nothing() -> None:
    """A word counts as shown only with the line in which it stood: word lists taken from results support no request."""
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        *step(1, "read", {"path": "one.py"}, "def first_thing(): return second_thing + 12345"),
        *step(2, "read", {"path": "x"}, "y"),
        {"role": "assistant", "content": "call second_thing"},
    ]
    recording = Recording(messages)
    gamed = [{**m, "content": "first_thing second_thing 12345"} if m["role"] == "tool" else m for m in messages[:6]]
    kept = [
        {**m, "content": "…\n  def first_thing(): return second_thing + 12345\n…"} if m["role"] == "tool" else m
        for m in messages[:6]
    ]
    assert Measure(recording).request(6, gamed).missing == 1
    assert Measure(recording).request(6, kept).missing == 0


def test_long_lines_need_their_surroundings() -> None:
    """Of a line over 240 characters the 60 to either side are enough, and the word alone is not."""
    line = "a " * 150 + "the_needle_here" + " b" * 150
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        *step(1, "read", {"path": "one.py"}, line),
        *step(2, "read", {"path": "x"}, "y"),
        {"role": "assistant", "content": "the_needle_here"},
    ]
    recording = Recording(messages)
    at = line.index("the_needle_here")

    def missing(text: str) -> int:
        return (
            Measure(recording)
            .request(6, [{**m, "content": text} if m["role"] == "tool" else m for m in messages[:6]])
            .missing
        )

    assert missing("… " + line[at - 60 : at + 75] + " …") == 0
    assert missing("the_needle_here") == 1


def test_chinese_values_count_as_needs() -> None:
    """A Chinese value of a JSON result that the answer names is a need, and is shown only in its line."""
    row = '{"名称": "北京饭店", "地址": "东长安街33号"}'
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "推荐一个酒店"},
        *step(1, "search", {"kind": "hotel"}, row),
        *step(2, "search", {"kind": "x"}, "[]"),
        {"role": "assistant", "content": "推荐北京饭店"},
    ]
    recording = Recording(messages)
    assert recording.needs[6] == ("北京饭店",)
    assert Measure(recording).request(6, messages[:6]).missing == 0
    cut = [{**m, "content": '"北京饭店"'} if m["role"] == "tool" else m for m in messages[:6]]
    assert Measure(recording).request(6, cut).missing == 1


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.integers(1, 4), st.integers(0, 3))
def test_what_is_kept_whole_is_supported(steps: int, keep: int, seed: int) -> None:
    """Whatever a policy masks, a request that misses nothing is charged nothing, and read + written is the view."""
    messages = small_run(steps, seed=seed)
    for row in measured(messages, f"mask-{keep}"):
        assert (row.refetched > 0) == (row.missing > 0)
        view = [text_of(message) for message in messages[: row.message]]
        assert row.tokens <= sum(map(weight, view))


def test_places_keep_surroundings() -> None:
    """Each identifier is found with its line; plain words are no identifiers."""
    found = places("plain words\nuse load_config now\nnumbers 12 and 12345")
    assert found["load_config"] == ("use load_config now",)
    assert found["12345"] == ("numbers 12 and 12345",)
    assert "plain" not in found and "12" not in found
