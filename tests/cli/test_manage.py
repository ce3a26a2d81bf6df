"""The commands of `brim` as a user and a script meet them: results on stdout, the rest on stderr, codes that tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from brim import __version__
from brim.providers.models import PUBLISHED
from shared_manage import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, monkeypatch, capfd)


def write_config(desk: Desk, text: str) -> None:
    (desk.root / "config.toml").write_text(text, encoding="utf-8")


# ---- the whole program ---------------------------------------------------------------------------------------------


def test_the_console_script_tells_its_version_and_its_commands() -> None:
    """`brim --version` and `brim --help` work as a process of their own; unknown commands end with 2."""
    base = [sys.executable, "-m", "brim.cli.manage"]
    told = subprocess.run([*base, "--version"], capture_output=True, text=True, check=True)
    assert told.stdout == f"brim {__version__}\n"
    helped = subprocess.run([*base, "--help"], capture_output=True, text=True, check=True).stdout
    for command in (
        "tool",
        "sessions",
        "models",
        "prepare",
        "count",
        "explain",
        "config",
        "gc",
        "doctor",
        "cost",
        "report",
    ):
        assert f"\n  {command} " in helped
    wrong = subprocess.run([*base, "sesions"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "sesions" in wrong.stderr and "Traceback" not in wrong.stderr


def test_bad_command_lines_end_with_2_and_say_why(desk: Desk) -> None:
    """Whatever is wrong with a command line is named, with the way to its help; as JSON, too, if asked."""
    for arguments, named in (
        (["nonsense"], "nonsense"),
        (["sessions", "list", "--limit", "0"], "--limit"),
        (["cost", "--by", "colour"], "colour"),
        (["cost", "--since", "yesterday"], "yesterday"),
        (["gc", "--max-age", "soon"], "soon"),
        (["tool", "grep", "{}", "--workspace", "nowhere"], "nowhere"),
        (["sessions", "export", "x", "--format", "pdf"], "pdf"),
    ):
        told = desk(*arguments)
        assert told.code == 2, arguments
        assert named in told.err and told.out == ""
        assert len(told.err.strip().splitlines()) >= 2, "what, and the next step"
        as_json = desk(*arguments, "--json").json if "export" not in arguments else {"error": {"kind": "usage"}}
        assert as_json["error"]["kind"] == "usage"
        assert not [key for key in as_json["error"] if key.startswith("_")]


def test_a_group_without_a_command_shows_its_help(desk: Desk) -> None:
    """`brim sessions` alone lists what it can do, and ends with 2."""
    told = desk("sessions")
    assert told.code == 2 and "export" in told.err


# ---- tool ----------------------------------------------------------------------------------------------------------


def test_tool_prints_what_a_model_would_see(desk: Desk) -> None:
    """stdout is the tool's text and nothing else; --json adds handle, metadata and tokens; noise folders stay out."""
    (desk.work / "a.py").write_text("x = 1  # TODO: one\n")
    (desk.work / "node_modules").mkdir()
    (desk.work / "node_modules" / "b.js").write_text("// TODO: not mine\n")
    told = desk("tool", "grep", '{"pattern": "TODO"}')
    assert told.code == 0 and told.err == ""
    assert told.out.splitlines()[0] == "a.py:1:x = 1  # TODO: one"
    assert "not mine" not in told.out and "node_modules" in told.out.splitlines()[-1]
    whole = desk("tool", "grep", '{"pattern": "TODO", "noIgnore": true}', "--json").json
    assert "not mine" in whole["text"] and whole["meta"]["total_lines"] == 2
    assert whole["tokens"] > 0 and whole["is_error"] is False
    again = desk("tool", "grep", "-", stdin='{"pattern": "TODO"}')
    assert again.out == told.out


def test_tool_honours_caps_and_its_handles_can_be_recalled(desk: Desk) -> None:
    """TOOL_GREP_MAX_LINES cuts, the notice names a handle, and a later process recalls the rest by it."""
    (desk.work / "many.txt").write_text("".join(f"line {n} needle\n" for n in range(500)))
    desk.set(TOOL_GREP_MAX_LINES="10")
    cut = desk("tool", "grep", '{"pattern": "needle"}', "--json").json
    assert cut["meta"]["shown_lines"] == 10 and cut["meta"]["total_lines"] == 500
    recalled = desk("tool", "recall", json.dumps({"handle": cut["handle"], "pattern": "line 499 "}))
    assert recalled.code == 0 and "many.txt:500:line 499 needle" in recalled.out


def test_tool_tells_of_errors_as_the_model_would_see_them(desk: Desk) -> None:
    """A wrong name, wrong arguments and a failing tool print the model's text and end with 1."""
    for arguments, said in (
        (("gerp", "{}"), "did you mean 'grep'"),
        (("grep", "{"), "JSON"),
        (("grep", "{}"), "pattern"),
        (("read", '{"path": "missing.txt"}'), "missing.txt"),
    ):
        told = desk("tool", *arguments)
        assert told.code == 1 and told.out.startswith("Error") and said in told.out
    assert "grep" in desk("tool").out


# ---- models --------------------------------------------------------------------------------------------------------


def test_models_are_listed_found_and_removed(desk: Desk) -> None:
    """list shows what is here, path prints where, remove frees; a model that is not here names the way to get it."""
    assert PUBLISHED["smollm2"].about in desk("models", "list").out
    missing = desk("models", "path", "smollm2")
    assert missing.code == 69 and "brim models pull smollm2" in missing.err
    folder = desk.root / "data" / "models"
    folder.mkdir(parents=True)
    (folder / "mine.gguf").write_bytes(b"GGUF" + bytes(100))
    assert desk("models", "path", "mine").out == f"{folder / 'mine.gguf'}\n"
    row = next(each for each in desk("models", "list", "--json").json if each["name"] == "mine")
    assert row["size"] == 104
    assert desk("models", "remove", "mine").code == 0 and not (folder / "mine.gguf").exists()
    assert desk("models", "remove", "mine").code == 69
    assert desk("models", "pull", "nonesuch").code == 69


# ---- config --------------------------------------------------------------------------------------------------------


def test_config_shows_every_value_with_where_it_was_set(desk: Desk) -> None:
    """Defaults, the user's file, a project's file and the environment, each named; a project cannot widen."""
    write_config(desk, 'mode = "compact"\n[context]\ncompact_trigger_ratio = 0.5\n[providers.mine]\nbase_url = '
                 '"http://127.0.0.1:9/v1"\nkey = "sk-very-secret"\n')  # fmt: skip
    (desk.work / ".brim").mkdir()
    (desk.work / ".brim" / "config.toml").write_text('max_steps = 7\n[permissions]\nallow = ["bash(rm *)"]\n')
    desk.set(TOOL_GREP_MAX_LINES="17", BRIM_TEMPERATURE="0.5")
    told = desk("config", "show", "--json")
    shown = told.json
    assert shown["mode"] == {"value": "compact", "origin": str(desk.root / "config.toml")}
    assert shown["context.compact_trigger_ratio"]["value"] == 0.5
    assert shown["max_steps"]["value"] == 7 and shown["max_steps"]["origin"].endswith(".brim/config.toml")
    assert shown["tools.grep_lines"] == {"value": 17, "origin": "environment TOOL_GREP_MAX_LINES"}
    assert shown["temperature"]["origin"] == "environment BRIM_TEMPERATURE"
    assert shown["tools.read"] == {"value": 8000, "origin": "default"}
    assert shown["permissions.allow"]["value"] == [] and "may not set it" in told.err
    assert "sk-very-secret" not in told.out
    lines = desk("config", "show", "--origin", "mode").out
    assert "compact" in lines and "config.toml" in lines
    wrong = desk("config", "show", "compact_triger_ratio")
    assert wrong.code == 2 and "compact_trigger_ratio" in wrong.err


def test_config_edit_checks_what_was_written(desk: Desk) -> None:
    """`edit` makes the file, opens the editor, and refuses a file that cannot be used with 78."""
    desk.set(EDITOR=f"{sys.executable} -c \"import sys; open(sys.argv[1], 'a').write('max_steps = 3\\n')\"")
    done = desk("config", "edit")
    assert done.code == 0, done
    assert "max_steps = 3" in (desk.root / "config.toml").read_text()
    assert desk("config", "path").out.splitlines()[0] == str(desk.root / "config.toml")
    write_config(desk, "max_stepps = 3\n")
    wrong = desk("config", "edit")
    assert wrong.code == 78 and "max_steps" in wrong.err


def test_config_edit_says_what_is_in_its_way(desk: Desk) -> None:
    """A folder that cannot be made and an editor that is no command line are no defects of brim's."""
    (desk.root / "file").write_text("")
    desk.set(BRIM_CONFIG=str(desk.root / "file" / "config.toml"), EDITOR="true")
    shut = desk("config", "edit")
    assert shut.code == 78 and "cannot make" in shut.err and "defect" not in shut.err
    desk.set(BRIM_CONFIG=str(desk.root / "config.toml"), EDITOR="vi 'unfinished")
    wrong = desk("config", "edit")
    assert wrong.code == 2 and "cannot start" in wrong.err and "EDITOR" in wrong.err


def test_a_session_may_come_from_a_pipe(desk: Desk) -> None:
    """`brim sessions import <(zcat log.gz)` works; of a folder it is said that it is one."""
    pipe = desk.root / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text('[{"role": "user", "content": "hello"}]'))
    writer.start()
    made = desk("sessions", "import", str(pipe))
    writer.join()
    assert made.code == 0 and "1 message" in made.err
    assert "is a folder" in desk("sessions", "import", str(desk.root)).err


def test_config_schema_describes_every_setting(desk: Desk) -> None:
    """The schema has each key with type, default and description, and takes no unknown ones."""
    schema = desk("config", "schema").json
    ratio = schema["properties"]["context"]["properties"]["compact_trigger_ratio"]
    assert ratio["type"] == "number" and ratio["default"] == 0.6
    assert "at most" in schema["properties"]["context"]["properties"]["compact_target"]["description"]
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]["tools"]["properties"]) >= {"read", "bash", "grep", "grep_no_ignore"}


# ---- permissions ---------------------------------------------------------------------------------------------------


def test_permissions_check_prints_the_verdict_and_why(desk: Desk) -> None:
    """Each part of a command is judged; deny wins; --json has the parts; --exit-code tells scripts."""
    arguments = ("permissions", "check", "--allow", "git *", "--deny", "git push", "--")
    told = desk(*arguments, "git fetch && git push")
    assert told.code == 0 and told.out.startswith("deny: ") and "git fetch" in told.out
    assert desk(*arguments, "git", "fetch").out.startswith("allow: ")
    as_json = desk("permissions", "check", "--json", "--", "frobnicate --now").json
    assert as_json["decision"] == "ask" and as_json["needs"]
    assert desk("permissions", "check", "--exit-code", "--deny", "rm", "--", "rm -r x").code == 77
    assert desk("permissions", "check", "--exit-code", "--", "frobnicate").code == 1
    outside = desk("permissions", "check", "--tool", "read", "/etc/hosts")
    assert outside.out.startswith("ask: ") and "outside" in outside.out


def test_permissions_are_listed_with_their_origin_and_forgotten(desk: Desk) -> None:
    """Configured, remembered and environment rules are named with who set them; only remembered ones can be forgotten."""
    write_config(desk, '[permissions]\ndeny = ["bash(sudo *)"]\n')
    (desk.root / "permissions.toml").write_text('[permissions]\nallow = ["bash(git push)"]\n')
    desk.set(BRIM_ALLOW="bash(make *)")
    rules = {each["rule"]: each for each in desk("permissions", "list", "--json").json["rules"]}
    assert rules["bash(sudo *)"]["origin"].endswith("config.toml")
    assert rules["bash(git push)"]["origin"] == "remembered"
    assert rules["bash(make *)"]["origin"] == "environment BRIM_ALLOW"
    assert desk("permissions", "check", "--", "sudo ls").out.startswith("deny: ")
    assert desk("permissions", "check", "--only", "--", "sudo ls").out.startswith("ask: ")
    assert desk("permissions", "forget", "bash(git push)").code == 0
    assert "git push" not in desk("permissions", "list").out
    kept = desk("permissions", "forget", "bash(sudo *)")
    assert kept.code == 2 and "config.toml" in kept.err


# ---- gc and doctor -------------------------------------------------------------------------------------------------


def test_doctor_names_what_is_there_and_never_a_key(desk: Desk) -> None:
    """Versions, settings, keys by name, model, tokenizer, store, ripgrep, sandbox; a broken config is found, code 1."""
    desk.set(OPENAI_API_KEY="sk-do-not-show-this", BRIM_MODEL="openai/gpt-4o")
    told = desk("doctor")
    assert told.code == 0, told
    assert "sk-do-not-show-this" not in told.out and "OPENAI_API_KEY" in told.out
    checks = {each["check"]: each for each in desk("doctor", "--json").json}
    assert {"brim", "settings", "keys", "model", "embedded", "tokens", "sessions", "ripgrep", "sandbox"} <= set(checks)
    assert "o200k_base" in checks["tokens"]["found"] and checks["ripgrep"]["status"] == "ok"
    write_config(
        desk,
        '[providers.here]\nbase_url = "http://127.0.0.1:1/v1"\n[providers.with]\nbase_url = "http://x"\nkey = "sk-own"\n',
    )
    keys = next(each["found"] for each in desk("doctor", "--json").json if each["check"] == "keys")
    assert "with" in keys and "here" not in keys and "sk-own" not in desk("doctor").out
    write_config(desk, "mode = 3\n")
    broken = desk("doctor")
    assert broken.code == 1 and "BAD" in broken.out and "mode" in broken.out


def test_doctor_finds_a_damaged_store(desk: Desk) -> None:
    """A store that cannot be read as it should is named, with what to do."""
    assert desk("sessions", "list").code == 0
    path = desk.root / "data" / "brim.db"
    path.write_bytes(b"this is no database" * 400)
    told = desk("doctor")
    assert told.code == 1 and "sessions" in told.out


def test_gc_reads_times_and_sizes(desk: Desk) -> None:
    """90d and 2G are understood; an empty store has nothing to delete."""
    done = desk("gc", "--max-age", "90d", "--max-size", "2G", "--json")
    assert done.code == 0 and done.json["sessions"] == 0
