"""What people reported of other programs' permission checks, as promises of this one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from brim.permissions import Verdict, check

COMPOUND = {"allow": ["git *"], "deny": ["rm *"]}
SUBSTITUTION = {"allow": ["echo *", "cat *"]}
PREFIX = {"allow": ["ls *"], "ask": ["git push *"], "deny": ["rm *"]}


def judge(command: str, rules: Mapping[str, list[str]], workspace: Path | None = None) -> Verdict:
    by = (rules.get("allow", []), rules.get("deny", []), rules.get("ask", []))
    return check("bash", {"command": command}, *by, workspace)


@pytest.mark.parametrize(
    "command",
    [
        "git diff && rm -rf build_old",
        "git log; rm x",
        "git log | xargs rm",
        "git log || rm x",
        "git log\nrm x",
        "git log & rm x",
        "git log |& rm x",
        "{ git log; rm x; }",
        "(git log; rm x)",
        "if git log; then rm x; fi",
        "while git log; do rm x; done",
        "for f in a; do rm $f; done",
        "case x in x) rm x;; esac",
        "! rm x",
    ],
)
def test_every_part_of_a_compound_command_is_judged(command: str) -> None:
    """An allowed beginning allows nothing of what follows it."""
    verdict = judge(command, COMPOUND)
    assert verdict.decision == "deny" and verdict.rule == "rm *"


@pytest.mark.parametrize(
    "command",
    [
        "git status && git diff",
        "git commit -m 'a && rm b'",
        'git commit -m "fix; rm x"',
        "git log # rm x",
        "git log --grep=rm",
    ],
)
def test_what_is_only_text_is_no_command(command: str) -> None:
    """Quotes and comments are understood: words in them are not commands."""
    assert judge(command, COMPOUND).decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "echo $(touch HIT1)",
        "echo `touch HIT1`",
        'echo "$(touch HIT1)"',
        "cat <(touch HIT1)",
        "echo fine > >(tee HIT1)",
        "$(printf tou)ch HIT1",
        "echo ${X:=$(touch HIT1)}",
        "echo hi > /etc/target",
        "cat <<EOF\n$(touch HIT1)\nEOF",
        "cat <<EOF\n`touch HIT1`\nEOF",
        "cat <<< $(touch HIT1)",
        "echo ${X/$(touch HIT1)/}",
        "echo $((1 + $(touch HIT1; echo 1)))",
        "X=$(touch HIT1)",
        "echo hi >> HIT1",
        "echo hi >| HIT1",
        "echo hi &> HIT1",
        "echo hi 1<> HIT1",
    ],
)
def test_substitutions_and_redirections_are_judged(command: str) -> None:
    """A command in a substitution is a command, and a redirection writes a file."""
    assert judge(command, SUBSTITUTION).decision == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "echo $((1+1))",
        "echo '$(touch HIT1)'",
        "cat <<'EOF'\n$(touch HIT1)\nEOF",
        "echo \\$\\(x\\)",
        "echo hi 2>&1 >/dev/null",
    ],
)
def test_arithmetic_and_quoted_text_run_nothing(command: str) -> None:
    """What only looks like a substitution is allowed."""
    assert judge(command, SUBSTITUTION).decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "cd x && rm -rf *",
        "pushd y; rm z",
        "cd .. && rm -rf work",
        "env X=1 rm z",
        "command rm z",
        "\\rm z",
        "/bin/rm z",
        "sudo rm z",
        "nohup rm z &",
        "time rm z",
        "bash -c 'rm z'",
        'sh -c "cd a && rm z"',
        "eval rm z",
        "xargs rm < list",
        "find . -exec rm {} +",
        "timeout -k 1 5 nice -n 3 env -u A B=1 stdbuf -oL rm z",
        "X=1 rm z",
        "bash -c \"eval 'rm z'\"",
        "trap 'rm z' EXIT",
    ],
)
def test_wrappers_are_looked_through(command: str) -> None:
    """A denied command is denied whatever runs it."""
    assert judge(command, PREFIX).decision == "deny"


def test_what_deletes_as_a_denied_command_does_is_asked_about() -> None:
    """`find -delete` is no `rm`, but does what `rm` does."""
    for command in (
        "find . -delete",
        "git clean -fd",
        "git rm x",
        "unlink x",
        "busybox rm x",
        "rsync -a --delete a/ b/",
    ):
        verdict = judge(command, {"allow": ["find *", "git *", "unlink *", "busybox *", "rsync *"], "deny": ["rm *"]})
        assert verdict.decision in ("ask", "deny"), command
    assert judge("git rm --cached x", COMPOUND).decision == "allow"
    assert judge("git clean -n", COMPOUND).decision == "allow"


def test_an_ask_rule_holds_behind_cd() -> None:
    """`cd x &&` in front does not switch a rule off."""
    verdict = judge("cd /srv/app && git push origin main", PREFIX)
    assert verdict.decision == "ask" and "git push *" in verdict.why and verdict.needs == ()
    assert judge("cd /srv/app && ls", PREFIX).decision == "allow"


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A workspace with links that lead out of it, one to a file that is not there yet, and one that stays inside."""
    root, out = tmp_path / "root", tmp_path / "root_outside"
    root.mkdir()
    out.mkdir()
    (out / "target.txt").write_text("before")
    (root / "plan.txt").symlink_to(out / "target.txt")
    (root / "todo.txt").symlink_to(out / "unborn.txt")
    (root / "dir").symlink_to(out)
    (root / "inside.txt").write_text("in")
    (root / "ok").symlink_to("inside.txt")
    return root


def test_links_are_followed_before_a_path_is_judged(linked: Path) -> None:
    """A link out of the workspace is asked about and its target named; one that stays inside works."""
    for tool, path, target in [
        ("write", "plan.txt", "target.txt"),
        ("write", "todo.txt", "unborn.txt"),
        ("write", "dir/new.txt", "new.txt"),
        ("edit", "plan.txt", "target.txt"),
        ("read", "plan.txt", "target.txt"),
        ("read", "dir/target.txt", "target.txt"),
        ("grep", "dir", "root_outside"),
    ]:
        for mode in ("ask", "accept-edits"):
            verdict = check(tool, {"path": path, "pattern": "before"}, workspace=linked, mode=mode)
            assert verdict.decision == "ask" and target in verdict.why, path
    assert check("glob", {"pattern": "dir/**"}, workspace=linked).decision == "ask"
    assert check("glob", {"pattern": "../**/*"}, workspace=linked).decision == "ask"
    assert check("read", {"path": "ok"}, workspace=linked).decision == "allow"
    assert check("grep", {"pattern": "before"}, workspace=linked).decision == "allow"
    assert not (linked.parent / "root_outside" / "unborn.txt").exists()


def test_links_are_followed_in_redirections_too(linked: Path) -> None:
    """`> link` writes where the link leads."""
    rules = {"allow": ["echo *", "write(./**)"]}
    assert judge("echo x > new.txt", rules, linked).decision == "allow"
    for command in ("echo x > plan.txt", "echo x > todo.txt", "echo x > dir/new.txt", "cd dir && echo x > new.txt"):
        assert judge(command, rules, linked).decision == "ask", command


def test_a_folder_is_not_its_longer_namesake(tmp_path: Path) -> None:
    """`/srv/app` is not `/srv/app2`."""
    for name in ("app", "app2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text("x")
    workspace = tmp_path / "app"
    assert check("read", {"path": str(tmp_path / "app" / "f")}, workspace=workspace).decision == "allow"
    assert check("read", {"path": str(tmp_path / "app2" / "f")}, workspace=workspace).decision == "ask"
    allow = [f"read({tmp_path}/app/**)"]
    assert (
        check("read", {"path": str(tmp_path / "app2" / "f")}, allow, workspace=tmp_path / "app2" / "x").decision
        == "ask"
    )
    assert check("read", {"path": "../app2/f"}, workspace=workspace).decision == "ask"
    assert check("read", {"path": "x/../../app2/f"}, workspace=workspace).decision == "ask"
