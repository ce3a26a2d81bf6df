"""Which servers there are: references to variables, what is hidden, and what a project's .mcp.json may say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from brim.errors import ConfigError
from brim.tools.mcp.project import Trust, project_servers
from brim.tools.mcp.settings import ServerSettings, build_launch

ENV = {
    "TOKEN": "s3cret-value",
    "EMPTY": "",
    "PATH": "/bin",
    "OPENAI_API_KEY": "sk-0123456789abcdefghij",
    "PLAIN": "plain words",
}


def test_references_are_filled_in_and_hidden(tmp_path: Path) -> None:
    """A variable stands where it is referred to, a default where it is not set; no text shows what was filled in."""
    server = ServerSettings(
        command="${HOME_OF:-/opt}/run",
        args=["--key=${TOKEN}", "$TOKEN", "${EMPTY:-none}"],
        env={"A": "x${TOKEN}y", "API_KEY": "written in the file", "B": "b"},
    )
    launch = build_launch(server, tmp_path, ENV)
    assert launch.argv == ["/opt/run", "--key=s3cret-value", "$TOKEN", "none"]
    assert launch.env["A"] == "xs3cret-valuey" and launch.env["PLAIN"] == "plain words"
    assert "TOKEN" not in launch.env and "OPENAI_API_KEY" not in launch.env
    assert launch.hide("it said s3cret-value, written in the file, b") == "it said ${TOKEN}, [API_KEY], b"


def test_a_variable_that_is_not_set_is_named(tmp_path: Path) -> None:
    """Neither an empty variable nor a missing one is filled in silently."""
    for name in ("EMPTY", "MISSING"):
        with pytest.raises(ConfigError, match=f"the variable {name} is not set"):
            build_launch(ServerSettings(url="https://x/${" + name + "}"), tmp_path, ENV)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "cannot be read"),
        ("[]", "mcpServers is no object"),
        ('{"mcpServers": []}', "mcpServers is no object"),
        ('{"mcpServers": {"a": 5}}', "it is no object"),
        ('{"mcpServers": {"a": {"type": "sse", "url": "https://x"}}}', "'sse' is not supported"),
        ('{"mcpServers": {"a": {"command": 5}}}', "command"),
        ('{"mcpServers": {"a": {}}}', "either command or url"),
        ('{"mcpServers": {"a b": {"command": "x"}}}', "the name is not usable"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_a_wrong_file_of_a_project_is_told(tmp_path: Path, text: str, words: str) -> None:
    """Whatever stands in a .mcp.json, it is told what is wrong with it, and nothing is raised."""
    (tmp_path / ".mcp.json").write_text(text)
    (found,) = project_servers(tmp_path)
    assert found.settings is None and words in found.wrong and ".mcp.json" in found.wrong


def write(folder: Path, **servers: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def test_the_file_of_a_project_is_looked_for_up_to_its_root(tmp_path: Path) -> None:
    """A folder inside the repository finds the file above it; what lies above the repository is not its own."""
    write(tmp_path, outer={"command": "x"})
    inner = tmp_path / "repo" / "src"
    inner.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    assert project_servers(inner) == []
    write(tmp_path / "repo", own={"type": "http", "url": "https://x", "headers": {"A": "${A}"}, "alwaysAllow": ["*"]})
    (found,) = project_servers(inner)
    assert found.name == "own" and found.settings is not None and found.told() == "https://x (given: A)"


def test_trust_is_in_one_definition_at_one_place(tmp_path: Path) -> None:
    """Another argument, another variable, another name or another folder: each is another server, and asks anew."""
    trust = Trust(tmp_path / "config" / "mcp-trusted.json")
    entry = {"command": "run", "args": ["a"], "env": {"A": "1"}}
    write(tmp_path / "one", it=entry)
    (server,) = project_servers(tmp_path / "one")
    assert not trust.holds(server)
    trust.add(server)
    assert trust.holds(server) and Trust(trust.file).holds(server)
    for changed in (
        {**entry, "args": ["b"]},
        {**entry, "env": {"A": "2"}},
        {**entry, "cwd": "/"},
        {**entry, "unknown": 1},
    ):
        write(tmp_path / "one", it=changed)
        assert not trust.holds(project_servers(tmp_path / "one")[0])
    write(tmp_path / "one", other=entry)
    assert not trust.holds(project_servers(tmp_path / "one")[0])
    write(tmp_path / "two", it=entry)
    assert not trust.holds(project_servers(tmp_path / "two")[0])
    assert trust.drop(server) and not trust.holds(server) and not trust.drop(server)


def test_a_damaged_memory_of_trust_is_told_and_trusts_nothing(tmp_path: Path) -> None:
    """A file that cannot be read is an error of the configuration, not an answer."""
    (tmp_path / "t.json").write_text("{")
    write(tmp_path, it={"command": "x"})
    with pytest.raises(ConfigError, match="cannot read"):
        Trust(tmp_path / "t.json").holds(project_servers(tmp_path)[0])
