"""What holds for every test of the agent."""

from collections.abc import Iterator

import pytest

from brim.budget.windows import WINDOWS


@pytest.fixture(autouse=True)
def _nothing_learned() -> Iterator[None]:
    """What one test's refusals taught about windows is not known to the next."""
    WINDOWS.forget()
    yield
    WINDOWS.forget()
