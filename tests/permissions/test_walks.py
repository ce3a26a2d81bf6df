"""Rules hold for what a search meets on its way, not only for the path it names; read-only holds against every allow rule."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from brim.agent.permit import Permits
from brim.permissions import check
from brim.store import TEMPORARY, open_store
from brim.testing import ScriptedProvider, reply, tool_calls
from brim.tools import ToolContext, ToolOutput, run_tool
from shared_ai import make_home


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "src/a.py": "token = 1\n", "secrets/key.txt": "token = hunter2\n", "secrets/deep/x.txt": "token = abc\n",
        "pkg/.env": "token = env\n", "pkg/secret.pem": "token = pem\n", "notes.txt": "token here\n",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "link.txt").symlink_to(tmp_path / "secrets" / "key.txt")
    return tmp_path


def search(tree: Path, tool: str, arguments: dict[str, Any], **rules: list[str]) -> ToolOutput:
    """One call through the permissions, as the agent makes it."""
    permits = Permits(tree, deny=rules.get("deny", []), ask_rules=rules.get("ask", []), allow=rules.get("allow", []))
    with open_store(TEMPORARY) as store:
        session = store.new_session(str(tree), "auto", "m")
        context = ToolContext(workspace=tree, blobs=store.blobs(session.id), count=len, left_out=permits.left_out)
        context.caps = type(context.caps)(grep=100_000, glob=100_000)
        return asyncio.run(run_tool(tool, arguments, context, permit=permits))


@pytest.mark.parametrize("no_ignore", [False, True])
@pytest.mark.parametrize(
    "rule", ["read(secrets/**)", "grep(secrets)", "read(secrets/*)", "read(./secrets/)", "Read(secrets/**)"]
)
def test_grep_leaves_out_what_may_not_be_read(tree: Path, rule: str, no_ignore: bool) -> None:
    """Files below a forbidden folder are searched by nobody: neither their lines nor their names come back, and it is said."""
    told = search(tree, "grep", {"pattern": "token", "no_ignore": no_ignore}, deny=[rule]).text
    assert "src/a.py:1:token" in told and "notes.txt" in told
    assert "hunter2" not in told and "secrets/key.txt" not in told and "abc" not in told
    assert "covered by the user's rules" in told and rule in told


def test_names_in_any_folder_are_left_out(tree: Path) -> None:
    """A rule for a name (.env, *.pem) holds wherever the name stands, links to forbidden files included."""
    told = search(
        tree, "grep", {"pattern": "token", "no_ignore": True}, deny=["read(.env)", "read(*.pem)", "read(secrets)"]
    )
    assert "= env" not in told.text and "= pem" not in told.text and "hunter2" not in told.text
    assert told.meta["files"] == 2


def test_counts_do_not_betray_what_is_left_out(tree: Path) -> None:
    """The answer is the same whether a forbidden file holds the pattern or not."""
    before = search(tree, "grep", {"pattern": "hunter2"}, deny=["read(secrets/**)"])
    (tree / "secrets" / "key.txt").write_text("nothing\n")
    after = search(tree, "grep", {"pattern": "hunter2"}, deny=["read(secrets/**)"])
    assert before.text == after.text and before.meta["total_lines"] == after.meta["total_lines"] == 0
    (tree / "secrets" / "binary").write_bytes(b"\0hunter2\n")
    binary = search(tree, "grep", {"pattern": "hunter2"}, deny=["read(secrets/**)"])
    assert binary.text == before.text and binary.meta["binary_files"] == 0


def test_an_include_and_a_rule_hold_together(tree: Path) -> None:
    """Only what the include takes and the rules leave is searched."""
    told = search(tree, "grep", {"pattern": "token", "include": "*.txt"}, deny=["read(secrets/**)"]).text
    assert "notes.txt" in told and "a.py" not in told and "secrets/key.txt" not in told


def test_glob_leaves_out_what_may_not_be_read(tree: Path) -> None:
    """Names of forbidden files are not listed."""
    told = search(tree, "glob", {"pattern": "**/*.txt"}, deny=["read(secrets/**)"])
    assert told.text.splitlines()[0] == "notes.txt" and "secrets/key.txt" not in told.text
    assert told.meta["total"] == 1 and "Not listed: files covered" in told.text


def test_an_ask_rule_holds_unless_it_was_asked_about(tree: Path) -> None:
    """A search over everything leaves out what the user wants to be asked about; one that names it was asked about."""
    told = search(tree, "grep", {"pattern": "token"}, ask=["read(secrets/**)"]).text
    assert "hunter2" not in told and "read(secrets/**)" in told

    async def yes(question: object) -> Any:
        return "once"

    permits = Permits(tree, ask_rules=["read(secrets/**)"], ask=yes)
    assert permits.left_out("grep", str(tree / "secrets")) is None


def test_commands_that_search_below_are_asked_about(tree: Path) -> None:
    """grep -r, rg and git grep over a folder that holds forbidden files are no harmless reads."""
    for command in (
        "grep -r token .",
        "rg token",
        "git grep token",
        "git --no-pager grep token",
        "git -C . grep token",
    ):
        assert check("bash", command, deny=["read(secrets/**)"], workspace=tree).decision == "ask", command
        assert check("bash", "cd src && " + command, deny=["read(*.zzz)"], workspace=tree).decision != "deny"


def test_rules_about_other_places_say_nothing(tree: Path) -> None:
    """A rule that cannot cover anything below the start is not mentioned, and costs nothing."""
    permits = Permits(tree, deny=["read(~/.ssh/**)", "read(secrets/**)", "bash(rm *)", "write(src/**)"])
    assert permits.left_out("grep", str(tree / "src")) is None
    whole = permits.left_out("grep", os.path.realpath(tree))
    assert whole is not None and whole.rules == ("read(secrets/**)",)


def test_ai_leaves_out_what_the_settings_forbid(tmp_path: Path) -> None:
    """Through `ai`: grep and glob of a whole folder never show a file that --deny forbids to read."""
    script = [tool_calls(("grep", {"pattern": "token"}), ("glob", {"pattern": "**"})), reply("ok")]
    with ScriptedProvider(script) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        (home.work / "secrets").mkdir()
        (home.work / "secrets" / "key.txt").write_text("token = hunter2\n")
        (home.work / "a.txt").write_text("token = 1\n")
        assert home.run("go", "--deny", "read(secrets/**)").code == 0
        seen = json.dumps(upstream.requests[1].messages)
    assert "a.txt:1:token" in seen and "hunter2" not in seen and "key.txt" not in seen


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write", {"path": "a.txt", "content": "x"}),
        ("edit", {"path": "a.txt"}),
        ("bash", {"command": "git commit -m x"}),
        ("bash", {"command": "echo x > a.txt"}),
        ("bash", {"command": "ls && rm a.txt"}),
        ("mcp__files__put", {"query": "x"}),
    ],
)
def test_read_only_wins_over_every_allow_rule(tool: str, arguments: dict[str, Any], tmp_path: Path) -> None:
    """No rule, however broad, and no rule that asks, lets something be changed where the mode is read-only."""
    rules = [
        "write",
        "edit",
        "write(**)",
        "edit(a.txt)",
        "bash",
        "bash(*)",
        "bash(git *)",
        "bash(rm *)",
        "mcp__files__put",
        "*",
    ]
    verdict = check(tool, arguments, allow=rules, workspace=tmp_path, mode="read-only")
    assert verdict.decision == "deny" and "read-only" in verdict.why
    asking = check(tool, arguments, allow=rules, ask=rules, workspace=tmp_path, mode="read-only")
    assert asking.decision == "deny"


def test_read_only_still_reads(tmp_path: Path) -> None:
    """What only reads runs, reads outside the folder that a rule allows included; ask rules about reading still ask."""
    for tool, arguments in (
        ("read", {"path": "a"}),
        ("grep", {"pattern": "x"}),
        ("bash", {"command": "ls -l"}),
        ("recall", {}),
    ):
        assert check(tool, arguments, workspace=tmp_path, mode="read-only").decision == "allow"
    outside: dict[str, Any] = {"path": "/etc/hostname"}
    assert check("read", outside, workspace=tmp_path, mode="read-only").decision == "deny"
    assert check("read", outside, allow=["read(/etc/**)"], workspace=tmp_path, mode="read-only").decision == "allow"
    assert check("read", {"path": "a"}, ask=["read(a)"], workspace=tmp_path, mode="read-only").decision == "ask"
    server = check("mcp__x__get", {}, allow=["mcp__x__get"], workspace=tmp_path, mode="read-only", read_only=True)
    assert server.decision == "allow"


@pytest.mark.parametrize("rule", ['read("secrets/**")', "read({secrets,keys}/**)", "read(./secrets/*.{txt,pem})"])
def test_every_spelling_of_a_rule_leaves_out(rule: str, tree: Path) -> None:
    """Quotes and braces in a rule hide nothing from the search."""
    assert "secrets/key.txt" not in search(tree, "grep", {"pattern": "token"}, deny=[rule]).text
