"""stdin and stdout of `ai`: piped data joins the prompt, an idle pipe is never waited for, output for programs is clean."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from brim.testing import ScriptedProvider, reply
from shared_ai import make_home


def test_piped_data_joins_the_prompt(tmp_path: Path) -> None:
    """What is piped in stands before the question; without a question it is the question; `-` reads it alone."""
    with ScriptedProvider([reply("ok")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        assert home.run("why?", input="boom\n").code == 0
        assert home.run(input="what is this?\n").code == 0
        assert home.run("-", input="and this?\n").code == 0
        assert home.run("-", "why?", input="slow\n").code == 0
    sent = [request.body["messages"][-1]["content"] for request in upstream.requests]
    assert "boom" in sent[0] and sent[0].endswith("why?")
    assert [text.strip() for text in sent[1:3]] == ["what is this?", "and this?"]
    assert "slow" in sent[3] and sent[3].endswith("why?")


@pytest.mark.parametrize(
    ("data", "said", "named"),
    [
        ("héllo 中文\n".encode("utf-16"), "héllo 中文", "UTF-16"),
        (("中文日志：连接失败，请重试。\n" * 20).encode("gb18030"), "连接失败", "GB"),
        ("naïve café".encode("latin-1"), "naïve café", "Latin-1"),
        ("plain 中文".encode(), "plain 中文", ""),
        (b"one\0two\0three.txt\0", "one\0two", ""),
        ("连接失败，请重试".encode() + b" with a stray \xff", "连接失败，请重试", ""),
    ],
)
def test_piped_text_is_read_in_its_own_encoding(tmp_path: Path, data: bytes, said: str, named: str) -> None:
    """As a file is: what another system wrote is not handed on as question marks, and which encoding it was is told."""
    with ScriptedProvider([reply("ok")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        command = [sys.executable, "-m", "brim.cli.ai", "what is it?"]
        ran = subprocess.run(command, cwd=home.work, env=home.env, input=data, capture_output=True, timeout=60)
    assert ran.returncode == 0 and said in upstream.requests[0].body["messages"][-1]["content"]
    told = [line for line in ran.stderr.decode().splitlines() if "stdin was read as" in line]
    assert (named in told[0]) if named else not told


def test_a_schema_may_come_from_a_pipe(tmp_path: Path) -> None:
    """`--schema <(make-schema)` works: what can be read once is read once."""
    with ScriptedProvider([reply('{"a": 1}')]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        schema = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'
        line = f"{shlex.quote(sys.executable)} -m brim.cli.ai --schema <(echo '{schema}') question < /dev/null"
        command = ["bash", "-c", line]
        ran = subprocess.run(command, cwd=home.work, env=home.env, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, '{"a": 1}\n'), ran.stderr
    assert "a" in str(upstream.requests[0].body["response_format"])


def test_an_idle_stdin_is_not_waited_for(tmp_path: Path) -> None:
    """A prompt is answered although stdin is a pipe that stays open and empty."""
    with ScriptedProvider([reply("ok")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        process = home.start("hello")
        try:
            assert process.stdout is not None
            assert process.wait(timeout=30) == 0
            assert process.stdout.read() == "ok\n"
            assert process.stderr is not None
            assert "nothing comes" in process.stderr.read()
        finally:
            process.kill()
            process.communicate()


def test_nothing_to_ask_is_a_usage_error(tmp_path: Path) -> None:
    """Without prompt, data and terminal there is nothing to do: exit 2, and the way to ask."""
    ran = make_home(tmp_path / "home", None).run(input="")
    assert ran.code == 2 and "no prompt" in ran.err


def test_no_colour_and_nothing_but_the_answer_on_stdout(tmp_path: Path) -> None:
    """Off a terminal there are no escape codes, and stdout is the answer."""
    with ScriptedProvider([reply("# Title\n\n**bold** `code`\n")]) as upstream:
        ran = make_home(tmp_path / "home", upstream.base_url).run("hello")
    assert ran.out == "# Title\n\n**bold** `code`\n"
    assert "\x1b" not in ran.out + ran.err
    assert "context" in ran.err


def test_a_closed_stdout_is_no_traceback(tmp_path: Path) -> None:
    """`ai … | head -1` ends quietly."""
    with ScriptedProvider([reply("line\n" * 20_000, piece=4_000)]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        process = home.start("hello")
        assert process.stdout is not None and process.stderr is not None and process.stdin is not None
        process.stdin.close()
        assert process.stdout.readline() == "line\n"
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        process.wait(timeout=30)
    assert "Traceback" not in err and "Exception ignored" not in err


def test_files_are_handed_over_by_option_and_by_mention(tmp_path: Path) -> None:
    """--file and @path put a file's text into the message under its name; a word that is no file stays a word."""
    with ScriptedProvider([reply("ok")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        (home.work / "a.txt").write_text("alpha\n")
        (home.work / "b.txt").write_text("beta\n")
        assert home.run("compare with @b.txt, ask me@example.com or @nobody", "--file", "a.txt").code == 0
        missing = home.run("hi", "--file", "nowhere.txt")
    sent = upstream.requests[0].body["messages"][-1]["content"]
    assert '<file path="a.txt">\nalpha\n</file>' in sent and '<file path="b.txt">\nbeta\n</file>' in sent
    assert sent.endswith("or @nobody")
    assert missing.code == 2 and "nowhere.txt" in missing.err


@pytest.mark.slow
def test_help_is_no_slower_than_two_bare_interpreters_with_typer(tmp_path: Path) -> None:
    """`ai --help` loads nothing heavy: neither rich, aiohttp, SQLAlchemy nor a tokenizer."""
    code = (
        "import sys, brim.cli.ai as ai\n"
        "try: ai.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'rich', 'aiohttp', 'sqlalchemy', 'tiktoken', 'toktok', 'prompt_toolkit', 'asyncio', 'msgspec'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    home = make_home(tmp_path / "home", None)
    import sys

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=home.env, check=True)
    assert ran.stderr.strip() == "[]"
    assert "--context-mode" in ran.stdout
