"""The founding scene, with real parts: one question, seven megabytes of matches, a window of 8,192 tokens.

    python bench/demo.py                    both prompts on the embedded model
    python bench/demo.py --scene ladder     grep unbounded: the ladder brings megabytes into the window
    python bench/demo.py --scene overflow   the ladder off: what the provider says, and that the session survives

Makes a project in a temporary folder, runs `ai` in it as a process of its own, and shows its events: the tool call, the
result with its notice, the answer, the bill. Exit code 1 where something is not as it should be. Caps of tools that are
set in the environment (TOOL_GREP_MAX_TOKENS …) hold here, too. The model is fetched on the first run, into brim's data
folder; nothing else is left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PROMPTS = ("搜索 TODO 关键词", "Search the project for the keyword TODO")
MODEL = "local/smollm2"
UNBOUNDED = {
    "TOOL_GREP_NO_IGNORE": "true",
    "TOOL_GREP_MAX_TOKENS": "100000000",
    "TOOL_GREP_MAX_LINES": "100000000",
}
SHOWN_LINES = 5
LEAST_BYTES = 7_000_000

VENDORED = (
    "  // TODO(upstream): drop the workaround for case {:04} once the fix is out; until then the slow path is taken and its"
    " result is checked twice\n"
)
TODOS: Mapping[str, tuple[str, ...]] = {
    "shop/api/orders.py": (
        "check the currency", "return 409 when paid already", "page through large results", "log the request id",
    ),
    "shop/api/carts.py": (
        "merge the guest cart after login", "refuse negative quantities", "expire carts", "cache the price list",
    ),
    "shop/api/users.py": (
        "limit password resets", "mail in the user's language", "drop the old session cookie", "hash the tokens",
    ),
    "shop/billing/invoices.py": (
        "round half to even", "support credit notes", "write the PDF in a worker", "number invoices without gaps",
    ),
    "shop/billing/taxes.py": ("load the rates from the table", "test the 2027 rates", "ask about gift cards"),
    "shop/search/index.py": ("rebuild in steps", "strip accents", "index product notes", "measure memory"),
    "shop/search/query.py": ("escape wildcards", "boost exact titles", "time out after two seconds"),
    "shop/storage/files.py": ("stream uploads", "check the disk space", "delete orphans at night"),
    "shop/storage/cache.py": ("evict by size", "share one client", "survive a restart"),
    "web/checkout.ts": ("disable the button", "show the shipping cost", "retry once"),
    "web/catalog.ts": ("load images lazily", "keep the scroll position", "remove the old grid"),
    "tests/test_orders.py": ("cover the refund path", "freeze the clock"),
}  # fmt: skip


def make_project(root: Path) -> None:
    """A small shop with some forty TODOs of its own, and dependencies with a hundred thousand."""
    for name, todos in TODOS.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        mark = "//" if name.endswith(".ts") else "#"
        lines = [f"{mark} {path.stem}: a part of the shop", ""]
        for number, todo in enumerate(todos):
            lines += [f"{mark} step {number + 1} of {path.stem}", f"{mark} TODO: {todo}", ""]
        path.write_text("\n".join(lines), encoding="utf-8")
    for package in range(100):
        folder = root / "node_modules" / f"dep-{package:03}"
        folder.mkdir(parents=True)
        (folder / "index.js").write_text("".join(VENDORED.format(case) for case in range(540)), encoding="utf-8")


class Demo:
    """One run: a project and a store in a temporary folder, the user's model folder, `ai` and `brim` as processes."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.programs = Path(sys.executable).parent
        # The demonstration's own: no settings of the user's, no key, no server that happens to run.
        self.env = {**os.environ, "BRIM_CONFIG": str(root / "none.toml"), "BRIM_STORE": str(root / "demo.db")}
        self.failures: list[str] = []
        self.prompt_tokens = 0

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A program to its end."""
        command = [str(self.programs / program), *arguments]
        return subprocess.run(
            command, cwd=self.project, env=self.env, text=True, capture_output=True, check=False, encoding="utf-8"
        )

    def ask(self, prompt: str, *options: str, **env: str) -> dict[str, Any]:
        """One `ai`; shows its events as they come. Returns all that is worth a check."""
        shown = " ".join([*(f"{name}={value}" for name, value in env.items()), "ai", *options, f'"{prompt}"'])
        say(f"\n$ {shown}")
        command = [str(self.programs / "ai"), "--model", MODEL, *options, "--output-format", "stream-json", prompt]
        process = subprocess.Popen(
            command, cwd=self.project, env={**self.env, **env}, text=True, stdout=subprocess.PIPE, encoding="utf-8"
        )
        try:
            seen = self._follow(process)
        finally:
            if process.poll() is None and process.stdout is not None:
                process.kill()
            seen_code = process.wait()
        seen["code"] = seen_code
        return seen

    def _follow(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        seen: dict[str, Any] = {"calls": [], "results": [], "reports": [], "text": "", "error": None, "result": {}}
        assert process.stdout is not None
        wait()
        for line in process.stdout:
            event = json.loads(line)
            kind = event["type"]
            if kind == "request":
                seen["reports"] += event["report"]
                for done in event["report"]:
                    if "before" in done:
                        say(f"  ladder: {told_pass(done)}")
            elif kind == "tool_call":
                seen["calls"].append(event)
                say(f"  tool call: {event['name']} {event['arguments']}")
            elif kind == "tool_result":
                seen["results"].append(event)
                show_result(event)
                wait()
            elif kind == "text":
                if not seen["text"]:
                    say("  answer:")
                seen["text"] += event["text"]
            elif kind == "notice" and event.get("kind") not in ("model", "config"):
                say(f"  notice: {event['text']}")
            elif kind == "error":
                seen["error"] = event
            elif kind == "result":
                seen["result"] = event
        for text in seen["text"].splitlines():
            say(f"    {text}")
        return seen

    def check(self, holds: bool, what: str) -> None:
        """Notes what did not hold."""
        if not holds:
            self.failures.append(what)
            say(f"  NOT SO: {what}")

    def check_answer(self, seen: Mapping[str, Any]) -> None:
        """The model called grep for TODO, and what it names stands in the result."""
        self.check(seen["code"] == 0, f"ai ended with {seen['code']}, not 0")
        arguments = [json.loads(call["arguments"]) for call in seen["calls"] if call["name"] == "grep"]
        self.check(any(each.get("pattern") == "TODO" for each in arguments), "the model calls grep for TODO")
        result = "\n".join(each["text"] for each in seen["results"])
        named = [line[2:].strip("`") for line in seen["text"].splitlines() if line.startswith("- ")]
        self.check(bool(named), "the answer names matches")
        self.check(all(line in result for line in named), "every match it names stands in the result")
        bill = seen["result"].get("bill") or {}
        self.check(bill.get("used", 0) <= bill.get("window", 0), "the request fits the window")
        usage = seen["result"].get("usage") or {}
        self.prompt_tokens += usage.get("input", 0) - usage.get("cached_read", 0)
        show_bill(bill)


def founding(demo: Demo) -> None:
    """Both prompts, with the caps as they are."""
    for prompt in PROMPTS:
        seen = demo.ask(prompt)
        demo.check_answer(seen)


def ladder(demo: Demo) -> None:
    """grep without its caps and with node_modules: what comes back is a thousand times the window."""
    seen = demo.ask(PROMPTS[0], **UNBOUNDED)
    demo.check_answer(seen)
    tokens = sum(each["tokens"] for each in seen["results"])
    demo.check(tokens > 1_000_000, f"the result is huge ({tokens:,} tokens)")
    demo.check(
        any(each.get("before", 0) > each.get("after", 0) for each in seen["reports"]), "the ladder says what it did"
    )


def overflow(demo: Demo) -> None:
    """The same with the ladder off: the provider refuses, the user is told, and the session goes on afterwards."""
    session = ("--session", "demo")
    seen = demo.ask(PROMPTS[1], "--no-ladder", *session, **UNBOUNDED)
    error = seen["error"] or {}
    kind = (error.get("error") or {}).get("kind")
    demo.check(seen["code"] == 3, f"ai ended with {seen['code']}, not 3")
    demo.check(kind == "provider_overflow", f"the error is the provider's own overflow ({kind})")
    say(f"  error: {(error.get('error') or {}).get('message')}")
    show_bill(error.get("bill") or {})
    for advice in error.get("advice") or ():
        say(f"  - {advice}")
    say(f"  exit code {seen['code']}")
    kept = demo.run("brim", "sessions", "show", "demo", "--json")
    messages = json.loads(kept.stdout)["messages"] if kept.returncode == 0 else []
    roles = [each["role"] for each in messages]
    say(f"\n$ brim sessions show demo\n  {len(roles)} messages: {', '.join(roles)}")
    demo.check(roles == ["user", "assistant", "tool"], "the session holds the question, the call and the result")
    again = demo.ask(PROMPTS[0], *session)
    demo.check_answer(again)


SCENES = {"founding": founding, "ladder": ladder, "overflow": overflow}


def show_result(event: Mapping[str, Any]) -> None:
    """The first lines of a result, how many follow, and its last line, the notice."""
    lines = event["text"].splitlines()
    say(f"  result: {event['tokens']:,} tokens, {event['chars']:,} characters, {event['seconds']:.1f} s")
    for line in lines[:SHOWN_LINES]:
        say(f"    {line[:120]}")
    if len(lines) > SHOWN_LINES + 1:
        say(f"    … {len(lines) - SHOWN_LINES - 1:,} more lines")
    if len(lines) > SHOWN_LINES:
        say(f"    {lines[-1]}")


def show_bill(bill: Mapping[str, Any]) -> None:
    """The itemised account."""
    from brim.budget import render_bill

    if bill:
        say("  bill:")
        for line in render_bill(bill, 92).splitlines():
            say(f"    {line}")


def told_pass(done: Mapping[str, Any]) -> str:
    """One line of the report in words."""
    kinds = ", ".join(f"{done[kind]} {kind}" for kind in ("trim", "stub", "fold", "drop") if done.get(kind))
    return f"{done['pass']}: {kinds}, {done['before']:,} -> {done['after']:,} tokens"


def say(text: str) -> None:
    """One line, at once: what runs may take a while."""
    print(("\r\x1b[K" if sys.stdout.isatty() else "") + text, flush=True)


def wait() -> None:
    """A sign that the model is at work, gone with the next line; only on a terminal."""
    if sys.stdout.isatty():
        print("  … the model reads, some seconds", end="", flush=True)


def prepared(demo: Demo) -> Iterator[str]:
    """Fetches the model, makes the project; yields what there is to say of each."""
    pulled = demo.run("brim", "models", "pull", "smollm2")
    if pulled.returncode:
        raise SystemExit(pulled.stderr.strip())
    yield f"model    {pulled.stdout.strip()}"
    yield (
        "         SmolLM2, 135 million parameters, four bits each: a model for a first look. It\n"
        "         picks a tool, a word of the question and lines of the result under a JSON schema;\n"
        "         it cannot reason about them. Real work needs a real model: a provider's key, or\n"
        "         one that Ollama, LM Studio or llama.cpp serves."
    )
    make_project(demo.project)
    searched = demo.run("brim", "tool", "grep", '{"pattern": "TODO", "no_ignore": true}', "--json")
    facts = json.loads(searched.stdout)["meta"]
    demo.check(facts["total_chars"] > LEAST_BYTES, f"over 7 MB of matches ({facts['total_chars']:,} characters)")
    own = sum(map(len, TODOS.values()))
    yield (
        f"project  {demo.project}\n"
        f"         {facts['total_lines']:,} lines with TODO, {facts['total_chars'] / 1e6:.1f} MB of matches, "
        f"{own} of them in its own sources"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", choices=[*SCENES, "all"], default="founding")
    parser.add_argument("--keep", action="store_true", help="leave project and sessions where they are")
    given = parser.parse_args()
    began = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="brim-demo-"))
    try:
        demo = Demo(root)
        demo.project.mkdir()
        for said in prepared(demo):
            say(said)
        for name, scene in SCENES.items():
            if given.scene in (name, "all"):
                scene(demo)
    finally:
        if given.keep:
            say(f"kept in {root}")
        else:
            shutil.rmtree(root, ignore_errors=True)
    say(f"\n{demo.prompt_tokens:,} prompt tokens read by the model, {time.monotonic() - began:.0f} s in all")
    for failure in demo.failures:
        say(f"NOT SO: {failure}")
    if not demo.failures and given.scene == "founding":
        activate = os.path.relpath(demo.programs / "activate")
        say(f'next: . {activate}    then, in a folder of yours: ai "Search the project for the keyword TODO"')
    return 1 if demo.failures else 0


if __name__ == "__main__":
    sys.exit(main())
