"""The two-round experiment: a real agent, a project on disk, a scripted model that knows only what it was sent."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from brim.agent.config import load_config
from brim.replay.experiment import REFERENCE, Round, missing_facts, render_experiment, run_experiment
from brim.replay.project import FILES, QUESTIONS, make_project
from brim.replay.reader import Reader


def rounds_of(folder: Path, **more: object) -> list[Round]:
    config = load_config(folder, {}, user_file=folder / "none.toml")
    return asyncio.run(run_experiment(config, {"PATH": os.environ["PATH"]}, **more))  # type: ignore[arg-type]


def test_six_figures_beside_the_reference(tmp_path: Path) -> None:
    """Each mode answers both questions right in a window of 128,000, and every figure has its reason."""
    rounds = rounds_of(tmp_path)
    assert [(each.mode, each.round) for each in rounds] == [(m, n) for m in ("full", "compact", "auto") for n in (1, 2)]
    assert [each.reference for each in rounds] == [
        figure for mode in ("full", "compact", "auto") for figure in REFERENCE[mode]
    ]
    for each in rounds:
        assert (each.error, each.missed, each.window) == (None, [], 128_000)
        assert each.right == each.facts == (3 if each.round == 1 else 6)
        assert each.requests > 1 and each.sent > each.tokens > 1_000
        assert sum(each.parts.values()) == pytest.approx(each.tokens, rel=0.01)
    text = render_experiment(rounds, "scripted")
    for each in rounds:
        assert f"{each.tokens:,}" in text and f"{each.mode} {each.round}: made of" in text
    for figure in ("3.1K", "8.4K", "3.9K", "4.2K"):
        assert figure in text


def test_a_small_window_makes_the_modes_work(tmp_path: Path) -> None:
    """In a window that the second round passes, compact and auto shorten what they send, fit, and say what they did."""
    rounds = {(each.mode, each.round): each for each in rounds_of(tmp_path, window=5_000, modes=["full", "compact"])}
    full, compact = rounds["full", 2], rounds["compact", 2]
    assert compact.passes and compact.tokens <= 5_000
    assert full.tokens <= 5_000 and full.missed == []
    assert all(each.error is None for each in rounds.values())
    assert compact.requests > full.requests  # what was folded is read again
    assert "shortened: " in render_experiment(list(rounds.values()), "scripted")


def test_the_scripted_model_knows_only_what_it_is_sent() -> None:
    """Without the files in view it asks for them, and what it has been told of it does not ask for again."""
    reader = Reader()
    question = {"role": "user", "content": QUESTIONS[1].text}

    def answer(*messages: dict[str, object]) -> dict[str, object]:
        done = asyncio.run(reader.complete({"messages": [question, *messages]}))
        assert isinstance(done.message, dict)
        return done.message

    first = answer()
    assert [json.loads(call["function"]["arguments"])["path"] for call in first["tool_calls"]] == [  # type: ignore[attr-defined]
        "src/tinyshop/main.py"
    ]
    shown = "\n".join(text for name, text in FILES.items() if name.endswith(".py"))
    whole = answer({"role": "assistant", "content": shown})
    assert "tool_calls" not in whole and missing_facts(QUESTIONS[1], str(whole["content"])) == []
    part = shown.replace("print_report(config, booked", "nothing(config, booked").replace("report", "xxx")
    assert "prints the report" in missing_facts(
        QUESTIONS[1], str(answer({"role": "assistant", "content": part})["content"])
    )


def test_the_project_runs(tmp_path: Path) -> None:
    """The project is a real one: its modules compile, and its stock is booked as its README says."""
    project = make_project(tmp_path / "shop")
    code = (
        "from tinyshop.stock import open_stock\nfrom tinyshop.config import load_config\nfrom pathlib import Path\n"
        "config = load_config(Path('shop.toml'))\nprint(config.sign, open_stock(config.data / 'stock.csv').price('bread'))"
    )
    env = {"PYTHONPATH": "src", "PYTHONIOENCODING": "utf-8", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, env=env, capture_output=True, timeout=60, check=True
    )
    assert done.stdout.decode().split() == ["€", "280"]
    subprocess.run([sys.executable, "-m", "compileall", "-q", "src", "tests"], cwd=project, timeout=60, check=True)


@pytest.mark.slow
@pytest.mark.local_model
def test_on_the_embedded_model(tmp_path: Path) -> None:
    """The embedded model is asked through the same agent: every round has tokens, a time and a count of right facts."""
    from brim.providers.models import list_models

    if not any(model.path for model in list_models()):
        pytest.skip("needs the embedded model: brim models pull smollm2")
    rounds = rounds_of(tmp_path, model="local/smollm2", modes=["auto"])
    assert [each.round for each in rounds] == [1, 2]
    assert all(each.window == 8_192 and each.tokens > 100 and each.seconds > 0 for each in rounds)
