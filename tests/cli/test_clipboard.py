"""`/copy`: the last answer or one of its code blocks, to the terminal's clipboard and to the system's."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest

from brim.cli.clipboard import TERMINAL_MOST, chosen_text, code_blocks
from brim.errors import UsageError

ANSWER = """Two ways:

```python
print("```")
```

~~~
```
inner
```
~~~

````md
```
x
```
````
"""


def test_code_blocks_are_found_as_markdown_has_them() -> None:
    """Fences close only with their own kind and length; the blocks come in order, an open one too; others are named."""
    assert code_blocks(ANSWER) == ['print("```")\n', "```\ninner\n```\n", "```\nx\n```\n"]
    assert code_blocks("a\n```\nhalf") == ["half\n"]
    assert chosen_text(ANSWER, None) == ANSWER and chosen_text(ANSWER, 1) == 'print("```")\n'
    with pytest.raises(UsageError, match="no code block 4") as none:
        chosen_text(ANSWER, 4)
    assert "1 to 3" in str(none.value.hint)


SCRIPT = """
import os, sys
from brim.cli.clipboard import copy
from brim.errors import UsageError
try:
    print(copy("x" * int(sys.argv[1]) + "字", sys.stdout, os.environ), file=sys.stderr)
except UsageError as error:
    print(error.message, error.hint, file=sys.stderr)
"""


def run_in_terminal(length: int, **env: str) -> tuple[str, str]:
    """What a process on a pseudo-terminal of its own wrote to it, and to stderr."""
    import pty

    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(length)], stdout=follower, stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "TERM": "xterm-256color", **env},
    )  # fmt: skip
    os.close(follower)
    out = b""
    while True:
        try:
            piece = os.read(leader, 65_536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    os.close(leader)
    assert process.stderr is not None
    told = process.stderr.read().decode()
    process.stderr.close()
    process.wait()
    return out.decode(), told


def test_the_terminal_gets_osc_52() -> None:
    """The text goes to the terminal in base64; a text that terminals refuse is not sent, and that is said."""
    out, told = run_in_terminal(3)
    assert out == f"\x1b]52;c;{base64.b64encode('xxx字'.encode()).decode()}\x07" and "OSC 52" in told
    out, told = run_in_terminal(TERMINAL_MOST)
    assert out == "" and "too many" in told and "/export" in told
    out, told = run_in_terminal(3, TERM="dumb")
    assert out == "" and "no clipboard" in told


def test_the_clipboard_of_the_system_gets_the_text(tmp_path: Path) -> None:
    """With a display and xclip the whole text arrives there, also one too long for the terminal; over ssh it is not asked."""
    tool = tmp_path / "xclip"
    tool.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\ncat > {tmp_path}/text\n')
    tool.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    _, told = run_in_terminal(TERMINAL_MOST, DISPLAY=":9", PATH=path)
    assert (tmp_path / "text").read_text() == "x" * TERMINAL_MOST + "字" and "xclip" in told
    (tmp_path / "text").unlink()
    run_in_terminal(3, DISPLAY=":9", PATH=path, SSH_CONNECTION="a b c d")
    assert not (tmp_path / "text").exists()
