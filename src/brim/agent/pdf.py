"""The text of a PDF, page by page, for models that take no PDF (pypdf, the extra `pdf`)."""

from __future__ import annotations

import io
import logging

import msgspec

from brim.agent.modalities import Takes
from brim.errors import UsageError

MOST_PDF = 100 * 1024 * 1024


class Pages(msgspec.Struct, frozen=True):
    """`count` of pages in the file; `text` says which of them it holds and which have none."""

    count: int
    text: str


def read_pdf(data: bytes, shown: str, takes: Takes, most_chars: int) -> Pages:
    """The text of each page under its number, up to `most_chars`. Raises UsageError: pypdf is not here, the file is damaged,
    encrypted, too large, or holds pictures only."""
    why = f"{takes.model} takes no PDF" if takes.pdfs is False else f"whether {takes.model} takes a PDF is not known"
    try:
        import pypdf
    except ImportError as error:
        raise UsageError(
            f"{shown} was not read: {why}, and its text cannot be taken out here",
            hint="pipx install 'brim[pdf]', or choose a model that takes PDFs with --model",
        ) from error
    if len(data) > MOST_PDF:
        raise UsageError(f"{shown} has over the {MOST_PDF:,} bytes that are read", hint="make it smaller")
    # pypdf tells of every oddity in a file, which many have, as a warning on the user's terminal
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UsageError(f"{shown} is encrypted", hint="save it without a password first")
        count = len(reader.pages)
        pages: list[str] = []
        empty: list[int] = []
        size = 0
        for number in range(1, count + 1):
            text = reader.pages[number - 1].extract_text().strip()
            if not text:
                empty.append(number)
                continue
            if size + len(text) > most_chars:
                pages.append(f"[{shown} is cut here: pages {number} to {count} are left out]")
                break
            size += len(text)
            pages.append(f"[page {number}]\n{text}")
    except UsageError:
        raise
    except Exception as error:  # damaged files fail in many ways: whatever it was, this one cannot be read
        said = str(error).split("\n")[0][:200] or type(error).__name__
        raise UsageError(f"{shown} cannot be read as a PDF: {said}", hint="check that it opens in a viewer") from error
    if not size:
        raise UsageError(
            f"{shown} holds no text on its {count:,} pages (it may be scanned), and {why}",
            hint="choose a model that takes PDFs with --model, or recognise its text first",
        )
    if empty:
        named = ", ".join(map(str, empty[:20])) + (" …" if len(empty) > 20 else "")
        pages.append(f"[no text on page {named}]")
    return Pages(count, "\n\n".join(pages))
