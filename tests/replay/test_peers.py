"""The packages of others in the same table: called as they are, and what comes back is measured as it came."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import pytest

from brim.errors import UsageError
from brim.formats import violations
from brim.replay.peers import PEERS, installed, versions
from brim.replay.play import Plays, play
from brim.replay.policies import expand, parse_policy
from brim.replay.regimes import DEFAULT
from brim.replay.transcript import Transcript
from shared_replay import small_run


def views(spec: str, messages: Sequence[Any]) -> list[list[Any]]:
    name = spec.partition(",")[0]
    pytest.importorskip(PEERS[name].module, reason=f"needs {PEERS[name].package}")
    session = parse_policy(spec).start(Transcript("t", messages), DEFAULT[0])
    asked = [n for n, message in enumerate(messages) if message["role"] == "assistant" and n >= 2]
    return [list(session.view(messages[:n], None)) for n in asked]


def test_missing_packages_are_named() -> None:
    """A peer whose package is not installed is an error that names the package; `peers` stands for those that are."""
    assert expand(["peers"]) == installed()
    assert set(versions()) == {PEERS[name].package for name in installed()}
    missing = [name for name, peer in PEERS.items() if importlib.util.find_spec(peer.module) is None]
    for name in missing:
        with pytest.raises(UsageError, match=f"{name} needs the package {PEERS[name].package}"):
            parse_policy(name)
    if installed():
        with pytest.raises(UsageError, match="takes no nonsense"):
            parse_policy(f"{installed()[0]},nonsense=1")


@pytest.mark.parametrize("name", list(PEERS))
def test_under_every_limit_nothing_changes(name: str) -> None:
    """A short conversation comes back as it was, to the very objects where the adapter made the translation."""
    messages = small_run(3)
    for view, count in zip(views(name, messages), (2, 4, 6, 8), strict=True):
        assert [dict(message) for message in view] == messages[:count]


@pytest.mark.filterwarnings("ignore")  # theirs
def test_langchain_trims_and_clears() -> None:
    """trim_messages keeps the newest that fit from a human message on; ClearToolUsesEdit clears all results but three."""
    messages = small_run(20)
    chat = [
        *messages[:-1],
        *({"role": role, "content": f"said {n}"} for n in range(6) for role in ("user", "assistant")),
    ]
    trimmed = views("langchain-trim,max_tokens=1500", chat)[-1]
    assert trimmed[0] == chat[0] and trimmed[1]["role"] == "user" and trimmed[-1] == chat[-2]
    cleared = views("langchain-clear,trigger=3000", messages)[-1]
    results = [message["content"] for message in cleared if message["role"] == "tool"]
    assert results[:-3] == ["[cleared]"] * 17
    assert results[-3:] == [message["content"] for message in messages if message["role"] == "tool"][-3:]
    assert not violations({"messages": cleared}, "openai.chat", "openai")


@pytest.mark.filterwarnings("ignore")
def test_strands_keeps_pairs() -> None:
    """The sliding window keeps at most its messages and never parts a call from its result."""
    for view in views("strands-window,window_size=10", small_run(20)):
        assert sum(message["role"] != "system" for message in view) <= 10
        assert not violations({"messages": view}, "openai.chat", "openai")


@pytest.mark.filterwarnings("ignore")
def test_peers_stand_in_the_table() -> None:
    """Whatever is installed is played beside brim's modes, with its figures and its time."""
    names = [name for name in installed() if name not in ("litellm-trim", "headroom", "headroom-agent")]
    if not names:
        pytest.skip("needs langchain-core, langchain or strands-agents")
    outcome = play(Transcript("t", small_run(12)), Plays((*names, "auto"), DEFAULT[:1]))
    assert [played.policy for played in outcome.plays] == ["everything", *names, "auto"]
    assert all(seconds >= 0 for seconds in outcome.seconds)
    assert all(played.totals.requests == 13 for played in outcome.plays)
