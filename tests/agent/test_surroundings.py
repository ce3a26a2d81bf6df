"""What of the workspace stands beside a question: sent with it, billed and named, never stored, and never moved again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from brim.agent import events as ev
from brim.agent.config import load_config
from brim.agent.opening import Choice, Opened, open_agent
from brim.agent.surroundings import SNIPPETS, TREE, is_broad, without_attached
from brim.errors import ConfigError
from brim.providers import RetryPolicy
from brim.testing import ScriptedProvider, reply, tool_calls, violations

SNIPPET = "def apply_discount(price, percent):\n    return price * (100 - percent) / 100"
QUESTION = "how is the discount applied to a price?"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "shop").mkdir(parents=True)
    (folder / "shop/pricing.py").write_text(SNIPPET + "\n")
    (folder / "shop/cart.py").write_text(
        "class Cart:\n    def add_item(self, item):\n        self.items.append(item)\n"
    )
    (folder / "README.md").write_text("# Shop\n\nA small shop.\n")
    return folder


@asynccontextmanager
async def asked(
    workspace: Path, *script: Any, flags: dict[str, Any] | None = None, choice: Choice | None = None, **more: Any
) -> AsyncIterator[tuple[Opened, ScriptedProvider, list[ev.Event]]]:
    async with ScriptedProvider(script) as upstream:
        env = {
            "OPENAI_BASE_URL": upstream.base_url, "OPENAI_API_KEY": "sk-test-123456", "ANTHROPIC_API_KEY": "sk-ant-123456",
            "ANTHROPIC_BASE_URL": upstream.url, "BRIM_CONFIG": str(workspace.parent / "config.toml"),
            "BRIM_DATA_DIR": str(workspace.parent / "data"),
        }  # fmt: skip
        values = {"model": "openai/gpt-4o", "store": str(workspace.parent / "brim.db"), **(flags or {})}
        events: list[ev.Event] = []
        config = load_config(workspace, env, flags=values)
        opened = await open_agent(
            config, workspace, env, events.append, choice=choice, policy=RetryPolicy(scale=0), **more
        )
        try:
            yield opened, upstream, events
        finally:
            await opened.close()


def run(what: Callable[[], Any]) -> None:
    asyncio.run(what())


def user_text(body: dict[str, Any], at: int = -1) -> str:
    content = [each for each in body["messages"] if each["role"] == "user"][at]["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


@pytest.mark.parametrize("model", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5"])
def test_snippets_are_sent_marked_billed_and_not_stored(workspace: Path, model: str) -> None:
    """The request holds the snippet under a mark, before the user's own words; the bill has a line for it, `explain` names
    it, and the stored history has only what the user wrote."""

    async def check() -> None:
        async with asked(workspace, reply("So."), flags={"model": model}) as (opened, upstream, events):
            assert (await opened.agent.ask(QUESTION)).ok
            sent = user_text(upstream.requests[0].body)
            assert SNIPPETS in sent and SNIPPET in sent and "shop/pricing.py:1-2" in sent and TREE in sent
            assert sent.endswith(QUESTION)
            dialect = "anthropic" if model.startswith("anthropic") else "openai"
            assert violations(upstream.requests[0].body, upstream.requests[0].api, dialect) == []
            bill = next(event for event in events if isinstance(event, ev.Requested)).bill
            lines = {line["label"]: line["tokens"] for line in bill["lines"]}
            assert lines["snippets of the workspace"] > 20 and lines["directory tree"] > 10
            assert lines["user messages"] < 25
            assert sum(lines.values()) == bill["used"]
            assert "insert from workspace" in opened.agent.session.explain()
            assert "shop/pricing.py:1-2" in opened.agent.session.explain()
            stored = [each.message.text for each in opened.store.load(opened.agent.session.id)]
            assert stored == [QUESTION, "So."]

    run(check)


def test_what_was_sent_stays_where_it_was(workspace: Path) -> None:
    """Each later request, also one of another process, begins with the bytes of the one before: snippets stay beside the
    question they were found for, and the tree comes once."""

    async def check() -> None:
        script = (tool_calls(("read", {"path": "README.md"})), reply("So."), reply("Then."))
        async with asked(workspace, *script) as (opened, upstream, _):
            await opened.agent.ask(QUESTION)
            await opened.agent.ask("and what does Cart.add_item do?")
            first, second, third = (each.body["messages"] for each in upstream.requests)
            assert second[: len(first)] == first and third[: len(second)] == second
            assert SNIPPET in user_text(upstream.requests[2].body, -2)
            assert "self.items.append" in user_text(upstream.requests[2].body)
            assert str(third).count(TREE) == 1 and str(third).count("def apply_discount") == 1
            id = opened.agent.session.id
        (workspace / "shop/new.py").write_text("def brand_new():\n    pass\n")
        async with asked(workspace, reply("Again."), choice=Choice(id=id)) as (opened, upstream, _):
            await opened.agent.ask("what does brand_new do?")
            fourth = upstream.requests[0].body["messages"]
            assert fourth[: len(third)] == third
            assert "shop/new.py" in user_text(upstream.requests[0].body) and str(fourth).count(TREE) == 1

    run(check)


@pytest.mark.parametrize(
    ("flags", "snippets", "tree"),
    [
        ({"mode": "full"}, False, False),
        ({"mode": "compact"}, False, False),
        ({"mode": "full", "retrieval.snippets": "always"}, True, False),
        ({"mode": "full", "retrieval.tree": "always"}, False, True),
        ({"mode": "auto", "retrieval.snippets": "off"}, False, True),
        ({"mode": "auto", "retrieval.tree": "off"}, True, False),
        ({"mode": "auto", "retrieval.tree": "off", "retrieval.snippets": "off"}, False, False),
        ({"mode": "auto", "context.max_context_tokens": 8_000}, False, False),
        ({"mode": "auto", "context.retrieval_top_k": 0}, False, True),
    ],
)
def test_the_mode_the_settings_and_the_window_decide(
    workspace: Path, flags: dict[str, Any], snippets: bool, tree: bool
) -> None:
    """In auto both are there, elsewhere as asked for; each can be switched off, and a small window gets neither."""

    async def check() -> None:
        async with asked(workspace, reply("So."), flags=flags) as (opened, upstream, _):
            await opened.agent.ask(QUESTION)
            sent = user_text(upstream.requests[0].body)
            assert (SNIPPETS in sent, TREE in sent) == (snippets, tree)
            assert sent == QUESTION or snippets or tree

    run(check)


def test_snippets_take_a_share_of_the_window_at_most(workspace: Path) -> None:
    """Where the window is small for them, fewer snippets come, never more than their share."""
    for number in range(5):
        lines = "\n".join(f"    total += price[{line}] * discount[{line}]  # item {line}" for line in range(38))
        (workspace / f"shop/discount{number}.py").write_text(
            f"def discount_price_{number}(price, discount):\n{lines}\n"
        )

    async def check() -> None:
        shares = {}
        for window in (17_000, 100_000):
            flags = {"context.max_context_tokens": window, "retrieval.tree": "off"}
            async with asked(workspace, reply("So."), flags=flags) as (opened, _, events):
                await opened.agent.ask("how does the discount of an item change the total price?")
                bill = next(event for event in events if isinstance(event, ev.Requested)).bill
                (line,) = [line for line in bill["lines"] if line["kind"] == "inserts"]
                shares[window] = line["tokens"]
        assert 0 < shares[17_000] <= 17_000 * 0.08 < shares[100_000]

    run(check)


def test_what_the_rules_deny_is_not_shown(workspace: Path) -> None:
    """A file that the model may not read, or only after a question, is in neither snippets nor tree."""

    async def check() -> None:
        flags = {"permissions.deny": ["read(shop/pricing.py)"], "permissions.ask": ["read(shop/cart.py)"]}
        async with asked(workspace, reply("So."), flags=flags) as (opened, upstream, _):
            await opened.agent.ask(QUESTION + " and the cart's add_item?")
            sent = str(upstream.requests[0].body["messages"])
            assert "apply_discount" not in sent and "pricing.py" not in sent and "cart.py" not in sent
            assert "README.md" in sent

    run(check)


def test_a_file_handed_over_is_not_repeated(workspace: Path) -> None:
    """What stands in the message already, by --file or @, is neither asked about nor put beside it once more."""
    text = f'<file path="shop/pricing.py">\n{SNIPPET}\n</file>\n\n<file path="a.png">(attached)</file>\n\n{QUESTION}'
    assert without_attached(text) == (QUESTION, ["shop/pricing.py", "a.png"])

    async def check() -> None:
        async with asked(workspace, reply("So.")) as (opened, upstream, _):
            await opened.agent.ask(text)
            assert user_text(upstream.requests[0].body).count("def apply_discount") == 1

    run(check)


def test_an_epoch_begins_with_the_snippets_of_its_question(workspace: Path) -> None:
    """When the mode changes within a session the view is built anew: old snippets go, and in full none come."""

    async def check() -> None:
        async with asked(workspace, reply("So."), reply("Then."), reply("Last.")) as (opened, upstream, _):
            await opened.agent.ask(QUESTION)
            opened.agent.session.switch_mode("full")
            await opened.agent.ask(QUESTION)
            assert SNIPPETS not in str(upstream.requests[1].body)
            opened.agent.session.switch_mode("auto")
            await opened.agent.ask(QUESTION)
            assert str(upstream.requests[2].body).count(SNIPPET.split("\n")[0]) == 1

    run(check)


def test_a_session_that_keeps_nothing_leaves_no_index(workspace: Path) -> None:
    """With --no-session the index is made in memory; otherwise it lies beside the sessions."""

    async def check() -> None:
        folder = workspace.parent / "data" / "retrieval"
        async with asked(workspace, reply("So."), choice=Choice(keep=False)) as (opened, upstream, _):
            await opened.agent.ask(QUESTION)
            assert SNIPPET in user_text(upstream.requests[0].body) and not folder.exists()
        async with asked(workspace, reply("So.")) as (opened, upstream, _):
            await opened.agent.ask(QUESTION)
            assert len(list(folder.glob("*.db"))) == 1

    run(check)


def test_folders_that_are_no_project_are_left_alone(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root, the home folder and what holds it are never indexed."""
    monkeypatch.setenv("HOME", str(workspace))
    assert is_broad(Path("/")) and is_broad(workspace) and is_broad(workspace.parent)
    assert not is_broad(workspace / "shop")


def test_a_wrong_choice_is_named(workspace: Path) -> None:
    """A value that is none of the three is refused with those there are."""
    with pytest.raises(ConfigError, match=r"retrieval.snippets is 'sometimes'"):
        load_config(workspace, {}, flags={"retrieval.snippets": "sometimes"}, user_file=workspace / "none.toml")
