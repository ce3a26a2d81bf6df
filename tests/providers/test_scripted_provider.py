"""The scripted provider does what its script says, over real HTTP, to any client."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from brim.budget.usage import parse_usage
from brim.formats import parse_message
from brim.providers import Done, WireProvider
from brim.testing import Received, ScriptedProvider, fault, raw, reply, tool_call, tool_calls


def post(url: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """A request of the standard library: status, and JSON or text."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request) as response:
            status, raw_body = response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            status, raw_body = error.code, error.read()
    try:
        return status, json.loads(raw_body)
    except ValueError:
        return status, raw_body.decode()


def chat(*texts: str, **more: Any) -> dict[str, Any]:
    """A chat body of user messages."""
    return {"model": "m", "messages": [{"role": "user", "content": text} for text in texts], **more}


def test_script_in_order_and_its_end() -> None:
    """Entries answer in order: texts, functions of the request, faults; a script that has run out says so."""

    def echo(received: Received) -> str:
        return f"you said {received.messages[-1]['content']}"

    with ScriptedProvider(["plain text", echo, fault(418, "teapot")]) as upstream:
        url = f"{upstream.base_url}/chat/completions"
        assert post(url, chat("a"))[1]["choices"][0]["message"]["content"] == "plain text"
        assert post(url, chat("b"))[1]["choices"][0]["message"]["content"] == "you said b"
        assert post(url, chat("c")) == (418, "teapot")
        status, body = post(url, chat("d"))
        assert status == 500
        assert "no entry for request 4" in body["error"]["message"]
        upstream.add("more")
        assert post(url, chat("e"))[0] == 200
    assert [request.messages[-1]["content"] for request in upstream.requests] == ["a", "b", "c", "d", "e"]
    assert all(request.api == "openai.chat" and not request.stream for request in upstream.requests)


def test_async_use_from_one_loop() -> None:
    """`async with` serves clients of the same event loop."""

    async def work() -> Done:
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        async with (
            ScriptedProvider([tool_call("grep", {"pattern": "TODO"}, id="c9")]) as upstream,
            WireProvider("t", "anthropic.messages", upstream.url, env={}) as provider,
        ):
            return await provider.complete(body)

    (message,) = parse_message(asyncio.run(work()).message, "anthropic.messages")
    (called,) = message.calls
    assert (called.id, called.name, json.loads(called.arguments)) == ("c9", "grep", {"pattern": "TODO"})


def test_ids_differ_between_answers() -> None:
    """Calls without ids of their own get ids unlike any other answer's."""
    with ScriptedProvider([tool_calls(("a", {}), ("b", {})), tool_calls(("a", {}))]) as upstream:
        seen = []
        for _ in range(2):
            _, body = post(f"{upstream.base_url}/chat/completions", chat("x"))
            seen += [called["id"] for called in body["choices"][0]["message"]["tool_calls"]]
    assert len(set(seen)) == 3


def test_window_is_enforced_by_the_given_counter() -> None:
    """A request over the window is refused in the wording asked for and takes nothing from the script."""
    count = len

    def tokens(body: dict[str, Any]) -> int:
        return sum(count(message["content"]) for message in body["messages"])

    with ScriptedProvider(["fits"], window=100, count=tokens, overflow="llama.cpp") as upstream:
        url = f"{upstream.base_url}/chat/completions"
        status, body = post(url, chat("x" * 101))
        assert (status, body["error"]["n_prompt_tokens"], body["error"]["n_ctx"]) == (400, 101, 100)
        assert post(url, chat("x" * 50, max_tokens=51))[0] == 400
        status, body = post(url, chat("x" * 50, max_tokens=50))
        assert (status, body["usage"]["prompt_tokens"]) == (200, 50)
    with ScriptedProvider(
        ["never"], window=1, overflow=lambda received, window: fault(422, f"{received.prompt_tokens}>{window}")
    ) as upstream:
        assert post(f"{upstream.base_url}/chat/completions", chat("x" * 40))[0] == 422


def test_silent_cut() -> None:
    """A server that cuts silently answers 200, and only its usage shows it."""
    with ScriptedProvider(["?"], window=50, cut_at=50, count=lambda body: 900) as upstream:
        status, body = post(f"{upstream.base_url}/chat/completions", chat("x"))
    assert (status, body["usage"]["prompt_tokens"]) == (200, 50)
    assert upstream.requests[0].prompt_tokens == 900


@pytest.mark.parametrize("api", ["openai.chat", "openai.responses", "anthropic.messages"])
def test_cached_prefix(api: str) -> None:
    """A request that extends an earlier one reports its tokens as cached; a changed beginning or tool list, none."""
    path, field = {
        "openai.chat": ("chat/completions", "messages"),
        "openai.responses": ("responses", "input"),
        "anthropic.messages": ("messages", "messages"),
    }[api]
    first = [{"role": "user", "content": "a" * 400}]
    longer = [*first, {"role": "assistant", "content": "b" * 400}, {"role": "user", "content": "c" * 400}]
    marked = [{**message, "cache_control": {"type": "ephemeral"}} for message in longer]
    with ScriptedProvider(["ok"], cache=True, repeat_last=True) as upstream:

        def cached(messages: list[dict[str, Any]], **more: Any) -> tuple[int, int]:
            _, body = post(f"{upstream.base_url}/{path}", {"model": "m", field: messages, "max_tokens": 9, **more})
            usage = parse_usage(body["usage"], api)
            return usage.cached_read, usage.input

        nothing, whole = cached(first)
        assert nothing == 0
        assert cached(longer)[0] == whole
        assert cached(marked)[0] > whole
        assert cached([{"role": "user", "content": "z"}, *longer[1:]])[0] == 0
        assert cached(longer, tools=[{"name": "t"}])[0] == 0


def test_keys_lists_and_bad_json() -> None:
    """A key is demanded where one is set; models are listed; a body that is no JSON is refused like a provider does."""
    with ScriptedProvider(["ok", "ok", "ok"], key="k", models=["a", "b"]) as upstream:
        url = f"{upstream.base_url}/chat/completions"
        assert post(url, chat("x"))[0] == 401
        assert post(url, chat("x"), {"Authorization": "Bearer wrong"})[0] == 401
        assert post(url, chat("x"), {"Authorization": "Bearer k"})[0] == 200
        assert post(f"{upstream.base_url}/messages", chat("x"), {"x-api-key": "k"})[0] == 200
        assert post(url, b"{bad", {"api-key": "k"})[0] == 400
        request = urllib.request.Request(f"{upstream.base_url}/models", headers={"Authorization": "Bearer k"})
        with urllib.request.urlopen(request) as response:
            assert [entry["id"] for entry in json.loads(response.read())["data"]] == ["a", "b"]


def test_usage_and_finish_can_be_set() -> None:
    """An answer may carry its own finish reason and usage figures; raw bytes go out as they are."""
    answer = reply("", finish="length", usage={"completion_tokens": 0, "prompt_tokens": 131072})
    with ScriptedProvider([answer, raw("hello", content_type="text/plain", status=201)]) as upstream:
        url = f"{upstream.base_url}/chat/completions"
        _, body = post(url, chat("x"))
        assert body["choices"][0]["finish_reason"] == "length"
        assert body["usage"]["prompt_tokens"] == 131072
        assert post(url, chat("x")) == (201, "hello")


def test_closing_cuts_open_streams() -> None:
    """Leaving the provider ends at once, also while a client hangs in a stream."""
    from brim.testing import broken_stream

    upstream = ScriptedProvider([broken_stream("Half", how="hang")]).start()
    body = json.dumps(chat("x", stream=True)).encode()
    request = urllib.request.Request(
        f"{upstream.base_url}/chat/completions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as response:
        assert b"data:" in response.readline()
        upstream.close()
        upstream.close()
    assert upstream.requests[0].aborted
