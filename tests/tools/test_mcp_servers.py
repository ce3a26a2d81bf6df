"""Servers that misbehave, written without any SDK so that they can: each costs an error that says what was wrong."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from brim.formats import render_tool
from brim.tokens import counter_for
from brim.tools import Tool, ToolOutput, default_tools, run_tool
from brim.tools.mcp import McpServers, McpSettings, ServerSettings

from .conftest import Bench

FRAME = r"""
import json, os, sys, time
TOOLS = [{"name": "go", "inputSchema": {"type": "object"}}]
def send(value): sys.stdout.write(json.dumps(value) + "\n"); sys.stdout.flush()
def answer(id, result): send({"jsonrpc": "2.0", "id": id, "result": result})
def call(id, name, arguments): answer(id, {"content": [{"type": "text", "text": "went"}]})
def started(): pass
def listed(id, cursor): answer(id, {"tools": TOOLS})
%s
started()
for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        info = {"serverInfo": {"name": "odd", "version": "1"}, "capabilities": {"tools": {}}}
        answer(id, {"protocolVersion": params["protocolVersion"], **info})
    elif method == "tools/list": listed(id, params.get("cursor"))
    elif method == "tools/call": call(id, params["name"], params.get("arguments") or {})
    elif id is not None: send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})
"""


class Odd:
    """Servers of that kind in a workspace, for the time of one `run`."""

    def __init__(self, bench: Bench, sources: dict[str, str], settings: dict[str, Any], common: dict[str, Any]) -> None:
        self.bench, self.notices = bench, list[str]()
        table = {}
        for name, source in sources.items():
            path = bench.write(f"{name}.py", FRAME % source)
            table[name] = ServerSettings(command=sys.executable, args=["-S", "-E", str(path)], **settings)
        counter = counter_for("gpt-4o")
        self.servers = McpServers(
            McpSettings(servers=table, **common), bench.root, {"PATH": "/usr/bin"}, self.notices.append
        )
        self.count: Callable[[Any], int] = lambda tools: (
            counter.count_tools(
                [render_tool(each.name, each.description, each.parameters, "openai.chat") for each in tools]
            )
            if tools
            else 0
        )
        self.tools: list[Tool] = []

    async def call(self, tool: str, **arguments: Any) -> ToolOutput:
        context = self.bench.ctx
        context.more_tools = self.servers.find
        return await run_tool(tool, arguments, context, tools=[*default_tools(), *self.tools])


def run(
    bench: Bench,
    sources: str | dict[str, str],
    play: Callable[[Odd], Awaitable[None]],
    *,
    common: Any = None,
    **settings: Any,
) -> Odd:
    """Starts the servers, plays, ends them."""
    odd = Odd(bench, sources if isinstance(sources, dict) else {"odd": sources}, settings, common or {})

    async def whole() -> None:
        odd.servers.start()
        try:
            odd.tools = await odd.servers.offered(odd.count)
            await play(odd)
        finally:
            await odd.servers.close()

    asyncio.run(whole())
    assert {server.state for server in odd.servers.servers.values()} <= {"ended", "failed", "off"}
    return odd


async def nothing(odd: Odd) -> None:
    pass


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("sys.exit(4)", "exit code 4"),
        ("print('the key is missing', file=sys.stderr); sys.exit(1)", "exit code 1: the key is missing"),
        ("os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("time.sleep(600)", "did not say within 1 s"),
        ("sys.stdout.close(); os.close(1); time.sleep(600)", "closed its output"),
        ("sys.stdout.write('x' * 3_000_000); sys.stdout.flush(); time.sleep(600)", "more than 1,000,000 bytes"),
        ("def listed(id, cursor): send({'jsonrpc': '2.0', 'id': id, 'error': {'code': -32603, 'message': 'no tools today'}})",
         "no tools today"),
    ],
)  # fmt: skip
def test_a_server_that_does_not_start_says_why(bench: Bench, source: str, words: str) -> None:
    """Whatever a server does in place of starting, the notice has the reason, and it is ended."""
    odd = run(bench, source, nothing, start_timeout=1 if "within" in words else 30, common={"message_bytes": 1_000_000})
    assert odd.tools == [] and len(odd.notices) == 1 and words in odd.notices[0], odd.notices


def test_a_flood_of_noise_does_no_harm(bench: Bench) -> None:
    """Megabytes of lines that are no messages, on both streams, are dropped while calls go on."""

    async def play(odd: Odd) -> None:
        assert (await odd.call("mcp__odd__go")).text == "went"

    lines = "for _ in range(20_000): print('x' * 200); print('y' * 200, file=sys.stderr)"
    deep = "print('[' * 200_000 + ']' * 200_000); print('\\xff\\x00 [1'); print('{\"id\": 1}')"
    flood = f"def started():\n    {lines}\n    {deep}\n    sys.stdout.flush()"
    odd = run(bench, flood, play)
    assert odd.notices == []


def test_pages_of_tools_are_read_to_their_end(bench: Bench) -> None:
    """A list in pages is one list; one whose pages never end is cut off, not followed for ever."""
    pages = """
def listed(id, cursor):
    at = int(cursor or 0)
    tools = [{"name": f"t{at * 10 + each:03}", "inputSchema": {"type": "object"}} for each in range(10)]
    answer(id, {"tools": tools, **({"nextCursor": str(at + 1)} if at < LAST else {})})
"""

    async def play(odd: Odd) -> None:
        assert len(odd.servers.servers["odd"].tools) == 30

    run(bench, f"LAST = 2{pages}", play)
    endless = run(bench, f"LAST = 10**9{pages}", nothing)
    assert len(endless.servers.servers["odd"].tools) == 1_000


def test_an_error_of_a_call_is_its_result(bench: Bench) -> None:
    """A JSON-RPC error and an isError result are both errors with the server's words."""
    source = """
def call(id, name, arguments):
    if arguments.get("how") == "rpc": send({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "how dare you"}})
    else: answer(id, {"isError": True, "content": [{"type": "text", "text": "it went wrong"}]})
"""

    async def play(odd: Odd) -> None:
        rpc = await odd.call("mcp__odd__go", how="rpc")
        assert rpc.is_error and "how dare you" in rpc.text
        told = await odd.call("mcp__odd__go")
        assert told.is_error and told.text == "it went wrong"

    run(bench, source, play)


def test_a_result_of_any_kind_is_an_output(bench: Bench) -> None:
    """Text, structured content, resources, links, sound and broken data: each is text within the cap, kept where it is no
    text, and structured content is not shown twice."""
    data = base64.b64encode(bytes(1000)).decode()
    blocks = [
        {"type": "audio", "data": data, "mimeType": "audio/wav"},
        {"type": "image", "data": "no base64!", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": data, "mimeType": "application/zip"}},
        {"type": "resource_link", "uri": "file:///b", "name": "b", "description": "the other"},
        {"type": "text", "text": "\x1b[31mred\x1b[0m"},
    ]
    results = {
        "all": {"content": blocks},
        "structured": {"content": [], "structuredContent": {"a": [1, 2]}},
        "twice": {"content": [{"type": "text", "text": '{"a": [1, 2]}'}], "structuredContent": {"a": [1, 2]}},
        "wrapped": {"content": [{"type": "text", "text": "plain"}], "structuredContent": {"result": "plain"}},
        "again": {"content": [{"type": "text", "text": "a" * 500}], "structuredContent": {"content": "a" * 500}},
        "partly": {"content": [{"type": "text", "text": "a" * 500}], "structuredContent": {"all": "a" * 500, "n": 1}},
        "block": {"content": blocks[:1], "structuredContent": {"content": blocks[:1]}},
        "list": {"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
                 "structuredContent": {"result": ["one", "two"]}},
        "empty": {"content": []},
    }  # fmt: skip
    source = f"RESULTS = {results!r}\ndef call(id, name, arguments): answer(id, RESULTS[arguments['which']])"
    told: dict[str, ToolOutput] = {}

    async def play(odd: Odd) -> None:
        for which in results:
            told[which] = await odd.call("mcp__odd__go", which=which)

    run(bench, source, play)
    text = told["all"].text
    assert "[audio audio/wav, 1,000 bytes, kept as " in text and "cannot be decoded" in text
    assert "resource file:///a.bin (application/zip), 1,000 bytes, kept as " in text and "the other" in text
    assert text.endswith("red")
    handle = text.split("kept as ")[1].split("]")[0]
    assert bench.ctx.blobs.get(handle) == bytes(1000)
    assert json.loads(told["structured"].text) == {"a": [1, 2]}
    assert told["twice"].text == '{"a": [1, 2]}' and told["wrapped"].text == "plain"
    assert told["again"].text == "a" * 500 and told["list"].text == "one\ntwo"
    assert '"(as above)"' in told["partly"].text and '"n": 1' in told["partly"].text
    assert told["block"].text.startswith("[audio") and "AAAA" not in told["block"].text
    assert "without any content" in told["empty"].text


def test_whole_servers_are_offered_as_far_as_they_fit(bench: Bench) -> None:
    """Within the budget all is offered; past it whole servers in their order, the rest by name; the sum keeps within it."""
    listing = (
        'TOOLS = [{"name": f"%s{at:02}", "description": "Does what has to be done with number " + str(at), '
        '"inputSchema": {"type": "object", "properties": {"first": {"type": "string"}}}} for at in range(%d)]'
    )
    sources = {"small": listing % ("s", 3), "large": listing % ("l", 80), "last": listing % ("z", 3)}
    for limit in (20_000, 2_000, 400, 150):
        odd = run(bench, sources, nothing, common={"schema_tokens": limit})
        names = [tool.name for tool in odd.tools]
        # find_tool and call_tool by themselves are the least
        assert odd.count(odd.tools) <= max(limit, 330)
        if limit == 20_000:
            assert len(names) == 86 and "find_tool" not in names
        else:
            assert names[-2:] == ["find_tool", "call_tool"] and "mcp__large__l00" not in names
        assert ("mcp__small__s00" in names) == (limit > 150)
        assert ("mcp__last__z00" in names) == (limit >= 2_000)


def test_a_tool_that_came_later_is_found(bench: Bench) -> None:
    """A server that gets more tools after its start: a call by name and find_tool both reach them; a name that is none is
    refused with the nearest ones."""
    source = """
def call(id, name, arguments):
    if not any(tool["name"] == name for tool in TOOLS): send({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "?"}})
    TOOLS.append({"name": "later", "inputSchema": {"type": "object"}})
    answer(id, {"content": [{"type": "text", "text": name}]})
"""

    async def play(odd: Odd) -> None:
        assert (await odd.call("mcp__odd__latr")).is_error
        assert (await odd.call("mcp__odd__go")).text == "go"
        refused = await odd.call("mcp__odd__latr")
        assert refused.is_error and "mcp__odd__later" in refused.text
        assert (await odd.call("mcp__odd__later")).text == "later"

    run(bench, source, play)


def test_a_call_tool_that_calls_itself_is_refused(bench: Bench) -> None:
    """call_tool reaches tools, brim's own included, but not itself; a name that is none is an error with the names."""

    async def play(odd: Odd) -> None:
        assert "must be an object" in (await odd.call("call_tool", name="mcp__odd__go", arguments="{}")).text
        assert (await odd.call("call_tool", name="go")).text == "went"
        assert "directly" in (await odd.call("call_tool", name="call_tool")).text
        assert (await odd.call("call_tool", name="glob", arguments={"pattern": "*.py"})).text.startswith("odd.py")
        assert "no tool" in (await odd.call("call_tool", name="nothing")).text

    run(bench, "", play, common={"schema_tokens": 0})


def test_the_tools_of_a_server_can_be_chosen(bench: Bench) -> None:
    """include and exclude are globs over the server's own names; exclude wins."""
    source = 'TOOLS = [{"name": name, "inputSchema": {}} for name in ("get_a", "get_b", "put", "delete", "get_secret")]'
    odd = run(bench, source, nothing, include=["get_*", "put"], exclude=["*secret*"])
    assert [tool.name for tool in odd.tools] == ["mcp__odd__get_a", "mcp__odd__get_b", "mcp__odd__put"]


def test_a_call_that_takes_too_long_is_given_up(bench: Bench) -> None:
    """A call past the server's timeout is an error that names the setting, and the server can be called again."""
    source = """
def call(id, name, arguments):
    if not arguments: answer(id, {"content": [{"type": "text", "text": "went"}]})
"""

    async def play(odd: Odd) -> None:
        late = await odd.call("mcp__odd__go", slow=True)
        assert late.is_error and "did not answer within 0.3 s" in late.text and "mcp.servers.odd.timeout" in late.text
        assert (await odd.call("mcp__odd__go")).text == "went"

    assert run(bench, source, play, timeout=0.3).notices == []


def test_a_server_that_ends_is_started_again_once(bench: Bench) -> None:
    """The call that ends a server has the reason; the next starts it again; ended twice in a row it stays down, until it is
    restarted by hand."""
    source = """
def call(id, name, arguments):
    if arguments:
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(9)
    answer(id, {"content": [{"type": "text", "text": "went"}]})
"""

    async def play(odd: Odd) -> None:
        for _ in range(2):
            assert "exit code 9: out of memory" in (await odd.call("mcp__odd__go", end=True)).text
            assert (await odd.call("mcp__odd__go")).text == "went"
        for _ in range(2):
            assert "ended during the call" in (await odd.call("mcp__odd__go", end=True)).text
        down = await odd.call("mcp__odd__go")
        assert down.is_error and "is not running: it ended with exit code 9" in down.text
        await odd.servers.servers["odd"].restart()
        assert (await odd.call("mcp__odd__go")).text == "went"

    assert len(run(bench, source, play).notices) == 4


def test_calls_side_by_side_and_one_that_is_cut_off(bench: Bench) -> None:
    """Many calls at once each get their own answer; one that is cancelled leaves the others and the server as they are."""
    source = """
def call(id, name, arguments):
    if arguments["at"] >= 0: answer(id, {"content": [{"type": "text", "text": str(arguments["at"])}]})
"""

    async def play(odd: Odd) -> None:
        stuck = asyncio.create_task(odd.call("mcp__odd__go", at=-1))
        await asyncio.sleep(0)
        outputs = await asyncio.gather(*(odd.call("mcp__odd__go", at=at) for at in range(50)))
        assert [output.text for output in outputs] == [str(at) for at in range(50)]
        stuck.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stuck
        assert (await odd.call("mcp__odd__go", at=7)).text == "7"

    run(bench, source, play)


def test_a_small_window_lowers_what_definitions_may_take(bench: Bench) -> None:
    """A model with a window of 4,096 tokens gets at most 512 tokens of definitions."""
    source = 'TOOLS = [{"name": f"t{at:02}", "description": "Does what has to be done", "inputSchema": {}} for at in range(20)]'
    odd = Odd(bench, {"odd": source}, {}, {})

    async def play() -> None:
        odd.servers.start()
        try:
            large = odd.count(await odd.servers.offered(odd.count, 128_000))
            odd.servers.forget_offer()
            small = odd.count(await odd.servers.offered(odd.count, 4_096))
        finally:
            await odd.servers.close()
        assert small <= 512 < large

    asyncio.run(play())
