"""Policies by name: what `--policy` takes, and that brim's modes are replayed as their users run them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brim
from brim.errors import BrimError, UsageError
from brim.formats import violations
from brim.replay.play import Check, Plays, play
from brim.replay.policies import FIXED, expand, parse_policy
from brim.replay.regimes import DEFAULT, parse_regime, parse_regimes
from brim.replay.transcript import Transcript
from brim.replay.yardstick import text_of, weight
from shared_replay import small_run


def test_names_stand_for_policies() -> None:
    """Groups expand, repeats go, and without a name there are the fixed policies and the modes."""
    assert expand([]) == [*FIXED, "full", "compact", "auto"]
    assert expand(["modes", "mask-3", "auto", "everything"]) == ["full", "compact", "auto", "mask-3"]
    assert [parse_policy(name).name for name in FIXED] == list(FIXED)
    assert parse_policy("auto, window=64_000, history-budget=none").name == "auto,window=64000,history_budget=none"
    assert parse_policy("auto").priced and not parse_policy("full").priced
    assert not parse_policy("auto,price_weighing=false").priced


@pytest.mark.parametrize(
    ("spec", "error", "told"),
    [
        ("mask", UsageError, "no policy 'mask'"),
        ("mask-0", UsageError, "a number of 0"),
        ("mask-3,keep=2", UsageError, "takes no settings"),
        ("auto,window", UsageError, "is no setting"),
        ("auto,window=-5", UsageError, "window=-5"),
        ("auto,window=true", UsageError, "window=True"),
        ("auto,max_output=-5", UsageError, "max_output=-5"),
        ("auto,recall_tool=maybe", UsageError, "recall_tool=maybe"),
        ("auto,model=5", UsageError, "model=5"),
        ("auto,history_budget=x", UsageError, "policy auto: bad setting"),
        ("auto,windw=64000", UsageError, "no setting 'windw'"),
    ],
)
def test_wrong_names_are_told(spec: str, error: type[BrimError], told: str) -> None:
    """A name or setting that does not exist is an error that says so before anything runs."""
    with pytest.raises(error, match=told):
        parse_policy(spec)


def test_regimes_by_number_and_by_model() -> None:
    """1.25/0.1 is a regime, and so is a model whose prices are known."""
    assert parse_regimes([]) == DEFAULT
    assert parse_regimes(["1.25/0.10", "1.25/0.1"]) == DEFAULT[:1]
    found = parse_regime("claude-sonnet-4-5")
    assert (found.write, round(found.read, 3)) == (1.25, 0.1)
    with pytest.raises(UsageError, match="no prices known"):
        parse_regime("nobody/knows-this-model")
    with pytest.raises(UsageError, match="no price"):
        parse_regime("1/-1")


def test_a_mode_is_replayed_as_a_conversation() -> None:
    """Each view is the request that `brim.prepare` gives for the same history and the plan before."""
    messages = small_run(30)
    window = 9_000
    session = parse_policy(f"compact,window={window},max_output=500").start(Transcript("t", messages), DEFAULT[0])
    previous = None
    changed = 0
    for index in range(2, len(messages)):
        if messages[index]["role"] != "assistant":
            continue
        view = session.view(messages[:index], None)
        settings = {"price_write": DEFAULT[0].write, "price_read": DEFAULT[0].read}
        prepared = brim.prepare(
            {"messages": messages[:index]},
            mode="compact",
            window=window,
            max_output=500,
            previous=previous,
            settings=settings,
        )
        previous = prepared.plan
        assert view == prepared.request["messages"]
        changed += prepared.changed
    assert changed > 5


def test_auto_weighs_the_prices_it_is_scored_with() -> None:
    """auto is played once for each regime, told that regime's prices; the others are played once."""
    outcome = play(Transcript("t", small_run(25)), Plays(("full", "auto"), DEFAULT))
    assert [(played.policy, played.regime) for played in outcome.plays] == [
        ("everything", None), ("full", None), ("auto", 0), ("auto", 1), ("auto", 2), ("auto", 3),
    ]  # fmt: skip
    full = outcome.plays[1].totals
    assert full.tokens == outcome.plays[0].totals.tokens and full.refetches == 0


def test_windows_and_refusals_are_counted() -> None:
    """A view over the window is an overflow; one without the opening user message is invalid for Gemini."""
    transcript = Transcript("t", small_run(25), model="gemini/gemini-3-pro")
    outcome = play(transcript, Plays(("last-2",), DEFAULT, window=2_000))
    everything, last = (played.totals for played in outcome.plays)
    sizes = [weight(text_of(message)) for message in transcript.messages]
    assert everything.overflows == sum(sum(sizes[:n]) > 2_000 for n in range(2, 53, 2)) == 21
    assert last.overflows == 0
    assert everything.invalid == last.invalid == 0
    headless = [message for message in small_run(25) if message["role"] != "user"]
    assert play(Transcript("t", headless, model="gemini/gemini-3-pro"), Plays((), DEFAULT)).plays[0].totals.invalid > 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["drop", "mask", "none"])), max_size=12), st.booleans())
def test_looking_at_what_changed_is_enough(edits: list[tuple[int, str]], strict: bool) -> None:
    """A check that skips the steps shared with the view before says what a look at the whole view says."""
    dialect = "openai-strict" if strict else "gemini"
    messages = small_run(20)
    check = Check(dialect)
    for count, (at, how) in enumerate(edits):
        view = messages[: 2 + 3 * count]
        if how == "drop" and at < len(view):
            view = view[:at] + view[at + 1 :]
        elif how == "mask":
            view = [{**m, "content": ""} if n == at else m for n, m in enumerate(view)]
        expected = bool(violations({"messages": view}, "openai.chat", dialect))
        assert check.invalid(view) == expected


def test_what_fills_the_window_and_what_broke_the_cache() -> None:
    """Tokens sent are told apart by role and tool, and add up; a masked result is named as what broke the prefix."""
    outcome = play(Transcript("t", small_run(12)), Plays(("mask-3",), DEFAULT))
    for played in outcome.plays:
        assert sum(played.totals.filled.values()) == played.totals.tokens
        assert set(played.totals.filled) == {"system", "user", "assistant", "tool bash", "tool read"}
    assert not outcome.plays[0].totals.breaks
    assert set(outcome.plays[1].totals.breaks) == {"tool bash changed", "tool read changed"}
    paused = play(Transcript("t", small_run(12)), Plays((), DEFAULT, pause_every=4)).plays[0].totals
    assert paused.breaks["pause"][0] == 3


def test_recorded_times_decide_pauses() -> None:
    """Where the data has times, a gap longer than the cache's life makes a request cold."""
    messages = small_run(6)
    times = [100.0 + 30 * n + (1_000 if n >= 8 else 0) for n in range(len(messages))]
    totals = play(Transcript("t", messages, times=times), Plays((), DEFAULT)).plays[0].totals
    assert totals.breaks["pause"][0] == 1


def test_a_policy_that_fails_is_named_with_its_conversation() -> None:
    """Where a policy makes no view for another reason than size, the run ends and says which one, where and why."""
    pytest.importorskip("langchain_core", reason="needs a package that takes no malformed arguments")
    call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{half"}}
    messages: list[dict[str, object]] = [
        {"role": "user", "content": "list"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "main.py"},
        {"role": "assistant", "content": "main.py"},
    ]
    with pytest.raises(BrimError, match=r"langchain-trim made no view for request 1 of one: JSONDecodeError"):
        play(Transcript("one", messages), Plays(("langchain-trim",), DEFAULT[:1]))
    assert play(Transcript("one", messages), Plays(("auto",), DEFAULT[:1])).requests == 1


def test_two_spellings_are_one_policy() -> None:
    """A policy named twice, in whatever spelling, is played once; its figures are not added to themselves."""
    assert expand(["mask-5", "mask-05", "everything", "auto,window=64000", "auto, window=64_000"]) == [
        "mask-5",
        "auto,window=64000",
    ]
    with pytest.raises(UsageError, match="a number of 0"):
        expand(["mask-00"])


@pytest.mark.parametrize("text", ["nan/1", "inf/1", "1e999/1", "1/-0.1", "0/0", "0/1"])
def test_prices_that_are_none(text: str) -> None:
    """What no cost can be made of is refused: no number, none that ends, or writing for nothing."""
    with pytest.raises(UsageError):
        parse_regime(text)


def test_results_with_images_are_cut_and_weighed_by_their_text() -> None:
    """Fixed policies work on the text of a result that is a list of parts; the image beside it stays, and weighs nothing."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}}
    messages = small_run(14)
    for n, message in enumerate(messages):
        if message["role"] == "tool":
            text = message["content"] + "\n" + "row " * 2_000
            messages[n] = {**message, "content": [{"type": "text", "text": text}, image]}
    history = messages[:-1]
    cut = parse_policy("cut-750").start(Transcript("t", messages), DEFAULT[0]).view(history, None)
    results = [message["content"] for message in cut if message["role"] == "tool"]
    assert all(parts[1] is image and "[cut]" in parts[0]["text"] for parts in results)
    assert all(len(parts[0]["text"]) < 1_600 for parts in results)
    batches = parse_policy("mask-20k-keep-10").start(Transcript("t", messages), DEFAULT[0]).view(history, None)
    assert batches == history  # four results of some 2,500 tokens: images would have made it 400,000
