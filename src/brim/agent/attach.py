"""Files that a user hands over with a message: `--file PATH` and `@path` in the text.

Text is put in under its name, whole or cut at a cap that names what is missing. Images become media parts, of a PDF the
file or its text, by what the model takes: what it does not take is refused here, before anything is sent or stored. What a
file is, its first bytes say, not its name; each is read once, since a pipe (`--file <(git diff)`) gives its bytes only
once. Other binary files are refused with a word why, rather than pasted.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec

from brim.agent.modalities import Takes
from brim.agent.pdf import MOST_PDF, read_pdf
from brim.conversation import Media, Part
from brim.conversation.handed import typed_of
from brim.errors import UsageError

_ESCAPED = r"\\[ ,;:!?()\[\]{}\"']"
_AT = re.compile(rf"(?<![\w@/.])@(\"[^\"\n]+\"|'[^'\n]+'|(?:{_ESCAPED}|[^\s,;:!?，。；：！？、)\]}}\"'])+)")
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif")
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"), (b"%PDF-", "application/pdf"),
)  # fmt: skip
_MOST_MEDIA = 20 * 1024 * 1024
_MOST_CHARS = 2_000_000
_HEAD = 1_024
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
            path = workspace / _home(Path(_named(found[1])))
            trimmed = Path(str(path).rstrip("."))
            path = path if is_there(path) or not is_there(trimmed) else trimmed
            if is_there(path) and path not in paths:
                paths.append(path)
            elif not is_there(path) and _reads_as_path(trimmed, workspace):
                near = _near(trimmed, workspace)
                notes.append(f"there is no file {_shown(trimmed, workspace)}: the mention stays text{near}")
    if not paths:
        return Attached(text, notes=tuple(notes))
    blocks: list[str] = []
    media: list[Part] = []
    for path in paths:
        shown = _shown(path, workspace)
        if path.is_dir():
            blocks.append(f'<folder path="{shown}">\n{_listing(path, shown)}\n</folder>')
            continue
        file = _read(path, shown, most)
        if file.kind == "application/pdf" and not takes.pdfs:
            pages = read_pdf(file.data, shown, takes, most)
            blocks.append(f'<file path="{shown}" pages="{pages.count}">\n{pages.text}\n</file>')
            notes.append(f"{shown}: the text of its {pages.count:,} pages was handed over, without pictures and layout")
        elif file.kind is None:
            text_of, told = _text(file, shown, most)
            blocks.append(f'<file path="{shown}">\n{text_of}\n</file>')
            notes += told
        else:
            media.append(_media(file, shown, file.kind, takes))
            blocks.append(f'<file path="{shown}">(attached)</file>')
    whole = "\n\n".join([*blocks, text] if text else blocks)
    return Attached(whole, tuple(media), tuple(_shown(path, workspace) for path in paths), tuple(notes))


def is_there(path: Path) -> bool:
    """Whether a path leads to something; one that cannot be asked (a name too long, a folder shut) leads to nothing."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _named(mention: str) -> str:
    """The path that a mention means: in quotes, or with a backslash before what would end it."""
    if mention[0] in "\"'":
        return mention[1:-1]
    return re.sub(_ESCAPED, lambda found: found[0][1], mention)


def _home(path: Path) -> Path:
    """`~` as a shell reads it, where there is such a home."""
    with contextlib.suppress(RuntimeError):
        return path.expanduser()
    return path


def _reads_as_path(path: Path, workspace: Path) -> bool:
    """Whether a mention that names no file was meant to: it has an extension, or begins with a folder that is there."""
    if re.fullmatch(r"\.[A-Za-z]\w{0,5}", path.suffix):
        return True
    with contextlib.suppress(OSError, ValueError):
        return path.parent != workspace and path.parent.is_dir()
    return False


def _near(path: Path, workspace: Path) -> str:
    with contextlib.suppress(OSError):
        names = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        if close := difflib.get_close_matches(path.name, names, 1):
            return f"; did you mean @{_shown(path.with_name(close[0]), workspace)}?"
    return ""


def must_exist(files: Sequence[Path]) -> list[Path]:
    """The paths made absolute. Raises UsageError for one that is not there."""
    absolute = [path if path.is_absolute() else Path.cwd() / path for path in files]
    paths = list(
        dict.fromkeys(path if is_there(path) else _home(given) for path, given in zip(absolute, files, strict=True))
    )
    for path in paths:
        if not is_there(path):
            raise UsageError(f"there is no file {path}", hint="check the path given with --file")
    return paths


class _File(msgspec.Struct, frozen=True):
    """What was read of a file: its bytes up to a cap, how many it has (None: more than were read, of a pipe), and its media
    type where it is an image or PDF."""

    data: bytes
    size: int | None
    kind: str | None


def _read(path: Path, shown: str, most_chars: int) -> _File:
    """Reads a file once, as far as its kind is of use. Raises UsageError."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            kind = _kind(head, path, shown)
            most = MOST_PDF if kind == "application/pdf" else _MOST_MEDIA if kind else max(_HEAD, most_chars * 4)
            data = head + file.read(most + 1 - len(head))
            status = os.fstat(file.fileno())
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror}", hint="check the file's permissions") from error
    if stat.S_ISREG(status.st_mode):
        return _File(data, max(status.st_size, len(data)), kind)
    return _File(data, len(data) if len(data) <= most else None, kind)


def _kind(head: bytes, path: Path, shown: str) -> str | None:
    """The media type of an image or PDF by its first bytes; None for anything else. Raises UsageError where the name
    promises an image that models take and the file is none."""
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


def _text(file: _File, shown: str, most: int) -> tuple[str, list[str]]:
    """The text of a file in whatever encoding it stands, and what the user is told of that. Raises UsageError."""
    from brim.tools.encodings import SAMPLE, detect

    size = file.size
    told = f"{size:,} bytes" if size is not None else f"more than {len(file.data) - 1:,} bytes"
    found = detect(file.data[:SAMPLE], all_of_it=len(file.data) <= SAMPLE and len(file.data) == size)
    if isinstance(found, str):
        raise UsageError(f"{shown} is no text file but {found} ({told})", hint="hand over text, an image or a PDF")
    text = file.data[len(found.bom) :].decode(found.name, "replace")
    notes = [] if found.name == "utf-8" else [f"{shown} was read as {found.told}"]
    if len(text) <= most and len(file.data) == size:
        return text.rstrip("\n"), notes
    kept = text[:most]
    kept = kept[: kept.rfind("\n") + 1] or kept
    lines = kept.count("\n")
    cut = (
        f"{kept}[{shown} is cut here: {lines:,} lines, {len(kept):,} characters of {told} shown. "
        f"Read from offset {lines + 1}.]"
    )
    return cut, notes


def _media(file: _File, shown: str, kind: str, takes: Takes) -> Part:
    import base64

    if kind != "application/pdf" and takes.images is False:
        raise UsageError(
            f"{takes.model} takes no images: {shown} was not sent",
            hint="choose a model that does with --model, or leave it out",
        )
    if len(file.data) > _MOST_MEDIA:
        raise UsageError(f"{shown} has over the {_MOST_MEDIA:,} bytes that are sent", hint="make it smaller")
    data = base64.b64encode(file.data).decode()
    return Media("document" if kind == "application/pdf" else "image", kind, "base64", data)


def _listing(folder: Path, shown: str) -> str:
    try:
        names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in folder.iterdir())
    except OSError as error:
        raise UsageError(f"cannot list {shown}: {error.strerror}", hint="check the folder's permissions") from error
    more = f"\n[{len(names) - _TREE_MOST:,} more]" if len(names) > _TREE_MOST else ""
    return "\n".join(names[:_TREE_MOST]) + more
