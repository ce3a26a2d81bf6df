"""Hypothesis strategies for wire objects of each API, with fields and blocks that brim has never heard of."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

text = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.sampled_from(["read", "bash", "grep"])
ids = st.sampled_from(["c1", "c2", "c3", "toolu_4"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | text, lambda inner: st.lists(inner, max_size=2), max_leaves=4
)
unknown_fields = st.dictionaries(
    st.sampled_from(["x_new", "metadata", "cache_control", "_tag"]), json_values, max_size=2
)


def fixed(required: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    """An object with these fields, some of those, and some unknown ones."""
    known = st.fixed_dictionaries(
        {k: v if isinstance(v, st.SearchStrategy) else st.just(v) for k, v in required.items()}, optional=optional
    )
    return st.builds(lambda a, b: {**b, **a}, known, unknown_fields)


unknown_block = fixed({"type": st.sampled_from(["hologram", "server_tool_use", "search_result"])}, data=json_values)
image_url = fixed(
    {
        "type": "image_url",
        "image_url": st.sampled_from(
            [{"url": "data:image/png;base64,AAAA", "detail": "low"}, {"url": "https://example.test/a.png"}]
        ),
    }
)
image = fixed(
    {"type": "image", "source": st.just({"type": "base64", "media_type": "image/png", "data": "AAAA"})},
)
text_block = fixed({"type": "text", "text": text})

# chat
chat_content = text | st.lists(text_block | image_url | image | unknown_block, max_size=3)
arguments = st.sampled_from(["{}", "", "null", '{"path": "a"}', '{"path": "'])
chat_call = fixed({"id": ids, "type": "function", "function": fixed({"name": names}, arguments=arguments)}) | fixed(
    {"id": ids, "type": "custom", "custom": fixed({"name": names, "input": text})}
)
chat_message = st.one_of(
    fixed({"role": st.sampled_from(["system", "developer", "user", "latest_reminder"]), "content": chat_content}),
    fixed({"role": "user", "content": chat_content}, name=text),
    fixed(
        {"role": "assistant"},
        content=chat_content | st.none(),
        tool_calls=st.none() | st.lists(chat_call, max_size=2),
        reasoning_content=text,
        reasoning=st.none() | text,
        refusal=st.none() | text,
    ),
    fixed({"role": "assistant", "content": st.none(), "function_call": fixed({"name": names, "arguments": arguments})}),
    fixed({"role": "tool", "tool_call_id": ids, "content": chat_content}, name=names),
    fixed({"role": "function", "name": names, "content": text | st.none()}),
)
chat_body = fixed(
    {"model": text, "messages": st.lists(chat_message, max_size=6)},
    max_tokens=st.integers(1, 9),
    tools=st.just([{"a": 1}]),
)

# anthropic
tool_result = fixed(
    {"type": "tool_result", "tool_use_id": ids},
    content=text | st.lists(text_block | image | unknown_block, max_size=2),
    is_error=st.booleans(),
)
assistant_block = st.one_of(
    text_block,
    unknown_block,
    fixed({"type": "thinking", "thinking": text, "signature": text}),
    fixed({"type": "redacted_thinking", "data": text}),
    fixed({"type": "tool_use", "id": ids, "name": names, "input": st.dictionaries(text, json_values, max_size=2)}),
)
user_block = st.one_of(text_block, image, unknown_block, tool_result, tool_result)
anthropic_message = st.one_of(
    fixed({"role": "user", "content": text | st.lists(user_block, max_size=4)}),
    fixed({"role": "assistant", "content": text | st.lists(assistant_block, max_size=4)}),
    fixed({"role": "system", "content": text | st.lists(text_block, max_size=2)}),
)
anthropic_body = fixed(
    {"model": text, "max_tokens": st.integers(1, 9), "messages": st.lists(anthropic_message, max_size=6)},
    system=text | st.lists(text_block, max_size=2) | st.none(),
)

# responses
input_block = fixed({"type": "input_text", "text": text}) | fixed(
    {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
)
item = st.one_of(
    fixed(
        {"role": st.sampled_from(["user", "developer", "system"]), "content": text | st.lists(input_block, max_size=2)}
    ),
    fixed(
        {
            "type": "message",
            "role": "assistant",
            "content": text | st.lists(fixed({"type": "output_text", "text": text}), max_size=2),
        },
        id=text,
    ),
    fixed({"type": "reasoning", "summary": st.lists(fixed({"type": "summary_text", "text": text}), max_size=2)}),
    fixed({"type": "function_call", "call_id": ids, "name": names}, arguments=arguments, id=text),
    fixed({"type": "function_call_output", "call_id": ids, "output": text | st.lists(input_block, max_size=2)}),
    fixed({"type": "custom_tool_call", "call_id": ids, "name": names, "input": text}),
    fixed({"type": "custom_tool_call_output", "call_id": ids, "output": text}),
    fixed({"type": "local_shell_call", "call_id": ids, "action": st.just({"command": ["ls"]})}),
    fixed({"type": "local_shell_call_output", "call_id": ids, "output": text}),
    fixed({"type": "computer_call", "call_id": ids, "action": st.just({"type": "click"})}),
    fixed({"type": "computer_call_output", "call_id": ids, "output": st.just({"type": "computer_screenshot"})}),
    fixed({"type": st.sampled_from(["web_search_call", "compaction", "item_reference", "mcp_list_tools"])}, id=text),
    fixed({"id": text}),
)
responses_body = fixed({"model": text}, input=text | st.lists(item, max_size=6), instructions=st.none() | text)

BODIES = {
    "openai.chat": chat_body,
    "anthropic.messages": anthropic_body,
    "openai.responses": responses_body,
}
