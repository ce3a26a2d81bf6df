"""The directory tree in few lines: what lies near the top whole, what lies deep as a count, the same for the same files."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

MOST_LINES = 120
MOST_CHARS = 4_000
_OF_ONE_FOLDER = 25
"""Files listed of one folder; the others are counted."""


class _Folder:
    def __init__(self) -> None:
        self.folders: dict[str, _Folder] = {}
        self.files: list[str] = []
        self.count = 0
        self.open = False

    def entries(self) -> int:
        return len(self.folders) + min(len(self.files), _OF_ONE_FOLDER + 1)


def render_tree(paths: Iterable[str], *, most_lines: int = MOST_LINES, most_chars: int = MOST_CHARS) -> str:
    """The tree of these paths, one entry a line, indented by depth; "" where there is none. Folders are opened from the top
    down while there is room; one that stays shut says how many files are below it."""
    root = _Folder()
    for path in sorted(paths):
        *folders, name = path.split("/")
        at = root
        at.count += 1
        for part in folders:
            at = at.folders.setdefault(part, _Folder())
            at.count += 1
        at.files.append(name)
    lines = 0
    waiting = deque([root])
    while waiting:
        folder = waiting.popleft()
        if folder is not root and lines + folder.entries() > most_lines:
            continue
        folder.open = True
        lines += folder.entries()
        waiting.extend(folder.folders[name] for name in sorted(folder.folders))
    text: list[str] = []
    _render(root, 0, text)
    kept, chars = 0, 0
    while kept < min(len(text), most_lines) and chars + len(text[kept]) < most_chars:
        chars += len(text[kept]) + 1
        kept += 1
    if kept < len(text):
        text = [*text[:kept], "…"]
    return "\n".join(text)


def _render(folder: _Folder, depth: int, out: list[str]) -> None:
    indent = "  " * depth
    for name in sorted(folder.folders):
        below = folder.folders[name]
        while len(below.folders) == 1 and not below.files:  # a folder that holds but one folder shares its line
            ((inner, below),) = below.folders.items()
            name = f"{name}/{inner}"
        if below.open:
            out.append(f"{indent}{name}/")
            _render(below, depth + 1, out)
        else:
            out.append(f"{indent}{name}/ ({below.count:,} file{'s' if below.count > 1 else ''})")
    out += [f"{indent}{name}" for name in folder.files[:_OF_ONE_FOLDER]]
    if len(folder.files) > _OF_ONE_FOLDER:
        out.append(f"{indent}… {len(folder.files) - _OF_ONE_FOLDER:,} more files")
