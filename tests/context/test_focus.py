"""`focus`: what the user asked a summary to keep is in it, whoever writes it, and only when it was asked."""

from __future__ import annotations

from typing import Any

import pytest

from brim.context import Conversation
from brim.context.summary import deterministic_summary
from brim.conversation import Message, assistant, call, result, user
from brim.tokens import counter_for

COUNT = counter_for("gpt-4").count_text
SECRET = "the flux capacitor needs 1.21 gigawatts in slot C7"


def history(turns: int = 14) -> list[Message]:
    """Turns about everything; one result, early on, has a line nobody but the note asks for."""
    made: list[Message] = []
    for turn in range(turns):
        made.append(user(f"step {turn}: look at module{turn} and tell me what it does"))
        made.append(assistant("", call("bash", {"command": f"cat module{turn}.py"}, id=f"c{turn}")))
        body = [f"line {n} of module{turn}: nothing that matters to anybody here" for n in range(60)]
        if turn == 1:
            body[30] = SECRET
        made.append(result(f"c{turn}", "\n".join(body)))
        made.append(assistant(f"module{turn} does thing number {turn}"))
    return made


def conversation(**settings: Any) -> Conversation:
    return Conversation("openai.chat", model="gpt-4o", messages=history(), settings=settings)


@pytest.mark.parametrize("mode", ["compact", "auto"])
def test_a_note_brings_its_lines_into_the_summary(mode: str) -> None:
    """Without a note the line is gone; with it, it is in the view, named as what a tool printed; a later note writes the
    summary again, and without one nothing changes any more."""
    plain = conversation()
    plain.prepare(mode=mode)
    view = str(plain.prepare(mode=mode, epoch=True).request["messages"])
    assert mode == "auto" or SECRET not in view  # auto selects, and this turn is as near as any

    noted = conversation()
    whole = noted.prepare(mode=mode)
    short = noted.prepare(mode=mode, epoch=True, focus="what does the flux capacitor need?")
    assert f"[tool] {SECRET}" in str(short.request["messages"]) and short.used < whole.used / 2 + 200
    after = noted.prepare(mode=mode, focus="what does the flux capacitor need?")
    assert SECRET in str(after.request["messages"])
    assert mode == "auto" or str(after.request["messages"]) == str(short.request["messages"])
    other = str(noted.prepare(mode=mode, epoch=True, focus="module3").request["messages"])
    assert "module3 does thing number 3" in other
    assert mode == "auto" or SECRET not in other


def test_a_model_that_writes_the_summary_is_told_the_note() -> None:
    """The summarizer's request names what the user wants kept; without a note it does not."""
    asked: list[str] = []

    def write(chat: list[dict[str, Any]]) -> str:
        asked.append(str(chat[0]["content"]))
        return "## Goal\nlook at the modules"

    made = conversation(summarizer=write)
    made.prepare(mode="compact")
    made.prepare(mode="compact", epoch=True, focus="the wiring of slot C7")
    assert asked and all("keep this above all" in text and "the wiring of slot C7" in text for text in asked)
    asked.clear()
    made = conversation(summarizer=write)
    made.prepare(mode="compact")
    made.prepare(mode="compact", epoch=True)
    assert asked and not any("above all" in text for text in asked)


def test_the_note_is_read_in_chinese_and_stays_within_its_share() -> None:
    """CJK notes match by bigrams; lines that match leave most of the budget to the rest."""
    said = [user(f"第{n}步：检查模块") for n in range(3)] + [
        assistant("\n".join(f"数据库连接超时设置为 {n} 秒，见配置" for n in range(200))),
        user("Run the tests, never touch main.py."),
        assistant("done"),
    ]
    made = deterministic_summary(said, budget_tokens=800, count=COUNT, focus="数据库超时")
    assert made.tokens <= 800 and "数据库连接超时设置" in made.text and "never touch main.py" in made.text
