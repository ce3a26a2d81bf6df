"""Files that a user hands over with a message: `--file PATH` and `@path` in the text.

Text is put in under its name, whole or cut at a cap that names what is missing; images become media parts. Binary files
and folders are refused with a word why, rather than pasted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from brim.conversation import Media, Part
from brim.errors import UsageError

_AT = re.compile(r"(?<![\w@/.])@(\"[^\"\n]+\"|'[^'\n]+'|[^\s,;:!?，。；：！？、)\]}\"']+)")
_IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
_DOCUMENTS = {".pdf": "application/pdf"}
_MOST_MEDIA = 20 * 1024 * 1024
_MOST_CHARS = 2_000_000
_TREE_MOST = 200


class Attached(msgspec.Struct, frozen=True):
    """A message with its files: `text` as the model gets it, `media` beside it, `names` of all files."""

    text: str
    media: tuple[Part, ...] = ()
    names: tuple[str, ...] = ()


def attach(
    text: str, files: Sequence[Path], workspace: Path, *, most_chars: int | None = None, mentions: bool = True
) -> Attached:
    """The user's text with the files behind it. `files` must exist; an `@path` that is no file stays the word it is.

    `most_chars`: of each text file. Raises UsageError that names the file.
    """
    paths = [path if path.is_absolute() else Path.cwd() / path for path in files]
    for path in paths:
        if not path.exists():
            raise UsageError(f"there is no file {path}", hint="check the path given with --file")
    if mentions:
        for found in _AT.finditer(text):
            path = workspace / found[1].strip("\"'")
            trimmed = Path(str(path).rstrip("."))
            path = path if path.exists() or not trimmed.exists() else trimmed
            if path.exists() and path not in paths:
                paths.append(path)
    if not paths:
        return Attached(text)
    blocks: list[str] = []
    media: list[Part] = []
    for path in paths:
        shown = _shown(path, workspace)
        suffix = path.suffix.lower()
        if suffix in _IMAGES or suffix in _DOCUMENTS:
            media.append(_media(path, suffix))
            blocks.append(f'<file path="{shown}">(attached)</file>')
        elif path.is_dir():
            blocks.append(f'<folder path="{shown}">\n{_listing(path)}\n</folder>')
        else:
            blocks.append(f'<file path="{shown}">\n{_text(path, shown, most_chars or _MOST_CHARS)}\n</file>')
    whole = "\n\n".join([*blocks, text] if text else blocks)
    return Attached(whole, tuple(media), tuple(_shown(path, workspace) for path in paths))


def _shown(path: Path, workspace: Path) -> str:
    try:
        return str(path.resolve().relative_to(workspace.resolve()))
    except ValueError:
        return str(path)


def _text(path: Path, shown: str, most: int) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(most * 4 + 1)
        size = path.stat().st_size
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror}", hint="check the file's permissions") from error
    if b"\0" in data[:8192]:
        raise UsageError(f"{shown} is no text file ({size:,} bytes)", hint="hand over text, an image or a PDF")
    text = data.decode("utf-8", "replace")
    if len(text) <= most and len(data) == size:
        return text.rstrip("\n")
    kept = text[:most]
    kept = kept[: kept.rfind("\n") + 1] or kept
    lines = kept.count("\n")
    return (
        f"{kept}[{shown} is cut here: {lines:,} lines, {len(kept):,} characters of {size:,} bytes shown. "
        f"Read from offset {lines + 1}.]"
    )


def _media(path: Path, suffix: str) -> Part:
    import base64

    size = path.stat().st_size
    if size > _MOST_MEDIA:
        raise UsageError(
            f"{path.name} has {size:,} bytes, over the {_MOST_MEDIA:,} that are sent", hint="make it smaller"
        )
    data = base64.b64encode(path.read_bytes()).decode()
    if suffix in _IMAGES:
        return Media("image", _IMAGES[suffix], "base64", data)
    return Media("document", _DOCUMENTS[suffix], "base64", data)


def _listing(folder: Path) -> str:
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in folder.iterdir())
    more = f"\n[{len(names) - _TREE_MOST:,} more]" if len(names) > _TREE_MOST else ""
    return "\n".join(names[:_TREE_MOST]) + more
