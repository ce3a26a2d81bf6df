"""What each provider insists on beyond its schema, and a validator that says where a body breaks it.

A dialect names the rules behind a model: hosted OpenAI takes neighbours of one role, a chat template in llama.cpp or
vLLM raises on them. `violations` reads raw wire objects and knows nothing of the parser or the renderer, so that it can
judge both.

    openai            hosted chat completions, and what most compatible services accept
    openai-strict     local chat templates: one system message, first; user and assistant in turns, user first
    mistral           the same order, and call ids of nine letters or digits (the API answers 400, code 3280, otherwise)
    gemini            first a user turn; a function call only after a user turn or a function response
    anthropic         messages API
    openai-responses  Responses API
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from brim.errors import UsageError
from brim.formats.checks import list_of
from brim.formats.rules_anthropic import anthropic_violations
from brim.formats.rules_chat import chat_violations, gemini_violations, order_violations
from brim.formats.rules_responses import responses_violations

DIALECTS = ("openai", "openai-strict", "mistral", "gemini", "anthropic", "openai-responses")

_MISTRAL = re.compile(r"(^|[/:_-])(mistral|mixtral|ministral|codestral|devstral|magistral|pixtral|mathstral)")
_GEMINI = re.compile(r"(^|[/:_-])(gemini|learnlm)")
_LOCAL = re.compile(r"\.gguf$|^(local|llama\.cpp|llamacpp|vllm|lmstudio|lm_studio|mlx|sglang|tgi)/")


def dialect_of(model: str | None, api: str) -> str:
    """The dialect of a model behind `api`. A chat model brim does not know is plain `openai`, the most lenient."""
    if api == "anthropic.messages":
        return "anthropic"
    if api == "openai.responses":
        return "openai-responses"
    if api != "openai.chat":
        raise UsageError(f"unknown api {api!r}")
    name = (model or "").lower()
    if _LOCAL.search(name):
        return "openai-strict"
    if _MISTRAL.search(name):
        return "mistral"
    return "gemini" if _GEMINI.search(name) else "openai"


def violations(body: Mapping[str, Any], api: str, dialect: str) -> list[str]:
    """Every rule of `dialect` that the rendered `body` breaks, one sentence each with its place; empty if it is valid.

    Raises UsageError for an unknown dialect.
    """
    if dialect not in DIALECTS:
        raise UsageError(f"unknown dialect {dialect!r}", hint=f"One of {', '.join(DIALECTS)}.")
    found = list(_unencodable(body))
    if api == "anthropic.messages":
        found += anthropic_violations(body)
    elif api == "openai.responses":
        found += responses_violations(body)
    else:
        messages = list_of(body, "messages", found)
        found += chat_violations(messages, dialect)
        if dialect in ("openai-strict", "mistral"):
            found += order_violations(messages)
        if dialect == "gemini":
            found += gemini_violations(messages)
    return found


def _unencodable(body: Mapping[str, Any]) -> Iterator[str]:
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        yield "body: holds a lone surrogate, which no JSON body can carry"
    except (TypeError, ValueError) as error:
        yield f"body: is no JSON ({error})"
