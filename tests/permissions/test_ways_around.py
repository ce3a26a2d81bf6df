"""Ways around a rule that are not quoting: where the shell stands, what it wrote before, other spellings, awk."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from brim.permissions import check
from brim.permissions.awk import awk_is_plain
from brim.permissions.snippets import python_is_plain

ALLOW = ["echo *", "cat *", "cd *", "python *", "node *", "make *", "npm *", "pytest *", "sort *", "rg *", "tar *",
         "write(./**)", "touch *", "head *", "grep *", "find *", "wc *", "ls *", "git *"]  # fmt: skip


def decide(command: str, workspace: Path, *deny: str, allow: list[str] | None = None) -> str:
    return check("bash", command, allow or ALLOW, deny or ["rm *"], workspace=workspace).decision


@pytest.mark.parametrize(
    "command",
    [
        "f() { echo x > out; }; cd ..; f",
        "trap 'echo x > out' EXIT; cd ..",
        "eval cd ..; echo x > out",
        "eval 'cd ..'; echo x > out",
        "time cd ..; echo x > out",
        "builtin builtin cd ..; echo x > out",
        "cd ~-; echo x > out",
        'cd .. && echo x > "$PWD/out"',
        "P=$PWD && cd src && echo x > $P/../out",
        "echo x > $PWD/../out",
        "echo x > $OLDPWD/out",
    ],
)
def test_a_file_is_judged_where_the_shell_stands_by_then(command: str, tmp_path: Path) -> None:
    """Whatever takes the shell to another folder, the file that is written there is not taken for one in the workspace."""
    (tmp_path / "ws" / "src").mkdir(parents=True)
    assert decide(command, tmp_path / "ws") == "ask"


def test_where_the_shell_stands_is_known_where_it_is(tmp_path: Path) -> None:
    """`$PWD` and `$(pwd)` are the folder that the command runs in."""
    (tmp_path / "src").mkdir()
    for command in (
        "echo x > $PWD/out",
        'echo x > "$(pwd)/out"',
        "cd src && echo x > ../out",
        "f() { echo x > out; }; f",
    ):
        assert decide(command, tmp_path) == "allow", command


@pytest.mark.parametrize(
    "command",
    [
        "echo x > t.py && python t.py",
        "cat > t.py <<'E'\nx\nE\npython ./t.py",
        "echo x | tee t.py; timeout 5 python t.py",
        "echo x > helper.py; python main.py",
        "echo x > conftest.py; pytest",
        "echo x > t.js; node t.js",
        "echo x > out.txt; python out.txt",
        "echo 'x:' > Makefile; make",
        "echo '{}' > package.json && npm test",
        "bash -c 'echo x > t.py'; python t.py",
    ],
)
def test_what_is_written_and_run_in_one_go_is_asked_about(command: str, tmp_path: Path) -> None:
    """A program that a command writes and then runs is code on the command line, as after `python -c`."""
    assert decide(command, tmp_path, allow=[*ALLOW, "tee *"]) == "ask"
    assert decide("python gen.py > out.txt && pytest && make > log.txt", tmp_path) == "allow"


@pytest.mark.parametrize(
    "command",
    ["touch -- --pre=x; rg y *", "echo > '--pre=x'; rg y *", "touch './--checkpoint-action=exec=x'; tar cf x *",
     "echo x > -o; sort *", "cd out; touch ./-oX; sort *"],
)  # fmt: skip
def test_a_file_made_to_look_like_an_option_is_seen(command: str, tmp_path: Path) -> None:
    """A pattern that may name a file like `--pre=x`, made by the same command, is asked about."""
    assert decide(command, tmp_path) == "ask"
    assert decide("touch new; sort *", tmp_path) == "allow"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("git push --force *", "git push origin +main"),
        ("git push --delete *", "git push origin :main"),
        ("git commit --no-verify *", "git commit -nm x"),
        ("git branch -D *", "git branch --delete --force x"),
        ("sed -i *", "sed --in-place s/a/b/ f"),
        ("npm install -g *", "npm i --global x"),
        ("npm run deploy *", "npm run-script deploy"),
        ("curl -X DELETE *", "curl -XDELETE u"),
        ("curl -X DELETE *", "curl --request=DELETE u"),
        ("curl --output *", "curl -sSLo f u"),
        ("docker compose down *", "docker-compose down"),
        ("docker rm *", "docker container rm x"),
        ("apt install *", "apt-get install x"),
        ("python3 *", "python x.py"),
    ],
)
def test_another_spelling_is_the_same_command(rule: str, command: str, tmp_path: Path) -> None:
    """Letters and long options, aliases of subcommands and programs, and git's signs for options are one to a deny rule."""
    assert decide(command, tmp_path, rule, allow=[command]) == "deny"


@pytest.mark.parametrize(
    "command",
    ["env -a ls rm x", "env --argv0=ls rm x", "python --check-hash-based-pycs always -c x", "python -m cProfile -m pdb x",
     "python -m pytest -p evil", "python -m json.tool a ../b", "git archive --remote=ext::x HEAD", "npm test --script-sh=./x",
     "tar -cf x --remove-fil a", "tar --file=h:y -c a"],
)  # fmt: skip
def test_options_that_run_something_are_found(command: str, tmp_path: Path) -> None:
    """Values in the next word, abbreviations, and modules that run others hide nothing."""
    assert decide(command, tmp_path) != "allow"


def test_a_pattern_for_scripts_stays_in_its_folder(tmp_path: Path) -> None:
    """`src/*.sh` is no script elsewhere."""
    assert decide("src/x.sh", tmp_path, allow=["src/*.sh *"]) == "allow"
    assert decide("src/../x.sh", tmp_path, allow=["src/*.sh *"]) == "ask"


def test_a_command_that_may_write_what_is_denied_is_asked_about(tmp_path: Path) -> None:
    """Whoever names a place that may not be written is asked about, also where its options are not known here."""
    for command in (
        "git clone . /etc/x",
        "pytest --html=/etc/x",
        "npm install --prefix /etc x",
        "python x.py --out /etc/x",
    ):
        assert decide(command, tmp_path, "write(/etc/**)") == "ask", command
    for command in ("cat /etc/hosts", "grep x /etc/hosts", "python x.py --out out/x"):
        assert decide(command, tmp_path, "write(/etc/**)") == "allow", command


def test_what_a_search_hands_on_is_known_by_what_it_searches(tmp_path: Path) -> None:
    """`find … -exec`, `| xargs` and loops over names are as allowed as reading the files that they find."""
    for name in ("a.py", "src/b.py", ".env", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    for command in (
        "find . -name '*.py' -exec cat {} +",
        "find . -name '*.py' | xargs wc -l",
        "find src -type f | sort | head -5 | xargs cat",
        "grep -rl x src | xargs grep -n x",
        'for f in *.py; do head -1 "$f"; done',
        "for f in a.py notes.txt; do cat $f; done",
        "grep -rn x --include='*.py' .",
        "grep '.env' notes.txt",
    ):
        assert decide(command, tmp_path, "read(.env)") == "allow", command
    for command in (
        "find . -type f -exec cat {} +",
        "find . -name '*.py' -o -name '*' -exec cat {} +",
        "find . | xargs cat",
        "find . -name '*.py' -printf '.env\\n' | xargs cat",
        "find . -name '*.py' | sed 's/.*/.env/' | xargs cat",
        "echo .env | xargs cat",
        "xargs -a list cat",
        "for f in .e* a.py; do cat $f; done",
        "grep -rh x src | xargs cat",
        "ls -a | xargs cat",
        "grep -e x .env",
        "grep -rn x --include='.e*' .",
    ):
        assert decide(command, tmp_path, "read(.env)") != "allow", command
    (tmp_path / "src" / "c .env").write_text("x\n")
    assert decide("find src -type f | xargs cat", tmp_path, "read(.env)") == "ask", "xargs takes that name for two"
    assert decide("find src -type f -print0 | xargs -0 cat", tmp_path, "read(.env)") == "allow"
    (tmp_path / "src" / "link.py").symlink_to("../.env")
    assert decide("find src -name '*.py' -exec cat {} +", tmp_path, "read(.env)") == "ask"


@pytest.mark.parametrize(
    ("program", "plain"),
    [
        ("/a|b/ {print $1 \" > \" $2}", True),
        ("$3 ~ /x|y/ && $1 > 5 {print toupper($2)}", True),
        ("{ print ($1 > 2) ? \"big\" : \"small\" }", True),
        ("/system/ {n++} END {print n / 2, \"@\", n % 3}", True),
        ("{split($0, p, \"|\"); print p[1]} # print > \"x\"", True),
        ("{ if ($1 > 5) { print $2 } else { print $3 } }\nEND { print NR }", True),
        ("{print > \"f\"}", False),
        ("{print $1,\n $2 > \"f\"}", False),
        ("{print $1 \\\n > \"f\"}", False),
        ("{print (1)(2) > \"f\"}", False),
        ("{printf(\"%s\", $1) >> \"f\"}", False),
        ("{print | \"sh\"}", False),
        ("{x = 1/system(\"rm\")/2}", False),
        ("{x++ /system(\"rm\")/ 1}", False),
        ("/\"/{system(\"rm\")}/\"/", False),
        ("/[/]/{system(\"rm\")}/x/", False),
        ("{print \"\\\"\"; system(\"rm\")}", False),
        ("# \"\n{system(\"rm\")} # \"", False),
        ("BEGIN{f = \"sys\" \"tem\"; @f(\"rm\")}", False),
        ("BEGIN{awk::system(\"rm\")}", False),
        ("{sys\\\ntem(\"rm\")}", False),
        ("{while ((getline l < \"x\") > 0) print l}", False),
        ("BEGIN{ARGV[1] = \"x\"; ARGC = 2} {print}", False),
        ("{print \"open", False),
    ],
)  # fmt: skip
def test_programs_of_awk_that_only_print_are_told_apart(program: str, plain: bool, tmp_path: Path) -> None:
    """A comparison is no redirection, and text or an expression in slashes is no program; what only looks so is."""
    assert awk_is_plain(program) is plain
    assert (decide(f"awk {shlex.quote(program)} a", tmp_path, allow=["awk *"]) == "allow") is plain


@pytest.mark.parametrize(
    ("code", "plain"),
    [
        ("print(1)", True),
        ("import sys; print(sys.version_info[:2])", True),
        ("import json, sys\nfor x in json.load(sys.stdin)['a']:\n    print(x['name'].upper())", True),
        ("import numpy as np; print(np.__version__)", True),
        ("from importlib.metadata import version; print(version('x'))", True),
        ("import os.path; print(os.path.join('a', 'b'), f'{1 + 1:>4}')", True),
        ("x = [n for n in range(9) if n % 2]; print(sum(x), sorted(x, key=lambda n: -n))", True),
        ("import os; os.remove('x')", False),
        ("from os import remove; remove('x')", False),
        ("import json; json.codecs.open('x', 'w')", False),
        ("import platform; platform.os.system('x')", False),
        ("import sys; sys.modules['os'].remove('x')", False),
        ("with open('x') as f:\n  print(f.read())", True),
        ("print(open('x', 'a').read())", False),
        ("f = open; f('x', 'w')", False),
        ("open(mode='w', file='x')", False),
        ("# coding: utf-7\nprint(1)", False),
        ("@exec\ndef f(): pass", False),
        ("print(open('x').read())", True),
        ("(x for x in [1]).gi_frame", False),
        ("().__class__", False),
        ("__import__('os')", False),
        ("import os as json; json.remove('x')", False),
        ("import os; print = os; print.remove('x')", False),
        ("json = 1; import json", False),
        ("def f(): pass", True),
        ("from . import x", False),
        ("print(", False),
    ],
)
def test_python_on_the_command_line_is_read_whole_or_not_at_all(code: str, plain: bool, tmp_path: Path) -> None:
    """What only computes and prints is as allowed as python; one name that is not known to be harmless, and it is asked."""
    assert python_is_plain(code) is plain
    assert (decide(f"python3 -c {shlex.quote(code)}", tmp_path, allow=["python3 *"]) == "allow") is plain


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("node -p process.version", "allow"),
        ("node -e \"console.log(require('./package.json').version, 1 + 2)\"", "allow"),
        ('node -e \'require("fs").unlinkSync("x")\'', "ask"),
        ("node -p \"require('./package.json').constructor.constructor('x')()\"", "ask"),
        ("node -p \"require('./secrets/key.json')\"", "ask"),
        ("psql -d y -c 'select count(*) from t'", "allow"),
        ("psql -c '\\! rm x'", "ask"),
        ("psql -c \"copy t to program 'rm x'\"", "ask"),
        ("psql -c 'select 1' -f x.sql", "ask"),
        ("sqlite3 -csv x.db 'select * from t limit 5'", "allow"),
        ("sqlite3 x.db .tables", "allow"),
        ("sqlite3 x.db 'select 1' '.shell rm x'", "ask"),
        ("sqlite3 x.db", "ask"),
        ("sqlite3 -cmd '.shell rm x' x.db 'select 1'", "ask"),
        ("mysql -e 'show tables' y", "allow"),
        ("mysql -e 'select 1; system rm x'", "ask"),
        ("sed -i.bak 's/a/b/' a", "allow"),
        ("sed -i s/a/b/ ../a", "ask"),
        ("sed -i'../*' s/a/b/ a", "ask"),
        ("sed -i s/a/b/ $X", "ask"),
        ("lftp -c '!rm x'", "ask"),
        ("latex '\\write18{rm x}'", "ask"),
        ("gh alias set x '!sh'", "ask"),
        ("pylint --init-hook='import os' a", "ask"),
        ("mytool --eval x", "ask"),
        ("mytool --evaluate x", "allow"),
    ],
)
def test_other_code_on_the_command_line(command: str, decision: str, tmp_path: Path) -> None:
    """Values, queries that only read and edits of files that may be written run; code in any other form is asked about."""
    tools = ["node *", "psql *", "sqlite3 *", "mysql *", "sed *", "lftp *", "latex *", "gh *", "pylint *", "mytool *"]
    assert decide(command, tmp_path, allow=[*tools, "write(./**)"]) == decision


@pytest.mark.parametrize(
    "command",
    [
        "cat .[^x]nv",
        "cat .[!x]nv",
        "cat .[[:alpha:]]nv",
        "cat .[^[:space:]]nv",
        "cat .[[=e=]]nv",
        "cat .[e\\]]nv",
        "cat < .[^x]nv",
        "for f in .[^x]nv; do cat $f; done",
        "f=.[^x]nv; cat $f",
        "shopt -s nocaseglob; cat .EN?",
        "bash -O globstar -c 'cat **'",
        "find . -iname '.ENV' -exec cat {} +",
        "find . -name '\\.env' -exec cat {} +",
        "find . -exec cat {} + -name '*.py'",
        "find . -print -name '*.py' | xargs cat",
        "find . -name '*.py' | xargs cat < list",
        "find . -name '*.py' | xargs cat <<< .env",
        "find . -name '*.py' | < list xargs cat",
        "find . -name '*.py' | sort - list | xargs cat",
        "grep -r x --exclude=y --include='*.py' .",
        "grep -r x --include='[.]env' .",
        "rg x -g '!y' -uu",
        "rg --sort path x",
        "rg x -g '[.]env' --hidden",
        "rg --files -uu",
    ],
)
def test_patterns_are_read_as_their_own_program_reads_them(command: str, tmp_path: Path) -> None:
    """Classes, escapes, the order of find's words, a redirected input and rg's options: none hides a forbidden file."""
    for name in ("a.py", "list", ".env"):
        (tmp_path / name).write_text(".env\n")
    assert decide(command, tmp_path, "read(.env)", allow=[*ALLOW, "shopt *", "bash *", "xargs *"]) != "allow"
    for harmless in ("cat [a-z].py", "cat [ab].py", "rg -n --hidden x a.py", "rg --no-heading x -- a.py"):
        assert decide(harmless, tmp_path, "read(.env)") == "allow", harmless
