"""Cache markers are put where the next request will look for them, and change nothing else."""

from __future__ import annotations

import copy
from typing import Any

from brim.agent.caching import mark_cache
from brim.testing import violations


def stripped(value: Any) -> Any:
    """A body without markers, texts as blocks, so that marked and unmarked compare."""
    if isinstance(value, dict):
        made = {key: stripped(item) for key, item in value.items() if key != "cache_control"}
        if isinstance(made.get("content"), str):
            made["content"] = [{"type": "text", "text": made["content"]}]
        return made
    return [stripped(item) for item in value] if isinstance(value, list) else value


BODY: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "system": "Be brief.",
    "tools": [{"name": "grep", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": "find it"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "grep", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "a.txt"}]},
    ],
}


def test_markers_stand_behind_system_and_the_last_two_user_messages() -> None:
    """Three markers, on the last blocks; all else is as it was, and the body given is not altered."""
    before = copy.deepcopy(BODY)
    marked = mark_cache(BODY)
    assert before == BODY
    assert marked["system"][-1]["cache_control"] == {"type": "ephemeral"}
    marks = ["cache_control" in message["content"][-1] for message in marked["messages"]]
    assert marks == [True, False, True]
    assert stripped(marked["messages"]) == stripped(BODY["messages"])
    assert violations(marked, "anthropic.messages", "anthropic") == []


def test_a_body_with_markers_of_its_own_is_left_alone() -> None:
    """Who marks for himself is not helped."""
    own = mark_cache(BODY)
    assert mark_cache(own) == own


def test_empty_texts_are_not_marked() -> None:
    """The API refuses a marker on an empty text."""
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}, {"role": "user", "content": ""}]}
    assert mark_cache(body) == body
