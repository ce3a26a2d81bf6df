"""Rules: how they are written, what they cover, and which of several decides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.errors import UsageError
from brim.permissions import MODES, check, format_rule, parse_rule, parse_rules
from brim.permissions.forbidding import forbids
from brim.permissions.rules import allows, covers_text, quote_word, split_pattern
from brim.permissions.words import known


def decide(
    command: str, *, allow: list[str] | None = None, deny: list[str] | None = None, ask: list[str] | None = None
) -> str:
    return check(
        "bash", {"command": command}, allow or [], deny or [], ask or [], workspace=Path("/srv/nowhere")
    ).decision


def test_the_rule_shown_is_the_rule_stored() -> None:
    """A rule's text comes back as it was written, whatever form it has."""
    for text in ("bash(git push *)", "Bash(npm run test:*)", "git *", "read", "write(./src/**)", "mcp_github"):
        assert parse_rule(text, "allow").text == text
    assert parse_rule("Bash(git *)", "allow").tool == "bash"
    assert parse_rule("git *", "deny").tool == "bash" and parse_rule("git *", "deny").pattern == "git *"
    assert parse_rule("read", "allow").pattern is None
    assert format_rule("bash", "git *") == "bash(git *)" and format_rule("read", None) == "read"
    with pytest.raises(UsageError):
        parse_rule("  ", "deny")


@pytest.mark.parametrize(
    ("rule", "command", "expected"),
    [
        ("foo *", "foo", "allow"),
        ("foo *", "foo a b", "allow"),
        ("foo *", "food", "ask"),
        ("foo", "foo", "allow"),
        ("foo", "foo a", "ask"),
        ("foo bar *", "foo bar x", "allow"),
        ("foo bar *", "foo baz bar", "ask"),
        ("foo bar:*", "foo bar x", "allow"),
        ("foo run test*", "foo run test:unit", "allow"),
        ("foo run test*", "foo run test:unit x", "allow"),
        ("foo run test*", "foo run tes", "ask"),
        ("foo src/*", "foo src/x y", "ask"),
        ("foo * main", "foo checkout main", "allow"),
        ("foo * main", "foo a b main", "ask"),
        ("foo 'a b'", "foo 'a b'", "allow"),
        ("foo 'a b'", "foo a b", "ask"),
        ("foo src/*", "foo src/x", "allow"),
        ("foo src/*", "foo src/../../etc/passwd", "ask"),
        ("foo *", "/usr/bin/foo x", "allow"),
        ("foo *", "./foo x", "ask"),
        ("foo *", "/tmp/foo x", "ask"),
        ("./foo *", "./foo x", "allow"),
        ("foo '*'", "foo x", "ask"),
        ("foo '*'", "foo '*'", "allow"),
    ],
)
def test_an_allow_rule_covers_what_it_says_and_no_more(rule: str, command: str, expected: str) -> None:
    """Word by word: a star at the end is any words, one in the middle is one word, one in a word stays in it."""
    assert decide(command, allow=[f"bash({rule})"]) == expected


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("git push *", "git -C x push"),
        ("git push *", "git --no-pager -c color.ui=never push origin"),
        ("git push *", "/usr/bin/git push"),
        ("git push *", "GIT push"),
        ("git push", "git push origin main"),
        ("git push --force *", "git push origin main --force"),
        ("git push --force *", "git push -f"),
        ("git push --force *", "git push --for origin"),
        ("rm -rf *", "rm -fr x"),
        ("rm -rf *", "rm -r -f x"),
        ("rm -rf *", "rm --recursive --force x"),
        ("rm -rf *", "rm x -Rf"),
        ("rm -rf /", "rm -rf --no-preserve-root //"),
        ("kubectl delete *", "kubectl -n prod delete pod x"),
        ("docker * prune", "docker system prune"),
        ("npm publish *", "npm --tag next publish"),
        ("git commit *--no-verify*", "git commit -m x --no-verify"),
        ("*--no-verify*", "git commit -m x --no-verify"),
        ("* --force", "git fetch --all --force"),
    ],
)
def test_a_deny_rule_covers_every_spelling(rule: str, command: str) -> None:
    """Options may stand anywhere and in any form, global options before the subcommand, any path before the name."""
    assert decide(command, allow=["bash(git *)", "bash(rm *)", "bash(kubectl *)"], deny=[rule]) == "deny"


@pytest.mark.parametrize(
    ("rule", "command"),
    [("rm -rf *", "rm x"), ("rm -rf *", "rm -i x"), ("git push *", "git stash push"), ("git push *", "git log push"),
     ("git push --force *", "git push origin"), ("rm *", "rmx y")],
)  # fmt: skip
def test_a_deny_rule_does_not_cover_its_neighbours(rule: str, command: str) -> None:
    """A word elsewhere, or an option that is not there, denies nothing."""
    assert decide(command, allow=["bash(rm *)", "bash(git *)", "bash(rmx *)"], deny=[rule]) == "allow"


def test_deny_wins_then_ask_then_allow() -> None:
    """Neither order nor exactness matters between the decisions."""
    assert decide("foo x", allow=["foo x"], deny=["foo *"], ask=["foo *"]) == "deny"
    assert decide("foo x", allow=["foo x"], ask=["foo *"]) == "ask"
    assert decide("foo x", allow=["foo *"]) == "allow"
    assert decide("foo x") == "ask"


def test_modes_decide_where_no_rule_does(tmp_path: Path) -> None:
    """ask, accept-edits, read-only and allow-all: each as documented, deny before all of them."""

    def by(mode: str, tool: str, **arguments: str) -> str:
        return check(tool, arguments, deny=["bash(rm *)", "write(secret/**)"], workspace=tmp_path, mode=mode).decision

    assert [by(mode, "read", path="a") for mode in MODES] == ["allow"] * 4
    assert [by(mode, "write", path="a") for mode in MODES] == [
        "ask",
        "allow",
        "deny",
        "allow",
    ]
    assert [by(mode, "write", path="secret/a") for mode in MODES] == ["deny"] * 4
    assert [by(mode, "write", path="../a") for mode in MODES] == [
        "ask",
        "ask",
        "deny",
        "allow",
    ]
    assert [by(mode, "bash", command="foo") for mode in MODES] == [
        "ask",
        "ask",
        "deny",
        "allow",
    ]
    assert [by(mode, "bash", command="rm x") for mode in MODES] == ["deny"] * 4
    assert [by(m, "bash", command="ls; rm x") for m in ("ask", "allow-all")] == ["deny", "deny"]
    assert by("allow-all", "bash", command="python -c 'x'") == "ask", "a hidden rm cannot be ruled out"
    assert by("accept-edits", "bash", command="echo x > a") == "allow"
    assert by("ask", "bash", command="echo x > a") == "ask"
    with pytest.raises(UsageError):
        by("yolo", "read", path="a")


def test_all_is_allowed_where_nothing_is_denied(tmp_path: Path) -> None:
    """With every command allowed and none denied there is nothing to find out."""
    assert check("bash", {"command": "eval $X"}, ["bash"], workspace=tmp_path).decision == "allow"
    assert check("bash", {"command": "eval $X"}, workspace=tmp_path, mode="allow-all").decision == "allow"
    assert check("bash", {"command": "eval $X"}, ["bash"], ["rm *"], workspace=tmp_path).decision == "ask"
    assert check("bash", {"command": "ls"}, [], ["bash"], workspace=tmp_path).decision == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git push origin main",
        "npm run build",
        "cp a b",
        "rm -rf x y",
        "python -c 'print(1)'",
        "sed -i s/a/b/ f",
        "foo 'a b' \"c*\"",
        "find . -name '*.pyc' -delete",
        "echo hi > out.txt",
        "git log | sh",
        "for f in *; do mv $f x; done",
        "eval $X",
        "PATH=. ls",
        "cd /tmp && make && ./x",
        "sudo apt install x",
        "tar xf a.tar --to-command=cat",
        "echo 'a' > 'odd*name'",
    ],
)
def test_the_rule_that_is_named_does_allow(command: str, tmp_path: Path) -> None:
    """Headless means denied, naming what would allow it: with just those rules the command is allowed."""
    asked = check("bash", {"command": command}, workspace=tmp_path)
    assert asked.decision == "ask" and asked.needs and asked.rule == asked.needs[0]
    assert check("bash", {"command": command}, asked.needs, workspace=tmp_path).decision == "allow", asked.needs
    assert all(f"--allow '{rule}'" in asked.flags() for rule in asked.needs if "'" not in rule)


def test_the_rule_that_is_named_is_the_short_one() -> None:
    """For usual commands the rule is about the command and its subcommand, not about this one call."""
    assert check("bash", {"command": "git push origin main"}).needs == ("bash(git push *)",)
    assert check("bash", {"command": "mkfoo a && barize b"}).needs == ("bash(mkfoo *)", "bash(barize *)")
    assert check("write", {"path": "a.txt"}, workspace="/srv/nowhere").needs == ("write(./a.txt)",)


def test_rules_of_paths(tmp_path: Path) -> None:
    """Patterns are paths: `*` stays in a folder, `**` goes below, a folder covers what is in it."""
    (tmp_path / "src" / "deep").mkdir(parents=True)

    def write(path: str, *allow: str, deny: list[str] | None = None) -> str:
        return check("write", {"path": path}, allow, deny or [], workspace=tmp_path).decision

    assert write("src/a", "write(src/**)") == "allow"
    assert write("src/deep/a", "write(src/**)") == "allow"
    assert write("src/deep/a", "write(src/*)") == "ask"
    assert write("src/a", "write(src)") == "allow"
    assert write("srcs/a", "write(src)") == "ask"
    assert write("src/../b", "write(src/**)") == "ask"
    assert write("a.md", "write(*.md)") == "allow"
    assert write("src/a.md", "write(*.md)") == "ask"
    assert write("/etc/x", "write(./**)") == "ask"
    assert write("/etc/x", "write(/etc/**)") == "allow"
    assert write("a/b/.env", "write(./**)", deny=["write(.env)"]) == "deny"
    assert write("src/a", "edit(src/**)") == "ask", "who may edit may not write anew"
    assert check("edit", {"path": "src/a"}, ["write(src/**)"], workspace=tmp_path).decision == "allow"
    assert check("edit", {"path": "src/a"}, [], ["write(src/**)"], workspace=tmp_path).decision == "deny"


def test_what_makes_programs_run_is_no_usual_edit(tmp_path: Path) -> None:
    """Hooks and settings of git and brim are asked about even where edits are accepted; a rule has to name them."""
    for path in (".git/hooks/pre-commit", ".git/config", ".brim/config.toml", "sub/.git/config"):
        assert check("write", {"path": path}, workspace=tmp_path, mode="accept-edits").decision == "ask"
        assert check("write", {"path": path}, ["write(./**)"], workspace=tmp_path).decision == "ask"
        assert (
            check("bash", {"command": f"echo x > {path}"}, ["echo *", "write(./**)"], workspace=tmp_path).decision
            == "ask"
        )
    assert check("write", {"path": ".git/config"}, ["write(.git/**)"], workspace=tmp_path).decision == "allow"


def test_denied_files_are_denied_to_commands(tmp_path: Path) -> None:
    """A deny rule about a file holds for the arguments and redirections of commands as well."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text("k")
    (tmp_path / "link").symlink_to("secrets/key")
    (tmp_path / "src").mkdir()

    def run(command: str) -> str:
        return check(
            "bash", {"command": command}, ["cat *", "grep *", "head *"], ["read(secrets/**)"], workspace=tmp_path
        ).decision

    for command in ("cat secrets/key", "cat link", "cat sec*/*", "cat ./x/../secrets/key", "head < secrets/key",
                    "cd secrets && cat key", "F=secrets/key; cat $F", "grep -r k secrets", "cat secrets/k\\ey"):  # fmt: skip
        assert run(command) == "deny", command
    for command in ("cat $(echo secrets/key)", "grep -r k .", "cat $X/key", "find . | xargs cat"):
        assert run(command) == "ask", command
    for command in ("cat a", "echo secrets/key", "grep -r k src"):
        assert run(command) == "allow", command
    assert check("read", {"path": "link"}, [], ["read(secrets/**)"], workspace=tmp_path).decision == "deny"
    assert (
        check("grep", {"pattern": "k", "path": "secrets"}, [], ["read(secrets/**)"], workspace=tmp_path).decision
        == "deny"
    )


def test_unknown_tools_are_asked_about() -> None:
    """A tool of an MCP server needs a rule, by its name or a part of it."""
    assert check("github__create_issue", {"title": "x"}).decision == "ask"
    assert check("github__create_issue", {"title": "x"}, ["github__create_issue"]).decision == "allow"
    assert check("github__create_issue", {"title": "x"}, ["github__*"]).decision == "allow"
    assert check("github__create_issue", {"title": "x"}, ["github__*"], ["github__create_*"]).decision == "deny"
    assert check("recall", {"handle": "x"}).decision == "allow"


def test_a_bare_word_may_name_a_tool_and_a_command() -> None:
    """To deny `grep` denies the tool and the command; to allow it allows the tool."""
    assert [rule.tool for rule in parse_rules(["grep"], "deny")] == ["grep", "bash"]
    assert [rule.tool for rule in parse_rules(["grep"], "allow")] == ["grep"]


@given(st.text(min_size=1, max_size=30).filter(lambda text: "\0" not in text))
def test_a_quoted_word_matches_just_itself(text: str) -> None:
    """quote_word makes a pattern of one word that this word matches, and no other text does."""
    pattern = split_pattern(quote_word(text))
    assert len(pattern) == 1 and pattern[0].literal == text
    rule = parse_rule(f"bash(foo {quote_word(text)})", "allow")
    assert allows(rule, [known("foo"), known(text)])
    assert not allows(rule, [known("foo"), known(text + "x")])


@given(st.lists(st.sampled_from(["-r", "-f", "x", "-rf", "--force", "--recursive", "-v", "y"]), max_size=6))
def test_denying_never_depends_on_order(words: list[str]) -> None:
    """Any order of the same words of `rm` is denied or not denied alike, where the rule names only options."""
    rule = parse_rule("rm -rf *", "deny")
    verdicts = {forbids(rule, [known("rm"), *map(known, order)]) for order in (words, words[::-1], sorted(words))}
    assert len(verdicts) == 1


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("Read(**/*.{pem,key})", "secrets/deep/x.key"),
        ("Read({.env,.env.*})", ".env.local"),
        ("Read(//etc/**)", "/etc/hostname"),
        ("Read($HOME/.ssh/**)", "~/.ssh/id_rsa"),
        ("Read(**/id_[rd]sa)", "keys/id_rsa"),
        ("Read([.]env)", "sub/.env"),
        ('Read("my secrets/**")', "my secrets/x"),
        ("Read(my\\ secrets/**)", "my secrets/x"),
        ("Read(secrets/)", "secrets/x"),
        ("Read(src/[id]/**)", "src/[id]/page.tsx"),
        ("Read(src/[id]/**)", "src/i/page.tsx"),
    ],
)
def test_what_forbids_a_path_is_read_as_it_was_meant(rule: str, path: str, tmp_path: Path) -> None:
    """Braces, classes of characters, quotes and other programs' spellings forbid, to the tool and to a command."""
    assert check("read", {"path": path}, ["read"], [rule], workspace=tmp_path).decision == "deny"
    shown = path.replace(" ", "\\ ").replace("[", "\\[").replace("]", "\\]")
    assert check("bash", f"cat {shown}", ["cat *"], [rule], workspace=tmp_path).decision == "deny"


def test_what_allows_a_path_is_read_narrowly(tmp_path: Path) -> None:
    """In a rule that allows, brackets are a name's own; braces are spread out."""
    assert check("write", {"path": "src/[id]/a"}, ["write(src/[id]/**)"], workspace=tmp_path).decision == "allow"
    assert check("write", {"path": "src/i/a"}, ["write(src/[id]/**)"], workspace=tmp_path).decision == "ask"
    assert check("write", {"path": "b.md"}, ["write({a,b}.md)"], workspace=tmp_path).decision == "allow"
    assert check("write", {"path": "c.md"}, ["write({a,b}.md)"], workspace=tmp_path).decision == "ask"


def test_a_rule_about_writing_leaves_reading_alone(tmp_path: Path) -> None:
    """Copying out of a folder, and tests and searches in it, are no writing; a program told to write there is."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a").write_text("x\n")
    allow = ["cp *", "cat *", "grep *", "pytest *", "prettier *", "git *", "patch *", "mytool *", "write(./**)"]
    for command in (
        "cp src/a out",
        "cat src/a",
        "grep -r x src",
        "pytest src/test_a.py",
        "git diff src",
        "prettier --check src",
    ):
        assert check("bash", command, allow, ["edit(src/**)"], workspace=tmp_path).decision == "allow", command
    for command in ("cp out src/a", "cp -t src out", "prettier --write src", "mytool --out src/a", "mytool --out=src/a",
                    "git checkout HEAD -- src/a", "git apply x.patch", "patch -p1 < x.patch", "git clone . src/b"):  # fmt: skip
        assert check("bash", command, allow, ["edit(src/**)"], workspace=tmp_path).decision != "allow", command
    assert check("bash", "git apply x.patch", allow, ["write(/etc/**)"], workspace=tmp_path).decision == "allow"


@pytest.mark.parametrize(
    ("rule", "command", "denied"),
    [
        ("curl * | bash", "curl -s x|bash", True),
        ("* | sh", "cat a |  sh", True),
        ("* > /etc/*", "echo x >/etc/hosts", True),
        ("* > /etc/*", "echo x > out", False),
        ("Bash(rm :*)", "rm x", True),
        ("Bash(foo * push:*)", "foo a push b", True),
        ("Bash(foo run deploy:*)", "foo run deploy:prod", True),
        ("cat .env", "cat ./.env", True),
        ("cat .env", "cat a .env", True),
        ("cat .env", "cat env", False),
        ("/bin/rm *", "rm x", True),
        ("run_shell_command(rm)", "rm x", True),
        ("ShellTool(git push)", "git push origin", True),
        ("read_file(.env)", "cat .env", True),
    ],
)
def test_rules_of_other_kinds_forbid(rule: str, command: str, denied: bool) -> None:
    """Shell syntax, another program's names of tools, loose colons, files and paths in a rule: none is without effect."""
    allow = [f"bash({name} *)" for name in ("curl", "bash", "cat", "sh", "echo", "rm", "foo", "git")] + ["write(./**)"]
    assert (decide(command, allow=allow, deny=[rule]) == "deny") is denied
    if not denied:
        assert decide(command, allow=allow, deny=[rule]) == "allow"


def test_a_denied_file_in_another_folder_is_asked_about() -> None:
    """A rule about `cat .env` cannot tell which folder `.env` lies in; another folder's is asked about."""
    for command in ("cat sub/.env", "cat $PWD/.env", "cat .e*"):
        assert decide(command, allow=["bash(cat *)"], deny=["cat .env"]) == "ask", command


def test_a_colon_and_a_star_allow_both_readings() -> None:
    """`npm run test:*` allows the script and what is spelled like it with a colon, and not its neighbours."""
    for command in ("npm run test", "npm run test -- x", "npm run test:unit", "npm run test:unit -- x"):
        assert decide(command, allow=["Bash(npm run test:*)"]) == "allow", command
    assert decide("npm run tests", allow=["Bash(npm run test:*)"]) == "ask"


@given(st.text(alphabet="ab*", max_size=8), st.text(alphabet="ab", max_size=10))
def test_stars_over_a_whole_text_are_any_characters(pattern: str, text: str) -> None:
    """The linear comparison says what the regular expression says."""
    regex = "".join(".*" if char == "*" else char for char in pattern)
    assert covers_text(pattern, text) is (re.fullmatch(regex, text) is not None)


@pytest.mark.parametrize("text", ["foo(", "bash(ls", "read(.env) and more", "bash(a(b"])
def test_a_rule_that_is_not_finished_is_told(text: str) -> None:
    """A rule without its closing parenthesis would match nothing: a deny rule above all must not pass for one that holds."""
    for decision in ("allow", "deny", "ask"):
        with pytest.raises(UsageError, match=r"does not end in \)"):
            parse_rules([text], decision)
