"""The documents say what is: their Python runs, their command lines are understood, their numbers and files are right."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from brim.budget import Settings

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


SNIPPETS = [(page.name, number, code) for page in PAGES for number, code in enumerate(blocks(page, "python"))]


@pytest.mark.parametrize(("page", "number", "code"), SNIPPETS, ids=[f"{page}-{n}" for page, n, _ in SNIPPETS])
def test_python_in_the_documents_runs(page: str, number: int, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every Python block is run as it stands."""
    exec(compile(code, f"{page}, block {number}", "exec"), {"__name__": "snippet"})
    if page == "README.md" and number == 0:
        told = capsys.readouterr().out
        assert told.startswith("True ") and "of 32,000 tokens" in told and "trim" in told


def test_the_readme_snippet_is_ten_lines() -> None:
    """The library in ten lines is no more than that, long literals and comments apart."""
    code = blocks(ROOT / "README.md", "python")[0]
    import ast

    assert len(ast.parse(code).body) <= 10


def command_lines() -> list[tuple[str, list[str]]]:
    """Each `$ ai …` and `$ brim …` of the documents, as words."""
    found = []
    for page in PAGES:
        for block in (*blocks(page, "console"), *blocks(page, "text")):
            for line in re.findall(r"^\$ (.+)$", block, re.MULTILINE):
                words = shlex.split(line.replace("…", "x"), comments=True)
                while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                    words.pop(0)
                if words and words[0] in ("ai", "brim"):
                    found.append((words[0], words[1:]))
    return found


def test_command_lines_in_the_documents_are_understood() -> None:
    """Commands and options that the documents show exist and parse."""
    from typer.main import get_command

    from brim.cli.ai import app as ai
    from brim.cli.manage import app as manage

    lines = command_lines()
    assert len(lines) >= 10
    for program, words in lines:
        command: Any = get_command(ai if program == "ai" else manage)
        plain = [word for word in words if word not in ("<", ">", "request.json")]
        while hasattr(command, "resolve_command"):
            context = command.make_context(program, list(plain), resilient_parsing=True)
            name, command, plain = command.resolve_command(context, [*context._protected_args, *context.args])
            assert command is not None, (program, words, name)
        command.make_context(program, list(plain))


def test_help_page_is_current() -> None:
    """docs/help.md is what the programs' --help says; `make docs` writes it anew."""
    path = ROOT / "docs" / "make_help.py"
    spec = importlib.util.spec_from_file_location("make_help", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.help_page() == (ROOT / "docs" / "help.md").read_text(encoding="utf-8"), "run: make docs"


def test_output_schema_is_current() -> None:
    """docs/output.schema.json is what the events are; `make docs` writes it anew."""
    from brim.cli.schema import output_schema

    published = json.loads((ROOT / "docs" / "output.schema.json").read_text(encoding="utf-8"))
    assert published == output_schema(), "run: make docs"


def test_links_and_files_exist() -> None:
    """Relative links lead somewhere, and files of the package that the architecture names are there."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b((?:agent|budget|cli|context|formats|providers|store|tokens|tools)/[\w/]+\.py)", text))
    assert len(named) > 20
    for file in named:
        assert (ROOT / "src" / "brim" / file).is_file(), file


def test_numbers_in_the_modes_page_are_the_defaults() -> None:
    """Each number that stands beside a setting's name is that setting's default."""
    text = (ROOT / "docs" / "modes.md").read_text(encoding="utf-8")
    pairs = re.findall(r"`(\w+)` \(?([\d.,]*\d)", text)
    pairs += [(name, number) for number, name in re.findall(r"([\d.]+) of the budget \(`(\w+)`\)", text)]
    pairs += [(name, number) for name, number in re.findall(r"\(`(\w+)`, ([\d.,]*\d) seconds\)", text)]
    defaults = Settings()
    checked = {name for name, number in pairs if hasattr(defaults, name)}
    assert len(checked) >= 16
    for name, number in pairs:
        if hasattr(defaults, name):
            assert float(getattr(defaults, name)) == float(number.replace(",", "")), name
