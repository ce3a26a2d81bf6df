"""Killed at any moment, `ai` loses nothing it has told, stores nothing twice, and the session goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared_ai import make_home
from shared_crash import kill_sessions

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("kills", "lines", "repl"), [(5, 1, 0.0), (2, 1, 1.0), pytest.param(500, 4, 0.2, marks=pytest.mark.slow)]
)
def test_kills_at_random_moments(tmp_path: Path, kills: int, lines: int, repl: float) -> None:
    """No acknowledged message is lost, none is there twice, half answers are marked, files are whole, every request is
    valid, and each session answers after its last kill."""
    report = kill_sessions(lambda url: make_home(tmp_path / "home", url), kills, lines=lines, repl=repl)
    assert report.faults == []
    assert report.kills == kills
    assert report.repl_kills == (kills if repl == 1.0 else report.repl_kills)
