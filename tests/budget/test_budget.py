"""What messages may use, and clear errors where nothing is left for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.budget import Settings, budget_for, load_settings, reserve
from brim.errors import ConfigError, ContextOverflow


def test_messages_get_the_smaller_of_history_budget_and_room() -> None:
    """min(history budget, window - reserved - margin - tools - overhead), and what is held back is said."""
    small = budget_for(32_000, 4_096, 640, 1_500, 3, 150_000)
    assert small.messages == 32_000 - 4_096 - 640 - 1_500 - 3 and small.held_back == 0
    large = budget_for(1_000_000, 4_096, 0, {"read": 500, "bash": 700}, 3, 150_000)
    assert large.messages == 150_000
    assert large.messages + large.tools + large.overhead + large.reserved + large.margin + large.held_back == 1_000_000
    assert budget_for(1_000_000, 4_096).messages == 995_904


@given(st.integers(1_024, 4_000_000))
def test_the_defaults_leave_room_in_any_window(window: int) -> None:
    """With the default reserve and margin something is left for messages in every window of at least 1,024 tokens."""
    reserved = reserve(window, None)
    assert reserved <= window // 4 and reserved <= 4_096
    assert budget_for(window, reserved, int(window * 0.02), 0, 3, 150_000).messages >= 700


def test_an_asked_reply_is_reserved_whole() -> None:
    """What the request asks for is reserved as it is; the default shrinks with the window."""
    assert reserve(8_192, 6_000) == 6_000
    assert reserve(8_192, None) == 2_048
    assert reserve(128_000, None, 1_000) == 1_000


def test_tools_that_exceed_the_window_are_named() -> None:
    """The error names the tools, largest first, with their sizes, and the room there was."""
    with pytest.raises(ContextOverflow) as caught:
        budget_for(6_000, 500, 0, {"search": 900, "browser": 5_200, "(around all tools)": 12}, 3)
    message = str(caught.value)
    assert "browser 5,200, search 900" in message and "6,112 tokens" in message and "5,500" in message
    assert "2 tool definitions" in message and "(around" not in message
    assert caught.value.budget == 5_500 and caught.value.irreducible == 6_115
    assert "fewer tools" in (caught.value.hint or "")
    with pytest.raises(ContextOverflow, match="and 12 more"):
        budget_for(6_000, 500, 0, {f"tool_{i}": 400 for i in range(20)})
    with pytest.raises(ContextOverflow, match="the tool definitions take 9,000"):
        budget_for(6_000, 500, 0, 9_000)


def test_a_reply_as_large_as_the_window_is_an_error_that_says_so() -> None:
    """No negative budget: the error names the reserve and how to lower it."""
    with pytest.raises(ContextOverflow, match="128,000 reserved for the reply") as caught:
        budget_for(128_000, 128_000, 0, 500, 3)
    assert "max_response_tokens" in (caught.value.hint or "")


def test_settings_are_checked_where_they_are_loaded() -> None:
    """Every default stands, a slip names the nearest setting, and a share outside 0 to 1 is refused."""
    assert load_settings(None) == Settings()
    assert load_settings({"history_budget": None, "compact_target": 0.3}).history_budget is None
    assert load_settings(None).cap_tokens["bash"] == 6_000
    with pytest.raises(ConfigError) as caught:
        load_settings({"history_buget": 1})
    assert "history_budget" in (caught.value.hint or "")
    with pytest.raises(ConfigError, match="compact_target"):
        load_settings({"compact_target": 1.5})
    with pytest.raises(ConfigError, match="max_response_tokens"):
        load_settings({"max_response_tokens": 0})
    with pytest.raises(ConfigError, match="bad setting"):
        load_settings({"recent_rounds_kept": "six"})
