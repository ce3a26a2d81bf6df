"""Files that a user hands over: text, images and PDFs where the model takes them, the text of a PDF where it does not."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from brim.agent.modalities import Takes, takes_of
from brim.providers import ModelRef, resolve_model
from brim.testing import ScriptedProvider, reply
from shared_ai import Home, Ran, make_home


def png() -> bytes:
    """A real 1x1 PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")
    )  # fmt: skip


def pdf(*pages: str) -> bytes:
    """A real PDF with a page for each text; an empty text makes a page without any."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode() if text else b""
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%b] /Count %d >>" % (b" ".join(kids), len(kids))
    out, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)


def handed(home: Home, upstream: ScriptedProvider, *arguments: str) -> tuple[Ran, list[dict[str, Any]]]:
    """A run, and the content blocks of the user message that the server got."""
    ran = home.run("what is it?", *arguments)
    if ran.code:
        return ran, []
    content = upstream.requests[-1].messages[-1]["content"]
    return ran, [{"type": "text", "text": content}] if isinstance(content, str) else content


def test_an_image_reaches_a_model_that_takes_it(tmp_path: Path) -> None:
    """Under its real type, whatever its name says, in each API's own form."""
    with ScriptedProvider([reply("a dot")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        (home.work / "dot.jpg").write_bytes(png())
        encoded = base64.b64encode(png()).decode()
        _, blocks = handed(home, upstream, "--file", "dot.jpg")
        assert {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded}"}} in blocks
        (home.root / "config.toml").write_text(
            f'[providers.a]\napi = "anthropic.messages"\nbase_url = "{upstream.url}"\nkey = "k"\n'
        )
        _, blocks = handed(home, upstream, "--file", "dot.jpg", "--model", "a/claude-sonnet-5-5")
        assert any(
            each.get("source") == {"type": "base64", "media_type": "image/png", "data": encoded} for each in blocks
        )


def test_an_image_for_a_model_without_eyes_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    """Exit 2, the file and the model by name, no request, no session left behind; in the next prompt all is well."""
    with ScriptedProvider([reply("ok")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        (home.work / "dot.png").write_bytes(png())
        for model in ("openai/gpt-3.5-turbo", "openai/deepseek-flash"):
            ran = home.run("what is it?", "--file", "dot.png", "--model", model, "--output-format", "json")
            assert ran.code == 2 and ran.result["error"]["kind"] == "usage"
            assert "dot.png" in ran.result["error"]["message"] and model in ran.result["error"]["message"]
        mentioned = home.run("what is in @dot.png?", "--model", "openai/gpt-3.5-turbo")
        assert mentioned.code == 2 and "takes no images" in mentioned.err
        assert not upstream.requests
        assert home.run("again", "-c").code == 2, "there is no session to continue"
        assert home.run("first", "--session", "s").code == 0
        assert home.run("look", "--session", "s", "--file", "dot.png", "--model", "openai/gpt-3.5-turbo").code == 2
        assert home.run("second", "--session", "s").code == 0, "what was said before is still there"
        assert [each["content"] for each in upstream.requests[-1].messages[1:]] == ["first", "ok", "second"]


def test_a_pdf_goes_as_a_file_or_as_its_text(tmp_path: Path) -> None:
    """As a file to models known to take it; to any other its text, page by page, and the user is told."""
    pytest.importorskip("pypdf")
    with ScriptedProvider([reply("ok")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        (home.work / "paper.pdf").write_bytes(pdf("The first page", "", "Seven is the answer"))
        ran, blocks = handed(home, upstream, "--file", "paper.pdf")
        assert any(each["type"] == "file" for each in blocks) and ran.code == 0
        ran, blocks = handed(home, upstream, "--file", "paper.pdf", "--model", "openai/my-own-model")
        text = blocks[0]["text"]
        assert '<file path="paper.pdf" pages="3">' in text and "[page 1]\nThe first page" in text
        assert "[page 3]\nSeven is the answer" in text and "[no text on page 2]" in text
        assert "the text of its 3 pages" in ran.err and "base64" not in json.dumps(upstream.requests[-1].body)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pdf(""), "scanned"),
        (b"%PDF-1.4\nthis is no PDF", "cannot be read as a PDF"),
        (b"hello", "no PDF"),
        (b"", "no PDF"),
    ],
)
def test_a_pdf_without_text_is_refused_with_a_reason(data: bytes, words: str, tmp_path: Path) -> None:
    """Scans, damaged files and other things under that name: exit 2, no traceback, no pypdf warnings."""
    pytest.importorskip("pypdf")
    with ScriptedProvider([]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        (home.work / "x.pdf").write_bytes(data)
        ran = home.run("read it", "--file", "x.pdf", "--model", "openai/my-own-model")
        assert ran.code == 2 and words in ran.err and "x.pdf" in ran.err
        assert len(ran.err.splitlines()) == 2, ran.err


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    """A file that only calls itself an image, and images that no API takes."""
    home = make_home(tmp_path / "home", None)
    (home.work / "x.png").write_text("not a picture")
    (home.work / "y.bmp").write_bytes(b"BM" + bytes(60))
    for name in ("x.png", "y.bmp"):
        ran = home.run("look", "--file", name, "--model", "openai/gpt-4o")
        assert ran.code == 2 and f"{name} is no image that models take" in ran.err


TAKES: list[tuple[str, bool | None, bool | None]] = [
    ("openai/gpt-4o-mini", True, True), ("openai/gpt-6.1-terra", True, True), ("openai/o3-mini", False, False),
    ("openai/gpt-4", False, False), ("anthropic/claude-sonnet-5-5", True, True),
    ("anthropic/claude-3-haiku-20240307", True, False), ("gemini/gemini-3.8-flash", True, None),
    ("deepseek/deepseek-flash", False, False), ("dashscope/qwen3-vl-plus", True, None), ("ollama/qwen3:8b", None, None),
    ("dashscope/qwen2.5-coder", False, False), ("ollama/llava:7b", True, None), ("local/smollm2", False, False),
    ("mistral/pixtral-large-latest", True, None), ("vllm/some/model", None, None), ("ollama/gemma3:4b", True, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "images", "pdfs"), TAKES)
def test_what_models_take(name: str, images: bool | None, pdfs: bool | None) -> None:
    """Yes, no, or not known: by the names of models, as vendors give them."""
    model: ModelRef = resolve_model(name, {})
    assert takes_of(model) == Takes(name, images, pdfs)
