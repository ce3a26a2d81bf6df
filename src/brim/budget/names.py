"""Model names without what stands before them: providers, regions, fine-tuning marks."""

from __future__ import annotations

import re

_VENDOR = re.compile(r"^((us|eu|apac|global|jp|au)\.)?(anthropic|meta|amazon|mistral|deepseek|google|qwen|openai)\.")


def bare_name(model: str | None) -> str:
    """In lower case, the last part of a path: "bedrock/us.anthropic.claude-x-v1:0" is "claude-x-v1:0"."""
    name = (model or "").strip().lower().rsplit("/", 1)[-1].removeprefix("ft:")
    return _VENDOR.sub("", name)


def provider_of(model: str | None) -> str | None:
    """What stands before the first slash, in lower case; None where there is none."""
    head, slash, _ = (model or "").strip().lower().partition("/")
    return head if slash else None
