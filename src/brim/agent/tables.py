"""The tables of a config file: what may stand in each, with its default. `brim.agent.config` reads them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from brim.permissions.sandbox import SANDBOX_MODES, Sandbox


class General(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys at the top of a config file."""

    model: str | None = None
    """`provider/model`; None: a key's default, a server on this machine, the embedded model."""
    mode: str = "auto"
    """Context mode: full, compact or auto."""
    profile: str | None = None
    """A profile that is used where none is named."""
    system: str | None = None
    """Stands in the place of brim's own words in the system prompt."""
    temperature: float | None = None
    effort: str | None = None
    """How hard the model thinks, where it can: low, medium or high."""
    thinking_budget: int | None = None
    """Most tokens of thinking, in place of an effort; 0 switches thinking off."""
    schema: str | None = None
    """A file with a JSON schema that each answer keeps to; relative to the file that says so, or to the workspace."""
    fallback_models: list[str] = []
    """Asked in this order, for the rest of a turn, where the model's provider is down or overloaded."""
    max_tokens: int | None = None
    """Most tokens of one answer."""
    max_steps: int = 50
    """Requests of one turn."""
    max_calls: int = 128
    """Tool calls of one message that are run; the model is told of those beyond."""
    max_cost: float | None = None
    """US dollars a session may cost."""
    summary_model: str | None = None
    """Who writes summaries: `provider/model`, or "same" for the session's own model; None: brim itself, without a model."""
    attempts: int = 4
    """How often a request is made in all, where the failure may pass (a rate limit, a server's error)."""
    notes: bool = True
    """Read AGENTS.md and CLAUDE.md."""
    store: str | None = None
    """Where sessions are kept: a path or a postgresql:// URL."""
    originals: bool = True
    """Keep what tools printed before it was cut, and files as they were before a change. False keeps neither: what is cut is
    gone, and /rewind puts back no files."""
    max_age: str | None = None
    """Sessions unused for so long go with `brim gc` (90d, 12w); None: they stay."""
    max_size: str | None = None
    """`brim gc` deletes the oldest until the rest is no larger (2G); None: no limit."""
    markdown: bool = True
    """Render Markdown on a terminal."""
    redact: bool = False
    """Mask keys and tokens in tool results before a model sees them (extra `redact`)."""


class PermissionRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table [permissions]."""

    mode: str = "ask"
    """ask, accept-edits, read-only or allow-all."""
    allow: list[str] = []
    deny: list[str] = []
    ask: list[str] = []
    sandbox: str = "auto"
    """off, auto (where bubblewrap works) or required."""
    network: bool = True
    """Whether commands in the sandbox reach the network."""

    def box(self) -> Sandbox:
        """What `brim.permissions.sandbox.open_sandbox` takes."""
        mode = next(mode for mode in SANDBOX_MODES if mode == self.sandbox)
        return Sandbox(mode=mode, network=self.network)


class Retrieval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table [retrieval]: what of the workspace stands beside a question."""

    snippets: str = "auto"
    """The best `retrieval_top_k` snippets: auto (in mode auto), always (in every mode) or off."""
    tree: str = "auto"
    """The directory tree, once in an epoch: auto, always or off."""
    seconds: float = 10.0
    """How long a question waits for the index at most; what is missing is read with the next ones."""
    most_files: int = 20_000
    """Files that are indexed at most, those nearest to the top of the workspace first."""
    most_bytes: int = 200_000_000
    """The same for their bytes together."""


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table [profiles.NAME]: what a kind of task starts with."""

    model: str | None = None
    mode: str | None = None
    system: str | None = None
    temperature: float | None = None
    effort: str | None = None
    thinking_budget: int | None = None
    schema: str | None = None
    fallback_models: list[str] | None = None
    max_tokens: int | None = None
    max_steps: int | None = None


RETRIEVAL_CHOICES = ("auto", "always", "off")

PROFILES: Mapping[str, Profile] = {
    "chat": Profile(mode="compact"),
    "log": Profile(mode="full"),
    "code": Profile(mode="auto"),
}
"""Profiles that are there without any config (each can be changed by a table of its name)."""
