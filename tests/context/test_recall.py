"""Originals come back byte for byte from the history; what an imported history cannot give back is named."""

from __future__ import annotations

import pytest

import brim
from brim.context import lost_originals
from brim.errors import UsageError
from brim.formats import parse_request
from shared_bodies import answered, called, prepared, said, text_of


def session() -> list[dict[str, object]]:
    """A history that needs stubs, trims and a summary in a small window."""
    messages = [said("system", "sys"), said("user", "go")]
    for step in range(12):
        messages += [called(f"c{step}"), answered(f"c{step}", f"line {step} é🦊\n" * 400)]
    return [*messages, said("user", "and now?")]


@pytest.mark.parametrize("mode", ["full", "compact", "auto"])
def test_every_fate_gives_its_original_back(mode: str) -> None:
    """The handle of each fate and of the summary finds what stood there."""
    messages = session()
    view = prepared(messages, window=6_000, max_output=300, mode=mode)
    for fate in view.plan["fates"]:
        original = brim.recall(fate["handle"], {"messages": messages})
        if fate["kind"] in ("trim", "stub"):
            assert original == (messages[fate["start"]]["content"] or original)
        else:
            assert original.count("\n") == fate["end"] - fate["start"] - 1
    with pytest.raises(UsageError, match="no original"):
        brim.recall("0123456789ab", {"messages": messages})


def test_imported_view_names_what_it_lost() -> None:
    """A view imported as a history: the handles in its notices have no originals there; in the full history they have."""
    messages = session()
    view = prepared(messages, window=6_000, max_output=300, mode="compact")
    assert "left out" in text_of(view.request) or view.plan["summary"]
    assert lost_originals(parse_request(view.request, "openai.chat").messages)
    assert lost_originals(parse_request({"messages": messages}, "openai.chat").messages) == []
