"""Patterns of the shell's against patterns of rules, with no file there to look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.permissions import check
from brim.permissions.globs import may_meet, names_it


def decide(command: str, workspace: Path, *deny: str) -> str:
    return check("bash", command, ["bash(*)"], deny, workspace=workspace).decision


@pytest.mark.parametrize(
    ("glob", "pattern", "meets"),
    [
        ("/w/.e*", "/w/.env", True),
        ("/w/.en[v]", "/w/.env", True),
        ("/w/.en[!v]", "/w/.env", False),
        ("/w/*", "/w/.env", False),
        ("/w/*env", "/w/.env", True),
        ("/w/*.py", "/**/.env", False),
        ("/w/*.py", "/w/.env*", False),
        ("/w/.e*", "/w/.env*", True),
        ("/w/src/*", "/**/.env", False),
        ("/w/s*/k*", "/w/secrets/**", True),
        ("/w/src/*.py", "/w/secrets/**", False),
        ("/w/*/*.py", "/**/.env", False),
        ("/h/.s??/id", "/h/.ssh/**", True),
        ("/h/*/id", "/h/.ssh/**", False),
        ("/w/[[:alpha:]]env", "/w/xenv", True),
        ("/w/*.pem", "/w/*.key", False),
        ("/w/*.p?m", "/w/**/*.pem", True),
    ],
)
def test_whether_two_patterns_may_mean_one_file(glob: str, pattern: str, meets: bool) -> None:
    """Told from the patterns alone; a wildcard alone stands for no hidden name."""
    assert may_meet(glob, pattern) is meets


@given(st.text("ab.", min_size=1, max_size=6), st.lists(st.integers(0, 5), max_size=3))
def test_a_name_is_met_by_every_pattern_made_of_it(name: str, at: list[int]) -> None:
    """Letters replaced by `?`, or a stretch by `*`, still name the file."""
    glob = "".join("?" if index in at else char for index, char in enumerate(name))
    assert names_it(f"/{glob}", f"/{name}")
    assert names_it(f"/{name[:1]}*", f"/{name}")
    assert may_meet(f"/{name[:1]}*", f"/{name}") or name[0] == "/"


@pytest.mark.parametrize(
    "command",
    [
        "cat .e*",
        "head -- .en?",
        "for f in .e*; do cat $f; done",
        "cat sec*/key",
        "cat ~/.s*/id_rsa",
        "cat /*/.ssh/id_rsa",
        "cp ~/.[s]sh/id_rsa x",
        "grep -rh '' . --include='.e*'",
        "find . -name '.e*' | xargs cat",
        "find . -name '*env' -exec cat {} +",
        "echo x > /e*/y",
    ],
)
def test_a_pattern_that_may_name_what_is_denied_is_asked_about(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not the file is there yet."""
    monkeypatch.setenv("HOME", "/root")
    rules = ("read(.env)", "read(secrets/**)", "read(~/.ssh/**)", "write(/etc/**)")
    assert decide(command, tmp_path, *rules) != "allow"
    for harmless in (
        "cat *.md",
        "wc -l src/*.py",
        "ls -d */",
        "for f in *.py; do wc -l $f; done",
        "cat [[:alpha:]].py",
    ):
        assert decide(harmless, tmp_path, *rules) == "allow", harmless


@pytest.mark.parametrize(
    "command",
    [
        "cp -r ~ out",
        "tar cf - ~",
        "grep -r x ~",
        "rg --hidden x ~",
        "find ~ -name 'id_*' -exec cat {} +",
        "find / -type f | xargs cat",
        "ln -s ~ h; cat h/.ssh/id_rsa",
        "ln -s / r",
        "docker run -v ~/.ssh:/s x cat /s/id_rsa",
        "docker run -v /:/h x cat /h/k",
        "while read -r f; do cat \"$f\"; done < <(find ~ -name 'id_*')",
        "mv app b; cat b/.env",
        "cat ../other/.env",
    ],
)
def test_a_folder_that_holds_what_is_denied_is_not_handed_on_whole(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside the workspace what the rules say is enough; inside it the files that are there."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "ws" / "app").mkdir(parents=True)
    (tmp_path / "ws" / "app" / ".env").write_text("KEY=1\n")
    assert decide(command, tmp_path / "ws", "read(~/.ssh/**)", "read(**/.env)") != "allow"


@pytest.mark.parametrize(
    "command",
    [
        "wc -l $(git ls-files '*.py')",
        'for f in $(git diff --name-only); do wc -l "$f"; done',
        "ls *.py | xargs -n 1 wc -l",
        "find . -name '*.py' | while read -r f; do wc -l \"$f\"; done",
        "git ls-files -z '*.py' | xargs -0 grep -n TODO",
        "git log --format=%H | head -1 | xargs git show --stat",
        "kill $(cat pid)",
        "echo a b | xargs -n 1 cat",
        'cp a "a.$(date +%Y%m%d).bak"',
        'mkdir -p "$(dirname out/a/b)"',
        "ls | xargs -I{} du -sh {}",
        "cd src && rg --files | rg x",
        "source .venv/bin/activate && python -m pytest",
        'for d in */; do (cd "$d" && git status -s); done',
        "crontab -l",
        'export PATH="$HOME/.cargo/bin:$PATH"',
        "history | tail -5",
        'sed -n "$((5-2)),$((5+2))p" a',
        "tar tzf x.tgz | head",
        'for f in *.py; do python "$f"; done',
        "gh pr create --title 'Fix: remove curl' --body x",
        "journalctl -u x --no-pager",
    ],
)
def test_names_that_come_out_of_a_list_are_looked_at(command: str, tmp_path: Path) -> None:
    """Files that find, git or ls list, numbers and dates are known well enough where nothing denied is among them."""
    for name in ("a.py", "b.py", "a"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "src").mkdir()
    assert decide(command, tmp_path, "read(.env)", "read(secrets/**)", "rm *", "curl *") == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "ls -a | xargs cat",
        'find . -type f | while read -r f; do cat "$f"; done',
        "cat $(ls -a)",
        "printf .env | xargs cat",
        "printf '\\x2eenv' | xargs cat",
        "echo a,.env | xargs -d, cat",
        "touch 'a .env'; find . -name 'a*' | xargs cat",
        'sed "$(date)" a',
        "sed \"$(wc -l 'e rm x')\" a",
        "for c in 'e rm x' p; do sed \"$c\" a; done",
        "$(basename /bin/rm) a",
        "find . -name '*.sh' | while read f; do sh \"$f\"; done",
        "sh $SCRIPT",
        "for t in SHELL=./x y; do make $t; done",
        "export PATH=$PWD:$PATH; ls",
        "history -r f",
        "gh cs ssh -- rm x",
        "cp script s2; sh s2",
        "printf 'rm x' | tee s.sh; sh s.sh",
        "tar xf a.tar && ./script",
        "sed -i 's/x/y/' script; sh script",
        "dd if=a of=script; sh script",
    ],
)
def test_what_a_list_or_a_choice_may_hide_is_still_asked_about(command: str, tmp_path: Path) -> None:
    """A forbidden file among those listed, an option or a program among the choices, a script changed before it is run."""
    (tmp_path / ".env").write_text("KEY=1\n")
    (tmp_path / "script").write_text("#!/bin/sh\necho x\n")
    assert decide(command, tmp_path, "read(.env)", "rm *") != "allow"
