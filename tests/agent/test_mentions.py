"""What is said of a mention, a rule and a fallback that name nothing, before anything is paid for."""

from __future__ import annotations

from pathlib import Path

import pytest

from brim.agent.attach import Attached, attach
from brim.agent.permit import unknown_tools
from brim.agent.rewind import turns_of
from brim.conversation import user
from brim.conversation.handed import typed_of
from brim.permissions.rules import TOOLS
from brim.store import TEMPORARY, open_store
from brim.testing import ScriptedProvider, reply
from shared_ai import make_home


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("print()\n")
    return tmp_path


@pytest.mark.parametrize("text", ["explain @src/mian.py", "explain @src/mian.py.", 'explain @"src/mian.py"'])
def test_a_misspelt_mention_is_told(work: Path, text: str) -> None:
    """A mention that reads as a path and names no file stays text, and the file it comes near is named."""
    made = attach(text, [], work)
    assert made.text == text
    assert made.notes == ("there is no file src/mian.py: the mention stays text; did you mean @src/main.py?",)


@pytest.mark.parametrize(
    "text", ["ask @anna", "mail anna@example.org", "@dataclass here", "see @types/node", "@src/main.py"]
)
def test_other_mentions_are_left_in_peace(work: Path, text: str) -> None:
    """People, addresses, decorators, packages, and files that are there are not remarked on."""
    assert attach(text, [], work).notes == ()


def test_rules_that_fit_nothing_are_told() -> None:
    """A rule for a tool that there is not is named with the nearest; tools of MCP servers, patterns and commands are not."""
    assert unknown_tools(["bsh(git *)"], TOOLS) == [
        "the rule bsh(git *) fits nothing: there is no tool 'bsh'; did you mean bash?"
    ]
    assert unknown_tools(["bash(git *)", "Bash(ls)", "git status", "mcp__git__log", "mcp__*", "*", "read"], TOOLS) == []


def test_a_fallback_that_cannot_be_is_told_at_once(tmp_path: Path) -> None:
    """A misspelt fallback and a misspelt rule are said at the start, not when the provider is down; the answer comes."""
    with ScriptedProvider([reply("yes")]) as upstream:
        home = make_home(tmp_path, None)
        (tmp_path / "config.toml").write_text(f'[providers.work]\nbase_url = "{upstream.base_url}"\n')
        ran = home.run("hello", "--model", "work/m", "--fallback", "opnai/gpt-4o", "--allow", "bsh(git *)")
    assert ran.code == 0 and ran.out.strip() == "yes"
    assert "the fallback opnai/gpt-4o cannot be used: unknown provider 'opnai' (did you mean openai/gpt-4o?)" in ran.err
    assert "there is no tool 'bsh'" in ran.err


def test_what_was_piped_in_mentions_nothing(work: Path) -> None:
    """An @path in piped text hands no file over and is not remarked on; one in the prompt beside it does."""
    piped = "<stdin>\nsee @src/main.py and @src/mian.py\n</stdin>\n\n"
    assert attach(piped + "what is this?", [], work) == Attached(piped + "what is this?")
    assert attach(piped + "and @src/main.py?", [], work).names == ("src/main.py",)


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("hello", "hello"),
        ('<file path="a.py">\nx = 1\n</file>\n\nexplain @a.py', "explain @a.py"),
        ('<file path="a.py" pages="2">\n</file>\n\n<folder path="b">\nc\n</folder>\n\ncompare', "compare"),
        ("<stdin>\nlog\n</stdin>\n\nwhat failed?", "what failed?"),
        ("<stdin>\nlog\n</stdin>\n\n", "stdin"),
        ('<file path="a.xml">\n<file path="b">\n</file>', "a.xml"),
        ('<file path="a.xml">\n</file>\n\nnot the end\n</file>\n\nwhy?', "why?"),
        ('<file path="broken', '<file path="broken'),
    ],
)
def test_the_words_beside_what_was_handed_over(text: str, typed: str) -> None:
    """Lists show the words of a message; without any, what was handed over is named. What files hold is neither."""
    assert typed_of(text) == typed


def test_a_session_with_a_file_is_named_after_its_question(work: Path) -> None:
    """Title and the list of messages to go back to show the question, not the file."""
    with open_store(TEMPORARY) as store:
        id = store.new_session(str(work)).id
        store.append(id, [user(attach("explain @src/main.py", [], work).text)])
        assert store.get_session(id).title == "explain @src/main.py"
        assert [turn.text for turn in turns_of(store, id, work)] == ["explain @src/main.py"]
