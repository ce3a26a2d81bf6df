"""A workspace with a real store and a real tokenizer, and a way to call a tool in one line."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brim.store import open_store
from brim.tokens import counter_for
from brim.tools import Caps, ToolContext, ToolOutput, run_tool


class Bench:
    """Tools in `root`; `call` runs one and checks what holds for every tool's answer."""

    def __init__(self, root: Path, ctx: ToolContext) -> None:
        self.root, self.ctx = root, ctx

    def call(self, name: str, **arguments: Any) -> ToolOutput:
        """The output of one call, within the tool's cap and valid as UTF-8, whatever it is."""
        output = asyncio.run(run_tool(name, arguments, self.ctx))
        output.text.encode("utf-8")
        assert "\x1b" not in output.text and "\0" not in output.text
        caps = self.ctx.caps
        # bash: two capped streams, their labels, a few notes and how it ended.
        most = {"bash": caps.bash + caps.bash_stderr + 400, "read": caps.read, "grep": caps.grep, "glob": caps.glob}
        assert self.ctx.count(output.text) <= most.get(name, caps.read)
        return output

    def write(self, name: str, data: str | bytes) -> Path:
        """A file as the session has not seen it yet."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        self.ctx.files.pop(path, None)
        return path

    def with_caps(self, **caps: int) -> Bench:
        """The same workspace with other caps."""
        self.ctx.caps = msgspec.convert(caps, Caps)
        return self


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    root = tmp_path / "workspace"
    root.mkdir()
    store = open_store(tmp_path / "store.db")
    ctx = ToolContext(root, store.blobs(), counter_for("gpt-4o").count_text)
    yield Bench(Path(os.path.realpath(root)), ctx)
    store.close()


def body(output: ToolOutput) -> str:
    """A read page without its facts: what pages join up from."""
    return output.text[: output.text.rindex("[")]


def pages(bench: Bench, tool: str, **arguments: Any) -> str:
    """All pages of a file or an original, joined, following what each page says about going on."""
    text, offset, char = "", 1, 1
    for _ in range(2000):
        page = bench.call(tool, offset=offset, char=char, **arguments)
        assert not page.is_error, page.text
        piece = body(page)
        following = page.meta["next"]
        if following is None:
            return text + (piece.removesuffix("\n") if "no newline at the end" in page.text[len(piece) :] else piece)
        # Inside a line the page ends with a newline that the line does not have there.
        text += piece.removesuffix("\n") if following[1] > 1 else piece
        assert following > [offset, char], "a page that does not go on"
        offset, char = following
        assert f"offset {offset}" in page.text
    raise AssertionError("pages without end")
