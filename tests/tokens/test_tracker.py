"""Counts anchored on what a provider reported, and what is learned from it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brim.conversation import Message, Text, assistant, call, result
from brim.tokens import Calibration, Tracker, counter_for

DATA = Path(os.environ.get("BRIM_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
MODEL = "google/gemini-3-pro-preview"


def test_a_tracker_adds_what_came_since_to_the_exact_count() -> None:
    """After a response the next request is its exact count and the scaled estimate of what was added."""
    tracker = Tracker()
    assert tracker.estimate(1_000) == 1_000
    tracker.record(counted=1_000, exact=1_100)
    assert tracker.estimate(1_000) == 1_100
    assert tracker.estimate(1_500) == 1_100 + 550
    assert tracker.estimate(500) == 1_100 - 550
    tracker.record(counted=1_500, exact=0)  # not reported: the anchor stays
    assert tracker.estimate(1_500) == 1_650
    tracker.reset()
    assert tracker.anchor is None and tracker.estimate(1_000) == 1_100


def test_a_tracker_survives_json() -> None:
    """State is plain JSON and comes back as it was."""
    tracker = Tracker(factor=1.25)
    assert Tracker.from_dict(json.loads(json.dumps(tracker.as_dict()))).estimate(100) == 125
    tracker.record(200, 260)
    assert Tracker.from_dict(json.loads(json.dumps(tracker.as_dict()))).estimate(300) == tracker.estimate(300) == 390


def test_calibration_takes_the_median_and_keeps_an_upper_bound() -> None:
    """One odd request does not move the factor; the bound for budgets covers every ratio seen."""
    calibration = Calibration()
    assert (calibration.factor("m"), calibration.upper("m"), calibration.samples("m")) == (1.0, 1.0, 0)
    for actual in (1_100, 1_120, 1_110, 1_900, 1_105):
        assert calibration.add("m", 1_000, actual)
    assert calibration.factor("m") == 1.11
    assert calibration.upper("m") == pytest.approx(1.9 * 1.02)
    assert calibration.factor("another") == 1.0
    for _ in range(40):
        calibration.add("m", 1_000, 900)
    assert calibration.factor("m") == 0.9 and calibration.upper("m") == 1.0


def test_calibration_learns_nothing_from_what_tells_nothing() -> None:
    """Tiny requests, absurd ratios, missing figures and prompts the server cut leave the factor alone."""
    calibration = Calibration()
    assert not calibration.add("m", 20, 40)
    assert not calibration.add("m", 1_000, 0)
    assert not calibration.add(None, 1_000, 1_000)
    assert not calibration.add("m", 1_000, 90_000)
    assert not calibration.add("m", 9_000, 2_048)
    assert calibration.samples("m") == 0


def test_a_server_that_cut_the_prompt_is_seen() -> None:
    """2,048 tokens reported for about 9,000 sent is a cut; a difference under 30% is not."""
    calibration = Calibration()
    assert calibration.looks_cut("llama", 9_000, 2_048)
    assert not calibration.looks_cut("llama", 9_000, 6_500)
    assert not calibration.looks_cut("llama", 9_000, 0)
    for _ in range(3):
        calibration.add("dense", 1_000, 800)
    assert not calibration.looks_cut("dense", 9_000, 6_000)  # this tokenizer sees fewer, as known from before


def test_calibration_survives_json_and_rubbish() -> None:
    """Ratios come back as they were; what is no ratio is left out."""
    calibration = Calibration()
    calibration.add("m", 1_000, 1_200)
    copy = Calibration.from_dict(json.loads(json.dumps(calibration.as_dict())))
    assert copy.factor("m") == 1.2
    odd = Calibration.from_dict({"m": ["x", None, True, 1.5, 900], "n": "text", "o": {}})
    assert odd.factor("m") == 1.5 and odd.samples("n") == odd.samples("o") == 0
    assert Calibration.from_dict(None).as_dict() == {}


def recorded() -> Iterator[list[tuple[int, int]]]:
    """Our count and the provider's for each request of the recorded sessions."""
    counter = counter_for(MODEL)
    with (DATA / "coding_mini_swe_gemini3.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            session: dict[str, Any] = json.loads(line)
            counts = counter.count_messages([message(wire) for wire in session["messages"]])
            requests = [
                (sum(counts[: usage["message_index"]]) + counter.priming, usage["prompt_tokens"])
                for usage in session["recorded_usage"]
                if usage["cost_usd"]  # without a cost the figures were not recorded
            ]
            if len(requests) > 3:
                yield requests


def message(wire: dict[str, Any]) -> Message:
    text = wire["content"] or ""
    if wire["role"] == "tool":
        return result(wire["tool_call_id"], text)
    if wire["role"] == "assistant":
        calls = wire.get("tool_calls") or []
        return assistant(text, *(call(c["function"]["name"], c["function"]["arguments"], id=c["id"]) for c in calls))
    return Message(wire["role"], (Text(text),))


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


@pytest.mark.skipif(not DATA.exists(), reason="the recorded transcripts are not here: set BRIM_DATA to their folder")
def test_recorded_sessions_are_tracked_within_a_percent() -> None:
    """On recorded Gemini sessions anchored counts are within 1% at the median and 3% at p95; with the factor of the
    first three calls alone, within 4% and 8%; and the upper bound of a whole model's experience holds."""
    anchored: list[float] = []
    fixed: list[float] = []
    known = Calibration()
    above = total = 0
    for requests in recorded():
        tracker, calibration = Tracker(), Calibration()
        for number, (counted, actual) in enumerate(requests):
            if number:
                anchored.append(abs(tracker.estimate(counted) / actual - 1))
            if number < 3:
                calibration.add(MODEL, counted, actual)
            else:
                fixed.append(abs(counted * calibration.factor(MODEL) / actual - 1))
            if known.samples(MODEL) >= 5:
                total += 1
                above += actual > counted * known.upper(MODEL)
            tracker.record(counted, actual)
            known.add(MODEL, counted, actual)
    assert len(anchored) > 1_000
    assert percentile(anchored, 0.5) < 0.01 and percentile(anchored, 0.95) < 0.03
    assert percentile(fixed, 0.5) < 0.04 and percentile(fixed, 0.95) < 0.08
    assert above / total < 0.02
