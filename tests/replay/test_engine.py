"""Spreading the work: the same bytes whatever the number of workers, and nothing lost or counted twice when one dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from brim.errors import BrimError, UsageError
from brim.replay.engine import play_all
from brim.replay.figures import Figures, encode_report
from brim.replay.play import Outcome, Plays, play
from brim.replay.regimes import DEFAULT
from brim.replay.run import replay
from brim.replay.sources import read_transcripts
from brim.replay.transcript import Transcript
from shared_replay import runs_file, small_run

PLAYS = Plays(("mask-3", "auto,window=9000,max_output=500"), DEFAULT[:2])


def report(figures: Figures) -> str:
    return encode_report(figures.report())


def dies_once(transcript: Transcript, plays: Plays) -> Outcome:
    """What a worker runs: the first to come to run-2 is killed, without any clean-up."""
    mark = Path(os.environ["BRIM_TEST_MARK"])
    if transcript.id == "run-2" and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return play(transcript, plays)


def dies_always(transcript: Transcript, plays: Plays) -> Outcome:
    """What a worker runs: whoever plays run-1 is killed."""
    if transcript.id == "run-1":
        os.kill(os.getpid(), signal.SIGKILL)
    return play(transcript, plays)


def refuses(transcript: Transcript, plays: Plays) -> Outcome:
    raise UsageError(f"{transcript.id} cannot be played")


def played(
    path: Path, work: Callable[[Transcript, Plays], Outcome] = play, jobs: int = 1, engine: str = "local"
) -> str:
    return report(replay(read_transcripts([path]), PLAYS, jobs=jobs, engine=engine, work=work))


def test_workers_change_no_byte(tmp_path: Path) -> None:
    """Two worker processes give the JSON that one process gives, to the last byte."""
    path = runs_file(tmp_path)
    assert played(path, jobs=2) == played(path)


def test_a_killed_worker_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker killed in mid-run is replaced, its conversations are played again, and each is counted once."""
    path = runs_file(tmp_path)
    monkeypatch.setenv("BRIM_TEST_MARK", str(tmp_path / "mark"))
    assert played(path, dies_once, jobs=2) == played(path)
    assert (tmp_path / "mark").exists()


def test_a_conversation_that_kills_its_workers_is_named() -> None:
    """What kills every worker that plays it ends the run with its name; the ones before it are done."""
    transcripts = [Transcript(f"run-{n}", small_run(4, seed=n)) for n in range(3)]
    done: list[str] = []
    with pytest.raises(BrimError, match="played run-1 died 3 times"):
        done.extend(outcome.id for outcome in play_all(transcripts, PLAYS, work=dies_always, jobs=2))
    assert done == ["run-0"]


def test_errors_of_workers_arrive() -> None:
    """An error inside a worker is the caller's, with its message."""
    with pytest.raises(UsageError, match="run-0 cannot be played"):
        list(play_all([Transcript("run-0", small_run(3))], PLAYS, work=refuses, jobs=2))


def test_unknown_engines_are_told() -> None:
    """An engine that does not exist is a usage error."""
    with pytest.raises(UsageError, match="no engine 'dask'"):
        play_all([], PLAYS, work=play, engine="dask")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # ray's own
def test_ray_changes_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's local cluster gives the JSON of one process to the last byte, also when a worker is killed."""
    pytest.importorskip("ray", reason="needs the extra: pip install 'brim[cluster]'")
    path = runs_file(tmp_path)
    monkeypatch.setenv("BRIM_TEST_MARK", str(tmp_path / "mark"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))  # where this module finds what it shares
    assert played(path, dies_once, jobs=2, engine="ray") == played(path)
    assert (tmp_path / "mark").exists()
