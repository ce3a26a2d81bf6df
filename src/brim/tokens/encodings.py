"""Which encoding a model counts with, and functions that count a batch of texts in it, offline.

`toktok` carries its vocabularies inside the wheel and is linear on any text. `tiktoken` stands in only where toktok is
missing or lacks the encoding, and only if the vocabulary already lies in its cache with the right checksum: tiktoken
itself would go to the network at first use. Where neither can count, the caller falls back to an estimate.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

BatchCount: TypeAlias = Callable[[list[str]], list[int]]
"""Token counts of texts, in order. Takes clean text only: lone surrogates are the caller's to replace."""

FALLBACK = "cl100k_base"

# First match wins. True: the encoding is the model's own. Qwen 3.5 and 3.6 share one vocabulary; earlier ones have
# another, smaller one, which this stands in for. DashScope's aliases (qwen-plus, qwen-max) move between the two.
_MODELS: tuple[tuple[re.Pattern[str], str, bool], ...] = tuple(
    (re.compile(pattern), encoding, exact)
    for pattern, encoding, exact in (
        (r"^gpt-?oss", "o200k_harmony", True),
        (r"^(gpt-4o|gpt-4\.1|gpt-4\.5|gpt-[5-9]|chatgpt-4o|chat-?gpt-[5-9])", "o200k_base", True),
        (r"^(o[1-9](-|$)|codex-mini|computer-use-preview)", "o200k_base", True),
        (r"^(gpt-4|gpt-3\.5|gpt-35|text-embedding-(3|ada-002))", "cl100k_base", True),
        (r"^(text-davinci-00[23]|code-davinci|code-cushman)", "p50k_base", True),
        (r"^(davinci|curie|babbage|ada|gpt2)(-|$|\d)", "r50k_base", True),
        (r"^qwen-?3\.[56]", "qwen3.5", True),
        (r"^(qwen|qwq|qvq)", "qwen3.5", False),
    )
)


def encoding_of(model: str | None) -> tuple[str, bool]:
    """Name of the encoding for a model and whether it is the model's own.

    The provider's prefix ("openai/", "azure/", "ft:") does not matter. Unknown models get cl100k_base, not their own.
    """
    name = bare_name(model)
    for pattern, encoding, exact in _MODELS:
        if pattern.search(name):
            return encoding, exact
    return FALLBACK, False


def bare_name(model: str | None) -> str:
    """A model's name in lower case, without provider, region and fine-tuning prefixes: "us.anthropic.claude-x" is
    "claude-x", "ft:gpt-4o:org::id" is "gpt-4o:org::id"."""
    name = (model or "").strip().lower().rsplit("/", 1)[-1].removeprefix("ft:")
    return re.sub(r"^((us|eu|apac|global)\.)?(anthropic|meta|amazon|mistral|deepseek|google|qwen)\.", "", name)


def batch_count(encoding: str) -> BatchCount | None:
    """The counting function of an encoding, or None if nothing here can count with it offline. Never raises."""
    try:
        import toktok

        if encoding in toktok._BUILTIN:
            return _with_toktok(encoding)
    except (ImportError, AttributeError):
        pass
    return _with_tiktoken(encoding)


def _with_toktok(encoding: str) -> BatchCount:
    from toktok import batch_count as count

    def count_batch(texts: list[str]) -> list[int]:
        # A single thread spares a short batch the start of a pool, which would cost more than the counting.
        few = len(texts) < 8 and sum(map(len, texts)) < 20_000
        counts: list[int] = count(texts, encoding, 1 if few else 0)
        return counts

    return count_batch


_CHUNK = 4_000
"""Characters tiktoken gets at once: its time on a run without spaces grows faster than its length."""


def _with_tiktoken(encoding: str) -> BatchCount | None:
    if not _tiktoken_has(encoding):
        return None
    try:
        import tiktoken

        known = tiktoken.get_encoding(encoding)
    except Exception:  # a damaged cache, a plugin that fails: any of it means "cannot count offline"
        return None

    def count_batch(texts: list[str]) -> list[int]:
        return [
            sum(len(known.encode_ordinary(piece)) for piece in _chunks(text)) if len(text) > _CHUNK
            else len(known.encode_ordinary(text))
            for text in texts
        ]  # fmt: skip

    return count_batch


def _chunks(text: str) -> list[str]:
    """The text in pieces of about `_CHUNK` characters, cut before a space or newline where one is near."""
    pieces, at = [], 0
    while len(text) - at > _CHUNK:
        end = max(text.rfind(" ", at + _CHUNK // 2, at + _CHUNK), text.rfind("\n", at + _CHUNK // 2, at + _CHUNK))
        end = end if end > at else at + _CHUNK
        pieces.append(text[at:end])
        at = end
    pieces.append(text[at:])
    return pieces


# The addresses name the cache files; nothing is fetched from them here. Checksums as tiktoken states them.
_TIKTOKEN_FILES = {
    "o200k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "p50k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/p50k_base.tiktoken",
        "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    ),
    "r50k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/r50k_base.tiktoken",
        "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    ),
}
_TIKTOKEN_FILES["o200k_harmony"] = _TIKTOKEN_FILES["o200k_base"]


def _tiktoken_has(encoding: str) -> bool:
    """Whether tiktoken's cache holds the vocabulary intact, so that loading it will not touch the network."""
    if encoding not in _TIKTOKEN_FILES:
        return False
    import hashlib
    import os
    import tempfile
    from pathlib import Path

    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    if not folder:  # set to nothing: tiktoken then never caches, and would download
        return False
    url, checksum = _TIKTOKEN_FILES[encoding]
    try:
        data = (Path(folder) / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()).read_bytes()
    except OSError:
        return False
    return hashlib.sha256(data).hexdigest() == checksum
