"""`brim sessions rewind` and `fork`: the same as in a conversation, for scripts, and without any model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from brim.conversation import assistant, call, result, user
from brim.store import open_store
from brim.tools import ToolContext, run_tool
from shared_manage import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    """A folder with one session, in which two files were written and one edited."""
    made = Desk(tmp_path, monkeypatch, capfd)
    with open_store(tmp_path / "data" / "brim.db") as store:
        id = store.new_session(str(made.work), "auto", "openai/gpt-4o", id="s").id
        context = ToolContext(workspace=made.work, blobs=store.blobs(id), count=len)
        for turn, (tool, arguments) in enumerate(
            (
                ("write", {"path": "a.txt", "content": "one\n"}),
                ("edit", {"path": "a.txt", "old": "one", "new": "two"}),
                ("write", {"path": "b.txt", "content": "b\n"}),
            )
        ):
            output = asyncio.run(run_tool(tool, arguments, context))
            store.append(id, [user(f"turn {turn}"), assistant("", call(tool, arguments, id=f"c{turn}"))])
            store.append(id, [result(f"c{turn}", output.text)], meta={"checkpoint": output.meta["checkpoint"]})
            store.append(id, [assistant("done")])
    return made


def test_a_session_is_gone_back_in_from_the_shell(desk: Desk) -> None:
    """Without a number the messages are listed with the files changed since; --dry-run says what would become of them; files go
    back, and --undo takes it back."""
    listed = desk("sessions", "rewind", "s", "--json").json
    assert [(each["message"], each["files"]) for each in listed] == [(0, ["a.txt"]), (4, ["a.txt"]), (8, ["b.txt"])]
    planned = desk("sessions", "rewind", "s", "4", "--what", "files", "--dry-run", "--json").json
    assert [(each["path"], each["does"]) for each in planned["files"]] == [("a.txt", "put back"), ("b.txt", "remove")]
    assert (desk.work / "a.txt").read_text() == "two\n"

    done = desk("sessions", "rewind", "s", "4", "--what", "files", "--json").json
    assert (done["id"], done["restored"], done["removed"], done["left"]) == ("s", ["a.txt"], ["b.txt"], [])
    assert (desk.work / "a.txt").read_text() == "one\n" and not (desk.work / "b.txt").exists()
    told = desk("sessions", "rewind", "s", "--undo")
    assert told.code == 0 and "put back a.txt" in told.err and (desk.work / "b.txt").read_text() == "b\n"

    (desk.work / "a.txt").write_text("by hand\n")
    copy = desk("sessions", "rewind", "s", "4", "--what", "both", "--json").json
    assert (copy["id"], copy["parent"], copy["messages"]) == ("s", "s~1", 4)
    assert [each["path"] for each in copy["left"]] == ["a.txt"] and (desk.work / "a.txt").read_text() == "by hand\n"


def test_a_beginning_is_copied_and_wrong_words_are_named(desk: Desk) -> None:
    """`fork --at N` copies what stands before message N; a message that is not there and an unknown --what end with 2."""
    told = desk("sessions", "fork", "s", "--at", "4", "--title", "short")
    copy = desk("sessions", "show", told.out.strip(), "--json").json
    assert copy["title"] == "short" and len(copy["messages"]) == 4 and copy["parent"] == "s"
    assert desk("sessions", "fork", "s", "--at", "99").code == 2
    assert desk("sessions", "rewind", "s", "99").code == 2
    assert desk("sessions", "rewind", "s", "0", "--what", "everything").code == 2
    assert "nothing was rewound" in desk("sessions", "rewind", "s", "--undo").err


def test_the_config_says_what_gc_deletes(desk: Desk) -> None:
    """max_age and max_size of the user's config hold for `brim gc`; a project cannot set them."""
    (desk.work / ".brim").mkdir()
    (desk.work / ".brim" / "config.toml").write_text('max_size = "1"\n')
    assert desk("gc", "--json").json["sessions"] == 0
    (desk.root / "config.toml").write_text('max_size = "1"\n')
    assert desk("gc", "--json").json["sessions"] == 1
