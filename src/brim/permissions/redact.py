"""Keys and tokens in text are masked before the text reaches a provider; the original stays where it is.

The detectors are those of detect-secrets (extra `redact`), its patterns for keys of known shape; its entropy and keyword
guesses are left out, since they would mask hashes and code. A few shapes it does not know are added here: keys of model
providers, and lines of a `.env` file. A mask is stable: the same secret gives the same mask wherever it stands, so a
prompt prefix does not change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from brim.errors import ConfigError

_OWN: tuple[tuple[str, str, str], ...] = (
    # label, pattern, a text that must be there for the pattern to be worth trying
    ("Anthropic API key", r"\bsk-ant-[A-Za-z0-9_-]{20,}", "sk-ant-"),
    ("OpenAI API key", r"\bsk-(?!ant-)(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}", "sk-"),
    ("Google API key", r"\bAIza[0-9A-Za-z_-]{35}", "AIza"),
    ("Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}", "hf_"),
    ("GitHub token", r"\bgithub_pat_[A-Za-z0-9_]{22,}", "github_pat_"),
    ("Groq API key", r"\bgsk_[A-Za-z0-9]{40,}", "gsk_"),
    ("xAI API key", r"\bxai-[A-Za-z0-9]{40,}", "xai-"),
    (
        "private key",
        r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        "PRIVATE KEY",
    ),
    (
        "value of a secret variable",
        r"(?m)^[ \t]*(?:export[ \t]+)?[A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)[A-Z0-9_]*[ \t]*="
        r"[ \t]*[\"']?(?P<secret>(?![$<{]|\[secret:|os\.|process\.|None\b|null\b)[^\s\"'#]{8,})",
        "=",
    ),
)  # fmt: skip
_LEFT_OUT = ("IPPublicDetector", "Base64HighEntropyString", "HexHighEntropyString", "KeywordDetector", "PrivateKeyDetector",
             "OpenAIDetector")  # fmt: skip
_VENDORS = {
    "IbmCloudIamDetector": "ibm",
    "IbmCosHmacDetector": "ibm",
    "SoftlayerDetector": "softlayer",
    "CloudantDetector": "cloudant",
    "MailchimpDetector": "-us",
    "ArtifactoryDetector": "AP",
}
"""Detectors that are slow, with what stands in any text worth asking them about."""
_LABELS = {
    "AWS Access Key": "AWS access key",
    "Azure Storage Account access key": "Azure storage key",
    "Basic Auth Credentials": "password in an address",
    "JSON Web Token": "JSON web token",
    "GitHub Token": "GitHub token",
    "GitLab Token": "GitLab token",
    "NPM tokens": "npm token",
    "PyPI Token": "PyPI token",
    "SendGrid API Key": "SendGrid API key",
    "Slack Token": "Slack token",
    "Square OAuth Secret": "Square OAuth secret",
    "Stripe Access Key": "Stripe access key",
    "Telegram Bot Token": "Telegram bot token",
    "Twilio API Key": "Twilio API key",
}
_MASK = re.compile(r"\[secret: [^\]]*\]")


class Redactor:
    """Masks secrets. `found` counts them, by kind, over all texts it has seen."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {}

    def __call__(self, text: str) -> str:
        """The text with each secret replaced by `[secret: AWS access key, 20 characters]`. Applied twice, the same."""
        spans: list[tuple[int, int, str]] = []
        lowered = text.lower()
        for label, pattern, needle in _patterns():
            if needle and needle not in text and (needle not in lowered or not needle.isalpha()):
                continue
            for match in pattern.finditer(text):
                start, end = _secret_span(match)
                if end > start and not _MASK.search(text, max(0, start - 9), end):
                    spans.append((start, end, label))
        if not spans:
            return text
        spans.sort(key=lambda span: (span[0], -span[1]))
        made: list[str] = []
        position = 0
        for start, end, label in spans:
            if start < position:
                continue
            self.found[label] = self.found.get(label, 0) + 1
            made += [text[position:start], f"[secret: {label}, {end - start} characters]"]
            position = end
        return "".join([*made, text[position:]])


def open_redactor() -> Callable[[str], str]:
    """A redactor. Raises ConfigError where the extra `redact` is not installed."""
    _patterns()
    return Redactor()


def _secret_span(match: re.Match[str]) -> tuple[int, int]:
    """Where the secret itself stands in a match: its group, where the pattern has one."""
    if "secret" in match.re.groupindex:
        return match.span("secret")
    groups = [span for number in range(1, match.re.groups + 1) if (span := match.span(number))[0] >= 0]
    wide = [span for span in groups if span[1] - span[0] >= 8]
    return max(wide, key=lambda span: span[1] - span[0]) if wide else match.span()


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str], str], ...]:
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    except ImportError:
        raise ConfigError(
            "redact is on, but detect-secrets is not installed", hint="pipx install 'brim[redact]', or redact = false"
        ) from None
    made = [(label, re.compile(pattern, re.DOTALL), needle) for label, pattern, needle in _OWN]
    plugins: dict[str, Any] = get_mapping_from_secret_type_to_class()
    for kind, plugin in plugins.items():
        if plugin.__name__ in _LEFT_OUT:
            continue
        needle = _VENDORS.get(plugin.__name__, "")
        made += [(_LABELS.get(kind, kind), pattern, needle) for pattern in plugin().denylist]
    return tuple(made)
