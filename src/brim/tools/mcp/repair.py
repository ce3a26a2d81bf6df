"""Messages of servers put right where one careless tool would spoil all: the SDK refuses a whole list of tools for one broken
schema, and a whole result for one unknown block."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from brim.conversation.clean import clean_value


def parse_line(line: bytes) -> Any:
    """A line's JSON value, with what no UTF-8 can say made whole. Raises ValueError."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return clean_value(json.loads(line.decode("utf-8", "replace")))[0]


def repaired(message: Any) -> Any:
    """A message with its result put right. Changes it in place."""
    result = message.get("result") if isinstance(message, dict) else None
    if isinstance(result, dict):
        repair_result(result)
    return message


def repair_result(result: dict[str, Any]) -> None:
    """The same for a result by itself."""
    tools = result.get("tools")
    if isinstance(tools, list):
        result["tools"] = [
            _plain_tool(each) for each in tools if isinstance(each, dict) and isinstance(each.get("name"), str)
        ]
    if "content" in result or "structuredContent" in result or "isError" in result:
        content = result.get("content")
        blocks = content if isinstance(content, list) else [content] if content is not None else []
        result["content"] = [_plain_block(each) for each in blocks]
        if not isinstance(result.get("isError", False), bool):
            result["isError"] = bool(result["isError"])


def _plain_tool(tool: dict[str, Any]) -> dict[str, Any]:
    schema = tool.get("inputSchema")
    schema = dict(schema) if isinstance(schema, dict) else {}
    # What it says of its output is not checked: brim shows what comes, and says what is wrong with it nowhere else.
    kept: dict[str, Any] = {"name": tool["name"], "inputSchema": {**schema, "type": "object"}}
    for key in ("title", "description"):
        if isinstance(tool.get(key), str):
            kept[key] = tool[key]
    hints = tool.get("annotations")
    if isinstance(hints, dict) and isinstance(hints.get("readOnlyHint"), bool):
        kept["annotations"] = {"readOnlyHint": hints["readOnlyHint"]}
    return kept


_NEEDED = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}


def _plain_block(block: Any) -> Any:
    if isinstance(block, dict):
        kind = block.get("type")
        if kind in _NEEDED and all(isinstance(block.get(each), str) for each in _NEEDED[kind]):
            keys = (*_NEEDED[kind], "description", "mimeType")
            return {"type": kind, **{key: block[key] for key in keys if isinstance(block.get(key), str)}}
        inner = block.get("resource")
        if kind == "resource" and isinstance(inner, dict) and isinstance(inner.get("uri"), str):
            told = {key: inner[key] for key in ("uri", "mimeType", "text", "blob") if isinstance(inner.get(key), str)}
            if "text" in told or "blob" in told:
                return {"type": "resource", "resource": told}
    return {"type": "text", "text": block if isinstance(block, str) else json.dumps(block, ensure_ascii=False)}
