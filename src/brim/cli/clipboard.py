"""What was answered, to the clipboard: of the terminal (OSC 52, which works over ssh), and of this machine where it has one.

A terminal does not say whether it took the text; so what was done is told, not that it worked.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import IO

from brim.errors import UsageError

TERMINAL_MOST = 74_994
"""Bytes that terminals take by OSC 52 at least, before base64 (xterm's and tmux's limits are 100,000 characters)."""
_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<mark>```+|~~~+)(?P<about>[^\n`]*)$")


def code_blocks(markdown: str) -> list[str]:
    """The texts of fenced code blocks, in order; one that is still open ends with the text."""
    blocks: list[str] = []
    fence = ""
    held: list[str] = []
    for line in markdown.splitlines():
        found = _FENCE.match(line)
        if not fence:
            if found:
                fence, held = found["mark"], []
        elif found and found["mark"][0] == fence[0] and len(found["mark"]) >= len(fence) and not found["about"].strip():
            blocks.append("\n".join(held) + "\n" if held else "")
            fence = ""
        else:
            held.append(line)
    if fence:
        blocks.append("\n".join(held) + "\n" if held else "")
    return blocks


def chosen_text(markdown: str, block: int | None) -> str:
    """The whole text, or its code block `block` (1 is the first). Raises UsageError where there is no such block."""
    if block is None:
        return markdown
    blocks = code_blocks(markdown)
    if not 1 <= block <= len(blocks):
        there = f"it has code blocks 1 to {len(blocks)}" if blocks else "it has no code block"
        raise UsageError(f"the last answer has no code block {block}", hint=f"{there}; /copy alone takes all of it")
    return blocks[block - 1]


def copy(text: str, terminal: IO[str], env: Mapping[str, str]) -> list[str]:
    """Copies a text; returns where to, in words. Raises UsageError where there is no way."""
    ways: list[str] = []
    data = text.encode("utf-8", "replace")
    if terminal.isatty() and env.get("TERM") != "dumb":
        if len(data) <= TERMINAL_MOST:
            terminal.write(_in_tmux(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07", env))
            terminal.flush()
            ways.append("the terminal's clipboard (OSC 52)")
        else:
            ways.append(f"not the terminal's clipboard: {len(data):,} bytes are too many for it")
    if "SSH_CONNECTION" not in env and (tool := _system_copy(text)):
        ways.append(f"the system's clipboard ({tool})")
    if not any(not way.startswith("not ") for way in ways):
        raise UsageError(
            "there is no clipboard here" + "".join(f": {way}" for way in ways),
            hint="install wl-clipboard, xclip or xsel, or write the session to a file: /export FILE",
        )
    return ways


def _in_tmux(sequence: str, env: Mapping[str, str]) -> str:
    """tmux keeps the sequence for its own buffer; passed through, it reaches the terminal outside, where that is allowed."""
    if not env.get("TMUX"):
        return sequence
    return sequence + "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"


def _system_copy(text: str) -> str | None:
    """Copies by the tool this machine has; its name, None where it has none that works."""
    import pyperclip

    try:
        pyperclip.copy(text)
    except pyperclip.PyperclipException:
        return None
    name = getattr(pyperclip.copy, "__name__", "")
    return name.removeprefix("copy_").replace("_", "-") or "system"
