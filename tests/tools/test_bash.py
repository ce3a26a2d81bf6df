"""bash: ends when the command ends, leaves nothing running, and always says how it ended."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import pytest

from brim.errors import StoreUnusable
from brim.tools import BlobWriter
from brim.tools.bash import run_bash
from brim.tools.environment import looks_secret, scrub
from brim.tools.processes import ending_with_us

from .conftest import Bench

LINUX = sys.platform == "linux"


def alive(command: str) -> bool:
    """Whether a process with this command line is running (a zombie is not)."""
    listed = subprocess.run(["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True).stdout
    return any(line.split(None, 1)[1] == command for line in listed.splitlines() if not line.startswith("Z"))


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("(while true; do echo tick; sleep 0.2; done) & echo started; exit 3", 3),
        ("sleep 61 & echo started", 0),
        ("echo started; nohup sleep 61 & exit 4", 4),
        ("echo started; nohup sleep 61 > /dev/null 2>&1 &", 0),
        ("setsid sleep 61 & echo started; exit 5", 5),
        ("(trap '' TERM; sleep 61) & echo started", 0),
        ("bash -c 'sleep 61 & sleep 61' & disown -a; echo started", 0),
        ("(setsid env -i sleep 61 &); echo started", 0),
        ("(setsid env -i nohup sleep 61 > /dev/null 2>&1 < /dev/null &); echo started; exit 6", 6),
    ],
)
def test_background_children_hold_nothing_up(bench: Bench, command: str, code: int) -> None:
    """A background child that holds the pipe is reported and ended; it writes into no later result."""
    output = bench.call("bash", command=command, timeout=60)
    assert not output.meta["timed_out"]
    assert "started" in output.text and output.meta["exit_code"] == code and f"exit code {code}" in output.text
    if LINUX:
        assert "still running in the background, now ended" in output.text and output.meta["background"]
        assert not alive("sleep 61")
    for _ in range(2):
        later = bench.call("bash", command="echo fine")
        assert "tick" not in later.text and later.text.startswith("stdout:\nfine\n[exit code 0")


def test_head_tail_error_and_exit_code(bench: Bench) -> None:
    """Of long output the first and last lines are shown, stderr stands apart, the exit code comes last, the numbers add up."""
    output = bench.call("bash", command="seq 1 200000; echo 'FAILED test_login: AssertionError' >&2; exit 7")
    lines = output.text.splitlines()
    assert lines[:2] == ["stdout:", "1"] and "200000" in lines
    assert lines[-3:-1] == ["stderr:", "FAILED test_login: AssertionError"] and lines[-1].startswith("[exit code 7; ")
    shown = sum(line.isdigit() for line in lines)
    gap = output.meta["stdout"]
    assert shown + gap["missing_lines"] == gap["total_lines"] == 200_000
    first, last = gap["missing_range"]
    assert f"left out: {first}-{last} ({gap['missing_lines']} lines)" in output.text
    missing = bench.call("recall", handle=output.handle, offset=first, limit=3)
    assert missing.text.splitlines()[:3] == [str(first), str(first + 1), str(first + 2)]
    assert output.is_error


@pytest.mark.parametrize("rows", [2_000, 12_000])
def test_long_commands_arrive_whole(bench: Bench, rows: int) -> None:
    """A here-document of 50 or 300 kB is written to its last byte."""
    text = "\n".join(f"row {i:05d} with some text" for i in range(rows))
    output = bench.call("bash", command=f"cat > big.txt <<'XEOF'\n{text}\nXEOF\nwc -l big.txt")
    assert f"{rows} big.txt" in output.text
    assert (bench.root / "big.txt").read_text() == text + "\n"


@pytest.mark.parametrize("end", ["; echo code=$?", "", " | tr -d '\\n'"])
def test_one_giant_line(bench: Bench, end: str) -> None:
    """A line of 7 MB is shown in part, with its end, and is there whole under its handle."""
    output = bench.call("bash", command="python3 -c \"print('z'*7000000+'LASTWORD')\"" + end)
    assert "LASTWORD" in output.text and ("code=0" in output.text) == (end == "; echo code=$?")
    assert len(output.text) < 70_000
    assert output.handle and bench.ctx.blobs.size(output.handle) >= 7_000_000 and output.handle in output.text
    assert str(output.meta["stdout"]["missing_chars"]) in output.text


def test_timeout_ends_the_whole_group(bench: Bench) -> None:
    """After the timeout nothing of the command lives, not even a grandchild that ignores TERM; what was printed is shown."""
    command = "echo before; bash -c 'trap \"\" TERM; sleep 987' & bash -c 'sleep 986'; echo never"
    output = bench.call("bash", command=command, timeout=1)
    assert "timed out after 1 s" in output.text.splitlines()[-1]
    assert "before" in output.text and "never" not in output.text
    assert output.is_error and output.meta["timed_out"] and output.meta["exit_code"] != 0
    assert not alive("sleep 987") and not alive("sleep 986")


def test_nothing_waits_for_an_answer(bench: Bench) -> None:
    """stdin is closed and there is no terminal: questions fail instead of waiting."""
    command = (
        "read -p 'Proceed? ' x; echo got=[$x]; cat; "
        "python3 -c 'import getpass; print(repr(getpass.getpass()))'; (: < /dev/tty) && echo tty; echo end"
    )
    output = bench.call("bash", command=command, timeout=20)
    assert "got=[]" in output.text and "\nend\n" in output.text and "EOFError" in output.text
    assert "\ntty\n" not in output.text and not output.meta["timed_out"]


def test_working_directory_is_kept(bench: Bench) -> None:
    """cd lasts until the next call inside the workspace, also when the command fails or exits; it is told."""
    assert "working directory is now" in bench.call("bash", command="mkdir -p a/b; cd a/b; exit 3").text
    assert bench.call("bash", command="pwd").text.startswith(f"stdout:\n{bench.root}/a/b\n")
    bench.write("a/b/c.txt", "x")
    for output in (
        bench.call("read", path="c.txt"), bench.call("grep", pattern="x", path="c.txt"),
        bench.call("edit", path="c.txt", old="x", new="y"),
    ):  # fmt: skip
        assert output.is_error and "relative to the workspace, not to where commands run: a/b/c.txt" in output.text
    assert f"working directory is {bench.root} again" in bench.call("bash", command="cd /; pwd").text
    assert f"stdout:\n{bench.root}\n" in bench.call("bash", command="pwd").text
    bench.call("bash", command="mkdir gone; cd gone")
    (bench.root / "gone").rmdir()
    assert "is gone; started in" in bench.call("bash", command="pwd").text


@pytest.mark.parametrize(
    ("command", "code", "shown"),
    [
        ("trap 'echo bye' EXIT; cd kept; (exit 3)", 3, "stdout:\nbye\n"),
        ("trap 'echo bye' EXIT; cd kept; exit 4", 4, "stdout:\nbye\n"),
        ("pwd() { echo mine; }; cd kept; pwd", 0, "stdout:\nmine\n"),
        ("set -eu; cd kept; false; echo never", 1, "(no output)\n"),
        ("cd kept; f() { return 7; }; f", 7, "(no output)\n"),
        ("cd kept; set -x; true", 0, "stderr:\n++ true\n["),
        ("cd kept; set -x; exit 2", 2, "stderr:\n++ exit 2\n["),
        ("cd kept; trap 'echo bye >&2' EXIT; echo hi; exec 7>&1", 0, "stdout:\nhi\nstderr:\nbye\n["),
    ],
)
def test_traps_and_functions_of_a_command_are_its_own(bench: Bench, command: str, code: int, shown: str) -> None:
    """A command's own traps, functions and options do what they say; its exit code stays, and cd is followed."""
    (bench.root / "kept").mkdir()
    output = bench.call("bash", command=command)
    assert output.text.startswith(shown) and output.meta["exit_code"] == code
    if "exit 4" not in command:
        assert output.meta["cwd"] == f"{bench.root}/kept"


def test_a_folder_that_goes_away_under_the_command(bench: Bench) -> None:
    """A command that removes the folder it is in shows its own output only, and the next one starts in the workspace."""
    for more, code in (("", 0), ("set -e; ", 0), ("exec 61>&-; ", 0), ("set -e; trap : EXIT; exit 5; ", 5)):
        gone = bench.call("bash", command=f"mkdir d; cd d; rmdir ../d; echo here; {more}true")
        assert gone.text.startswith(f"stdout:\nhere\n[exit code {code}"), gone.text
    assert bench.call("bash", command="pwd").text.startswith(f"stdout:\n{bench.root}\n")


@pytest.mark.skipif(not LINUX, reason="names are any bytes on Linux")
def test_folders_whose_names_are_no_text(bench: Bench) -> None:
    """A folder's name may be any bytes: commands run in it, and what is said of it is valid text."""
    os.mkdir(os.fsencode(bench.root) + b"/d\xff")
    there = bench.call("bash", command="cd d*; echo x > f.txt")
    assert "working directory is now" in there.text and "d\ufffd" in there.text and "d\ufffd" in there.meta["cwd"]
    assert "f.txt" in bench.call("bash", command="ls").text
    assert "reaches it, as d?/f.txt" in bench.call("read", path="d\ufffd/f.txt").text
    assert "reaches it, as d?" in bench.call("grep", pattern="x", path="d\ufffd").text


def test_nothing_opens_an_editor_or_a_pager(bench: Bench) -> None:
    """Programs that would open an editor or a pager go on without: git's, and those that ask EDITOR or VISUAL."""
    bench.ctx.env = {**os.environ, "EDITOR": "vi", "VISUAL": "vi", "GIT_SEQUENCE_EDITOR": "vi", "GIT_PAGER": "less"}
    setup = "git init -q . && git config user.email a@b.c && git config user.name a && for i in 1 2 3; do"
    setup += " echo $i > f; git add f; git commit -qm c$i; done"
    assert bench.call("bash", command=setup, timeout=30).meta["exit_code"] == 0
    for command in ("git rebase -i HEAD~2", "git commit --amend", "git log -p", "$EDITOR f", "$VISUAL f"):
        output = bench.call("bash", command=command, timeout=20)
        assert output.meta["exit_code"] == 0 and not output.meta["timed_out"], output.text


def test_all_that_was_printed_is_there(bench: Bench) -> None:
    """What a command printed before it ended is shown to the last byte, background children or not."""
    for command in ("seq 1 100000", "yes > /dev/null & seq 1 100000", "yes & head -c 0 /dev/null; seq 1 100000 >&2"):
        output = bench.call("bash", command=command, timeout=30)
        stream = output.meta["stderr" if ">&2" in command else "stdout"]
        assert stream["total_lines"] == 100_000 and stream["total_bytes"] == 588_895


def test_signals_and_codes_are_named(bench: Bench) -> None:
    """A signal that ended the shell or a child of it is named; a syntax error is stderr and a code."""
    killed = bench.call("bash", command="kill -9 $$")
    assert "killed by signal 9 (SIGKILL)" in killed.text and killed.meta["signal"] == 9 and killed.is_error
    assert "exit code 143 (128 + SIGTERM)" in bench.call("bash", command="bash -c 'kill $$'").text
    wrong = bench.call("bash", command="if ; then")
    assert "stderr:\n" in wrong.text and "syntax error" in wrong.text and wrong.meta["exit_code"] == 2
    assert bench.call("bash", command="true").text.startswith("(no output)\n[exit code 0; ")


def test_endless_output_is_ended(bench: Bench) -> None:
    """Output without end is cut off at a limit and its maker ended."""
    output = bench.with_caps(bash_bytes=50_000_000).call("bash", command="yes", timeout=100)
    assert "ended after 50000000 bytes of output" in output.text and not output.meta["timed_out"]
    assert output.meta["stdout"]["total_bytes"] >= 50_000_000 and output.is_error
    assert not alive("yes")


def test_a_huge_stdout_never_hides_the_error(bench: Bench) -> None:
    """stdout and stderr are capped apart: each keeps its room."""
    output = bench.call("bash", command="seq 1 100000; for i in $(seq 1 9000); do echo error line $i >&2; done; exit 1")
    out, _, err = output.text.partition("stderr:\n")
    assert "100000" in out and err.startswith("error line 1\n") and "error line 9000\n" in err
    assert output.meta["stderr_handle"] in err and output.meta["stderr"]["total_lines"] == 9000


def test_cancelling_ends_the_command(bench: Bench) -> None:
    """Cancelling the task ends all that the command started, before the cancellation goes on."""

    async def start_and_cancel() -> None:
        task = asyncio.create_task(run_bash({"command": "touch up; bash -c 'sleep 985' & sleep 985"}, bench.ctx))
        while not (bench.root / "up").exists():  # noqa: ASYNC110 - another process makes the file
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(start_and_cancel())
    assert not alive("sleep 985")


def test_a_timeout_says_what_more_there_is(bench: Bench) -> None:
    """A command that ran into its timeout is told how long it may be given; at the limit there is nothing to tell."""
    assert "up to 3600 s" in bench.call("bash", command="sleep 985", timeout=0.2).text
    assert "up to" not in bench.with_caps(bash_timeout_most=1).call("bash", command="sleep 985", timeout=9).text


def test_secrets_do_not_reach_commands(bench: Bench) -> None:
    """Variables that look like secrets, by name or by value, are not in a command's environment; others are."""
    kept = {
        "PATH": os.environ["PATH"],
        "HOME": "/home/x",
        "SSH_AUTH_SOCK": "/tmp/agent",
        "MAX_TOKENS": "4096",
        "LANG": "C",
    }
    secret = {
        "OPENAI_API_KEY": "sk-proj-abcdefghijklmnop1234", "MY_ALIAS": "sk-proj-abcdefghijklmnop1234", "GITHUB_TOKEN": "x" * 20,
        "PGPASSWORD": "hunter2", "AWS_SECRET_ACCESS_KEY": "a", "DB": "postgres://me:secret@db/x", "CI_JOB": "ghp_" + "a" * 36,
        "npm_config__auth": "b", "ANTHROPIC_CUSTOM_HEADERS": "X-Key: Bearer abcdefgh12", "HOOK": "https://hooks.slack.com/services/T0/B0/x",
        "STORAGE": "DefaultEndpointsProtocol=https;AccountKey=abc==", "MY_JWT": "x",
        "GOOGLE_APPLICATION_CREDENTIALS": "/x.json",
    }  # fmt: skip
    bench.ctx.env = {**kept, **secret}
    output = bench.call("bash", command="env")
    names = {line.split("=")[0] for line in output.text.splitlines()}
    assert set(kept) <= names and not set(secret) & names
    bench.ctx.keep_env = ("GITHUB_TOKEN",)
    assert "GITHUB_TOKEN=" in bench.call("bash", command="env").text
    assert not looks_secret("PWD", "/work") and not looks_secret("MONKEY", "banana") and scrub({"A": "b"})["A"] == "b"


def test_a_store_that_fails_costs_the_original_alone(bench: Bench) -> None:
    """Where the original cannot be kept, the output is shown all the same, and the notice says why nothing can be recalled."""

    class Full:
        def put(self, data: bytes) -> str:
            raise StoreUnusable("disk full")

        def open_writer(self) -> BlobWriter:
            raise StoreUnusable("disk full")

        def get(self, handle: str, offset: int = 0, length: int | None = None) -> bytes:
            raise StoreUnusable("disk full")

        def size(self, handle: str) -> int:
            raise StoreUnusable("disk full")

    bench.ctx.blobs = Full()
    for lines in (30_000, 300_000):
        output = bench.call("bash", command=f"seq 1 {lines}")
        assert f"\n{lines}\n" in output.text and "The original could not be kept: disk full." in output.text
        assert output.handle is None and not output.is_error
    bench.write("a.txt", "needle\n" * 900)
    assert "could not be kept: disk full" in bench.call("grep", pattern="needle").text


def test_refused_before_anything_runs(bench: Bench) -> None:
    """A command that cannot be passed on whole is refused with its reason."""
    assert "empty" in bench.call("bash", command="  ").text
    assert "timeout is 0" in bench.call("bash", command="true", timeout=0).text
    assert "NUL" in bench.call("bash", command="touch x\0y").text
    assert "half a character" in bench.call("bash", command="echo \ud83d > x").text
    assert not list(bench.root.iterdir())


def test_escapes_progress_and_binary(bench: Bench) -> None:
    """Colours go, progress is its last state, bytes that are no text are shown as such and counted."""
    output = bench.call(
        "bash",
        command=r"printf '\033[31mred\033[0m\n'; for i in 1 2 3; do printf '\r%s%%' $i; done; echo; printf 'a\0b\377\n'",
    )
    assert "stdout:\nred\n3%\na\ufffdb\ufffd\n" in output.text
    assert "2 bytes of stdout that are no text" in output.text


@pytest.mark.skipif(not LINUX, reason="counts descriptors and processes in /proc")
def test_many_calls_leave_nothing(bench: Bench) -> None:
    """After many calls with background children, timeouts and kills no process and no descriptor is left."""

    async def many(calls: int) -> None:
        commands = (
            ("sleep 613 & echo $((RANDOM))", 30), ("sleep 613", 0.05), ("kill -9 $$", 30), ("exit 3", 30),
            ("setsid sleep 613 >/dev/null 2>&1 &", 30), ("yes | head -c 300000", 30), ("trap '' TERM; kill -9 $$", 30),
        )  # fmt: skip
        for at in range(calls):
            command, timeout = commands[at % len(commands)]
            await run_bash({"command": command, "timeout": timeout}, bench.ctx)

    asyncio.run(many(7))
    before = len(os.listdir("/proc/self/fd"))
    asyncio.run(many(int(os.environ.get("BRIM_TEST_CALLS", "35"))))
    assert len(os.listdir("/proc/self/fd")) == before
    assert not alive("sleep 613")


@pytest.mark.skipif(not ending_with_us(), reason="no setpriv that ends a process with its parent")
def test_a_command_ends_with_brim(bench: Bench) -> None:
    """Where brim is killed outright, the shell of the command that was running is, too, and runs nothing of what follows."""
    os.mkfifo(bench.root / "go")
    command = "echo $$ > shell; sh -c 'echo $$ > reader; exec cat go'; echo late > late"
    code = """
        import asyncio, pathlib, sys
        from brim.store import open_store
        from brim.tools import ToolContext, run_tool
        ctx = ToolContext(pathlib.Path(sys.argv[1]), open_store(sys.argv[2]).blobs(), len)
        asyncio.run(run_tool("bash", {"command": sys.argv[3]}, ctx))
    """
    argv = [sys.executable, "-c", textwrap.dedent(code), str(bench.root), str(bench.root.parent / "other.db"), command]
    with subprocess.Popen(argv) as brim:
        told = bench.root / "reader"
        while not told.exists() or not told.read_text().strip():
            assert brim.poll() is None
            time.sleep(0.01)
        brim.kill()
    shell, reader = (int((bench.root / name).read_text()) for name in ("shell", "reader"))
    while running(shell):
        time.sleep(0.01)
    while running(reader):  # an end for what the shell had started
        with suppress(OSError):
            os.close(os.open(bench.root / "go", os.O_WRONLY | os.O_NONBLOCK))
    assert not (bench.root / "late").exists()


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_terminal_is_not_touched(bench: Bench) -> None:
    """Ctrl-C at the terminal goes to brim alone: the command runs in a session of its own."""
    output = bench.call("bash", command="ps -o sid= -p $$; echo $$")
    sid, pid = output.text.split()[1:3]
    assert int(sid) == int(pid) != os.getsid(0)
