"""Which models take images and PDFs, as far as that is known by their names.

Three answers: yes, no, and not known. An image goes to a model that is not known to refuse it, and the provider has the
last word; a PDF goes as a file only where that is known to work, since its text can be handed over to any model.
Vendors' model pages, read in November 2026.
"""

from __future__ import annotations

import re

import msgspec

from brim.agent.effort import claude_version
from brim.providers import ModelRef


class Takes(msgspec.Struct, frozen=True):
    """What a model takes; None: not known. `model` as messages name it."""

    model: str
    images: bool | None = None
    pdfs: bool | None = None


_NO_IMAGES = re.compile(
    r"gpt-3|gpt-4(?:-\d{4})?$|o1-mini|o3-mini|gpt-oss|deepseek(?!.*(?:vl|ocr))|codestral|devstral|ministral-\db-24"
    r"|smollm2?-|qwen(?:1\.5|2|2\.5|3)?-(?:coder|turbo|\d+b)|qwq|codellama|llama-?(?:2|3(?:\.1|\.3)?)(?:[-:]|$)|phi-?[34]-mini",
    re.I,
)
_IMAGES = re.compile(
    r"gpt-4o|gpt-4\.[15]|gpt-4-(?:turbo|vision)|gpt-[5-9]|(?:^|/)o[134](?:$|-(?!mini))|o4-mini|gemini|claude|pixtral|llava"
    r"|(?:^|[-_.\d])vl(?:$|[-_.:])|vision|omni|gemma-?[34]|llama-?4|mistral-(?:medium|small|large)-(?:latest|3|25|26)",
    re.I,
)
_OPENAI_PDFS = re.compile(r"gpt-4o|gpt-4\.1|gpt-[5-9]|(?:^|/)o[134](?:$|-)|o4-mini", re.I)


def takes_of(model: ModelRef) -> Takes:
    """What a model takes."""
    name = model.full_name
    if model.provider == "local":
        return Takes(name, images=False, pdfs=False)  # the embedded engine is started without a picture encoder
    version = claude_version(model.model)
    if model.api == "anthropic.messages" and version is not None:
        return Takes(name, images=version >= (3, 0), pdfs=version >= (3, 5))
    if _NO_IMAGES.search(model.model) and not re.search(r"[-_.\d]vl\b|vision|omni", model.model, re.I):
        return Takes(name, images=False, pdfs=False)
    images = True if _IMAGES.search(model.model) else None
    at_openai = model.provider in ("openai", "azure", "openrouter")
    return Takes(name, images=images, pdfs=True if at_openai and _OPENAI_PDFS.search(model.model) else None)
