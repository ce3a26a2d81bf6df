"""Configuration: flag > environment > project > user > default, each with its origin; a project cannot widen anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from brim.agent.config import known_keys, load_config, load_dotenv
from brim.budget import Settings
from brim.errors import ConfigError, UsageError


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A workspace in a repository, and the user's config file."""
    work = tmp_path / "repo" / "deep"
    work.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / "repo" / ".brim").mkdir()
    return work, tmp_path / "config.toml"


def load(folders: tuple[Path, Path], env: dict[str, str] | None = None, **more: Any) -> Any:
    work, user = folders
    return load_config(work, {"BRIM_CONFIG": str(user), **(env or {})}, **more)


def project_file(folders: tuple[Path, Path]) -> Path:
    return folders[0].parent / ".brim" / "config.toml"


def test_each_layer_wins_over_the_one_below(folders: tuple[Path, Path]) -> None:
    """Default, user, project, environment, flag: the last one that speaks is heard, and named."""
    _, user = folders
    assert (load(folders).get("mode"), load(folders).origin("mode")) == ("auto", "default")
    user.write_text('mode = "full"\nmodel = "openai/a"\n')
    assert (load(folders).get("mode"), load(folders).origin("mode")) == ("full", str(user))
    project_file(folders).write_text('mode = "compact"\n')
    config = load(folders)
    assert (config.get("mode"), config.origin("mode")) == ("compact", str(project_file(folders)))
    assert config.get("model") == "openai/a"
    config = load(folders, {"BRIM_MODE": "auto"})
    assert (config.get("mode"), config.origin("mode")) == ("auto", "environment BRIM_MODE")
    config = load(folders, {"BRIM_CONTEXT_MODE": "auto"}, flags={"mode": "full", "model": None})
    assert (config.get("mode"), config.origin("mode")) == ("full", "flag")
    assert config.get("model") == "openai/a"


def test_a_profile_stands_above_files_and_below_flags(folders: tuple[Path, Path]) -> None:
    """The three built-in profiles have their modes; own ones are tables; an unknown one is named with the nearest."""
    modes = {name: load(folders, profile=name).get("mode") for name in ("chat", "log", "code")}
    assert modes == {"chat": "compact", "log": "full", "code": "auto"}
    folders[1].write_text('mode = "full"\n[profiles.review]\nmode = "compact"\ntemperature = 0.2\n')
    config = load(folders, {"BRIM_MODE": "full"}, profile="review")
    assert (config.get("mode"), config.get("temperature")) == ("compact", 0.2)
    assert config.origin("mode") == "profile review"
    assert load(folders, profile="review", flags={"mode": "auto"}).get("mode") == "auto"
    with pytest.raises(ConfigError, match="reviev") as raised:
        load(folders, profile="reviev")
    assert "review" in str(raised.value.hint)


@pytest.mark.parametrize(
    "text",
    [
        "[permissions]\nallow = ['bash(*)']\n",
        "[permissions]\nmode = 'allow-all'\n",
        "[permissions]\nmode = 'accept-edits'\n",
        "[providers.openai]\nbase_url = 'http://evil.example/v1'\n",
        "store = '/tmp/elsewhere.db'\n",
        "max_cost = 1000.0\n",
        "[prices.'*']\ninput = 0\noutput = 0\n",  # nothing would ever reach the user's limit
    ],
)
def test_a_project_cannot_widen_or_redirect(folders: tuple[Path, Path], text: str) -> None:
    """What would let tools do more, or send requests elsewhere, is left out of a project's file, and said."""
    project_file(folders).write_text(text)
    config = load(folders)
    assert len(config.warnings) == 1 and str(project_file(folders)) in config.warnings[0]
    assert config.permissions().mode == "ask" and config.permissions().allow == []
    assert config.providers() == {"providers": {}} and config.general().store is None
    assert config.general().max_cost is None and config.prices() == {}


def test_a_project_does_not_take_back_what_the_user_narrowed(folders: tuple[Path, Path]) -> None:
    """Where the user's own mode is read-only, a project's `ask` would be wider: it is left out, and said."""
    folders[1].write_text("[permissions]\nmode = 'read-only'\n")
    project_file(folders).write_text("[permissions]\nmode = 'ask'\n")
    config = load(folders)
    assert config.permissions().mode == "read-only" and "yours is read-only" in config.warnings[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("temperature = nan\n", "temperature is nan"),
        ("temperature = inf\n", "temperature is inf"),
        ("temperature = -0.5\n", "temperature is -0.5"),
        ("max_cost = -1\n", "max_cost is -1"),
        ("attempts = 0\n", "attempts is 0"),
        ("[retrieval]\nseconds = -1\n", "retrieval.seconds is -1"),
        ("[profiles.x]\nmode = 'fast'\n", "profiles.x.mode is 'fast'"),
        ("[profiles.x]\neffort = 'max'\n", "profiles.x.effort is 'max'"),
    ],
)
def test_figures_that_mean_nothing_are_told(folders: tuple[Path, Path], text: str, said: str) -> None:
    """With the file that has them, before anything is asked; from the command line it is a usage error."""
    folders[1].write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(folders)
    assert said in str(raised.value) and str(folders[1]) in str(raised.value)
    folders[1].write_text("")
    with pytest.raises(UsageError, match="--temperature is nan"):
        load(folders, flags={"temperature": float("nan")})


def test_a_word_unlike_any_other_gets_no_suggestion_from_its_table(folders: tuple[Path, Path]) -> None:
    """The name of the table alone does not make two keys alike."""
    folders[1].write_text("[context]\nnosuch = 7\n")
    with pytest.raises(ConfigError) as raised:
        load(folders)
    assert "did you mean" not in str(raised.value.hint)


def test_a_project_may_narrow(folders: tuple[Path, Path]) -> None:
    """Deny rules of user and project add up, and the project may ask for read-only."""
    folders[1].write_text("[permissions]\ndeny = ['bash(rm *)']\nallow = ['bash(ls *)']\n")
    project_file(folders).write_text("[permissions]\ndeny = ['write']\nmode = 'read-only'\n")
    rules = load(folders, flags={"permissions.allow": ["bash(git *)"]}).permissions()
    assert rules.deny == ["bash(rm *)", "write"]
    assert rules.allow == ["bash(ls *)", "bash(git *)"]
    assert rules.mode == "read-only"


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("modle = 'x'\n", "model"),
        ("[context]\ncompact_trigger = 0.5\n", "context.compact_trigger_ratio"),
        ("[tools]\ngrep_line = 5\n", "tools.grep_lines"),
        ("[permissions]\nalow = []\n", "permissions.allow"),
        ("recent_round_kept = 3\n", "context.recent_rounds_kept"),
    ],
)
def test_unknown_keys_are_named_with_the_nearest(folders: tuple[Path, Path], text: str, nearest: str) -> None:
    """A misspelled key is an error that names file, key and the right one."""
    folders[1].write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(folders)
    assert str(folders[1]) in raised.value.message and nearest in str(raised.value.hint)


def test_wrong_values_are_named_with_their_origin(folders: tuple[Path, Path]) -> None:
    """A value of the wrong kind is an error that says where it stands."""
    folders[1].write_text("max_steps = 'many'\n")
    with pytest.raises(ConfigError, match="max_steps"):
        load(folders)
    folders[1].write_text("mode = 'ful'\n")
    with pytest.raises(ConfigError, match="ful"):
        load(folders)
    folders[1].write_text("mode = [broken\n")
    with pytest.raises(ConfigError, match="no TOML"):
        load(folders)
    folders[1].write_text("")
    with pytest.raises(ConfigError, match="BRIM_MAX_STEPS"):
        load(folders, {"BRIM_MAX_STEPS": "many"})


def test_every_setting_can_be_set_by_file_and_environment(folders: tuple[Path, Path]) -> None:
    """Each field of Settings is a key of [context], bare or in the table, and BRIM_ with its name in capitals."""
    for name in Settings.__struct_fields__:
        if name not in ("summarizer", "relevance"):
            assert f"context.{name}" in known_keys()
    env = {"BRIM_COMPACT_TRIGGER_RATIO": "0.5", "BRIM_HISTORY_BUDGET": "none", "BRIM_SUPERSEDE": "false"}
    settings = load(folders, env).settings()
    assert (settings.compact_trigger_ratio, settings.history_budget, settings.supersede) == (0.5, None, False)
    folders[1].write_text("history_budget = 'none'\n")
    assert load(folders).settings().history_budget is None
    folders[1].write_text("recent_rounds_kept = 3\n[context]\nmax_response_tokens = 1000\n")
    settings = load(folders).settings()
    assert (settings.recent_rounds_kept, settings.max_response_tokens) == (3, 1000)


def test_tool_caps_come_from_the_table_and_the_environment_and_shrink_with_the_window(
    folders: tuple[Path, Path],
) -> None:
    """TOOL_GREP_MAX_TOKENS wins over [tools]; where nobody set a cap, one result takes at most an eighth of a window."""
    folders[1].write_text("[tools]\nread = 5000\n")
    config = load(folders)
    caps = config.caps({"TOOL_GREP_MAX_TOKENS": "3000"}, 8_192)
    assert (caps.grep, caps.read, caps.bash) == (3_000, 5_000, 1_024)
    assert config.caps({}, 200_000).grep == 4_000


def test_dotenv_gives_keys_and_never_sends_the_users_key_elsewhere(folders: tuple[Path, Path]) -> None:
    """Keys come from .env; what is set already stays; a base URL counts only with a key from the same file."""
    work, _ = folders
    dotenv = work / ".env"
    dotenv.write_text("OPENAI_API_KEY=sk-file\nOPENAI_BASE_URL=http://own.example/v1\nPATH=/evil\nBRIM_MODE=full\n")
    env = load_dotenv(work, {"PATH": "/bin"})
    assert env == {"PATH": "/bin", "OPENAI_API_KEY": "sk-file", "OPENAI_BASE_URL": "http://own.example/v1"}
    env = load_dotenv(work, {"OPENAI_API_KEY": "sk-user"})
    assert env == {"OPENAI_API_KEY": "sk-user"}
    dotenv.write_text("TOOL_GREP_MAX_TOKENS=500\n")
    assert load_dotenv(work, {}) == {"TOOL_GREP_MAX_TOKENS": "500"}


def test_a_misspelled_variable_is_pointed_out(folders: tuple[Path, Path]) -> None:
    """BRIM_MODLE is not taken for anything, but said."""
    assert any("BRIM_MODEL" in warning for warning in load(folders, {"BRIM_MODLE": "x"}).warnings)
    assert load(folders, {"BRIM_DATA_DIR": "/x", "BRIM_TOOL_GREP_MAX_TOKENS": "5"}).warnings == []


@pytest.mark.parametrize(
    ("text", "wrong", "right"),
    [
        ("[permision]\nallow = []\n", "permision", "permissions"),
        ("[profiles.deep]\nefort = 'low'\n", "profiles.deep.efort", "profiles.deep.effort"),
        ("[providers.mine]\nbase_ur = 'http://x'\n", "base_ur", "base_url"),
        ("fallback_model = ['a/b']\n", "fallback_model", "fallback_models"),
        ("[tools]\nreed = 1\n", "tools.reed", "tools.read"),
    ],
)
def test_every_unknown_key_names_the_nearest(text: str, wrong: str, right: str, tmp_path: Path) -> None:
    """Tables, profiles and providers included, whether or not they are used."""
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as told:
        load_config(tmp_path, {"BRIM_CONFIG": str(file)})
    assert repr(wrong) in told.value.message and repr(right) in (told.value.hint or "")
