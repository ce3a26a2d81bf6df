"""What stands between a model and the machine in `ai`: the sandbox, the masking of keys, and remembered answers."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from brim.agent import events as ev
from brim.agent.config import load_config
from brim.agent.opening import Opened, open_agent
from brim.agent.permit import Answer, Question
from brim.errors import ConfigError, UsageError
from brim.permissions import sandbox
from brim.permissions.redact import _patterns
from brim.permissions.rulebook import load_rules
from brim.permissions.sandbox import Probe, probe
from brim.providers import RetryPolicy
from brim.testing import ScriptedProvider, reply, tool_call
from shared_ai import make_home
from shared_terminal import Terminal

needs_bwrap = pytest.mark.skipif(probe().bwrap is None, reason=probe().why or "no sandbox")
KEY = "sk-proj-" + "a1B2" * 8


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder outside /tmp, since the sandbox has a /tmp of its own: a write there must fail, not vanish."""
    folder = Path(__file__).parent / ".guards"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "work").mkdir(parents=True)
    yield folder
    shutil.rmtree(folder)


@asynccontextmanager
async def opened_in(
    base: Path,
    upstream: ScriptedProvider,
    events: list[ev.Event],
    *,
    ask: Callable[[Question], Any] | None = None,
    **flags: Any,
) -> AsyncIterator[Opened]:
    env = {
        "OPENAI_BASE_URL": upstream.base_url, "OPENAI_API_KEY": "sk-test-123456", "BRIM_CONFIG": str(base / "config.toml"),
    }  # fmt: skip
    values = {"model": "openai/gpt-4o", "store": str(base / "brim.db")}
    config = load_config(base / "work", env, flags={**values, **{k.replace("__", "."): v for k, v in flags.items()}})
    opened = await open_agent(config, base / "work", env, events.append, ask=ask, policy=RetryPolicy(scale=0))
    try:
        yield opened
    finally:
        await opened.close()


@needs_bwrap
def test_with_sandbox_auto_bash_writes_only_in_the_workspace(base: Path) -> None:
    """A command that is allowed by every rule changes the workspace and nothing else; with `off` it is not held."""
    canary = base / "canary"
    command = "echo in > inside; rm -f ../canary; echo out > ../planted"

    async def check(mode: str) -> list[ev.Event]:
        events: list[ev.Event] = []
        canary.write_text("alive\n")
        async with ScriptedProvider([tool_call("bash", {"command": command}), reply("done")]) as upstream:
            flags: dict[str, Any] = {"permissions__mode": "allow-all", "permissions__sandbox": mode}
            async with opened_in(base, upstream, events, **flags) as opened:
                assert (await opened.agent.ask("go")).ok
        return events

    events = asyncio.run(check("auto"))
    assert (base / "work" / "inside").read_text() == "in\n"
    assert canary.read_text() == "alive\n" and not (base / "planted").exists()
    assert not [event for event in events if isinstance(event, ev.Notice)]
    asyncio.run(check("off"))
    assert not canary.exists() and (base / "planted").read_text() == "out\n"


def test_without_bubblewrap_it_is_told_once_or_refused(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` runs the commands and says once that there is no sandbox; `required` opens nothing and names the way out."""
    missing: Probe = probe("bwrap-that-is-not-there")
    monkeypatch.setattr(sandbox, "probe", lambda: missing)

    async def check(mode: str) -> list[ev.Event]:
        events: list[ev.Event] = []
        script = [tool_call("bash", {"command": f"echo {n} >> made"}) for n in (1, 2)]
        async with ScriptedProvider([*script, reply("done")]) as upstream:
            flags: dict[str, Any] = {"permissions__mode": "allow-all", "permissions__sandbox": mode}
            async with opened_in(base, upstream, events, **flags) as opened:
                assert (await opened.agent.ask("go")).ok
        return events

    told = [event for event in asyncio.run(check("auto")) if isinstance(event, ev.Notice)]
    assert len(told) == 1 and told[0].kind == "sandbox" and "without a sandbox" in told[0].text
    assert (base / "work" / "made").read_text() == "1\n2\n"
    with pytest.raises(ConfigError) as refused:
        asyncio.run(check("required"))
    assert "required" in refused.value.message and "install bubblewrap" in (refused.value.hint or "")


@pytest.mark.skipif(importlib.util.find_spec("detect_secrets") is None, reason="the extra `redact` is not installed")
def test_a_masked_key_never_reaches_the_provider(base: Path) -> None:
    """A key in a file is masked in every request, in events and in what the model recalls; the original keeps it."""
    (base / "work" / "settings.txt").write_text(f"name = x\nkey = {KEY}\n")
    events: list[ev.Event] = []

    async def check() -> None:
        async with ScriptedProvider([]) as upstream, opened_in(base, upstream, events, redact=True) as opened:
            upstream.add(tool_call("read", {"path": "settings.txt"}), reply("seen"))
            assert (await opened.agent.ask("read it")).ok
            first = next(event for event in events if isinstance(event, ev.ToolFinished))
            assert first.handle is not None and "[secret: OpenAI API key, 40 characters]" in first.text
            upstream.add(tool_call("recall", {"handle": first.handle}), reply("seen again"))
            assert (await opened.agent.ask("recall it")).ok
            recalled = [event for event in events if isinstance(event, ev.ToolFinished)][-1]
            assert recalled.name == "recall" and "[secret: OpenAI API key" in recalled.text
            assert KEY in opened.store.blobs(opened.agent.session.id).get_text(first.handle)
            sent = json.dumps([each.body for each in upstream.requests])
            assert len(upstream.requests) == 4 and "[secret: OpenAI API key" in sent and KEY not in sent
            assert not any(KEY in str(event) for event in events)

    asyncio.run(check())


def test_redact_without_the_extra_names_it(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where detect-secrets is not installed, `redact = true` is refused before anything is asked."""
    monkeypatch.setitem(__import__("sys").modules, "detect_secrets.core.plugins.util", None)
    _patterns.cache_clear()

    async def check() -> None:
        async with ScriptedProvider([]) as upstream, opened_in(base, upstream, [], redact=True):
            pass

    try:
        with pytest.raises(ConfigError) as refused:
            asyncio.run(check())
    finally:
        _patterns.cache_clear()
    assert "pipx install 'brim[redact]'" in (refused.value.hint or "")


def test_always_survives_a_restart(base: Path) -> None:
    """A rule that was answered with always is in permissions.toml, and the next start does not ask for it."""
    asked: list[Question] = []

    async def always(question: Question) -> Answer:
        asked.append(question)
        return "always"

    async def check(name: str) -> None:
        script = [tool_call("bash", {"command": f"touch {name}"}), reply("done")]
        async with ScriptedProvider(script) as upstream, opened_in(base, upstream, [], ask=always) as opened:
            assert (await opened.agent.ask("go")).ok

    asyncio.run(check("one"))
    assert load_rules(base / "permissions.toml")["allow"] == ["bash(touch *)"]
    asyncio.run(check("two"))
    assert len(asked) == 1 and (base / "work" / "one").exists() and (base / "work" / "two").exists()


def test_a_project_may_only_tighten_the_sandbox(base: Path) -> None:
    """A project's file may require the sandbox and cut the network; what would loosen either is left out and told."""
    project = base / "work" / ".brim"
    project.mkdir()
    env = {"BRIM_CONFIG": str(base / "config.toml")}
    (project / "config.toml").write_text('redact = false\n[permissions]\nsandbox = "off"\nnetwork = true\n')
    config = load_config(base / "work", env)
    assert config.get("permissions.sandbox") == "auto" and len(config.warnings) == 3
    (project / "config.toml").write_text('redact = true\n[permissions]\nsandbox = "required"\nnetwork = false\n')
    config = load_config(base / "work", env)
    assert config.warnings == [] and config.general().redact
    assert config.permissions().box() == sandbox.Sandbox(mode="required", network=False)
    with pytest.raises(UsageError, match="sandbox is 'maybe'"):
        load_config(base / "work", env, flags={"permissions.sandbox": "maybe"})


def test_always_at_the_terminal_is_listed_and_forgotten(tmp_path: Path) -> None:
    """`a` at the question: `brim permissions list` shows the rule as remembered, and `forget` drops it."""
    import subprocess
    import sys

    with ScriptedProvider([tool_call("bash", {"command": "touch made.txt"}), reply("made it")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        with Terminal(home) as terminal:
            terminal.wait("/help")
            terminal.enter("make a file")
            terminal.wait("[a]lways: bash(touch *)")
            terminal.enter("a")
            terminal.wait("made it")
            terminal.enter("/exit")  # kept by the terminal where the answer is not over yet
            terminal.wait("left with 0")

    def brim(*words: str) -> str:
        argv = [sys.executable, "-m", "brim.cli.manage", "permissions", *words]
        return subprocess.run(
            argv, cwd=home.work, env=home.env, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    rule = {"decision": "allow", "rule": "bash(touch *)", "origin": "remembered"}
    assert json.loads(brim("list", "--json"))["rules"] == [rule]
    brim("forget", "bash(touch *)")
    assert json.loads(brim("list", "--json"))["rules"] == []
