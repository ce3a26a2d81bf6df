"""brim's own modes under replay: a `brim.Conversation` that grows with the recording, asked before each assistant message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from brim.budget import Settings, load_settings
from brim.context import Conversation
from brim.errors import ConfigError, UsageError
from brim.replay.policies import Policy, Session, option_names
from brim.replay.regimes import Regime
from brim.replay.transcript import Transcript
from brim.replay.yardstick import Wire

_ASKED = ("max_output", "recall_tool")
"""What a request may ask for beside the settings."""


class ModeSession:
    """One conversation in one mode. `cause`: why the epoch of the last view began."""

    def __init__(self, conversation: Conversation, prepare: Mapping[str, Any]) -> None:
        self.conversation = conversation
        self._prepare = prepare
        self._taken = 0

    def view(self, history: Sequence[Wire], now: float | None) -> Sequence[Wire]:
        for message in history[self._taken :]:
            self.conversation.append(message)
        self._taken = len(history)
        prepared = self.conversation.prepare(now=now, **self._prepare)
        messages: list[Wire] = prepared.request["messages"]
        return messages


def mode_policy(mode: str, options: Mapping[str, Any]) -> Policy:
    """A mode with settings. Beside those of `brim.Settings`: window, max_output, recall_tool, model.

    The prices of auto are those of the regime it is scored in, unless the settings name some.
    """
    given = dict(options)
    window, model = given.pop("window", None), given.pop("model", None)
    if window is not None and (type(window) is not int or window <= 0):
        raise UsageError(f"policy {mode}: window={window}", hint="give tokens, for example window=64000")
    most = given.get("max_output")
    if most is not None and (type(most) is not int or most <= 0):
        raise UsageError(f"policy {mode}: max_output={most}", hint="give tokens, for example max_output=8000")
    if type(given.get("recall_tool", True)) is not bool:
        raise UsageError(f"policy {mode}: recall_tool={given['recall_tool']}", hint="give true or false")
    if model is not None and not isinstance(model, str):
        raise UsageError(f"policy {mode}: model={model}", hint="name a model, for example model=gpt-4o")
    unknown = [key for key in given if key not in (*_ASKED, *Settings.__struct_fields__)]
    if unknown:
        known = ("window", "model", *_ASKED, *Settings.__struct_fields__)
        near = get_close_matches(unknown[0], known, 1)
        raise UsageError(
            f"policy {mode}: no setting {unknown[0]!r}",
            hint=f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}",
        )
    prepare = {"mode": mode, "window": window}
    prepare |= {key: given.pop(key) for key in _ASKED if key in given}
    base = {"price_write": None, "price_read": None, **given}
    try:
        load_settings({key: value for key, value in base.items() if value is not None})
    except ConfigError as error:
        raise UsageError(f"policy {mode}: {error.message}", hint=error.hint) from error

    def start(transcript: Transcript, regime: Regime) -> Session:
        settings = dict(given)
        settings.setdefault("price_write", regime.write)
        settings.setdefault("price_read", regime.read)
        conversation = Conversation("openai.chat", model=model or transcript.model, settings=settings)
        return ModeSession(conversation, prepare)

    priced = mode == "auto" and given.get("price_weighing", True)
    return Policy(mode + option_names(options), start, bool(priced), window)
