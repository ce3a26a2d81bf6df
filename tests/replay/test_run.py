"""A run that was cut off goes on: its journal holds what is done, and the figures are those of a run in one go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from brim.errors import UsageError
from brim.replay.figures import encode_report
from brim.replay.play import Outcome, Plays, play
from brim.replay.regimes import DEFAULT
from brim.replay.run import Step, replay
from brim.replay.sources import Found, read_transcripts
from brim.replay.transcript import Transcript
from shared_replay import runs_file

PLAYS = Plays(("mask-3", "auto"), DEFAULT[:2])


def cut_off(found: Iterator[Found], after: int) -> Iterator[Found]:
    for number, each in enumerate(found):
        if number == after:
            raise KeyboardInterrupt
        yield each


def test_resumed_runs_give_the_same_figures(tmp_path: Path) -> None:
    """Cut off after two of four conversations and resumed, a run plays the other two and reports what one run does."""
    path, journal = runs_file(tmp_path), tmp_path / "journal"
    whole = encode_report(replay(read_transcripts([path]), PLAYS).report())
    with pytest.raises(KeyboardInterrupt):
        replay(cut_off(read_transcripts([path]), 2), PLAYS, journal=journal)
    played: list[str] = []

    def note(transcript: Transcript, plays: Plays) -> Outcome:
        played.append(transcript.id)
        return play(transcript, plays)

    steps: list[Step] = []
    resumed = replay(read_transcripts([path]), PLAYS, journal=journal, work=note, step=steps.append)
    assert encode_report(resumed.report()) == whole
    assert played == ["run-2", "run-3"]
    assert [step.id for step in steps] == ["run-0", "run-1", "run-2", "run-3"]
    assert steps[-1].bytes == path.stat().st_size


def test_half_a_line_is_played_again(tmp_path: Path) -> None:
    """A journal whose last line was being written when the machine stopped loses that conversation only."""
    path, journal = runs_file(tmp_path), tmp_path / "journal"
    whole = encode_report(replay(read_transcripts([path]), PLAYS, journal=journal).report())
    data = journal.read_bytes()
    journal.write_bytes(data[: len(data) - 40])
    assert encode_report(replay(read_transcripts([path]), PLAYS, journal=journal).report()) == whole
    assert len(journal.read_bytes().splitlines()) == len(data.splitlines()) == 5


def test_changed_conversations_are_played_again(tmp_path: Path) -> None:
    """What is known of a conversation counts only for the very same messages."""
    path, journal = runs_file(tmp_path, 2), tmp_path / "journal"
    replay(read_transcripts([path]), PLAYS, journal=journal)
    rows = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    rows[0]["messages"][3]["content"] += "\nmore_of_it"
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    fresh = encode_report(replay(read_transcripts([path]), PLAYS).report())
    assert encode_report(replay(read_transcripts([path]), PLAYS, journal=journal).report()) == fresh


def test_other_journals_are_refused(tmp_path: Path) -> None:
    """A journal of other policies, or a file that is none, is never overwritten."""
    path, journal = runs_file(tmp_path, 1), tmp_path / "journal"
    replay(read_transcripts([path]), PLAYS, journal=journal)
    before = journal.read_bytes()
    with pytest.raises(UsageError, match="other policies"):
        replay(read_transcripts([path]), Plays(("mask-1",), DEFAULT), journal=journal)
    assert journal.read_bytes() == before
    notes = tmp_path / "notes.txt"
    notes.write_text("my notes\n")
    with pytest.raises(UsageError, match="no journal"):
        replay(read_transcripts([path]), PLAYS, journal=notes)
    assert notes.read_text() == "my notes\n"


def test_a_journal_serves_one_run_at_a_time(tmp_path: Path) -> None:
    """A second run on a journal in use is refused before it plays anything; the first one's figures stay whole."""
    path, journal = runs_file(tmp_path), tmp_path / "journal"
    whole = encode_report(replay(read_transcripts([path]), PLAYS).report())

    def meanwhile(step: Step) -> None:
        with pytest.raises(UsageError, match="in use by another replay"):
            replay(read_transcripts([path]), PLAYS, journal=journal)

    assert encode_report(replay(read_transcripts([path]), PLAYS, journal=journal, step=meanwhile).report()) == whole
    assert encode_report(replay(read_transcripts([path]), PLAYS, journal=journal).report()) == whole


def test_files_may_be_added_between_two_runs(tmp_path: Path) -> None:
    """What was played is known again wherever it stands by then: only new conversations are played."""
    old, journal = runs_file(tmp_path), tmp_path / "journal"
    replay(read_transcripts([old]), PLAYS, journal=journal)
    (tmp_path / "before").mkdir()
    new = tmp_path / "before" / "more.jsonl"
    new.write_bytes(old.read_bytes().replace(b"load_config_0", b"load_config_9").splitlines(keepends=True)[0])
    played: list[str] = []

    def note(transcript: Transcript, plays: Plays) -> Outcome:
        played.append(transcript.id)
        return play(transcript, plays)

    both = encode_report(replay(read_transcripts([new, old]), PLAYS, journal=journal, work=note).report())
    assert both == encode_report(replay(read_transcripts([new, old]), PLAYS).report())
    assert played == ["run-0"]


def test_lone_surrogates_have_a_key(tmp_path: Path) -> None:
    """A conversation that no UTF-8 can say is kept in the journal like any other."""
    path, journal = runs_file(tmp_path, 2), tmp_path / "journal"
    path.write_bytes(path.read_bytes().replace(b"You fix bugs", b"You \\ud83d bugs"))
    first = encode_report(replay(read_transcripts([path]), PLAYS, journal=journal).report())
    size = journal.stat().st_size
    assert encode_report(replay(read_transcripts([path]), PLAYS, journal=journal).report()) == first
    assert journal.stat().st_size == size
