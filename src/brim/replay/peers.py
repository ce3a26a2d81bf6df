"""The context policies of other packages, run as they are: wherever one is installed, it stands in the same table.

    langchain-trim       langchain-core's trim_messages: the newest messages that fit, system kept, from a human message on
    langchain-clear      langchain's ClearToolUsesEdit: past a trigger all results but the last are cleared
    litellm-trim         litellm's trim_messages
    headroom             headroom-ai's compress; headroom-agent is its lossless mode for live agents
    strands-window       strands' sliding window, applied before each model call

Each is called the way its documentation shows, with the arguments given (langchain-trim,max_tokens=32000). Nothing of
brim runs here but the translation of messages, and an adapter never mends what comes back: a view that a provider would
refuse counts as invalid.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import msgspec

from brim.errors import UsageError
from brim.replay.policies import Policy, Session, fixed, option_names
from brim.replay.regimes import Regime
from brim.replay.transcript import Transcript
from brim.replay.yardstick import Wire

View = Callable[[Sequence[Wire], dict[str, Any]], Sequence[Wire]]


class Peer(msgspec.Struct, frozen=True):
    """`module`: what must be importable; `package`: its name at PyPI; `defaults`: arguments and their values."""

    module: str
    package: str
    make: Callable[[Mapping[str, Any]], View]
    defaults: Mapping[str, Any]


def installed() -> list[str]:
    """The peers whose package can be imported here."""
    return [name for name, peer in PEERS.items() if _present(peer.module)]


def versions() -> dict[str, str]:
    """Package and version of each peer that is installed."""
    from importlib.metadata import version

    return {PEERS[name].package: version(PEERS[name].package) for name in installed()}


def peer_policy(name: str, options: Mapping[str, Any]) -> Policy:
    """The policy of a peer. Raises UsageError where it is not installed, or does not take an argument."""
    peer = PEERS[name]
    if not _present(peer.module):
        raise UsageError(f"{name} needs the package {peer.package}", hint=f"pip install {peer.package}")
    unknown = [key for key in options if key not in peer.defaults]
    if unknown:
        raise UsageError(f"{name} takes no {unknown[0]}", hint=f"it takes {', '.join(peer.defaults)}")
    arguments = {**peer.defaults, **options}

    def start(transcript: Transcript, regime: Regime) -> Session:
        return fixed(name, peer.make(arguments)).start(transcript, regime)

    return Policy(name + option_names(options), start)


def _present(module: str) -> bool:
    return find_spec(module.partition(".")[0]) is not None


# ---- langchain ------------------------------------------------------------------------------------------------------


def _langchain_trim(arguments: Mapping[str, Any]) -> View:
    trim_messages = import_module("langchain_core.messages.utils").trim_messages

    def view(history: Sequence[Wire], state: dict[str, Any]) -> Sequence[Wire]:
        trimmed = trim_messages(
            _to_langchain(history, state),
            max_tokens=arguments["max_tokens"],
            token_counter="approximate",  # noqa: S106  (the name of a counter)
            strategy="last",
            start_on="human",
            end_on=("human", "tool"),
            include_system=True,
        )
        return _from_langchain(trimmed, history)

    return view


def _langchain_clear(arguments: Mapping[str, Any]) -> View:
    count = import_module("langchain_core.messages.utils").count_tokens_approximately
    edit = import_module("langchain.agents.middleware.context_editing").ClearToolUsesEdit(**arguments)

    def view(history: Sequence[Wire], state: dict[str, Any]) -> Sequence[Wire]:
        # The middleware edits a copy of the whole history before each call; the edit replaces messages, never mutates.
        messages = list(_to_langchain(history, state))
        edit.apply(messages, count_tokens=count)
        return _from_langchain(messages, history)

    return view


def _to_langchain(history: Sequence[Wire], state: dict[str, Any]) -> list[Any]:
    convert_to_messages = import_module("langchain_core.messages.utils").convert_to_messages

    made: list[Any] = state.setdefault("messages", [])
    for number, message in enumerate(convert_to_messages([dict(m) for m in history[len(made) :]]), len(made)):
        message.id = str(number)
        made.append(message)
    return made


def _from_langchain(messages: Sequence[Any], history: Sequence[Wire]) -> list[Wire]:
    view: list[Wire] = []
    for message in messages:
        wire = history[int(message.id)]
        same = message.content == (wire.get("content") or "")
        view.append(wire if same else {**wire, "content": message.content})
    return view


# ---- litellm --------------------------------------------------------------------------------------------------------


def _litellm_trim(arguments: Mapping[str, Any]) -> View:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it fetches its price list when imported
    trim_messages = import_module("litellm.utils").trim_messages

    def view(history: Sequence[Wire], state: dict[str, Any]) -> Sequence[Wire]:
        trimmed: Sequence[Wire] = trim_messages([dict(m) for m in history], max_tokens=arguments["max_tokens"])
        return trimmed

    return view


# ---- headroom -------------------------------------------------------------------------------------------------------


def _headroom(arguments: Mapping[str, Any]) -> View:
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("HEADROOM_OFFLINE", "1")
    compress = import_module("headroom").compress

    def view(history: Sequence[Wire], state: dict[str, Any]) -> Sequence[Wire]:
        messages: Sequence[Wire] = compress([dict(m) for m in history], **arguments).messages
        return messages

    return view


# ---- strands --------------------------------------------------------------------------------------------------------


class _StrandsAgent:
    """All that the manager looks at of an agent: its messages, which it changes in place."""

    def __init__(self) -> None:
        self.messages: list[Any] = []


def _strands(arguments: Mapping[str, Any]) -> View:
    managers = import_module("strands.agent.conversation_manager")
    window = managers.SlidingWindowConversationManager(per_turn=True, **arguments)
    agent = _StrandsAgent()

    def view(history: Sequence[Wire], state: dict[str, Any]) -> Sequence[Wire]:
        taken = state.get("taken", 0)
        for number, message in enumerate(history[taken:], taken):
            if message["role"] != "system":  # strands keeps the system prompt apart
                agent.messages.append({**_to_strands(message), "number": number})
        state["taken"] = len(history)
        window.apply_management(agent)
        kept = {message["number"] for message in agent.messages}
        return [m for n, m in enumerate(history) if n in kept or m["role"] == "system"]

    return view


def _to_strands(message: Wire) -> dict[str, Any]:
    text = str(message.get("content") or "")
    if message["role"] == "tool":
        result = {"toolUseId": message.get("tool_call_id"), "status": "success", "content": [{"text": text}]}
        return {"role": "user", "content": [{"toolResult": result}]}
    content: list[dict[str, Any]] = [{"text": text}] if text else []
    for call in message.get("tool_calls") or ():
        use = {
            "toolUseId": call["id"],
            "name": call["function"]["name"],
            "input": _input(call["function"]["arguments"]),
        }
        content.append({"toolUse": use})
    return {"role": message["role"], "content": content}


def _input(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return {"text": arguments}


PEERS: dict[str, Peer] = {
    "langchain-trim": Peer("langchain_core", "langchain-core", _langchain_trim, {"max_tokens": 100_000}),
    "langchain-clear": Peer(
        "langchain", "langchain", _langchain_clear, {"trigger": 100_000, "keep": 3, "clear_at_least": 0}
    ),
    "litellm-trim": Peer("litellm", "litellm", _litellm_trim, {"max_tokens": 100_000}),
    # Its text model comes from a hub at run time; the other transforms are in the package.
    "headroom": Peer(
        "headroom",
        "headroom-ai",
        _headroom,
        {"model": "gpt-4o", "model_limit": 128_000, "kompress_model": "disabled", "protect_recent": 4},
    ),
    "headroom-agent": Peer(
        "headroom", "headroom-ai", _headroom, {"model": "gpt-4o", "model_limit": 128_000, "mode": "agent"}
    ),
    "strands-window": Peer("strands", "strands-agents", _strands, {"window_size": 40}),
}
