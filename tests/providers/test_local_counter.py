"""What brim counts for the embedded model is what llama.cpp reports, to the token."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brim.context.conversation import Conversation
from brim.conversation import Message, assistant, call, result, system, user
from brim.errors import ProviderUnavailable
from brim.formats import parse_request
from brim.providers.llama_client import LlamaClient, llama_counter
from brim.providers.local import LlamaServer, open_local
from brim.providers.prompted_provider import PromptedProvider
from brim.tokens.llama import LlamaCounter
from shared_local_model import embedded_model

pytestmark = pytest.mark.local_model
MODEL, WHY_NOT = embedded_model()
needs_model = pytest.mark.skipif(MODEL is None, reason=WHY_NOT)
GREP = {
    "type": "function",
    "function": {
        "name": "grep",
        "description": "Search file contents.",
        "parameters": {"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]},
    },
}


@pytest.fixture(scope="module")
def provider() -> Iterator[PromptedProvider]:
    """The embedded model with the prompted protocol."""
    opened = open_local(window=4096)
    assert isinstance(opened, PromptedProvider)
    yield opened
    asyncio.run(opened.close())


@pytest.fixture(scope="module")
def plain(provider: PromptedProvider) -> LlamaCounter:
    """A counter of plain chat requests, without a protocol."""
    from brim.providers.local import LocalProvider

    assert isinstance(provider.inner, LocalProvider)
    return provider.inner.counter()


def step_of(number: int) -> list[Message]:
    """A call and its result, with text that tokenizers stumble over."""
    made = call("grep", {"pattern": f"TODO {number} <|im_end|> 搜"}, id=f"c{number}")
    lines = f"src/a{number}.py:{number}:\t# TODO: naïve 搜索 \x00 <|im_start|>user\n" * 3
    return [assistant("Again." if number % 2 else "", made), result(f"c{number}", lines)]


@needs_model
@pytest.mark.parametrize("window", [4096, 900])
def test_ten_steps_are_counted_exactly(window: int) -> None:
    """Over a session of ten steps with tool calls the bill's `used` is the prompt tokens llama.cpp reports, each time:
    also where the history no longer fits and is shortened."""
    provider = open_local(window=4096)
    counter = provider.counter()
    assert counter.exact
    conversation = Conversation(body={"tools": [GREP], "max_tokens": 1}, counter=counter)
    conversation.append(system("You are an assistant at a terminal. 用用户的语言回答。"))
    conversation.append(user("搜索 TODO 关键词"))

    shortened = []

    async def session() -> list[tuple[int, int]]:
        seen = []
        for step in range(10):
            prepared = conversation.prepare(mode="full", window=window)
            done = await provider.complete(prepared.request)
            seen.append((prepared.bill["used"], done.usage.input))
            shortened.append(prepared.changed)
            conversation.extend(step_of(step))
            if step == 4:
                conversation.append(assistant("结果如下：\n- `src/a1.py:1`"))
                conversation.append(user("  and FIXME?\n\n"))
        await provider.close()
        return seen

    seen = asyncio.run(session())
    assert [used for used, _ in seen] == [reported for _, reported in seen]
    assert len(set(seen)) == 10
    assert shortened[-1] == (window == 900)


@needs_model
def test_a_system_message_of_the_template_is_known(plain: LlamaCounter) -> None:
    """Where no system message is sent the template puts one in: its tokens are known, and the whole count has them."""
    body = {"messages": [{"role": "user", "content": "hi"}]}
    alone = sum(plain.count_messages([user("hi")])) + plain.priming
    assert plain.default_system > 10
    assert plain.count_request(body) == alone + plain.default_system


TEXTS = st.text(max_size=60) | st.sampled_from(
    [
        "<|im_start|>",
        "<|im_end|>\n",
        "<|endoftext|>",
        "\ud800",
        "\x00\x00",
        "搜索 TODO 关键词",
        "  \n\n ",
        "a" * 3000,
        "👩‍👩‍👧",
    ]
)


@needs_model
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, min_size=1, max_size=6))
def test_messages_add_up(plain: LlamaCounter, texts: list[str]) -> None:
    """Whatever texts stand in it, a conversation's count is the sum of its messages: markers, NUL and halves included."""
    wires = [{"role": "system", "content": "s"}]
    made: list[Message] = []
    for index, text in enumerate(texts):
        wires.append({"role": ("user", "assistant")[index % 2], "content": text})
        made.append(assistant(text) if index % 2 else user(text))
    if len(texts) % 2 == 0:  # a last message of the assistant would be one to go on with
        wires.append({"role": "user", "content": "x"})
        made.append(user("x"))
    messages = parse_request({"messages": wires[:1]}, "openai.chat").messages + made
    assert sum(plain.count_messages(messages)) + plain.priming == plain.count_request({"messages": wires})


@needs_model
def test_batches_count_as_single_texts(plain: LlamaCounter) -> None:
    """Counted together or one by one, with markers or empty, texts have the same counts."""
    texts = ["", "a", "<|endoftext|>", "a<|endoftext|>b", "", "搜索", "\n", "a"]
    fresh = [plain._tokenize_counts([text])[0] for text in texts]
    assert plain.count_texts(texts) == fresh
    assert plain.count_text("a") == 1 and plain.count_text("") == 0


@needs_model
def test_long_runs_are_counted(plain: LlamaCounter) -> None:
    """Half a million equal characters are counted, not refused."""
    assert 0 < plain.count_text("a" * 500_000) < 500_000
    assert 0 < plain.count_text("\n" * 500_000) < 500_001


@needs_model
def test_any_llama_server_can_be_counted() -> None:
    """A counter works over the address of a server in another place, with its key, and says when it is gone."""
    assert MODEL is not None
    with LlamaServer(MODEL, window=512, api_key="a-key-for-this-test") as server:
        counter = llama_counter("llamacpp/m", f"{server.base_url}/v1", "a-key-for-this-test")
        assert counter.exact and counter.count_text("hello world") == 2
        client = LlamaClient(server.base_url, "a-key-for-this-test")
        assert "chat_template" in client.props()
    with pytest.raises(ProviderUnavailable, match="does not answer"):
        client.props()
    client.close()
