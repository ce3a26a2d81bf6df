"""Which process a Ctrl-C has missed, on real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from brim.tools.processes import Born, last_born, missed_interrupt, start_tick

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which process has missed a signal")

LISTENING = "import signal; signal.signal(2, print); print('ready', flush=True); signal.pause()"


def until_sleep(pid: int) -> None:
    """Waits until a shell that printed its line has become the program that it is to be: a shell hears the signal."""
    while Path(f"/proc/{pid}/comm").read_text() != "sleep\n":
        time.sleep(0.005)


def missed(group: int, when: Born) -> set[int]:
    return missed_interrupt(group, when, ending=False)


@pytest.fixture
def program(request: pytest.FixtureRequest) -> Iterator[int]:
    """A program in a group of its own, that has printed a line."""
    with subprocess.Popen(request.param, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("program", [["sh", "-c", "echo ready; exec sleep 600"]], indirect=True)
def test_a_program_that_was_starting(program: int) -> None:
    """It has missed a signal of that moment; not one of long before or after its birth, and not one of another group."""
    until_sleep(program)
    tick = start_tick(program)
    assert missed(program, Born(program, tick)) == {program}
    assert missed(program, Born(1, tick + 1)) == {program}
    assert missed(program, Born(program - 1, tick)) == set()
    assert missed(program, Born(program, tick - 1)) == set()
    assert missed(program, Born(program, tick + 101)) == set()
    assert missed(program + 1, Born(program, tick)) == set()


@pytest.mark.parametrize("program", [["sh", "-c", "(echo ready; exec sleep 600); :"]], indirect=True)
def test_the_child_of_a_shell_that_is_to_end(program: int) -> None:
    """It has missed the signal though it is younger, unless the shell may be cleaning up."""
    children = Path(f"/proc/{program}/task/{program}/children").read_text()
    until_sleep(int(children))
    earlier = Born(1, start_tick(program))
    assert missed_interrupt(program, earlier, ending=True) == {int(children)}
    assert missed_interrupt(program, earlier, ending=False) == set()


@pytest.mark.parametrize(
    "program", [[sys.executable, "-SEc", LISTENING], ["sh", "-c", "trap '' INT; echo ready; sleep 600"]], indirect=True
)
def test_a_program_that_hears_or_ignores(program: int) -> None:
    """It has missed nothing."""
    assert missed(program, Born(program, start_tick(program))) == set()


def test_now() -> None:
    """A process that starts afterwards is newer than the moment; one that was there is not."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as before:
        born = last_born()
        with subprocess.Popen(["sleep", "600"], start_new_session=True) as after:
            try:
                assert missed(before.pid, born) == {before.pid}
                assert missed(after.pid, born) == set()
            finally:
                before.kill()
                after.kill()
