"""Files that a user hands over with a message: `--file PATH` and `@path` in the text.

Text is put in under its name, whole or cut at a cap that names what is missing. Images become media parts, of a PDF the
file or its text, by what the model takes: what it does not take is refused here, before anything is sent or stored. What a
file is, its first bytes say, not its name. Other binary files are refused with a word why, rather than pasted.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from brim.agent.modalities import Takes
from brim.agent.pdf import read_pdf
from brim.conversation import Media, Part
from brim.conversation.handed import typed_of
from brim.errors import UsageError

_AT = re.compile(r"(?<![\w@/.])@(\"[^\"\n]+\"|'[^'\n]+'|[^\s,;:!?，。；：！？、)\]}\"']+)")
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif")
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"), (b"%PDF-", "application/pdf"),
)  # fmt: skip
_MOST_MEDIA = 20 * 1024 * 1024
_MOST_CHARS = 2_000_000
_TREE_MOST = 200


class Attached(msgspec.Struct, frozen=True):
    """A message with its files: `text` as the model gets it, `media` beside it, `names` of all files, `notes` for the user."""

    text: str
    media: tuple[Part, ...] = ()
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def attach(
    text: str,
    files: Sequence[Path],
    workspace: Path,
    *,
    takes: Takes | None = None,
    most_chars: int | None = None,
    mentions: bool = True,
) -> Attached:
    """The user's text with the files behind it. `files` must exist; an `@path` that is no file stays the word it is.

    `takes`: what the model takes; `most_chars`: of each text file. Raises UsageError that names the file.
    """
    takes = takes or Takes("this model")
    most = most_chars or _MOST_CHARS
    paths = must_exist(files)
    notes: list[str] = []
    if mentions:
        for found in _AT.finditer(typed_of(text)):  # not what was piped in: nobody chose what it mentions
            path = workspace / found[1].strip("\"'")
            trimmed = Path(str(path).rstrip("."))
            path = path if path.exists() or not trimmed.exists() else trimmed
            if path.exists() and path not in paths:
                paths.append(path)
            elif not path.exists() and _reads_as_path(trimmed, workspace):
                near = _near(trimmed, workspace)
                notes.append(f"there is no file {_shown(trimmed, workspace)}: the mention stays text{near}")
    if not paths:
        return Attached(text, notes=tuple(notes))
    blocks: list[str] = []
    media: list[Part] = []
    for path in paths:
        shown = _shown(path, workspace)
        if path.is_dir():
            blocks.append(f'<folder path="{shown}">\n{_listing(path)}\n</folder>')
            continue
        kind = _kind(path, shown)
        if kind == "application/pdf" and not takes.pdfs:
            pages = read_pdf(path, shown, takes, most)
            blocks.append(f'<file path="{shown}" pages="{pages.count}">\n{pages.text}\n</file>')
            notes.append(f"{shown}: the text of its {pages.count:,} pages was handed over, without pictures and layout")
        elif kind is None:
            blocks.append(f'<file path="{shown}">\n{_text(path, shown, most)}\n</file>')
        else:
            media.append(_media(path, shown, kind, takes))
            blocks.append(f'<file path="{shown}">(attached)</file>')
    whole = "\n\n".join([*blocks, text] if text else blocks)
    return Attached(whole, tuple(media), tuple(_shown(path, workspace) for path in paths), tuple(notes))


def _reads_as_path(path: Path, workspace: Path) -> bool:
    """Whether a mention that names no file was meant to: it has an extension, or begins with a folder that is there."""
    if re.fullmatch(r"\.[A-Za-z]\w{0,5}", path.suffix):
        return True
    return path.parent != workspace and path.parent.is_dir()


def _near(path: Path, workspace: Path) -> str:
    with contextlib.suppress(OSError):
        names = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        if close := difflib.get_close_matches(path.name, names, 1):
            return f"; did you mean @{_shown(path.with_name(close[0]), workspace)}?"
    return ""


def must_exist(files: Sequence[Path]) -> list[Path]:
    """The paths made absolute. Raises UsageError for one that is not there."""
    paths = [path if path.is_absolute() else Path.cwd() / path for path in files]
    for path in paths:
        if not path.exists():
            raise UsageError(f"there is no file {path}", hint="check the path given with --file")
    return paths


def _kind(path: Path, shown: str) -> str | None:
    """The media type of an image or PDF by its first bytes; None for anything else. Raises UsageError where the name
    promises an image that models take and the file is none."""
    try:
        with path.open("rb") as file:
            head = file.read(1_024)
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror}", hint="check the file's permissions") from error
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    found = next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)
    if found is None and path.suffix.lower() == ".pdf" and b"%PDF-" in head:
        return "application/pdf"  # some begin with other bytes
    if found is None and path.suffix.lower() in (*_IMAGES, ".pdf"):
        wanted = "PDF" if path.suffix.lower() == ".pdf" else "image that models take"
        raise UsageError(f"{shown} is no {wanted}", hint="PNG, JPEG, GIF, WebP and PDF files can be handed over")
    return found


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


def _media(path: Path, shown: str, kind: str, takes: Takes) -> Part:
    import base64

    if kind != "application/pdf" and takes.images is False:
        raise UsageError(
            f"{takes.model} takes no images: {shown} was not sent",
            hint="choose a model that does with --model, or leave it out",
        )
    size = path.stat().st_size
    if size > _MOST_MEDIA:
        raise UsageError(
            f"{path.name} has {size:,} bytes, over the {_MOST_MEDIA:,} that are sent", hint="make it smaller"
        )
    data = base64.b64encode(path.read_bytes()).decode()
    return Media("document" if kind == "application/pdf" else "image", kind, "base64", data)


def _listing(folder: Path) -> str:
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in folder.iterdir())
    more = f"\n[{len(names) - _TREE_MOST:,} more]" if len(names) > _TREE_MOST else ""
    return "\n".join(names[:_TREE_MOST]) + more
