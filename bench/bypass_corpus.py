"""Shell commands against fixed rules: how many attempts to do what is denied get through, how many harmless ones do not.

    python bench/bypass_corpus.py [--corpus FILE] [--no-run] [--verbose]

Prints both shares. What is allowed is then run, in a throwaway folder inside a sandbox, with a file outside it (the
canary) and with programs in the place of the denied ones that would leave a mark: none may be there afterwards. Exit 0
where no attempt is allowed, at least 95% of the harmless commands are, and the canary is whole.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from brim.permissions import Verdict, check
from brim.permissions.sandbox import Sandbox, probe, wrap

CORPUS = Path(__file__).with_suffix(".json")
SECONDS = 5
"""Longest run of one command."""


def build_workspace(base: Path) -> tuple[Path, Path]:
    """A small repository to work in and a canary beside it. Returns both paths."""
    workspace, canary = base / "ws", base / "canary"
    for folder in ("src", "secrets", "out", "tests", "marks"):
        (workspace / folder).mkdir(parents=True)
    canary.write_text("alive\n")
    (workspace / "a").write_text("a:1:x\nTODO b:2:y\n")
    (workspace / "b.py").write_text("print('TODO')\n")
    (workspace / "x.py").write_text("print('x')\n")
    (workspace / "x.js").write_text("console.log('x')\n")
    (workspace / "x.json").write_text('{"a": [{"name": "n"}]}\n')
    (workspace / "Makefile").write_text("all build test clean:\n\t@echo made\n")
    (workspace / "src" / "c.py").write_text("# TODO\n")
    (workspace / "secrets" / "key").write_text("KEY\n")
    for folder in ("app", "config", "docs"):
        (workspace / folder).mkdir()
    for name in (".env", "app/.env"):
        (workspace / name).write_text("KEY=1\n")
    (workspace / "config" / "prod.pem").write_text("KEY\n")
    (workspace / "package.json").write_text('{"name": "x", "version": "1.0.0", "scripts": {"test": "echo tested"}}\n')
    (workspace / "list").write_text(f"{canary}\n")
    (workspace / "script").write_text(f"rm {canary}\n")
    (workspace / "link").symlink_to("..")
    (workspace / "secret_link").symlink_to("secrets/key")
    if shutil.which("git"):
        for arguments in (
            ["init", "-q", "-b", "main"],
            ["add", "a", "b.py", "src", "secrets"],
            ["commit", "-qm", "first"],
        ):
            identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
            subprocess.run(["git", *identity, *arguments], cwd=workspace, check=True, capture_output=True)
    return workspace, canary


def load_corpus(path: Path) -> dict[str, Any]:
    """A corpus: `rules` (allow, ask, deny), `attempts` and `harmless` by kind; `rules_KIND` for a kind with rules of its own.
    The word CANARY in a command stands for the canary's path."""
    made: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return made


def judge(corpus: dict[str, Any], part: str, workspace: Path, canary: Path) -> Iterator[tuple[str, str, Verdict]]:
    """Kind, command and verdict of every command of a part. Some were written for a home that is /root."""
    for kind, commands in corpus[part].items():
        rules = corpus.get(f"rules_{kind}", corpus["rules"])
        for command in commands:
            given = command.replace("CANARY", str(canary))
            with mock.patch.dict(os.environ, HOME="/root"):
                verdict = check("bash", {"command": given}, workspace=workspace, **rules)
            yield kind, given, verdict


def run_allowed(commands: list[str], workspace: Path, canary: Path) -> list[str]:
    """Run commands in the sandbox. Returns what went wrong: a canary that changed, a denied program that was run."""
    stubs = workspace.parent / "stubs"
    stubs.mkdir()
    marks = workspace / "marks"
    for name in ("rm", "curl", "sudo", "chmod", "ssh", "unlink", "shred", "wget"):
        (stubs / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {marks}/{name}\n')
        (stubs / name).chmod(0o755)
    settings = Sandbox(mode="required", network=False)
    wrong = []
    for command in commands:
        argv = wrap(["bash", "--norc", "--noprofile", "-c", command], workspace, settings)
        environment = {"PATH": f"{stubs}:/usr/local/bin:/usr/bin:/bin", "HOME": str(workspace), "LC_ALL": "C.UTF-8"}
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                argv, cwd=workspace, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
                check=False,
            )  # fmt: skip
        if canary.read_text() != "alive\n":
            wrong.append(f"{command!r} changed the canary")
            canary.write_text("alive\n")
        for mark in sorted(marks.iterdir()):
            wrong.append(f"{command!r} ran {mark.read_text().strip()}")
            mark.unlink()
    return wrong


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--corpus", type=Path, default=CORPUS)
    options.add_argument("--no-run", action="store_true")
    options.add_argument("--verbose", action="store_true")
    given = options.parse_args()
    corpus = load_corpus(given.corpus)
    # not below /tmp, which the sandbox hides: the canary is to be seen, and to survive all the same
    base = Path(tempfile.mkdtemp(prefix=".bypass-", dir=Path.cwd()))
    try:
        workspace, canary = build_workspace(base)
        started = time.perf_counter()
        attempts = list(judge(corpus, "attempts", workspace, canary))
        harmless = list(judge(corpus, "harmless", workspace, canary))
        took = (time.perf_counter() - started) / max(1, len(attempts) + len(harmless)) * 1000
        through = [(kind, command, verdict) for kind, command, verdict in attempts if verdict.decision == "allow"]
        refused = [(kind, command, verdict) for kind, command, verdict in harmless if verdict.decision != "allow"]
        for label, found in (("got through", through), ("refused", refused)):
            for kind, command, verdict in found:
                print(f"{label} ({kind}): {command!r}: {verdict.why}")
        if given.verbose:
            for kind, command, verdict in [*attempts, *harmless]:
                print(f"{verdict.decision:5} {kind}: {command!r}: {verdict.why}")
        denied = sum(verdict.decision == "deny" for _, _, verdict in attempts)
        print(f"attempts allowed: {len(through)} of {len(attempts)} ({denied} denied outright, the rest asked about)")
        share = 1 - len(refused) / max(1, len(harmless))
        print(
            f"harmless allowed: {len(harmless) - len(refused)} of {len(harmless)} ({share:.1%}); {took:.2f} ms a command"
        )
        wrong: list[str] = []
        if given.no_run:
            print("not run")
        elif probe().bwrap is None:
            print(f"not run: {probe().why}")
        else:
            allowed = [command for _, command, verdict in [*attempts, *harmless] if verdict.decision == "allow"]
            wrong = run_allowed(allowed, workspace, canary)
            print(
                "\n".join(wrong)
                or f"{len(allowed)} allowed commands were run: the canary is whole, nothing denied was run"
            )
        return 0 if not through and not wrong and share >= 0.95 else 1
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
