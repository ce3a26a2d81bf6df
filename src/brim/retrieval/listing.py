"""Which files of a workspace are worth finding: what ripgrep lists under the ignore rules, without noise and secrets.

ripgrep reads .gitignore and its kin as git does, and walks in parallel. Hidden files stay out, as in a search.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from brim.errors import ToolError

MOST_FILES = 20_000
MOST_BYTES = 200_000_000
MOST_FILE_BYTES = 400_000
_SECONDS = 20

_noise_extensions = """
    png jpg jpeg gif bmp ico icns webp tif tiff svg eps psd ai pdf ps dvi djvu mp3 mp4 m4a ogg wav flac avi mov
    mkv webm
    woff woff2 ttf otf eot zip gz tgz bz2 xz zst 7z rar tar jar war whl egg deb rpm apk dmg iso exe dll so dylib a o obj lib
    class pyc pyo pyd wasm bin dat data db sqlite sqlite3 parquet feather arrow npy npz mat h5 hdf5 pkl pickle joblib pt pth
    onnx safetensors gguf model fits fit ecsv csv tsv xls xlsx doc docx ppt pptx odt ods po mo pot ipynb map lock log out
    snap orig rej patch diff min.js min.css pem key crt cer der p12 pfx jks keystore kdbx gpg asc sum xpm xcf afm pfb pfm
    """
NOISE_EXTENSIONS = frozenset(_noise_extensions.split())
_noise_names = """package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml poetry.lock uv.lock pipfile.lock cargo.lock
    composer.lock gemfile.lock go.sum pkg-info sources.txt"""
NOISE_NAMES = frozenset(_noise_names.split())
_NOISE_FOLDERS = ("*.egg-info", "*.dist-info", "bower_components", "_build")
_SECRET = re.compile(
    r"(?i)^(\.env(\..*)?|.*\.env|\.netrc|_netrc|\.pgpass|\.npmrc|\.pypirc|\.htpasswd|id_(rsa|dsa|ecdsa|ed25519).*"
    r"|.*\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk|tfvars|tfstate)(\.backup)?"
    r"|(.*[._-])?(credentials?|secrets?)([._-].*)?\.(json|ya?ml|toml|ini|cfg|conf|txt|properties|xml)|credentials?|secrets?"
    r"|service[-_]account.*\.json)$"
)


_PLAIN = (".py", ".js", ".ts", ".c", ".h", ".go", ".rs", ".java", ".md", ".rst", ".html")
"""Most files: their names are not looked at any closer."""


class Entry(msgspec.Struct, frozen=True):
    """A file by its path below the workspace, with what tells whether it changed."""

    path: str
    mtime: int
    size: int


class Listing(msgspec.Struct, frozen=True):
    """`entries` in order of path; `left_out`: files over the bounds."""

    entries: list[Entry]
    left_out: int = 0


def list_files(
    workspace: Path,
    ripgrep: str,
    noise: Sequence[str],
    *,
    most_files: int = MOST_FILES,
    most_bytes: int = MOST_BYTES,
) -> Listing:
    """The files to index. `noise`: names of folders to leave out. Where there are more than the bounds allow, those nearest
    to the workspace's top are taken. Raises ToolError where the listing fails."""
    entries: list[Entry] = []
    root = os.fspath(workspace)
    for path in list_paths(workspace, ripgrep, noise):
        if is_noise(path) or is_secret(path):
            continue
        try:
            stat = os.stat(f"{root}/{path}")
        except OSError:
            continue
        if 0 < stat.st_size <= MOST_FILE_BYTES:
            entries.append(Entry(path, stat.st_mtime_ns, stat.st_size))
    entries.sort(key=lambda each: (each.path.count("/"), each.path))
    kept, room = 0, most_bytes
    while kept < min(len(entries), most_files) and room >= entries[kept].size:
        room -= entries[kept].size
        kept += 1
    return Listing(sorted(entries[:kept], key=lambda each: each.path), len(entries) - kept)


def list_paths(workspace: Path, ripgrep: str, noise: Sequence[str]) -> list[str]:
    """Every file under the ignore rules, noise folders left out. Raises ToolError."""
    command = [ripgrep, "--files", "--null", "--no-config", "--no-messages"]
    if not any((folder / ".git").exists() for folder in (workspace, *workspace.parents)):
        command += ["--no-require-git", "--no-ignore-parent"]
    # with the stroke only folders are meant: a script called `build` is a file like any other
    command += [f"--glob=!**/{name}/" for name in (*noise, *_NOISE_FOLDERS)]
    try:
        done = subprocess.run(
            command, cwd=workspace, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"the files of {workspace} cannot be listed: {error}") from error
    paths = []
    for name in done.stdout.split(b"\0"):
        with suppress(UnicodeDecodeError):  # a name that cannot be shown cannot be asked for
            paths.append(name.decode())
    return sorted(path for path in paths if path)


def is_noise(path: str) -> bool:
    """Whether a file's name says that nobody asks about its text."""
    name = path.rpartition("/")[2].lower()
    return name.rpartition(".")[2] in NOISE_EXTENSIONS or name in NOISE_NAMES or ".min." in name


def is_secret(path: str) -> bool:
    """Whether a file's name says that it holds keys or passwords."""
    name = path.rpartition("/")[2]
    if name.endswith(_PLAIN):
        return False
    return _SECRET.match(name) is not None and not name.endswith((".example", ".sample", ".template"))


def suffix_of(path: str) -> str:
    """The last extension in lower case, without its dot."""
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return suffix.lower() if dot and stem else ""
