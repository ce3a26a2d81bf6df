"""The corpus of attempts and harmless commands, and laws about quoting and nesting that hold for any command."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.permissions import check
from brim.permissions.sandbox import probe
from brim.permissions.streams import sed_is_plain

BENCH = Path(__file__).parents[2] / "bench" / "bypass_corpus.py"


def decide(command: str) -> str:
    return check(
        "bash", {"command": command}, ["git *", "echo *", "cat *", "ls *", "find *", "printf *"], ["rm *"]
    ).decision


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bypass_corpus", BENCH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_attempt_is_allowed_and_harmless_commands_are(bench: ModuleType, tmp_path: Path) -> None:
    """Of all attempts none gets through; of what the rules mean to allow at least 95% does."""
    corpus = bench.load_corpus(bench.CORPUS)
    workspace, canary = bench.build_workspace(tmp_path)
    attempts = list(bench.judge(corpus, "attempts", workspace, canary))
    harmless = list(bench.judge(corpus, "harmless", workspace, canary))
    assert len(attempts) >= 150 and len(harmless) >= 60
    assert [command for _, command, verdict in attempts if verdict.decision == "allow"] == []
    refused = [command for _, command, verdict in harmless if verdict.decision != "allow"]
    assert len(refused) <= len(harmless) * 0.05, refused


@pytest.mark.slow
@pytest.mark.skipif(probe().bwrap is None, reason=probe().why or "no sandbox")
def test_what_is_allowed_leaves_the_canary_alone(bench: ModuleType) -> None:
    """Run in the sandbox, no allowed command touches a file outside or runs a denied program."""
    corpus = bench.load_corpus(bench.CORPUS)
    base = Path(__file__).parent / ".bypass"  # not below /tmp, which the sandbox hides
    shutil.rmtree(base, ignore_errors=True)
    try:
        workspace, canary = bench.build_workspace(base)
        allowed = [
            command
            for part in ("attempts", "harmless")
            for _, command, verdict in bench.judge(corpus, part, workspace, canary)
            if verdict.decision == "allow"
        ]
        assert len(allowed) > 100
        assert bench.run_allowed(allowed, workspace, canary) == []
    finally:
        shutil.rmtree(base)


WRAPPERS = [
    "{c}", "X=1 {c}", ">/dev/null {c}", "command {c}", "env {c}", "env -i A=b {c}", "timeout 3 {c}", "nice -n 2 {c}",
    "nohup {c}", "time {c}", "exec {c}", "eval {c}", "xargs {c}", "find . -exec {c} {{}} +", "stdbuf -o0 {c}", "setsid {c}",
    "sudo -u me {c}",
]  # fmt: skip
PLACES = [
    "git status; {c}", "git log && {c}", "ls | {c}", "echo $({c})", 'echo "a $({c}) b"', "cat <({c})", "( {c} )",
    "{{ {c}; }}", "if {c}; then ls; fi", "for i in 1; do {c}; done", "ls\n{c}", "{c} | cat", "echo ${{Y:-$({c})}}", "! {c}",
    "{c} &", "cat <<EOF\n$({c})\nEOF", "f() {{ {c}; }}; f", "case a in *) {c};; esac", "while {c}; do ls; done", "Y=$({c})",
]  # fmt: skip


def quoted(draw: st.DrawFn, text: str) -> str:
    """Any of the ways to write a word."""
    made = ""
    for letter in text:
        way = draw(st.integers(0, 6))
        made += {
            0: letter,
            1: f"\\{letter}",
            2: f"'{letter}'",
            3: f'"{letter}"',
            4: f"$'\\x{ord(letter):02x}'",
            5: f"{letter}''",
            6: f"$'\\{ord(letter):o}'",
        }[way]
    return made


@st.composite
def denied_commands(draw: st.DrawFn) -> str:
    """`rm x` in any quoting, behind any wrappers, in any place of a larger command."""
    path = draw(st.sampled_from(["", "", "", "/bin/", "/usr/bin/", "./", "../bin/"]))
    command = path + quoted(draw, "rm") + draw(st.sampled_from([" x", " -rf x", "\tx", "  x"]))
    if draw(st.booleans()):
        command = draw(st.sampled_from(WRAPPERS)).format(c=command)
    for _ in range(draw(st.integers(0, 2))):
        command = draw(st.sampled_from(PLACES)).format(c=command)
    return command


@given(denied_commands())
def test_no_quoting_and_no_nesting_hides_a_denied_command(command: str) -> None:
    """However it is quoted, wrapped and nested, a denied command is never allowed."""
    assert decide(command) != "allow"


@given(st.text(max_size=40))
def test_text_in_single_quotes_is_only_text(text: str) -> None:
    """Whatever stands in single quotes is an argument; odd characters are asked about, nothing is denied."""
    given_text = text.replace("'", "").replace("\0", "")
    decision = decide(f"echo '{given_text}'")
    assert decision in ("allow", "ask")
    if given_text.isascii() and given_text.isprintable():
        assert decision == "allow"


@given(st.text(alphabet=st.sampled_from("rm x'\"\\$(){};&|\n`<>#=*?![]-"), max_size=25))
def test_any_text_gets_a_verdict(text: str) -> None:
    """Nothing that a model can send raises an error here."""
    assert decide(text) in ("allow", "ask", "deny")


@pytest.mark.parametrize(
    "command",
    [
        "ls\n\\rm x",
        "ls\n\\\nrm x",
        "ls 2>&1\n\\\n'rm' x",
        "echo 'a'\n\\\n>/dev/null rm x",
        'cat <<EOF\nx\nEOF;\n# c&"$(rm x)"',
        "cat <<EOF\n`rm x`\nEOF",
        "cat <<EOF\n\\\\$(rm x)\nEOF",
        "cat <<A <<B\nA\nB\nA\nB\nrm x",
        "r\\\nm x",
        "ls\u00a0; rm x",
        "ls\r\nrm x",
        "ls #\\\nrm x",
    ],
)
def test_where_grammar_and_bash_part_it_is_asked(command: str) -> None:
    """Scripts that the grammar reads otherwise than bash does are never allowed."""
    assert decide(command) != "allow"


def test_what_a_script_file_holds_is_judged(tmp_path: Path) -> None:
    """An allowed shell does not run what is denied out of a file, a pipe, a substitution or its input."""
    (tmp_path / "bad.sh").write_text("#!/bin/bash\necho hi\nrm -rf x\n")
    (tmp_path / "good.sh").write_text("#!/bin/bash\necho hi\n")

    def run(command: str) -> str:
        allow = ["bash *", "./bad.sh *", "./good.sh *", "python *", "echo *", "write(./**)"]
        return check("bash", {"command": command}, allow, ["rm *"], workspace=tmp_path).decision

    assert [run("bash bad.sh"), run("./bad.sh"), run("bash -x ./bad.sh a")] == ["deny"] * 3
    assert [run("bash good.sh"), run("./good.sh"), run("python x.py")] == ["allow"] * 3
    for command in ("bash <(echo rm x)", "echo rm x | bash", "bash -s <<< 'rm x'", "python <(echo x)", "python - <<EOF\nx\nEOF",
                    "echo 'rm x' > t.sh && bash t.sh", "bash 3<<'A'\nls\nA", "bash <<'A' <&3\nls\nA"):  # fmt: skip
        assert run(command) in ("ask", "deny"), command
    for command in ("bash <<'A'\necho hi\nA", "timeout 5 bash <<< 'echo hi'", "python - <<'A'\nprint(1)\nA"):
        assert run(command) == "allow", command


def test_nothing_is_planted_for_other_programs_to_run(tmp_path: Path) -> None:
    """Who may copy may not, for that, write hooks, settings of git or files of the system."""
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    for command in ("cp x .git/hooks/pre-commit", "cd .git/hooks && cp ../../x pre-commit", "tee .git/config", "mv x ~/.bashrc",
                    "cp x /etc/profile.d/x", "ln -s x .git/hooks/pre-push", "echo x > .git/hooks/y"):  # fmt: skip
        verdict = check(
            "bash", {"command": command}, ["cp *", "tee *", "mv *", "ln *", "echo *", "write(./**)"], workspace=tmp_path
        )
        assert verdict.decision == "ask", command
    assert check("bash", {"command": "cp x y"}, ["cp *"], workspace=tmp_path).decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "$'\\x{72m' x",
        "x=$ rm a",
        "ls | x=$\trm a",
        "echo $'\\\\'; rm x #'",
        'echo $"a$"; rm x #"',
        "r``m x",
        "ls \\ \\\n; rm x",
    ],
)
def test_quotes_end_where_bash_ends_them(command: str) -> None:
    """Spellings on which the grammar and bash differ are never allowed."""
    assert decide(command) != "allow"


@pytest.mark.parametrize(
    ("script", "plain"),
    [
        ("s/a/b/;s/c/d/g", True),
        (":a;N;$!ba;s/\\n/ /g", True),
        ("/x/{p;q}", True),
        ("5,10p;15q", True),
        ("y/ab/cd/", True),
        ("/x/a\\y", True),
        ("w f", False),
        ("s/a/b/w f", False),
        ("s/a/b/e", False),
        ("1e ls", False),
        ("then /e/b/;w a", False),
        ("a\\\ns/x/\nw f/", False),
        ("s/a/b", False),
        ("r f", False),
    ],
)
def test_programs_of_sed_that_only_edit_are_told_apart(script: str, plain: bool) -> None:
    """What writes, reads or runs something is never taken for plain editing."""
    assert sed_is_plain(script) is plain
    command = f"sed {shlex.quote(script)} f"
    assert (check("bash", {"command": command}, ["sed *"]).decision == "allow") is plain
