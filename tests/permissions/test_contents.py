"""What git shows of files that may not be read: by a name in a revision, by sweeping over all it tracks, by an id."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from brim.permissions import check
from brim.permissions.contents import shown_by
from brim.permissions.tracked import parse_index, repository_of
from brim.permissions.words import known

GIT = ["git", "-c", "user.name=me", "-c", "user.email=me@localhost"]


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository that tracks `secrets/key` and others, beside an `.env` that it does not track."""
    for name in ("secrets/key", "src/a.py", "src/deep/b.py", "top.txt", ".env"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", "secrets", "src", "top.txt")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def decide(command: str, tree: Path) -> str:
    return check("bash", command, ["git *", "cd *"], ["read(secrets/**)", "read(.env)"], workspace=tree).decision


@pytest.mark.parametrize(
    "command",
    [
        "git show HEAD:secrets/key",
        "git show HEAD~1:.env",
        "git show :secrets/key",
        "git show :0:./secrets/key",
        "git show 'HEAD@{2020-01-01 10:00:00}:secrets/key'",
        "git show HEAD:src/../secrets/key",
        "cd src && git show HEAD:secrets/key",
        "cd secrets && git show HEAD:./key",
        "git -C secrets show HEAD:./key",
        "git -C secrets diff -- key",
        "git cat-file -p HEAD:secrets/key",
        "git diff HEAD:secrets/key top.txt",
        "git log -L1,5:secrets/key",
        "git log -p -- secrets",
        "git grep x HEAD:secrets",
        "git archive HEAD:secrets",
        "git show HEAD -- ':(top)secrets'",
        "git show HEAD -- ':/secrets/key'",
        "git diff --no-index /dev/null secrets/key",
    ],
)
def test_a_file_named_inside_a_word_of_gits_is_denied(command: str, tree: Path) -> None:
    """A revision's path, a line range's file and a pathspec with magic are paths like others."""
    assert decide(command, tree) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git show",
        "git show HEAD",
        "git diff",
        "git diff HEAD~1",
        "git diff --cached",
        "git log -p",
        "git log --stat -p",
        "git log -U5",
        "git stash show -p",
        "git status -v",
        "git add -p",
        "git archive HEAD",
        "git fast-export --all",
        "git format-patch -1 --stdout",
        "git worktree add out",
        "git diff -- . ':!src'",
        "git diff -- '*key'",
        "git show HEAD -- ':(icase)SECRETS'",
        "git grep x",
        "git cat-file --batch",
        "git cat-file --batch-all-objects --batch",
        "git show $(git rev-parse HEAD:secrets/key)",
    ],
)
def test_what_sweeps_over_a_forbidden_file_is_asked_about(command: str, tree: Path) -> None:
    """A command that shows all tracked files shows the one that may not be read, too."""
    assert decide(command, tree) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git log --oneline",
        "git log --stat",
        "git show --stat HEAD",
        "git show HEAD:src/a.py",
        "git show HEAD:top.txt",
        "git diff --name-only",
        "git diff -- src",
        "git diff -- '*.py'",
        "git diff -- . ':!secrets'",
        "git diff HEAD -- src/a.py",
        "git grep x -- src",
        "git -C src diff -- .",
        "git show HEAD -- ':(top)src'",
        "git commit -m 'HEAD:secrets/key'",
        "git stash",
        "git cat-file --batch-check",
        "git log $(git merge-base main HEAD)..HEAD",
    ],
)
def test_what_shows_other_files_is_allowed(command: str, tree: Path) -> None:
    """Commands that keep to other files, or show none, are as allowed as without the rule."""
    assert decide(command, tree) == "allow"


def test_untracked_files_are_not_shown(tree: Path) -> None:
    """`git diff` and `git show` of a repository that does not track the forbidden file are harmless."""
    for command in ("git diff", "git show", "git log -p", "git show HEAD:src/a.py"):
        assert check("bash", command, ["git *"], ["read(.env)"], workspace=tree).decision == "allow", command
    assert check("bash", "git show HEAD:.env", ["git *"], ["read(.env)"], workspace=tree).decision == "deny"
    for spec in ("'*env'", "':(icase).ENV'", "':(glob).e*'"):
        command = f"git show HEAD -- {spec}"
        assert check("bash", command, ["git *"], ["read(.env)"], workspace=tree).decision == "ask", (
            "it may have been tracked once"
        )


def test_an_object_id_is_a_name_too(tree: Path) -> None:
    """The id of a forbidden file's contents, whole or in part, is that file."""
    blob = git(tree, "rev-parse", "HEAD:secrets/key").strip()
    other = git(tree, "rev-parse", "HEAD:src/a.py").strip()
    assert decide(f"git cat-file -p {blob}", tree) == decide(f"git show {blob[:8]}", tree) == "deny"
    assert decide(f"git cat-file -p {other}", tree) == "allow"


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_every_version_of_the_index_is_read(version: str, tree: Path) -> None:
    """Names and ids are git's own, in every form of the file; a link to a worktree's folder is followed."""
    if version == "3":
        git(tree, "add", "-N", ".env")  # a flag that only the third version has
    else:
        git(tree, "update-index", "--index-version", version)
    found = repository_of(str(tree / "src" / "deep"))
    assert found is not None and found.top == str(tree.resolve()) and found.files is not None
    listed = [line.split() for line in git(tree, "ls-files", "-s").splitlines()]
    assert [(name, each) for _, each, _, name in listed] == list(found.files)
    git(tree, "worktree", "add", "-q", "other")
    linked = repository_of(str(tree / "other"))
    assert linked is not None and linked.files is not None and ("secrets/key", listed[-1][1]) not in linked.files[:1]
    assert {name for name, _ in linked.files} == {"secrets/key", "src/a.py", "src/deep/b.py", "top.txt"}


def test_an_index_that_does_not_tell_is_not_trusted(tree: Path) -> None:
    """Where it is not known what is tracked, a sweep is asked about; where nothing is, it is not."""
    git(tree, "update-index", "--split-index")
    assert decide("git diff", tree) == "ask"
    assert parse_index(b"DIRC" + (2).to_bytes(4, "big") + bytes(4)) == ()
    with pytest.raises((ValueError, IndexError)):
        parse_index(b"nothing")
    (tree / ".git" / "index").write_bytes(b"torn")
    assert decide("git show HEAD", tree) == "ask"


def test_pathspecs_add_and_take_away() -> None:
    """What a command sweeps over follows git's pathspecs: folders, globs over slashes, magic, exclusions."""

    def covers(name: str, *specs: str) -> bool:
        words = [known(each) for each in ("git", "diff", "--", *specs)]
        return shown_by(words, "/r/sub", "/r").covers(name)

    assert covers("a") and covers("sub/a", ".") and not covers("a", ".")
    assert covers("sub/x/y.py", "*.py") and not covers("y.py", "*.py") and covers("y.py", ":(top)*.py")
    assert covers("a", ":/") and covers("a", ":!b") and not covers("sub/b", ":!b") and not covers("sub/b", ".", ":^b")
    assert covers("sub/ENV", ":(icase)env") and covers("sub/.env", ":(glob)**/.env")
    assert covers("sub/b", ":(exclude,attr:x)b"), "what is not understood takes nothing away"
