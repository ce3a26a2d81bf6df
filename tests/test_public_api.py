"""The public API: what `import brim` offers is frozen here, and costs nothing until it is used."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import brim

PUBLIC = [
    "Bill", "BrimError", "ContextManager", "ContextOverflow", "Conversation", "Prepared", "Settings", "__version__", "count",
    "explain", "prepare", "recall",
]  # fmt: skip
PREPARE = (
    "(request, api='openai.chat', mode='auto', window=None, max_output=None, previous=None, now=None, recall_tool=False, "
    "settings=None)"
)


def test_the_names_are_frozen() -> None:
    """Removing or renaming a public name is a decision, not an accident."""
    assert brim.__all__ == PUBLIC
    assert dir(brim) == sorted(PUBLIC)
    assert all(getattr(brim, name) is not None for name in PUBLIC)


def test_the_arguments_of_prepare_are_frozen() -> None:
    """Order, names and defaults of the main entry."""
    signature = inspect.signature(brim.prepare)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == PREPARE
    prepared = brim.prepare({"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]})
    for name in ("request", "plan", "bill", "changed", "report"):
        assert hasattr(prepared, name)


@pytest.mark.parametrize("package", ["brim.testing", "brim.tools", "brim.store", "brim.permissions", "brim.formats"])
def test_public_packages_offer_what_they_name(package: str) -> None:
    """Each name in a public package's __all__ is there."""
    module = __import__(package, fromlist=["__all__"])
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_import_brim_loads_nothing() -> None:
    """`import brim` brings in no module but its own: neither third parties nor the rest of brim."""
    code = "import sys; before = set(sys.modules); import brim; print(sorted(set(sys.modules) - before))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(eval(told.stdout)) <= {"brim", "__future__"}


def test_the_command_lines_load_nothing_heavy() -> None:
    """`ai --help` and `brim --help` read their own modules and typer; nothing that takes long to import."""
    heavy = ("aiohttp", "sqlalchemy", "xllamacpp", "tree_sitter", "tiktoken", "toktok", "rich", "prompt_toolkit", "msgspec",
             "genai_prices", "alembic", "dotenv")  # fmt: skip
    for module in ("brim.cli.ai", "brim.cli.manage"):
        code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert told.stdout.strip() == "[]", module
