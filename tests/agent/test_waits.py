"""What a tool call is said to have taken is its own time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from brim.agent import events as ev
from brim.agent.agent import Agent
from brim.agent.config import load_config
from brim.agent.opening import Choice, open_agent
from brim.agent.permit import Answer, Question
from brim.testing import ScriptedProvider, reply, tool_call

THINKS_S = 1.5


def test_the_time_to_answer_a_question_is_not_the_calls(tmp_path: Path) -> None:
    """A user who thinks about a command does not make the command slow."""
    told: list[ev.ToolFinished] = []

    def emit(event: ev.Event) -> None:
        if isinstance(event, ev.ToolFinished):
            told.append(event)

    async def ask(question: Question) -> Answer:
        await asyncio.sleep(THINKS_S)
        return "once"

    async def work(url: str) -> None:
        env = {
            "OPENAI_API_KEY": "sk-test-1234567890", "OPENAI_BASE_URL": url, "BRIM_MODEL": "openai/gpt-4o",
            "BRIM_DATA_DIR": str(tmp_path / "data"), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin",
        }  # fmt: skip
        config = load_config(tmp_path, env, user_file=tmp_path / "none.toml")
        opened = await open_agent(config, tmp_path, env, emit, choice=Choice(keep=False), ask=ask)
        try:
            agent: Agent = opened.agent
            assert (await agent.ask("go")).ok
        finally:
            await opened.close()

    calls = [tool_call("write", {"path": f"{name}.txt", "content": "x"}) for name in ("one", "two")]
    with ScriptedProvider([*calls, reply("done")]) as upstream:
        asyncio.run(work(upstream.base_url))
    assert len(told) == 2 and all(each.seconds < THINKS_S for each in told)
