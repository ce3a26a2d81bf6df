"""What is handed over arrives whole: pipes, other encodings, odd names; and what cannot be is told, never a defect."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from brim.agent.attach import attach
from brim.errors import UsageError


def piped(folder: Path, data: bytes) -> Path:
    """A named pipe that gives the bytes once, as `<(command)` does."""
    path = folder / "pipe"
    os.mkfifo(path)
    threading.Thread(target=lambda: path.write_bytes(data), daemon=True).start()
    return path


def test_a_pipe_is_read_once_and_whole(tmp_path: Path) -> None:
    """`--file <(git diff)` hands over every byte of it, although a pipe gives each only once and has no size."""
    text = "".join(f"+ line {number}\n" for number in range(20_000))
    handed = attach("review", [piped(tmp_path, text.encode())], tmp_path)
    assert handed.text == f'<file path="pipe">\n{text}</file>\n\nreview'


def test_a_pipe_without_end_is_cut_and_told(tmp_path: Path) -> None:
    """Of more than is taken the beginning goes, and the notice names how much was shown."""
    handed = attach("review", [piped(tmp_path, b"a\n" * 1_000)], tmp_path, most_chars=100)
    assert "[pipe is cut here: 50 lines, 100 characters of more than 1,024 bytes shown." in handed.text


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-16", "Grüße, 世界"),
        ("utf-8-sig", "Grüße"),
        ("latin-1", "Grüße an alle in Köln"),
        ("gb18030", "你好，世界。" * 20),
    ],
)
def test_other_encodings_are_read(tmp_path: Path, encoding: str, text: str) -> None:
    """A text in the encodings of other systems arrives as its words, and is named as such."""
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    handed = attach("?", [tmp_path / "a.txt"], tmp_path)
    assert handed.text == f'<file path="a.txt">\n{text}\n</file>\n\n?'
    assert len(handed.notes) == (encoding != "utf-8-sig")


def test_a_binary_file_is_refused_by_what_it_is(tmp_path: Path) -> None:
    """The refusal says what the file is."""
    (tmp_path / "a").write_bytes(b"PK\3\4\0\0\0\0" + bytes(200))
    with pytest.raises(UsageError, match="a is no text file but a ZIP archive"):
        attach("?", [tmp_path / "a"], tmp_path)


@pytest.mark.parametrize(
    "mention", ['@"my notes.txt"', "@'my notes.txt'", r"@my\ notes.txt", "@~/my\\ notes.txt", '@"~/my notes.txt"']
)
def test_names_with_spaces_and_homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mention: str) -> None:
    """A mention may quote or escape a name with spaces, and `~` is home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "my notes.txt").write_text("noted\n")
    assert attach(f"see {mention}.", [], tmp_path).text.startswith('<file path="my notes.txt">\nnoted\n</file>')


@pytest.mark.parametrize("mention", ["@" + "x" * 300, "@" + "y/" * 2_500 + "z", "@~nobody-of-that-name/x", "@a\0b"])
def test_a_mention_that_cannot_be_a_path_stays_text(tmp_path: Path, mention: str) -> None:
    """Names too long for any file, homes of nobody and NULs are words."""
    assert attach(mention, [], tmp_path).text == mention


def test_a_file_given_twice_goes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file by --file twice and by a mention costs its tokens once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("once\n")
    handed = attach("@a.txt", [Path("a.txt"), tmp_path / "a.txt"], tmp_path)
    assert handed.text.count("once") == 1 and handed.names == ("a.txt",)


def test_a_folder_that_is_shut_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that may not be listed is an error of the user's, with the reason."""

    def shut(folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    refused: Callable[..., object] = shut
    monkeypatch.setattr(Path, "iterdir", refused)
    (tmp_path / "shut").mkdir()
    with pytest.raises(UsageError, match=r"cannot list shut: Permission denied"):
        attach("?", [tmp_path / "shut"], tmp_path)
