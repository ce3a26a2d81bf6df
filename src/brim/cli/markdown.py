"""Streamed Markdown without flicker: finished blocks are printed once and stay; only the block still being written is
painted again.

Nothing of what was written is left out: HTML and the addresses of links stand there as text, lines end where they ended.
The tail that is repainted never exceeds the screen, and costs no more than a screen does, however long the block grows.
"""

from __future__ import annotations

import functools
import io
import os
import re
import time
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, ClassVar

from brim.budget.bill import columns
from brim.cli.blocks import Blocks

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.markdown import Markdown, MarkdownElement

_EVERY_S = 0.05
_SHARE = 4
"""Painting takes at most one part in so many of the time."""
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;]*m|\]8;[^\x1b]*\x1b\\\\)")
_FILLING = re.compile(r"(?: |\x1b\[[0-9;]*m)+$")
_BREAK = re.compile(r"<br\s*/?>", re.I)


class MarkdownStream:
    """Takes text as it comes; `close` prints the rest. `size`: columns and rows, None for the terminal's own."""

    def __init__(self, out: IO[str], *, size: tuple[int, int] | None = None) -> None:
        self._out = out
        self._size = size
        self._blocks = Blocks()
        self._painted: list[int] = []
        """Columns of each line of the tail that stands on the screen."""
        self._next = 0.0
        self._gap = ""

    def feed(self, text: str) -> None:
        """More text."""
        done = self._blocks.feed(text)
        if done.strip():
            self._erase()
            self._print(done)
            self._next = 0.0
        if time.monotonic() >= self._next:
            self._paint()

    def close(self) -> None:
        """Prints what is left."""
        self._erase()
        if self._blocks.tail.strip():
            self._print(self._blocks.tail)
        self._blocks = Blocks()
        self._out.flush()

    def _paint(self) -> None:
        """The unfinished block, at most a screen of it from its end."""
        began = time.monotonic()
        if self._blocks.tail.strip():
            width, rows = self._screen()
            lines = (self._gap + self._rendered(self._blocks.last(rows, width))).split("\n")
            lines = lines[-max(1, rows - 2) :]
            self._erase()
            self._out.write("\n".join(lines) + "\n")
            self._out.flush()
            self._painted = [columns(_ESCAPES.sub("", line)) for line in lines]
        ended = time.monotonic()
        self._next = ended + max(_EVERY_S, (ended - began) * _SHARE)

    def _erase(self) -> None:
        if self._painted:
            width = max(1, self._screen()[0])
            rows = sum(max(1, -(-each // width)) for each in self._painted)  # more where it has become narrower
            self._out.write(f"\x1b[{rows}F\x1b[J")
            self._painted = []

    def _print(self, text: str) -> None:
        self._out.write(f"{self._gap}{self._rendered(text)}\n")
        self._out.flush()
        self._gap = "\n"  # an empty line between blocks, and only there

    def _screen(self) -> tuple[int, int]:
        """Columns and rows, asked of the terminal each time: it may be resized, and COLUMNS may be stale."""
        if self._size is not None:
            return self._size
        try:
            size = os.get_terminal_size(self._out.fileno())
        except (OSError, ValueError):
            return (80, 24)
        return (size.columns, size.lines)

    def _rendered(self, text: str) -> str:
        from rich.console import Console

        buffer = io.StringIO()
        console = Console(file=buffer, width=self._screen()[0], force_terminal=True, color_system="standard")
        console.print(_markdown()(text.strip("\n"), code_theme="ansi_dark"))
        # without the blanks that fill each line: a selection would copy them, and a narrower window wrap them
        return "\n".join(map(_trimmed, buffer.getvalue().split("\n"))).strip("\n")


def _trimmed(line: str) -> str:
    """A line without the blanks at its end, dyed ones too."""
    return _FILLING.sub(lambda found: "\x1b[0m" if "\x1b" in found[0] else "", line)


@functools.cache
def _markdown() -> type[Markdown]:
    """Rich's Markdown with code as it is: no padding around it and no background, which a selection would copy, and which
    is wrong on every second terminal; headings at the left, and everything that was written."""
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
    from rich.markdown import CodeBlock, Heading, Markdown
    from rich.syntax import Syntax

    class Code(CodeBlock):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            code = str(self.text).rstrip()
            yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default")

    class Title(Heading):
        LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}

    class Plain(Markdown):
        elements: ClassVar[dict[str, type[MarkdownElement]]] = {
            **Markdown.elements, "fence": Code, "code_block": Code, "heading_open": Title,
        }  # fmt: skip

        def __init__(self, markup: str, code_theme: str) -> None:
            super().__init__(markup, code_theme)
            self.parsed = _whole(self.parsed)

    return Plain


def _whole(tokens: list[Token]) -> list[Token]:
    """Tokens of which rich shows everything."""
    from markdown_it.token import Token

    for token in tokens:
        if token.type == "html_block":
            token.type, token.tag, token.info = "fence", "code", "html"
        elif token.children:
            token.children = list(_inline(token.children, Token))
    return tokens


def _inline(tokens: list[Token], make: type[Token]) -> Iterator[Token]:
    """Inline tokens with HTML and addresses as text, and lines that end where they ended."""
    address, shown = "", ""
    for token in tokens:
        shown += token.content
        if token.type == "softbreak":
            yield make("hardbreak", "br", 0)
        elif token.type == "html_inline":
            yield make("hardbreak", "br", 0) if _BREAK.fullmatch(token.content) else _text(token.content, make)
        elif token.type == "image":
            yield _text(" ".join(filter(None, (token.content, f"({token.attrs.get('src', '')})"))), make)
        elif token.type == "link_close":
            yield token
            if address and address not in (shown, f"mailto:{shown}"):
                yield _text(f" ({address})", make)
        else:
            if token.type == "link_open":
                address, shown = str(token.attrs.get("href", "")), ""
            yield token


def _text(content: str, make: type[Token]) -> Token:
    token = make("text", "", 0)
    token.content = content
    return token
