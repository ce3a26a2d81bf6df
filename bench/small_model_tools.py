"""How often the embedded model chooses the right tool with the right argument, by protocol.

    python bench/small_model_tools.py [--protocol small|full] [--verbose]

The requests stand in small_model_requests.json, in English and Chinese; `tool` null means that it should just answer.
Those marked `held_out` were written before the protocol was last changed and not looked at while changing it. Greedy,
so the same model file gives the same figures. A request is right when tool and first argument both are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path
from typing import Any

from brim.agent.prompts import build_sections, join_sections
from brim.providers.local import LocalProvider
from brim.providers.prompted_provider import PromptedProvider
from brim.tools import default_tools

SYSTEM = join_sections(
    build_sections(Path.cwd(), tools=[t.name for t in default_tools()], small=True)
)  # what `ai` says to a model with a small window
REQUESTS = Path(__file__).with_name("small_model_requests.json")


def tool_definitions() -> list[dict[str, Any]]:
    """brim's own tools as a chat body holds them."""
    return [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in default_tools()
    ]


async def measure(inner: LocalProvider, requests: list[dict[str, Any]], protocol: str, verbose: bool) -> None:
    """Ask every request in one protocol and print right / total."""
    provider = PromptedProvider(inner, small=protocol == "small")
    tools = tool_definitions()
    right = {False: 0, True: 0}
    started = time.perf_counter()
    for request in requests:
        body = {
            "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": request["request"]}],
            "tools": tools,
            "max_tokens": 200,
        }
        done = await provider.complete(body)
        assert isinstance(done.message, dict)
        calls = done.message.get("tool_calls") or []
        tool = calls[0]["function"]["name"] if calls else None
        values = list(json.loads(calls[0]["function"]["arguments"]).values()) if calls else []
        argument = values[0] if values else None
        ok = tool == request["tool"] and argument == request["argument"]
        right[request.get("held_out", False)] += ok
        if verbose:
            print(
                f"{'  ' if ok else 'x '} {request['request']}: {tool or 'answer'} {argument or done.message['content']!r}"
            )
    seconds = time.perf_counter() - started
    held_out = sum(r.get("held_out", False) for r in requests)
    print(
        f"{protocol:6} {sum(right.values())}/{len(requests)} right "
        f"({right[False]}/{len(requests) - held_out}, held out {right[True]}/{held_out}), "
        f"{seconds / len(requests):.1f} s each"
    )


async def run(protocols: list[str], verbose: bool) -> None:
    """Load the model once and measure each protocol."""
    requests = json.loads(REQUESTS.read_text("utf-8"))
    inner = LocalProvider()
    try:
        for protocol in protocols:
            await measure(inner, requests, protocol, verbose)
    finally:
        await inner.close()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protocol", choices=("small", "full"), action="append")
    parser.add_argument("--verbose", action="store_true", help="show each request")
    given = parser.parse_args()
    asyncio.run(run(given.protocol or ["small", "full"], given.verbose))


if __name__ == "__main__":
    main()
