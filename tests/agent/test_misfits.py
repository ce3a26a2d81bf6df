"""What is wrong in a config file is said in its writer's words: the key, the file, what it takes; the user's prices hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from brim.agent.config import load_config
from brim.errors import ConfigError
from brim.testing import ScriptedProvider, reply
from shared_ai import make_home


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('max_steps = "many"', "max_steps: expected a whole number, got a text ({file})"),
        ('markdown = "no"', "markdown: expected true or false, got a text ({file})"),
        ('[permissions]\nallow = "bash(ls)"', "permissions.allow: expected a list, got a text ({file})"),
        ("[profiles.x]\nmode = 3", "profiles.x.mode: expected a text or nothing, got a whole number ({file})"),
        ('[mcp.servers.here]\ncomand = "x"', "{file}: unknown key 'mcp.servers.here.comand'"),
        ("[mcp]\nschema_token = 5", "{file}: unknown key 'mcp.schema_token'"),
        ("[mcp.servers.here]\ncommand = 3", "mcp.servers.here.command: expected a text or nothing, got a whole number"),
        ("[prices.x]\ninput = 1", "bad price for 'x': object missing required field output"),
        ("[prices.x]\ninput = 'a'", "bad price for 'x': input: expected a number, got a text"),
        ("[providers.w]\nbase_url = 3", "provider 'w': base_url: expected a text or nothing, got a whole number"),
    ],
)
def test_a_value_that_does_not_fit_is_named(tmp_path: Path, text: str, said: str) -> None:
    """Key, place and kind of value, in no decoder's jargon."""
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path, {"BRIM_CONFIG": str(file)})
    assert caught.value.message.startswith(said.format(file=file))


def test_the_nearest_key_of_a_server_is_named(tmp_path: Path) -> None:
    """The hint is the key as it would stand in the file."""
    (tmp_path / "config.toml").write_text('[mcp.servers.here]\ncomand = "x"')
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path, {"BRIM_CONFIG": str(tmp_path / "config.toml")})
    assert caught.value.hint == "did you mean 'mcp.servers.here.command'?"


def test_a_variable_that_does_not_fit_is_named(tmp_path: Path) -> None:
    """So is one in the environment."""
    with pytest.raises(ConfigError, match=r"BRIM_MAX_STEPS is 'abc': expected a whole number$"):
        load_config(tmp_path, {"BRIM_CONFIG": str(tmp_path / "none"), "BRIM_MAX_STEPS": "abc"})


def test_the_users_own_prices_are_what_it_costs(tmp_path: Path) -> None:
    """[prices] in the config prices a model that brim knows nothing of, a pattern's too, and max_cost holds to it."""
    usage = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
    with ScriptedProvider([reply("yes", usage=usage)], repeat_last=True) as upstream:
        home = make_home(tmp_path, None)
        (tmp_path / "config.toml").write_text(
            f'max_cost = 0.01\n[providers.work]\nbase_url = "{upstream.base_url}"\n'
            '[prices."work/*"]\ninput = 10\noutput = 100\n'
        )
        ran = home.run("hello", "--model", "work/mine", "--session", "s", "--output-format", "json")
        assert ran.result["cost"] == pytest.approx(0.02)
        again = home.run("more", "--model", "work/mine", "--session", "s", "--output-format", "json")
        assert again.code == 3 and "no price" not in ran.err
        schema = json.loads(home.manage("config", "schema").out)
    assert schema["properties"]["prices"]["additionalProperties"]["required"] == ["input", "output"]
