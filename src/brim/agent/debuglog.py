"""The debug log: what was asked, what was called, how much came back; JSON lines, flushed one by one, keys masked."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from brim.errors import ConfigError
from brim.providers.error_body import mask


class DebugLog:
    """A file of JSON lines; None as the path writes nothing. `secrets` never stand in it."""

    def __init__(self, path: Path | None = None, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(secret for secret in secrets if secret)
        self._file = None
        if path is not None:
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)  # it holds conversations
                self._file = os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace")
            except OSError as error:
                raise ConfigError(
                    f"cannot write the debug log {path}: {error.strerror}",
                    hint="give --debug a file that can be written",
                ) from error

    @property
    def on(self) -> bool:
        return self._file is not None

    def write(self, event: str, **facts: Any) -> None:
        """One line: the time, the event, and its facts."""
        if self._file is None:
            return
        line = msgspec.json.encode({"time": round(time.time(), 3), "event": event, **facts}, enc_hook=str)
        self._file.write(mask(line.decode("utf-8", "replace"), self._secrets) + "\n")
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
