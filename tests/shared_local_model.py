"""The embedded model for tests: the file that is here, or fetched once; a reason to skip where neither works."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

from brim.errors import BrimError
from brim.providers.models import model_path, pull


@functools.cache
def embedded_model() -> tuple[Path | None, str]:
    """The model's file, or None and why not."""
    if importlib.util.find_spec("xllamacpp") is None:
        return None, "the extra `local` (xllamacpp) is not installed"
    try:
        return model_path("smollm2"), ""
    except BrimError:
        pass
    try:
        return pull("smollm2"), ""
    except BrimError as error:
        return None, f"the embedded model is not here and cannot be pulled: {error}"
