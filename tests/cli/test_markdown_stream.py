"""Markdown as it streams: every word of an answer is on the screen, blocks hold together, and long ones stay cheap."""

from __future__ import annotations

import io
import re

import pytest

from brim.cli.blocks import Blocks
from brim.cli.markdown import MarkdownStream


class Screen(io.StringIO):
    """Counts what is written; `plain` is the text that stays, for answers that are painted in one piece."""

    @property
    def plain(self) -> str:
        return re.sub(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\", "", self.getvalue())


def shown(text: str, width: int = 80) -> str:
    """An answer as it stands in the end."""
    out = Screen()
    stream = MarkdownStream(out, size=(width, 40))
    stream._next = float("inf")
    stream.feed(text)
    stream.close()
    return out.plain


def blocks_of(text: str, piece: int) -> list[str]:
    """The blocks of a text that comes in pieces, the tail last."""
    blocks = Blocks()
    done = [blocks.feed(text[at : at + piece]) for at in range(0, len(text), piece)]
    return [each for each in [*done, blocks.tail] if each]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("check out <your-branch> first", "check out <your-branch> first"),
        ("<details><summary>More</summary>\nhidden\n</details>", "hidden"),
        ("<!-- a comment -->", "<!-- a comment -->"),
        ("see [the page](https://example.com/page)", "the page (https://example.com/page)"),
        ("![a cat](https://example.com/cat.png)", "a cat (https://example.com/cat.png)"),
        ("**Name:** Anna\n**Age:** 30", "Name: Anna\nAge: 30"),
        ("one<br>two", "one\ntwo"),
    ],
)
def test_nothing_of_an_answer_is_left_out(text: str, words: str) -> None:
    """Placeholders in angle brackets, HTML, addresses and line ends that the model wrote are seen."""
    assert words in shown(text)


def test_an_address_is_not_said_twice() -> None:
    """A bare address, and one whose words are the address, stand once."""
    assert shown("<https://example.com> and [https://a.org](https://a.org)").count("https") == 2


def test_a_heading_stands_at_the_left() -> None:
    """On a wide terminal, too."""
    assert shown("# Title", 200).startswith("Title")


def test_no_blanks_at_the_end_of_lines() -> None:
    """Tables and quotes are not filled up to the width with blanks, which a selection would copy."""
    assert all(line == line.rstrip() for line in shown("> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |").split("\n"))


LIST = """\
1. Do this:

   ```bash
   first

   second
   ```

   and then

    - nested

      more of it
2. next
"""


@pytest.mark.parametrize("piece", [1, 7, 1_000])
def test_a_list_holds_together(piece: int) -> None:
    """Code and paragraphs within an item stay with it, however the text arrives; the line after it ends it."""
    first, *_, last = blocks_of(LIST + "\nAfter it.\n\nThe end", piece)
    assert first.startswith(LIST + "\n") and last == "The end"


@pytest.mark.parametrize("piece", [1, 9, 1_000])
def test_fences(piece: int) -> None:
    """Empty lines in a fence end nothing; another mark, a shorter one and one with words do not close it; code in one line
    opens none."""
    fence = "````python\na\n\n```\n~~~~\n````x\n````\n"
    assert "".join(blocks_of(fence + "then\n\nmore", piece)) == fence + "then\n\nmore"
    assert fence in blocks_of(fence + "then\n\nmore", 1)
    assert blocks_of("```one line``` of code\n\nmore", piece)[0] == "```one line``` of code\n\n"


def test_a_long_block_costs_no_more_than_a_screen() -> None:
    """While thousands of lines of code stream, each repaint renders a screen of them, with their fence."""
    blocks = Blocks()
    blocks.feed("```python\n" + "x = 1\n" * 5_000)
    assert blocks.last(40, 80) == "\n".join(["```python", *["x = 1"] * 39, ""])
    blocks = Blocks()
    blocks.feed("words " * 50_000)
    assert len(blocks.last(40, 80)) == 40 * 80


def test_the_end_of_a_long_table_has_its_head() -> None:
    """The rows that are seen of a table longer than the screen are rows of that table."""
    blocks = Blocks()
    blocks.feed("Words.\n| a | b |\n|---|--:|\n" + "".join(f"| {row} | x |\n" for row in range(500)))
    assert blocks.last(10, 80).split("\n")[:3] == ["| a | b |", "|---|--:|", "| 491 | x |"]


def test_repainting_in_a_narrower_window_leaves_nothing() -> None:
    """Where the terminal has become narrower since, lines that it has wrapped are erased with all their rows."""
    out = Screen()
    stream = MarkdownStream(out, size=(80, 40))
    stream.feed("x" * 75)
    stream._size = (30, 40)
    stream.close()
    assert "\x1b[3F\x1b[J" in out.getvalue()
