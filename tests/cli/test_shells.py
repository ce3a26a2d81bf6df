"""Aliases and completion do in a real shell what the page says: each Tab offers what is there, and never prints an error."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from brim.testing import ScriptedProvider, reply
from shared_ai import Home, make_home
from shared_manage import Desk

CONFIG = (
    '[profiles.deep]\nmode = "full"\n[providers.mine]\nbase_url = "http://127.0.0.1:1/v1"\nmodels = ["big", "small"]\n'
)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    made = Desk(tmp_path, monkeypatch, capfd)
    (tmp_path / "config.toml").write_text(CONFIG)
    return made


def offered(desk: Desk, *words: str) -> list[str]:
    told = desk("complete", "--plain", "--", *words)
    assert (told.code, told.err) == (0, "")
    return told.out.splitlines()


def test_options_verbs_and_their_values_are_offered(desk: Desk) -> None:
    """Everything that the programs' own help lists can be completed."""
    assert offered(desk, "ai", "--contex") == ["--context-mode"]
    assert offered(desk, "ai", "--context-mode", "") == ["full", "compact", "auto"]
    assert offered(desk, "ai", "--output-format=s") == ["--output-format=stream-json"]
    assert offered(desk, "ai", "--effort", "h") == ["high"]
    assert "sessions" in offered(desk, "brim", "")
    assert offered(desk, "brim", "sessions", "exp") == ["export"]
    assert offered(desk, "brim", "config", "show", "context.compact_tri") == ["context.compact_trigger_ratio"]
    assert offered(desk, "brim", "cost", "--by", "m") == ["model", "mode"]
    assert offered(desk, "brim", "models", "pull", "smol") == ["smollm2"]
    assert offered(desk, "ai", "--", "--con") == [] and offered(desk, "ai", "some words") == []


def test_profiles_models_and_sessions_are_offered(desk: Desk) -> None:
    """Profiles of the settings, models with a key or configured, and the sessions of the folder by short id."""
    assert offered(desk, "ai", "--profile", "") == ["chat", "log", "code", "deep"]
    assert offered(desk, "ai", "--model", "mine/") == ["mine/big", "mine/small"]
    assert offered(desk, "ai", "-m", "local/sm") == ["local/smollm2"]
    assert offered(desk, "ai", "--model", "deepseek/") == []
    desk.set(DEEPSEEK_API_KEY="k")
    assert offered(desk, "ai", "--model", "deepseek/") == ["deepseek/deepseek-flash"]
    assert offered(desk, "ai", "--resume", "") == [] and not (desk.root / "data").exists(), "looking makes no store"
    from brim.store import open_store

    with open_store(None) as store:
        session = store.new_session(str(desk.work), "auto", "mine/rare")
        store.new_session("/somewhere/else", "auto", "mine/rare")
        store.change_session(session.id, title="about tests")
        store.record_request(session.id, mode="auto", model="mine/rare")
    found = offered(desk, "ai", "-r", "")
    assert len(found) == 1 and session.id.startswith(found[0])
    assert "about tests" in desk("complete", "--", "brim", "sessions", "show", "").out
    assert offered(desk, "ai", "--model", "mine/r") == ["mine/rare"]


def test_a_tab_never_prints_an_error(desk: Desk) -> None:
    """Settings that cannot be read, or an unknown verb, offer nothing."""
    assert offered(desk, "brim", "nonsense", "--x") == []
    (desk.root / "config.toml").write_text("modell = 3\n")
    assert offered(desk, "ai", "--profile", "c") == []
    assert offered(desk, "ai", "--contex") == ["--context-mode"]


def shell_home(tmp_path: Path) -> Home:
    home = make_home(tmp_path / "home", None)
    (home.root / "config.toml").write_text(CONFIG)
    home.env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{home.env['PATH']}"
    return home


def in_shell(home: Home, shell: str, script: str) -> str:
    flags = {"bash": ["--norc", "-c"], "zsh": ["-f", "-c"], "fish": ["--no-config", "-c"]}[shell]
    ran = subprocess.run(
        [shell, *flags, script], cwd=home.work, env=home.env, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran
    return ran.stdout


def test_bash_completes(tmp_path: Path) -> None:
    """The script that `brim completion bash` prints, sourced by a real bash."""
    script = (
        'eval "$(brim completion bash)"; COMP_WORDS=(ai --profile d); COMP_CWORD=2; '
        '_brim_complete ai; printf "%s\\n" "${COMPREPLY[@]}"; complete -p brim'
    )
    told = in_shell(shell_home(tmp_path), "bash", script).splitlines()
    assert told[0] == "deep" and "_brim_complete" in told[1]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not here")
def test_fish_completes(tmp_path: Path) -> None:
    """The same by a real fish, which shows descriptions, too."""
    told = in_shell(
        shell_home(tmp_path),
        "fish",
        'brim completion fish | source; complete -C "ai --profile d"; complete -C "brim sess"',
    )
    assert told.splitlines()[0] == "deep\tmode full" and "sessions" in told


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not here")
def test_zsh_completes(tmp_path: Path) -> None:
    """The same by a real zsh: the function is registered, and offers what brim says."""
    script = (
        'autoload -Uz compinit; compinit -u -d "$HOME/.zcompdump"; eval "$(brim completion zsh)"; print -r -- $_comps[ai]; '
        'compadd() { print -rl -- "${names[@]}" }; words=(ai --profile d); CURRENT=3; _brim_complete'
    )
    assert in_shell(shell_home(tmp_path), "zsh", script).splitlines() == ["_brim_complete", "deep"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_aliases_start_ai_with_their_profile(shell: str, tmp_path: Path) -> None:
    """`ai-deep` and its like, as the shell itself runs them."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    home = shell_home(tmp_path)
    with ScriptedProvider([reply("aliased")], repeat_last=True) as upstream:
        home.env |= {
            "OPENAI_BASE_URL": upstream.base_url,
            "BRIM_MODEL": "openai/gpt-4o",
            "SHELL": shutil.which(shell) or "",
        }
        run = "ai-deep hello --output-format json </dev/null"
        script = {
            "bash": f'shopt -s expand_aliases\neval "$(brim aliases)"\n{run}',
            "zsh": f'setopt aliases\neval "$(brim aliases)"\neval "{run}"',
            "fish": f"brim aliases | source\n{run}",
        }[shell]
        told = in_shell(home, shell, script)
    assert '"text":"aliased"' in told and '"mode":"full"' in told


def test_an_alias_for_each_profile_and_for_no_odd_name(desk: Desk) -> None:
    """Names that are no word of a shell are told and left out; an unknown shell is a usage error."""
    (desk.root / "config.toml").write_text('[profiles."a; rm -rf x"]\nmode = "full"\n[profiles.deep]\nmode = "full"\n')
    told = desk("aliases", "--shell", "bash")
    assert told.out.splitlines()[-1] == "alias ai-deep='ai --profile deep'"
    assert "rm" not in told.out and "no alias" in told.err
    assert (
        desk("aliases", "--shell", "powershell").out.splitlines()[0] == "function ai-chat { ai --profile chat @args }"
    )
    assert desk("aliases", "--shell", "csh").code == 2
