"""Streamed Markdown without flicker: finished blocks are printed once and stay; only the block still being written is
painted again.

A block is finished at an empty line outside a code fence. The tail that is repainted never exceeds the screen: a longer
one is printed as it stands.
"""

from __future__ import annotations

import functools
import io
import os
import re
import time
from typing import IO, TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from rich.markdown import Markdown, MarkdownElement

_FENCE = re.compile(r"^\s{0,3}(```+|~~~+)")
_EVERY_S = 0.05


class MarkdownStream:
    """Takes text as it comes; `close` prints the rest. `size`: columns and rows, None for the terminal's own."""

    def __init__(self, out: IO[str], *, size: tuple[int, int] | None = None) -> None:
        self._out = out
        self._size = size
        self._tail = ""
        self._painted = 0
        self._last = 0.0
        self._gap = ""

    def feed(self, text: str) -> None:
        """More text."""
        self._tail += text
        done, self._tail = split_finished(self._tail)
        if done.strip():
            self._erase()
            self._print(done)
            self._last = 0.0
        if time.monotonic() - self._last >= _EVERY_S:
            self._paint()

    def close(self) -> None:
        """Prints what is left."""
        self._erase()
        if self._tail.strip():
            self._print(self._tail)
        self._tail = ""
        self._out.flush()

    def _paint(self) -> None:
        """The unfinished block, at most a screen of it from its end."""
        self._last = time.monotonic()
        if not self._tail.strip():
            return
        lines = (self._gap + self._rendered(self._tail)).split("\n")
        lines = lines[-max(1, self._screen()[1] - 2) :]
        self._erase()
        self._out.write("\n".join(lines) + "\n")
        self._out.flush()
        self._painted = len(lines)

    def _erase(self) -> None:
        if self._painted:
            self._out.write(f"\x1b[{self._painted}F\x1b[J")
            self._painted = 0

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
        return "\n".join(line.rstrip(" ") for line in buffer.getvalue().split("\n")).strip("\n")


@functools.cache
def _markdown() -> type[Markdown]:
    """Rich's Markdown with code as it is: no padding around it and no background, which a selection would copy, and which
    is wrong on every second terminal."""
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import CodeBlock, Markdown
    from rich.syntax import Syntax

    class Code(CodeBlock):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            code = str(self.text).rstrip()
            yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default")

    class Plain(Markdown):
        elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "fence": Code, "code_block": Code}

    return Plain


def split_finished(text: str) -> tuple[str, str]:
    """The finished blocks of a Markdown text, and the tail that may still change."""
    fence: str | None = None
    end = at = 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        if not line.endswith("\n"):
            break
        mark = _FENCE.match(line)
        if mark:
            if fence is None:
                fence = mark[1]
            elif mark[1].startswith(fence[0]) and len(mark[1]) >= len(fence):
                fence = None
                end = at
        elif fence is None and not line.strip():
            end = at
    return text[:end], text[end:]
