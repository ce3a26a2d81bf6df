"""An upstream that binds thinking to its prefix, as newer Claude models do: to test that a view never breaks it.

What the vendors' pages say (platform.claude.com "Preserved thinking" and "Prefix checks on thinking blocks", Amazon
Bedrock "Preserved thinking", all read in November 2026):

- Models that run the check: Claude Fable 5.1 and 5.2, Mythos 5.1 and 5.2, Opus 5.5, Sonnet 5.5, Haiku 5.5. For 5.2 it
  holds for every account, for the others by default for accounts made since 2026-08-31.
- The signature of a `thinking` or `redacted_thinking` block covers the top-level `system`, `tools` and every message
  before the block. If any of it changed since, the block no longer fits. Token counting runs the same check.
- Each block also follows the block before it. Removing a leading run of thinking (oldest first) keeps the later blocks
  valid; removing or moving one from between others spoils every block after it.
- Moving `cache_control`, changing effort, and editing done by the server (compaction, context editing such as
  `clear_thinking_20251015`) spoil nothing. Blocks before a change, and blocks written after it, stay valid.
- The switch is `thinking.block_binding.prefix_mismatch_behavior`: "error" answers 400 `invalid_request_error` ("Invalid
  `signature` in `thinking` block. The block is bound to a different conversation. …"), "drop_block" takes the blocks
  that do not fit out of the prompt. It is a beta: header `anthropic-beta: thinking-binding-controls-2026-08-01`; it is
  not remembered between requests. With the header a response lists what was dropped in `input_transformations`:
  `{"type": "thinking_dropped", "path": "messages.3.content.0", "reason": "prefix_binding_mismatch"}`.
- A block of a model this one cannot read is dropped without an error (`model_binding_mismatch`). A block whose text or
  signature was altered is always a 400, whatever the switch says.

Not documented, and assumed here: string content equals one text block, neighbours of one role are one turn, and an
assistant message that held nothing but thinking may go with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from brim.formats import BINDING_BETA as BETA
from brim.formats import violations

_KINDS = ("thinking", "redacted_thinking")
_MAGIC = "bound1"
_SEAL = "only the upstream knows this"


class Answer(msgspec.Struct, frozen=True):
    """`status` 200 with a message, or 400 with an error body; `dropped`: paths of blocks taken out of the prompt."""

    status: int
    body: dict[str, Any]
    dropped: tuple[str, ...] = ()


class BindingUpstream:
    """Feed it successive request bodies: it signs the thinking it sends and checks what comes back.

    `enforced` says whether a request without the switch is refused (as for accounts made since 2026-08-31) or let
    through with the blocks still shown. Every request is also checked against the rules of the API itself.
    """

    def __init__(self, model: str = "claude-fable-5-1", *, enforced: bool = True) -> None:
        self.model = model
        self.enforced = enforced
        self.requests: list[Mapping[str, Any]] = []

    def answer(
        self,
        body: Mapping[str, Any],
        *,
        betas: Collection[str] = (),
        text: str = "Done.",
        thinking: Sequence[str] = ("Let me think.",),
        calls: Sequence[Mapping[str, Any]] = (),
        redacted: bool = False,
    ) -> Answer:
        """Check `body`, then answer with signed thinking, `text` and `calls` (each id, name, input).

        Several texts in `thinking` are interleaved: the first before the text, the others before the calls.
        """
        self.requests.append(body)
        behaviour = _behaviour(body)
        if behaviour is not None and BETA not in betas:
            return _refuse("thinking.adaptive.block_binding: Extra inputs are not permitted")
        if behaviour not in (None, "error", "drop_block"):
            return _refuse("thinking.block_binding.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'")
        if broken := violations(body, "anthropic.messages", "anthropic"):
            return _refuse(broken[0])
        dropped: list[dict[str, str]] = []
        for path, kind, reason in self._check(body):
            if reason == "altered":
                return _refuse(f"{path}: Invalid `signature` in `{kind}` block")
            if reason == "prefix_binding_mismatch" and behaviour != "drop_block":
                if behaviour == "error" or self.enforced:
                    return _refuse(_mismatch(path, kind, known=BETA in betas))
                dropped.append({"type": "thinking_mismatch_allowed", "path": path, "reason": reason})
                continue
            dropped.append({"type": "thinking_dropped", "path": path, "reason": reason})
        message: dict[str, Any] = {
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": self._write(body, text, thinking, calls, redacted),
            "stop_reason": "tool_use" if calls else "end_turn",
            "usage": {"input_tokens": len(json.dumps(body)) // 4, "output_tokens": len(text) // 4 + 1},
        }
        if BETA in betas:
            message["input_transformations"] = dropped
        return Answer(200, message, tuple(d["path"] for d in dropped if d["type"] == "thinking_dropped"))

    def _write(
        self,
        body: Mapping[str, Any],
        text: str,
        thinking: Sequence[str],
        calls: Sequence[Mapping[str, Any]],
        redacted: bool,
    ) -> list[dict[str, Any]]:
        messages = list(body["messages"])
        bad = {path for path, _, _ in self._check(body)}
        last = None
        for path, block in _thinking(messages):
            if path not in bad:
                last = _mark(block)
        content: list[dict[str, Any]] = []
        uses = [{"type": "tool_use", **call} for call in calls]
        spoken = [{"type": "text", "text": text}] if text else []
        rest: list[list[dict[str, Any]]] = (
            [spoken, *[[] for _ in thinking[2:]], uses] if thinking[1:] else [[*spoken, *uses]]
        )
        for i, piece in enumerate(rest):
            if i < len(thinking):
                prefix = _prefix(body, [*messages, {"role": "assistant", "content": content}])
                block = self._sign(thinking[i], prefix, last, redacted)
                last = _mark(block)
                content.append(block)
            content.extend(piece)
        return content

    def _sign(self, text: str, prefix: str, before: str | None, redacted: bool) -> dict[str, Any]:
        claims = json.dumps([self.model, prefix, before])
        seal = _hash(_SEAL, claims, text)
        token = json.dumps([_MAGIC, claims, seal, text if redacted else ""])
        if redacted:
            return {"type": "redacted_thinking", "data": token}
        return {"type": "thinking", "thinking": text, "signature": token}

    def _check(self, body: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Path, type and reason of every thinking block that may not be used."""
        messages: Sequence[Any] = body["messages"]
        last: str | None = None
        first = True
        for path, block in _thinking(messages):
            kind = str(block["type"])
            claims = self._claims(block)
            if claims is None:
                yield path, kind, "altered"
                continue
            model, prefix, before = claims
            if model != self.model:
                yield path, kind, "model_binding_mismatch"
                continue
            _, i, _, j = path.split(".")
            upto = [*messages[: int(i)], {"role": "assistant", "content": messages[int(i)]["content"][: int(j)]}]
            if prefix != _prefix(body, upto) or not (before == last or first):
                yield path, kind, "prefix_binding_mismatch"
            else:
                last = _mark(block)
            first = False

    def _claims(self, block: Mapping[str, Any]) -> tuple[str, str, str | None] | None:
        try:
            magic, claims, seal, hidden = json.loads(block["signature" if block["type"] == "thinking" else "data"])
            text = block["thinking"] if block["type"] == "thinking" else hidden
            if magic != _MAGIC or seal != _hash(_SEAL, claims, text):
                return None
            model, prefix, before = json.loads(claims)
        except (KeyError, TypeError, ValueError):
            return None
        return model, prefix, before


def _behaviour(body: Mapping[str, Any]) -> Any:
    thinking = body.get("thinking")
    binding = thinking.get("block_binding") if isinstance(thinking, Mapping) else None
    return binding.get("prefix_mismatch_behavior") if isinstance(binding, Mapping) else None


def _mismatch(path: str, kind: str, *, known: bool) -> str:
    header = "" if known else f" That setting requires the `{BETA}` value in the `anthropic-beta` header."
    return (
        f"{path}: Invalid `signature` in `{kind}` block. The block is bound to a different conversation. Remove the "
        f'block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".{header}'
    )


def _refuse(message: str) -> Answer:
    return Answer(400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}})


def _thinking(messages: Sequence[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for i, message in enumerate(messages):
        content = message.get("content")
        if message.get("role") == "assistant" and isinstance(content, list):
            for j, block in enumerate(content):
                if block.get("type") in _KINDS:
                    yield f"messages.{i}.content.{j}", block


def _mark(block: Mapping[str, Any]) -> str:
    return _hash(str(block.get("signature") or block.get("data")))


def _prefix(body: Mapping[str, Any], messages: Sequence[Any]) -> str:
    """Hash of system, tools and messages in canonical form, without thinking and cache markers."""
    turns: list[tuple[str, list[Any]]] = []
    for message in messages:
        blocks = [block for block in _blocks(message.get("content")) if block.get("type") not in _KINDS]
        if not blocks:
            continue
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    tools = _plain(body.get("tools") or [])
    return _hash(json.dumps([_blocks(body.get("system")), tools, turns], sort_keys=True))


def _blocks(content: Any) -> list[Any]:
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else _plain(content)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if k != "cache_control"}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _hash(*texts: str) -> str:
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:24]
