"""Context policies by name: what `--policy` takes.

    everything                    the baseline
    mask-10, mask-3               all but the newest results are masked, at every request
    mask-20k-keep-10 …            masked once so many tokens have gathered
    cut-1500, cut-750             results keep so many characters at each end, from their arrival on
    last-20                       the first two messages and the last steps
    full, compact, auto           brim's modes, with any setting: auto,window=64000,history_budget=none
    langchain-trim …              the packages of others, where they are installed (see `peers`)

A policy is started once for each conversation and price regime, and then asked for one view after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Protocol

import msgspec

from brim.errors import UsageError
from brim.replay.regimes import Regime
from brim.replay.transcript import Transcript
from brim.replay.yardstick import Wire, text_of, weight

MASK = "[old output removed]"


class Session(Protocol):
    """A policy at work on one conversation. `history` grows from call to call; `now` in Unix seconds, None without a
    clock. Raises ContextOverflow where it cannot make a view that fits."""

    def view(self, history: Sequence[Wire], now: float | None) -> Sequence[Wire]: ...


class Policy(msgspec.Struct, frozen=True):
    """`priced`: its views depend on the price regime. `window`: tokens its views must fit, None for the model's own."""

    name: str
    start: Callable[[Transcript, Regime], Session]
    priced: bool = False
    window: int | None = None


class _Fixed:
    def __init__(self, function: Callable[[Sequence[Wire], dict[str, Any]], Sequence[Wire]]) -> None:
        self._function = function
        self._state: dict[str, Any] = {}

    def view(self, history: Sequence[Wire], now: float | None) -> Sequence[Wire]:
        return self._function(history, self._state)


def fixed(name: str, function: Callable[[Sequence[Wire], dict[str, Any]], Sequence[Wire]]) -> Policy:
    """A policy from `function(history, state) -> view`; `state` is a dict of its own for each conversation."""
    return Policy(name, lambda transcript, regime: _Fixed(function))


def _everything(history: Sequence[Wire], state: dict[str, Any]) -> Sequence[Wire]:
    return history


EVERYTHING = fixed("everything", _everything)


def _results(history: Sequence[Wire]) -> list[int]:
    return [index for index, message in enumerate(history) if message["role"] == "tool"]


def _said(message: Wire) -> str:
    """The text of a result, without the images beside it."""
    return text_of({"content": message.get("content")})


def mask(keep: int) -> Policy:
    """All results but the last `keep` are masked, at every request."""

    def view(history: Sequence[Wire], state: dict[str, Any]) -> Sequence[Wire]:
        old = set(_results(history)[:-keep])
        return [{**m, "content": MASK} if i in old else m for i, m in enumerate(history)]

    return fixed(f"mask-{keep}", view)


def mask_in_batches(batch: int, keep: int) -> Policy:
    """All results but the last `keep` are masked once those not yet masked hold `batch` tokens."""

    def view(history: Sequence[Wire], state: dict[str, Any]) -> Sequence[Wire]:
        masked: set[int] = state.setdefault("masked", set())
        new = [i for i in _results(history)[:-keep] if i not in masked]
        if sum(weight(_said(history[i])) for i in new) >= batch:
            masked.update(new)
        return [{**m, "content": MASK} if i in masked else m for i, m in enumerate(history)]

    return fixed(f"mask-{batch // 1_000}k-keep-{keep}", view)


def cut_on_arrival(each: int) -> Policy:
    """Results keep `each` characters at both ends."""

    def cut(text: str) -> str:
        return text if len(text) <= 2 * each + 50 else f"{text[:each]}\n[cut]\n{text[-each:]}"

    def cut_all(content: Any) -> Any:
        if isinstance(content, list):  # of an image nothing can be cut
            return [{**p, "text": cut(p["text"])} if isinstance(p.get("text"), str) else p for p in content]
        return cut(str(content or ""))

    def view(history: Sequence[Wire], state: dict[str, Any]) -> Sequence[Wire]:
        return [{**m, "content": cut_all(m.get("content"))} if m["role"] == "tool" else m for m in history]

    return fixed(f"cut-{each}", view)


def last_steps(steps: int) -> Policy:
    """The first two messages and the last `steps` steps."""

    def view(history: Sequence[Wire], state: dict[str, Any]) -> Sequence[Wire]:
        starts = [i for i, m in enumerate(history) if m["role"] == "assistant"]
        return history if len(starts) <= steps else [*history[:2], *history[starts[-steps] :]]

    return fixed(f"last-{steps}", view)


FIXED = (
    "mask-10", "mask-3", "last-20", "cut-1500", "cut-750", "mask-20k-keep-10", "mask-10k-keep-5",
)  # fmt: skip
MODES = ("full", "compact", "auto")
_PATTERNS: tuple[tuple[str, Callable[..., Policy]], ...] = (
    (r"mask-(\d+)k-keep-(\d+)", lambda k, keep: mask_in_batches(int(k) * 1_000, int(keep))),
    (r"mask-(\d+)", lambda keep: mask(int(keep))),
    (r"cut-(\d+)", lambda each: cut_on_arrival(int(each))),
    (r"last-(\d+)", lambda steps: last_steps(int(steps))),
)


def parse_policy(spec: str) -> Policy:
    """The policy that a name, or a mode with settings, stands for. Raises UsageError that lists what there is."""
    name, _, rest = spec.partition(",")
    name = name.strip()
    options = _options(spec, rest)
    if name in MODES:
        from brim.replay.modes import mode_policy

        return mode_policy(name, options)
    if name in _peers():
        from brim.replay.peers import peer_policy

        return peer_policy(name, options)
    if options:
        raise UsageError(f"policy {spec!r}: {name} takes no settings", hint=f"{', '.join(MODES)} and the peers do")
    if name == "everything":
        return EVERYTHING
    for pattern, make in _PATTERNS:
        if match := re.fullmatch(pattern, name):
            if not all(map(int, match.groups())):
                raise UsageError(f"policy {spec!r}: a number of 0", hint=f"for example {FIXED[0]}")
            return make(*match.groups())
    known = ["everything", *FIXED, *MODES, *_peers(), "fixed", "modes", "peers"]
    near = [f"did you mean {each}? " for each in get_close_matches(name.lower(), known, 1)]
    listed = ", ".join(known[:-3])
    raise UsageError(
        f"no policy {name!r}", hint=f"{''.join(near)}there are {listed}; and fixed, modes, peers for several at once"
    )


def expand(specs: Iterable[str]) -> list[str]:
    """The policies named, each once, in order: `fixed`, `modes` and `peers` stand for several, no name for the first two.

    Two spellings of one policy (mask-5 and mask-05) are one. Raises UsageError as `parse_policy` does.
    """
    from brim.replay.peers import installed

    groups = {"fixed": FIXED, "modes": MODES, "peers": tuple(installed())}
    found: dict[str, str] = {}
    for spec in list(specs) or ["fixed", "modes"]:
        for each in groups.get(spec, (spec,)):
            found.setdefault(parse_policy(each).name, each)
    return [spec for name, spec in found.items() if name != EVERYTHING.name]


def _peers() -> Sequence[str]:
    from brim.replay.peers import PEERS

    return tuple(PEERS)


def _options(spec: str, rest: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for piece in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = piece.partition("=")
        if not equals:
            raise UsageError(
                f"policy {spec!r}: {piece!r} is no setting", hint="write name=value, for example window=64000"
            )
        found[key.strip().replace("-", "_")] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    if text.lower() in ("none", "off"):
        return None
    try:
        return msgspec.json.decode(text.replace("_", "") if text.replace("_", "").isdigit() else text)
    except msgspec.DecodeError:
        return text


def option_names(options: Mapping[str, Any]) -> str:
    """`,window=64000` and so on, in the order given: what follows a policy's name in tables."""
    return "".join(
        f",{key}={'none' if value is None else msgspec.json.encode(value).decode().strip(chr(34))}"
        for key, value in options.items()
    )
