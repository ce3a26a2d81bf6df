"""Shapes: a conversation is read in whatever shape it is kept, and what is put right is told from what cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from brim.replay.play import Plays, play
from brim.replay.regimes import DEFAULT
from brim.replay.sources import find_files, read_transcripts
from brim.replay.transcript import Transcript
from brim.replay.yardstick import text_of
from shared_replay import small_run, step, write_lines


def read(path: Path) -> tuple[list[Transcript], list[str]]:
    warnings: list[str] = []
    return [found.transcript for found in read_transcripts(find_files([path]), warnings.append)], warnings


RUN = small_run(3)


@pytest.mark.parametrize(
    "value",
    [
        {"messages": RUN},
        {"custom_id": "b", "url": "/v1/chat/completions", "body": {"model": "gpt-4o", "messages": RUN}},
        {"request": {"messages": RUN[:-1]}, "response": {"choices": [{"message": RUN[-1]}]}},
        {"request": {"messages": RUN[:-1]}, "response": {"body": {"choices": [{"message": RUN[-1]}]}}},
        {"data": {"messages": RUN}},
        {"inputs": {"messages": RUN}, "outputs": {}},
        {"input": {"messages": RUN}, "preferred_output": []},
        RUN,
    ],
    ids=["messages", "batch", "logged", "logged-body", "wrapped", "traced", "preference", "list"],
)
def test_every_shape_holds_the_same_messages(tmp_path: Path, value: Any) -> None:
    """The same conversation comes out of each shape, a line each or alone in a file, untouched."""
    lines, warnings = read(write_lines(tmp_path / "a.jsonl", [value, value]))
    assert [each.messages for each in lines] == [RUN, RUN] and not warnings
    (tmp_path / "b.json").write_text(json.dumps(value, indent=2))
    (alone,), warnings = read(tmp_path / "b.json")
    assert alone.messages == RUN and not warnings


def test_sharegpt(tmp_path: Path) -> None:
    """ShareGPT's turns become messages; a call and its observation become a pair, an observation alone stays text."""
    turns = [("system", "be brief"), ("human", "list src"), ("function_call", '{"name": "ls", "arguments": {"path": "src"}}'),
             ("observation", "main.py"), ("gpt", "main.py"), ("tool", "a note"), ("gpt", "seen")]  # fmt: skip
    row: dict[str, Any] = {"id": "s", "conversations": [{"from": who, "value": text} for who, text in turns]}
    (first, _), warnings = read(write_lines(tmp_path / "a.jsonl", [row, row]))
    assert not warnings and first.id == "s"
    assert [m["role"] for m in first.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert first.messages[3]["tool_call_id"] == first.messages[2]["tool_calls"][0]["id"]
    assert text_of(first.messages[2]) == "\nls\nsrc"
    row["conversations"][1]["from"] = "narrator"
    assert read(write_lines(tmp_path / "b.jsonl", [row]))[1] == ["b.jsonl, line 1: skipped, turn 2 is from 'narrator'"]


def test_old_and_careless_calls(tmp_path: Path) -> None:
    """Calls of the form before tools, with arguments that are objects, not wrapped, or of custom tools are put right."""
    calls: list[dict[str, Any]] = [
        {"function_call": {"name": "ls", "arguments": '{"path": "src_dir"}'}},
        {"tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": {"path": "src_dir"}}}]},
        {"tool_calls": [{"id": "c", "name": "ls", "arguments": {"path": "src_dir"}}]},
        {"tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "ls", "input": "src_dir"}}]},
    ]
    for number, call in enumerate(calls):
        old = "function_call" in call
        result = {"role": "function", "name": "ls"} if old else {"role": "tool", "tool_call_id": "c"}
        messages = [{"role": "user", "content": "list"}, {"role": "assistant", "content": None, **call},
                    {**result, "content": "main.py"}, {"role": "assistant", "content": "main.py"}]  # fmt: skip
        (found,), warnings = read(write_lines(tmp_path / f"{number}.jsonl", [{"messages": messages}]))
        assert not warnings and text_of(found.messages[1]) == "\nls\nsrc_dir"
        assert found.messages[2]["role"] == "tool"
        assert found.messages[2]["tool_call_id"] == found.messages[1]["tool_calls"][0]["id"]
        outcome = play(found, Plays(("full", "auto"), DEFAULT[:1]))
        assert [played.totals.invalid for played in outcome.plays] == [0, 0, 0]


def test_what_cannot_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    """A conversation with a hole in it is left out and named; those around it are read."""
    good, said = {"messages": RUN}, {"role": "assistant", "content": "x"}
    bad: list[Any] = [
        {"messages": [{"content": "no role"}, said]},
        {"messages": [said, {**said, "tool_calls": [None]}]},
        {"messages": [{"role": "function", "name": "ls", "content": "x"}]},
        {"messages": [1, 2]},
        {"meta": True},
    ]
    found, warnings = read(write_lines(tmp_path / "a.jsonl", [good, *bad, good]))
    assert len(found) == 2
    assert [each.partition("skipped, ")[2] for each in warnings] == [
        "message 1 has no role", "a call of message 2 names no tool", "message 1 is the result of no call",
        "it has no list of messages", "it has no list of messages",
    ]  # fmt: skip
    assert [each.partition(":")[0] for each in warnings] == [f"a.jsonl, line {n}" for n in range(2, 7)]


def test_odd_content_is_played(tmp_path: Path) -> None:
    """Content that is a number, an object or a list of bare strings, arguments nested without end, and lone surrogates
    are played like any other, through fixed policies and modes."""
    odd: list[Any] = [{"role": "user", "content": 5}, {"role": "assistant", "content": {"answer": "file_a.py"}},
                      {"role": "user", "content": ["bare", {"type": "text", "text": None}]},
                      {"role": "assistant", "content": "half \ud83d of file_a.py"}]  # fmt: skip
    call = {"id": "c", "type": "function", "function": {"name": "l\ud83ds", "arguments": "[" * 100_000}}
    odd += [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]
    odd += [*step(9, "ls", {"path": "src"}, "file_a.py"), {"role": "assistant", "content": "file_a.py"}]
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "s\ud800\x1b[31m\n", "messages": odd}) + "\n")
    (found,), warnings = read(tmp_path / "a.jsonl")
    assert not warnings and found.id.isprintable()
    outcome = play(found, Plays(("mask-1", "cut-100", "compact", "auto"), DEFAULT[:1]))
    assert outcome.requests == 4 and len(outcome.plays) == 5
    assert all(label.isprintable() for played in outcome.plays for label in played.totals.filled)
