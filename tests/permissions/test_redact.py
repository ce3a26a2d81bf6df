"""Secrets in text are masked; the same text gives the same mask."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("detect_secrets")

from brim.permissions.redact import Redactor, open_redactor

KEYS = {
    "AKIAIOSFODNN7EXAMPLE": "AWS access key, 20 characters",
    "sk-ant-api03-" + "a1B2" * 8: "Anthropic API key, 45 characters",
    "sk-proj-" + "a1B2" * 8: "OpenAI API key, 40 characters",
    "AIza" + "a1B2c" * 7: "Google API key, 39 characters",
    "ghp_" + "a1B2" * 9: "GitHub token, 40 characters",
    "xoxb-123456789012-abcdefghijklmnop": "Slack token",
    "sk_live_" + "a1B2" * 6: "Stripe access key",
}


@pytest.mark.parametrize(("key", "mask"), KEYS.items())
def test_keys_are_masked_with_their_kind_and_length(key: str, mask: str) -> None:
    """A key of known shape becomes its kind and length; what stands around it stays."""
    redact = Redactor()
    text = redact(f"config: key={key}\nnext line")
    assert key not in text and f"[secret: {mask}" in text
    assert text.startswith("config: key=") and text.endswith("\nnext line")
    assert sum(redact.found.values()) == 1


def test_private_keys_passwords_and_env_files_are_masked() -> None:
    """A whole key block, the password of an address, and the value of a variable that is named a secret."""
    redact = open_redactor()
    block = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----"
    assert redact(f"a\n{block}\nb") == f"a\n[secret: private key, {len(block)} characters]\nb"
    assert "hunter2222" not in redact("postgres://app:hunter2222@db/x")
    assert (
        redact("DB_PASSWORD=correcthorse\nPORT=80")
        == "DB_PASSWORD=[secret: value of a secret variable, 12 characters]\nPORT=80"
    )


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "API_KEY=${API_KEY}",
        "TOKEN = os.environ['TOKEN']",
        "the token budget is 150000; key = value",
        "def test_password_is_checked(): ...",
        "https://example.com/a@b",
    ],
)
def test_code_and_hashes_stay(text: str) -> None:
    """What is no secret is left as it is."""
    assert Redactor()(text) == text


@given(st.text(max_size=60), st.sampled_from(sorted(KEYS)), st.text(max_size=60))
def test_masking_twice_is_masking_once(before: str, key: str, after: str) -> None:
    """A masked text stays the same, so a prompt prefix does."""
    once = Redactor()(f"{before} {key} {after}")
    assert Redactor()(once) == once
    assert key not in once
