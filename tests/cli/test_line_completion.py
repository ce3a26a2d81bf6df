"""Tab on the line of a conversation: what it puts in is what a message understands."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from brim.agent.attach import attach
from brim.cli.input import InputCompleter


def lines(workspace: Path, text: str) -> list[str]:
    """The line after each completion that Tab offers."""
    completer = InputCompleter(cast("Any", SimpleNamespace(workspace=workspace)))
    offered = completer.get_completions(Document(text), CompleteEvent(completion_requested=True))
    return [text[: len(text) + each.start_position] + each.text for each in offered]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "my dir").mkdir()
    (tmp_path / "my dir" / "a b.txt").write_text("1")
    (tmp_path / "plain.txt").write_text("2")
    (tmp_path / "odd(1).txt").write_text("3")
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "then"),
    [
        ("see @pl", ["see @plain.txt"]),
        ("see @my", ['see @"my dir/']),
        ('see @"my dir/', ['see @"my dir/a b.txt"']),
        ("see @'my dir/a", ["see @'my dir/a b.txt'"]),
        ("see @odd", ['see @"odd(1).txt"']),
        ("mail me@pl", []),
    ],
)
def test_tab_completes_names_as_mentions_read_them(work: Path, typed: str, then: list[str]) -> None:
    """A name that would end a mention is put in quotes; a quoted one goes on within them, folder by folder."""
    assert lines(work, typed) == then


def test_what_tab_puts_in_is_handed_over(work: Path) -> None:
    """Each file that Tab completes is the file that the message carries."""
    for name in ("plain.txt", "odd(1).txt"):
        (line,) = lines(work, f"see @{name[:3]}")
        assert attach(line, [], work).names == (name,)


def test_paths_from_the_root_and_home(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absolute paths and those of the home complete, too."""
    monkeypatch.setenv("HOME", str(work))
    assert lines(work, "@~/pl") == ["@~/plain.txt"]
    assert lines(work, f"@{work}/pl") == [f"@{work}/plain.txt"]
    assert "@/tmp/" in lines(work, "@/tm")
