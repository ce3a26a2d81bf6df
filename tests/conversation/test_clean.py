"""Text that no JSON body can carry is cleaned, and nothing else is touched."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from brim.conversation.clean import clean_text, clean_value, needs_cleaning

half = st.characters(categories=["Cs"])
texts = st.text(st.characters() | half, max_size=8)
values = st.recursive(
    st.none() | st.integers(0, 9) | texts,
    lambda v: st.lists(v, max_size=2) | st.dictionaries(texts, v, max_size=2),
    max_leaves=6,
)


@given(texts)
def test_cleaned_text_can_be_sent_and_good_text_is_the_same_object(text: str) -> None:
    """Every text becomes encodable; what already is comes back as it is; cleaning twice changes nothing more."""
    cleaned = clean_text(text)
    cleaned.encode()
    assert not needs_cleaning(cleaned)
    assert clean_text(cleaned) is cleaned
    if not needs_cleaning(text):
        assert cleaned is text


def test_halves_are_replaced_and_pairs_joined() -> None:
    """A lone half is U+FFFD, two halves in order are their character, the rest and NUL stay."""
    assert clean_text("a \ud83d b \udc00 c \ud83d\udd25 \x00 🔥") == "a \ufffd b \ufffd c 🔥 \x00 🔥"
    assert clean_text("\udd25\ud83d") == "\ufffd\ufffd"


@given(values)
def test_any_json_value_becomes_encodable_without_being_altered(value: Any) -> None:
    """Strings and keys at any depth are cleaned on a copy; a clean value is the same object and counts nothing."""
    before = json.dumps(value)
    cleaned, count = clean_value(value)
    json.dumps(cleaned, ensure_ascii=False).encode()
    assert json.dumps(value) == before
    assert (cleaned is value) == (count == 0)


def test_values_that_are_no_json_are_left_alone() -> None:
    """An object only the caller understands passes; strings around it are still cleaned."""
    odd = object()
    assert clean_value({"a": odd}) == ({"a": odd}, 0)
    assert clean_value({"a": odd, "b": "\ud83d"}) == ({"a": odd, "b": "\ufffd"}, 1)
