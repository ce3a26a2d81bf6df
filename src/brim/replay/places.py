"""Where the logs of this machine's agents lie: Claude Code's, codex', and brim's own store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def log_places(env: Mapping[str, str], home: Path) -> list[Path]:
    """The folders and files that exist. `CLAUDE_CONFIG_DIR`, `CODEX_HOME` and `BRIM_DATA_DIR` are honoured; where Claude
    Code's is not set, its logs lie in either of two places, by its version. codex keeps archived sessions apart."""
    import platformdirs

    told = env.get("CLAUDE_CONFIG_DIR")
    config = Path(env["XDG_CONFIG_HOME"]) if env.get("XDG_CONFIG_HOME") else home / ".config"
    claude = [Path(told)] if told else [home / ".claude", config / "claude"]
    codex = Path(env["CODEX_HOME"]) if env.get("CODEX_HOME") else home / ".codex"
    data = Path(env["BRIM_DATA_DIR"]) if env.get("BRIM_DATA_DIR") else Path(platformdirs.user_data_dir("brim"))
    wanted = (
        *(each / "projects" for each in claude), codex / "sessions", codex / "archived_sessions", data / "brim.db"
    )  # fmt: skip
    return [path for path in wanted if path.exists()]
