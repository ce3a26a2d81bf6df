"""Rewinding on real files: sessions made by `ai` against a scripted provider, gone back in from another process."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from brim.agent.config import load_config
from brim.agent.opening import Choice, open_agent
from brim.agent.rewind import Outcome, What, look_back, rewind, turns_of, undo
from brim.conversation import user
from brim.errors import UsageError
from brim.store import open_store
from brim.testing import ScriptedProvider, reply, tool_call
from brim.tools import ToolContext
from shared_ai import Home, make_home


class Desk:
    """A project folder, a scripted model that calls tools in it, and the store it leaves behind."""

    def __init__(self, tmp_path: Path) -> None:
        self.home: Home = make_home(tmp_path / "home", None)
        self.store = open_store(self.home.root / "data" / "brim.db")

    @property
    def work(self) -> Path:
        return self.home.work

    def ask(self, text: str, *calls: tuple[str, dict[str, Any]], session: str = "s") -> None:
        """One process of `ai`: the model makes these calls, then says done."""
        with ScriptedProvider([*(tool_call(name, arguments) for name, arguments in calls), reply("done")]) as upstream:
            ran = self.home.run(
                text, "--session", session, "--permission-mode", "allow-all",
                OPENAI_BASE_URL=upstream.base_url, BRIM_MODEL="openai/gpt-4o",
            )  # fmt: skip
        assert ran.code == 0, ran.err

    def texts(self, session: str = "s") -> list[str]:
        return [each.message.text for each in self.store.load(session)]

    def context(self, session: str = "s") -> ToolContext:
        return ToolContext(workspace=self.work, blobs=self.store.blobs(session), count=len)

    def rewind(self, at: int, what: What, session: str = "s", *, force: bool = False) -> Outcome:
        done = rewind(self.store, session, at, what, self.context(session), force=force)
        self.store.release(session)
        return done

    def undo(self, session: str = "s", *, force: bool = False) -> Outcome:
        done = undo(self.store, session, self.context(session), force=force)
        self.store.release(done.session)
        return done


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    made = Desk(tmp_path)
    yield made
    made.store.close()


def test_files_go_back_through_several_changes_and_forward_again(desk: Desk) -> None:
    """Edits, a whole rewrite and a new file are undone as one; mode and bytes return; undone, all is as it was; and again."""
    old = b"one\r\ntwo\xff\r\n"
    path = desk.work / "notes.txt"
    path.write_bytes(old)
    path.chmod(0o750)
    desk.ask("first", ("edit", {"path": "notes.txt", "old": "one", "new": "1"}))
    desk.ask(
        "second",
        ("edit", {"path": "notes.txt", "old": "two", "new": "2"}),
        ("write", {"path": "new/made.txt", "content": "made\n"}),
        ("write", {"path": "notes.txt", "content": "whole\n"}),
        ("edit", {"path": "new/made.txt", "old": "made", "new": "edited"}),
    )
    late = path.read_bytes()
    before = desk.texts()
    assert [(each.text, each.files) for each in turns_of(desk.store, "s", desk.work)] == [
        ("first", ("notes.txt",)),
        ("second", ("notes.txt", "new/made.txt")),
    ]
    at = before.index("second")

    done = desk.rewind(at, "files")
    assert path.read_bytes() == b"1\r\ntwo\xff\r\n" and not (desk.work / "new/made.txt").exists()
    assert (done.restored, done.removed, done.left) == (("notes.txt",), ("new/made.txt",), ())
    assert desk.texts()[: len(before)] == before and "notes.txt" in desk.texts()[-1]  # the model is told

    desk.undo()
    assert path.read_bytes() == late and (desk.work / "new/made.txt").read_bytes() == b"edited\n"
    desk.undo()
    assert path.read_bytes() == b"1\r\ntwo\xff\r\n" and not (desk.work / "new/made.txt").exists()

    desk.rewind(0, "files")
    assert path.read_bytes() == old and path.stat().st_mode & 0o777 == 0o750


def test_both_goes_on_in_a_copy_and_the_session_keeps_everything(desk: Desk) -> None:
    """Conversation and files go back together; the session left has every message; undo returns to it with its files."""
    desk.ask("make it", ("write", {"path": "a.txt", "content": "a\n"}))
    desk.ask("change it", ("write", {"path": "a.txt", "content": "b\n"}))
    before = desk.texts()
    done = desk.rewind(before.index("change it"), "both")
    assert (desk.work / "a.txt").read_text() == "a\n"
    assert desk.texts(done.session) == before[: before.index("change it")]
    assert desk.texts(done.former)[: len(before)] == before
    desk.ask("go another way", ("write", {"path": "b.txt", "content": "c\n"}), session=done.session)
    assert desk.undo(done.session).session == "s"
    assert desk.texts()[: len(before)] == before
    assert (desk.work / "a.txt").read_text() == "b\n"
    assert (desk.work / "b.txt").read_text() == "c\n"


def test_a_chosen_name_goes_with_the_conversation(desk: Desk) -> None:
    """`--session NAME` after a rewind goes on in the rewound conversation; what was left is NAME~1, then NAME~2, whole; undo
    gives the name back, and forks still name their parent."""
    desk.ask("first")
    desk.ask("second")
    forked = desk.store.fork("s", 2).id
    done = desk.rewind(2, "conversation")
    assert (done.session, done.former) == ("s", "s~1")
    assert desk.store.get_session("s").parent == "s~1" and desk.store.get_session(forked).parent == "s~1"
    desk.ask("another second")
    assert desk.texts() == ["first", "done", "another second", "done"]
    assert desk.texts("s~1") == ["first", "done", "second", "done"]

    again = desk.rewind(2, "conversation")
    assert (again.session, again.former, desk.texts()) == ("s", "s~2", ["first", "done"])
    back = desk.undo()
    assert (back.session, back.former) == ("s", "s~3") and desk.texts()[2] == "another second"
    assert desk.undo().session == "s" and desk.texts()[2] == "second"
    desk.ask("third")
    assert desk.texts()[-2:] == ["third", "done"]


def test_a_name_stays_where_its_session_is_written(desk: Desk) -> None:
    """A rewind from another terminal, while a conversation writes the session, leaves the name with who writes."""
    desk.ask("first")
    desk.ask("second")
    with open_store(desk.home.root / "data" / "brim.db") as other:
        other.acquire("s")
        done = desk.rewind(2, "conversation")
        assert done.session != "s" and done.former == "s" and desk.texts(done.session) == ["first", "done"]
        assert [each.message.text for each in other.load("s")][2] == "second"


def test_what_no_user_typed_is_no_title(desk: Desk) -> None:
    """A session that begins with a command of the user's or a rewind is named after the first question."""
    id = desk.store.new_session(str(desk.work)).id
    desk.store.append(id, [user("I ran `ls`:\na.txt")], meta={"ran": "ls"})
    desk.store.append(id, [user("I undid file changes")], meta={"rewind": {"at": 0, "checkpoints": []}})
    assert desk.store.get_session(id).title is None
    desk.store.append(id, [user("what is here?")], meta={"at": 1.0})
    assert desk.store.get_session(id).title == "what is here?"


def test_what_somebody_else_changed_is_named_and_left(desk: Desk) -> None:
    """A file changed by hand since, or between two of the model's changes, is not touched, nor a made one removed; with force
    it is, and what was in it comes back with undo."""
    for name in ("since.txt", "between.txt"):
        (desk.work / name).write_text("old\n")
    desk.ask(
        "change",
        ("write", {"path": "since.txt", "content": "model\n"}),
        ("write", {"path": "between.txt", "content": "model\n"}),
        ("write", {"path": "made.txt", "content": "model\n"}),
        ("write", {"path": "plain.txt", "content": "model\n"}),
    )
    (desk.work / "between.txt").write_text("by hand\n")
    desk.ask("more", ("write", {"path": "between.txt", "content": "model again\n"}))
    (desk.work / "since.txt").write_text("by hand\n")
    (desk.work / "made.txt").write_text("by hand\n")

    done = desk.rewind(0, "files")
    assert done.removed == ("plain.txt",) and not done.restored
    assert {path for path, _ in done.left} == {"since.txt", "between.txt", "made.txt"}
    assert (desk.work / "since.txt").read_text() == (desk.work / "made.txt").read_text() == "by hand\n"
    assert (desk.work / "between.txt").read_text() == "model again\n"

    forced = desk.rewind(0, "files", force=True)
    assert not forced.left and not (desk.work / "made.txt").exists()
    assert (desk.work / "since.txt").read_text() == (desk.work / "between.txt").read_text() == "old\n"
    desk.undo()
    assert (desk.work / "since.txt").read_text() == (desk.work / "made.txt").read_text() == "by hand\n"


def test_files_of_commands_are_not_tracked_and_that_is_said(desk: Desk) -> None:
    """What a command made stays, and the command is named; a file that is gone comes back."""
    (desk.work / "kept.txt").write_text("old\n")
    desk.ask(
        "work",
        ("bash", {"command": "echo x > by-bash.txt"}),
        ("write", {"path": "kept.txt", "content": "new\n"}),
        ("bash", {"command": "rm kept.txt"}),
    )
    done = desk.rewind(0, "files")
    assert (desk.work / "by-bash.txt").exists() and (desk.work / "kept.txt").read_text() == "old\n"
    assert len(done.untracked) == 2 and "by-bash.txt" in done.untracked[0]


def test_links_folders_and_the_outside_are_never_written(desk: Desk) -> None:
    """A link or a folder in a file's place, or a checkpoint of another place, is named and left, also with force."""
    desk.ask(
        "write",
        ("write", {"path": "link.txt", "content": "x\n"}),
        ("write", {"path": "folder.txt", "content": "x\n"}),
    )
    outside = desk.home.root / "outside.txt"
    outside.write_text("mine\n")
    (desk.work / "link.txt").unlink()
    (desk.work / "link.txt").symlink_to(outside)
    (desk.work / "folder.txt").unlink()
    (desk.work / "folder.txt").mkdir()
    done = desk.rewind(0, "files", force=True)
    assert {path for path, _ in done.left} == {"link.txt", "folder.txt"} and done.marker is None
    assert outside.read_text() == "mine\n" and (desk.work / "link.txt").is_symlink()
    elsewhere = desk.home.root / "other"
    elsewhere.mkdir()
    found = look_back(desk.store, "s", 0, elsewhere)
    assert all(each.barred for each in found.changes)


def test_an_imported_session_writes_no_files(desk: Desk) -> None:
    """Checkpoints do not travel: what an import asks to put back is nothing."""
    (desk.work / "a.txt").write_text("old\n")
    desk.ask("change", ("write", {"path": "a.txt", "content": "new\n"}))
    exported = desk.store.export_session("s", originals=True)
    assert "checkpoint" in json.dumps(exported)
    made = desk.store.import_session(exported, project=str(desk.work)).session
    assert look_back(desk.store, made.id, 0, desk.work).changes == ()


def test_pins_of_later_messages_do_not_pass_to_a_copy(desk: Desk) -> None:
    """A pin on message N is about that message: a copy without it has no pin there."""
    desk.ask("one")
    desk.ask("two")
    desk.store.change_session("s", meta={"pins": [0, 2]})
    assert desk.store.fork("s", 2).meta["pins"] == [0]


def test_what_is_not_there_is_said(desk: Desk) -> None:
    """A message that does not exist, and an undo without a rewind, are told with what there is."""
    desk.ask("one")
    with pytest.raises(UsageError, match="no message 9"):
        desk.rewind(9, "both")
    with pytest.raises(UsageError, match="nothing was rewound"):
        desk.undo()


def test_where_originals_are_not_kept_files_stay_and_that_is_said(desk: Desk) -> None:
    """`originals = false`: nothing a tool printed or changed is kept beside the messages; a rewind names what it cannot do."""
    (desk.work / "a.txt").write_text("old\n")
    (desk.home.root / "config.toml").write_text("originals = false\n")
    desk.ask(
        "change",
        ("write", {"path": "a.txt", "content": "new\n"}),
        ("write", {"path": "made.txt", "content": "new\n"}),
        ("bash", {"command": "seq 1 30000"}),
    )
    assert desk.store.export_session("s", originals=True)["originals"] == []
    assert "recall" not in desk.texts()[-2]
    done = desk.rewind(0, "files")
    assert (desk.work / "a.txt").read_text() == "new\n" and not (desk.work / "made.txt").exists()
    assert dict(done.left) == {"a.txt": "its former content was not kept (originals are not stored)"}


def test_a_change_that_was_interrupted_is_known(desk: Desk) -> None:
    """A write that is cancelled runs to its end before anything else does, and its checkpoint stands beside the result that
    says it was interrupted: it can be put back."""
    (desk.work / "a.txt").write_text("old\n")

    async def work(url: str) -> None:
        env = {
            **desk.home.env,
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "sk-test-1234567890",
            "BRIM_MODEL": "openai/gpt-4o",
        }
        config = load_config(desk.work, env, flags={"permissions.mode": "allow-all", "store": desk.store.where})
        opened = await open_agent(config, desk.work, env, lambda event: None, choice=Choice(name="s"))
        context = opened.agent.context
        assert context is not None
        put = context.blobs.put

        class Stopping:
            """The store of originals, at whose first write the user presses Ctrl-C."""

            def __getattr__(self, name: str) -> Any:
                return getattr(opened.store.blobs("s"), name)

            def put(self, data: bytes) -> str:
                loop.call_soon_threadsafe(opened.agent.stop)
                time.sleep(0.3)  # the cancellation arrives while the change is under way
                return put(data)

        loop = asyncio.get_running_loop()
        context.blobs = Stopping()
        try:
            assert (await opened.agent.ask("change it")).exit_code == 130
            assert (desk.work / "a.txt").read_text() == "new\n"
        finally:
            await opened.close()

    with ScriptedProvider([tool_call("write", {"path": "a.txt", "content": "new\n"}), reply("done")]) as upstream:
        asyncio.run(work(upstream.base_url))
    assert "interrupted" in desk.texts()[-1]
    assert desk.rewind(0, "files").restored == ("a.txt",) and (desk.work / "a.txt").read_text() == "old\n"
