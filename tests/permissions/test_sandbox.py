"""Commands in bubblewrap: the workspace can be written, nothing else; without it, said once, or refused."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from brim.errors import ConfigError
from brim.permissions import sandbox
from brim.permissions.sandbox import Sandbox, open_sandbox, probe, wrap

needs_bwrap = pytest.mark.skipif(probe().bwrap is None, reason=probe().why or "no sandbox")


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A workspace and its neighbour, outside /tmp, since the sandbox has a /tmp of its own."""
    base = Path(__file__).parent / ".sandbox"
    shutil.rmtree(base, ignore_errors=True)
    (base / "ws").mkdir(parents=True)
    (base / "outside").write_text("alive\n")
    yield base / "ws"
    shutil.rmtree(base)


def run(script: str, workspace: Path, settings: Sandbox) -> subprocess.CompletedProcess[str]:
    argv = wrap(["bash", "-c", script], workspace, settings)
    return subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)


@needs_bwrap
def test_only_the_workspace_is_written(workspace: Path) -> None:
    """A file inside is made; one outside cannot be changed or removed, and /tmp is the sandbox's own."""
    made = run(
        "echo x > inside; echo y > ../outside; rm -f ../outside; touch /tmp/brim-test; pwd",
        workspace,
        Sandbox(mode="required"),
    )
    assert (workspace / "inside").read_text() == "x\n"
    assert (workspace.parent / "outside").read_text() == "alive\n"
    assert not Path("/tmp/brim-test").exists()
    assert made.stdout.strip() == str(workspace)


@needs_bwrap
def test_hooks_and_settings_stay_as_they_are(workspace: Path) -> None:
    """What git would run later, outside the sandbox, cannot be planted from inside."""
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / ".git" / "config").write_text("[core]\n")
    run("echo evil > .git/hooks/pre-commit; echo evil >> .git/config", workspace, Sandbox(mode="required"))
    assert list((workspace / ".git" / "hooks").iterdir()) == []
    assert (workspace / ".git" / "config").read_text() == "[core]\n"


@needs_bwrap
def test_the_network_is_off_where_it_is_to_be(workspace: Path) -> None:
    """Without network there is only a loopback of the sandbox's own."""
    assert run("cat /proc/net/dev | wc -l", workspace, Sandbox(network=False)).stdout.strip() == "3"


@needs_bwrap
def test_exit_codes_and_folders_go_through(workspace: Path) -> None:
    """The sandbox changes neither a command's exit code nor where it starts."""
    (workspace / "sub").mkdir()
    wrap_command, notice = open_sandbox(workspace, Sandbox(mode="required"))
    assert wrap_command is not None and notice is None
    argv = wrap_command(["bash", "-c", "pwd; exit 7"], workspace / "sub")
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 7 and ended.stdout.strip() == str(workspace / "sub")


def test_without_a_sandbox_it_is_said_once_or_refused(tmp_path: Path) -> None:
    """`auto` runs as it is, with a notice; `required` refuses before anything is run; `off` says nothing."""
    missing = sandbox.probe("bwrap-that-is-not-there")
    assert missing.bwrap is None and "bubblewrap" in missing.why
    assert open_sandbox(tmp_path, Sandbox(mode="off")) == (None, None)
    assert wrap(["ls"], tmp_path, Sandbox(mode="off")) == ["ls"]
    if probe().bwrap is None:
        wrap_command, notice = open_sandbox(tmp_path, Sandbox(mode="auto"))
        assert wrap_command is None and notice is not None and "without a sandbox" in notice
        with pytest.raises(ConfigError):
            open_sandbox(tmp_path, Sandbox(mode="required"))
    with pytest.raises(ConfigError):
        open_sandbox(tmp_path, Sandbox(mode="maybe"))  # type: ignore[arg-type]
