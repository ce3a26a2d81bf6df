"""Where the logs of this machine's agents lie: Claude Code's, codex', and brim's own store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def log_places(env: Mapping[str, str], home: Path) -> list[Path]:
    """The folders and files that exist. `CLAUDE_CONFIG_DIR`, `CODEX_HOME` and `BRIM_DATA_DIR` are honoured."""
    import platformdirs

    claude = Path(env["CLAUDE_CONFIG_DIR"]) if env.get("CLAUDE_CONFIG_DIR") else home / ".claude"
    codex = Path(env["CODEX_HOME"]) if env.get("CODEX_HOME") else home / ".codex"
    data = Path(env["BRIM_DATA_DIR"]) if env.get("BRIM_DATA_DIR") else Path(platformdirs.user_data_dir("brim"))
    wanted = (claude / "projects", codex / "sessions", data / "brim.db")
    return [path for path in wanted if path.exists()]
