"""`brim report` and `brim cost`: figures that a count by hand gives, and no amount where nobody knows the price."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brim.conversation import assistant, user
from brim.store import open_store


def brim(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "BRIM_DATA_DIR": str(data), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "brim.cli.manage", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)


def kept(data: Path, turns: list[list[dict[str, Any]]], model: str) -> None:
    with open_store(data / "brim.db") as store:
        id = store.new_session(project="/p", model=model).id
        seq = 0
        for turn in turns:
            store.append(id, [user("go on"), assistant("gone on")])
            seq += 1
            for number, facts in enumerate(turn, 1):
                store.record_request(id, model=model, mode="auto", seq=seq, meta={"step": number}, **facts)
            seq += 1


def test_a_turn_of_unknown_price_does_not_make_others_cheap(tmp_path: Path) -> None:
    """Cost per turn is that of turns whose price is known: an unpriced model, or one request without a price, adds none."""
    usage = {"input": 1_000, "output": 10}
    priced = [{"usage": usage, "cost": 0.01}, {"usage": usage, "cost": 0.03}]
    kept(
        tmp_path, [priced, [{"usage": usage, "cost": 0.02}, {"usage": usage}], [{"error": "refused"}]], "openai/gpt-4o"
    )
    kept(tmp_path, [[{"usage": usage}]] * 5, "nobody/knows")
    (group,) = json.loads(brim(tmp_path, "report", "--json").stdout)
    assert (group["turns"], group["requests"], group["errors"]) == (8, 10, 1)
    assert group["cost_per_turn"] == pytest.approx(0.04)
    by_model = {each["key"]: each for each in json.loads(brim(tmp_path, "report", "--by", "model", "--json").stdout)}
    assert by_model["nobody/knows"]["cost_per_turn"] is None
    (sums,) = json.loads(brim(tmp_path, "cost", "--by", "mode", "--json").stdout)
    assert (sums["cost"], sums["unpriced"]) == (pytest.approx(0.06), 6)


def test_requests_of_unknown_price_are_not_called_free(tmp_path: Path) -> None:
    """`brim cost` says where no price is known, and how many requests a sum leaves out; what failed cost nothing."""
    usage = {"input": 1_000, "output": 10}
    kept(tmp_path, [[{"usage": usage}], [{"error": "refused"}]], "nobody/knows")
    alone = brim(tmp_path, "cost", "--by", "model").stdout
    assert "no price known" in alone and "of none of them is the price known" in alone and "$" not in alone
    kept(tmp_path, [[{"usage": usage, "cost": 0.02}], [{"usage": usage}]], "openai/gpt-4o")
    both = brim(tmp_path, "cost", "--by", "model").stdout
    assert "$0.0200, 1 without a known price" in both and "in all $0.0200, 2 without a known price" in both


@pytest.mark.parametrize("command", ["cost", "report"])
def test_nothing_recorded_is_said(tmp_path: Path, command: str) -> None:
    """Without requests there is no empty table but a sentence with the next step; the JSON is an empty list."""
    told = brim(tmp_path, command)
    assert (told.returncode, told.stdout) == (0, "") and "brim audit" in told.stderr
    assert json.loads(brim(tmp_path, command, "--json").stdout) == []
