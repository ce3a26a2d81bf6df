"""The environment that commands get: this process's, less what looks like a secret, plus what keeps them from asking."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

_WORDS = frozenset(
    {
        "KEY",
        "KEYS",
        "APIKEY",
        "APIKEYS",
        "TOKEN",
        "TOKENS",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWORDS",
        "PASSWD",
        "PASS",
    }
    | {"PWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "CREDS", "AUTH", "PAT", "BEARER", "COOKIE", "DSN", "JWT"}
    | {"AUTHORIZATION", "COOKIES", "PRIVATE"}
)
_ENDINGS = ("APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS")
# Names that look alike and hold none.
_HARMLESS = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK", "KEYBOARD_KEY"})
_COUNTS = frozenset({"TOKENS", "KEYS"})
_LEAST_SECRET = 8
"""Characters: a shorter value is found in too much that is none."""
_KNOWN_VALUES = re.compile(
    r"sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|AIza[\w-]{30,}"
    r"|hf_[A-Za-z0-9]{20,}|A(?:KIA|SIA)[A-Z0-9]{16}|gsk_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}"
    r"|(?i:\bbearer\s+\S{8,}|\bauthorization\s*[:=]|\b(?:account|sharedaccess)key=|\b(?:password|pwd)=\S)"
    r"|hooks\.slack\.com/services/|discord(?:app)?\.com/api/webhooks/"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}|-----BEGIN [A-Z ]*PRIVATE KEY|^[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@"
)

# No question can be answered, no pager left, no editor closed: say so to the programs that ask.
_QUIET = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "AWS_PAGER": "",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "EDITOR": "true",
    "VISUAL": "true",
    "DEBIAN_FRONTEND": "noninteractive",
}


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable probably holds a secret, by its name or by its value."""
    if name in _HARMLESS:
        return False
    words = re.split(r"[^A-Z0-9]+", name.upper())
    for word in words:
        if word in _COUNTS and re.fullmatch(r"\d{1,9}", value):
            continue
        if word in _WORDS or word.endswith(_ENDINGS):
            return True
    return _KNOWN_VALUES.search(value) is not None


def secret_values(env: Mapping[str, str]) -> dict[bytes, str]:
    """The values that look like secrets, long enough to be told from other text, each with its variable's name."""
    return {
        os.fsencode(value): name
        for name, value in env.items()
        if len(value) >= _LEAST_SECRET and looks_secret(name, value)
    }


def scrub(env: Mapping[str, str], keep: Collection[str] = ()) -> dict[str, str]:
    """`env` without secrets, and without any variable whose value repeats one (an alias of a key)."""
    secret = {name for name, value in env.items() if name not in keep and looks_secret(name, value)}
    values = {env[name] for name in secret if len(env[name]) >= _LEAST_SECRET}
    left = {name: value for name, value in env.items() if name not in secret and (name in keep or value not in values)}
    return {**left, **_QUIET}
