"""MCP servers through `ai`, a process of its own, against a scripted provider: what each request carries, what comes back."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brim.testing import ScriptedProvider, reply, tool_call
from brim.tokens import counter_for
from shared_ai import Home, make_home
from shared_mcp import HttpServer, alive, server_table, toml, write_server

pytestmark = pytest.mark.slow


def make_user(root: Path, url: str, *tables: str) -> Home:
    """A user with these tables in their config; on a busy machine a server may take its time."""
    home = make_home(root, url)
    patient = [] if any(table.startswith("[mcp]") for table in tables) else ["[mcp]\nwait = 60\n"]
    (root / "config.toml").write_text("\n".join([*patient, *tables]), encoding="utf-8")
    return home


def definitions(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {tool["function"]["name"]: tool for tool in body["tools"]}


def mcp_tokens(body: dict[str, Any]) -> int:
    """Tokens of the definitions that are none of brim's own, as gpt-4o's tokenizer counts them."""
    own = ("grep", "glob", "read", "edit", "write", "bash", "recall")
    return counter_for("gpt-4o").count_tools([tool for name, tool in definitions(body).items() if name not in own])


def results(body: dict[str, Any]) -> list[str]:
    return [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]


def test_a_result_of_5_mb_is_bounded_and_can_be_recalled(tmp_path: Path) -> None:
    """A tool of an MCP server that returns 5 MB adds at most its cap to the next request, and recall pages the original."""
    script = write_server(tmp_path)
    handle = ""

    def then(received: Any) -> Any:
        nonlocal handle
        handle = results(received.body)[-1].split("recall handle ")[1].split(",")[0]
        return tool_call("recall", {"handle": handle, "offset": 50_000, "limit": 2})

    script_of: list[Any] = [tool_call("mcp__files__big", {"size": 5_000_000}), then, reply("done")]
    with ScriptedProvider(script_of) as upstream:
        home = make_user(tmp_path / "home", upstream.base_url, server_table("files", script))
        ran = home.run("how big is it?", "--allow", "mcp__files__big", "--output-format", "stream-json")
        bodies = [received.body for received in upstream.requests]
    assert ran.code == 0 and ran.result["text"] == "done", ran
    assert "mcp__files__big" in definitions(bodies[0])
    assert counter_for("gpt-4o").count_text(results(bodies[1])[0]) <= 6_000
    assert "5000000 characters" in results(bodies[1])[0]
    assert results(bodies[2])[1].count("quick brown fox") == 2
    assert [body["tools"] for body in bodies] == [bodies[0]["tools"]] * 3


def test_300_tools_cost_at_most_2_000_tokens(tmp_path: Path) -> None:
    """A server with 300 tools takes at most 2,000 tokens of each request; its tools are found and called by name, and the
    list of tools never changes meanwhile."""
    script = write_server(tmp_path)
    script_of = [
        tool_call("find_tool", {"query": "department 217"}),
        tool_call("call_tool", {"name": "mcp__many__numbered_217", "arguments": {"first": "the record"}}),
        tool_call("mcp__many__numbered_218", {"first": "called by its own name"}),
        reply("done"),
    ]
    with ScriptedProvider(script_of) as upstream:
        home = make_user(tmp_path / "home", upstream.base_url, server_table("many", script, "--tools", "300"))
        ran = home.run("file it", "--allow", "mcp__many__numbered_*", "--output-format", "stream-json")
        bodies = [received.body for received in upstream.requests]
    assert ran.code == 0 and ran.result["text"] == "done", ran
    assert mcp_tokens(bodies[0]) <= 2_000
    assert {"find_tool", "call_tool"} <= set(definitions(bodies[0]))
    assert "mcp__many__numbered_217" in results(bodies[1])[0] and '"first"' in results(bodies[1])[0]
    assert results(bodies[2])[1] == "tool 217: the record"
    assert results(bodies[3])[2] == "tool 218: called by its own name"
    assert [body["tools"] for body in bodies] == [bodies[0]["tools"]] * 4
    bill = next(event for event in ran.events if event["type"] == "request")["bill"]
    assert next(line["tokens"] for line in bill["lines"] if line["kind"] == "tools") >= mcp_tokens(bodies[0])


def test_a_tool_behind_call_tool_is_judged_by_its_own_name(tmp_path: Path) -> None:
    """Without a rule a tool of a server is refused, and the refusal names the rule, also through call_tool and although it
    says of itself that it only reads."""
    script = write_server(tmp_path)
    script_of = [
        tool_call("call_tool", {"name": "mcp__many__greet", "arguments": {"name": "Ada"}}),
        tool_call("mcp__many__greet", {"name": "Ada"}),
        reply("it was refused"),
    ]
    with ScriptedProvider(script_of) as upstream:
        home = make_user(tmp_path / "home", upstream.base_url, server_table("many", script, "--tools", "100"))
        ran = home.run("greet Ada")
        bodies = [received.body for received in upstream.requests]
    assert ran.code == 0, ran
    for refused in results(bodies[2]):
        assert "--allow mcp__many__greet" in refused and "hello" not in refused


def test_a_server_that_does_not_start_is_a_notice(tmp_path: Path) -> None:
    """A server that fails costs a notice with the reason, never the answer; the others work; a secret is not told."""
    script = write_server(tmp_path)
    broken = server_table("broken", script, "--die", env={"DB_PASSWORD": "${DB_PASSWORD}"})
    unset = server_table("unset", script, env={"TOKEN": "${NOT_SET_ANYWHERE}"})
    nowhere = '[mcp.servers.nowhere]\ncommand = "no-such-program-at-all"\n'
    with ScriptedProvider([tool_call("mcp__good__greet", {"name": "Ada"}), reply("done")]) as upstream:
        home = make_user(tmp_path / "home", upstream.base_url, broken, unset, nowhere, server_table("good", script))
        ran = home.run("greet", "--allow", "mcp__good", DB_PASSWORD="hunter2-hunter2")
        bodies = [received.body for received in upstream.requests]
    assert ran.code == 0 and ran.out.strip() == "done", ran
    assert results(bodies[1]) == ["hello Ada"]
    assert "broken did not start: it ended with exit code 3: cannot reach the database" in ran.err
    assert "hunter2" not in ran.err and "${DB_PASSWORD}" in ran.err
    assert "NOT_SET_ANYWHERE is not set" in ran.err and "there is no no-such-program-at-all" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.slow
def test_a_server_that_ends_during_a_call_is_started_again_once(tmp_path: Path) -> None:
    """A call that ends the server is answered with the reason; the next call starts it again; a server that ends twice in
    a row stays down and says so."""
    script = write_server(tmp_path)
    script_of = [
        tool_call("mcp__t__crash", {}),
        tool_call("mcp__t__greet", {"name": "again"}),
        tool_call("mcp__t__crash", {}),
        tool_call("mcp__t__crash", {}),
        tool_call("mcp__t__greet", {"name": "too late"}),
        reply("done"),
    ]
    with ScriptedProvider(script_of) as upstream:
        home = make_user(tmp_path / "home", upstream.base_url, server_table("t", script))
        ran = home.run("go on", "--allow", "mcp__t", timeout=120)
        told = results(upstream.requests[-1].body)
    assert ran.code == 0, ran
    assert "exit code 7" in told[0] and "Segmentation fault" in told[0]
    assert told[1] == "hello again"
    assert "ended during the call" in told[2] and "ended during the call" in told[3]
    assert "is not running" in told[4]


@pytest.mark.slow
def test_noise_on_stdout_and_a_slow_start_do_no_harm(tmp_path: Path) -> None:
    """What a server prints between its messages is dropped; one that starts slowly is waited for, and one that is slower
    than the wait is reached through find_tool."""
    script = write_server(tmp_path)
    script_of = [
        tool_call("find_tool", {"query": "hello"}),
        tool_call("call_tool", {"name": "mcp__late__greet", "arguments": {"name": "Ada"}}),
        reply("done"),
    ]
    with ScriptedProvider(script_of) as upstream:
        tables = ("[mcp]\nwait = 0.1\n", server_table("late", script, "--slow", "1", "--noise"))
        home = make_user(tmp_path / "home", upstream.base_url, *tables)
        ran = home.run("greet", "--allow", "mcp__late__greet")
        bodies = [received.body for received in upstream.requests]
    assert ran.code == 0, ran
    assert (
        "find_tool" in definitions(bodies[0])
        and "late" in definitions(bodies[0])["find_tool"]["function"]["description"]
    )
    assert results(bodies[2])[1] == "hello Ada"


def test_a_server_over_http_works(tmp_path: Path) -> None:
    """A streamable HTTP endpoint is a server like any other, with results of 5 MB; one that does not answer is a notice."""
    script = write_server(tmp_path)
    with HttpServer(script) as http, ScriptedProvider([tool_call("mcp__web__big", {}), reply("done")]) as upstream:
        tables = [
            f"[mcp.servers.web]\nurl = {toml(http.url)}\nheaders = {toml({'Authorization': 'Bearer ${WEB_TOKEN}'})}\n",
            '[mcp.servers.dead]\nurl = "http://127.0.0.1:9/mcp"\n',
        ]
        home = make_user(tmp_path / "home", upstream.base_url, *tables)
        ran = home.run("fetch", "--allow", "mcp__web", WEB_TOKEN="token-1234567890")
        bodies = [received.body for received in upstream.requests]
    assert ran.code == 0 and ran.out.strip() == "done", ran
    assert "5000000 characters" in results(bodies[1])[0]
    assert "dead did not start" in ran.err and "Traceback" not in ran.err


@pytest.mark.slow
def test_a_server_gets_no_secret_that_it_is_not_given(tmp_path: Path) -> None:
    """A server's environment is brim's without its secrets, and with what the configuration names."""
    script = write_server(tmp_path)
    with ScriptedProvider([tool_call("mcp__t__environment", {}), reply("done")]) as upstream:
        home = make_user(
            tmp_path / "home", upstream.base_url, server_table("t", script, env={"GIVEN_TOKEN": "${OTHER_TOKEN}"})
        )
        ran = home.run("look", "--allow", "mcp__t", OTHER_TOKEN="wanted-1234567890", MORE_TOKEN="unwanted-1234567890")
        told = results(upstream.requests[-1].body)[0]
    assert ran.code == 0, ran
    assert "GIVEN_TOKEN" in told and "OTHER_TOKEN" not in told
    assert "unwanted" not in told and "sk-test" not in told


@pytest.mark.slow
def test_an_image_reaches_a_model_that_sees_it(tmp_path: Path) -> None:
    """An image that a tool returns is shown to a model whose tool results hold images, named with its handle to any other;
    embedded text and structured content are text for both."""
    script = write_server(tmp_path)
    told: dict[str, Any] = {}
    for api, model in (("anthropic", "anthropic/claude-sonnet-4-5"), ("openai", "openai/gpt-4o")):
        with ScriptedProvider([tool_call("mcp__t__picture", {}), reply("seen")]) as upstream:
            home = make_user(tmp_path / api, upstream.base_url, server_table("t", script))
            home.env.update(ANTHROPIC_API_KEY="sk-ant-test", ANTHROPIC_BASE_URL=upstream.url)
            ran = home.run("look", "--allow", "mcp__t", "--model", model)
            assert ran.code == 0, ran
            told[api] = upstream.requests[-1].body["messages"][-1]["content"]
    block = told["anthropic"][0]["content"]
    assert [each["type"] for each in block] == ["text", "image"] and block[1]["source"]["media_type"] == "image/png"
    for text in (block[0]["text"], told["openai"]):
        assert "a picture:" in text and "embedded words" in text and '"width": 8' in text and "kept as " in text
    assert "cannot be shown" in told["openai"] and "cannot be shown" not in block[0]["text"]


def test_without_the_extra_the_user_is_told_what_to_install(tmp_path: Path) -> None:
    """A configured server without the MCP client costs one notice that names the extra; the answer comes."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "mcp.py").write_text('raise ImportError("no mcp here")\n')
    script = write_server(tmp_path)
    with ScriptedProvider([reply("done")]) as upstream:
        home = make_user(tmp_path / "home", upstream.base_url, server_table("t", script))
        ran = home.run("hello", PYTHONPATH=str(tmp_path / "hidden"))
    assert ran.code == 0 and ran.out.strip() == "done", ran
    assert "pip install 'brim[mcp]'" in ran.err and "Traceback" not in ran.err


def test_a_project_starts_no_server_by_itself(tmp_path: Path) -> None:
    """Neither a project's .mcp.json nor its config starts anything; the user is told, and what they trust is this very
    definition: changed, it is not started again."""
    script = write_server(tmp_path)
    canary = tmp_path / "canary"
    entry = {"command": sys.executable, "args": [str(script), "--pid", str(canary)]}
    with ScriptedProvider([reply("done")], repeat_last=True) as upstream:
        home = make_user(tmp_path / "home", upstream.base_url)
        (home.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": entry}}))
        (home.work / ".brim").mkdir()
        (home.work / ".brim" / "config.toml").write_text(server_table("configured", script, "--pid", str(canary)))
        ran = home.run("hello")
        assert ran.code == 0 and not canary.exists()
        assert "theirs" in ran.err and "brim mcp trust" in ran.err and "mcp.servers is left out" in ran.err
        shown = home.manage("mcp", "trust")
        assert "theirs  not trusted: " in shown.out and str(canary) in shown.out and not canary.exists()
        assert home.manage("mcp", "trust", "theirs").code == 0
        assert home.run("hello").code == 0
        assert "mcp__theirs__greet" in definitions(upstream.requests[-1].body) and canary.exists()
        canary.unlink()
        entry["args"] = [*entry["args"], "--noise"]
        (home.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": entry}}))
        ran = home.run("hello")
        assert "brim mcp trust" in ran.err and not canary.exists()
        assert home.manage("mcp", "trust", "nobody").code == 2


@pytest.mark.slow
def test_brim_mcp_list_says_what_there_is(tmp_path: Path) -> None:
    """`brim mcp list` starts each server, says its state, tools and tokens, ends it, and ends with 1 where one failed."""
    script = write_server(tmp_path)
    pids = tmp_path / "pids"
    tables = [
        server_table("good", script, "--pid", str(pids)),
        server_table("many", script, "--tools", "60", "--pid", str(pids)),
        server_table("bad", script, "--die"),
        server_table("off", script, enabled=False),
    ]
    home = make_user(tmp_path / "home", "http://127.0.0.1:9/v1", *tables)
    ran = home.manage("mcp", "list")
    assert ran.code == 1, ran
    lines = {line.split()[0]: line for line in ran.out.splitlines()}
    assert "ready: 7 tools" in lines["good"] and "all in every request" in lines["good"]
    assert "ready: 67 tools" in lines["many"] and "through find_tool" in lines["many"]
    assert "failed: it ended with exit code 3" in lines["bad"] and lines["off"] == "off  off"
    told = json.loads(home.manage("mcp", "list", "--json").out)["servers"]
    assert [each["state"] for each in told] == ["ready", "ready", "failed", "off"]
    assert "mcp__many__numbered_059" in told[1]["tools"] and told[1]["tokens"] > 2_000
    assert not any(alive(int(each)) for each in pids.read_text().split())


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ('[mcp.servers.a]\ncommand = "x"\nurl = "http://x"\n', "either command or url"),
        ("[mcp.servers.a]\n", "either command or url"),
        ('[mcp.servers.a__b]\ncommand = "x"\n', "the name is not usable"),
        ('[mcp.servers.a]\ncommand = "x"\ntimeuot = 5\n', "timeuot"),
        ('[mcp.servers.a]\nurl = "ftp://x"\n', "http://"),
        ("[mcp]\nschema_token = 5\n", "schema_token"),
    ],
)
def test_a_wrong_table_is_told(tmp_path: Path, config: str, words: str) -> None:
    """A server that could never start is an error of the configuration, with its name and exit code 78."""
    ran = make_user(tmp_path / "home", "http://127.0.0.1:9/v1", config).run("hello")
    assert ran.code == 78 and words in ran.err and "mcp" in ran.err, ran


def test_nothing_of_the_mcp_client_is_imported_before_a_server_starts() -> None:
    """The SDK takes a second to import: only a session with servers pays for it."""
    modules = "brim.cli.ai, brim.agent.opening, brim.agent.servers, brim.cli.commands.mcp"
    code = f"import sys, {modules}; print('mcp' in sys.modules, 'pydantic' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]


@pytest.fixture
def stubborn(tmp_path: Path) -> Stubborn:
    return Stubborn(tmp_path)


class Stubborn:
    """A server that ignores all that it is told and leaves a child outside its group; and a slow one beside it."""

    def __init__(self, root: Path) -> None:
        script = write_server(root)
        self.pids, self.child = root / "pids", root / "child"
        self.table = server_table("t", script, "--stubborn", "--pid", str(self.pids), "--child", str(self.child))
        self.slow = server_table("s", script, "--slow", "60", "--pid", str(self.pids))

    def started(self, servers: int) -> bool:
        return self.child.exists() and len(self.pids.read_text().split()) == servers

    def gone(self) -> bool:
        """Whether all have ended, or do so soon."""
        known = [int(each) for each in self.pids.read_text().split()] + [int(self.child.read_text())]
        return soon(lambda: not any(alive(pid) for pid in known))


def soon(holds: Callable[[], bool], seconds: float = 90) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    return holds()


def press(process: subprocess.Popen[str], times: int) -> int:
    """Ctrl-C, once or twice in a row; the exit code. Whatever happens, the process has ended after it."""
    try:
        for at in range(times):
            time.sleep(0.02 * at)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    return process.returncode


def test_no_server_is_left_after_an_answer(tmp_path: Path, stubborn: Stubborn) -> None:
    """When `ai` has answered, its servers and all that they started have ended, even one that ignores what it is told."""
    with ScriptedProvider([reply("well")]) as upstream:
        assert make_user(tmp_path / "home", upstream.base_url, stubborn.table).run("hello").code == 0
    assert stubborn.gone()


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_server_is_left_after_an_interrupt(tmp_path: Path, stubborn: Stubborn, times: int) -> None:
    """Ctrl-C during a call ends the servers with the answer; so does a second one at once."""
    with ScriptedProvider([tool_call("mcp__t__wait", {"seconds": 60}), reply("no")]) as upstream:
        home = make_user(tmp_path / "home", upstream.base_url, stubborn.table)
        process = home.start("wait", "--allow", "mcp__t", "--output-format", "stream-json")
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["type"] == "tool_call":
                break
        assert press(process, times) == 130
    assert stubborn.gone()


@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_no_server_is_left_that_was_still_starting(tmp_path: Path, stubborn: Stubborn, times: int) -> None:
    """Ctrl-C while servers start leaves none of them."""
    with ScriptedProvider([reply("no")]) as upstream:
        home = make_user(tmp_path / "home", upstream.base_url, stubborn.table, stubborn.slow)
        process = home.start("hello")
        started = soon(lambda: stubborn.started(2))
        assert press(process, times) == 130
        assert started
    assert stubborn.gone()


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv, of Linux")
@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_no_server_is_left_when_ai_is_killed(tmp_path: Path, how: signal.Signals) -> None:
    """A server that ignores everything ends with an `ai` that is killed or whose terminal is closed."""
    script, pids = write_server(tmp_path), tmp_path / "pids"
    with ScriptedProvider([tool_call("mcp__t__wait", {"seconds": 60}), reply("no")]) as upstream:
        table = server_table("t", script, "--stubborn", "--pid", str(pids))
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # children inherit that `nohup make test` ignores it
        try:
            process = make_user(tmp_path / "home", upstream.base_url, table).start(
                "wait", "--allow", "mcp__t", "--output-format", "stream-json"
            )
        finally:
            signal.signal(signal.SIGHUP, before)
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["type"] == "tool_call":
                break
        process.send_signal(how)
        process.communicate(timeout=60)
    assert soon(lambda: not alive(int(pids.read_text())))


def test_config_show_hides_what_servers_are_given(tmp_path: Path) -> None:
    """A value that stands in the config for a server's variable or header is not shown; a reference is."""
    table = '[mcp.servers.a]\ncommand = "x"\nenv = { T = "literal-secret", U = "${NAMED}" }\n'
    shown = make_user(tmp_path / "home", "http://127.0.0.1:9/v1", table).manage("config", "show").out
    assert "literal-secret" not in shown and "${NAMED}" in shown
