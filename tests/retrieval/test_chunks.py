"""Files are cut at the borders a reader would choose, and words are found in the forms people write them in."""

from __future__ import annotations

import pytest

from brim.retrieval.chunks import MOST_LINES, cut_into_chunks
from brim.retrieval.words import terms_of

PYTHON = '''"""Module."""

import os


class Shelf:
    """Holds books."""

    def __init__(self):
        self.books = []

    @property
    def size(self):
        return len(self.books)

{filler}
    def take(self, title):
        return title


def open_shelf(path):
    return Shelf()
'''


def test_a_method_is_found_under_its_class() -> None:
    """A chunk names what it defines, qualified; a decorator belongs to what it decorates."""
    filler = "".join(f"    # a line about nothing in particular, number {i}\n" for i in range(40))
    text = PYTHON.format(filler=filler)
    chunks = cut_into_chunks(text, "py")
    names = [name for chunk in chunks for name in chunk.names]
    assert names == ["Shelf", "Shelf.__init__", "Shelf.size", "Shelf.take", "open_shelf"]
    lines = text.split("\n")
    held = next(chunk for chunk in chunks if "Shelf.size" in chunk.names)
    assert "    @property" in lines[held.start : held.end]


@pytest.mark.parametrize(
    ("suffix", "text", "names"),
    [
        ("md", "# Guide\n\nintro\n\n## Install\n\n```sh\n# no heading\n```\n", ["Guide", "Guide > Install"]),
        ("rst", "Guide\n=====\n\ntext\n\nInstall\n-------\n\nmore\n", ["Guide", "Install"]),
        ("go", "package a\n\nfunc (s *Shelf) Take(n int) {\n}\n\ntype Book struct {\n}\n", ["a", "Take", "Book"]),
        ("ts", "export class Shelf {\n  take(name: string) {\n  }\n}\nexport const open = () => 1;\n",
         ["Shelf", "Shelf.take", "open"]),
        ("rs", "pub struct Shelf;\n\nimpl Shelf {\n    pub fn take(&self) {}\n}\n", ["Shelf", "Shelf", "Shelf.take"]),
        ("c", "static int take(struct shelf *s, int n) {\n    if (n) {\n    }\n}\n", ["take"]),
        ("cfg", "[a]\nb = 1\n", []),
    ],
)  # fmt: skip
def test_each_language_is_cut_at_its_definitions_and_headings(suffix: str, text: str, names: list[str]) -> None:
    """Definitions of code and headings of prose are borders; a comment in a code block is no heading."""
    assert [name for chunk in cut_into_chunks(text, suffix) for name in chunk.names] == names


@pytest.mark.parametrize("suffix", ["py", "md", "rst", "js", "txt", ""])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "x",
        "\n\n\n",
        "def a():\n" + "    x = 1\n" * 500,
        "word " * 5000,
        "# h\n" * 300,
        "==\n==\n",
        "a\n===\n" * 90,
    ],
)
def test_chunks_cover_a_file_once(suffix: str, text: str) -> None:
    """Chunks follow one another without gap or overlap and none is too long, whatever the file holds."""
    chunks = cut_into_chunks(text, suffix)
    assert [chunk.start for chunk in chunks] == [0, *(chunk.end for chunk in chunks[:-1])]
    assert chunks[-1].end == len(text.split("\n"))
    assert all(0 < chunk.end - chunk.start <= MOST_LINES for chunk in chunks)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("get_user_name", ["get_user_name", "user", "name"]),
        ("the transformers", ["transformer"]),
        ("工具输出", ["工具", "具输", "输出"]),
        ("用max_tokens限制", ["用", "max_tokens", "max", "token", "限制"]),
        ("status", ["status"]),
    ],
)
def test_words_are_known_whole_and_in_pieces(text: str, terms: list[str]) -> None:
    """Identifiers count whole and in pieces, plurals as their singular, Chinese by pairs, also where both are mixed."""
    assert terms_of(text) == terms
