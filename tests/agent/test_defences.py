"""The instant defences give the reference figures on the simulated histories, in every mode, without a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from brim.agent.defences import defend, estimate, inject, load_simulated
from brim.agent.session import AgentSession, Offer
from brim.providers import ModelRef
from brim.store import open_store
from brim.store.store import Store

REFERENCE = msgspec.json.decode(
    (Path(__file__).parents[2] / "src" / "brim" / "agent" / "sim_histories.json").read_bytes()
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "brim.db") as opened:
        yield opened


def open_session(store: Store, mode: str = "auto", *, id: str | None = None) -> AgentSession:
    model = ModelRef(provider="openai", model="gpt-4o")
    session = store.get_session(id) if id else store.new_session("/project", mode)
    return AgentSession(store, session, model=model, offer=Offer(system="Be brief."), mode=mode)


@pytest.mark.parametrize("mode", ["full", "compact", "auto"])
@pytest.mark.parametrize("name", ["sim", "start"])
def test_the_reference_figures_come_out(store: Store, name: str, mode: str) -> None:
    """Counts are exactly the reference's, tokens within 5% of it."""
    session = open_session(store, mode)
    inject(session, name)
    done = defend(session)
    wanted = REFERENCE[name]
    assert (done.soft, done.hard) == (wanted["soft"], wanted["hard"])
    assert (done.truncated, done.cleared) == (wanted.get("truncated", 0), wanted.get("cleared", 0))
    assert done.before == wanted["before"]
    assert abs(done.after - wanted["after"]) <= 0.05 * wanted["after"]
    assert done.messages == len(wanted["messages"])


def test_the_history_itself_is_untouched_and_defending_twice_does_nothing_more(store: Store) -> None:
    """The store keeps every original, and a second run finds nothing left to do."""
    session = open_session(store)
    assert inject(session) == 20
    first = defend(session)
    again = defend(session)
    assert (again.soft, again.hard, again.truncated, again.cleared) == (0, 0, 0, 0)
    assert again.after == first.after
    kept = [each.message.text for each in store.load(session.id)]
    assert kept == [message.text for message, _ in load_simulated()]
    stub = next(text for text in session.explain().splitlines() if " stub " in text)
    handle = stub.rpartition("handle ")[2]
    assert session.original(handle) in kept


def test_ages_survive_the_process(store: Store) -> None:
    """A session that is opened again ages its results as before."""
    session = open_session(store)
    inject(session)
    session.close()
    again = open_session(store, id=session.id)
    assert defend(again).hard == 3


def test_the_estimate_is_characters_by_the_common_formula() -> None:
    """Content, tool names and arguments, by characters / 4 x 1.2."""
    assert estimate(message for message, _ in load_simulated()) == REFERENCE["sim"]["before"]
