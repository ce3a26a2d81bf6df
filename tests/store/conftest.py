"""Stores to test with: a SQLite file, and a real Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from brim.store import Store, open_store
from shared_postgres import new_schema, serve_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server of our own."""
    with serve_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store can be made: each test runs on both databases."""
    if request.param == "sqlite":
        return str(tmp_path / "data" / "brim.db")
    return new_schema(request.getfixturevalue("postgres"))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened
