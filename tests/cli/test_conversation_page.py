"""docs/conversation.md and the commands there are."""

from __future__ import annotations

from pathlib import Path

from brim.cli.slash import COMMANDS

PAGE = Path(__file__).parents[2] / "docs" / "conversation.md"


def test_every_command_stands_on_the_page() -> None:
    """A command that is added is described, and the page describes none that is not there."""
    page = PAGE.read_text(encoding="utf-8")
    named = {piece.split("`")[0].split()[0] for piece in page.split("`/")[1:]}
    assert named - {"/"} == set(COMMANDS)
