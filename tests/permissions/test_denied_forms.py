"""What a deny rule is about, in whatever form the command comes: options, places, targets, programs of the same kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from brim.permissions import check


def decide(command: str, workspace: Path, *deny: str, allow: str = "bash(*)") -> str:
    return check("bash", command, [allow], deny, workspace=workspace).decision


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("bash(git reset --hard*)", "git reset HEAD~1 --hard"),
        ("bash(git reset --hard*)", "git reset -q --har"),
        ("bash(git commit --amend*)", "git commit -m x --amend"),
        ("bash(git push --force*)", "git push origin +main"),
        ("bash(git push -f*)", "git push origin -uf"),
        ("bash(docker run --privileged*)", "docker run -it --privileged x"),
        ("bash(* --no-verify*)", "git commit -nm x"),
        ("bash(npm publish*)", "npm pub"),
        ("bash(cargo publish*)", "cargo +nightly publish"),
        ("bash(make deploy*)", "make build VAR=1 deploy"),
        ("bash(terraform destroy*)", "terraform apply -auto-approve -destroy"),
        ("bash(helm uninstall *)", "helm delete x"),
        ("bash(kill -9 *)", "kill -s KILL 1"),
        ("bash(kill -9 *)", "kill -SIGKILL 1"),
        ("bash(kill -KILL *)", "kill -n 9 1"),
        ("bash(chmod 777 *)", "chmod -R 0777 x"),
        ("bash(chmod 777 *)", "chmod u=rwx,go=rwx x"),
        ("bash(chmod +x *)", "chmod a+x x"),
        ("bash(cat /etc/passwd)", "cat < /etc/passwd"),
        ("bash(cat /etc/passwd)", "cd /etc && cat passwd"),
        ("bash(cat ~/.netrc)", "cat $HOME/.netrc"),
        ("bash(ls /srv*)", "cd /srv; ls"),
        ("bash(python -c *)", "python -W ignore -c 1"),
        ("bash(git branch -D *)", "for b in a b; do git branch $b -D; done"),
    ],
)
def test_a_denied_command_is_denied_in_any_form(rule: str, command: str, tmp_path: Path) -> None:
    """Where an option stands, how a place or a signal is written and which target comes first makes no difference."""
    assert decide(command, tmp_path, rule) == "deny"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("bash(npm publish*)", "pnpm publish"),
        ("bash(npm run deploy*)", "yarn deploy"),
        ("bash(npm run deploy*)", "bun run deploy:prod"),
        ("bash(docker system prune*)", "podman system prune -f"),
    ],
)
def test_a_program_of_the_same_kind_is_asked_about(rule: str, command: str, tmp_path: Path) -> None:
    """`pnpm publish` publishes, too; unless a rule names that program, and but for what installs."""
    program = command.split()[0]
    assert decide(command, tmp_path, rule) == "ask"
    assert decide(command, tmp_path, rule, allow=f"bash({program} *)") == "allow"
    assert decide("pnpm install", tmp_path, "bash(npm install *)") == "allow"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("bash(git reset --hard*)", "git reset --soft HEAD~1"),
        ("bash(* --force*)", "tail -f log"),
        ("bash(* --no-verify*)", "grep -n foo a"),
        ("bash(* --no-verify*)", "for i in 1 2; do echo $i; done"),
        ("bash(* --no-verify*)", "find src -name '*.ts' | xargs grep -n foo"),
        ("bash(env)", "env FOO=1 make test"),
        ("bash(python -c *)", "python script.py -c conf.yml"),
        ("bash(make deploy*)", "make build"),
        ("bash(kill -9 *)", "kill -TERM 1"),
        ("bash(chmod 777 *)", "chmod u+x a"),
        ("bash(ls /srv*)", "ls /tmp"),
    ],
)
def test_another_command_is_not_taken_for_it(rule: str, command: str, tmp_path: Path) -> None:
    """A letter of another program, an option of a script and a command run through env are not what the rule is about."""
    assert decide(command, tmp_path, rule) == "allow"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("bash(git status)", "git -c core.fsmonitor=./x status"),
        ("bash(git status)", "git --git-dir=x status"),
        ("bash(git log -1)", "git -c core.pager=./x -p log -1"),
        ("bash(./check.sh)", "cd /tmp/elsewhere && ./check.sh"),
        ("bash(./scripts/*.sh)", "cd $X; ./scripts/a.sh"),
    ],
)
def test_an_exact_rule_grants_no_more_than_it_says(rule: str, command: str, tmp_path: Path) -> None:
    """Options before a subcommand are not those of the rule, and a script of the workspace is not one elsewhere."""
    assert check("bash", command, [rule, "bash(cd *)"], workspace=tmp_path).decision == "ask"
    assert (
        check("bash", "git -C . status && ./check.sh", ["git status", "./check.sh"], workspace=tmp_path).decision
        == "allow"
    )


@pytest.mark.parametrize(
    ("rule", "command"),
    [(":(){*", ":(){ :|:& };:"), ("* | sh", "echo x |sh"), ("write(./.git/**)", "docker cp c:/x .git/config")],
)
def test_a_rule_with_shell_syntax_is_about_the_line(rule: str, command: str, tmp_path: Path) -> None:
    """A function is syntax as a pipe is; words of a command that are not known yet are no pipe."""
    assert decide(command, tmp_path, rule) != "allow"
    assert decide("find . -name '*.py' | xargs wc -l", tmp_path, rule) == "allow"


def test_a_rule_about_the_folders_around_is_not_about_the_workspace(tmp_path: Path) -> None:
    """`write(../**)` forbids what lies outside, not everything."""
    (tmp_path / "ws").mkdir()

    def run(command: str) -> str:
        return check("bash", command, ["bash(*)"], ["write(../**)"], workspace=tmp_path / "ws").decision

    assert [run("echo x > a"), run("cp a b"), run("git log -1")] == ["allow"] * 3
    assert [run("echo x > ../a"), run("cp a ../b"), run("cd .. && touch a")] == ["deny"] * 3


@pytest.mark.parametrize("command", ["yq -n 'load(\".env\")'", "jq -n 'import \"a\" as $a; $a'", "unzip -: x.zip"])
def test_a_program_that_opens_files_by_itself_is_asked_about(command: str, tmp_path: Path) -> None:
    """Files named inside a program of jq's or yq's are not among the words."""
    assert decide(command, tmp_path, "read(.env)") == "ask"
    assert decide("jq '.imports | length' a.json; yq '.a.loader' b.yml", tmp_path, "read(.env)") == "allow"
