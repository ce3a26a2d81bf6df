"""Random scripts, judged by brim and then run by bash: whatever is allowed runs nothing denied and writes no file.

    python bench/fuzz_shell.py [SCRIPTS] [--seed N]

Finds where bash and the grammar read a script differently. Scripts are put together from commands, separators and single
tokens. Those that are allowed run in the sandbox, where `rm` only leaves a mark beside one file. Exit 1 where a mark is
left, or the file is changed or has company.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from brim.permissions import check
from brim.permissions.sandbox import Sandbox, wrap

RULES = {
    "allow": ["git *", "echo *", "cat *", "ls *", "find *", "sed *", "awk *", "sort *", "printf *"],
    "deny": ["rm *"],
}
SEPARATORS = [
    ";", "\n", " && ", " || ", " | ", "&", " & ", "\n\n", "; ", ";\n", "&&", "||", "|", " |& ", "|\n", "&&\n", "\n  ",
    " \n", "\t\n", "; \\\n", " \\\n", "\n\\\n", " ",
]  # fmt: skip
DENIED = [
    "rm a", "\\rm a", "r\\m a", "'rm' a", '"rm" a', "$'rm' a", "r''m a", "X=1 rm a", ">/dev/null rm a", "{ rm a; }",
    "(rm a)", "! rm a", "command rm a", "`rm a`", "$(rm a)", '"$(rm a)"', "if rm a; then :; fi", "$'\\x72m' a",
    "''rm a", "rm\\\n a", "r{m,} a", "env rm a", "[[ $(rm a) ]]", "(( $(rm a) ))", "x=$(rm a)", "cat <(rm a)",
    "f() { rm a; }; f", "eval rm a", '$"rm" a', "time rm a", "2>&1 rm a", "{rm,a}", "xargs rm",
    "find . -exec rm a {} +", "case a in a) rm a;; esac",
]  # fmt: skip
HARMLESS = [
    "ls", "ls -l", "git status", "echo x", "cat a", "cat <<EOF\nx\nEOF", "cat <<'EOF'\nx\nEOF", "echo 'a'",
    'echo "a"', "echo $X", "echo $(ls)", "X=1", "[[ -f a ]]", "if ls; then ls; fi", "for i in a; do ls; done",
    "{ ls; }", "(ls)", "echo a \\\n b", "cat <<< x", "ls > /dev/null", "ls 2>&1", "# c", "echo a # c", "f() { ls; }",
    "case a in a) ls;; esac", "((1))", "echo ${X:-a b}", "echo $((1+1))", "echo {a,b}", "echo *", "find . -name x",
    "find . -exec ls {} +", "sed -n p a", "awk '{print}' a", "printf x", "cat - <<EOF\nx\nEOF", "echo a\\ b",
    "echo '\\'", 'echo "\\""', "cat <<EOF | cat\nx\nEOF", "time ls", "! ls", "ls &", "echo ${X#a}",
    "cat <<-EOF\n\tx\n\tEOF", "a=(b c)", 'echo "${a[@]}"', "echo $'a'",
]  # fmt: skip
TOKENS = [
    "w a", "/w a", "-o a", "--o=a", "-i", "-delete", "e", ">a", "> b", "print > \"a\"", "-fprint a", "$Y",
    "-e ", "b ", "t", "a\\",
    "rm", "r", "m", "'", '"', "\\", "$", "(", ")", "`", "{", "}", ";", "&", "|", "\n", " ", "#", "<", ">", "<<EOF\n",
    "\nEOF\n", "<<'EOF'\n", "x", "X=", "$X", "$'", "[[ ", " ]]", "((", "))", "$(", "${", "${X:-", "<(", ">(", "&&",
    "||", ";;", "\\\n", "\t", "-", "*", "?", "!", "if ", "then ", "fi", "for x in ", "do ", "done", "case ", " in ",
    "esac", "f()", "EOF", "<<<", "<<-EOF\n\t", ",", "@", "~", "=", "[", "]", "$((", "time ", "coproc ", "|&", "&>",
    "2>&1", "\r", "é", '$"', "\\'", '\\"', "\\`", "\\$", "$[",
]  # fmt: skip
_RUNNER = """
import json, os, subprocess, sys
os.makedirs("/tmp/bin"); os.makedirs("/tmp/w")
for name in ("git", "cat", "ls", "sort", "rm"):
    with open(f"/tmp/bin/{name}", "w") as file:
        file.write("#!/bin/sh\\n" + (": > /tmp/mark\\n" if name == "rm" else "exit 0\\n"))
    os.chmod(f"/tmp/bin/{name}", 0o755)
for name in ("find", "xargs", "env", "timeout", "nice", "nohup", "bash", "sh", "sed", "awk", "stdbuf"):
    for folder in ("/usr/bin", "/bin"):
        if os.path.exists(f"{folder}/{name}") and not os.path.lexists(f"/tmp/bin/{name}"):
            os.symlink(f"{folder}/{name}", f"/tmp/bin/{name}")
os.chdir("/tmp/w")
open("a", "w").write("x\\n")
found = []
for script in json.load(open(sys.argv[1])):
    try:
        subprocess.run(["bash", "--norc", "-c", 'eval "$1"', "bash", script], env={"PATH": "/tmp/bin", "HOME": "/tmp/w"},
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=3,
                       start_new_session=True)
    except (subprocess.TimeoutExpired, ValueError):
        pass
    left = sorted(os.listdir("."))
    if os.path.exists("/tmp/mark"):
        found.append([script, "ran rm"])
        os.unlink("/tmp/mark")
    elif left != ["a"] or open("a").read() != "x\\n":
        found.append([script, f"changed files: {left}"])
    if left != ["a"] or open("a").read() != "x\\n":
        subprocess.run(["/bin/sh", "-c", "/bin/rm -rf ./*; echo x > a"])
json.dump(found, sys.stdout)
"""  # fmt: skip


def make_script(source: random.Random) -> str:
    """One script: commands joined by separators, one of them perhaps denied, and a few random tokens put in."""
    count = source.randint(1, 3)
    parts = [source.choice(HARMLESS) for _ in range(count)]
    parts.insert(source.randint(0, count), source.choice(DENIED if source.random() < 0.8 else HARMLESS))
    script = "".join(part + (source.choice(SEPARATORS) if i < count else "") for i, part in enumerate(parts))
    for _ in range(source.choice([0, 0, 1, 1, 2, 3])):
        start = source.randint(0, len(script))
        end = min(len(script), start + source.choice([0, 0, 1, 2]))
        script = script[:start] + source.choice(TOKENS + SEPARATORS) + script[end:]
    return script


def run_allowed(scripts: list[str]) -> list[tuple[str, str]]:
    """Run scripts in the sandbox; those that ran `rm` or changed a file come back, with what they did.

    Raises ConfigError where there is no sandbox.
    """
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".fuzz-") as folder:
        given = Path(folder) / "scripts.json"
        given.write_text(json.dumps(scripts))
        argv = wrap([sys.executable, "-c", _RUNNER, str(given)], Path(folder), Sandbox(mode="required", network=False))
        ended = subprocess.run(argv, capture_output=True, text=True, check=True)
        made: list[tuple[str, str]] = json.loads(ended.stdout)
        return made


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("scripts", nargs="?", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    source = random.Random(given.seed)
    made = [make_script(source) for _ in range(given.scripts)]
    allowed = [script for script in made if check("bash", {"command": script}, **RULES).decision == "allow"]
    found = run_allowed(allowed)
    for script, what in found:
        print(f"allowed, and {what}: {script!r}")
    print(f"{len(made)} scripts, {len(allowed)} allowed and run, {len(found)} ran what is denied")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
