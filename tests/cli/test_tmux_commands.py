"""The commands of a conversation that change something, at a real terminal against a scripted provider."""

from __future__ import annotations

import time
from pathlib import Path

from brim.cli.repl import LEAVE_WITHIN_S
from brim.store import open_store
from brim.testing import ScriptedProvider, reply, tool_call
from shared_ai import make_home
from shared_terminal import Terminal, assert_screen

CODE = "Do this:\n\n```sh\nmake test\n```\n\nor that:\n\n```sh\nmake check\n```\n"


def test_files_and_conversation_go_back_at_the_terminal_and_after_a_restart(tmp_path: Path) -> None:
    """A question about a change shows its diff; /rewind asks what goes back, puts files back, hands the message over for
    another try; undo takes it back, also in another process, and what somebody changed meanwhile only if told to."""
    script = [
        tool_call("edit", {"path": "app.py", "old": "hello", "new": "hello, world"}),
        tool_call("bash", {"command": "echo x > by-bash.txt"}),
        reply("changed"),
        reply("something else"),
    ]
    with ScriptedProvider(script, repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        app = home.work / "app.py"
        app.write_text('print("hello")\n')
        with Terminal(home, "--session", "s") as terminal:
            terminal.wait("/help", "gpt-4o · auto · s")
            terminal.enter("greet the world")
            screen = terminal.wait("? edit: app.py", "-hello", "+hello, world", "edit(./app.py)")
            assert_screen("edit-question", screen, since="? edit")
            terminal.enter("y")
            terminal.wait("? bash: echo x > by-bash.txt")
            terminal.enter("y")
            terminal.wait("changed", "out · context")
            assert app.read_text() == 'print("hello, world")\n'
            terminal.enter("/rewind 0")
            terminal.wait("put back app.py", "[b]oth")
            terminal.enter("b")
            screen = terminal.wait("not tracked: bash", "s~1 keeps the whole of it", "> greet the world")
            assert_screen("rewind-both", screen, since="> /rewind 0")
            assert app.read_text() == 'print("hello")\n' and (home.work / "by-bash.txt").exists()
            terminal.key("Enter")
            terminal.wait("something else")
            terminal.enter("/exit")
            terminal.wait("left with 0")
        with Terminal(home, "-c") as terminal:
            terminal.wait("2 messages · /help")
            app.write_text("by hand\n")
            terminal.enter("/rewind undo")
            terminal.wait("left app.py: something else has changed it since", "put these back as well?")
            assert app.read_text() == "by hand\n"
            terminal.enter("n")
            terminal.wait("back in session s")
            terminal.enter("/rewind undo")
            terminal.wait("put these back as well?")
            terminal.enter("y")
            terminal.wait("put back app.py")
            assert app.read_text() == 'print("hello, world")\n'
            terminal.clear()
            terminal.enter("/rewind undo")
            terminal.wait("put back app.py")
            assert app.read_text() == "by hand\n"


def test_copy_tools_profile_and_compact(tmp_path: Path) -> None:
    """/copy N sends a code block to the terminal's clipboard; Ctrl-O shows what the last call returned; /profile changes mode;
    /compact with a note keeps what it asks for, and full says that it keeps everything."""
    turns = [reply(f"module {n} is about thing {n}. " + "It has many parts. " * 60) for n in range(9)]
    script = [tool_call("bash", {"command": "seq 1 4"}), reply(CODE), *turns, reply("the end")]
    with ScriptedProvider(script, repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Terminal(home, "--session", "s", "--permission-mode", "allow-all") as terminal:
            terminal.wait("/help", "gpt-4o · auto · s")
            terminal.enter("count")
            terminal.wait("· bash seq 1 4", "make check", "out · context")
            terminal.enter("/copy 2")
            terminal.wait("11 characters to the terminal's clipboard (OSC 52)")
            terminal.enter("/copy 3")
            terminal.wait("no code block 3", "code blocks 1 to 2")
            terminal.key("C-o")
            terminal.wait("2  bash", "\n1\n2\n3\n4\n")
            for n in range(9):
                terminal.enter(f"what is module {n}?")
                terminal.wait(f"module {n} is about thing {n}", seconds=60)
            terminal.enter("/permissions deny 'bash(rm *)'")
            terminal.wait("mode allow-all", "  deny bash(rm *)")
            terminal.enter("/debug /nowhere/at/all")
            terminal.wait("cannot write the debug log /nowhere/at/all")
            terminal.enter("/profile log")
            terminal.wait("profile log: mode full")
            terminal.enter("/compact")
            terminal.wait("the mode full keeps the whole history", "/mode compact")
            terminal.enter("/profile chat")
            terminal.wait("profile chat: mode compact")
            terminal.enter("/compact what is module 1 about")
            terminal.wait("tokens; the history keeps everything", "summaries keep: what is module 1 about")
            terminal.enter("go on")
            terminal.wait("the end")
        sent = str(upstream.requests[-1].body["messages"])
        assert "module 1 is about thing 1" in sent
        with open_store(home.root / "data" / "brim.db") as store:
            assert store.get_session("s").meta["focus"] == "what is module 1 about"


def test_a_second_terminal_is_told_and_goes_on_in_a_copy(tmp_path: Path) -> None:
    """Two terminals never write one session: the second names the first, and goes on in a copy, or stays where it was."""
    with ScriptedProvider([reply("noted")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        other = make_home(tmp_path / "other", upstream.base_url)
        other.env["BRIM_DATA_DIR"] = home.env["BRIM_DATA_DIR"]
        with Terminal(home, "--session", "shared") as first, Terminal(other, "--session", "mine") as second:
            first.wait("gpt-4o · auto · shared")
            first.enter("remember this")
            first.wait("noted", "out · context")
            second.wait("gpt-4o · auto · mine")
            second.enter("/resume shared")
            second.wait("session shared is being written by process", "go on in a copy of it? [y/N]")
            second.enter("n")
            second.enter("/sessions")
            second.wait("* mine")
            second.enter("/resume shared")
            second.enter("y")
            second.wait("2 messages, mode auto", "assistant: noted")
            first.enter("and this")
            first.wait("and this")
        with open_store(home.root / "data" / "brim.db") as store:
            assert [each.message.text for each in store.load("shared")][:2] == ["remember this", "noted"]
            assert len(store.list_sessions(None)) == 3


def test_what_is_typed_ahead_waits_and_a_large_paste_is_one_message(tmp_path: Path) -> None:
    """Lines typed while an answer streams do not show in it, and run after it; a megabyte pasted is one message, as it was."""
    slow = reply(" ".join(f"word{n}" for n in range(60)), piece=6, delay=0.03)
    pasted = "".join(f"line {n} of a paste\n" for n in range(50_000))
    with ScriptedProvider([slow, reply("got it")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        (home.root / "pasted.txt").write_text(pasted)
        with Terminal(home, "--session", "s", width=60, height=20) as terminal:
            terminal.wait("/help", "gpt-4o · auto · s")
            terminal.enter("tell me")
            terminal.wait("word3")
            terminal.enter("/pins")
            terminal.enter("/status")
            screen = terminal.wait("nothing is pinned", "2 messages, ")
            answer = screen[screen.index("word0") : screen.index("out · context")]
            assert "/pins" not in answer and "/status" not in answer
            terminal.resize(44, 24)
            terminal._tmux("load-buffer", "-b", "big", str(home.root / "pasted.txt"))
            terminal.enter("again")  # pasted while an answer may be under way: still one message
            terminal._tmux("paste-buffer", "-p", "-b", "big", "-t", "t")
            terminal.wait("line 49999 of a paste", seconds=90)
            terminal.key("Enter")
            terminal.wait("largest: user messages", seconds=90)  # too much for this window, and told with its size
        with open_store(home.root / "data" / "brim.db") as store:
            assert store.load("s")[4].message.text.strip() == pasted.strip()


def test_a_paste_between_two_lines_is_one_message_whenever_it_comes(tmp_path: Path) -> None:
    """Before the first line can be written on, in the moment after Enter, in the middle of an answer, before a question: a
    paste of several lines is one message each time."""
    rounds = 25
    script = [reply("got it", piece=1, delay=0.003 * n) for n in range(rounds)]
    with ScriptedProvider([*script, reply("got it")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Terminal(home, "--session", "s") as terminal:
            terminal.wait("/help")
            for n in range(rounds):
                terminal._tmux("set-buffer", "-b", "few", f"first {n}\nsecond {n}\nthird {n}\n")
                terminal.enter(f"say {n}")
                time.sleep(0.004 * n)
                terminal._tmux("paste-buffer", "-p", "-b", "few", "-t", "t")
                terminal.key("Enter")
            terminal.enter("/status")
            terminal.wait(f"{4 * rounds} messages, ", seconds=90)
            terminal.enter("/exit")
            terminal.wait("left with 0")
            terminal._tmux("set-buffer", "-b", "few", "seen again\n")
            terminal._tmux("paste-buffer", "-p", "-b", "few", "-t", "t")
            terminal.wait("seen again\nseen again\n")  # the terminal is the shell's again: once typed, once by cat
        with open_store(home.root / "data" / "brim.db") as store:
            said = [each.message.text for each in store.load("s") if each.message.role == "user"]
        assert [text.strip() for text in said] == [
            text for n in range(rounds) for text in (f"say {n}", f"first {n}\nsecond {n}\nthird {n}")
        ]


def test_what_was_typed_before_a_question_does_not_answer_it(tmp_path: Path) -> None:
    """A line and a paste that wait while a tool is about to be asked about are no answer to the question: they are there
    after it, whole, though they begin like a yes."""
    slow = " ".join(f"word{n}" for n in range(40))
    calls = [reply(slow, calls=[("bash", {"command": "echo ran > ran.txt"})], piece=6, delay=0.03), reply("done")]
    with ScriptedProvider([*calls, reply("and that")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Terminal(home, "--session", "s") as terminal:
            terminal.wait("/help")
            terminal.enter("run it")
            terminal.wait("word3")
            terminal.enter("a")
            terminal.enter("yes, and then tell me more")
            terminal.wait("allow it?")
            terminal._tmux("set-buffer", "-b", "few", "y\ny\n")
            terminal._tmux("paste-buffer", "-p", "-b", "few", "-t", "t")
            terminal.enter("always and ever")
            terminal.enter("n")
            terminal.wait("done", "> a", "> yes, and then tell me more", "and that")
            terminal.key("Enter")
            terminal.enter("/status")
            terminal.wait("10 messages, ")
        assert not (home.work / "ran.txt").exists()
        with open_store(home.root / "data" / "brim.db") as store:
            said = [each.message.text for each in store.load("s") if each.message.role == "user"]
        assert [text.strip() for text in said] == ["run it", "a", "yes, and then tell me more", "y\ny"]


def test_tab_completes_commands_files_models_and_messages(tmp_path: Path) -> None:
    """Tab gives commands after /, files after @, models after /model, the user's messages after /rewind, sessions after
    /resume."""
    with ScriptedProvider([reply("noted")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        (home.work / "notes.md").write_text("x\n")
        (home.work / "docs").mkdir()
        (home.work / "docs" / "one.txt").write_text("x\n")
        with Terminal(home, "--session", "s") as terminal:
            terminal.wait("/help", "gpt-4o · auto · s")
            terminal.enter("first words")
            terminal.wait("noted", "out · context")
            for typed, found in (
                ("/rew", "/rewind"), ("see @no", "@notes.md"), ("see @docs/o", "@docs/one.txt"),
                ("/model openai/", "openai/gpt-"),
                ("/rewind ", "first words"), ("/resume ", "/resume s"),
                ("/profile l", "/profile log"), ("/mode f", "/mode full"),
            ):  # fmt: skip
                terminal.send(typed)
                terminal.key("Tab")
                terminal.wait(found)
                terminal.key("C-c")
                terminal.wait("leaves")
                time.sleep(LEAVE_WITHIN_S)  # a second Ctrl-C so soon would leave
                terminal.clear()


def test_ctrl_c_at_a_question_stops_the_answer(tmp_path: Path) -> None:
    """The call is not made, the model is not asked again, and the conversation goes on."""
    with ScriptedProvider([tool_call("bash", {"command": "touch made"}), reply("fine")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Terminal(home, "--session", "s") as terminal:
            terminal.wait("/help", "gpt-4o · auto · s")
            terminal.enter("make it")
            terminal.wait("allow it?")
            terminal.key("C-c")
            terminal.wait("interrupted", "what had come is kept")
            assert len(upstream.requests) == 1 and not (home.work / "made").exists()
            terminal.enter("go on")
            terminal.wait("fine")
        with Terminal(home, "-c") as terminal:
            terminal.wait("messages · /help", "user: go on", "assistant: fine")
