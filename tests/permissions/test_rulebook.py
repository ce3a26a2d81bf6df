"""Where rules come from, and how they are remembered and forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.errors import ConfigError, UsageError
from brim.permissions.rulebook import RuleBook, format_rules_file, load_rules, parse_rules_file, remembered_path


def test_a_project_narrows_and_never_widens(tmp_path: Path) -> None:
    """Of a project's rules only deny and ask count; its allow rules are left out, and that is said."""
    book = RuleBook()
    book.add({"allow": ["git *"]}, "user config")
    book.add({"allow": ["curl *"], "deny": ["git push *"], "ask": ["git reset *"]}, "project config", narrow=True)
    assert book.check("bash", {"command": "git log"}, tmp_path).decision == "allow"
    assert book.check("bash", {"command": "git push"}, tmp_path).decision == "deny"
    assert book.check("bash", {"command": "git reset"}, tmp_path).decision == "ask"
    assert book.check("bash", {"command": "curl x"}, tmp_path).decision == "ask"
    assert len(book.notices) == 1 and "curl *" in book.notices[0] and "project config" in book.notices[0]
    assert {"decision": "deny", "rule": "git push *", "origin": "project config"} in book.listing()


def test_rules_are_remembered_and_forgotten(tmp_path: Path) -> None:
    """A lasting rule is there in the next session, as it was written, until it is forgotten; a session's is not."""
    path = tmp_path / "brim" / "permissions.toml"
    book = RuleBook(path)
    book.remember("bash(git push *)", lasting=True)
    book.remember('bash(echo "a\n\\b")', lasting=True)
    book.remember("bash(ls *)")
    again = RuleBook(path)
    assert again.texts("allow") == ["bash(git push *)", 'bash(echo "a\n\\b")']
    assert again.check("bash", {"command": "git push"}, tmp_path).decision == "allow"
    again.forget("bash(git push *)")
    assert RuleBook(path).texts("allow") == ['bash(echo "a\n\\b")']
    assert again.check("bash", {"command": "git push"}, tmp_path).decision == "ask"
    with pytest.raises(UsageError):
        again.forget("bash(git push *)")
    assert path.stat().st_mode & 0o077 == 0


def test_a_rule_of_a_config_is_not_forgotten_here(tmp_path: Path) -> None:
    """The error says where such a rule stands."""
    book = RuleBook(tmp_path / "permissions.toml")
    book.add({"allow": ["git *"]}, "/home/me/config.toml")
    with pytest.raises(UsageError) as caught:
        book.forget("git *")
    assert "/home/me/config.toml" in str(caught.value.hint)


def test_a_file_that_holds_no_rules_is_an_error_with_its_name(tmp_path: Path) -> None:
    """Neither broken TOML nor a wrong type is passed over."""
    path = tmp_path / "permissions.toml"
    for text in ("[permissions", "[permissions]\nallow = 3", "permissions = 1"):
        path.write_text(text)
        with pytest.raises(ConfigError, match=r"permissions\.toml"):
            load_rules(path)
    assert remembered_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/brim/permissions.toml")


@given(st.lists(st.text(alphabet=st.characters(codec="utf-8"), min_size=1)))
def test_any_rule_survives_the_file(texts: list[str]) -> None:
    """What is written is read back the same."""
    assert parse_rules_file(format_rules_file({"allow": texts}))["allow"] == texts
